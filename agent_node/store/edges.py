"""Writes down what tasks wait for, and says of each what follows from how that came."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..readiness import (
    READY,
    Came,
    Edge,
    Verdict,
    all_edges,
    came_of,
    decide,
    is_unheard,
    judge,
)
from ..references import Reference, read_reference, references_of
from ..strict import JsonObject, JsonValue
from ..task import State, Task
from . import artifact_inputs
from .transaction import Transaction

WAITS_FOR, INPUTS_MISSING = "waits_for", "inputs_missing"
_WHY = {
    WAITS_FOR: "waits for other tasks to end",
    INPUTS_MISSING: "what it is to be given of other tasks is not here yet",
}
HOLDS = {rule: json.dumps([{"rule": rule, "text": text}]) for rule, text in _WHY.items()}
_UNHEARD = "the output of {} that it is to be given was not heard: {} is away; it waits for that"
_SAID_OF_LACKING = """
SELECT i.source, o.node, o.because FROM input i JOIN told o ON o.uid = i.source
 WHERE i.uid = ? AND i.here = 0 AND i.kind = 'output' ORDER BY i.source
"""


def hold_of_inputs(tx: Transaction, uid: str) -> str:
    """What holds a task that lacks something, with the node that is away where it is for one."""
    for source, node, because in tx.db.execute(_SAID_OF_LACKING, (uid,)):
        if is_unheard(because):
            text = _UNHEARD.format(source, node)
            return json.dumps([{"rule": INPUTS_MISSING, "text": text}])
    return HOLDS[INPUTS_MISSING]
_EDGE = "INSERT OR IGNORE INTO edge (uid, needs, on_failure, came, n) VALUES (?, ?, ?, ?, ?)"
_INPUT = (
    "INSERT OR IGNORE INTO input (uid, ref, kind, source, here) VALUES (?, ?, ?, ?, ?)"
)
_AWAITED = "INSERT OR IGNORE INTO awaited (uid) VALUES (?)"


@dataclass(frozen=True)
class KnownEnd:
    """What is known here of a task that is waited for. `came` None: it has not ended."""

    came: Came | None
    lives_here: bool
    has_output: bool  # what it left can be given to others
    unheard: bool = False  # but for its output, which its node alone could tell, and that is away


UNKNOWN = KnownEnd(None, lives_here=False, has_output=False)
_KNOWN = """
SELECT j.value, t.state, t.failure_reason, o.state, o.because, m.ended, x.ended
  FROM json_each(?) j
  LEFT JOIN task t ON t.uid = j.value AND t.state <> 'HELD'
  LEFT JOIN told o ON o.uid = j.value
  LEFT JOIN member m ON m.uid = j.value
  LEFT JOIN tombstone x ON x.uid = j.value
