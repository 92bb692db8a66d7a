"""Holds the numbered step that took a page each from ends and from moves."""

from __future__ import annotations

# An index that is appended to fills its last leaves up again every few rows, which a table is
# spared: half a page of each end. And nobody looks a completed task up by its state: how many there
# are is what the others leave, the last one and the old ones are told by their events. In the index
# stay only completed tasks whose attempt is on file: those that a person called done, and those
# whose event was no longer kept when this step was made.
#
# What became READY later than it came, without an attempt, a move or an hour of its own (a graph or
# a budget let it go), is `released`: it stands with all others that did in the index by time. Which
# of those that wait already were let go by a budget nothing tells: all of them are marked.
#
# Every event counts towards the generation, from `counted_event` on: a move would else write the
# row of the node four times for a number that says nothing new.
#
# The attempts that are filed here go before all others on file: the last one there ended last.
_WITHOUT_EVENT = """state = 'COMPLETED' AND life IS NOT NULL AND NOT EXISTS (
       SELECT 1 FROM event e
        WHERE e.seq = task.end_event AND e.uid = task.uid AND e.state = 'COMPLETED')"""

ENDS = f"""
INSERT OR IGNORE INTO attempt (rowid, uid, n, node, incarnation, agent, token, machine, boot_id,
  pid, start_ticks, claimed_at, started_at, claim_event, start_event, ended_at, outcome, exit_code,
  duration_s, cost_usd, tokens, end_event)
SELECT coalesce((SELECT min(rowid) FROM attempt), 1)
       - row_number() OVER (ORDER BY task.completed_at DESC),
       task.uid, task.attempt, l.node, l.incarnation, coalesce(task.agent, 'unknown'), task.token,
       l.machine, l.boot_id, task.pid, task.start_ticks,
       coalesce(task.claimed_at, task.completed_at), task.begun_at, task.claim_event,
       task.start_event, task.completed_at, 'completed', task.exit_code, task.duration_s,
       task.cost_usd, task.tokens, task.end_event
  FROM task JOIN life l ON l.id = task.life WHERE {_WITHOUT_EVENT};
UPDATE task SET life = NULL, token = NULL, pid = NULL, start_ticks = NULL, begun_at = NULL,
       claim_event = NULL, start_event = NULL WHERE {_WITHOUT_EVENT};
ALTER TABLE node ADD COLUMN counted_event INTEGER NOT NULL DEFAULT 0;
UPDATE node SET counted_event = (SELECT coalesce(max(seq), 0) FROM event);
ALTER TABLE task ADD COLUMN released INTEGER NOT NULL DEFAULT 0;
UPDATE task SET released = 1 WHERE state = 'READY';
DROP INDEX task_later;
CREATE INDEX task_later ON task (ready_at) WHERE state = 'READY'
   AND (attempt > 0 OR epoch > 1 OR shared = 1 OR not_before IS NOT NULL OR released = 1);
DROP INDEX task_by_state;
CREATE INDEX task_by_state ON task (state DESC, completed_at, agent)
 WHERE state <> 'READY' AND (state <> 'COMPLETED' OR life IS NULL)
"""
