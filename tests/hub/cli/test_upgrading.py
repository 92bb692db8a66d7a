"""Upgrades scripted nodes from the command line: canary first, one by one, and no further."""

from __future__ import annotations

import asyncio
import io
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agent_node
from agent_node.lines import line_of
from agent_node.packing import build_zipapp
from agent_node.signing import operators_line, verify
from agent_node.statement import parse_statement
from agent_node.strict import JsonObject
from arc import door
from arc.cli.around import Around
from arc.cli.running import run_command
from arc.errors import NodeRefused, NodeUnreachable
from arc.links import Met
from arc.operations import Told
from arc.reception import answered
from arc.settings import NodeEntry
from tests.fleet.machines import MachineClock
from tests.hub.cli.desk import Keyboard, Ran, Screen
from tests.hub_builders import a_hub
from tests.hub_nodes import ALink, SomeNodes
from tests.virtual_time import in_virtual_time

OLD, NEW = "0.0.9", agent_node.__version__


class ScriptedNode(ALink):
    """A node as the hub sees one that is upgraded: it is away for a while, and then is another."""

    def __init__(self, name: str, *, ends: str = "upgraded", away: int = 2, wire: int = 1,
                 version: str = OLD) -> None:  # fmt: skip
        super().__init__(name, self._say)
        self.version, self.program, self.ends, self.away = version, "0" * 12, ends, away
        self.wire, self.offers = wire, list[JsonObject]()
        self.dispatcher, self.outcome, self.silent = "running", "", 0

    def _greeted(self) -> Met:
        return Met(self.name, self.incarnation, 1, 1, "active", self.version, self.wire,
                   waits_for_hub=False, at="2026-03-10T03:45:00.000Z", clock_off_s=0.0)  # fmt: skip

    async def _say(self, do: str, fields: JsonObject) -> JsonObject:
        if self.silent:
            self.silent -= 1
            raise NodeUnreachable(self.name, "its daemon is being replaced")
        if do == "status":
            return {"version": self.version, "program": self.program,
                    "dispatcher": self.dispatcher}  # fmt: skip
        assert do == "upgrade"
        if self.ends == "refused":
            raise NodeRefused(self.name, "signature_unknown_key", "signed by a stranger")
        if "file" in fields:
            self.offers.append(fields)
            self.silent, self.outcome = self.away, self.ends
            return {"outcome": "under_way"}
        if self.ends == "upgraded":
            self.version, self.program = NEW, str(fields["sha256"])[:12]
        because = "the daemon ended" if self.outcome != "upgraded" else ""
        return {"outcome": self.outcome, "because": because}