"""


def known_ends(tx: Transaction, uids: Iterable[str]) -> dict[str, KnownEnd]:
    """By uid, of those that were asked for; what lives here knows best, then what was told."""
    found: dict[str, KnownEnd] = {}
    for uid, *said in tx.db.execute(_KNOWN, (json.dumps(sorted(uids)),)):
        state, reason, told, because, ended, settled = said
        if state is not None:
            came = came_of(state, reason)
            found[uid] = KnownEnd(came, lives_here=True, has_output=came is not None)
        elif told is not None:
            found[uid] = KnownEnd(came_of(told, because), lives_here=False, has_output=True,
                                  unheard=is_unheard(because))  # fmt: skip
        else:
            came = "well" if settled == State.COMPLETED else ended
            found[uid] = KnownEnd(came, lives_here=False, has_output=False)
    return found


@dataclass(frozen=True)
class Ties:
    """What the tasks of one request wait for: the verdict on each, and what each lacks."""

    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    lacking: frozenset[str] = frozenset()

    def start(self, tx: Transaction, task: Task) -> tuple[State, str | None, str]:
        """The state a new task begins in, when it wakes by itself, and what holds it."""
        if self.verdicts.get(task.uid, READY).kind != "ready":
            return State.PENDING, None, HOLDS[WAITS_FOR]
        if task.uid in self.lacking:
            return State.PENDING, None, HOLDS[INPUTS_MISSING]
        if task.not_before is not None and task.not_before > tx.stamp:
            return State.PENDING, task.not_before, "[]"
        return State.READY, None, "[]"


def is_tied(task: Task) -> bool:
    """Whether it waits for others, or wants something of them."""
    return bool(task.depends_on or task.context_refs)


def tie(tx: Transaction, tasks: Sequence[Task]) -> Ties:
    """Write down the edges and references of these new tasks; they may wait for each other."""
    edges = {task.uid: edges_with_inputs(task) for task in tasks}
    references = {task.uid: references_of(task.context_refs) for task in tasks}
    needed = {edge.needs for some in edges.values() for edge in some}
    known = known_ends(tx, needed - edges.keys())
    came = {
        uid: [Edge(edge.needs, edge.on_failure, known.get(edge.needs, UNKNOWN).came)
              for edge in some]
        for uid, some in edges.items()
    }  # fmt: skip
    tx.live.graphs = True
    tx.db.executemany(
        _EDGE,
        [(uid, edge.needs, edge.on_failure, edge.came, None)
         for uid, some in came.items() for edge in some],
    )  # fmt: skip
    lacking = _write_inputs(tx, references, known)
    foreign = [uid for uid, end in known.items() if not end.lives_here and end.came is None]
    wanted = [ref.of for uid in lacking for ref in references[uid] if ref.of in known]
    tx.db.executemany(_AWAITED, [(uid,) for uid in {*foreign, *_not_here(wanted, known)}])
    tx.changed = True
    return Ties({uid: judge(some) for uid, some in came.items()}, frozenset(lacking))


def edges_with_inputs(task: Task) -> list[Edge]:
    """All that it waits for, what it is to be given of included."""
    return all_edges(task.depends_on, task.context_refs, of=task.uid)


def _not_here(uids: Iterable[str | None], known: Mapping[str, KnownEnd]) -> set[str]:
    return {uid for uid in uids if uid is not None and not known[uid].lives_here
            and (known[uid].unheard or not known[uid].has_output)}  # fmt: skip


def _write_inputs(
    tx: Transaction, references: Mapping[str, list[Reference]], known: Mapping[str, KnownEnd]
) -> list[str]:
    rows, lacking = [], []
    for uid, wanted in references.items():
        here = [_is_here(tx, reference, known) for reference in wanted]
        rows += [(uid, reference.text, reference.kind, reference.of, int(yes))
                 for reference, yes in zip(wanted, here, strict=True)]  # fmt: skip
        if not all(here):
            lacking.append(uid)
            _await_files(tx, wanted, known)
    tx.db.executemany(_INPUT, rows)
    return lacking


def _await_files(
    tx: Transaction, wanted: Sequence[Reference], known: Mapping[str, KnownEnd]
) -> None:
    """Of a task elsewhere it may be known that it ended, and not yet which files it left."""
    unknown = {reference.of for reference in wanted
               if reference.kind == "artifact" and reference.of is not None
               and not known.get(reference.of, UNKNOWN).lives_here
               and artifact_inputs.resolve(tx, reference) is None}  # fmt: skip
    tx.db.executemany(_AWAITED, [(uid,) for uid in sorted(unknown)])


def _is_here(tx: Transaction, reference: Reference, known: Mapping[str, KnownEnd]) -> bool:
    """Of a task everything but its files is known as soon as it has ended, and its output unless
    its node is away and nobody had heard it.
    """
    if reference.kind == "artifact" or reference.of is None:
        return artifact_inputs.is_here(tx, reference)
    end = known.get(reference.of, UNKNOWN)
    return end.has_output and not (end.unheard and reference.kind == "output")


def tie_inputs(tx: Transaction, task: Task) -> None:
    """What a task that came from elsewhere is to be given; all it waited for has ended."""
    if not task.context_refs:
        return
    references = [*map(_readable, task.context_refs)]
    sources = {reference.of for reference in references if reference.of is not None}
    known = known_ends(tx, sources)
    tx.live.graphs = True
    if _write_inputs(tx, {task.uid: references}, known):
        wanted = _not_here((reference.of for reference in references), _of(known, sources))
        tx.db.executemany(_AWAITED, [(uid,) for uid in sorted(wanted)])


def _readable(entry: JsonValue) -> Reference:
    """A reference of a kind that only a newer program knows is never here, and stops the task."""
    said = entry.get("ref") if isinstance(entry, dict) else entry
    return read_reference(str(said)) or Reference(str(said), "artifact")


def _of(known: Mapping[str, KnownEnd], uids: Iterable[str]) -> dict[str, KnownEnd]:
    return {uid: known.get(uid, UNKNOWN) for uid in uids}


def wait_for(tx: Transaction, uid: str, n: int, needs: Sequence[str]) -> None:
    """Attempt `n` of this task asks to be put back until these have ended, well or badly."""
    tx.live.graphs = tx.changed = True
    known = known_ends(tx, needs)
    tx.db.executemany(
        "INSERT INTO edge (uid, needs, on_failure, came, n) VALUES (?, ?, 'run', ?, ?)"
        " ON CONFLICT (uid, needs) DO UPDATE SET n = excluded.n, on_failure = 'run',"
        "    came = coalesce(excluded.came, CASE came WHEN 'well' THEN came END)",
        [(uid, needed, known[needed].came, n) for needed in needs],
    )
    tx.db.executemany(
        _INPUT,
        [(uid, f"task:{needed}:outcome", "outcome", needed, int(known[needed].has_output))
         for needed in needs],
    )  # fmt: skip
    # It may have moved away while nobody waited for it: from now on its end is asked for.
    tx.db.executemany(_AWAITED, [(one,) for one in sorted(_not_here(needs, known))])


@dataclass(frozen=True)
class Standing:
    """A task that waits here, with what its edges say together."""

    uid: str
    seq: int
    state: str
    not_before: str | None
    verdict: Verdict
    lacks: bool


_STANDING = """
SELECT t.uid, t.seq, t.state, t.not_before,
       (SELECT e.needs FROM edge e INDEXED BY edge_bad WHERE e.uid = t.uid AND e.came = 'badly'
           AND e.on_failure = 'fail' ORDER BY e.needs LIMIT 1),
       (SELECT e.needs FROM edge e INDEXED BY edge_bad WHERE e.uid = t.uid AND e.came = 'badly'
           AND e.on_failure = 'skip' ORDER BY e.needs LIMIT 1),
       EXISTS (SELECT 1 FROM edge e INDEXED BY edge_open WHERE e.uid = t.uid AND e.came IS NULL
           AND e.on_failure = 'fail'),
       EXISTS (SELECT 1 FROM edge e INDEXED BY edge_open WHERE e.uid = t.uid AND e.came IS NULL),
       EXISTS (SELECT 1 FROM input i INDEXED BY input_missing WHERE i.uid = t.uid AND i.here = 0)
  FROM json_each(:uids) j CROSS JOIN task t ON t.uid = j.value
 WHERE t.state IN (SELECT value FROM json_each(:states))
"""


def standings(tx: Transaction, uids: Iterable[str], *states: State) -> list[Standing]:
    """Those of these tasks that are here in one of these states, in the order of their uids."""
    values: JsonObject = {"uids": json.dumps(sorted(uids)), "states": json.dumps(states)}
    return [
        Standing(
            uid, seq, state, not_before,
            decide(failed=failed, skipped=skipped, may_fail=bool(may_fail),
                   open_edges=bool(still)),
            bool(lacks),
        )
        for uid, seq, state, not_before, failed, skipped, may_fail, still, lacks
        in tx.db.execute(_STANDING, values)
    ]  # fmt: skip
