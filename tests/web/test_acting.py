"""Acting from the page: off unless switched on, the plan first, and never by somebody else."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from agent_node.strict import JsonValue
from arc.web import acting, peers
from arc.web.verbs import VERBS
from tests.web.stage import Answer, Stage

WHO = {"by": "ada", "reason": "to see"}
OURS = ("127.0.0.1", 0x1F90)


@pytest.fixture
def acts(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The page with actions on, asked by its owner."""
    monkeypatch.setattr(acting, "uid_of", lambda *_: os.getuid())
    stage.open(actions=True)
    return stage


async def act(stage: Stage, verb: str, **body: object) -> Answer:
    return await stage.ask(f"/act/{verb}", "POST", body={**WHO, **body})  # type: ignore[dict-item]


async def known(stage: Stage, op: str, **args: JsonValue) -> Any:
    """What the hub says, asked beside the page."""
    return (await stage.door.ask(op, {**args}, by="human:ada", timeout_s=9)).data


async def carried_out(stage: Stage, verb: str, **body: object) -> Answer:
    plan = (await act(stage, verb, dry_run=True, **body)).data
    assert stage.door.changes == []
    return await act(stage, verb, plan=plan["plan_hash"], **body)


async def test_a_page_that_only_reads_says_how_it_is_made_to_act(stage: Stage) -> None:
    """Without `who_may_act`, the node is paused."""
    for verb in VERBS:
        said = await act(stage, verb, node="iris", dry_run=True)
        assert (said.status, said.code) == (403, "ARC-WEB-REFUSED")
        assert "web: {actions: true}" in said.said["error"]["hint"]
    assert stage.door.asked == []


async def test_a_node_is_paused_and_resumed_through_the_operation_of_the_command(
    acts: Stage,
) -> None:
    said = await carried_out(acts, "pause", node="iris")
    assert said.data["result"]["state"] == "paused"
    line = (await known(acts, "log"))["lines"][-1]
    assert (line["event"], line["node"]) == ("node_paused", "iris")
    assert line["fields"] == {"by": f"web[uid {os.getuid()}]:ada", "reason": "to see"}
    acts.door.asked.clear()
    assert (await carried_out(acts, "resume", node="iris")).data["result"]["state"] == "active"


async def test_the_log_has_the_user_that_the_kernel_knows_beside_the_name_that_was_typed(
    acts: Stage,
) -> None:
    """Seen to fail: whoever typed a name stood in the log by that, and nothing told them apart."""
    typed = "root[uid 0]"
    await act(acts, "pause", node="iris", dry_run=True, by=typed)
    acts.open(token=b"t")
    shown = {"authorization": "Bearer t"}
    body: dict[str, JsonValue] = {**WHO, "by": typed, "node": "iris", "dry_run": True}
    await acts.ask("/act/pause", "POST", body=body, headers=shown)
    acts.open(names=("fleet.example.org",))
    await acts.ask("/act/pause", "POST", body=body, headers=shown, host="fleet.example.org")

    mine = f"web[uid {os.getuid()}]:{typed}"
    assert [by for _, _, by in acts.door.asked] == [mine, mine, f"web:{typed}"]


async def test_a_task_is_moved_cancelled_and_retried(acts: Stage) -> None:
    (one,) = acts.desk.waits("iris", 1)
    said = await carried_out(acts, "move", uid=one, to="loom")
    assert [move["outcome"] for move in said.data["result"]["results"]] == ["moved"]
    for verb, state in (("cancel", "CANCELLED"), ("retry", "READY")):
        acts.door.asked.clear()
        await carried_out(acts, verb, uid=one)
        shown = await known(acts, "tasks.show", task=one)
        assert (shown["node"], shown["task"]["state"]) == ("loom", state)


