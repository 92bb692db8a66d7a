"""Defines how everything that crosses between hub and node is written, and in which version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from .commands import Added, Because, Changed, Steered
from .errors import BadInput, NodeError
from .lines import encode, line_of
from .moves import Reowned, Transferred
from .output_hash import OUTPUT_SHA256
from .queries import Chosen, DeadLetter, DeadPage, Doubt, Given, Listed, NodeFacts, Shown
from .strict import LINE_MAX, JsonObject, JsonValue
from .task import Task, to_wire
from .text import safe_text

WIRE = 1
OLDEST_WIRE = 1  # a node speaks its version and the one before; before 1 there was none
EVENTS = frozenset(
    "idle busy free_slot task_ready task_started task_finished state_changed needs_you".split()
)
MESSAGE_MAX = 500
RESULTS_MAX = LINE_MAX - 64 * 1024  # what the entries of one reply may take, its frame aside

Id = int | str | None


def greeting_line(facts: NodeFacts, version: str) -> bytes:
    """The first line, unasked: who answers here, and how far its database has come."""
    return line_of(
        {
            "agent-node": version,
            "wire": WIRE,
            "node": facts.name,
            "incarnation": facts.incarnation,
            "generation": facts.generation,
        }
    )


class Written(NamedTuple):
    """A result whose JSON is written already."""

    text: str


def result_line(asked: Id, result: JsonObject | Written) -> bytes:
    """The answer to one request; one that no line can hold becomes the error `batch_full`."""
    if isinstance(result, Written):
        line = f'{{"id":{encode(asked)},"ok":true,"result":{result.text}}}\n'.encode()
    else:
        line = line_of({"id": asked, "ok": True, "result": result})
    if len(line) <= LINE_MAX:
        return line
    message = f"the answer takes {len(line)} bytes, a line {LINE_MAX}: ask for less at a time"
    return error_line(asked, "batch_full", message)


def error_line(asked: Id, code: str, message: str, **more: str) -> bytes:
    """The refusal of one request; what came from outside is made visible and cut."""
    error: JsonObject = {"code": code, "message": safe_text(message, MESSAGE_MAX)}
    error.update({name: safe_text(text, MESSAGE_MAX) for name, text in more.items() if text})
    return line_of({"id": asked, "ok": False, "error": error})


def trouble_line(asked: Id, error: NodeError) -> bytes:
    """The same, for an error of ours, with the field or the rule where it names one."""
    field = error.field if isinstance(error, BadInput) else ""
    rule = getattr(error, "rule", None) or ""
    return error_line(asked, error.code, str(error), field=field, rule=rule, hint=error.hint)


def event_line(event: str, seq: int, at: str) -> bytes:
    """One piece of news for a subscriber; what it is about is asked for, never pushed."""
    return line_of({"event": event, "seq": seq, "at": at})


# --- What a store answered, as JSON -------------------------------------------------------------


def brief(task: Task) -> JsonObject:
    """The task without its body, for lists."""
    document = to_wire(task)
    del document["body"]
    return document


def because_out(because: Because | None) -> JsonObject:
    """The reason under its name; nothing at all where there is none."""
    if because is None:
        return {}
    return {"because": {"rule": because.rule, "text": because.text}}


def added_out(added: Added) -> JsonObject:
    """What became of one new task."""
    return {"uid": added.uid, "outcome": added.outcome, **because_out(added.because)}


def changed_out(changed: Changed) -> JsonObject:
    """What became of one order, with the task as it now is."""
    document: JsonObject = {"uid": changed.uid, "outcome": changed.outcome}
    if changed.task is not None:
        document["task"] = brief(changed.task)
    if changed.already:
        document["already"] = True
    if changed.not_here_until is not None:
        document["not_here_until"] = changed.not_here_until
    return {**document, **because_out(changed.because)}


def steered_out(steered: Steered) -> JsonObject:
    """What the node, or one agent of it, was told; and what it had been told before."""
    document: JsonObject = {"state": steered.state, "reason": steered.reason}
    if steered.already:
        document["already"] = True
    if steered.before is not None:
        was = steered.before._asdict()
        document["was"] = {name: value for name, value in was.items() if name != "here" or value}
    return document


def transferred_out(moved: Transferred) -> JsonObject:
    """The recorded outcome of one transfer; the task comes whole where it is handed over."""
    document: JsonObject = {"xfer": moved.xfer, "outcome": moved.outcome}
    if moved.task is not None:
        document["task"] = to_wire(moved.task)
        document["sha256"] = moved.sha256
        if moved.weight:
            document["weight"] = moved.weight
    if moved.because is not None:
        document.update(because_out(moved.because))
    return document


def told_out(moves: Iterable[Transferred]) -> Written:
    """The same of a batch whose tasks come as they were told: without the fields that say nothing,
    which whoever reads them takes to be at their defaults.
    """
    return Written(f'{{"results":[{",".join(map(_told, moves))}]}}')


def _told(moved: Transferred) -> str:
    if moved.told is None:
        return encode(transferred_out(moved))
    head = f'{{"xfer":"{moved.xfer}","outcome":"{moved.outcome}"'
    weight = f',"weight":{encode(moved.weight)}' if moved.weight else ""
    return f'{head},"task":{moved.told},"sha256":"{moved.sha256}"{weight}}}'


def reowned_out(owned: Reowned) -> JsonObject:
    """barred, reowned, or refused and why."""
    return {"uid": owned.uid, "outcome": owned.outcome, **because_out(owned.because)}


def doubt_out(doubt: Doubt) -> JsonObject:
    """A transfer that is not over, field by field."""
    return dict(doubt.__dict__)


def given_out(given: Given) -> JsonObject:
    """A task that left, field by field."""
    return dict(given.__dict__)


def listed_out(
    listed: Listed, reasons: Mapping[str, Because | None] | None = None
) -> JsonObject:
    """A page; it ends earlier than asked where one line could not hold it. `reasons`: why each of
    its tasks is where it is, by uid; None: that was not asked.
    """
    beside: dict[str, Mapping[str, JsonValue]] = {"care": listed.care, "order": listed.order}
    if reasons is not None:
        beside["reasons"] = {uid: {"rule": one.rule, "text": one.text}
                             for uid, one in reasons.items() if one is not None}  # fmt: skip
    whole: Iterator[JsonObject] = (
        {task.uid: brief(task), **{name: of.get(task.uid) for name, of in beside.items()}}
        for task in listed.tasks
    )
    tasks, after = [next(iter(one.values())) for one in fitting(whole)], listed.next
    if len(tasks) < len(listed.tasks):
        after = listed.tasks[len(tasks) - 1].seq
    shown = [task.uid for task in listed.tasks[: len(tasks)]]
    told: JsonObject = {"tasks": tasks, "next": after}
    told |= {name: {uid: of[uid] for uid in shown if uid in of} for name, of in beside.items()}
    return told if listed.total is None else {**told, "total": listed.total}


def dead_out(page: DeadPage) -> JsonObject:
    """A page of dead letters; it ends earlier than asked where one line could not hold it."""
    entries = fitting(map(_letter_out, page.letters))
    after = page.next
    if len(entries) < len(page.letters):
        after = page.letters[len(entries) - 1].task.seq
    return {"dead": list(entries), "next": after}


def _letter_out(letter: DeadLetter) -> JsonObject:
    return {"task": brief(letter.task), "attempts": list(letter.attempts), **letter.care}


def chosen_out(chosen: Chosen) -> JsonObject:
    """Candidates, and how many all others are and by which rule they stay."""
    return {
        "tasks": [brief(task) for task in chosen.tasks],
        "next": chosen.next,
        "kept": dict(chosen.kept),
        "eligible": chosen.eligible,
        "total": chosen.total,
    }


def shown_out(shown: Shown) -> JsonObject:
    """One task whole, with its attempts, its moves and what happened to it."""
    return {
        "task": to_wire(shown.task),
        "attempts": list(shown.attempts),
        "moves": list(shown.moves),
        "events": list(shown.events),
        "care": dict(shown.care),
        "order": dict(shown.order),
        **({OUTPUT_SHA256: shown.output_sha256} if shown.output_sha256 else {}),
    }


def fitting(documents: Iterable[JsonObject]) -> list[JsonObject]:
    """As many from the front as one reply holds, and always one, so that paging gets on."""
    kept: list[JsonObject] = []
    left = RESULTS_MAX
    for document in documents:
        left -= _size_of(document)
        if left < 0 and kept:
            break
        kept.append(document)
    return kept


def _size_of(value: JsonValue) -> int:
    """The bytes that a value takes on the wire, with the comma behind it."""
    text = encode(value)
    return 1 + (len(text) if text.isascii() else len(text.encode()))
