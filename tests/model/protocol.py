"""States the protocol that moves one task between nodes: what a node keeps, and each command.

A command is one durable step of one node: a pure function from the node and a move to the node
afterwards and its answer. Whatever was recorded is answered before anything is refused. `off`
names the one guard that is taken away; the suite shows which of them the promise needs.

Who may send a command, and when, is in `senders.py`; re-owning is in `reown.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

READY, ESCROW, HELD, PARKED, STARTED = "READY", "ESCROW", "HELD", "PARKED", "STARTED"
NO_XFER = -1


class Row(NamedTuple):
    """The task as one node's queue has it."""

    state: str
    epoch: int
    xfer: int = NO_XFER      # the transfer of an ESCROW or a HELD
    touched: bool = False    # it was offered, or arrived by a transfer: others may know of it


class Node(NamedTuple):
    """One node: its database (the fields that a backup contains), then what lies beside it."""

    row: Row | None
    records: tuple[str, ...]              # by transfer: its outcome here, "" for unseen
    settled: frozenset[int] = frozenset()
    kept: bool = False                    # the whole task of a MOVED, or of a row that gave way
    floor: int = NO_XFER
    bar: int = 0                          # the epoch of a re-own that barred this node
    won: int = 0                          # the epoch of a re-own that chose this node
    peers: tuple[int, ...] = ()           # the latest incarnation heard of, by node
    incarnation: int = 1
    mode: str = "active"                  # or off, waiting (booted, no hello yet), quarantined
    boot: int = 0
    attempt: int | None = None            # the boot of an attempt, on disk, not known to be over
    backup: Node | None = None            # its database as it once was


class Move(NamedTuple):
    """A transfer as its sender planned it, and the answers that some hub has seen."""

    giver: int
    taker: int
    epoch: int
    giver_incarnation: int
    taker_incarnation: int
    answers: frozenset[str] = frozenset()


Moves = tuple[Move, ...]
Command = Callable[[Node, int, Moves, str], tuple[Node, str]]


def escrow(node: Node, x: int, moves: Moves, off: str) -> tuple[Node, str]:
    """At the giver: the task stops being runnable and is offered, under a lease."""
    if seen(node, x, off):
        return node, recorded(node, x)
    row = node.row
    if row is None or row.state != READY:
        return node, "refused"
    if row.epoch != moves[x].epoch and off != "escrow_names_its_epoch":
        return node, "refused"
    touched = row.touched or off != "wait_covers_the_offered"
    offered = Row(ESCROW, row.epoch, x, touched=touched)
    return note(node, x, "escrowed")._replace(row=offered), "escrowed"


def hold(node: Node, x: int, moves: Moves, off: str) -> tuple[Node, str]:
    """At the taker: a copy that does not run, or a refusal that stays one."""
    if seen(node, x, off):
        return node, recorded(node, x)
    row, epoch = node.row, moves[x].epoch + 1
    if row is not None and row.state != HELD:
        return refuse(node, x, moves, off)
    if row is not None and row.epoch >= epoch and off != "held_gives_way_to_newer":
        return refuse(node, x, moves, off)
    if tombstone(node, moves) >= epoch and off != "hold_checks_tombstones":
        return refuse(node, x, moves, off)
    if row is not None:
        node = note(node, row.xfer, "dropped")
    return note(node, x, "held")._replace(row=Row(HELD, epoch, x)), "held"


def refuse(node: Node, x: int, moves: Moves, off: str) -> tuple[Node, str]:
    """At the taker: no room, paused, busy with another copy; recorded, so it cannot turn."""
    if seen(node, x, off):
        return node, recorded(node, x)
    if off == "refusals_recorded":
        return node, "refused"
    return note(node, x, "refused"), "refused"


def commit(node: Node, x: int, moves: Moves, off: str) -> tuple[Node, str]:
    """At the giver: the commit point. From here on the task belongs to the taker."""
    if is_row(node, ESCROW, x) or (off == "commit_only_on_escrow" and node.row is not None):
        return note(node, x, "committed")._replace(row=None, kept=True), "committed"
    return node, recorded(node, x)


