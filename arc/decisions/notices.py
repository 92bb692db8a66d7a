"""Says what happened that a person should be told, and when each receiver is due; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent_node.clock import iso
from agent_node.strict import JsonObject, JsonValue
from agent_node.text import safe_text

DEAD, PARKED, SILENT = "dead_letter", "parked", "node_silent"
FAILING, GRAPH, BUDGET = "failing", "graph_failed", "over_budget"
NOT_FOLLOWED = "graph_not_followed"
_OF_EVENT = {"task_dead_lettered": DEAD, "task_parked": PARKED, "dag_failed": GRAPH,
             "dag_not_followed": NOT_FOLLOWED}  # fmt: skip
_OF_RULE = {"node_answers": SILENT, "dispatcher_runs": SILENT, "work_succeeds": FAILING}
TROUBLES = (SILENT, FAILING)  # what an alert of a node is told as
BUDGET_RULE = "over_budget"
TEXT_MAX = 300
TITLE_MAX = 120
SHOWN_MAX = 50  # things of one kind that a notice names; the others are counted
FIRST_AGAIN_S, LAST_AGAIN_S = 30.0, 3600.0


@dataclass(frozen=True)
class Happened:
    """One thing to be told once: `thing` is the same however often it is looked at."""

    kind: str
    thing: str
    node: str
    text: str
    at: datetime
    id: int = 0  # in the journal; 0: not there yet


def of_events(
    node: str, life: str, events: Iterable[tuple[JsonObject, datetime]]
) -> Iterator[Happened]:
    """What these events of one life of a node say that a person should hear."""
    for event, at in events:
        kind = _OF_EVENT.get(str(event.get("event")))
        if event.get("state") == "PENDING" and _blocked_by_budget(event):
            kind = BUDGET
        if kind is None:
            continue
        name, because = _name(event), event.get("because")
        if kind == NOT_FOLLOWED:
            name += ": it completed, and the graph that follows was not submitted"
        text = f"{name}: {because}" if isinstance(because, str) and because else name
        thing = f"{node}:{at.date()}" if kind == BUDGET else f"{node}:{life}:{event.get('seq')}"
        yield Happened(kind, thing, node, safe_text(text, TEXT_MAX), at)


def _name(event: JsonObject) -> str:
    """The uid; of a graph with its title, cut so that what became of it is never cut off."""
    uid, said = str(event.get("uid") or ""), event.get("data")
    title = said.get("title") if isinstance(said, dict) else None
    return f'{uid} "{title[:TITLE_MAX]}"' if isinstance(title, str) and title else uid


def _blocked_by_budget(event: JsonObject) -> bool:
    because = event.get("because")
    return isinstance(because, str) and because.startswith(BUDGET_RULE)


def of_alert(node: str, rule: str, because: str, at: datetime) -> Happened | None:
    """A trouble of a node, as it was told when it began; None: nobody is told of such."""
    kind = _OF_RULE.get(rule)
    if kind is None:
        return None
    text = safe_text(because.removeprefix(f"{node}: "), TEXT_MAX)
    return Happened(kind, f"{node}:{rule}:{at.isoformat()}", node, text, at)


def is_due(
    *, waiting: int, told_at: datetime | None, again_at: datetime | None, at_most_s: float,
    now: datetime,
) -> bool:  # fmt: skip
    """Whether a receiver gets its notice now: something waits for it, and it was not told, and not
    tried in vain, too short a time ago. A clock that was set back keeps nobody waiting.
    """
    if not waiting:
        return False
    if again_at is not None:
        return now >= again_at or again_at - now > timedelta(seconds=LAST_AGAIN_S)
    return told_at is None or not timedelta(0) <= now - told_at < timedelta(seconds=at_most_s)


def again_after_s(tries: int) -> float:
    """How long to wait after so many tries in vain."""
    return float(min(FIRST_AGAIN_S * 2 ** min(tries - 1, 20), LAST_AGAIN_S))


def document_of(
    things: Sequence[Happened], *, fleet: str, hub: str, sink: str, at: str, test: bool = False
) -> JsonObject:
    """The notice as every receiver gets it: grouped by kind, each with the first of its things."""
    kinds = sorted({one.kind for one in things})
    groups: list[JsonValue] = [_group(kind, [one for one in things if one.kind == kind])
                               for kind in kinds]  # fmt: skip
    first, last = (things[0].id, things[-1].id) if things else (0, 0)
    return {
        "schema": "arc.notice/1", "id": f"{sink}:{first}-{last}", "fleet": fleet, "hub": hub,
        "receiver": sink, "at": at, "test": test, "count": len(things), "groups": groups,
        "text": text_of(things, fleet=fleet, test=test),
    }  # fmt: skip


def _group(kind: str, things: Sequence[Happened]) -> JsonObject:
    return {
        "kind": kind, "count": len(things),
        "things": [{"node": one.node, "text": one.text, "at": iso(one.at)}
                   for one in things[:SHOWN_MAX]],
    }  # fmt: skip


def text_of(things: Sequence[Happened], *, fleet: str, test: bool) -> str:
    """The same for people: a line a kind, then the first things of each."""
    if test:
        return f"{fleet}: this is a test; whoever reads it is told when something needs a person"
    lines: list[str] = []
    for kind in sorted({one.kind for one in things}):
        some = [one for one in things if one.kind == kind]
        lines.append(f"{fleet}: {len(some)} x {kind}")
        lines += [f"  {one.node}: {one.text}" for one in some[:SHOWN_MAX]]
        if len(some) > SHOWN_MAX:
            lines.append(f"  and {len(some) - SHOWN_MAX} more")
    return "\n".join(lines)
