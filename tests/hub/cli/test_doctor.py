"""`arc doctor` looks at the hub's folder, this machine and every node; findings are exit 6."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from agent_node import commands as c
from agent_node.strict import JsonObject
from arc.errors import NodeCannotServe, NodeSilent
from arc.journal_disk import DiskFailed
from arc.links.answers import parse_trouble
from arc.settings import HookEntry
from arc.setup import render_schema
from tests.hub.cli.desk import Desk, Ran
from tests.hub_nodes import ALink


@pytest.fixture
def well(desk: Desk) -> Desk:
    """A hub's folder with nothing to find in it."""
    state = desk.hub.settings.state
    (state / "fleet.schema.json").write_text(render_schema())
    for path, _, files in os.walk(state):
        os.chmod(path, 0o700)
        for file in files:
            os.chmod(os.path.join(path, file), 0o600)
    for machine in desk.nodes.machines.values():
        machine.host.disk_free = lambda: 10**15  # type: ignore[method-assign]
    return desk


def found(ran: Ran, what: str) -> list[dict[str, object]]:
    return [one for one in ran.data["checks"] if one["what"] == what and one["state"] != "ok"]


def test_a_fleet_that_is_well_has_no_findings_of_its_nodes(well: Desk) -> None:
    text, data = well.both("doctor", "--node", "iris")
    assert text.code == 0
    assert text.lines[-1] == "no findings"
    assert [one["what"] for one in data["checks"]] == ["iris"]


def test_who_does_not_answer_was_not_heard_by_the_doctor_either(well: Desk) -> None:
    """Seen to fail: its open session was taken for an answer, and `last heard` was just now."""
    well.arc("doctor", "--node", "iris")

    async def mute(do: str, fields: JsonObject) -> JsonObject:
        raise NodeSilent("iris", "no answer within 10 s")

    well.hub.links["iris"] = ALink("iris", mute)
    heard = well.hub.journal.nodes.met()["iris"]
    well.minutes_pass(20)
    assert well.arc("doctor", "--node", "iris").code == 6
    assert well.hub.journal.nodes.met()["iris"] == heard


def test_a_file_that_goes_while_the_folder_is_looked_at_is_nobodys_fault(well: Desk) -> None:
    """Seen to fail with `a fault of ours: FileNotFoundError`: what another command replaces, such
    as known_hosts, has a second name for a moment.
    """
    there = [*os.walk(well.hub.settings.state)]
    there[0][2].append("known_hosts.new")
    with patch("arc.operations.doctor.os.walk", return_value=there):
        assert found(well.arc("doctor", "--json"), "state") == []


def test_files_that_others_may_read_are_found_and_mended(well: Desk) -> None:
    journal = well.hub.settings.state / "journal.db"
    journal.chmod(0o644)
    ran = well.arc("doctor", "--json")
    assert ran.code == 6
    assert "journal.db" in str(found(ran, "state"))
    dry = well.arc("doctor", "--fix", "--dry-run")
    assert (dry.code, journal.stat().st_mode & 0o777) == (6, 0o644)
    assert "arc doctor --fix takes" in dry.out
    mended = well.arc("doctor", "--fix", "--json")
    assert found(mended, "state")[0]["mended"] is True
    assert journal.stat().st_mode & 0o777 == 0o600
    assert found(well.arc("doctor", "--json"), "state") == []


def test_a_webhook_whose_secret_cannot_be_read_is_found_before_a_message_comes(well: Desk) -> None:
    """Seen to fail with the secret looked for when a message comes alone."""
    secret = well.hub.settings.state / "ci.secret"
    hook = HookEntry("ci", secret, {"subject": "s"}, "", 60)
    well.hub.settings = replace(well.hub.settings, webhooks=(hook,))
    (missing,) = found(well.arc("doctor", "--json"), "webhook ci")
    assert missing["state"] == "bad"
    secret.write_text("hush")
    secret.chmod(0o600)
    assert not found(well.arc("doctor", "--json"), "webhook ci")


def test_a_missing_schema_is_found_and_written(well: Desk) -> None:
    schema: Path = well.hub.settings.state / "fleet.schema.json"
    schema.unlink()
    assert found(well.arc("doctor", "--json"), "schema")
    well.arc("doctor", "--fix")
    assert schema.read_text() == render_schema()


def test_the_doctor_sends_dead_letters_where_the_status_sends_them(well: Desk) -> None:
    """One said `arc nodes show`, the other `arc dead list`."""
    task = well.runs("iris", 1, max_attempts=1)
    failed = c.Result("failed", error_kind="crash")
    well.nodes.machines["iris"].store.apply(c.Finish(task, 1, failed))
    (status,) = [one["try"] for one in well.arc("status", "--json").data["needs_you"]
                 if " dead" in one["text"]]  # fmt: skip
    assert [one["hint"] for one in found(well.arc("doctor", "--json"), "iris")
            if "dead" in str(one["text"])] == [status] == ["arc dead list"]  # fmt: skip


