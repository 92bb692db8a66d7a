"""Whatever comes in, one clear error goes back, and nothing else happens."""

from __future__ import annotations

import errno
import json
import os
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from agent_node.desk import Session
from agent_node.replies import HANDLERS
from agent_node.strict import LINE_MAX
from tests.builders import uid, xfer
from tests.node.wire.talking import Talk

ULID, X = uid(1), xfer(1)
MOVE = {"xfer": X, "uid": ULID, "epoch": 1}
SETTLE = {"xfer": X, "uid": ULID, "peer": "loom"}
HELLO = {"fleet": "arc0", "hub": "arc", "term": 1}
BROKEN_LINES = {
    "empty": b"",
    "no JSON": b"hello",
    "half an object": b'{"id":1,"do":"status"',
    "a list": b"[1]",
    "a number": b"5",
    "no do": b'{"id":1}',
    "do is no text": b'{"id":1,"do":7}',
    "do is empty": b'{"id":1,"do":""}',
    "id is an object": b'{"id":{},"do":"status"}',
    "id is a fraction": b'{"id":1.5,"do":"status"}',
    "id is true": b'{"id":true,"do":"status"}',
    "id is long": b'{"id":"' + b"x" * 65 + b'","do":"status"}',
    "a key twice": b'{"id":1,"do":"status","do":"list"}',
    "NaN": b'{"id":1,"do":"list","limit":NaN}',
    "Infinity": b'{"id":1,"do":"list","limit":-Infinity}',
    "beyond a double": b'{"id":1,"do":"list","limit":1e999}',
    "beyond 64 bits": b'{"id":1,"do":"list","limit":18446744073709551616}',
    "lone surrogate": b'{"id":1,"do":"show","uid":"\\ud800"}',
    "NUL": b'{"id":1,"do":"show","uid":"\\u0000"}',
    "not UTF-8": b'{"id":1,"do":"show","uid":"\xff"}',
    "too deep": b'{"id":1,"do":"add","tasks":' + b"[" * 20 + b"]" * 20 + b"}",
    "far too deep": b"[" * 100_000,
    "too long": b'{"id":1,"do":"add","x":"' + b"x" * LINE_MAX + b'"}',
}


@pytest.mark.parametrize("line", BROKEN_LINES.values(), ids=BROKEN_LINES.keys())
def test_a_line_that_is_no_request_gets_one_error_and_ends_the_talk(
    iris: Talk, line: bytes
) -> None:
    session = Session("hub")
    answer = iris.answers.answer(session, line)
    reply = json.loads(answer)
    assert session.over
    assert answer.count(b"\n") == 1
    assert (reply["id"], reply["ok"], reply["error"]["code"]) == (None, False, "bad_input")
    assert reply["error"]["message"]


