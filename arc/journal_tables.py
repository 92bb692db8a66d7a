"""Holds the tables of the hub's journal, and each step that made them."""

from __future__ import annotations

from sqlite_utils import Database, Migrations

STEPS = Migrations("arc")

_FIRST = """
CREATE TABLE run (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  sensor TEXT NOT NULL, because TEXT NOT NULL, at TEXT NOT NULL, outcome TEXT NOT NULL,
  skipped TEXT, summary TEXT NOT NULL, code TEXT NOT NULL,
  looked INTEGER NOT NULL, unseen INTEGER NOT NULL, decided INTEGER NOT NULL,
  acted INTEGER NOT NULL, requests INTEGER NOT NULL, took_s REAL NOT NULL,
  cut INTEGER NOT NULL, details TEXT NOT NULL) STRICT;
CREATE INDEX run_by_sensor ON run (sensor, id);
CREATE INDEX run_by_time ON run (at);
CREATE TABLE decision (
  run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  node TEXT NOT NULL, uid TEXT NOT NULL, rule TEXT NOT NULL, count INTEGER NOT NULL,
  because TEXT NOT NULL) STRICT;
CREATE INDEX decision_by_run ON decision (run);
CREATE INDEX decision_by_uid ON decision (uid) WHERE uid <> '';
CREATE TABLE move (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run INTEGER, at TEXT NOT NULL, xfer TEXT NOT NULL, uid TEXT NOT NULL, priority INTEGER,
  busy TEXT NOT NULL, idle TEXT NOT NULL, busy_incarnation TEXT NOT NULL,
  idle_incarnation TEXT NOT NULL, why TEXT NOT NULL, rule TEXT NOT NULL,
  outcome TEXT NOT NULL, because TEXT NOT NULL) STRICT;
CREATE INDEX move_by_uid ON move (uid);
CREATE INDEX move_by_run ON move (run);
CREATE INDEX move_by_time ON move (at);
CREATE TABLE alert (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  node TEXT NOT NULL, rule TEXT NOT NULL, because TEXT NOT NULL,
  at TEXT NOT NULL, ended_at TEXT, told INTEGER NOT NULL) STRICT;
CREATE INDEX alert_by_node ON alert (node, at);
CREATE UNIQUE INDEX alert_open ON alert (node, rule) WHERE ended_at IS NULL;
CREATE TABLE line (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at TEXT NOT NULL, event TEXT NOT NULL, sensor TEXT NOT NULL, run INTEGER, node TEXT NOT NULL,
  task TEXT NOT NULL, fields TEXT NOT NULL) STRICT;
CREATE INDEX line_by_time ON line (at);
CREATE TABLE fence (
  node TEXT NOT NULL, incarnation TEXT NOT NULL, at TEXT NOT NULL, said_by TEXT NOT NULL,
  reason TEXT NOT NULL, PRIMARY KEY (node, incarnation)) STRICT;
CREATE TABLE met (
  node TEXT PRIMARY KEY, incarnation TEXT NOT NULL, generation INTEGER NOT NULL,
  state TEXT NOT NULL, version TEXT NOT NULL, clock_off_s REAL, at TEXT NOT NULL) STRICT;
CREATE TABLE word (
  kind TEXT NOT NULL, node TEXT NOT NULL, reason TEXT NOT NULL, said_by TEXT NOT NULL,
  at TEXT NOT NULL, until TEXT, PRIMARY KEY (kind, node)) STRICT;
CREATE TABLE stranded (
  day TEXT NOT NULL, node TEXT NOT NULL, cause TEXT NOT NULL, seconds REAL NOT NULL,
  PRIMARY KEY (day, node, cause)) STRICT;
CREATE TABLE unclaimed (uid TEXT PRIMARY KEY, cycles INTEGER NOT NULL) STRICT;
CREATE TABLE refusal (
  uid TEXT NOT NULL, node TEXT NOT NULL, rule TEXT NOT NULL, at TEXT NOT NULL,
  PRIMARY KEY (uid, node)) STRICT;
CREATE TABLE heard (
  node TEXT PRIMARY KEY, incarnation TEXT NOT NULL, seq INTEGER NOT NULL) STRICT;
CREATE TABLE ended (
  node TEXT NOT NULL, seq INTEGER NOT NULL, at TEXT NOT NULL, uid TEXT NOT NULL,
  well INTEGER NOT NULL, PRIMARY KEY (node, seq)) STRICT;
CREATE INDEX ended_by_time ON ended (node, at);
"""