class Fleet:
    """A hub over scripted nodes, an operator's key, and a place to type."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.nodes = {name: ScriptedNode(name) for name in ("forge", "iris", "loom", "spark")}
        self.some = SomeNodes(place / "clock")
        self.clock = MachineClock(self.some.moment)
        entries = [NodeEntry(name, host=f"{name}.lan") for name in self.nodes]
        self.hub = a_hub(place, self.clock, links=self.nodes,
                         nodes=(*entries, NodeEntry("arc", local=True)))  # fmt: skip
        (place / "home" / ".ssh").mkdir(parents=True)
        self.key = place / "home" / ".ssh" / "id_ed25519"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)],
                       check=True, timeout=20)  # fmt: skip
        self.asked: list[JsonObject] = []

    def ask(self, around: Around, op: str, args: JsonObject, *, timeout_s: float) -> Told:
        self.asked.append(args)
        line = line_of({"id": 1, "op": op, "args": args, "by": around.by})
        reply, _ = in_virtual_time(answered(self.hub, line))
        return door._told(line_of(reply))

    def arc(self, *words: str, typed: bytes | None = None) -> Ran:
        out, err = (io.StringIO() if typed is None else Screen()), io.StringIO()
        around = Around(
            environ={"USER": "ada", "HOME": str(self.place / "home"), "PATH": "/usr/bin:/bin"},
            stdin=io.BytesIO() if typed is None else Keyboard(typed), stdout=out, stderr=err,
            ask=self.ask, clock=self.clock, fleet=self.place / "fleet.yaml",
        )  # fmt: skip
        code = run_command(["nodes", "upgrade", *words], around)
        return Ran(code, out.getvalue(), err.getvalue())

    def outcomes(self, ran: Ran) -> dict[str, str]:
        return {one["node"]: one["outcome"] for one in ran.data["nodes"]}

    @property
    def order(self) -> list[str]:
        """The nodes that were sent a program, in the order of their turn."""
        return [str(one["node"]) for one in self.asked if "file" in one]

    def close(self) -> None:
        asyncio.run(self.hub.close())
        self.some.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen: programs are signed and checked by it")
    made = Fleet(tmp_path)
    yield made
    made.close()


def test_the_canary_goes_first_and_the_others_one_after_the_other(fleet: Fleet) -> None:
    ran = fleet.arc("forge", "iris", "loom", "--canary", "loom", "--yes", "--json")
    assert ran.code == 0, ran
    assert fleet.order == ["loom", "forge", "iris"]
    assert set(fleet.outcomes(ran).values()) == {"upgraded"}
    assert fleet.nodes["spark"].offers == []
    assert all(fleet.nodes[name].anew == 2 for name in ("loom", "forge", "iris"))


def test_what_is_sent_is_signed_by_the_operators_own_key(fleet: Fleet, tmp_path: Path) -> None:
    assert fleet.arc("iris", "--yes").code == 0
    (offer,) = fleet.nodes["iris"].offers
    operators = tmp_path / "operators"
    operators.write_text(operators_line(fleet.key.with_suffix(".pub").read_text()))
    operators.chmod(0o600)
    raw = str(offer["statement"]).encode()
    verify(raw, str(offer["signature"]).encode(), operators)
    said = parse_statement(raw)
    assert (said.version, said.allow_older) == (NEW, False)
    assert said.program_sha256 == build_zipapp(tmp_path / "same.pyz") == offer["sha256"]


@pytest.mark.parametrize("ends", ["went_back", "failed", "stuck", "refused"])
def test_the_first_that_fails_is_the_last_that_is_touched(fleet: Fleet, ends: str) -> None:
    fleet.nodes["forge"].ends = ends
    ran = fleet.arc("iris", "forge", "loom", "--yes", "--json")
    assert ran.code == 3
    assert fleet.outcomes(ran) == {"iris": "upgraded", "forge": ends, "loom": "not_begun"}
    assert fleet.nodes["loom"].offers == []
    assert fleet.nodes["loom"].version == OLD


def test_a_canary_that_fails_leaves_the_whole_fleet_as_it_was(fleet: Fleet) -> None:
    fleet.nodes["loom"].ends = "went_back"
    ran = fleet.arc("forge", "iris", "--canary", "loom", "--yes")
    assert ran.code == 1
    assert fleet.order == ["loom"]
    assert "went back to the old program" in ran.out
    assert "the daemon ended" in ran.out


def test_a_node_that_says_upgraded_and_greets_as_before_is_not_believed(fleet: Fleet) -> None:
    """Fails when the hub takes the node's word instead of asking a new session."""
    liar = fleet.nodes["iris"]
    liar.program, liar.ends = "f" * 12, "upgraded"
    real = liar._say

    async def lie(do: str, fields: JsonObject) -> JsonObject:
        said = await real(do, fields)
        liar.version, liar.program = OLD, "f" * 12
        return said

    liar._saying = lie
    ran = fleet.arc("iris", "--yes", "--json")
    assert ran.code == 1
    assert fleet.outcomes(ran) == {"iris": "failed"}
    assert "greets as 0.0.9" in ran.data["nodes"][0]["because"]


def test_a_program_whose_daemon_does_not_run_afterwards_has_failed(fleet: Fleet) -> None:
    stopped = fleet.nodes["iris"]
    real = stopped._say

    async def say(do: str, fields: JsonObject) -> JsonObject:
        stopped.dispatcher = "stopped" if stopped.version == NEW else "running"
        return await real(do, fields)

    stopped._saying = say
    ran = fleet.arc("iris", "--yes", "--json")
    assert fleet.outcomes(ran) == {"iris": "failed"}


def test_who_has_it_is_left_alone_and_this_machine_is_told_how(fleet: Fleet) -> None:
    sha256 = build_zipapp(fleet.place / "same.pyz")
    fleet.nodes["iris"].program = sha256[:12]
    ran = fleet.arc("iris", "arc", "--yes", "--json")
    assert ran.code == 3
    assert fleet.outcomes(ran) == {"iris": "already", "arc": "by_hand"}
    assert fleet.order == []
    assert fleet.arc("iris", "--yes").code == 0


def test_a_dry_run_says_who_would_get_it_and_needs_no_key(fleet: Fleet) -> None:
    fleet.key.unlink()
    ran = fleet.arc("iris", "loom", "--dry-run", "--json")
    assert ran.code == 0
    assert set(fleet.outcomes(ran).values()) == {"would"}
    assert fleet.order == []


def test_nobody_is_upgraded_without_a_word(fleet: Fleet) -> None:
    assert fleet.arc("iris").code == 7
    assert fleet.arc("iris", typed=b"n\n").code == 7
    assert fleet.order == []
    assert fleet.arc("iris", typed=b"y\n").code == 0


