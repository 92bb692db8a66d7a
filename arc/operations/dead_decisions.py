"""Collects what people decided about a dead letter, on whichever node it lay when they did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_node.queries import Shown
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import State
from arc.asking import read_shown, reading
from arc.custody import NOT_FOUND
from arc.dead_answers import MONEY_MAX, Letter
from arc.errors import NodeRefused

from .everybody import Answers, ask_all
from .finding import find_task

if TYPE_CHECKING:
    from arc.hub import Hub

DEAD = str(State.DEAD_LETTERED)
REVIEWED = "task_reviewed"
# What a person's word made of a task, by the event that tells of it.
_WHAT = {"task_retried": "retried", "task_set": "edited", "task_completed": "done",
         "task_cancelled": "cancelled", "task_failed": "failed",
         "task_stopping": "stopped"}  # fmt: skip
_RESOLVED = "resolved: "  # as a node begins the reason of what was resolved
Moment = tuple[str, str, str]  # what, on which node, when: the same in an event and on record


@dataclass(frozen=True)
class Decisions:
    """What was decided, in the order of the nodes' clocks, and who could not be heard about it."""

    listed: tuple[JsonObject, ...]
    unheard: tuple[str, ...]  # a sentence for each node where it ran and that was not heard
    since: bool | None  # whether anybody acted since it died; None: it lives, or nobody can know


async def decisions_about(hub: Hub, letter: Letter) -> Decisions:
    """Who decided what, where, when and why, and after which attempt. What was decided since then
    counts, too: a task that was cancelled may have been retried.

    A node's record keeps what was decided of the last death there alone: its events know of each,
    as long as they are kept.
    """
    answers = await _shown_by(hub, letter.task.uid, hub.links)
    told = _from_events(answers.said)
    for moment, one in _from_records(answers.said).items():
        told[moment] = {"after_attempt": None, **told.get(moment, {}), **one}
    knows_none = {at for at, error in answers.failed.items()
                  if isinstance(error, NodeRefused) and error.rule == NOT_FOUND}  # fmt: skip
    ran_on = {str(one["node"]) for one in letter.attempts if one.get("node")}
    unheard = tuple(f"what was decided on {name} is not known: it was not heard"
                    for name in sorted(ran_on - answers.said.keys() - knows_none))  # fmt: skip
    listed = tuple(sorted(told.values(), key=lambda one: str(one["at"])))
    heard = letter.is_dead and letter.node in answers.said
    return Decisions(listed, unheard, _acted(letter, listed) if heard else None)


def _acted(letter: Letter, decisions: Iterable[JsonObject]) -> bool:
    """Of the decisions on the node where it died, those about an earlier death came before its last
    attempt. One without an attempt is on record, which a new death begins anew.
    """
    last = letter.last.get("n")
    return any(one["node"] == letter.node and one["after_attempt"] in (None, last)
               for one in decisions)  # fmt: skip


async def moved_letter(hub: Hub, part: str) -> Letter | None:
    """What was a dead letter on another node than the one that has it now; None: it was none."""
    found = await find_task(hub, part)
    shown = (await _shown_by(hub, found.uid, found.copies)).said
    here = shown.get(found.node)
    if here is None or not (_from_events(shown) or _from_records(shown)):
        return None
    with reading(found.node, "show"):
        cost = Fields(here.care).maybe_text("total_cost_usd", MONEY_MAX)
    return Letter(found.node, found.task, here.attempts, poison=False, reviewed=None,
                  resolution=None, total_cost_usd=cost)  # fmt: skip


async def _shown_by(hub: Hub, uid: str, names: Iterable[str]) -> Answers[Shown]:
    return await ask_all(hub, "show", {"uid": uid}, lambda at, said: read_shown(at, uid, said),
                         names=names)  # fmt: skip


def _from_events(shown: Mapping[str, Shown]) -> dict[Moment, JsonObject]:
    return {moment: said for at, one in shown.items() for moment, said in _told_by(at, one)}


def _told_by(node: str, shown: Shown) -> Iterator[tuple[Moment, JsonObject]]:
    """The decisions among the events of one node; before its first death there is none."""
    record = shown.care.get("resolution")
    known = str(record.get("at")) if isinstance(record, dict) else None
    died, n = False, None
    for event in shown.events:
        at, because = event.get("at"), str(event.get("because") or "").removeprefix(_RESOLVED)
        died = died or DEAD in (event.get("was"), event.get("state"))
        died = died or (known is not None and str(at) >= known)  # the death's own event is gone
        n = event.get("n", n)
        if died and (what := _what(event)):
            moment, said = _decision(what, node, event.get("by"), at, because)
            yield moment, {**said, "after_attempt": n}


def _what(event: JsonObject) -> str:
    """The decision that this event tells of; empty: none. What has an attempt is of its program."""
    if event.get("event") == REVIEWED:
        return "reviewed"
    return _WHAT.get(str(event.get("event")), "") if event.get("n") is None else ""


def _from_records(shown: Mapping[str, Shown]) -> dict[Moment, JsonObject]:
    """The same from what each node has on record, where the event is gone already."""
    records = [(at, one.care.get("reviewed"), one.care.get("resolution"))
               for at, one in shown.items()]  # fmt: skip
    found = [_decision("reviewed", at, one.get("by"), one.get("at"), one.get("note"))
             for at, one, _ in records if isinstance(one, dict)]  # fmt: skip
    found += [_decision(one.get("what"), at, one.get("by"), one.get("at"), one.get("reason"))
              for at, _, one in records if isinstance(one, dict)]  # fmt: skip
    return dict(found)


def _decision(
    what: JsonValue, node: str, by: JsonValue, at: JsonValue, reason: JsonValue
) -> tuple[Moment, JsonObject]:
    said: JsonObject = {"what": str(what), "by": by, "at": at, "node": node,
                        "reason": reason or None}  # fmt: skip
    return (str(what), node, str(at)), said