@STEPS()
def first_tables(db: Database) -> None:
    """Everything of the first version. Statement by statement: a script would end the step's
    transaction.
    """
    for statement in _FIRST.split(";\n"):
        if statement.strip():
            db.execute(statement)


@STEPS()
def ends_of_tasks(db: Database) -> None:
    """How each task ended where, from what was heard before; and when a node was heard last."""
    db.execute(
        "CREATE TABLE task_end (node TEXT NOT NULL, uid TEXT NOT NULL, state TEXT NOT NULL,"
        " at TEXT NOT NULL, PRIMARY KEY (node, uid)) STRICT"
    )
    db.execute("CREATE INDEX task_end_by_uid ON task_end (uid)")
    db.execute("CREATE INDEX task_end_by_time ON task_end (at)")
    db.execute("ALTER TABLE heard ADD COLUMN at TEXT")
    db.execute(
        "INSERT OR REPLACE INTO task_end SELECT node, uid, 'COMPLETED', at FROM ended WHERE well"
    )


@STEPS()
def open_work(db: Database) -> None:
    """How many tasks were not over on a node when it answered last."""
    db.execute("CREATE TABLE open_work (node TEXT PRIMARY KEY, open INTEGER NOT NULL,"
               " at TEXT NOT NULL) STRICT")  # fmt: skip


@STEPS()
def outbox(db: Database) -> None:
    """Why and by which event tasks ended; which stores were told of bad ends; births to be told."""
    db.execute("ALTER TABLE task_end ADD COLUMN because TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE task_end ADD COLUMN seq INTEGER NOT NULL DEFAULT -1")
    db.execute("ALTER TABLE task_end ADD COLUMN result TEXT NOT NULL DEFAULT ''")
    db.execute(
        "CREATE TABLE end_told (store TEXT NOT NULL, uid TEXT NOT NULL, node TEXT NOT NULL,"
        " at TEXT NOT NULL, PRIMARY KEY (store, uid)) STRICT"
    )
    db.execute("CREATE INDEX end_told_by_time ON end_told (at)")
    db.execute(
        "CREATE TABLE birth (uid TEXT PRIMARY KEY, dag TEXT NOT NULL, node TEXT NOT NULL,"
        " seq INTEGER NOT NULL, parent TEXT, name TEXT, waits INTEGER NOT NULL,"
        " at TEXT NOT NULL) STRICT"
    )
    db.execute("CREATE INDEX birth_by_time ON birth (at)")
    db.execute(
        "CREATE TABLE owed_cancel (uid TEXT PRIMARY KEY, said_by TEXT NOT NULL,"
        " reason TEXT NOT NULL, at TEXT NOT NULL) STRICT"
    )


@STEPS()
def tallies(db: Database) -> None:
    """Counts that only grow, by day; `value` is in millionths."""
    db.execute(
        "CREATE TABLE tally (day TEXT NOT NULL, name TEXT NOT NULL, labels TEXT NOT NULL,"
        " value INTEGER NOT NULL, PRIMARY KEY (name, labels, day)) STRICT, WITHOUT ROWID"
    )


