"""Looks for changes with which the planner itself would move a task; nothing is guessed; pure."""

from __future__ import annotations

from collections.abc import Sequence

from .answers import Way
from .changes import Change, Situation, apply, of_giver, of_pair, of_receiver, of_task, room_for
from .domains import Belonging, belongs_to
from .node_rules import busy_rules
from .objections import Objection
from .rules import PAIR_RULES, SWIFT_TASK_RULES, TASK_RULES
from .sifting import all_said
from .view import NodeSeen, Queue, QueuedTask

TRIED_MAX = 12  # receivers for which a way is looked for; each costs up to four plans
SHOWN_MAX = 4  # ways that are told


def ways_for(task: QueuedTask, giver: NodeSeen, situation: Situation) -> tuple[Way, ...]:
    """Ways by which the planner itself says that the task would move, the shortest first."""
    sets = sorted(_change_sets(task, giver, situation), key=_hardness)[:TRIED_MAX]
    tried = (_tried(task, giver.name, changes, situation) for changes in sets)
    return shortest([way for way in tried if way is not None])[:SHOWN_MAX]


def shortest(ways: Sequence[Way]) -> tuple[Way, ...]:
    """Without those that ask for all that another one asks for, and lead no further."""
    sets = [(way.to, frozenset(way.changes)) for way in ways]
    return tuple(
        way for at, way in enumerate(ways)
        if sets[at] not in sets[:at]
        and not any(to == way.to and less < sets[at][1] for to, less in sets)
    )  # fmt: skip


def of_the_fleet(way: Way) -> bool:
    """Whether it takes other limits, which every node would live by."""
    return any(change.kind == "limit" for change in way.changes)


def _hardness(changes: Sequence[Change]) -> tuple[bool, int]:
    """What somebody ruled out on purpose is suggested last, and few changes before many."""
    return any(change.key == "never" for change in changes), len(changes)


def _tried(
    task: QueuedTask, where: str, changes: tuple[Change, ...], situation: Situation
) -> Way | None:
    """These changes, with room made in the caps where that is what is missing; None: no way."""
    changed = apply(changes, situation)
    to = _goes_to(task, changed)
    if to is not None:
        return Way(changes, to) if changes else None
    room = room_for(task, where, changed)
    if not room:
        return None
    wider = {(change.key, change.node): change for change in (*changes, *room)}
    whole = tuple(wider.values())
    to = _goes_to(task, apply(whole, situation))
    return Way(whole, to) if to is not None else None


def _goes_to(task: QueuedTask, situation: Situation) -> str | None:
    steals = situation.plan().steals
    return next((steal.idle for steal in steals if steal.task.uid == task.uid), None)


def _change_sets(
    task: QueuedTask, giver: NodeSeen, situation: Situation
) -> list[tuple[Change, ...]]:
    """For each receiver everything that would have to be different; none where something cannot."""
    mine = _answers_of_giver(task, giver, situation)
    if mine is None:
        return []
    found = []
    for node in situation.view.seen:
        theirs = _answers_of(task, node, situation) if node.name != giver.name else None
        if theirs is not None:
            found.append(tuple(dict.fromkeys((*mine, *theirs))))
    return found


def _answers_of_giver(
    task: QueuedTask, giver: NodeSeen, situation: Situation
) -> list[Change] | None:
    limits, memory = situation.limits, situation.memory
    rules = SWIFT_TASK_RULES if limits.swift else TASK_RULES
    queue = situation.queues.get(giver.name)
    left = queue.total if isinstance(queue, Queue) else giver.report.pending_count
    said = [(rule.__name__, rule(task, limits)) for rule in rules]
    answers = [of_task(task, Objection(rule, why), limits) for rule, why in said if why]
    for rule in busy_rules(limits):
        why = rule(giver, limits, memory)
        if why is not None:
            answers.append(of_giver(giver, Objection(rule.__name__, why), left))
    return _all_or_none(answers)


def _answers_of(task: QueuedTask, node: NodeSeen, situation: Situation) -> list[Change] | None:
    belongs = belongs_to(task, situation.domains)
    answers = [
        _answer(task, belongs, node, Objection(rule, why), situation)
        for rule, why in all_said(task, node, situation).items()
        if why is not None
    ]
    return _all_or_none(answers)


def _answer(
    task: QueuedTask, belongs: Belonging, node: NodeSeen, said: Objection, situation: Situation
) -> Change | None:
    if said.rule in {rule.__name__ for rule in PAIR_RULES}:
        return of_pair(task, belongs, node, said)
    return of_receiver(node, said, situation.limits)


def _all_or_none(answers: Sequence[Change | None]) -> list[Change] | None:
    some = [answer for answer in answers if answer is not None]
    return some if len(some) == len(answers) else None


