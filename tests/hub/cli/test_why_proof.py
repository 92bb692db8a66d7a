"""`arc why --node` says how a node that fails shows that it is well again, and when."""

from __future__ import annotations

from agent_node import commands as c
from tests.hub.cli.desk import Desk


def ends(desk: Desk, node: str, number: int, *, well: bool) -> None:
    """One attempt there, and the hub hears of its end."""
    machine = desk.nodes.machines[node]
    result = c.Result("completed") if well else c.Result("failed", error_kind="crash")
    machine.store.apply(c.Finish(desk.runs(node, number, max_attempts=1), 1, result))
    assert desk.arc("sensors", "run", "fleet-health").code == 0


def proof(desk: Desk) -> str:
    """What it says, word by word the same for people and for machines."""
    text, data = desk.both("why", "--node", "loom")
    assert (f"  {data['proof']}" in text.lines) is bool(data["proof"])
    return str(data["proof"])


def test_how_and_when_it_is_trusted_again(desk: Desk) -> None:
    """Seen to fail: it said what was wrong, and only the page for the night how that ends."""
    assert proof(desk) == ""
    for number in range(1, 6):
        ends(desk, "loom", number, well=False)
    assert proof(desk).startswith("loom is trusted again after its trial, one task that the hub "
                                  "gives it in 1h 0m and that ends well; sooner")  # fmt: skip
    assert "arc tasks move TASK --to loom" in proof(desk)

    desk.minutes_pass(61)
    assert proof(desk) == (
        "loom is on trial: it is given one task, and trusted again when one ends well")
    ends(desk, "loom", 6, well=True)
    assert proof(desk) == ""


def test_work_brought_by_hand_counts_before_the_trial(desk: Desk) -> None:
    """What is promised does happen: enough that ends well, and it is trusted again."""
    for number in range(1, 6):
        ends(desk, "loom", number, well=False)
    for number in range(6, 12):
        uid = desk.waits("iris", number)[0]
        moved = desk.arc("tasks", "move", uid, "--to", "loom")
        assert moved.code == 0, moved.err
        machine = desk.nodes.machines["loom"]
        got = machine.store.apply(c.Claim("loom"))
        assert isinstance(got, c.Claimed)
        machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
        machine.store.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
        desk.arc("sensors", "run", "fleet-health")
    assert proof(desk) == ""
