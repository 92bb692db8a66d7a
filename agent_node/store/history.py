"""Knows where attempts lie: the one that a task is at in its own row, the others in a table."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from ..attempts import list_attempts
from ..task import State
from .by_state import by_state
from .transaction import Transaction

# An attempt that is under way, or that completed its task, lies in the task's row, so that a claim
# and an end have one page to write instead of three. `life` says that it does, and which node, on
# which machine and boot, it belongs to. Any other end files it, and so does a quarantine.
_COLUMNS = (
    "uid, n, node, incarnation, agent, token, machine, boot_id, pid, start_ticks, claimed_at,"
    " started_at, claim_event, start_event"
)
_OWN = (
    "t.uid, t.attempt, l.node, l.incarnation, t.agent, t.token, l.machine, l.boot_id, t.pid,"
    " t.start_ticks, t.claimed_at, t.begun_at, t.claim_event, t.start_event"
)
_END = (
    "ended_at, outcome, counted, error_kind, message, exit_code, duration_s, cost_usd, tokens,"
    " end_event, blamed"
)
_OWN_END = """
  CASE t.state WHEN 'COMPLETED' THEN t.completed_at END,
  CASE t.state WHEN 'COMPLETED' THEN 'completed' END, 0, NULL, NULL, t.exit_code, t.duration_s,
  CASE t.state WHEN 'COMPLETED' THEN t.cost_usd END,
  CASE t.state WHEN 'COMPLETED' THEN t.tokens END, t.end_event, 1"""
# Every attempt of the task `:uid`, as a table to select from.
ATTEMPTS = f"""(
SELECT {_COLUMNS}, {_END} FROM attempt WHERE uid = :uid
UNION ALL
SELECT {_OWN}, {_OWN_END} FROM task t JOIN life l ON l.id = t.life WHERE t.uid = :uid)"""
# The attempt that ended last: of those on file, and of those in their tasks' rows a later one. What
# moved in brings the attempts of other nodes along; of very many of them nobody looks behind.
LAST_FILED = """
SELECT uid, n, agent, outcome, ended_at, duration_s
  FROM (SELECT * FROM attempt WHERE ended_at IS NOT NULL ORDER BY rowid DESC LIMIT 100)
 WHERE node = (SELECT name FROM node) LIMIT 1
"""
LAST_COMPLETED = """
SELECT t.uid, t.attempt AS n, t.agent, 'completed' AS outcome, t.completed_at AS ended_at,
       t.duration_s
  FROM event e CROSS JOIN task t ON t.uid = e.uid AND t.end_event = e.seq
 WHERE e.seq > ? AND e.state = 'COMPLETED' AND t.state = 'COMPLETED' AND t.life IS NOT NULL
 ORDER BY e.seq DESC LIMIT 1
"""
# Of tasks that are PARKED, the attempt that was not proven dead.
UNPROVED = f"""
SELECT a.uid, a.n, a.agent, a.token, t.state, a.pid, a.start_ticks, a.boot_id, NULL, 0, NULL
  FROM task t JOIN attempt a ON a.uid = t.uid AND a.n = t.attempt
 WHERE {by_state(State.PARKED, of='t')} AND a.outcome = 'unproved'
   AND (a.node, a.machine) = (SELECT name, machine FROM node) AND a.token IS NOT NULL
"""
_FILE = f"""
INSERT INTO attempt ({_COLUMNS}) SELECT {_OWN} FROM task t JOIN life l ON l.id = t.life
 WHERE t.uid = ?
"""
_CLEAR = """
UPDATE task SET life = NULL, token = NULL, pid = NULL, start_ticks = NULL, begun_at = NULL,
       claim_event = NULL, start_event = NULL
 WHERE uid = ? AND life IS NOT NULL
"""
_LIFE = """
SELECT l.id FROM node h CROSS JOIN life l
 WHERE l.node = h.name AND l.incarnation = h.incarnation AND l.machine = h.machine
   AND l.boot_id = ?
"""
_BEGIN_LIFE = """
INSERT INTO life (node, incarnation, machine, boot_id)
SELECT name, incarnation, machine, ? FROM node RETURNING id
"""


def file_attempt(tx: Transaction, uid: str) -> None:
    """Move the attempt that the task's row holds to the table, where another may follow it."""
    if tx.db.execute(_FILE, (uid,)).rowcount:
        tx.db.execute(_CLEAR, (uid,))


def this_life(tx: Transaction, boot: str) -> int:
    """The life of this moment: another boot, machine or incarnation is another one. The first claim
    of a new one writes it down.
    """
    if tx.life is None or tx.life[0] != boot:
        row = tx.db.execute(_LIFE, (boot,)).fetchone()
        if row is None:
            row = tx.db.execute(_BEGIN_LIFE, (boot,)).fetchone()
            tx.changed = True  # so that nobody goes by a number that was rolled back
        tx.life = boot, row[0]
    return tx.life[1]


def unknown_attempts(db: sqlite3.Connection, tasks: Path) -> list[str]:
    """Attempts that lie on the disk and that the database never heard of: it is an older copy."""
    if not tasks.is_dir():
        return []
    on_disk = list(list_attempts(str(tasks)))
    known: set[tuple[str, int]] = set()
    for start in range(0, len(on_disk), 1000):
        uids = json.dumps(sorted({uid for uid, _ in on_disk[start : start + 1000]}))
        known.update(db.execute(_KNOWN_ATTEMPTS, {"uids": uids}).fetchall())
    return [f"{uid}/{n}" for uid, n in on_disk if (uid, n) not in known]


_KNOWN_ATTEMPTS = """
SELECT a.uid, a.n FROM json_each(:uids) w JOIN attempt a ON a.uid = w.value
UNION ALL
SELECT t.uid, t.attempt FROM json_each(:uids) w JOIN task t ON t.uid = w.value
 WHERE t.life IS NOT NULL
"""
