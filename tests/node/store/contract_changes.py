"""What a store promises about states: each command at each state keeps to the table in task.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node.errors import BadInput, BrokenRule, Refused
from agent_node.spec import hash_of, spec_of
from agent_node.task import CHANGES, State
from tests.builders import NodeAtHand, a_task, uid, xfer
from tests.node.store.contract import Contract

Reach = Callable[[NodeAtHand], object]


def parked(node: NodeAtHand) -> None:
    node.finish(node.running(a_task()), "unproved")


def dead(node: NodeAtHand) -> None:
    node.finish(node.running(a_task(max_attempts=1)), "failed", error_kind="crash")


def forced(state: State) -> Reach:
    """A state that no command of today leads to and stops at: written past all rules."""

    def reach(node: NodeAtHand) -> None:
        node.running(a_task())
        node.close()
        node.backend.force_state(node.place, uid(), state)
        node.open()

    return reach


REACH: dict[State, Reach] = {
    State.CREATED: forced(State.CREATED),
    State.PENDING: lambda node: node.has(a_task(not_before="2026-03-11T00:00:00.000Z")),
    State.READY: lambda node: node.has(a_task()),
    State.CLAIMED: lambda node: (node.has(a_task()), node.claimed()),
    State.RUNNING: lambda node: node.running(a_task()),
    State.VALIDATING: forced(State.VALIDATING),
    State.COMPLETED: lambda node: node.finish(node.running(a_task())),
    State.FAILED: forced(State.FAILED),
    State.RETRYING: lambda node: node.finish(node.running(a_task()), "failed", error_kind="crash"),
    State.DEAD_LETTERED: dead,
    State.CANCELLED: lambda node: (node.has(a_task()), node.say(c.Cancel(uid()))),
    State.ESCROW: lambda node: node.escrow(xfer(), node.has(a_task())),
    State.HELD: lambda node: node.hold(xfer(), a_task()),
    State.MOVED: lambda node: node.gives_away(xfer(), node.has(a_task())),
    State.PARKED: parked,
}


def settle(kind: type, number: int, peer: str) -> Reach:
    return lambda node: node.say(kind((m.Settle(xfer(number), uid(), peer),)))


def hold_newer(node: NodeAtHand) -> object:
    task = a_task(epoch=50)
    offer = m.Offer(xfer(9), task, hash_of(spec_of(task)))
    return node.say(m.Hold("forge", "stolen", (offer,)))


def finish(kind: str) -> Reach:
    return lambda node: node.say(
        c.Finish(uid(), 1, c.Result(kind, error_kind="crash"))  # type: ignore[arg-type]
    )


def escrow(node: NodeAtHand) -> object:
    epoch = node.task(uid()).epoch
    return node.say(m.Escrow("forge", "stolen", 60, (m.Move(xfer(8), uid(), epoch),)))


def wake_late(node: NodeAtHand) -> object:
    return node.wake(after=3 * 86_400)


COMMANDS: dict[str, Reach] = {
    "claim": lambda node: node.claim(),
    "started": lambda node: node.say(c.Started(uid(), 1, 9, 9, node.clock.boot_id())),
    **{f"finish {kind}": finish(kind)
       for kind in ("completed", "failed", "interrupted", "unproved", "cancelled")},
    "beat": lambda node: node.say(c.Beat(uid(), 1, "on it")),
    "wake": wake_late,
    "escrow": escrow,
    "hold of a newer copy": hold_newer,
    **{f"{kind.__name__.lower()} x{number}": settle(kind, number, peer)
       for kind, peer in ((m.Commit, "loom"), (m.Abort, "loom"), (m.Settled, "loom"),
                          (m.Activate, "forge"), (m.Drop, "forge"))
       for number in (1, 7)},
    "bar": lambda node: node.say(m.Bar((m.Target(uid(), 2**30),))),
    "reown": lambda node: node.say(m.Reown((m.Target(uid(), 2**30),))),
    "set": lambda node: node.say(c.SetFields(uid(), {"priority": 1})),
    "cancel": lambda node: node.say(c.Cancel(uid())),
    "retry": lambda node: node.say(c.RetryNow(uid())),
    "resolve done": lambda node: node.say(c.Resolve(uid(), "done")),
    "resolve failed": lambda node: node.say(c.Resolve(uid(), "failed")),
    "resolve cancelled": lambda node: node.say(c.Resolve(uid(), "cancelled")),
    "drain": lambda node: node.say(c.SetNode("draining", "home", then="requeue", deadline_s=0)),
    "quarantine": lambda node: node.say(m.Quarantine("a person said so")),
    "forget": lambda node: node.say(c.Forget()),
}  # fmt: skip
# Changes of a row that comes or goes; the table speaks of rows that stay.
COMES_OR_GOES = {
    (State.MOVED, "HELD"),  # the task comes back: a copy beside the tombstone
    (State.HELD, "HELD"),  # an older copy gives way to a newer one
    (State.HELD, None),  # dropped
    (State.MOVED, "READY"),  # re-owned from the copy that was kept
}


def follows(old: State, new: str | None, steps: list[tuple[str, str]]) -> bool:
    """Whether the new state follows from the old by the recorded steps, each in the table."""
    if new == old or (old, new) in COMES_OR_GOES:
        return True
    at: str = old
    for was, state in steps:
        if was != at or State(state) not in CHANGES[State(was)]:
            return False
        at = state
    return at == new


def counts(node: NodeAtHand) -> dict[str, int]:
    return {state: number for state, number in node.facts().counts.items() if number}


def recounted(node: NodeAtHand) -> dict[str, int]:
    """What a store that starts now counts; the events that were read so far stay readable."""
    node.reopen()
    return counts(node)


class KeepsToTheTable(Contract):
    @pytest.mark.parametrize("command", COMMANDS)
    @pytest.mark.parametrize("state", State)
    def test_no_command_makes_a_change_that_the_table_does_not_know(
        self, node: NodeAtHand, state: State, command: str
    ) -> None:
        """Fails when a statement that changes a state drops its `state IN (…)`."""
        REACH[state](node)
        assert node.state(uid()) == state
        known = len(node.events(uid()))
        refused = False
        try:
            COMMANDS[command](node)
        except (Refused, BadInput, BrokenRule):
            refused = True
        new = node.state(uid())
        assert new == state or not refused
        assert counts(node) == recounted(node), "the counts kept in memory drifted"
        steps = [
            (event["was"], event["state"])
            for event in node.events(uid())[known:]
            if event.get("was") and event.get("state") and event["was"] != event["state"]
        ]
        assert follows(state, new, steps), f"{state} became {new} by {command}: {steps}"
