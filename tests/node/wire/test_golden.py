"""Every request and its reply are as they were when this version of the wire was released."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_node import desk
from agent_node.replies import CHANGES, HANDLERS
from agent_node.wire import OLDEST_WIRE, WIRE
from tests.node.wire.golden import FOLDER, SCENES, scene
from tests.node.wire.talking import Talk

# Written for people: their words may change, that they are there may not.
SENTENCES = {"text", "message", "reason", "version"}
LOCAL = {"heartbeat", "progress", "spawn"}  # said by a program on this machine, never by a hub
FILES = [
    path
    for version in range(OLDEST_WIRE, WIRE + 1)
    for path in (FOLDER / f"v{version}").glob("*.json")
]


@pytest.mark.parametrize("path", sorted(FILES), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_reply_is_the_one_in_the_golden_file(tmp_path: Path, path: Path) -> None:
    """A file that differs is either a fault or a new version; it is never simply written again."""
    golden = json.loads(path.read_text(encoding="utf-8"))
    reply = scene(tmp_path / "iris", golden["requests"])
    assert differences(golden["reply"], reply) == []


def differences(golden: Any, reply: Any, at: str = "reply") -> list[str]:
    """Where the reply breaks what the golden file promises; fields may be added, none may go."""
    if isinstance(golden, dict) and isinstance(reply, dict):
        gone = [f"{at}.{name}: gone" for name in golden.keys() - reply.keys()]
        shared = golden.keys() & reply.keys()
        return gone + [
            said
            for name in shared - SENTENCES
            for said in differences(golden[name], reply[name], f"{at}.{name}")
        ]
    if isinstance(golden, list) and isinstance(reply, list) and len(golden) == len(reply):
        pairs = enumerate(zip(golden, reply, strict=True))
        return [said for n, (old, new) in pairs for said in differences(old, new, f"{at}[{n}]")]
    same = type(golden) is type(reply) and golden == reply
    return [] if same else [f"{at}: {reply!r} instead of {golden!r}"]


def test_a_difference_to_a_golden_file_is_seen() -> None:
    golden = {"a": [{"b": 1, "text": "one"}], "c": True}
    assert differences(golden, {"a": [{"b": 1, "text": "two", "d": 0}], "c": True}) == []
    assert differences(golden, {"a": [{"b": 2}], "c": 1}) != []
    assert differences(golden, {"a": [], "c": True}) != []
    assert differences(golden, {"a": [{"text": "one"}], "c": True}) == ["reply.a[0].b: gone"]


def test_every_request_of_the_wire_has_a_golden_file() -> None:
    told = {requests[-1]["do"] for requests in SCENES.values()}
    assert set(HANDLERS) - told == LOCAL
    assert {path.stem for path in FILES} >= SCENES.keys()


def test_what_goes_through_the_desk_is_what_changes_a_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word that is missing in `CHANGES` would meet no fault there. Seen to fail with `bar` among
    those that only look.
    """
    met: set[str] = set()
    monkeypatch.setattr(desk, "failpoint", met.add)
    released = [*SCENES["quarantine"], {"do": "release", "alone": True}]
    for name, requests in {**SCENES, "release": released}.items():
        scene(tmp_path / name, requests)
    assert met == {f"{do}.{side}" for do in set(CHANGES) - LOCAL for side in ("before", "after")}


def test_the_greeting_is_the_first_line_and_says_who_is_here(iris: Talk) -> None:
    greeting = json.loads(iris.answers.greeting())
    facts = iris.ask("status")
    assert list(greeting) == ["agent-node", "wire", "node", "incarnation", "generation"]
    assert (greeting["wire"], greeting["node"]) == (1, "iris")
    assert greeting["incarnation"] == facts["incarnation"]
    assert greeting["generation"] == facts["generation"]
