"""Sorts a queue into crowds of tasks that are alike for every rule, to judge each once; pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from .domains import Belonging, Domain, belongs_to, ears_of, untagged
from .limits import StealLimits
from .objections import Objection
from .rules import task_objections
from .view import Queue, QueuedTask

SUBJECTS_MAX = 500  # that a plan remembers; where there are more, most differ, and it is no help
# All that a rule ever looks at in a task, but for the guess at its subject and its refusals.
_LOOK = attrgetter(
    "priority", "skills", "domain", "needs", "hops", "stolen_from", "pinned", "state"
)


@dataclass(eq=False, slots=True)
class Likeness:
    """What the rules see in a task. Tasks of one likeness are one crowd in every queue."""

    belongs: Belonging
    objection: Objection | None = None  # what keeps these tasks whoever might take them
    heard: dict[str | None, Likeness] | None = None  # by the guess; None: that does not matter


@dataclass(eq=False, slots=True)
class Crowd:
    """Tasks of one queue that are alike for every rule, in the order in which they would go."""

    tasks: list[QueuedTask]
    like: Likeness
    alone: bool = False  # a task that somebody refused lately, and so is judged for each node
    given: int = 0  # how many of them, from the front, are planned away

    @property
    def head(self) -> QueuedTask | None:
        """The next one that would go; None: all of them do."""
        return self.tasks[self.given] if self.given < len(self.tasks) else None

    @property
    def left(self) -> Sequence[QueuedTask]:
        """Those that stay."""
        return self.tasks[self.given :] if self.given else self.tasks


@dataclass(eq=False)
class Stock:
    """A busy node's queue while a plan is made: its crowds, and how many are left in it."""

    node: str
    queue: Queue
    crowds: tuple[Crowd, ...]
    left: int  # READY, less what is planned away: falls as the plan grows
    slots: int = 0  # what the node itself could start at once
    spare: int = 0  # how many may still go to wait elsewhere (swift)

    def __post_init__(self) -> None:
        self._place: dict[str, int] = {}
        self._gone: list[int] = []

    @property
    def movable(self) -> Iterator[Crowd]:
        """The crowds of which somebody might be given one."""
        return (crowd for crowd in self.crowds if not crowd.like.objection and crowd.head)

    def place(self, task: QueuedTask) -> int:
        """Where the task stands in the order that the node gave."""
        if not self._place:
            self._place = {one.uid: place for place, one in enumerate(self.queue.tasks)}
        return self._place[task.uid]

    def ahead(self, task: QueuedTask) -> int:
        """How many of the page still stand before this task."""
        place = self.place(task)
        return place - bisect_left(self._gone, place)

    def take(self, crowd: Crowd, at: int = 0) -> QueuedTask:
        """Plan one of the crowd's tasks away, the next one unless told; the counts fall."""
        task = crowd.tasks[crowd.given + at]
        if at:
            del crowd.tasks[crowd.given + at]
        else:
            crowd.given += 1
        insort(self._gone, self.place(task))
        self.left -= 1
        return task


class Sorter:
    """Sorts queues into crowds. What tasks look like to the rules is judged once for all queues."""

    def __init__(
        self, domains: Sequence[Domain], limits: StealLimits, refused: frozenset[str]
    ) -> None:
        self.domains, self.limits, self.refused = tuple(domains), limits, refused
        self._ears = ears_of(self.domains)
        self._known: dict[object, Likeness] = {}
        self._alike: dict[object, Likeness] = {}
        self._sounds: dict[str, str | None] = {}  # the guess at each subject of the first queues

    def crowds_of(self, tasks: Iterable[QueuedTask]) -> tuple[Crowd, ...]:
        """The tasks, in the order given, by what the rules see in them."""
        found: defaultdict[Likeness, list[QueuedTask]] = defaultdict(list)
        alone: list[QueuedTask] = []
        known, refused, guess = self._known, self.refused, self._ears.guess
        sounds = self._sounds if len(self._sounds) < SUBJECTS_MAX else None
        for task in tasks:  # a hundred thousand times in a large fleet: nothing is done twice here
            look = _LOOK(task)
            likeness = known.get(look) or self._learn(look, task)
            if likeness.heard is not None:
                subject = task.subject
                if sounds is None:
                    sound = guess(subject)
                else:
                    sound = sounds[subject] if subject in sounds else self._listen(subject)
                likeness = likeness.heard.get(sound) or self._hear(likeness.heard, sound, task)
            if refused and task.uid in refused and not likeness.objection:
                alone.append(task)
            else:
                found[likeness].append(task)
        crowds = [Crowd(some, likeness) for likeness, some in found.items()]
        return (*crowds, *(Crowd([task], self._judged(task), alone=True) for task in alone))

    def _learn(self, look: object, task: QueuedTask) -> Likeness:
        """What all tasks that look like this one are; untagged ones have to be heard as well."""
        listens = bool(self._ears.prefixes or self._ears.words)
        hear = listens and untagged(task) and not task_objections(task, self.limits)
        likeness = Likeness(Belonging(), heard={}) if hear else self._judged(task)
        self._known[look] = likeness
        return likeness

    def _listen(self, subject: str) -> str | None:
        """The guess at a subject, which is remembered: what a schedule adds is called alike."""
        sound = self._sounds[subject] = self._ears.guess(subject)
        return sound

    def _hear(
        self, heard: dict[str | None, Likeness], sound: str | None, task: QueuedTask
    ) -> Likeness:
        heard[sound] = self._judged(task)
        return heard[sound]

    def _judged(self, task: QueuedTask) -> Likeness:
        """One likeness for all tasks in which no rule sees a difference."""
        said = task_objections(task, self.limits)
        if said:
            return self._alike.setdefault(said[0], Likeness(Belonging(), said[0]))
        belongs = belongs_to(task, self.domains)
        # How urgent it is matters for untagged work alone, and there only below the threshold.
        urgency = min(task.priority, self.limits.untagged_from) if untagged(task) else 0
        key = (belongs, task.domain, task.skills, task.needs, urgency)
        return self._alike.setdefault(key, Likeness(belongs))
