"""Holds the tables, and each numbered step that made them."""

from __future__ import annotations

from .end_tables import ENDS
from .graph_tables import GRAPHS
from .move_tables import MOVES
from .order_tables import ORDER

# Each step is one transaction and is never edited once released: a change is a new step.
# What no node may change in a task is one text, `spec`, and `sha256` is the hash of exactly that
# text; `subject` and `needs` repeat a part of it for people who read the table (json_extract in a
# generated column is refused under trusted_schema=OFF). `need_set` and `shared` lead the index
# of READY tasks so that a claim seeks straight to the first task that an agent may run.
# Every index that a claim or an end has to touch is a page more in its transaction, and pages are
# what a transaction costs. So READY tasks, most of all, are in no index by state; what has ended
# lies in the order it came, next to what is under way; and an attempt names its own events, which
# `event_of` therefore leaves out.
_FIRST = """
CREATE TABLE node (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  name TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  generation INTEGER NOT NULL,
  machine TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'draining', 'quarantined')),
  reason TEXT NOT NULL DEFAULT '',
  state_by TEXT NOT NULL DEFAULT '',
  drain_until TEXT,
  drain_then TEXT,
  term INTEGER NOT NULL DEFAULT 0,
  hub TEXT,
  fleet TEXT,
  hello_boot TEXT,
  domains TEXT NOT NULL DEFAULT '{}',
  xfer_floor TEXT NOT NULL DEFAULT '',
  created_at TEXT NOT NULL
);
CREATE TABLE agent (
  name TEXT PRIMARY KEY,
  slots INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'draining')),
  reason TEXT NOT NULL DEFAULT '',
  streak INTEGER NOT NULL DEFAULT 0,
  last_heartbeat TEXT
) WITHOUT ROWID;
CREATE TABLE agent_power (
  agent TEXT NOT NULL REFERENCES agent ON DELETE CASCADE,
  word TEXT NOT NULL,
  PRIMARY KEY (agent, word)
) WITHOUT ROWID;
CREATE TABLE need_set (
  id INTEGER PRIMARY KEY,
  needs TEXT NOT NULL UNIQUE
);
CREATE TABLE agent_can (
  agent TEXT NOT NULL REFERENCES agent ON DELETE CASCADE,
  need_set INTEGER NOT NULL REFERENCES need_set ON DELETE CASCADE,
  PRIMARY KEY (agent, need_set)
) WITHOUT ROWID;
CREATE TABLE task (
  seq INTEGER PRIMARY KEY,
  uid TEXT NOT NULL UNIQUE,
  epoch INTEGER NOT NULL,
  state TEXT NOT NULL,
  priority INTEGER NOT NULL,
  subject TEXT NOT NULL,
  priority_100 INTEGER,
  rank INTEGER GENERATED ALWAYS AS (coalesce(priority_100, priority * 10 - 5)) VIRTUAL,
  skills TEXT NOT NULL DEFAULT '[]',
  needs TEXT NOT NULL DEFAULT '[]',
  need_set INTEGER NOT NULL REFERENCES need_set,
  domain TEXT,
  tags TEXT NOT NULL DEFAULT '[]',
  key TEXT,
  source TEXT NOT NULL,
  pinned INTEGER NOT NULL DEFAULT 0,
  not_before TEXT,
  deadline TEXT,
  expected_s REAL,
  max_s REAL,
  max_attempts INTEGER NOT NULL DEFAULT 3,
  models TEXT NOT NULL DEFAULT '[]',
  fallback_models TEXT NOT NULL DEFAULT '[]',
  boost_per_minute REAL,
  heat REAL,
  hops INTEGER NOT NULL DEFAULT 0,
  shared INTEGER NOT NULL DEFAULT 0,
  stolen_from TEXT,
  xfer TEXT,
  quarantined INTEGER NOT NULL DEFAULT 0,
  blocked_by TEXT NOT NULL DEFAULT '[]',
  attempt INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  interruptions INTEGER NOT NULL DEFAULT 0,
  agent TEXT,
  claimed_at TEXT,
  heartbeat_at TEXT,
  stopping TEXT,
  wake_at TEXT,
  ready_at TEXT,
  started_at TEXT,
  completed_at TEXT,
  progress TEXT,
  output TEXT,
  artifacts TEXT NOT NULL DEFAULT '[]',
  failure_reason TEXT,
  cost_usd TEXT,
  tokens TEXT,
  sha256 TEXT NOT NULL,
  spec TEXT NOT NULL
);
CREATE INDEX task_ready ON task (need_set, shared, rank, seq) WHERE state = 'READY';
CREATE INDEX task_oldest ON task (ready_at) WHERE state = 'READY';
CREATE INDEX task_unmovable ON task (pinned) WHERE state = 'READY' AND pinned = 1;
CREATE INDEX task_wake ON task (wake_at) WHERE wake_at IS NOT NULL;
CREATE UNIQUE INDEX task_key ON task (key) WHERE key IS NOT NULL;
CREATE INDEX task_by_state ON task (state DESC, completed_at, agent) WHERE state <> 'READY';
CREATE TABLE attempt (
  uid TEXT NOT NULL,
  n INTEGER NOT NULL,
  node TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  agent TEXT NOT NULL,
  token TEXT,
  machine TEXT,
  boot_id TEXT,
  pid INTEGER,
  start_ticks INTEGER,
  claimed_at TEXT NOT NULL,
  started_at TEXT,
  ended_at TEXT,
  outcome TEXT,
  counted INTEGER NOT NULL DEFAULT 0,
  error_kind TEXT,
  message TEXT,
  exit_code INTEGER,
  duration_s REAL,
  cost_usd TEXT,
  tokens TEXT,
  claim_event INTEGER,
  start_event INTEGER,
  end_event INTEGER,
  PRIMARY KEY (uid, n)
);
CREATE TABLE transfer (
  xfer TEXT PRIMARY KEY,
  uid TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  side TEXT NOT NULL CHECK (side IN ('giver', 'taker')),
  peer TEXT NOT NULL,
  peer_incarnation TEXT,
  why TEXT NOT NULL,
  outcome TEXT NOT NULL,
  rule TEXT,
  because TEXT,
  lease_boot TEXT,
  lease_until REAL,
  at TEXT NOT NULL,
  settled_at TEXT
) WITHOUT ROWID;
CREATE INDEX transfer_of ON transfer (uid);
CREATE INDEX transfer_lease ON transfer (lease_until) WHERE outcome = 'escrowed';
CREATE INDEX transfer_open ON transfer (outcome) WHERE settled_at IS NULL;
CREATE TABLE tombstone (
  uid TEXT PRIMARY KEY,
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
) WITHOUT ROWID;
CREATE INDEX tombstone_key ON tombstone (key) WHERE key IS NOT NULL;
CREATE INDEX tombstone_settled ON tombstone (settled_at) WHERE settled_at IS NOT NULL;
CREATE TABLE ownership (
  uid TEXT PRIMARY KEY,
  won INTEGER NOT NULL DEFAULT 0,
  barred INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE peer (
  name TEXT PRIMARY KEY,
  incarnation TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE event (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  uid TEXT,
  n INTEGER,
  event TEXT NOT NULL,
  was TEXT,
  state TEXT,
  by TEXT,
  because TEXT,
  data TEXT
);
CREATE INDEX event_of ON event (uid) WHERE n IS NULL AND uid IS NOT NULL
"""

