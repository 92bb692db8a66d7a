"""Says which tasks a list is narrowed to: by words of their subject and by what they are for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from .errors import BadInput
from .strict import JsonObject
from .task import Task

if TYPE_CHECKING:
    from .requests import Fields

NAME_MAX, UID_MAX = 64, 26
WORDS_MAX = 8  # each is looked for in every subject, by the one thread that also gives out work


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What a listed task has to be. What is empty or None says nothing."""

    subject: tuple[str, ...] = ()  # words that all stand in it, in capitals or not
    skill: str | None = None
    domain: str | None = None
    priority: int | None = None
    parent: str | None = None
    source: str | None = None

    def takes(self, task: Task) -> bool:
        """Whether the task is all that; of nodes that do not narrow a list themselves."""
        subject = task.subject.casefold()
        return (
            all(word.casefold() in subject for word in self.subject)
            and (self.skill is None or self.skill in task.skills)
            and (self.domain is None or task.domain == self.domain)
            and (self.priority is None or task.priority == self.priority)
            and (self.parent is None or task.parent == self.parent)
            and (self.source is None or task.source == self.source)
        )

    def said(self) -> JsonObject:
        """The fields of a request for such a list."""
        told = asdict(self) | {"subject": [*self.subject]}
        return {name: one for name, one in told.items() if one not in (None, [])}


ANY = Narrowed()


def narrowed_of(asked: Fields) -> Narrowed:
    """What the fields of a request narrow a list to."""
    subject = asked.words("subject")
    if len(subject) > WORDS_MAX:
        raise BadInput(f"{len(subject)} words; at most {WORDS_MAX} are looked for", "subject")
    return Narrowed(
        subject, skill=asked.maybe_text("skill", NAME_MAX),
        domain=asked.maybe_text("domain", NAME_MAX),
        priority=asked.maybe_whole("priority", 1, 10),
        parent=asked.maybe_text("parent", UID_MAX), source=asked.maybe_text("source"),
    )  # fmt: skip
