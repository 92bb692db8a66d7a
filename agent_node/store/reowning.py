"""Takes ownership back: every other node is barred, then exactly one makes the task READY."""

from __future__ import annotations

from typing import Literal

from ..commands import Because
from ..errors import BrokenRule, Refused
from ..moves import REOWN_STEP, Bar, Fenced, Reown, Reowned, Target
from ..spec import spec_of
from ..task import ENDED, State
from .comings import arrived, left
from .edges import tie_inputs
from .hearsay import hear_of, known_incarnation
from .history import ATTEMPTS
from .keeping import keep_copy, kept_task
from .past_attempts import keep_attempts, never_live
from .reviving import insist
from .rows import INSERT_TRAVELLED, travelled_row
from .senders import check_sender
from .spending import settle, settle_at_home
from .taking import let_go
from .transaction import Transaction, may_change
from .transfers import find_record
from .weights import weight_of

_FLAGGED = "quarantined = 1 AND state IN ('READY', 'PARKED')"
OLD_COPY = 2  # in `quarantined`: it had ended before the database was put back


def bar(tx: Transaction, command: Bar) -> tuple[Reowned, ...]:
    """Record that each uid lives elsewhere from S on; refuse where it may live, or run, here."""
    _check(tx, command)
    return tuple(_bar_one(tx, command, target) for target in command.targets)


def _check(tx: Transaction, command: Bar | Reown) -> None:
    sender = command.sender
    check_sender(tx, incarnation=sender.incarnation, term=sender.term)
    for named in (*command.fenced, *command.nodes):
        _check_not_later(tx, named)
    hear_of(tx, command.nodes)
    tx.generation_due = True


def _check_not_later(tx: Transaction, named: Fenced) -> None:
    """A decision that was made before a node came back as another one is too old to carry out."""
    latest = known_incarnation(tx, named.node)
    if latest is not None and latest > named.incarnation:
        text = f"{named.node} was seen here as {latest}, later than {named.incarnation}"
        raise Refused("later_incarnation", text, "later_incarnation")


def _bar_one(tx: Transaction, command: Bar, target: Target) -> Reowned:
    won, barred = _decided(tx, target.uid)
    if barred == target.epoch:
        return Reowned(target.uid, "barred")
    row = _row(tx, target.uid)
    because = (
        _epoch_known(target, max(won, barred, _known_epoch(tx, target.uid)))
        or _row_stands(tx, command.fenced, row, target)
        or _attempts_stand(tx, target.uid, command.evidence.get(target.uid, ()))
    )
    if because is not None:
        return Reowned(target.uid, "refused", because)
    if row is not None:
        _give_way(tx, row, target, by=command.sender.by)
    tx.db.execute(
        "INSERT INTO tombstone (uid, epoch, at) VALUES (?, ?, ?)"
        " ON CONFLICT (uid) DO UPDATE SET epoch = excluded.epoch",
        (target.uid, target.epoch, tx.stamp),
    )
    _decide(tx, target, "barred")
    tx.event("task_barred", target.uid, by=command.sender.by, because=f"epoch {target.epoch}")
    return Reowned(target.uid, "barred")


def _decided(tx: Transaction, uid: str) -> tuple[int, int]:
    """The epochs at which this node won the task, and was barred from it. Kept for ever, and
    apart: a late word at an old epoch must find its own outcome, never the other's.
    """
    row = tx.db.execute("SELECT won, barred FROM ownership WHERE uid = ?", (uid,)).fetchone()
    return row or (0, 0)


def _decide(tx: Transaction, target: Target, column: Literal["won", "barred"]) -> None:
    tx.db.execute(
        f"INSERT INTO ownership (uid, {column}) VALUES (?, ?)"
        f" ON CONFLICT (uid) DO UPDATE SET {column} = excluded.{column}",
        (target.uid, target.epoch),
    )


_Row = tuple[str, int, int, str | None]


def _row(tx: Transaction, uid: str) -> _Row | None:
    row: _Row | None = tx.db.execute(
        "SELECT state, epoch, quarantined, xfer FROM task WHERE uid = ?", (uid,)
    ).fetchone()
    return row


def _known_epoch(tx: Transaction, uid: str) -> int:
    (epoch,) = tx.db.execute(
        "SELECT max(epoch) FROM (SELECT epoch FROM task WHERE uid = :uid UNION ALL"
        " SELECT epoch FROM tombstone WHERE uid = :uid)",
        {"uid": uid},
    ).fetchone()
    return int(epoch or 0)


