"""Turns what a cycle saw, planned and did into the one report that is kept of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from agent_node.text import counted
from arc.decisions.explain import Kept, KeptCount, NodeVerdict
from arc.decisions.retrying import RULE as RETRY_ELSEWHERE
from arc.decisions.view import NodeSeen
from arc.looking import Look
from arc.sensor import Decided, Moved, SensorReport, skipped
from arc.settlements import settled_of
from arc.transfer import Outcome

if TYPE_CHECKING:
    from arc.hub import Hub

KEPT_MAX = 300  # tasks whose reason a run keeps one by one; the counts have all of them
REQUESTS_MAX = 15  # a cycle at five nodes; a cycle that needs more says what for


def paused(hub: Hub, sensor: str) -> SensorReport | None:
    """The report of a run that a person's word keeps from moving anything; None: none does."""
    word = hub.journal.words.fleet_paused()
    if word is None:
        return None
    return skipped(sensor, f"fleet is paused by {word.by}{word.reason and f': {word.reason}'}")


RULES_OF = {"retried": RETRY_ELSEWHERE}  # by which rule a move was made that is no usual one


def moved_of(seen: Look, outcomes: Iterable[Outcome]) -> tuple[Moved, ...]:
    """The moves with both ends as they were when they were seen."""
    lives = {node.name: node.report.incarnation for node in _nodes(seen)}
    return tuple(
        Moved(
            xfer=one.steal.xfer, uid=one.steal.task.uid, busy=one.steal.busy, idle=one.steal.idle,
            outcome=one.outcome, why=one.steal.why, priority=one.steal.task.priority,
            rule=one.rule or RULES_OF.get(one.steal.why, ""),
            because=one.because or one.steal.because,
            busy_incarnation=lives.get(one.steal.busy, ""),
            idle_incarnation=lives.get(one.steal.idle, ""),
        )
        for one in outcomes
    )  # fmt: skip


def decisions_of(counts: Iterable[KeptCount], kept: Sequence[Kept]) -> tuple[Decided, ...]:
    """Every rule's count, then the first tasks one by one."""
    return (
        *(Decided(one.node, one.rule, one.count, one.because) for one in counts),
        *(Decided(one.node, one.objection.rule, 1, one.objection.because, one.task.uid)
          for one in islice(kept, KEPT_MAX)),
    )  # fmt: skip


@dataclass(frozen=True)
class Planned:
    """What a cycle meant to do, and every reason that it had not to; `nothing` says why at all."""

    moves: int
    counts: Sequence[KeptCount]
    kept: Sequence[Kept]
    nodes: Sequence[NodeVerdict]
    nothing: str | None = None
    caps: Sequence[str] = ()


def report_of(
    sensor: str, seen: Look, plan: Planned, outcomes: Sequence[Outcome]
) -> SensorReport:
    """One cycle that may have moved tasks. Where no node, or no queue, could be read, it could not
    look: that is never the same as having found nothing.
    """
    nothing, unread = plan.nothing, _unread(plan)
    moved = sum(one.outcome == "moved" for one in outcomes)
    blind = not seen.view.seen and bool(seen.view.unseen)
    blind = blind or (bool(unread) and not any(one.gives for one in plan.nodes))
    outcome = "could_not_look" if blind else "skipped" if nothing and not outcomes else "done"
    return SensorReport(
        sensor, outcome, _summary(seen, outcomes, plan, blind=blind),
        looked=len(seen.view.seen), unseen=len(seen.view.silent), decided=plan.moves, acted=moved,
        requests=seen.tally.requests, skipped=nothing if outcome == "skipped" else None,
        details=details_of(seen, plan), decisions=decisions_of(plan.counts, plan.kept),
        moves=(*settled_of(seen.settled), *moved_of(seen, outcomes)),
        cut=max(len(plan.kept) - KEPT_MAX, 0),
    )  # fmt: skip


