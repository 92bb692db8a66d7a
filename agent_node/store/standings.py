"""Answers what keeps the tasks of one page where they are, beyond what stands in themselves."""

from __future__ import annotations

import json

from ..standing import Standing, Standings
from ..task import State
from .transaction import Transaction

_PAGE = "json_each(?) j CROSS JOIN task t ON t.uid = j.value"
_HERE = f"""
SELECT t.uid, t.state, t.need_set, t.shared, t.stopping, c.until, x.peer,
       t.failure_reason IS NULL AND t.stopping IS NULL
  FROM {_PAGE} LEFT JOIN care c ON c.uid = t.uid LEFT JOIN transfer x ON x.xfer = t.xfer
"""
_ABLE = """
SELECT c.need_set, c.agent FROM json_each(?) j CROSS JOIN agent a
  CROSS JOIN agent_can c ON c.agent = a.name AND c.need_set = j.value
 ORDER BY c.agent
"""
_GONE = """
SELECT m.uid, m.peer FROM json_each(?) j CROSS JOIN tombstone m ON m.uid = j.value
 WHERE m.peer IS NOT NULL AND NOT EXISTS (SELECT 1 FROM task t WHERE t.uid = m.uid)
"""
# By the index of those events that are no attempt's; these three tell of one all the same.
_WORD = """
SELECT because FROM event WHERE uid = ? AND n IS NULL AND uid IS NOT NULL
   AND event NOT IN ('task_adopted', 'task_stalled', 'task_validating')
 ORDER BY seq DESC LIMIT 1
"""
_WORDLESS = (State.CANCELLED, State.FAILED, State.DEAD_LETTERED, State.PARKED)


def standings(tx: Transaction, query: Standings) -> dict[str, Standing]:
    """Every part is looked up by uid, so that a long queue costs no more than a short one."""
    page = json.dumps([*query.uids])
    rows = tx.db.execute(_HERE, (page,)).fetchall()
    able = _able(tx, {row[2] for row in rows if row[1] == State.READY})
    unheard = bool(tx.node.term) and tx.node.hello_boot != tx.clock.boot_id()
    found = {
        uid: Standing(
            agents=able.get(need_set, ()) if state == State.READY else (),
            kept_until=until, unheard=unheard and bool(shared), stopping=stopping, peer=peer,
            word=_word(tx, uid) if wordless and state in _WORDLESS else None,
        )
        for uid, state, need_set, shared, stopping, until, peer, wordless in rows
    }  # fmt: skip
    gone = tx.db.execute(_GONE, (page,)).fetchall() if len(found) < len(query.uids) else ()
    return found | {uid: Standing(peer=peer) for uid, peer in gone}


def _able(tx: Transaction, need_sets: set[int]) -> dict[int, tuple[str, ...]]:
    able: dict[int, tuple[str, ...]] = {}
    for need_set, agent in tx.db.execute(_ABLE, (json.dumps(sorted(need_sets)),)):
        able[need_set] = (*able.get(need_set, ()), agent)
    return able


def _word(tx: Transaction, uid: str) -> str | None:
    row = tx.db.execute(_WORD, (uid,)).fetchone()
    return None if row is None else row[0]
