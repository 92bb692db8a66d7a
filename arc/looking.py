"""Looks at the fleet for one cycle: every node's report, and what earlier moves left in doubt."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonObject

from .decisions.failing import (
    End,
    NodeFactsSeen,
    attracts_no_work,
    breaker_of,
    counted,
    last_of_each,
)
from .decisions.memory import Memory
from .decisions.usual import lefts_of, runs_for
from .decisions.view import FleetView, NodeSeen, NodeUnseen
from .displaced import displaced_on
from .journal_history import Usual
from .lateness import Lateness
from .links import Link
from .remembering import aged, remember
from .settling import Settlement, settle
from .survey import DEADLINE_S, survey
from .tally import Tally

if TYPE_CHECKING:
    from .hub import Hub

INBOX = "inbox"
FRESH_S = 1.0  # a full node that said so lately, and no news since, is asked for its queue alone


@dataclass(frozen=True)
class Look:
    """The fleet as one cycle saw it. `view` has every node of fleet.yaml, `inbox` is beside it."""

    hub: Hub
    tally: Tally
    view: FleetView
    inbox: NodeSeen | NodeUnseen
    facts: Mapping[str, NodeFactsSeen]
    memory: Memory
    settled: tuple[Settlement, ...] = ()
    unasked: frozenset[str] = frozenset()  # with waiting work, and taken at what they said lately

    @property
    def links(self) -> Mapping[str, Link]:
        """The hub's links, counted for this cycle."""
        return self.tally.links

    @property
    def whole(self) -> FleetView:
        """With the inbox among the nodes: it gives and takes as they do."""
        if isinstance(self.inbox, NodeSeen):
            return replace(self.view, seen=(*self.view.seen, self.inbox))
        return replace(self.view, unseen=(*self.view.unseen, self.inbox))


async def look(
    hub: Hub, *, woken: Collection[str] = (), deadline_s: float = DEADLINE_S,
    late: Lateness | None = None, known: Lateness | None = None, for_queues: bool = False,
) -> Look:  # fmt: skip
    """What every node says now, or why it cannot be known; `late` and `known` as in a survey.

    With `woken`, only these nodes, those with waiting work and those with news are asked; of the
    others stands what they said last, with its age. `for_queues`: full nodes with waiting work
    whose queues are asked next are taken at what they said within `FRESH_S`. Suspended nodes are
    not asked at all.
    """
    tally = Tally(hub.links, hub.clock)
    with _news_of(hub) as stirred:
        fresh = _fresh(hub, {*woken} | stirred) if for_queues and woken else {}
        names = _to_ask(hub, woken, stirred) - fresh.keys()
        links = {name: tally.links[name] for name in names}
        found = await survey(links, roles=hub.roles(), clock=hub.clock, deadline_s=deadline_s,
                             late=late, known=known, prompt=fresh)  # fmt: skip
        remember(hub, found)
    return replace(_look(hub, tally, found), unasked=frozenset(fresh))


@contextmanager
def _news_of(hub: Hub) -> Iterator[set[str]]:
    """Who has news, by this look and by those that are under way: until it is over what was known
    of them is not true, and if it fails they still have them.
    """
    mine, hub.stirred = hub.stirred, set()
    hub.stirring.append(mine)
    try:
        yield set[str]().union(*hub.stirring)
    except BaseException:
        hub.stirred |= mine
        raise
    finally:
        hub.stirring = [one for one in hub.stirring if one is not mine]


def _changed_by(settled: Sequence[Settlement], seen: Look) -> set[str]:
    """Nodes on which a settled doubt made a task wait, or took a copy away."""
    done = {one.xfer for one in settled if one.outcome == "settled"}
    return {
        name
        for node in seen.whole.seen
        for doubt in node.report.doubts
        if doubt.xfer in done and doubt.state in ("ESCROW", "HELD")
        for name in (node.name, doubt.peer)
    }