def _summary(
    seen: Look, outcomes: Sequence[Outcome], plan: Planned, *, blind: bool
) -> str:
    """One line: counts that add up, what could not be seen, and what cost more than it should."""
    became = Counter(one.outcome for one in outcomes)
    parts = [
        f"{plan.moves} planned, {became['moved']} moved" if plan.moves or not plan.nothing
        else f"skipped: {plan.nothing}"
    ]  # fmt: skip
    unread = _unread(plan)
    if blind:
        what = "no queue could be read" if unread else "no node answered"
        parts = [f"could not look: {what}"]
    parts += [f"{counted(len(unread), 'queue')} not read ({', '.join(unread[:5])})"] * bool(unread)
    parts += [f"{became['kept']} kept at the last step"] if became["kept"] else []
    parts += [f"{became['in_doubt']} in doubt"] if became["in_doubt"] else []
    settled = sum(one.outcome == "settled" for one in seen.settled)
    person = sum(one.outcome == "needs_person" for one in seen.settled)
    parts += [f"{counted(settled, 'doubt')} settled"] if settled else []
    parts += [f"{counted(person, 'doubt')} for a person"] if person else []
    unseen = [node.name for node in seen.view.silent]
    parts += [f"{counted(len(unseen), 'node')} not seen ({', '.join(unseen[:5])})"] * bool(unseen)
    return "; ".join([*parts, *costs(seen)])


def _unread(plan: Planned) -> list[str]:
    """Busy nodes whose queue could not be looked into."""
    return [*dict.fromkeys(
        one.name for one in plan.nodes
        if one.objection is not None and one.objection.rule == "queue_was_read"
    )]  # fmt: skip


def costs(seen: Look) -> list[str]:
    """Why a cycle took more requests or longer ones than a fleet of five should need."""
    slow, asked = seen.tally.slow, seen.tally.asked
    said = [f"{one.node} took {one.took_s:.1f} s for {one.do}" for one in slow[:3]]
    if seen.tally.requests > REQUESTS_MAX:
        most = ", ".join(f"{count} {do}" for do, count in asked.most_common(3))
        rest = asked.total() - sum(count for _, count in asked.most_common(3))
        most += f", {rest} others" if rest else ""
        said.append(f"{seen.tally.requests} requests ({most})")
    return said


def details_of(seen: Look, plan: Planned) -> JsonObject:
    """What `show RUN` prints beside moves and reasons: every node, every rule's count, the cost."""
    rules: Counter[str] = Counter()
    for one in plan.counts:
        rules[one.rule] += one.count
    verdicts = {verdict.name: verdict for verdict in plan.nodes}
    listed: list[JsonValue] = [
        {**_facts_of(node), **_verdict_of(verdicts.get(node.name))} for node in seen.view.seen
    ]
    listed += [
        {"node": node.name, "part": "out", "rule": node.rule, "because": node.because,
         "code": node.code}
        for node in seen.view.unseen
    ]  # fmt: skip
    return {
        "nodes": listed,
        "kept": dict(rules.most_common()),
        "caps": list(plan.caps),
        "doubts": [
            {"xfer": one.xfer, "uid": one.uid, "giver": one.giver, "taker": one.taker,
             "outcome": one.outcome, "rule": one.rule, "because": one.because}
            for one in seen.settled[:100]
        ],
        **seen.tally.told(),
    }  # fmt: skip


def _facts_of(node: NodeSeen) -> JsonObject:
    report = node.report
    return {
        "node": node.name, "state": report.state, "idle": report.idle,
        "idle_since": report.idle_since, "pending": report.pending_count,
        "running": report.running_count, "free_slots": report.free_slots,
        "age_s": round(node.age_s, 3), "took_s": round(node.took_s, 3),
    }  # fmt: skip


def _verdict_of(verdict: NodeVerdict | None) -> JsonObject:
    if verdict is None:
        return {"part": "neither"}
    why = verdict.objection
    return {"part": verdict.part, "rule": why.rule if why else "",
            "because": why.because if why else ""}  # fmt: skip


def _nodes(seen: Look) -> tuple[NodeSeen, ...]:
    inbox = (seen.inbox,) if isinstance(seen.inbox, NodeSeen) else ()
    return (*seen.view.seen, *inbox)


def refusals_of(outcomes: Iterable[Outcome]) -> list[tuple[str, str, str]]:
    """Whom not to ask again so soon for which task: takers that refused it at the last step, and
    by which rule. A no of the giver, a lease that ended and a link that failed are none of theirs.
    """
    return [
        (one.steal.task.uid, one.steal.idle, one.rule)
        for one in outcomes if one.refused_by == one.steal.idle
    ]  # fmt: skip
