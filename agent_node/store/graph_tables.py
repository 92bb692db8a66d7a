"""Holds the tables of graphs: members, edges, and what is known of tasks that live elsewhere."""

from __future__ import annotations

# `came` of an edge is null while it is open. `member` says which tasks belong to a graph, wherever
# they live, and `ended` how each of them ended, null while it has not. What ended elsewhere
# is `told`; whose end is still to be asked for is `awaited`. `input` says what a task that lives
# here is to be given, and `fell` which tasks were ended by an edge and no person. Each index
# answers one question of an end: who waits, for what else, and did anything end badly.
GRAPHS = """
CREATE TABLE graph (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL,
  key TEXT,
  state TEXT NOT NULL CHECK (state IN ('running', 'completed', 'failed', 'cancelled')),
  reason TEXT NOT NULL DEFAULT '',
  by TEXT NOT NULL,
  created_at TEXT NOT NULL,
  ended_at TEXT,
  total INTEGER NOT NULL,
  open INTEGER NOT NULL,
  bad INTEGER NOT NULL DEFAULT 0,
  budget_usd TEXT,
  content TEXT NOT NULL,
  critical_path TEXT NOT NULL DEFAULT '[]',
  then_document TEXT,
  then_id TEXT,
  after_id TEXT
);
CREATE UNIQUE INDEX graph_key ON graph (key) WHERE key IS NOT NULL;
CREATE INDEX graph_ended ON graph (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE member (
  uid TEXT PRIMARY KEY,
  dag TEXT NOT NULL,
  place INTEGER NOT NULL,
  name TEXT,
  weight REAL,
  critical INTEGER NOT NULL DEFAULT 0,
  ended TEXT CHECK (ended IN ('well', 'badly', 'skipped'))
) WITHOUT ROWID;
CREATE INDEX member_of ON member (dag, place);
CREATE TABLE edge (
  uid TEXT NOT NULL,
  needs TEXT NOT NULL,
  on_failure TEXT NOT NULL CHECK (on_failure IN ('fail', 'skip', 'run')),
  came TEXT CHECK (came IN ('well', 'badly', 'skipped')),
  n INTEGER,
  PRIMARY KEY (uid, needs)
) WITHOUT ROWID;
CREATE INDEX edge_needs ON edge (needs);
CREATE INDEX edge_open ON edge (uid, on_failure) WHERE came IS NULL;
CREATE INDEX edge_bad ON edge (uid, on_failure, needs) WHERE came = 'badly';
CREATE TABLE fell (
  uid TEXT PRIMARY KEY,
  because_of TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE awaited (
  uid TEXT PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE told (
  uid TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  node TEXT NOT NULL,
  at TEXT NOT NULL,
  output TEXT,
  sha256 TEXT,
  artifacts TEXT,
  cost_usd TEXT,
  because TEXT,
  noted_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE input (
  uid TEXT NOT NULL,
  ref TEXT NOT NULL,
  kind TEXT NOT NULL,
  source TEXT,
  here INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (uid, ref)
) WITHOUT ROWID;
CREATE INDEX input_of ON input (source);
CREATE INDEX input_missing ON input (uid) WHERE here = 0;
CREATE TABLE workspace (
  uid TEXT PRIMARY KEY,
  n INTEGER NOT NULL
) WITHOUT ROWID
"""
