"""Plays the scenes of the golden files: a fresh node, what went before, one request, its reply.

`python -m tests.node.wire.golden` writes the files of the version we speak; those of older
versions are never written again.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from agent_node.desk import Session
from agent_node.wire import WIRE
from tests.builders import uid, xfer
from tests.node.wire.talking import FakeHost, Talk, a_move, a_settle

FOLDER = Path(__file__).parents[2] / "wire"
HUB = {"do": "hello", "fleet": "arc0", "hub": "arc", "term": 3, "wire": [1, 1]}
TASK = {
    "uid": uid(1), "subject": "rotate logs", "body": "all of them", "priority": 8, "key": "k-1",
    "skills": ["ops"], "source": "human:ada", "origin": "human:ada", "tint": "blue",
    "created_at": "2026-03-10T03:00:00.000Z",
}  # fmt: skip
OFFER: dict[str, Any] = {
    "xfer": xfer(1),
    "task": {"uid": uid(2), "subject": "from afar", "epoch": 4, "created_at": None},
    "sha256": "462ce072adc45011e4d257ab3ed9432c86a3db737d2d8718b7951469958e01d8",
}
FAILED = {"n": 1, "node": "forge", "incarnation": "f", "agent": "ada", "outcome": "failed",
          "counted": True, "error_kind": "crash", "claimed_at": "2026-03-10T03:10:00.000Z",
          "ended_at": "2026-03-10T03:11:00.000Z", "blamed": False}  # fmt: skip
UNBLAMED = {**OFFER, "task": {**OFFER["task"], "attempts": [FAILED]}}
ADD = {"do": "add", "tasks": [TASK]}
ESCROW = {"do": "escrow", "to": "loom", "why": "stolen", "lease_s": 60, "moves": [a_move(1)]}
HOLD = {"do": "hold", "from": "forge", "why": "stolen", "moves": [OFFER]}
GIVEN, TAKEN = a_settle(1, "loom"), a_settle(2, "forge", x=1)
PERSON = {"by": "human:ada", "reason": "asked for"}
NEW = json.dumps({
    "schema": "agent-node-upgrade/1", "program_sha256": "0" * 64, "version": "1.0.0",
    "made_at": "2026-03-10T03:00:00.000Z",
})  # fmt: skip
SHA256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # of `hello`
PUT = {"do": "artifact_put", "sha256": SHA256, "size": 5, "offset": 0, "data": "aGVsbG8="}
WANTING = {"do": "add", "tasks": [{**TASK, "context_refs": [f"artifact:{SHA256}"]}]}
FOR_LOOM = {"node": "loom", "domains": [], "untagged_from": 8}

DAG = "01DAG000000000000000000001"
SUBMIT: dict[str, Any] = {"do": "submit", "by": "human:ada", "graph": {
    "id": DAG, "title": "release", "budget_usd": "2.50", "tasks": {
        "build": {"uid": uid(1), "subject": "build it", "source": "human:ada"},
        "test": {"uid": uid(2), "subject": "test it", "context": ["build"]},
        "ship": {"uid": uid(3), "subject": "ship it",
                 "after": ["test", {"task": uid(9), "on_failure": "skip"}]},
    },
}}  # fmt: skip
ENDED = {"do": "ended", "tasks": [
    {"uid": uid(9), "state": "COMPLETED", "node": "loom", "at": "2026-03-10T03:40:00.000Z",
     "output": {"x": 1}, "cost_usd": "0.10"},
    {"uid": uid(1), "state": "CANCELLED", "node": "loom", "at": "2026-03-10T03:40:00.000Z"},
    {"uid": uid(8), "state": "FAILED", "node": "loom", "at": "2026-03-10T03:40:00.000Z"},
]}  # fmt: skip

# name: what went before, then the request itself.
SCENES: dict[str, list[dict[str, Any]]] = {
    "hello": [HUB],
    "hello-old-term": [HUB, {**HUB, "term": 2}],
    "hello-other-hub": [
        {**HUB, "instance": "01J00000000000000000000001"},
        {**HUB, "instance": "01J00000000000000000000002"},
    ],
    "status": [ADD, {"do": "status"}],
    "list": [ADD, {"do": "list", "states": ["READY"], "limit": 10, "after": 0}],
    "list-why": [ADD, {"do": "pause", **PERSON}, {"do": "list", "why": True}],
    "list-narrowed": [ADD, {"do": "list", "states": ["READY"], "subject": ["ROTATE"],
                            "skill": "ops", "priority": 8, "count": True}],
    "show": [ADD, {"do": "show", "uid": uid(1)}],
    "show-unknown": [{"do": "show", "uid": uid(1)}],
    "log-unknown": [ADD, {"do": "log", "uid": uid(1), "attempt": 1, "offset": 0, "limit": 100}],
    "candidates": [ADD, {"do": "candidates", "why": "stolen", "for": [FOR_LOOM]}],
    "add": [ADD],
    "add-again": [ADD, {**ADD, "tasks": [TASK, {**TASK, "uid": uid(3), "body": "other"}, 7]}],
    "escrow": [ADD, ESCROW],
    "escrow-weighed": [HUB, SUBMIT, {**ESCROW, "why": "routed", "terse": True}],
    "escrow-refused": [{**ESCROW}],
    "hold": [HOLD],
    "hold-weighed": [{**HOLD, "moves": [{**OFFER, "weight": 13.334}]}],
    "hold-too-heavy": [{**HOLD, "moves": [{**OFFER, "weight": 20.001},
                                          {**OFFER, "xfer": xfer(2), "weight": "13"}]}],
    "hold-refused": [{**HOLD, "moves": [{**OFFER, "sha256": "0" * 64}, {"xfer": xfer(2)}]}],
    "commit": [ADD, ESCROW, {"do": "commit", "moves": [GIVEN]}],
    "commit-unknown": [{"do": "commit", "moves": [GIVEN]}],
    "abort": [ADD, ESCROW, {"do": "abort", "moves": [GIVEN]}],
    "settled": [
        ADD,
        ESCROW,
        {"do": "abort", "moves": [GIVEN]},
        {"do": "settled", "moves": [GIVEN]},
    ],
    "activate": [HOLD, {"do": "activate", "moves": [TAKEN]}],
    "drop": [HOLD, {"do": "drop", "moves": [TAKEN]}],
    "bar": [{"do": "bar", "uids": [{"uid": uid(1), "epoch": 1048577}], "fenced": []}],
    "reown-refused": [{"do": "reown", "uids": [{"uid": uid(1), "epoch": 1048577}], "fenced": []}],
    "quarantine": [{"do": "quarantine", **PERSON}],
    "doubts": [ADD, ESCROW, {"do": "doubts"}],
    "moved": [
        ADD, ESCROW, {"do": "commit", "moves": [GIVEN]},
        {"do": "moved", "peer": "loom", "open": True, "limit": 10},
    ],
    "budget": [HUB, SUBMIT, {"do": "budget"}],
    "set-budget": [{"do": "set_budget", "scope": "fleet", "limit_usd": "12.50",
                    "urgent_overdraft": True}],
    "set-budget-refused": [{"do": "set_budget", "scope": "dag:x", "limit_usd": None}],
    "tiers": [ADD, {"do": "tiers"}],
    "dead": [ADD, {"do": "dead", "limit": 10, "after": 0, "resolved": True}],
    "dead-review-refused": [ADD, {"do": "dead_review", "uids": [uid(1), uid(9)], **PERSON}],
    "submit": [HUB, SUBMIT],
    "submit-again": [HUB, SUBMIT, {**SUBMIT, "graph": {**SUBMIT["graph"], "title": "other"}}],
    "submit-cycle": [{"do": "submit", "graph": {"title": "round", "tasks": {
        "a": {"subject": "a", "after": ["b"]}, "b": {"subject": "b", "after": ["a"]}}}}],
    "graphs": [HUB, SUBMIT, {"do": "graphs", "states": ["running"], "limit": 10}],
    "graph": [HUB, SUBMIT, {"do": "graph", "dag": DAG}],
    "graph-of-one": [ADD, {"do": "graph", "dag": uid(1)}],
    "graph-cancel": [HUB, SUBMIT, {"do": "graph_cancel", "dag": DAG, **PERSON}],
    "awaits": [HUB, SUBMIT, {"do": "awaits", "limit": 10}],
    "ended": [HUB, SUBMIT, ENDED],
    "alive": [HUB, SUBMIT, ENDED, {"do": "alive", "uids": [uid(9), uid(8)]}],
    "joined": [HUB, SUBMIT, {"do": "joined", "tasks": [
        {"uid": uid(7), "dag": DAG, "parent": uid(1), "name": "more"},
        {"uid": uid(6), "dag": "01DAG000000000000000000009", "parent": uid(1)}]}],
    "joined-priced": [HUB, SUBMIT, {"do": "joined", "tasks": [
        {"uid": uid(7), "dag": DAG, "parent": uid(1), "max_cost_usd": "7.25"}]}, {"do": "budget"}],
    "artifact": [HUB, WANTING, PUT, {"do": "artifact", "sha256": SHA256, "offset": 2, "limit": 3}],
    "artifact-unknown": [{"do": "artifact", "sha256": SHA256, "offset": 0, "limit": 3}],
    "artifact-put": [HUB, WANTING, {**PUT, "data": "aGVs"}, {**PUT, "offset": 3, "data": "bG8="}],
    "artifact-put-begun": [HUB, WANTING, {**PUT, "data": "aGVs"}],
    "artifact-put-out-of-order": [HUB, WANTING, {**PUT, "offset": 3, "data": "bG8="}],
    "artifact-put-other-bytes": [HUB, WANTING, {**PUT, "data": "SGVsbG8="}],
    "artifact-put-unawaited": [HUB, PUT],
    "artifacts-missing": [HUB, WANTING, {"do": "artifacts_missing", "limit": 10}],
    "show-unblamed": [HUB, {**HOLD, "moves": [UNBLAMED]}, {"do": "show", "uid": uid(2)}],
    "pause": [{"do": "pause", **PERSON}],
    "resume": [{"do": "pause", **PERSON}, {"do": "resume", **PERSON}],
    "drain": [{"do": "drain", "deadline_s": 600, "then": "wait", **PERSON}],
    "set": [ADD, {"do": "set", "uids": [uid(1)], "fields": {"priority": 2}, **PERSON}],
    "cancel": [ADD, {"do": "cancel", "uids": [uid(1), uid(9)], **PERSON}],
    "retry": [
        ADD,
        {"do": "cancel", "uids": [uid(1)], **PERSON},
        {"do": "retry", "uids": [uid(1)], **PERSON},
    ],
    "resolve-refused": [ADD, {"do": "resolve", "uid": uid(1), "as": "done", **PERSON}],
    "release-refused": [ADD, {"do": "release", "uid": uid(1), **PERSON}],
    "events": [ADD, {"do": "events", "after_seq": 0, "limit": 10}],
    "subscribe": [{"do": "subscribe", "events": ["idle", "free_slot"]}],
    "upgrade": [
        {"do": "upgrade", "file": "AAAA", "sha256": "0" * 64, "statement": NEW, "signature": "-"}
    ],
    "unknown-request": [{"do": "dance"}],
    "other-incarnation": [ADD, {**ESCROW, "incarnation": "01J00000000000000000000000"}],
}


def play(talk: Talk, session: Session, requests: list[dict[str, Any]]) -> dict[str, Any]:
    """The reply to the last of these requests."""
    reply: dict[str, Any] = {}
    for number, request in enumerate(requests, 1):
        reply = json.loads(talk.line({"id": number, **request}, session=session))
    return reply


def scene(place: Path, requests: list[dict[str, Any]]) -> dict[str, Any]:
    """The reply that a fresh node gives, told by a hub."""
    talk = Talk(place)
    try:
        assert isinstance(talk.host, FakeHost)
        return play(talk, talk.hub, requests)
    finally:
        talk.close()


def as_golden(place: Path, requests: list[dict[str, Any]]) -> dict[str, Any]:
    """What stands in a golden file."""
    return {"wire": WIRE, "requests": requests, "reply": scene(place, requests)}


def main() -> None:
    """Write the files of this version."""
    folder = FOLDER / f"v{WIRE}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, requests in SCENES.items():
        with tempfile.TemporaryDirectory() as place:
            golden = as_golden(Path(place) / "iris", requests)
        text = json.dumps(golden, ensure_ascii=False, indent=1)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