BAD_FIELDS: list[tuple[str, dict[str, Any], str]] = [
    ("list", {"limit": 0}, "limit"),
    ("list", {"limit": 1001}, "limit"),
    ("list", {"limit": True}, "limit"),
    ("list", {"limit": "5"}, "limit"),
    ("list", {"after": -1}, "after"),
    ("list", {"after": "soon"}, "after"),
    ("list", {"states": ["ASLEEP"]}, "states"),
    ("list", {"states": "READY"}, "states"),
    ("list", {"match": "x" * 27}, "match"),
    ("list", {"subject": "deploy"}, "subject"),
    ("list", {"subject": [""]}, "subject"),
    ("list", {"priority": 11}, "priority"),
    ("list", {"domain": 7}, "domain"),
    ("list", {"count": 1}, "count"),
    ("show", {}, "uid"),
    ("show", {"uid": "x"}, "uid"),
    ("show", {"uid": ULID.lower()}, "uid"),
    ("log", {"uid": ULID, "attempt": 0}, "attempt"),
    ("log", {"uid": ULID, "attempt": 1, "offset": -1}, "offset"),
    ("log", {"uid": ULID, "attempt": 1, "limit": 2**21}, "limit"),
    ("log", {"uid": ULID, "attempt": 1, "stream": "stdin"}, "stream"),
    ("log", {"uid": "../../etc", "attempt": 1}, "uid"),
    ("candidates", {"for": []}, "why"),
    ("candidates", {"why": "fun", "for": []}, "why"),
    ("candidates", {"why": "stolen"}, "for"),
    ("candidates", {"why": "stolen", "for": []}, "for"),
    ("candidates", {"why": "stolen", "for": ["loom"]}, "for[0]"),
    ("candidates", {"why": "stolen", "for": [{}]}, "for[0].node"),
    ("candidates", {"why": "stolen", "for": [{"node": "LOOM"}]}, "for[0].node"),
    ("candidates", {"why": "stolen", "for": [{"node": "loom", "hops_max": -1}]}, "for[0].hops_max"),
    ("candidates", {"why": "stolen", "for": [{"node": "loom"}], "steal_from": 11}, "steal_from"),
    ("candidates", {"why": "stolen", "for": [{"node": "loom"}], "order": "any"}, "order"),
    ("add", {}, "tasks"),
    ("add", {"tasks": {}}, "tasks"),
    ("add", {"tasks": [], "whole": 1}, "whole"),
    ("add", {"tasks": [], "by": "x" * 201}, "by"),
    ("add", {"tasks": [], "dry_run": "yes"}, "dry_run"),
    ("hello", {**HELLO, "term": -1}, "term"),
    ("hello", {**HELLO, "term": 1.0}, "term"),
    ("hello", {**HELLO, "fleet": ""}, "fleet"),
    ("hello", {**HELLO, "hub": None}, "hub"),
    ("hello", {**HELLO, "wire": 1}, "wire"),
    ("hello", {**HELLO, "wire": []}, "wire"),
    ("hello", {**HELLO, "wire": [True, 2]}, "wire"),
    ("hello", {**HELLO, "domains": []}, "domains"),
    ("escrow", {"why": "stolen", "moves": []}, "to"),
    ("escrow", {"to": "loom", "moves": []}, "why"),
    ("escrow", {"to": "loom", "why": "stolen"}, "moves"),
    ("escrow", {"to": "loom", "why": "stolen", "moves": [MOVE] * 1001}, "moves"),
    ("escrow", {"to": "loom", "why": "stolen", "moves": [MOVE], "lease_s": -1}, "lease_s"),
    ("escrow", {"to": "loom", "why": "stolen", "moves": [7]}, "moves[0]"),
    ("escrow", {"to": "loom", "why": "stolen", "moves": [MOVE, {}]}, "moves[1].xfer"),
    ("escrow", {"to": "loom", "why": "stolen", "moves": [{**MOVE, "epoch": 0}]}, "moves[0].epoch"),
    (
        "escrow",
        {"to": "loom", "why": "stolen", "moves": [{**MOVE, "epoch": True}]},
        "moves[0].epoch",
    ),
    ("hold", {"why": "stolen", "moves": []}, "from"),
    ("hold", {"from": "iris", "moves": []}, "why"),
    ("hold", {"from": "iris", "why": "stolen", "moves": [{"xfer": "x"}]}, "moves[0].xfer"),
    *[(do, {"moves": 1}, "moves") for do in ("commit", "abort", "settled", "activate", "drop")],
    *[
        (do, {"moves": [{**SETTLE, "peer": ""}]}, "moves[0].peer")
        for do in ("commit", "abort", "settled", "activate", "drop")
    ],
    ("bar", {"uids": [{"uid": ULID}]}, "uids[0].epoch"),
    ("reown", {"uids": [{"epoch": 5}]}, "uids[0].uid"),
    ("reown", {"uids": [], "fenced": [{"node": "loom"}]}, "fenced[0].incarnation"),
    ("quarantine", {}, "reason"),
    ("pause", {"reason": "x" * 1001}, "reason"),
    ("pause", {"reason": "two\nlines"}, "reason"),
    ("drain", {"deadline_s": -5}, "deadline_s"),
    ("drain", {"then": "explode"}, "then"),
    ("set", {"uid": ULID}, "fields"),
    ("set", {"uid": ULID, "fields": {}}, "fields"),
    ("set", {"uid": ULID, "fields": {"priority": 0}}, "fields.priority"),
    ("set", {"uid": ULID, "fields": {"body": "other"}}, "fields.body"),
    ("set", {"uid": ULID, "fields": {"state": "COMPLETED"}}, "fields.state"),
    ("cancel", {}, "uid"),
    ("cancel", {"uids": [7]}, "uids"),
    ("retry", {"uids": "all"}, "uids"),
    ("resolve", {"uid": ULID}, "as"),
    ("resolve", {"uid": ULID, "as": "perfect"}, "as"),
    ("events", {"after_seq": -1}, "after_seq"),
    ("events", {"limit": 10_001}, "limit"),
    ("subscribe", {"events": ["rain"]}, "events"),
    ("heartbeat", {"uid": ULID, "attempt": 1}, "token"),
    ("progress", {"uid": ULID, "attempt": 1, "token": "t"}, "text"),
    ("spawn", {"attempt": 1, "token": "t"}, "uid"),
]