# Two hubs may come to speak with one term; the node obeys the one that it heard first.
_HUB_INSTANCE = "ALTER TABLE node ADD COLUMN hub_instance TEXT"

# The attempt that a task is at, or that completed it, moves into the task's own row (history.py):
# two pages and two statements fewer for each task. `life` is what all attempts of a boot share.
# By how long it waits a task is found in oldest.py, which spares a claim one more page.
_OWN_ATTEMPTS = """
CREATE TABLE life (
  id INTEGER PRIMARY KEY,
  node TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  machine TEXT NOT NULL,
  boot_id TEXT NOT NULL,
  UNIQUE (boot_id, incarnation, machine, node)
);
ALTER TABLE task ADD COLUMN life INTEGER;
ALTER TABLE task ADD COLUMN token TEXT;
ALTER TABLE task ADD COLUMN pid INTEGER;
ALTER TABLE task ADD COLUMN start_ticks INTEGER;
ALTER TABLE task ADD COLUMN begun_at TEXT;
ALTER TABLE task ADD COLUMN exit_code INTEGER;
ALTER TABLE task ADD COLUMN duration_s REAL;
ALTER TABLE task ADD COLUMN claim_event INTEGER;
ALTER TABLE task ADD COLUMN start_event INTEGER;
ALTER TABLE task ADD COLUMN end_event INTEGER;
INSERT OR IGNORE INTO life (node, incarnation, machine, boot_id)
SELECT a.node, a.incarnation, a.machine, a.boot_id
  FROM attempt a JOIN task t ON t.uid = a.uid AND t.attempt = a.n
 WHERE t.state IN ('CLAIMED', 'RUNNING', 'VALIDATING') AND a.ended_at IS NULL
   AND a.token IS NOT NULL AND a.machine IS NOT NULL AND a.boot_id IS NOT NULL;
UPDATE task SET life = l.id, token = a.token, pid = a.pid, start_ticks = a.start_ticks,
       begun_at = a.started_at, claim_event = a.claim_event, start_event = a.start_event
  FROM attempt a JOIN life l ON l.node = a.node AND l.incarnation = a.incarnation
       AND l.machine = a.machine AND l.boot_id = a.boot_id
 WHERE task.uid = a.uid AND task.attempt = a.n AND a.ended_at IS NULL AND a.token IS NOT NULL
   AND task.state IN ('CLAIMED', 'RUNNING', 'VALIDATING');
DELETE FROM attempt WHERE EXISTS (
  SELECT 1 FROM task t WHERE t.uid = attempt.uid AND t.attempt = attempt.n AND t.life IS NOT NULL);
DROP INDEX task_oldest;
CREATE INDEX task_later ON task (ready_at)
 WHERE state = 'READY' AND (attempt > 0 OR epoch > 1 OR shared = 1 OR not_before IS NOT NULL)
"""

