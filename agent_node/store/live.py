"""Holds what the process remembers of its queue from one transaction to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..budget import Money

if TYPE_CHECKING:
    from ..strict import JsonValue
    from .beats import Beaten
    from .ready import Ready
    from .transaction import NodeRow


@dataclass
class Live:
    """What the database does not say, or would have to be asked for again in each transaction."""

    dispatching: bool = False
    disk_low: bool = False
    queue_max: int = 10_000
    tasks_dir: Path | None = None
    artifacts_dir: Path | None = None  # None: no file is ever here
    idle_since: str | None = None
    clock_doubt: str = ""  # why nothing is let go of by its age; empty: nothing is doubted
    ready: Ready | None = None  # what waits here; None: nobody has asked for it yet
    pages: dict[int, PageEnd] = field(default_factory=dict)  # of it, by what asks for the next one
    first_comer: int | None = None  # no lower `seq` can be the oldest READY; None: not known
    # By uid, the attempt that was claimed last; what is missing is read from the task's row.
    claimed: dict[str, ClaimedRow] = field(default_factory=dict)
    beats: dict[str, Beaten] = field(default_factory=dict)  # by uid: signs of life, not all written
    # Tasks whose folders could not be removed, and why; None: nobody has tried yet.
    stuck: dict[str, str] | None = None
    missing: dict[str, str] = field(default_factory=dict)  # by agent: why its program cannot start
    stalled: dict[str, str] = field(default_factory=dict)  # by uid: since when none came
    failing: set[str | None] = field(default_factory=set)  # agents whose streak may not be 0
    paces: set[int] = field(default_factory=set)  # besides the usual one, of some task here
    money: Money = field(default_factory=Money)
    money_read: bool = False  # and nobody looked yet who may go on by it
    money_holds: bool = False  # work here goes by it; False: whoever read it only looks in
    budgeted: bool = False  # whether anything here has, or may have had, a limit of money
    # The number of the event up to which was looked for the task that completed last, and that one.
    last_completed: tuple[int, tuple[JsonValue, ...] | None] = (0, None)
    generation: int = 0  # that the file beside the database was told last
    last_event: int | None = None  # the number of the newest event; None: not known
    node: NodeRow | None = None  # the node's own row, as it was committed last; None: not known
    life: tuple[str, int] | None = None  # of this boot, and its number; None: not known
    # By what they need, the numbers of sets of needs that stand in the database for good.
    need_sets: dict[str, int] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)  # that nobody has been given yet
    order_ms: int | None = None  # the latest moment at which something came or was claimed
    weighed: bool = True  # a graph may have given some task here a weight; False: surely none
    graphs: bool = True  # something here may wait for something else; False: surely nothing does

    def read_money(self, money: Money, *, holds: bool) -> None:
        """What node.toml says of money, and whether the work here goes by that."""
        self.money, self.money_holds = money, holds
        self.money_read = self.money_read or holds


class PageEnd(NamedTuple):
    """Where a page of what waits here ended, and of which moment its order is."""

    at_ms: int
    last: tuple[int, int, int, int] | None  # what the last task sorts by; None: nothing was told


class ClaimedRow(NamedTuple):
    """What nothing changes about an attempt that this process claimed, where its row is kept."""

    seq: int
    n: int
    agent: str