_WORK = """
CREATE TABLE source (
  kind TEXT NOT NULL, name TEXT NOT NULL, spec TEXT NOT NULL, seen_to TEXT NOT NULL,
  last_at TEXT, uid TEXT, outcome TEXT, because TEXT, added_at TEXT,
  missed INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (kind, name)) STRICT;
CREATE TABLE watched_file (
  name TEXT NOT NULL, path TEXT NOT NULL, stamp TEXT NOT NULL, sha256 TEXT NOT NULL,
  settled INTEGER NOT NULL, PRIMARY KEY (name, path)) STRICT;
CREATE TABLE notice (
  id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, thing TEXT NOT NULL,
  node TEXT NOT NULL, text TEXT NOT NULL, at TEXT NOT NULL, UNIQUE (kind, thing)) STRICT;
CREATE INDEX notice_by_time ON notice (at);
CREATE TABLE sink (
  name TEXT PRIMARY KEY, told_to INTEGER NOT NULL, told_at TEXT, tries INTEGER NOT NULL,
  again_at TEXT, problem TEXT NOT NULL) STRICT;
"""


@STEPS()
def work_and_notices(db: Database) -> None:
    """Where work came from last; in which domain attempts ended; what people were told of."""
    for statement in _WORK.split(";\n"):
        if statement.strip():
            db.execute(statement)
    db.execute("ALTER TABLE ended ADD COLUMN domain TEXT")


_TIES = """
CREATE TABLE tie (
  node TEXT NOT NULL, uid TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (node, uid)) STRICT;
CREATE INDEX tie_by_time ON tie (at);
CREATE TABLE tie_since (at TEXT NOT NULL) STRICT;
CREATE TABLE attempt_cost (
  node TEXT NOT NULL, uid TEXT NOT NULL, n INTEGER NOT NULL, cost_usd TEXT NOT NULL,
  at TEXT NOT NULL, PRIMARY KEY (uid, node, n)) STRICT;
CREATE INDEX attempt_cost_by_time ON attempt_cost (at);
ALTER TABLE birth ADD COLUMN doubts INTEGER NOT NULL DEFAULT 0;
CREATE INDEX birth_by_node ON birth (node, doubts);
"""


@STEPS()
def ties_and_costs(db: Database) -> None:
    """To which tasks nodes were tied; what each attempt cost; how often births were doubted."""
    for statement in _TIES.split(";\n"):
        if statement.strip():
            db.execute(statement)


# Times in here are milliseconds since 1970, by the hub's clock: they are added up by the million.
# Rows come in the order of time or nearly so, so that a look or an event touches few pages.
_HISTORY = """
CREATE TABLE arrival (
  uid TEXT PRIMARY KEY, at INTEGER NOT NULL, node TEXT NOT NULL, how TEXT NOT NULL,
  priority INTEGER, domain TEXT, skills TEXT, needs TEXT, pinned INTEGER, expected_s REAL,
  source TEXT) STRICT;
CREATE INDEX arrival_by_time ON arrival (at);
CREATE TABLE stint (
  node TEXT NOT NULL, life TEXT NOT NULL, uid TEXT NOT NULL, n INTEGER NOT NULL,
  agent TEXT NOT NULL, domain TEXT, priority INTEGER, expected_s REAL,
  claimed_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER, outcome TEXT NOT NULL,
  error_kind TEXT NOT NULL DEFAULT '', cost INTEGER, UNIQUE (uid, n, node)) STRICT;
CREATE INDEX stint_by_end ON stint (ended_at, claimed_at);
CREATE TABLE sample (
  id INTEGER PRIMARY KEY, node TEXT NOT NULL, at INTEGER NOT NULL, until INTEGER,
  state TEXT NOT NULL, because TEXT NOT NULL, pending INTEGER NOT NULL, running INTEGER NOT NULL,
  slots INTEGER NOT NULL, free INTEGER NOT NULL, idle_since INTEGER) STRICT;
CREATE INDEX sample_by_time ON sample (at);
CREATE TABLE stranded_stretch (
  id INTEGER PRIMARY KEY, node TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL,
  seconds REAL NOT NULL, cause TEXT NOT NULL, rule TEXT NOT NULL, beside TEXT NOT NULL,
  uid TEXT NOT NULL) STRICT;
CREATE INDEX stretch_by_end ON stranded_stretch (until);
"""


@STEPS()
def history(db: Database) -> None:
    """How tasks came, their attempts, how nodes were at every look, and stranded stretches."""
    for statement in _HISTORY.split(";\n"):
        if statement.strip():
            db.execute(statement)