@pytest.mark.parametrize(("do", "fields", "field"), BAD_FIELDS)
def test_a_bad_field_is_named_and_the_talk_goes_on(
    iris: Talk, do: str, fields: dict[str, Any], field: str
) -> None:
    error = iris.error(do, **fields)
    assert (error["code"], error["field"]) == ("bad_input", field)
    assert error["message"].startswith(f"{field}: ")
    assert iris.ask("status")["generation"] == 1, "nothing was changed by it"
    assert not iris.owner.over


def test_a_request_that_nobody_knows_names_those_that_there_are(iris: Talk) -> None:
    error = iris.error("dance")
    assert error["code"] == "unknown_request"
    assert "escrow" in error["message"]
    assert not iris.owner.over


def test_unknown_fields_of_a_request_are_ignored(iris: Talk) -> None:
    """A newer hub may say more than this node knows."""
    iris.has(1)
    result = iris.ask("escrow", to="loom", why="stolen", haste="much", moves=[{**MOVE, "tint": 3}])
    assert result["results"][0]["outcome"] == "escrowed"


def test_an_upgrade_without_a_statement_is_none(iris: Talk) -> None:
    error = iris.error("upgrade", file="x", sha256="y", signature="z")
    assert (error["code"], error["field"]) == ("bad_input", "statement")


def test_an_error_repeats_nothing_that_could_drive_a_terminal_or_fill_a_line(iris: Talk) -> None:
    error = iris.error("list", states=["\x1b[31m" + "x" * 50])
    assert "\x1b" not in error["message"]
    assert len(iris.line({"id": 1, "do": "x" * 64, "y": "z" * 10_000})) < 1000


