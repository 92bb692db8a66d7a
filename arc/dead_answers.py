"""Reads dead letters as nodes tell them, and finds among them those that a person means; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation

from agent_node.clock import parse_iso
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import State, Task, task_from

from .asking import ENTRIES_MAX, reading

MONEY_MAX = 40  # characters


@dataclass(frozen=True)
class Letter:
    """A dead letter on one node: its task without the body, every attempt, and what was said."""

    node: str
    task: Task
    attempts: tuple[JsonObject, ...]
    poison: bool
    reviewed: JsonObject | None  # {by, at, note}; None: nobody looked at it
    resolution: JsonObject | None
    total_cost_usd: str | None  # None: no attempt named a cost

    @property
    def is_dead(self) -> bool:
        """False: it was, until somebody decided; `resolution` says who and what."""
        return self.task.state == State.DEAD_LETTERED

    @property
    def last(self) -> JsonObject:
        """The last attempt that ended, and not well: one that was a dead letter may have completed
        since. Empty where none did.
        """
        ended = [one for one in self.attempts
                 if one.get("ended_at") and one.get("outcome") != "completed"]  # fmt: skip
        return ended[-1] if ended else {}

    @property
    def kind(self) -> str:
        """How the last attempt failed; empty where the node does not say."""
        said = self.last.get("error_kind") or self.last.get("outcome")
        return said if isinstance(said, str) else ""

    @property
    def died_at(self) -> str | None:
        """When the last attempt ended, by the node's clock."""
        said = self.last.get("ended_at")
        return said if isinstance(said, str) else self.task.completed_at


@dataclass(frozen=True)
class Meant:
    """Which dead letters; what is empty or None leaves nothing out."""

    domain: str | None = None
    skill: str | None = None
    kind: str | None = None
    node: str | None = None
    since: datetime | None = None
    poison: bool = False
    unreviewed: bool = False

    @property
    def says_something(self) -> bool:
        """Whether it leaves any dead letter out."""
        return self != Meant()

    def takes(self, letter: Letter) -> bool:
        """Whether this one is meant. One that cannot say when it died did not die lately."""
        task = letter.task
        return (
            (self.domain is None or task.domain == self.domain)
            and (self.skill is None or self.skill in task.skills)
            and (self.kind is None or letter.kind == self.kind)
            and (self.node is None or letter.node == self.node)
            and (self.since is None or _died_after(letter, self.since))
            and (letter.poison or not self.poison)
            and (letter.reviewed is None or not self.unreviewed)
        )


def _died_after(letter: Letter, since: datetime) -> bool:
    try:
        return letter.died_at is not None and parse_iso(letter.died_at) >= since
    except (ValueError, OverflowError):
        return False


def meant_by(asked: Fields) -> Meant:
    """The same from the arguments of an operation."""
    since = asked.maybe_moment("since")
    return Meant(
        asked.maybe_text("domain", 64), asked.maybe_text("skill", 64),
        asked.maybe_text("kind", 64), asked.maybe_text("node", 32),
        parse_iso(since) if since else None, asked.flag("poison"), asked.flag("unreviewed"),
    )  # fmt: skip


def read_dead(node: str, result: JsonObject) -> tuple[tuple[Letter, ...], int | None]:
    """A page of dead letters, and where the next one starts."""
    with reading(node, "dead"):
        said = Fields(result)
        letters = tuple(_letter(node, one) for one in said.objects("dead", ENTRIES_MAX))
        return letters, said.maybe_whole("next", 0, 2**62)


def _letter(node: str, entry: Fields) -> Letter:
    attempts = tuple(one.values for one in entry.objects("attempts", ENTRIES_MAX))
    return Letter(
        node, task_from(entry.inside("task").values), attempts, poison=entry.flag("poison"),
        reviewed=_said(entry, "reviewed"), resolution=_said(entry, "resolution"),
        total_cost_usd=entry.maybe_text("total_cost_usd", MONEY_MAX),
    )  # fmt: skip


def _said(entry: Fields, name: str) -> JsonObject | None:
    return entry.inside(name).values if entry.has(name) else None


def total_of(costs: list[str | None]) -> str | None:
    """What these cost together; None: none is known. A text that is no money counts for none."""
    known: list[Decimal] = []
    for cost in costs:
        try:
            money = Decimal(cost) if cost is not None else None
        except InvalidOperation:
            continue
        if money is not None and money.is_finite():
            known.append(money)
    return format(sum(known, Decimal()), "f") if known else None


def letter_line(letter: Letter) -> JsonObject:
    """One dead letter in a list."""
    task = letter.task
    message = letter.last.get("message") or task.failure_reason
    return {
        "uid": task.uid, "subject": task.subject, "priority": task.priority, "node": letter.node,
        "domain": task.domain, "skills": list[JsonValue](task.skills), "kind": letter.kind,
        "message": message if isinstance(message, str) else None, "died_at": letter.died_at,
        "attempts": len(letter.attempts), "total_cost_usd": letter.total_cost_usd,
        "poison": letter.poison, "reviewed": letter.reviewed, "source": task.source,
        "dag": task.dag, "state": str(task.state), "resolution": letter.resolution,
    }  # fmt: skip
