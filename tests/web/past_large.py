"""Writes a day of five hundred nodes into a journal, as a hub would have."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from agent_node.clock import iso
from arc.journal import Journal
from tests.builders import START, FakeClock

NODES, LOOKS, LOOK_S = 500, 288, 300
UNTIL = START + timedelta(days=1)


def write_large(place: Path, nodes: int = NODES, *, since: datetime = START) -> Path:
    """The state folder, with a day from `since` on: samples every five minutes, sixty attempts a
    node, moves, runs, and every fifth node stranded for up to fifty minutes.
    """
    journal = Journal(place / "journal.db", FakeClock())
    rows, start = journal._rows, int(since.timestamp() * 1000)
    names = [f"n{node:03d}" for node in range(nodes)]
    with rows.transaction():
        rows.write_many(
            "INSERT INTO sample (node, at, until, state, because, pending, running, slots, free)"
            " VALUES (?,?,?,'running','',?,?,4,4)",
            [(name, start + look * LOOK_S * 1000, start + (look + 1) * LOOK_S * 1000,
              (node * look) % 21, (node + look) % 5)
             for look in range(LOOKS) for node, name in enumerate(names)],
        )  # fmt: skip
        rows.write_many(
            "INSERT INTO stint (node, life, uid, n, agent, claimed_at, ended_at, outcome, cost)"
            " VALUES (?,'L',?,1,'a',?,?,'completed',1000)",
            [(name, f"{name}-{k}", start + k * 1_440_000, start + k * 1_440_000 + 600_000)
             for name in names for k in range(60)],
        )  # fmt: skip
        rows.write_many(
            "INSERT INTO stranded_stretch (node, since, until, seconds, cause, rule, beside, uid)"
            " VALUES (?,?,?,?,'rule','busy_node_is_busy','n000','')",
            [(name, start + 7_200_000, start + 7_200_000 + (node % 11) * 300_000, (node % 11) * 300)
             for node, name in enumerate(names) if node % 11],
        )  # fmt: skip
        rows.write_many(
            "INSERT INTO move (run, at, xfer, uid, priority, busy, idle, busy_incarnation,"
            " idle_incarnation, why, rule, outcome, because)"
            " VALUES (1,?,?,?,5,?,?,'','','stolen','','moved','')",
            [(iso(since + timedelta(seconds=10 * n)), f"x{n}", f"u{n}", names[n % nodes],
              names[(n * 7 + 1) % nodes]) for n in range(8000)],
        )  # fmt: skip
        rows.write_many(
            "INSERT INTO run (sensor, because, at, outcome, summary, code, looked, unseen,"
            " decided, acted, requests, took_s, cut, details)"
            " VALUES (?,'interval',?,'done','all of it','',?,0,9,9,600,11.0,0,?)",
            [(sensor, iso(since + timedelta(seconds=LOOK_S * look)), nodes,
              '{"kept": {"low_enough_priority": 900, "cycle_has_room": 40}}')
             for look in range(LOOKS)
             for sensor in ("fleet-health", "fleet-rebalance", "fleet-router", "fleet-graphs")],
        )  # fmt: skip
    journal.close()
    return place