def _epoch_known(target: Target, known: int) -> Because | None:
    if known < target.epoch:
        return None
    return Because("newer_known", f"{target.uid} is known here at epoch {known}")


def _row_stands(
    tx: Transaction, fenced: tuple[Fenced, ...], row: _Row | None, target: Target
) -> Because | None:
    if row is None or _is_quarantined(row) or _giver_is_gone(tx, row, fenced):
        return None
    return Because("has_row", f"{target.uid} is {row[0]} here at epoch {row[1]}")


def _is_quarantined(row: _Row) -> bool:
    return row[2] == 1 and row[0] in (State.READY, State.PARKED)


def _brought(tx: Transaction, row: _Row) -> int | None:
    """The epoch of a copy that a transfer brought and that never lived here: it is held, or was
    when a quarantine parked it. None: it lived here.
    """
    if row[0] == State.HELD:
        return row[1]
    record = find_record(tx, row[3]) if _is_quarantined(row) and row[3] else None
    return row[1] if record is not None and record.side == "taker" else None


def _giver_is_gone(tx: Transaction, row: _Row, fenced: tuple[Fenced, ...]) -> bool:
    record = find_record(tx, row[3]) if row[0] == State.HELD and row[3] else None
    return record is not None and _is_gone(tx, record.peer, record.peer_incarnation, fenced)


def _is_gone(
    tx: Transaction, peer: str, incarnation: str | None, fenced: tuple[Fenced, ...]
) -> bool:
    """Fenced by a person, or come back as another one, which is barred in its own name."""
    if incarnation is None:
        return False
    latest = known_incarnation(tx, peer)
    return Fenced(peer, incarnation) in fenced or (latest is not None and latest > incarnation)


def _attempts_stand(tx: Transaction, uid: str, on_disk: tuple[int, ...]) -> Because | None:
    ended = {
        n
        for (n,) in tx.db.execute(
            f"SELECT n FROM {ATTEMPTS} WHERE ended_at IS NOT NULL", {"uid": uid}
        )
    }
    strangers = sorted(set(on_disk) - ended)
    if not strangers:
        return None
    text = f"attempt {strangers[0]} of {uid} lies on this disk, its end unknown"
    return Because("has_attempts", text)


def _give_way(tx: Transaction, row: _Row, target: Target, *, by: str) -> None:
    because = Because("barred", f"the task is owned elsewhere from epoch {target.epoch} on")
    brought = _brought(tx, row)
    if brought is not None:
        never_live(tx, target.uid, epoch=brought)
    keep_copy(tx, target.uid)  # it may be the last one: a later re-own can choose it
    record = find_record(tx, row[3]) if row[0] == State.HELD and row[3] else None
    if record is None or not let_go(tx, record, because, by=by):
        tx.db.execute(f"DELETE FROM task WHERE uid = ? AND {_FLAGGED}", (target.uid,))
        tx.moves(row[0], None)
    settle(tx, target.uid, None)
    left(tx, target.uid)


def reown(tx: Transaction, command: Reown) -> tuple[Reowned, ...]:
    """Make each task READY here at S, where this node is the one that may."""
    _check(tx, command)
    return tuple(_reown_one(tx, command, target) for target in command.targets)


def _reown_one(tx: Transaction, command: Reown, target: Target) -> Reowned:
    won, barred = _decided(tx, target.uid)
    if won == target.epoch:
        return Reowned(target.uid, "reowned")
    row = _row(tx, target.uid)
    known = max(won, barred, _known_epoch(tx, target.uid))
    because = _epoch_known(target, known) or _attempt_lives(tx, command, target)
    if because is None:
        because = (
            _kept_stands(tx, command, target)
            if row is None
            else _may_not_take(tx, command, row, target)
        )
    if because is not None:
        return Reowned(target.uid, "refused", because)
    _make_ready(tx, row, target, command.evidence.get(target.uid, ()))
    _decide(tx, target, "won")
    tx.event("task_reowned", target.uid, was=row[0] if row else "MOVED", state="READY",
             by=command.sender.by, because=f"epoch {target.epoch}")  # fmt: skip
    if row is not None and row[0] in ENDED:
        insist(tx, target.uid)
    arrived(tx, target.uid)
    return Reowned(target.uid, "reowned")