def test_nodes_of_the_wire_before_and_after_ours_are_upgraded_alike(fleet: Fleet) -> None:
    """The request is the same in every version: a node that is too old for all else takes it."""
    fleet.nodes["iris"].wire, fleet.nodes["loom"].wire = 0, 2
    ran = fleet.arc("iris", "loom", "--yes", "--json")
    assert set(fleet.outcomes(ran).values()) == {"upgraded"}


def test_a_node_that_does_not_know_the_request_is_named(fleet: Fleet) -> None:
    fleet.nodes["iris"].ends = "refused"
    ran = fleet.arc("iris", "--yes", "--json")
    assert ran.code == 1
    assert "signature_unknown_key" in ran.data["nodes"][0]["because"]


def test_a_node_that_cannot_be_asked_is_no_failure_of_the_others(fleet: Fleet) -> None:
    fleet.nodes["iris"].silent = 1
    ran = fleet.arc("iris", "loom", "--yes", "--json")
    assert ran.code == 3
    assert fleet.outcomes(ran) == {"iris": "unseen", "loom": "upgraded"}
    assert ran.envelope["partial"] == [{"node": "iris", "error": {
        "code": "ARC-SSH-UNREACHABLE", "message": "iris: its daemon is being replaced"}}]
    fleet.nodes["iris"].silent = 1
    assert fleet.arc("loom", "--canary", "iris", "--yes").code == 7


def test_it_is_signed_elsewhere_through_two_files(fleet: Fleet) -> None:
    path = fleet.place / "upgrade.json"
    written = fleet.arc("--statement", str(path))
    assert written.code == 0, written
    assert "ssh-keygen -Y sign -n agent-node-upgrade" in written.out
    elsewhere = fleet.place / "stick"
    fleet.key.rename(elsewhere)
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "agent-node-upgrade", "-f",
                    str(elsewhere), str(path)], check=True, timeout=20)  # fmt: skip
    words = ("--statement", str(path), "--signature", f"{path}.sig")
    ran = fleet.arc("iris", *words, "--yes")
    assert ran.code == 0, ran
    (offer,) = fleet.nodes["iris"].offers
    assert offer["statement"] == path.read_text()


def test_a_statement_about_another_program_is_not_sent(fleet: Fleet) -> None:
    path = fleet.place / "upgrade.json"
    fleet.arc("--statement", str(path))
    path.write_text(path.read_text().replace(NEW, "9.9.9"))
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "agent-node-upgrade", "-f",
                    str(fleet.key), str(path)], check=True, timeout=20)  # fmt: skip
    words = ("--statement", str(path), "--signature", f"{path}.sig")
    ran = fleet.arc("iris", *words, "--yes")
    assert (ran.code, fleet.order) == (2, [])
    assert "ARC-UPGRADE-FILE" in ran.err


@pytest.mark.parametrize(("words", "code", "error"), [
    ((), 2, "ARC-USAGE"), (("iris", "--all"), 2, "ARC-USAGE"),
    (("nobody",), 5, "ARC-NOT-FOUND"), (("iris", "--file", "/etc/hostname"), 2, "ARC-UPGRADE-FILE"),
    (("iris", "--file", "/nowhere.pyz"), 2, "ARC-UPGRADE-FILE"),
    (("iris", "--yes", "--key", "/nowhere"), 4, "ARC-UPGRADE-SIGN"),
    (("iris", "--yes", "--signature", "/nowhere"), 2, "ARC-USAGE"),
])  # fmt: skip
def test_wrong_words_change_nothing(
    fleet: Fleet, words: tuple[str, ...], code: int, error: str
) -> None:
    ran = fleet.arc(*words)
    assert (ran.code, error in ran.err) == (code, True), ran
    assert fleet.order == []


def test_a_key_that_cannot_sign_says_so_and_nothing_is_sent(fleet: Fleet) -> None:
    public: Any = fleet.key.with_suffix(".pub")
    fleet.key.unlink()
    ran = fleet.arc("iris", "--yes", "--key", str(public))
    assert ran.code == 4
    assert fleet.order == []


def test_of_an_upgrade_in_part_each_node_without_it_is_named_with_its_reason(fleet: Fleet) -> None:
    """It ended with 3 and an empty `partial`."""
    fleet.nodes["loom"].ends = "refused"
    ran = fleet.arc("iris", "loom", "spark", "arc", "--yes", "--json")
    assert ran.code == 3
    left = {one["node"]: one["error"] for one in ran.envelope["partial"]}
    assert sorted(left) == ["arc", "loom", "spark"]
    assert left["loom"]["code"] == "ARC-REFUSED"
    assert "signature_unknown_key" in left["loom"]["message"]
    assert left["spark"]["message"] == "was not begun, because another one failed"
    assert "warning" not in ran.err
