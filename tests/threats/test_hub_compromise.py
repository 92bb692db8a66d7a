"""A hub in wrong hands can speak our words and do nothing else: every word, every bad argument."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_node.replies import HANDLERS
from tests.builders import uid, xfer
from tests.node.wire.processes import Program, a_serve
from tests.node.wire.talking import a_home
from tests.threats.payloads import payloads

OURS = {
    "node.toml", "queue.db", "queue.db-wal", "queue.db-shm", "generation", "lock", "heard.json",
    "fleet-status.json", "upgrades.json", "tasks",
}  # fmt: skip
HELLO = {"fleet": "arc0", "hub": "arc", "term": 1, "instance": "01J0000000000000000000000A"}
# Every name under which a field of some word is known, and some that no word has.
FIELDS = (
    "uid", "uids", "xfer", "moves", "tasks", "to", "from", "by", "reason", "agent", "then", "as",
    "fields", "states", "for", "why", "after", "limit", "attempt", "stream", "offset", "events",
    "file", "sha256", "statement", "signature", "token", "text", "task", "fleet", "hub", "domains",
    "path", "command", "argv", "run", "env", "cwd", "module", "executor", "prefix", "run_as",
    "extras_path", "home", "failpoint",
)  # fmt: skip


def hostile(canary: Path) -> list[Any]:
    """What a field may hold that some receiver might open, run, import or choke on."""
    shell = payloads(canary)[0]
    return [
        str(canary), f"../../../{canary}", "/etc/passwd", shell, ["sh", "-c", f"touch {canary}"],
        {"LD_PRELOAD": str(canary), "PYTHONPATH": str(canary)}, "os.system", "\x1b[2J", "-" * 3,
        "x" * 90_000, [[]] * 5000, {"a": {"b": {"c": {}}}}, -1, 2**63 - 1, True, None, 0.5, "",
        [{"uid": uid(1), "epoch": 1, "xfer": xfer(1), "peer": f"../{canary.name}", "sha256": "0",
          "task": {"uid": uid(1), "subject": shell, "run": ["sh"], "cwd": "/", "env": {"A": "b"}}}],
        base64.b64encode(f"#!/bin/sh\ntouch {canary}\n".encode()).decode(),
    ]  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder with a node's home in it, and other people's files around it."""
    a_home(tmp_path / "iris")
    for name in (".ssh", "shared"):
        (tmp_path / name).mkdir(mode=0o700)
        (tmp_path / name / "authorized_keys").write_text("ssh-ed25519 AAAA somebody\n")
    yield tmp_path
    assert not (tmp_path / "canary").exists()


def snapshot(place: Path) -> dict[str, tuple[int, int, bytes]]:
    """All that lies here outside of the node's home."""
    found = {}
    for path in sorted(place.rglob("*")):
        if path.relative_to(place).parts[0] != "iris":
            about = path.lstat()
            raw = path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(place))] = (about.st_mode, about.st_ino, raw)
    return found


def told(serve: Program, number: int, do: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The answer to this, of which there is exactly one."""
    serve.write(json.dumps({"id": number, **fields, "do": do}).encode() + b"\n")
    reply = serve.hear()
    assert reply["id"] == number, reply
    return reply


@pytest.mark.parametrize("do", sorted(HANDLERS))
def test_no_word_of_a_hub_touches_anything_but_the_nodes_own_files(place: Path, do: str) -> None:
    """Every known word with every field holding every hostile value, to a real serve."""
    before, node_toml = snapshot(place), (place / "iris" / "node.toml").read_bytes()
    env = {"HOME": str(place), "AGENT_NODE_HOME": str(place / "iris"), "PATH": "/usr/bin:/bin"}
    number, faults = 0, []
    with a_serve(place / "iris", env=env) as serve:
        serve.hear()
        told(serve, 0, "hello", HELLO)
        for value in hostile(place / "canary"):
            for fields in (dict.fromkeys(FIELDS, value), *({one: value} for one in FIELDS[::11])):
                number += 1
                reply = told(serve, number, do, fields)
                if not reply["ok"] and reply["error"]["code"] in {"fault", "bug"}:
                    faults.append((fields.keys(), str(value)[:40], reply["error"]))
                assert "\x1b" not in json.dumps(reply, ensure_ascii=False)
        assert told(serve, number + 1, "status", {})["ok"]
        serve.no_more()
        assert serve.ended() == 0
        assert "Traceback" not in serve.complaint()
    assert faults == []
    assert snapshot(place) == before
    assert (place / "iris" / "node.toml").read_bytes() == node_toml
    assert {path.name for path in (place / "iris").iterdir()} - OURS == set()
    assert [*(place / "iris" / "tasks").iterdir()] == []


@pytest.mark.parametrize("do", "exec run shell import __class__ eval sftp get".split())
def test_there_are_no_words_but_those_of_the_list(place: Path, do: str) -> None:
    env = {"HOME": str(place), "PATH": "/usr/bin:/bin"}
    with a_serve(place / "iris", env=env) as serve:
        serve.hear()
        reply = told(serve, 1, do, {"command": f"touch {place / 'canary'}"})
        assert reply["error"]["code"] == "unknown_request"


def test_what_the_stolen_key_asks_for_in_its_ssh_command_is_ignored(place: Path) -> None:
    """sshd hands over the words that the client wanted to run; no line of ours reads them."""
    env = {"HOME": str(place), "PATH": "/usr/bin:/bin",
           "SSH_ORIGINAL_COMMAND": f"; touch {place / 'canary'} ;"}  # fmt: skip
    with a_serve(place / "iris", env=env) as serve:
        assert serve.hear()["node"] == "iris"
        assert serve.ask("status")["node"] == "iris"
