"""Counts what was done, lost or done twice, from what the demo's programs wrote alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from agent_node.errors import BadInput
from agent_node.requests import Fields
from agent_node.strict import decode_object
from arc.errors import StateBroken

BEGIN, END = "begin", "end"
AT_MAX = 1e10  # seconds since boot; no machine runs for centuries


@dataclass(frozen=True, slots=True)
class Line:
    """What one program wrote at one moment; `at` counts seconds since boot, alike on all nodes."""

    uid: str
    attempt: int
    node: str
    pid: int
    what: str
    at: float
    alone: bool = True  # False: at that moment another program worked on the same task


@dataclass(frozen=True)
class Verdict:
    """What became of the planned tasks, by their uids."""

    done: frozenset[str]
    lost: frozenset[str]
    twice: frozenset[str]


def judge(planned: Collection[str], lines: Iterable[Line]) -> Verdict:
    """Done: a program came to its end. Lost: none ever did. Twice: more than one did, or two were
    at it at the same time, or one attempt began a second time.

    An attempt that was cut off and is followed by another one is no fault: it is how work survives.
    """
    by_uid: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        by_uid[line.uid].append(line)
    done = frozenset(uid for uid, some in by_uid.items() if any(one.what == END for one in some))
    twice = frozenset(uid for uid, some in by_uid.items() if ran_twice(some))
    return Verdict(done & frozenset(planned), frozenset(planned) - done, twice)


def ran_twice(lines: Sequence[Line]) -> bool:
    """Whether these lines of one task tell of more than one run that counts, or of two at once."""
    begins = [line for line in lines if line.what == BEGIN]
    ends = [line for line in lines if line.what == END]
    again = Counter((line.attempt, line.what) for line in lines)
    return (
        len(ends) > 1
        or not all(line.alone for line in begins)
        or any(count > 1 for count in again.values())
        or _overlap(begins, ends)
    )


def _overlap(begins: Sequence[Line], ends: Sequence[Line]) -> bool:
    """Whether any attempt began while another one, by the clock that all share, was under way."""
    ended = {(line.node, line.attempt): line.at for line in ends}
    spans = sorted((line.at, ended.get((line.node, line.attempt), line.at)) for line in begins)
    return any(later[0] < earlier[1] for earlier, later in pairwise(spans))


@dataclass(eq=False)
class Ledger:
    """The evidence files, read on from where they were read last."""

    folder: Path
    lines: list[Line] = field(default_factory=list)
    _read: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        """Add what was written since; `StateBroken` for a line that no program of ours wrote."""
        for path in sorted(self.folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path.name, 0))
                data = file.read()
            whole = data.rfind(b"\n") + 1
            self._read[path.name] = self._read.get(path.name, 0) + whole
            self.lines += [_line(one, path) for one in data[:whole].splitlines()]

    def count(self, what: str, node: str) -> int:
        """How many lines of this kind this node's programs wrote."""
        return sum(line.what == what and line.node == node for line in self.lines)

    def uids(self, what: str) -> frozenset[str]:
        """The tasks of which there is such a line."""
        return frozenset(line.uid for line in self.lines if line.what == what)


def _line(raw: bytes, path: Path) -> Line:
    try:
        fields = Fields(decode_object(raw))
        return Line(
            fields.ulid("uid"), fields.whole("attempt", 1, 10**6), fields.text("node"),
            fields.whole("pid", 1, 2**31), fields.text("what"),
            fields.seconds("at", AT_MAX) or 0.0, alone=fields.flag("alone"),
        )  # fmt: skip
    except BadInput as error:
        raise StateBroken(f"{path}: the demo's evidence cannot be read: {error}") from error