def _look(hub: Hub, tally: Tally, found: FleetView) -> Look:
    inbox = found.node(INBOX)
    assert inbox is not None, "the inbox is always asked"
    view = _with_the_others(hub, hub.last_view or found)
    facts = facts_of(hub, view)
    return Look(hub, tally, view, inbox, facts, memory_of(hub, view, facts))


async def look_and_settle(
    hub: Hub, *, woken: Collection[str] = (), for_queues: bool = False
) -> Look:
    """The same, with what earlier moves left in doubt ended first; only for who may move tasks.

    Nobody is waited for who is much later than the others: a person's look waits, a cycle does not.
    """
    _hear_late(hub)
    seen = await look(hub, woken=woken, late=hub.late, for_queues=for_queues)
    settled = await settle(seen.links, seen.whole)
    hub.undecided = _undecided(settled, hub.undecided)
    names = _changed_by(settled, seen) & seen.links.keys()
    if not names:
        return replace(seen, settled=settled)
    # What was settled changed the counts; a plan needs them as they are now.
    again = await survey({name: seen.links[name] for name in {*names, INBOX}}, roles=hub.roles(),
                         clock=hub.clock, late=hub.late)  # fmt: skip
    remember(hub, again)
    return replace(_look(hub, seen.tally, again), settled=settled)


def _undecided(
    settled: Sequence[Settlement], before: Mapping[str, Settlement]
) -> dict[str, Settlement]:
    """What takes a person, by xfer; who cannot be asked now has not ended what did before."""
    said = ((one, before.get(one.xfer) if one.outcome == "left" else one) for one in settled)
    return {one.xfer: known for one, known in said
            if known is not None and known.outcome == "needs_person"}  # fmt: skip


def _hear_late(hub: Hub) -> None:
    """Who answered after its cycle is asked again; what became of the question is written down."""
    came, news = hub.late.take()
    hub.stirred |= came
    for one in news:
        fields: JsonObject = {"took_ms": round(1000 * one.took_s), "because": one.because}
        hub.journal.runs.log(one.event, node=one.node, fields=fields)


def facts_of(hub: Hub, view: FleetView) -> dict[str, NodeFactsSeen]:
    """What the hub remembers of each node beside its report."""
    limits, met, now = hub.settings.health, hub.journal.nodes.met(), hub.clock.now()
    facts: dict[str, NodeFactsSeen] = {}
    nodes: tuple[NodeSeen | NodeUnseen, ...] = (*view.seen, *view.unseen)
    worked = hub.journal.nodes.with_ends(node.name for node in nodes)
    for node in nodes:
        some = node.name in worked  # of the others nothing has to be read
        ended = hub.journal.nodes.ended(node.name, within_s=limits.failing_within_s) if some else ()
        well = last_of_each((one.uid, one.well) for one in ended)
        longest = hub.longest.get(node.name)
        last = met.get(node.name)
        facts[node.name] = replace(
            _with_trial(hub, node.name, counted(well), now) if some else counted(well),
            longest_running_s=longest[1] if longest else None,
            longest_running=longest[0] if longest else "",
            quiet_s=(now - ended[-1].at).total_seconds() if ended else None,
            unseen_s=(now - last.at).total_seconds() if last else None,
            other_hub=(displaced_on(node, hub.links, hub.lease.term)
                       if isinstance(node, NodeSeen) else ""),
        )  # fmt: skip
    return facts


def _with_trial(hub: Hub, node: str, facts: NodeFactsSeen, now: datetime) -> NodeFactsSeen:
    """The same, with how its breaker stands; what it was given is asked only on a trial."""
    ends = hub.journal.nodes.ends_of(node)
    if all(one.well for one in ends):
        return facts
    ends_seen = (End(one.at, one.uid, one.well) for one in ends)
    known = breaker_of(ends_seen, hub.settings.health)
    if known.until is None:
        return facts
    again_s = (known.until - now).total_seconds()
    given = hub.journal.nodes.given_since(node, known.until) if again_s <= 0 else None
    return replace(facts, again_s=again_s, window_s=known.window_s,
                   given_s=(now - given).total_seconds() if given else None)  # fmt: skip


