"""The words in which a store is told of artifacts, and asked what waits for which."""

from __future__ import annotations

from dataclasses import dataclass

from .commands import OWNER, Command, Sender
from .queries import Query


@dataclass(frozen=True)
class ArtifactCame(Command[int]):
    """It is on the shelf: what waits for it goes on. How many tasks were touched by it."""

    sha256: str
    sender: Sender = OWNER


@dataclass(frozen=True)
class ArtifactGone(Command[int]):
    """It is not on the shelf after all: what has not begun waits for it again."""

    sha256: str


@dataclass(frozen=True)
class Missing:
    """A file that a task here is to be given, and who left it; None: nobody knows here."""

    sha256: str
    uid: str
    ref: str
    size: int | None
    source: str | None
    node: str | None


@dataclass(frozen=True)
class ArtifactsMissing(Query[tuple[Missing, ...]]):
    """What tasks here that have not ended are to be given, and is not here; by task."""

    limit: int = 1000
    uid: str | None = None  # of this task alone; None: of all
    sha256: str | None = None  # this artifact alone; None: any


@dataclass(frozen=True)
class ArtifactsNeeded(Query[frozenset[str]]):
    """Which of these artifacts a task here has left, or is to be given."""

    sha256s: tuple[str, ...]


@dataclass(frozen=True)
class KeptPlace(Query["int | None"]):
    """The number of the attempt in whose folder this task's next ones work; None: their own."""

    uid: str
