"""Notes how tasks ended that live elsewhere, and knows of which nothing has been heard yet."""

from __future__ import annotations

import json

from ..commands import Because
from ..graph_words import Awaits, EndTold, Noted, NoteEnds, TakeBack
from ..output_hash import canonical, digest, is_as_told
from ..readiness import came_of, is_unheard
from ..task import ENDED, State
from .artifact_inputs import missing_count
from .ends import spread
from .reserving import reserve_again
from .reviving import alive_again
from .senders import check_not_quarantined, check_sender
from .spending import settle_elsewhere
from .transaction import Transaction

COUNTED_MAX = 1000
# Whoever still waits: a task that has not ended by an open edge or for an input, or a graph.
_WANTED = """
(EXISTS (SELECT 1 FROM edge e JOIN task t ON t.uid = e.uid
          WHERE e.needs = w.uid AND e.came IS NULL AND t.completed_at IS NULL)
 OR EXISTS (SELECT 1 FROM member m WHERE m.uid = w.uid AND m.ended IS NULL)
 OR EXISTS (SELECT 1 FROM input i JOIN task t ON t.uid = i.uid
             WHERE i.source = w.uid AND i.here = 0 AND t.completed_at IS NULL)
 OR EXISTS (SELECT 1 FROM reservation r WHERE r.uid = w.uid AND r.away IS NOT NULL)
 OR EXISTS (SELECT 1 FROM told_cost r WHERE r.uid = w.uid))
"""
_AWAITED = f"""
SELECT w.uid FROM awaited w
 WHERE w.uid > ? AND NOT EXISTS (SELECT 1 FROM task t WHERE t.uid = w.uid AND t.state <> 'HELD')
   AND {_WANTED} ORDER BY w.uid LIMIT ?
"""


def awaits(tx: Transaction, query: Awaits) -> tuple[str, ...]:
    """One page of them, in order."""
    if not (tx.live.graphs or tx.live.budgeted):
        return ()
    rows = tx.db.execute(_AWAITED, (query.after, query.limit))
    return tuple(uid for (uid,) in rows)


def awaiting_count(tx: Transaction) -> int:
    """How many that are, and files with them, counted no further than anybody needs to know."""
    count = len(awaits(tx, Awaits(limit=COUNTED_MAX)))
    return count if count == COUNTED_MAX else min(count + missing_count(tx), COUNTED_MAX)


def note_ends(tx: Transaction, command: NoteEnds) -> tuple[Noted, ...]:
    """Each is noted once; what waits for it goes on in this transaction."""
    sender = command.sender
    check_sender(tx, incarnation=sender.incarnation, term=sender.term)
    check_not_quarantined(tx)
    return tuple(_note_one(tx, end) for end in command.ends)


_WANTED_ONE = f"SELECT 1 FROM (SELECT ? AS uid) w WHERE {_WANTED}"


def _note_one(tx: Transaction, end: EndTold) -> Noted:
    row = tx.db.execute("SELECT state FROM task WHERE uid = ?", (end.uid,)).fetchone()
    if row is not None and row[0] != State.HELD:
        return _lives_here(end, row[0])
    before = tx.db.execute(
        "SELECT state, because, output IS NULL, artifacts IS NULL FROM told WHERE uid = ?",
        (end.uid,),
    ).fetchone()
    if before is None:
        if not tx.db.execute(_WANTED_ONE, (end.uid,)).fetchone():
            return Noted(end.uid, "unawaited")
    elif not _says_more(end, *before):
        return Noted(end.uid, "known")
    if end.output is not None and not is_as_told(end.output, end.sha256):
        text = f"the output that was told of {end.uid} has another hash than came with it"
        return Noted(end.uid, "refused", Because("hash_mismatch", text))
    came = came_of(end.state, end.because)
    assert came is not None, f"{end.state} is no end"
    if before is not None and came_of(*before[:2]) != came:
        alive_again(tx, end.uid)
    _write(tx, end)
    settle_elsewhere(tx, end.uid, end.cost_usd)
    tx.event("task_ended_elsewhere", end.uid, state=end.state, by=end.node,
             because=end.because or f"it ended so on {end.node}")  # fmt: skip
    spread(tx, {end.uid: came})
    return Noted(end.uid, "noted")


def _lives_here(end: EndTold, state: str) -> Noted:
    if state == end.state:
        return Noted(end.uid, "known")
    because = Because("lives_here", f"{end.uid} is {state} here, and nobody else knows better")
    return Noted(end.uid, "refused", because)


def _says_more(
    end: EndTold, state: str, because: str | None, no_output: int, no_artifacts: int
) -> bool:
    """Done is done. A bad end may have been taken back since; what it left may come later, or be
    no more to come, for its node let go of it, or has left the fleet.
    """
    more = (bool(no_output) and end.output is not None) or (
        bool(no_artifacts) and end.artifacts is not None
    ) or (is_unheard(because) and not is_unheard(end.because))  # fmt: skip
    if state == State.COMPLETED:
        return end.state == State.COMPLETED and more
    came = came_of(end.state, end.because)
    return came != came_of(state, because) or (bool(no_artifacts) and end.artifacts is not None)


def _write(tx: Transaction, end: EndTold) -> None:
    output = None if end.output is None else canonical(end.output)
    tx.db.execute(
        "INSERT OR REPLACE INTO told (uid, state, node, at, output, sha256, artifacts, cost_usd,"
        " because, noted_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (end.uid, end.state, end.node, end.at, output,
         end.sha256 if output is None else digest(output),
         None if end.artifacts is None else json.dumps(end.artifacts), end.cost_usd, end.because,
         tx.stamp),
    )  # fmt: skip
    lacks = ["artifact"] if end.artifacts is None else []
    lacks += ["output"] if is_unheard(end.because) else []
    if not lacks or not tx.db.execute(_LACKING, (end.uid, json.dumps(lacks))).fetchone():
        tx.db.execute("DELETE FROM awaited WHERE uid = ?", (end.uid,))


# Somebody wants it: while nobody knows what the task left, its end is asked for again.
_LACKING = """
SELECT 1 FROM input WHERE source = ? AND here = 0 AND kind IN (SELECT value FROM json_each(?))
"""


def take_back(tx: Transaction, command: TakeBack) -> tuple[Noted, ...]:
    """A bad end that was told is none any more; what it had ended waits again."""
    sender = command.sender
    check_sender(tx, incarnation=sender.incarnation, term=sender.term)
    check_not_quarantined(tx)
    return tuple(_take_back_one(tx, uid) for uid in command.uids)


def _take_back_one(tx: Transaction, uid: str) -> Noted:
    row = tx.db.execute("SELECT state, cost_usd FROM told WHERE uid = ?", (uid,)).fetchone()
    if row is None:
        wanted = tx.db.execute(_WANTED_ONE, (uid,)).fetchone()
        return Noted(uid, "known" if wanted else "unawaited")
    if row[0] == State.COMPLETED:
        return Noted(uid, "known")
    assert row[0] in ENDED, row[0]
    tx.db.execute("DELETE FROM told WHERE uid = ?", (uid,))
    tx.db.execute("INSERT OR IGNORE INTO awaited (uid) VALUES (?)", (uid,))
    reserve_again(tx, uid, row[1])
    alive_again(tx, uid)
    tx.changed = True
    return Noted(uid, "taken_back")