def memory_of(hub: Hub, view: FleetView, facts: Mapping[str, NodeFactsSeen]) -> Memory:
    """What earlier cycles leave for a plan to consider."""
    limits = hub.settings.steal
    refused = hub.journal.nodes.refused(within_s=limits.ask_again_s)
    judged = {
        node.name: attracts_no_work(node, facts.get(node.name), hub.settings.health)
        for node in view.seen
    }
    usual = hub.journal.history.usual() if limits.swift else None  # arc0 asks no such thing
    return Memory(
        typical_s=usual.typical_s if usual else {},
        running_left_s=_running_left_s(hub, view, usual) if usual else {},
        runs_for_s=runs_for(view.seen) if usual else {},
        refused_s=refused,
        no_work={name: because for name, because in judged.items() if because is not None},
        trials=frozenset(name for name, known in facts.items() if known.on_trial),
        taken=_taken(hub) if hub.settings.on_idle else {},
    )


def _running_left_s(hub: Hub, view: FleetView, usual: Usual) -> dict[str, float]:
    return lefts_of(view.seen, usual.running, usual.typical_s, now=hub.clock.now(),
                    prior_s=hub.settings.steal.default_task_s,
                    heard_at=hub.journal.history.heard_at)  # fmt: skip


def _taken(hub: Hub) -> dict[str, int]:
    """Steals and retries to each node within the last interval: where any idle node may start a
    cycle, the caps of one cycle count over an interval that slides.
    """
    entry = hub.settings.sensors.get("fleet-rebalance")
    since = hub.clock.now() - timedelta(seconds=entry.every_s if entry else 300.0)
    return hub.journal.nodes.taken(since, ("stolen", "retried"))


def _to_ask(hub: Hub, woken: Collection[str], stirred: set[str]) -> set[str]:
    if not woken or hub.last_view is None:
        return set(hub.links)
    waiting = {node.name for node in hub.last_view.seen if node.report.pending_count}
    return (({*woken} | waiting | stirred) & hub.links.keys()) | {INBOX}


def _fresh(hub: Hub, but: set[str]) -> dict[str, float]:
    """Full nodes with waiting work that answered a moment ago, `but` these; how long each took."""
    if hub.last_view is None:
        return {}
    since_s = hub.clock.boottime() - hub.last_look_s
    return {
        node.name: node.took_s
        for node in hub.last_view.seen
        if node.report.pending_count and not node.report.free_slots and node.name not in but
        and node.name != INBOX and node.age_s + since_s <= FRESH_S
    }


def remembered(hub: Hub) -> tuple[FleetView, NodeSeen | None]:
    """Every node of fleet.yaml as it was seen last, with its age, and the hub's own queue.

    Nobody is asked. None: the queue was not looked at yet, or could not be.
    """
    now = hub.clock.now()
    last = hub.last_view
    found = aged(last, hub.clock.boottime() - hub.last_look_s) if last else FleetView(now)
    inbox = found.node(INBOX)
    return _with_the_others(hub, found), inbox if isinstance(inbox, NodeSeen) else None


def _with_the_others(hub: Hub, last: FleetView) -> FleetView:
    """Every node of fleet.yaml by name: seen now, seen before, or why not; without the inbox."""
    every: tuple[NodeSeen | NodeUnseen, ...] = (*last.seen, *last.unseen)
    known = {one.name: one for one in every}
    suspended = hub.journal.words.suspended()
    seen: list[NodeSeen] = []
    unseen: list[NodeUnseen] = []
    roles = hub.roles()
    for name in sorted(roles):
        node = known.get(name)
        if name in suspended:
            word = suspended[name]
            because = f"suspended by {word.by}" + (f": {word.reason}" if word.reason else "")
            because += f", until {iso(word.until)}" if word.until else ""
            unseen.append(NodeUnseen(name, "suspended", because, "", roles[name]))
        elif isinstance(node, NodeSeen):
            seen.append(replace(node, role=roles[name]))
        else:
            unseen.append(node or NodeUnseen(name, "not_asked", "not asked yet", "", roles[name]))
    return FleetView(last.at, tuple(seen), tuple(unseen))