# What only tasks that failed have: what is known of a dead letter, and who should try a task again.
# `until` is when whoever failed it may have it again; `elsewhere` that nobody else here can run it.
_CARE = """
CREATE TABLE care (
  uid TEXT PRIMARY KEY,
  poison INTEGER NOT NULL DEFAULT 0,
  elsewhere INTEGER NOT NULL DEFAULT 0,
  until TEXT,
  reviewed TEXT,
  resolution TEXT
) WITHOUT ROWID;
CREATE INDEX care_until ON care (until) WHERE until IS NOT NULL;
CREATE INDEX care_elsewhere ON care (uid) WHERE elsewhere = 1
"""

# Which tasks of this store left which files: those stay on the shelf while the tasks are known.
_ARTIFACTS = """
CREATE TABLE kept (
  sha256 TEXT NOT NULL,
  uid TEXT NOT NULL,
  PRIMARY KEY (sha256, uid)
) WITHOUT ROWID;
CREATE INDEX kept_of ON kept (uid)
"""

# Whether an attempt speaks against its task: not where its agent was failing other tasks as well.
_BLAME = "ALTER TABLE attempt ADD COLUMN blamed INTEGER NOT NULL DEFAULT 1"

STEPS: tuple[str, ...] = (
    _FIRST, _HUB_INSTANCE, _OWN_ATTEMPTS, _CARE, ORDER, GRAPHS, _ARTIFACTS, MOVES, ENDS, _BLAME,
)  # fmt: skip
VERSION = len(STEPS)


def statements(step: str) -> list[str]:
    """The statements of one step, one by one: `executescript` would commit before its work."""
    return [statement for statement in step.split(";") if statement.strip()]
