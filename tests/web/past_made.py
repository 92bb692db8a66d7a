"""Makes a fleet's past out of plain lists, with the face of the real one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeVar

from agent_node.ulid import new_ulid
from arc.history_seen import (
    Arrival,
    Depths,
    Feed,
    KeptSeen,
    MoveSeen,
    NodeDepths,
    NodeKnown,
    NodeShares,
    RunSeen,
    Sample,
    Shares,
    Span,
    Spent,
    Stint,
    StrandedStretch,
)

NOW = datetime(2026, 3, 10, 3, 45, 4, tzinfo=UTC)
T = TypeVar("T")


def s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


class PastMade:
    """What `arc.history.History` gives, from lists that a test fills."""

    def __init__(self) -> None:
        self.all_nodes: list[NodeKnown] = []
        self.all_stints: list[Stint] = []
        self.all_samples: list[Sample] = []
        self.all_stranded: list[StrandedStretch] = []
        self.all_moves: list[MoveSeen] = []
        self.all_runs: list[RunSeen] = []
        self.all_arrivals: list[Arrival] = []
        self.kept: dict[int, list[KeptSeen]] = {}

    def close(self) -> None:
        pass

    def span(self) -> Span:
        return Span(min(one.since for one in self.all_nodes), NOW)

    def nodes(self) -> tuple[NodeKnown, ...]:
        return tuple(sorted(self.all_nodes, key=lambda one: one.name))

    def arrivals(
        self, since: datetime, until: datetime, *, limit: int = 10**6
    ) -> tuple[Arrival, ...]:
        return _some(self.all_arrivals, lambda one: since <= one.at < until, limit)

    def stints(
        self, since: datetime, until: datetime, *, nodes: Collection[str] | None = None,
        limit: int = 10**6,
    ) -> tuple[Stint, ...]:  # fmt: skip
        return _some(self.all_stints, lambda one: one.claimed_at < until
                     and (one.ended_at is None or one.ended_at >= since)
                     and (nodes is None or one.node in nodes), limit)  # fmt: skip

    def life_of(
        self, uid: str
    ) -> tuple[Arrival | None, tuple[Stint, ...], tuple[MoveSeen, ...]]:
        came = next((one for one in self.all_arrivals if one.uid == uid), None)
        return (came, tuple(one for one in self.all_stints if one.uid == uid),
                tuple(one for one in self.all_moves if one.uid == uid))  # fmt: skip

    def samples(
        self, since: datetime, until: datetime, *, nodes: Collection[str] | None = None,
        limit: int = 10**6,
    ) -> tuple[Sample, ...]:  # fmt: skip
        return _some(self.all_samples, lambda one: one.at < until and one.until >= since
                     and (nodes is None or one.node in nodes), limit)  # fmt: skip

    def stranded(
        self, since: datetime, until: datetime, *, limit: int = 10**6
    ) -> tuple[StrandedStretch, ...]:
        return _some(self.all_stranded, lambda one: one.since < until and one.until >= since,
                     limit)  # fmt: skip

    def moves(
        self, since: datetime, until: datetime, *, limit: int = 10**6
    ) -> tuple[MoveSeen, ...]:
        return _some(self.all_moves, lambda one: since <= one.at < until, limit)

    def feeds(self, since: datetime, until: datetime) -> tuple[Feed, ...]:
        pairs = Counter((one.busy, one.idle, one.why) for one in self.moves(since, until)
                        if one.outcome == "moved")  # fmt: skip
        return tuple(Feed(*ends, count) for ends, count in pairs.most_common())

    def runs(
        self, since: datetime, until: datetime, *, sensor: str = "", limit: int = 10_000
    ) -> tuple[RunSeen, ...]:
        return _some(self.all_runs, lambda one: since <= one.at < until
                     and sensor in ("", one.sensor), limit)  # fmt: skip

    def decisions(self, run: int, *, limit: int = 2000) -> tuple[KeptSeen, ...]:
        return tuple(self.kept.get(run, ()))[:limit]

    def depths(
        self, since: datetime, until: datetime, buckets: int, *,
        nodes: Collection[str] | None = None, deepest: int | None = None,
    ) -> Depths:  # fmt: skip
        names = [known.name for known in self.nodes() if nodes is None or known.name in nodes]
        every = self._depths(names, since, until, buckets)
        shown = sorted(every, key=lambda one: (-max((n or 0 for n in one.most), default=0),
                                               one.node))[:deepest]  # fmt: skip
        step = (until - since).total_seconds() / buckets
        return Depths(since, step, tuple(sorted(shown, key=lambda one: one.node)),
                      len(every) - len(shown))  # fmt: skip

    def spent(self, since: datetime, until: datetime, buckets: int = 1) -> Spent:
        shares = self.shares(since, until, buckets)
        return Spent(since, shares.step_s, {
            one.node: one.cost_usd for one in shares.nodes if any(one.cost_usd)})  # fmt: skip

    def _depths(
        self, names: Sequence[str], since: datetime, until: datetime, buckets: int
    ) -> list[NodeDepths]:
        step = (until - since).total_seconds() / buckets
        nodes = []
        for name in names:
            mine = [one for one in self.all_samples if one.node == name]
            line = [_at(mine, since + s(step * (place + 0.5))) for place in range(buckets)]
            pending = tuple(one.pending if one else None for one in line)
            nodes.append(NodeDepths(
                name, pending, pending, tuple(one.running if one else None for one in line),
                tuple(one.slots if one else None for one in line)))  # fmt: skip
        return nodes

    def shares(self, since: datetime, until: datetime, buckets: int) -> Shares:
        step = (until - since).total_seconds() / buckets
        return Shares(since, step, tuple(
            self._shares(known.name, since, step, buckets) for known in self.nodes()))  # fmt: skip

    def _shares(self, name: str, since: datetime, step: float, buckets: int) -> NodeShares:
        mine = [one for one in self.all_samples if one.node == name]
        loud = [one for one in self.all_stranded if one.node == name]
        rows = []
        for place in range(buckets):
            begin, end = since + s(step * place), since + s(step * (place + 1))
            one = _at(mine, begin + s(step / 2))
            stranded = min(sum(max((min(some.until, end) - max(some.since, begin)).total_seconds(),
                                   0.0) for some in loud) / step, 1.0)  # fmt: skip
            spent = float(sum(some.cost_usd or 0 for some in self.all_stints if some.node == name
                              and some.ended_at and begin <= some.ended_at < end))  # fmt: skip
            part = _part(one)
            rows.append((*(float(part == word) * (1 - stranded) for word in
                           ("busy", "idle")), stranded,
                         *(float(part == word) * (1 - stranded) for word in ("paused", "unknown")),
                         one.pending if one else None, one.running if one else None,
                         spent))  # fmt: skip
        return NodeShares(name, *(tuple(column) for column in zip(*rows, strict=True)))


def _part(one: Sample | None) -> str:
    if one is None or one.state == "unknown":
        return "unknown"
    if one.state != "running":
        return "paused"
    return "idle" if one.idle else "busy"


def _at(samples: Iterable[Sample], moment: datetime) -> Sample | None:
    return next((one for one in samples if one.at <= moment < one.until
                 and one.state != "unknown"), None)  # fmt: skip


def _some(rows: Sequence[T], fits: Callable[[T], bool], limit: int) -> tuple[T, ...]:
    return tuple([row for row in rows if fits(row)][-limit:])


DOMAINS = ("protocol", "research", "integrations", "infra", "")
NAMES = ("arc", "forge", "iris", "loom", "spark")


def a_night(names: Sequence[str] = NAMES, *, hours: float = 3.0, seed: int = 7) -> PastMade:
    """A few hours of a fleet whose last node but one was stranded for a while, and is drained."""
    chance, past = random.Random(seed), PastMade()
    begin = NOW - timedelta(hours=hours)
    for number, name in enumerate(names):
        past.all_nodes.append(NodeKnown(name, begin, NOW, NOW))
        _a_lane(past, chance, name, number, begin, quiet=number % 5 == 3)
    past.all_stints.sort(key=lambda one: one.claimed_at)
    past.all_samples.sort(key=lambda one: one.at)
    past.all_stranded.sort(key=lambda one: one.since)
    _moves(past, chance, names)
    _cycles(past, chance, begin)
    return past


def a_uid(chance: random.Random, at: datetime) -> str:
    return new_ulid(int(at.timestamp() * 1000), chance.randbytes(10))


def _a_lane(
    past: PastMade, chance: random.Random, name: str, number: int, begin: datetime, *, quiet: bool
) -> None:
    at, whole = begin, (NOW - begin).total_seconds()
    while at < NOW:
        took = s(chance.uniform(40, 420))
        end = min(at + took, NOW)
        gone = (at - begin).total_seconds() / whole
        stranded = quiet and 0.22 < gone < 0.4
        drained = number % 5 == 1 and gone > 0.8
        if not (stranded or drained):
            outcome = chance.choices(["completed", "failed"], [14, 1])[0]
            past.all_stints.append(Stint(
                name, a_uid(chance, at), 1, name, at, at, None if end == NOW else end,
                "" if end == NOW else outcome, "crash" if outcome == "failed" else "",
                DOMAINS[number % 5] if chance.random() < 0.7 else chance.choice(DOMAINS),
                chance.randint(1, 10), Decimal(str(round(chance.uniform(0.05, 1.2), 4))),
            ))  # fmt: skip
        depth = 0 if quiet and gone > 0.2 else max(0, int(9 * (1 - abs(gone - 0.5) * 2))
                                                   - 2 * number % 3)  # fmt: skip
        state = "draining" if drained else "running"
        idle_since = at if stranded else None
        counts = (0, 0, 1, 1) if stranded else (depth, 1, 1, 0)
        past.all_samples.append(Sample(name, at, end, state, "", *counts, idle_since))
        if stranded and (end - at).total_seconds() > 100:
            past.all_stranded.append(StrandedStretch(
                name, at + s(60), end, (end - at).total_seconds() - 60, "rule",
                "busy_node_is_busy", "iris", a_uid(chance, at)))  # fmt: skip
        at = end + s(2 if chance.random() < 0.97 else 300)


def _moves(past: PastMade, chance: random.Random, names: Sequence[str]) -> None:
    for stint in past.all_stints:
        if chance.random() > 24 / len(past.all_stints):
            continue
        busy = names[(names.index(stint.node) + 1) % len(names)]
        at = stint.claimed_at - s(4)
        past.all_moves.append(MoveSeen(
            at, stint.uid, busy, stint.node, "moved", "stolen", "", f"{stint.node} is idle",
            stint.priority, 1, a_uid(chance, at)))  # fmt: skip


def _cycles(past: PastMade, chance: random.Random, begin: datetime) -> None:
    number, at = 0, begin + s(10)
    while at < NOW:
        for sensor, took in (("fleet-health", 0.2), ("fleet-rebalance", 0.4)):
            number += 1
            blind = sensor == "fleet-rebalance" and 12 < number % 40 < 17
            moved = sum(at <= one.at < at + s(300) for one in past.all_moves)
            moved = moved if sensor == "fleet-rebalance" else 0
            outcome = "could_not_look" if blind else "done"
            kept = {"low_enough_priority": 9, "may_do_this_work": 5, "not_pinned": 1,
                    "cycle_has_room": 2} if sensor == "fleet-rebalance" and not blind else {}
            past.all_runs.append(RunSeen(
                number, sensor, at, "interval", outcome, "",
                "could not look: no queue could be read" if blind else f"{moved} moved", "",
                5, 5 * blind, moved, moved, 12, took, kept))  # fmt: skip
            past.kept[number] = _decisions(kept, chance, at)
            if sensor == "fleet-rebalance":
                past.all_moves = [replace(one, run=number) if at <= one.at < at + s(300) else one
                                  for one in past.all_moves]  # fmt: skip
        at += s(300)


def _decisions(kept: Mapping[str, int], chance: random.Random, at: datetime) -> list[KeptSeen]:
    """As a run writes them: of rules that a node itself goes by, a count and no uid."""
    of_node, of_hub = "iris says so of its own tasks", "this cycle moves 10 tasks"
    room = kept.get("cycle_has_room", 0)
    return [KeptSeen("iris", rule, count, of_hub if rule == "cycle_has_room" else of_node)
            for rule, count in kept.items()] + [
        KeptSeen("iris", "cycle_has_room", 1, of_hub, a_uid(chance, at)) for _ in range(room)
    ]  # fmt: skip
