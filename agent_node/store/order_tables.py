"""Holds the tables and columns for the order of tasks and for money, as one numbered step."""

from __future__ import annotations

# The order in which tasks go (priority.py): each has one turn for ever, and claims look for the
# least turn of each pace. `pull` is what only some tasks have: a weight in their graph, a deadline.
# Money is decimal text. A reservation is what an attempt here, or a whole life elsewhere (`away`),
# may still cost; `n` is the attempt before it. `told_cost` is what was heard of such a life so far,
# and beside it, for no scope but as `most`, what a task that was born elsewhere may cost in all.
# What cannot be afforded waits in `unaffordable`.
ORDER = """
ALTER TABLE task ADD COLUMN pace INTEGER NOT NULL DEFAULT 10;
ALTER TABLE task ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
CREATE TABLE pull (
  uid TEXT PRIMARY KEY,
  weight REAL NOT NULL DEFAULT 0,
  urgency INTEGER NOT NULL DEFAULT 0,
  urge_at TEXT
) WITHOUT ROWID;
CREATE INDEX pull_urge ON pull (urge_at) WHERE urge_at IS NOT NULL;
CREATE TABLE pace (pace INTEGER PRIMARY KEY);
UPDATE task SET pace = CASE WHEN boost_per_minute IS NULL THEN 10 WHEN boost_per_minute <= 0.015
       THEN 1 WHEN boost_per_minute <= 0.035 THEN 2 WHEN boost_per_minute <= 0.075 THEN 5
       WHEN boost_per_minute <= 0.15 THEN 10 WHEN boost_per_minute <= 0.35 THEN 20
       WHEN boost_per_minute <= 0.75 THEN 50 WHEN boost_per_minute <= 1.5 THEN 100
       WHEN boost_per_minute <= 3.5 THEN 200 WHEN boost_per_minute <= 7.5 THEN 500
       WHEN boost_per_minute <= 15 THEN 1000 WHEN boost_per_minute <= 35 THEN 2000
       WHEN boost_per_minute <= 75 THEN 5000 ELSE 10000 END
 WHERE state <> 'COMPLETED';
UPDATE task SET turn = rank * 1000 - cast(round(coalesce(heat, 0) * 1000) AS INTEGER)
       + pace * cast(strftime('%s', coalesce(ready_at, claimed_at, completed_at,
                                             json_extract(spec, '$.created_at'))) AS INTEGER) / 6
 WHERE state <> 'COMPLETED';
INSERT INTO pull (uid, urge_at) SELECT uid, '' FROM task
 WHERE deadline IS NOT NULL AND state <> 'COMPLETED';
INSERT OR IGNORE INTO pace SELECT pace FROM task WHERE pace <> 10;
DROP INDEX task_ready;
CREATE INDEX task_ready ON task (need_set, shared, pace, turn, seq) WHERE state = 'READY';
CREATE TABLE budget (
  scope TEXT PRIMARY KEY,
  limit_usd TEXT NOT NULL,
  urgent_overdraft INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE spending (
  scope TEXT NOT NULL,
  day TEXT NOT NULL,
  spent TEXT NOT NULL,
  reserved TEXT NOT NULL,
  PRIMARY KEY (scope, day)
) WITHOUT ROWID;
CREATE TABLE reservation (
  uid TEXT NOT NULL,
  scope TEXT NOT NULL,
  day TEXT NOT NULL,
  amount TEXT NOT NULL,
  n INTEGER NOT NULL,
  away TEXT,
  PRIMARY KEY (uid, scope)
) WITHOUT ROWID;
CREATE INDEX reservation_away ON reservation (uid) WHERE away IS NOT NULL;
CREATE TABLE told_cost (
  uid TEXT NOT NULL,
  scope TEXT NOT NULL,
  day TEXT NOT NULL,
  cost_usd TEXT NOT NULL,
  PRIMARY KEY (uid, scope)
) WITHOUT ROWID;
CREATE TABLE unaffordable (
  uid TEXT PRIMARY KEY,
  scope TEXT NOT NULL,
  asks TEXT NOT NULL,
  until TEXT
) WITHOUT ROWID;
CREATE INDEX unaffordable_until ON unaffordable (until) WHERE until IS NOT NULL;
CREATE INDEX unaffordable_scope ON unaffordable (scope)
"""
