"""States re-owning: how a task gets a new owner when a node is off, or came back as a copy.

Every other node first records a bar, a tombstone far above every epoch; then exactly one node
may win. Asking without recording is not enough, as the mutant `bar_recorded` shows.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.model.protocol import (
    ESCROW,
    HELD,
    PARKED,
    READY,
    STARTED,
    Moves,
    Node,
    Row,
    highest_epoch,
    note,
)

EPOCH_STEP = 8  # stands for 2^20: no chain of moves within a scope gets that far


class Reown(NamedTuple):
    """One re-own: its epoch, the incarnations its hub saw when naming it, and who is barred."""

    epoch: int
    view: tuple[int, ...]
    excluded: frozenset[int]              # nodes whose viewed incarnation was fenced
    barred: frozenset[int] = frozenset()


Fenced = frozenset[tuple[int, tuple[int, int]]]  # which nodes were off: incarnation and boot


def bar(node: Node, n: int, plan: Reown, moves: Moves, *, fenced: Fenced, off: str
        ) -> tuple[Node, str]:
    """At every other node: nothing older than the plan's epoch may live here any more."""
    if node.bar == plan.epoch:
        return node, "barred"
    if objects(node, n, plan, moves, fenced=fenced, off=off):
        return node, "refused"
    if node.row is None:
        gone = node
    elif may_give_way(node, plan, moves):
        gone = give_way(node, off)
    else:
        return node, "refused"
    if off == "bar_recorded":
        return node if gone.row is node.row else gone, "barred"
    return gone._replace(bar=plan.epoch, peers=plan.view), "barred"


def reown(node: Node, n: int, plan: Reown, moves: Moves, *, fenced: Fenced, off: str
          ) -> tuple[Node, str]:
    """At the winner, once all others are barred: the task is READY at the plan's epoch."""
    if objects(node, n, plan, moves, fenced=fenced, off=off):
        return node, "refused"
    if not may_give_way(node, plan, moves) and (node.row is not None or not node.kept):
        return node, "refused"
    won = 0 if off == "reown_recorded" else plan.epoch
    winner = give_way(node, off)._replace(kept=False, won=won, peers=plan.view)
    return winner._replace(row=Row(READY, plan.epoch, touched=True), mode=awake(node)), "reowned"


def objects(node: Node, n: int, plan: Reown, moves: Moves, *, fenced: Fenced, off: str) -> bool:
    """Whether this node knows something against the plan, be it as winner or as bystander."""
    late = any(known > seen for known, seen in zip(node.peers, plan.view, strict=True))
    return (highest_epoch(node, moves) >= plan.epoch
            or (late and off != "later_incarnation_refuses")
            or (may_be_alive(node, n, fenced, off) and off != "disk_evidence"))


def may_be_alive(node: Node, n: int, fenced: Fenced, off: str) -> bool:
    """Whether there is an attempt of it on this disk that no fence covers."""
    if node.attempt is None:
        return False
    until = max((boot for m, (_, boot) in fenced if m == n), default=-1)
    return until < 0 or (node.attempt > until and off != "fence_names_the_boot")


def may_give_way(node: Node, plan: Reown, moves: Moves) -> bool:
    """A quarantined READY or PARKED row, or a HELD whose giver is fenced or has a new name."""
    if node.row is None:
        return False
    if node.row.state == HELD:
        move = moves[node.row.xfer]
        now = plan.view[move.giver]
        return move.giver_incarnation < now or (
            move.giver in plan.excluded and move.giver_incarnation == now)
    return node.mode == "quarantined" and node.row.state in (READY, PARKED)


def give_way(node: Node, off: str) -> Node:
    """The row goes; its transfer, if it was held, is recorded as dropped; the copy is kept."""
    if node.row is None:
        return node
    if node.row.state == HELD:
        node = note(node, node.row.xfer, "dropped")
    return node._replace(row=None, kept=node.kept or off != "bar_keeps_the_copy")


def awake(node: Node) -> str:
    """A re-owned row was the last thing that kept a quarantined node waiting."""
    return "active" if node.mode == "quarantined" else node.mode


def boot(node: Node, *, interrupted: bool) -> Node:
    """Power is back. An attempt that was running is proven dead; a finished one stays finished."""
    node = node._replace(mode="waiting", boot=node.boot + 1)
    if interrupted and node.row is not None:
        return node._replace(row=node.row._replace(state=READY), attempt=None)
    return node


def quarantine(node: Node, *, new_name: bool) -> Node:
    """Nothing runs here, and what was under way is a person's or a re-own's to decide."""
    row = node.row
    if row is not None and row.state in (ESCROW, HELD, STARTED):
        row = Row(PARKED, row.epoch, touched=row.touched)
    return node._replace(row=row, mode="quarantined", incarnation=node.incarnation + new_name)


def back_up(node: Node) -> Node:
    """Someone copies the database, and nothing else of the node."""
    return node._replace(backup=node._replace(incarnation=0, mode="", boot=0, attempt=None))


def restore(node: Node, off: str) -> Node:
    """The database is the earlier one; what lies beside it (attempt folders) is not."""
    if node.backup is None:
        return node
    older = node.backup._replace(
        incarnation=node.incarnation, mode="active", boot=node.boot, attempt=node.attempt)
    if off != "hearsay_outlives_restore":
        older = older._replace(peers=node.peers)
    if off == "quarantine_on_restore":
        return older._replace(incarnation=node.incarnation + 1)
    return quarantine(older, new_name=off != "new_incarnation_on_restore")