async def test_by_a_name_that_leads_here_from_elsewhere_nobody_acts_without_a_token(
    acts: Stage,
) -> None:
    """Without the look at the name, a proxy of the page's own user acts for everybody."""
    acts.open(names=("fleet.example.org",))
    body: dict[str, JsonValue] = {**WHO, "node": "iris", "dry_run": True}
    said = await acts.ask("/act/pause", "POST", body=body, host="fleet.example.org")
    assert (said.status, said.code) == (403, "ARC-WEB-REFUSED")
    assert (await acts.ask("/act/pause", "POST", body=body, host="localhost:1")).status == 200
    acts.open(token=b"t")
    shown = {"authorization": "Bearer t"}
    said = await acts.ask("/act/pause", "POST", body=body, host="fleet.example.org", headers=shown)
    assert said.status == 200


async def test_the_same_order_twice_at_once_is_carried_out_once(acts: Stage) -> None:
    """Without the turns, both see the old state, both are sent, and both say that they did it."""
    (one,) = acts.desk.waits("iris", 1)
    plan = (await act(acts, "cancel", dry_run=True, uid=one)).data["plan_hash"]
    both = await asyncio.gather(*(act(acts, "cancel", uid=one, plan=plan) for _ in range(4)))
    assert sorted(said.status for said in both) == [200, 409, 409, 409]
    assert acts.door.changes == ["tasks.cancel"]


async def test_an_order_that_takes_long_keeps_no_other_waiting_for_ever(
    acts: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting, "TURN_S", 0.01)
    plan = (await act(acts, "pause", dry_run=True, node="iris")).data["plan_hash"]
    async with acts.page.web.orders:
        said = await act(acts, "pause", node="iris", plan=plan)
    assert (said.status, said.code) == (503, "ARC-WEB-CROWDED")
    assert acts.door.changes == []
    assert (await act(acts, "pause", node="iris", plan=plan)).status == 200


async def test_the_plan_of_a_drain_names_its_tasks_and_holds_while_its_queue_goes_on(
    acts: Stage,
) -> None:
    """Seen to fail with the tasks in its hash: a node that works is never drained from the page."""
    acts.desk.waits("iris", 1)
    shown = (await act(acts, "drain", dry_run=True, node="iris")).data
    assert "  1 waiting task would move" in shown["says"]
    acts.desk.waits("iris", 2)
    said = await act(acts, "drain", plan=shown["plan_hash"], node="iris")
    assert (said.status, said.data["result"]["state"]) == (200, "draining")


async def test_nothing_is_done_whose_plan_nobody_has_seen(acts: Stage) -> None:
    """Without the comparison of the hashes, all three are carried out."""
    for plan in ("", "0" * 32, "x"):
        said = await act(acts, "pause", node="iris", **({"plan": plan} if plan else {}))
        assert (said.status, said.code) == (409, "ARC-WEB-PLAN")
    assert acts.door.changes == []


async def test_a_plan_counts_only_for_its_own_order_and_while_nothing_changed(acts: Stage) -> None:
    one, two = acts.desk.waits("iris", 1, 2)
    plan = (await act(acts, "cancel", uid=one, dry_run=True)).data["plan_hash"]
    assert (await act(acts, "cancel", uid=two, plan=plan)).code == "ARC-WEB-PLAN"
    assert (await act(acts, "retry", uid=one, plan=plan)).code == "ARC-WEB-PLAN"
    await acts.door.ask("tasks.cancel", {"tasks": [one], "reason": "x"}, by="human:x", timeout_s=9)
    acts.door.asked.clear()
    assert (await act(acts, "cancel", uid=one, plan=plan)).code == "ARC-WEB-PLAN"
    assert acts.door.changes == []