def _attempt_lives(tx: Transaction, command: Reown, target: Target) -> Because | None:
    """An attempt without a known end must be fenced off with its node, or proven dead here."""
    if target.uid in command.living:
        return Because("attempt_lives", f"an attempt of {target.uid} is not proven dead here")
    known: set[int] = set()
    rows = tx.db.execute(
        f"SELECT n, node, incarnation, machine, ended_at, outcome FROM {ATTEMPTS}",
        {"uid": target.uid},
    )
    for n, node, incarnation, machine, ended_at, outcome in rows:
        known.add(n)
        is_ours = node == tx.node.name and machine == tx.node.machine  # `living` judged it
        if is_ours or (ended_at is not None and outcome != "unproved"):
            continue
        if Fenced(node, incarnation) not in command.fenced and not command.alone:
            text = f"attempt {n} of {target.uid} ran on {node} and its end is not known"
            return Because("attempt_not_fenced", text)
    strangers = sorted(set(command.evidence.get(target.uid, ())) - known)
    if strangers and not command.alone:
        text = f"attempt {strangers[0]} of {target.uid} lies on this disk, unknown to the database"
        return Because("has_attempts", text)
    return None


def _may_not_take(tx: Transaction, command: Reown, row: _Row, target: Target) -> Because | None:
    parked_alone = command.alone and (row[0] in (State.PARKED, State.HELD) or row[2] == OLD_COPY)
    if _is_quarantined(row) or _giver_is_gone(tx, row, command.fenced) or parked_alone:
        return None
    return Because("has_row", f"{target.uid} is {row[0]} here at epoch {row[1]}")


def _kept_stands(tx: Transaction, command: Reown, target: Target) -> Because | None:
    found = tx.db.execute(
        "SELECT peer, peer_incarnation, life, xfer FROM tombstone WHERE uid = ?", (target.uid,)
    ).fetchone()
    if found is None or found[2] is None:
        return Because("unknown_task", f"{tx.node.name} has neither {target.uid} nor a copy of it")
    if command.alone or found[3] is None or _is_gone(tx, found[0], found[1], command.fenced):
        return None
    return Because("not_fenced", f"{target.uid} moved to {found[0]}, which is not fenced")


def _make_ready(
    tx: Transaction, row: _Row | None, target: Target, on_disk: tuple[int, ...]
) -> None:
    if row is None:
        task = kept_task(tx, target.uid)
        values = travelled_row(tx, task, spec_of(task), state=State.READY, xfer=None,
                               weight=weight_of(tx, target.uid))  # fmt: skip
        tx.db.execute(INSERT_TRAVELLED, values)
        keep_attempts(tx, task)
        tie_inputs(tx, task)
        _close_move(tx, target.uid)
    elif row[0] == State.HELD and row[3]:
        tx.db.execute("UPDATE transfer SET outcome = 'dropped' WHERE xfer = ?", (row[3],))
    brought = None if row is None else _brought(tx, row)
    # Attempts that were numbered elsewhere, or by a newer copy of this database, are unknown here:
    # every re-own begins a thousand of its own, so that no number is ever used twice in the fleet.
    begun = max(*on_disk, 0, min(target.epoch // REOWN_STEP, 900_000) * 1000)
    done = tx.db.execute(
        "UPDATE task SET state = 'READY', epoch = ?, quarantined = 0, xfer = NULL, agent = NULL,"
        " shared = 1, stopping = NULL, ready_at = ?, attempt = max(attempt, ?)"
        f" WHERE uid = ? AND (state = 'READY' OR {may_change(State.READY)})",
        (target.epoch, tx.stamp, begun, target.uid),
    )
    if done.rowcount != 1:
        raise BrokenRule(f"{target.uid} cannot become READY from {row[0] if row else 'MOVED'}")
    tx.moves(row[0] if row else None, State.READY)
    settle_at_home(tx, target.uid, epoch=brought)


def _close_move(tx: Transaction, uid: str) -> None:
    """What had been given away is back: nobody has to settle that move any more."""
    values = {"uid": uid, "now": tx.stamp}
    tx.db.execute(
        "UPDATE transfer SET settled_at = coalesce(settled_at, :now) WHERE xfer ="
        " (SELECT xfer FROM tombstone WHERE uid = :uid)",
        values,
    )
    tx.db.execute(
        "UPDATE tombstone SET ended = 'reowned', settled_at = coalesce(settled_at, :now)"
        " WHERE uid = :uid",
        values,
    )
