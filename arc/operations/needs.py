"""Lists what waits for a person: the same list for `arc status` and for the page."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from agent_node import __version__
from agent_node.queries import UNMET_COUNTED
from agent_node.reports import DAEMON_STOPPED, NO_PROGRAM
from agent_node.strict import JsonValue
from agent_node.text import counted
from agent_node.ulid import is_ulid
from arc.beside import Beside
from arc.circling import circles_now
from arc.decisions.domains import Role, nobody_has
from arc.decisions.draining import DRAINING, pinned_there
from arc.decisions.health import judge_health
from arc.decisions.view import NodeSeen, NodeUnseen
from arc.doubted import doubted_ends
from arc.journal_disk import disk_failed_lately, word_in_the_way
from arc.looking import INBOX, Look
from arc.lost_files import lost_files_now
from arc.replaced import replaced_now
from arc.survey import DEADLINE_S
from arc.unfound import unfound_now

from .dead_kinds import kinds_of, named
from .graphs_now import failed_lately, graphs_of, not_followed
from .leftovers import leftovers
from .nobodys_now import ask_inbox, nobodys_now
from .notices import untold
from .outranked import outranked

if TYPE_CHECKING:
    from arc.hub import Hub

NO_AGENT = "no agent here has"  # of the hub's own queue, where nothing is ever run
FAILS = "fails again and again"  # as a node says it of one of its agents
SILENT_S = 2 * DEADLINE_S
NO_DAEMON = "no daemon has run here yet"
_LIVE = {"dispatcher_runs", "node_answers"}
_TOLD_ANEW = _LIVE | {"obeys_this_hub"}
_SAID_BY_THE_NODE = {"nobody_is_waited_for", "not_quarantined"}  # in its own words, above
# Rules under which a node is unseen because somebody has to decide something.
_FOR_A_PERSON = {"host_key", "login", "no_node", "cannot_serve", "wrong_node", "unreadable"}
_TRY = {"host_key": "arc explain ARC-SSH-HOSTKEY", "login": "arc explain ARC-SSH-LOGIN"}


async def ask_beside(seen: Look) -> Beside:
    """What the reports of this look do not hold, asked of who has any; the hub remembers it, for a
    page that asks nobody.
    """
    hub, names = seen.hub, stores_with_graphs(seen)
    kinds = await kinds_of(seen, needs_you(seen))
    graphs, unread = await graphs_of(seen.links, names)
    hub.beside = Beside(kinds, graphs, unread, await ask_inbox(seen))
    return hub.beside


def stores_with_graphs(seen: Look) -> frozenset[str]:
    """Who did not answer the survey is not asked again; who has none is not asked at all."""
    return frozenset(one.name for one in seen.whole.seen
                     if one.name in seen.links and one.report.graphs_count != 0)  # fmt: skip


async def all_needs(hub: Hub, nodes: list[JsonValue], beside: Beside) -> list[JsonValue]:
    """Everything that waits for a person, the worst first. `nodes` is what `needs_you` says."""
    return [*complaints(hub), *disk_failed_lately(hub), *word_in_the_way(hub),
            *replaced_now(hub), *named(nodes, beside.named), *await leftovers(hub),
            *nobodys_now(beside),
            *doubted_ends(hub), *circles_now(hub), *unfound_now(hub),
            *lost_files_now(hub), *failed_lately(hub, beside), *not_followed(hub),
            *untold(hub)]


def needs_you(seen: Look) -> list[JsonValue]:
    """What the nodes' reports and their health say: where, what, and what to type."""
    said = outranked(seen)
    said += [
        {"node": node.name, "text": node.because,
         "try": _TRY.get(node.rule, f"arc doctor --node {node.name}")}
        for node in seen.view.unseen if node.rule in _FOR_A_PERSON
    ]  # fmt: skip
    failing = {one.node for one in seen.hub.journal.nodes.standing()
               if one.rule == "work_succeeds"}  # fmt: skip
    roles = seen.hub.roles()
    for one in (*seen.view.seen, *([seen.inbox] if isinstance(seen.inbox, NodeSeen) else [])):
        role = roles.get(one.name, Role())
        said += [{"node": one.name, "text": text, "try": what_to_try(role, one.name, text)}
                 for text in one.report.needs_you
                 if DAEMON_STOPPED not in text  # told below, with what to type there
                 and (one.name != INBOX or not (NO_AGENT in text or NO_DAEMON in text))
                 and not (FAILS in text and one.name in failing)]  # fmt: skip
    said += _for_nobody(seen)
    said += _never_drained(seen)
    said += _troubles(seen)
    said += _undecided(seen)
    return said


def _undecided(seen: Look) -> list[JsonValue]:
    """Moves that the last cycle could not end, and that still are none: a line for each pair of
    nodes and reason, with the first task.
    """
    doubts = {one.xfer for node in seen.whole.seen for one in node.report.doubts}
    pairs: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for one in seen.hub.undecided.values():
        if one.xfer in doubts:
            pairs[one.giver, one.taker, one.because].append(one.uid)
    return [{"node": giver, "try": "arc doubts list",
             "text": f"{counted(len(uids), 'move')} to {taker} cannot be ended without you "
             f"({min(uids)}{', …' * (len(uids) > 1)}): {because}"}
            for (giver, taker, because), uids in sorted(pairs.items())]  # fmt: skip