@pytest.mark.parametrize(("verb", "body", "status"), [
    ("pause", {"reason": ""}, 400), ("pause", {"by": ""}, 400), ("pause", {"by": "a\nb"}, 400),
    ("pause", {"reason": "x" * 401}, 400), ("pause", {"node": "No Such"}, 400),
    ("pause", {"node": "nobody"}, 404), ("move", {"uid": "1"}, 400), ("cancel", {}, 400),
    ("resolve", {"uid": "1", "as": "gone"}, 400), ("explode", {}, 404),
    ("cancel", {"tasks": ["x"] * 101}, 400), ("pause", {"dry_run": "yes"}, 400),
])
async def test_an_order_that_is_none_is_refused_before_anything_is_done(
    acts: Stage, verb: str, body: dict[str, object], status: int
) -> None:
    given = {"node": "iris", "dry_run": True, **body} if verb == "pause" else {
        "dry_run": True, **body}
    assert (await act(acts, verb, **given)).status == status
    assert acts.door.changes == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"by":1,"by":2}', b"\xff{}", b'"x"'])
async def test_a_body_that_is_no_object_is_refused(acts: Stage, body: bytes) -> None:
    said = await acts.ask("/act/pause", "POST", body=body,
                          headers={"content-type": "application/json"})  # fmt: skip
    assert (said.status, said.code) == (400, "ARC-USAGE")


@pytest.mark.parametrize("uid", [None, 4242])
async def test_over_loopback_another_user_of_this_machine_may_look_and_not_act(
    acts: Stage, monkeypatch: pytest.MonkeyPatch, uid: int | None
) -> None:
    """Without the look at the peer, every local user acts."""
    monkeypatch.setattr(acting, "uid_of", lambda *_: uid)
    said = await act(acts, "pause", node="iris", dry_run=True)
    assert (said.status, acts.door.asked) == (403, [])
    acts.open(token=b"t")
    said = await acts.ask("/act/pause", "POST", body={**WHO, "node": "iris", "dry_run": True},
                          headers={"authorization": "Bearer t"})  # fmt: skip
    assert said.status == 200


def test_the_kernel_says_whose_program_is_at_the_other_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
    row = "   0: {} {} 01 00000000:00000000 00:00000000 00000000 {} 0 1 1\n"
    (tmp_path / "tcp").write_text(
        head + row.format("0100007F:1F90", "0100007F:C350", 7)  # our own end of it
        + row.format("0A00000A:C350", "0100007F:1F90", 8)
        + row.format("0200007F:C350", "0100007F:1F90", 9)  # of the same port, by another address
        + row.format("0100007F:C350", "0100007F:1F90", 1001))  # fmt: skip
    monkeypatch.setattr(peers, "PROC", tmp_path)
    assert peers.uid_of(("127.0.0.1", 0xC350), OURS) == 1001
    assert peers.uid_of(("127.0.0.1", 1), OURS) is None
    assert peers.uid_of(None, OURS) is None
    mapped = "0000000000000000FFFF00000100007F"
    (tmp_path / "tcp").unlink()
    (tmp_path / "tcp6").write_text(head + row.format(f"{mapped}:C350", f"{mapped}:1F90", 1002))
    assert peers.uid_of(("127.0.0.1", 0xC350), OURS) == 1002


def test_who_asks_and_leaves_at_once_is_not_taken_for_root() -> None:
    """The kernel shows a socket that its program has closed as one of root's: every user of this
    machine could act who sent an order and did not wait for its answer.
    """
    with socket.create_server(("127.0.0.1", 0)) as door:
        caller = socket.create_connection(door.getsockname())
        caller.send(b"POST /act/pause HTTP/1.1")
        ours, theirs = door.accept()
        with ours:
            assert peers.uid_of(theirs, ours.getsockname()) == os.getuid()
            caller.close()
            ours.recv(100)
            assert ours.recv(1) == b""
            assert peers.uid_of(theirs, ours.getsockname()) is None


def test_the_kernel_says_who_connected_to_a_socket_of_the_file_system() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peers.uid_at(ours) == os.getuid()
    with socket.socket() as other:
        assert peers.uid_at(other) is None
    assert peers.uid_at(None) is None
