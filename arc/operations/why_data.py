"""Turns the decisions' answers to `why` into plain JSON: every number, every reason."""

from __future__ import annotations

from collections.abc import Iterable

from agent_node.strict import JsonObject, JsonValue
from arc.decisions.answers import Check, Step, Way, WhyNode, WhyTask
from arc.decisions.explain import Objection, Steal
from arc.decisions.view import QueueUnseen


def task_answer(answer: WhyTask) -> JsonObject:
    """All of it; what does not apply is null or empty."""
    moves, kept, life, past = answer.moves, answer.kept, answer.life, answer.history
    return {
        "verdict": answer.verdict, "result": answer.result,
        "checks": _checks(answer.checks), "receivers": answer.receivers,
        "steps": [_step(one) for one in answer.steps],
        "ways": ways_of(answer.ways),
        "by_hand": list(answer.by_hand),
        "moves": None if moves is None else {"to": moves.idle, "because": moves.because},
        "kept": None if kept is None else {"rule": kept.rule, "because": kept.because},
        "life": None if life is None else {"state": life.state, "says": life.says},
        "could_not_look": None if answer.could_not_look is None else _unseen(answer.could_not_look),
        "place": answer.reach.place, "ahead": answer.reach.ahead,
        "reach_s": None if answer.reach.reach_s is None else round(answer.reach.reach_s, 1),
        "own_node": None if answer.own_node is None else {
            "rule": answer.own_node.rule, "says": answer.own_node.says},
        "receivers_say": answer.receivers_say,
        "history": {"cycles": past.cycles, "since": past.since,
                    "could_not_look": past.could_not_look},
    }  # fmt: skip


def node_answer(answer: WhyNode) -> JsonObject:
    """All of it."""
    stranded = answer.stranded
    return {
        "node": answer.node, "part": answer.part, "says": answer.says,
        "receives": _checks(answer.receives), "gives": _checks(answer.gives),
        "gets": _steals(answer.gets), "loses": _steals(answer.loses),
        "elsewhere": [{"rule": rule, "count": count, "because": because}
                      for rule, count, because in answer.elsewhere],
        "stranded": None if stranded is None else {
            "cause": stranded.cause, "rule": stranded.rule, "because": stranded.because,
            "uid": stranded.uid, "beside": stranded.beside},
        "could_not_look": [_unseen(one) for one in answer.could_not_look],
    }  # fmt: skip


def _checks(checks: Iterable[Check]) -> list[JsonValue]:
    return [{"rule": one.rule, "met": one.met, "said": one.said} for one in checks]


def _step(one: Step) -> JsonObject:
    return {
        "rule": one.rule, "alone": one.alone, "left": one.left,
        "dropped": [{"node": out.node, "because": out.because, "changeable": out.changeable}
                    for out in one.dropped],
    }  # fmt: skip


def ways_of(ways: Iterable[Way]) -> list[JsonValue]:
    """Each way with all its changes."""
    return [_way(one) for one in ways]


def _way(one: Way) -> JsonObject:
    return {
        "to": one.to,
        "changes": [
            {"kind": change.kind, "key": change.key, "value": change.value, "says": change.says,
             "node": change.node, "uid": change.uid, "command": change.command}
            for change in one.changes
        ],
    }  # fmt: skip


def _steals(steals: Iterable[Steal]) -> list[JsonValue]:
    return [
        {"uid": one.task.uid, "subject": one.task.subject, "priority": one.task.priority,
         "from": one.busy, "to": one.idle, "because": one.because}
        for one in steals
    ]  # fmt: skip


def _unseen(one: QueueUnseen) -> JsonObject:
    return {"node": one.node, "rule": one.rule, "because": one.because, "code": one.code}


def of_the_router(goes: Steal | None, kept: Objection | None, who: str) -> str:
    """What the router does with it next, or by which rule it keeps it; `who` has what it needs."""
    if goes is not None:
        return f"the next run of the router sends it to {goes.idle}: {goes.because}"
    if kept is None:
        return "the router did not come to it in this look: more urgent ones first"
    says = [kept.because] if kept.rule != "needs_are_met" or not who else []
    return f"the router keeps it: {kept.rule}: {'; '.join([*says, *([who] if who else [])])}"