@STEPS()
def deliveries(db: Database) -> None:
    """Signed messages from elsewhere that were taken, so that none is taken twice."""
    db.execute(
        "CREATE TABLE delivery (name TEXT NOT NULL, seal TEXT NOT NULL, at TEXT NOT NULL,"
        " key TEXT NOT NULL, uid TEXT NOT NULL, outcome TEXT NOT NULL, because TEXT NOT NULL,"
        " PRIMARY KEY (name, seal)) STRICT"
    )
    db.execute("CREATE INDEX delivery_by_time ON delivery (at)")


_TURNS = """
ALTER TABLE arrival ADD COLUMN ready_at INTEGER;
ALTER TABLE arrival ADD COLUMN ended_at INTEGER;
UPDATE arrival SET ready_at = at, ended_at = (
  SELECT max(ended) FROM (
    SELECT cast(round((julianday(t.at) - 2440587.5) * 86400000) AS INTEGER) AS ended
      FROM task_end t WHERE t.uid = arrival.uid
     UNION ALL SELECT s.ended_at FROM stint s WHERE s.uid = arrival.uid AND s.outcome = 'completed'
  ));
CREATE INDEX arrival_by_end ON arrival (ended_at, at);
"""


@STEPS()
def turns_of_tasks(db: Database) -> None:
    """When each task was READY first, and when it was over; of those before, as far as is known."""
    for statement in _TURNS.split(";\n"):
        if statement.strip():
            db.execute(statement)


READY_MEND_MAX = 500_000  # arrivals, the newest: a hub starts within seconds whatever it remembers
READY_MEND_MS = 60_000  # what stood longer than this had been heard of before it left
# A task that left before its queue was heard was taken to be ready when it came to its next node.
# It was so as it came, where nothing that this node was given since refers to any other task.
_READY = """
UPDATE arrival SET ready_at = at WHERE rowid IN (
  SELECT a.rowid FROM arrival a
    JOIN move m ON m.id = (SELECT min(id) FROM move WHERE uid = a.uid
                            AND (outcome <> 'kept' OR rule = 'taker_has_it'))
    LEFT JOIN (SELECT node, max(at) AS at FROM tie GROUP BY node) t ON t.node = m.idle
   WHERE a.rowid > (SELECT max(rowid) FROM arrival) - :most AND a.how = 'added'
     AND a.ready_at > a.at AND a.ready_at <= a.at + :within AND m.busy = a.node
     AND abs((julianday(m.at) - 2440587.5) * 86400000 - a.ready_at) <= :within
     AND (t.at IS NULL OR (julianday(t.at) - 2440587.5) * 86400000 < a.at))
"""


@STEPS()
def ready_as_they_came(db: Database) -> None:
    """Tasks that were moved at once were ready as they came, where this journal can tell."""
    db.execute(_READY, {"most": READY_MEND_MAX, "within": READY_MEND_MS})


@STEPS()
def what_births_may_cost(db: Database) -> None:
    """What a task that was born into a graph may cost at most: its graph sets so much aside."""
    db.execute("ALTER TABLE birth ADD COLUMN max_cost_usd TEXT")


@STEPS()
def which_end_was_told(db: Database) -> None:
    """By which event the bad end came that a store was told of; of those before it is not known."""
    db.execute("ALTER TABLE end_told ADD COLUMN seq INTEGER")


_LIVES = """
CREATE TABLE replaced (
  node TEXT NOT NULL, life TEXT NOT NULL, now TEXT NOT NULL, at TEXT NOT NULL, open INTEGER,
  moved INTEGER NOT NULL, PRIMARY KEY (node, life)) STRICT;
CREATE TABLE lost_task (uid TEXT PRIMARY KEY, node TEXT NOT NULL, life TEXT NOT NULL) STRICT;
CREATE INDEX lost_task_by_node ON lost_task (node, life);
"""


@STEPS()
def lost_queues(db: Database) -> None:
    """Which nodes came back as another queue, and which tasks had been moved to the old one."""
    for statement in _LIVES.split(";\n"):
        if statement.strip():
            db.execute(statement)