def test_a_node_without_a_dispatcher_and_one_that_is_silent_are_two_findings(well: Desk) -> None:
    well.nodes.machines["iris"].dispatches(running=False)
    well.nodes.switch_off("loom")
    ran = well.arc("doctor", "--json")
    assert ran.code == 6
    assert "its daemon does not run" in str(found(ran, "iris")[0]["text"])
    assert found(ran, "loom")[0]["text"] == "no route to it; nothing changed there"
    assert found(ran, "loom")[0]["hint"]
    text = well.arc("doctor")
    assert "hint: on iris: agent-node start" in text.out


def test_a_node_of_another_version_is_found(well: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arc.operations.doctor.__version__", "9.9.9")
    assert "the hub 9.9.9" in str(found(well.arc("doctor", "--json"), "iris"))


def test_a_full_disk_and_a_task_that_nobody_there_can_run_are_findings(
    well: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(well.nodes.machines["iris"].host, "disk_free", lambda: 1)
    well.waits("iris", 1, needs=["gpu"])
    said = [str(one["text"]) for one in found(well.arc("doctor", "--json"), "iris")]
    assert any("no agent here has: gpu" in text for text in said)
    assert any(text.startswith("its disk is 100% full") for text in said)


def test_another_program_named_arc_is_found(
    well: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "bin" / "arc"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho an archiver\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    ran = well.arc("doctor", "--json")
    assert found(ran, "command")[0]["hint"] == "type arcfleet, or put ours before it on PATH"


def test_a_suspended_node_is_not_asked_and_no_finding(well: Desk) -> None:
    well.nodes.switch_off("loom")
    well.arc("nodes", "suspend", "loom", "--reason", "off")
    ran = well.arc("doctor", "--json")
    assert found(ran, "loom") == []
    assert "not asked" in str([one for one in ran.data["checks"] if one["what"] == "loom"])


def test_a_node_that_the_fleet_does_not_have_is_no_healthy_node(well: Desk) -> None:
    assert well.both("doctor", "--node", "nix")[0].code == 5


@pytest.mark.parametrize("known", [True, False])
def test_a_home_that_is_gone_is_to_be_brought_back_and_a_new_one_to_be_made(
    well: Desk, known: bool
) -> None:
    """Seen to fail: whoever's disk was not mounted was told to make a new home in its place."""
    if known:
        well.arc("status")
    said = (b'{"error": {"code": "home_missing", "message": "/srv/loom: cannot be looked at",'
            b' "hint": "create it with: agent-node init --name NAME"}}')  # fmt: skip
    trouble = parse_trouble("loom", said)
    assert isinstance(trouble, NodeCannotServe)

    async def gone(*_: object, **__: object) -> JsonObject:
        raise trouble

    link = well.nodes.link("loom")
    with patch.object(link, "meet", gone):
        (one,) = found(well.arc("doctor", "--node", "loom", "--json"), "loom")
    assert ("is its disk mounted on loom?" in str(one["hint"])) == known
    assert ("agent-node init" in str(one["hint"])) != known


def test_what_stands_where_a_failed_disk_is_told_of_is_found(well: Desk) -> None:
    """By the doctor, and among what waits for a person."""
    hub = well.hub
    place = hub.journal.path.with_name("journal.failed")
    os.mkfifo(place)
    ran = well.arc("doctor", "--json")
    ((one,), code) = found(ran, hub.settings.hub), ran.code
    assert (one["state"], code) == ("bad", 6)
    assert one["hint"] == f"mv {place} {place}.strange"
    assert "would go untold" in well.arc("status").out
    place.unlink()
    assert found(well.arc("doctor", "--json"), hub.settings.hub) == []


def test_a_disk_that_failed_under_the_hubs_files_is_found_for_a_day(well: Desk) -> None:
    """Seen to fail: `journal  ok  sound`, minutes after that disk had ended the hub."""
    hub = well.hub
    hub.journal.disk_failed = DiskFailed(hub.clock.now(), "journal_disk_broken", "it burnt")
    ran = well.arc("doctor", "--json")
    ((one,), code) = found(ran, hub.settings.hub), ran.code
    assert (one["state"], one["text"], code) == (
        "bad", "its disk failed, and it was started again since: it burnt", 6)  # fmt: skip
    assert not any(one["what"] == hub.settings.hub for one in
                   well.arc("doctor", "--node", "iris", "--json").data["checks"])  # fmt: skip
    well.minutes_pass(25 * 60)
    assert found(well.arc("doctor", "--json"), hub.settings.hub) == []
