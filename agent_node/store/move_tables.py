"""Holds the tables and indexes by which tasks move, as the numbered step that made them light."""

from __future__ import annotations

# Moving ten tasks wrote 110 pages, and pages are what it costs. So a transfer names its own two
# events, and those carry the number 0 for an attempt, which keeps them out of `event_of` as the
# numbers of attempts do; what is ESCROW or HELD is found by its task's state and not by an index of
# its own; and a tombstone has a row number, for in a table without one every kept copy spills over
# into a page for itself.
OF_A_MOVE = 0
# A giver's moves that are over and not settled; of those that are not over the task says so.
UNSETTLED = "settled_at IS NULL AND side = 'giver' AND outcome IN ('committed', 'aborted')"
_OF_MOVE = """
(SELECT e.seq FROM event e WHERE e.uid = transfer.uid AND e.n IS NULL AND e.uid IS NOT NULL
   AND e.event IN ({events}) AND json_extract(e.data, '$.xfer') = transfer.xfer
 ORDER BY e.seq DESC LIMIT 1)"""

MOVES = f"""
ALTER TABLE transfer ADD COLUMN begun_event INTEGER;
ALTER TABLE transfer ADD COLUMN ended_event INTEGER;
UPDATE transfer SET
  begun_event = {_OF_MOVE.format(events="'task_escrowed', 'task_held'")},
  ended_event = {_OF_MOVE.format(
      events="'task_moved', 'task_given_back', 'task_arrived', 'task_dropped'")};
UPDATE event SET n = {OF_A_MOVE} WHERE seq IN (
  SELECT begun_event FROM transfer WHERE begun_event IS NOT NULL
  UNION ALL SELECT ended_event FROM transfer WHERE ended_event IS NOT NULL);
DROP INDEX transfer_lease;
DROP INDEX transfer_open;
CREATE INDEX transfer_unsettled ON transfer (xfer) WHERE {UNSETTLED};
ALTER TABLE tombstone RENAME TO tombstone_before;
DROP INDEX tombstone_key;
DROP INDEX tombstone_settled;
CREATE TABLE tombstone (
  uid TEXT NOT NULL PRIMARY KEY,
  epoch INTEGER NOT NULL,
  xfer TEXT,
  peer TEXT,
  peer_incarnation TEXT,
  key TEXT,
  ended TEXT,
  at TEXT NOT NULL,
  settled_at TEXT,
  sha256 TEXT,
  life TEXT,
  spec TEXT
);
CREATE INDEX tombstone_key ON tombstone (key) WHERE key IS NOT NULL;
CREATE INDEX tombstone_settled ON tombstone (settled_at) WHERE settled_at IS NOT NULL;
INSERT INTO tombstone (uid, epoch, xfer, peer, peer_incarnation, key, ended, at, settled_at,
                       sha256, life, spec)
SELECT uid, epoch, xfer, peer, peer_incarnation, key, ended, at, settled_at, sha256, life, spec
  FROM tombstone_before;
DROP TABLE tombstone_before
"""