def activate(node: Node, x: int, moves: Moves, off: str) -> tuple[Node, str]:
    """At the taker, after the commit: the copy is the task now. Never refused."""
    row = node.row
    if row is not None and (is_row(node, HELD, x) or off == "activate_only_on_held"):
        awake = Row(READY, row.epoch, touched=True)
        return note(node, x, "activated")._replace(row=awake), "activated"
    return node, recorded(node, x)


def abort(node: Node, x: int, moves: Moves, off: str) -> tuple[Node, str]:
    """At the giver: the task is runnable here again. The row is looked at before the records."""
    row = node.row
    if row is not None and is_row(node, ESCROW, x):
        epoch = row.epoch if off == "abort_raises_epoch" else row.epoch + 1
        back = Row(READY, epoch, touched=row.touched)
        return note(node, x, "aborted")._replace(row=back), "aborted"
    if seen(node, x, off):
        return node, recorded(node, x)
    if off == "unseen_abort_recorded":
        return node, "aborted"
    return note(node, x, "aborted"), "aborted"


def drop(node: Node, x: int, moves: Moves, off: str) -> tuple[Node, str]:
    """At the taker, on proof of the abort: the copy goes, what was known before stays known."""
    if is_row(node, HELD, x):
        return note(node, x, "dropped")._replace(row=None), "dropped"
    if seen(node, x, off):
        return node, recorded(node, x)
    if off == "unseen_drop_recorded":
        return node, "dropped"
    return note(node, x, "dropped"), "dropped"


def settle(node: Node, x: int, moves: Moves, off: str) -> tuple[Node, str]:
    """At the giver: both ends are known, so this record may age out."""
    if node.records[x] in ("committed", "aborted"):
        return node._replace(settled=node.settled | {x}), "settled"
    return node, recorded(node, x)


def may_forget(node: Node, x: int, *, ended: bool) -> bool:
    """Whether a record is old news: at the giver settled (and the task's end told), else ended."""
    if node.records[x] in ("activated", "dropped", "refused"):
        return True
    return x in node.settled and (node.records[x] == "aborted" or ended)


def forget(node: Node, x: int, off: str) -> Node:
    """The record, its tombstone and the kept copy go, and the floor rises in the same step."""
    gone = note(node, x, "")._replace(settled=node.settled - {x})
    if node.records[x] == "committed" and "committed" not in gone.records and not node.bar:
        gone = gone._replace(kept=False)
    return raise_floor(gone, x, off)


def raise_floor(node: Node, x: int, off: str) -> Node:
    """Whatever is not remembered up to `x` is too old from now on."""
    return node if off == "xfer_floor" else node._replace(floor=max(node.floor, x))


def seen(node: Node, x: int, off: str) -> bool:
    """Whether this node may not treat `x` as new: it has a record of it, or forgot it perhaps."""
    return bool(node.records[x]) or (x <= node.floor and off != "xfer_floor")


def recorded(node: Node, x: int) -> str:
    """The current recorded outcome; `too_old` where it may have been forgotten."""
    if node.records[x]:
        return node.records[x]
    return "too_old" if x <= node.floor else "unknown"


def note(node: Node, x: int, outcome: str) -> Node:
    """The same node with this outcome recorded."""
    records = node.records
    return node._replace(records=(*records[:x], outcome, *records[x + 1:]))


def is_row(node: Node, state: str, x: int) -> bool:
    """Whether the task is here in that state because of that very transfer."""
    return node.row is not None and node.row.state == state and node.row.xfer == x


def tombstone(node: Node, moves: Moves) -> int:
    """The newest epoch at which the task is known to have left, or a re-own was recorded."""
    gone = (moves[x].epoch + 1 for x, was in enumerate(node.records) if was == "committed")
    return max((node.bar, *gone))


def highest_epoch(node: Node, moves: Moves) -> int:
    """The newest epoch this node has seen of the task, in whatever way."""
    return max(tombstone(node, moves), node.won, 0 if node.row is None else node.row.epoch)