def _never_drained(seen: Look) -> list[JsonValue]:
    """Which drains cannot end by themselves: what is pinned there no drain moves, and a node that
    drains starts nothing.
    """
    stuck = [(one.name, one.report.state, many) for one in seen.view.seen
             if one.report.state in DRAINING and (many := pinned_there(one))]  # fmt: skip
    return [{"node": name, "try": f"arc tasks list --node {name}",
             "text": f"it is {state}, and {counted(many, 'waiting task')} pinned there "
             f"neither start{'s' * (many == 1)} nor leave{'s' * (many == 1)}: move, unpin or "
             f"cancel {'it' if many == 1 else 'them'}"}
            for name, state, many in stuck]  # fmt: skip


def _for_nobody(seen: Look) -> list[JsonValue]:
    """What waits in the hub's own queue for what no node has; a node says that of itself."""
    if not isinstance(seen.inbox, NodeSeen):
        return []
    view, unmet = seen.view, seen.inbox.report.unmet_needs
    said = [(number, nobody_has(needs, view.seen, view.unheard)) for needs, number in unmet]
    return [{"node": INBOX, "try": "arc tasks list --node inbox", "text": f"{number} "
             f"{'or more ' if number >= UNMET_COUNTED else ''}READY, but {because}"}
            for number, because in said if because is not None]  # fmt: skip


def complaints(hub: Hub) -> list[JsonValue]:
    """What is wrong with fleet.yaml since it was changed; nothing: it is obeyed."""
    if not hub.complaint:
        return []
    return [{"node": hub.settings.file.name, "try": "arc config check",
             "text": f"the hub runs on with what it knew, for: {hub.complaint}"}]  # fmt: skip


def _troubles(seen: Look) -> list[JsonValue]:
    """Which nodes do not answer, or have no daemon, as it is now; the rest as the last run for
    health told it. Nothing is said twice, and nothing that is over.
    """
    hub = seen.hub
    unseen = {node.name: node for node in seen.view.unseen}
    told = {node.name: node.report.needs_you for node in seen.view.seen}
    judged = judge_health(seen.view, seen.facts, hub.settings.health, version=__version__)
    found = [
        (node.node, one.rule, one.because) for node in judged for one in node.troubles
        if one.rule in _LIVE and (one.alarm or _is_silent(seen, unseen.get(node.node)))
    ]  # fmt: skip
    found += [(alert.node, alert.rule, alert.because) for alert in hub.journal.nodes.standing()
              if alert.rule not in _TOLD_ANEW and alert.node in {*hub.roles(), INBOX}]  # fmt: skip
    said: list[JsonValue] = []
    for node, rule, because in found:
        if rule in _SAID_BY_THE_NODE and node in told:
            continue
        if node in unseen and unseen[node].rule in {*_FOR_A_PERSON, "suspended"}:
            continue  # said above, or by whoever suspended it
        text, command = because, f"arc why --node {node}"
        if rule == "dispatcher_runs":
            if any(NO_DAEMON in one for one in told[node]):
                continue
            text, command = _stopped(seen, node), _start(hub, node)
        elif node in unseen:
            command = f"arc doctor --node {node}"
        elif rule == "work_succeeds":
            command = f"arc dead list --node {node}   ·   {command}"
        said.append({"node": node, "text": text, "try": command})
    return said


def _is_silent(seen: Look, node: NodeUnseen | None) -> bool:
    """Whether a node was asked and did not answer for longer than a slow answer takes. Nobody is
    sent a notice for that yet; who looks at the fleet now is told what its table says anyway.
    """
    facts = seen.facts.get(node.name) if node is not None and node.rule != "not_asked" else None
    return facts is not None and (facts.unseen_s or 0.0) >= SILENT_S


def _stopped(seen: Look, name: str) -> str:
    node = seen.view.node(name)
    waits = node.report.pending_count if isinstance(node, NodeSeen) else 0
    return f"its daemon does not run; {counted(waits, 'task')} waiting there" if waits else (
        "its daemon does not run, so nothing starts there")


def _start(hub: Hub, node: str) -> str:
    return hub.roles().get(node, Role()).how_to_start(node)


def what_to_try(role: Role, node: str, text: str) -> str:
    """What to type first about a sentence in which a node asks for a person."""
    if NO_DAEMON in text:
        return role.how_to_start(node)
    if NO_PROGRAM in text:
        return f"on {node}: {role.typed('doctor')}"
    if FAILS in text:
        return _what_fails(node, text)
    for word, command in _BY_WORD.items():
        if word in text:
            return command
    return f"arc nodes show {node}" if node != INBOX else "arc tasks list --node inbox"


def _what_fails(node: str, text: str) -> str:
    """What the last task that failed there printed, where the node names it."""
    failed = next(filter(is_ulid, text.split()), None)
    read = f"arc nodes logs {node} {failed} --stderr   ·   " if failed else ""
    return f"{read}arc dead list --node {node}"


_BY_WORD = {
    " dead:": "arc dead list",
    " parked:": "arc tasks list --state PARKED",
    " held ": "arc doubts list",
    " wait for money": "arc budget",
    "quarantined": "arc explain quarantined",
}