def test_a_fault_of_ours_ends_one_request_and_shows_no_trace(
    iris: Talk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> dict[str, Any]:
        raise KeyError("a secret of the task")

    monkeypatch.setitem(HANDLERS, "doubts", fails)
    line = iris.line({"id": 3, "do": "doubts"})
    reply = json.loads(line)
    assert (reply["id"], reply["error"]["code"]) == (3, "fault")
    assert b"secret" not in line
    assert b"Traceback" not in line
    said = capsys.readouterr().err
    assert json.loads(said)["event"] == "request_failed"
    assert json.loads(said)["because"] == "KeyError"
    assert "secret" not in said
    assert iris.ask("status")["node"] == "iris"


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_fails_under_an_answer_is_told_as_the_disks_and_not_as_a_fault_of_ours(
    iris: Talk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """Seen to fail without the look at the error's number: it was a `fault`, and named no disk."""

    def fails(*_: object) -> dict[str, Any]:
        raise OSError(number, os.strerror(number), "/home/ada/secret")

    monkeypatch.setitem(HANDLERS, "doubts", fails)
    error = iris.error("doubts")
    assert error["code"] == "disk_broken"
    why = os.strerror(number)
    assert error["message"] == f"doubts: the disk failed: {why}; it may have happened, so ask again"
    said = json.loads(capsys.readouterr().err)
    assert (said["event"], said["do"]) == ("disk_trouble", "doubts")
    assert "/home/ada/secret" in said["because"]
    assert iris.ask("status")["node"] == "iris"


SEEDS: list[dict[str, Any]] = [
    {"id": 1, "do": "add", "tasks": [{"subject": "s", "body": "é\u2028", "needs": ["web"]}]},
    {"id": 2, "do": "escrow", "to": "loom", "why": "stolen", "lease_s": 60, "moves": [MOVE]},
    {
        "id": 3,
        "do": "hold",
        "from": "loom",
        "why": "stolen",
        "moves": [{"xfer": X, "task": {"uid": ULID, "subject": "s", "epoch": 1}, "sha256": "0"}],
    },
    {"id": 4, "do": "commit", "moves": [SETTLE]},
    {"id": 5, "do": "hello", "fleet": "arc0", "hub": "arc", "term": 1, "wire": [1, 1]},
    {"id": 6, "do": "candidates", "why": "stolen", "for": [{"node": "loom", "domains": ["web"]}]},
    {"id": 7, "do": "set", "uids": [ULID], "fields": {"priority": 3}, "reason": "r"},
    {"id": 8, "do": "reown", "uids": [{"uid": ULID, "epoch": 9}], "fenced": []},
    {"id": 9, "do": "list", "states": ["READY"], "limit": 5, "after": 0},
    {"id": 10, "do": "log", "uid": ULID, "attempt": 1, "offset": 0},
    {"id": 11, "do": "drain", "deadline_s": 1, "then": "requeue"},
    {"id": 12, "do": "spawn", "uid": ULID, "attempt": 1, "token": "t", "task": {"subject": "x"}},
]
ODD: list[object] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**63 - 1,
    "",
    "x",
    "\u202e",
    "x" * 700,
    [],
    {},
    [[]],
    [None],
    {"a": {"b": [1]}},
    "01TASK00000000000000000001",
    "2026-03-10T03:45:02Z",
    "nan",
    1e308,
]


def mutated(chance: Random) -> bytes:
    """A request in which something, somewhere, is something else."""
    request = json.loads(json.dumps(chance.choice(SEEDS)))
    for _ in range(chance.randint(1, 3)):
        inside, key = _somewhere(request, chance)
        inside[key] = deepcopy(chance.choice(ODD))
    line = json.dumps(request, ensure_ascii=chance.random() < 0.5).encode()
    if chance.random() < 0.3:
        place = chance.randrange(len(line))
        line = line[:place] + chance.randbytes(chance.randint(0, 3)) + line[place + 1 :]
    return line.replace(b"\n", b" ")


def _somewhere(value: Any, chance: Random) -> tuple[Any, Any]:
    """A container in this document, and one of its keys."""
    while True:
        key = (
            chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
        )
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.3:
            return value, key
        value = inner


def test_ten_thousand_mutilated_lines_get_ten_thousand_clear_answers(
    iris: Talk, capsys: pytest.CaptureFixture[str]
) -> None:
    """`fault` would be an error of ours that a request could cause; there is none."""
    iris.has(1, 2)
    chance = Random(20260310)
    for _ in range(10_000):
        line = mutated(chance)
        answer = iris.answers.answer(Session(chance.choice(("hub", "owner"))), line)
        reply = json.loads(answer)
        assert answer.endswith(b"\n")
        assert answer.count(b"\n") == 1
        assert reply["ok"] or (reply["error"]["code"] != "fault" and reply["error"]["message"]), (
            line
        )
    assert capsys.readouterr().err == ""
