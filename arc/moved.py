"""Reads strictly what nodes have recorded of transfers: believed as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_node.commands import Because
from agent_node.errors import BadInput
from agent_node.priority import WEIGHT_MAX
from agent_node.requests import Fields
from agent_node.spec import hash_of, spec_of
from agent_node.strict import JsonObject
from agent_node.task import Task, task_from

from .asking import ENTRIES_MAX, because_of, reading

# Every outcome that a node may have recorded for a transfer.
OUTCOMES = (
    "escrowed", "held", "committed", "aborted", "activated", "dropped", "settled", "refused",
    "too_old", "unknown", "quarantined",
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """One transfer that a request named: the answer has to be about it, and about this task."""

    xfer: str
    uid: str
    epoch: int | None = None  # None: the answer says no epoch that could be compared


@dataclass(frozen=True)
class Moved:
    """What a node has recorded of one transfer. `task` is the document as it came, whole: it is
    handed on as it is, so that no field is lost on a hub that is too old to know it.
    """

    xfer: str
    outcome: str
    rule: str = ""
    because: str = ""
    task: JsonObject | None = None
    sha256: str = ""
    weight: float = 0.0  # what its graph gives it, in points


def read_moved(node: str, do: str, result: JsonObject, asked: Sequence[Asked]) -> dict[str, Moved]:
    """One outcome for each transfer that was asked for, by its xfer, in whatever order they came.

    A foreign xfer, one that is missing or stands twice, another task than the one asked for, or a
    task that does not have the hash beside it: nothing of the answer is believed.
    """
    with reading(node, do):
        entries = Fields(result).objects("results", ENTRIES_MAX)
        wanted = {one.xfer: one for one in asked}
        said: dict[str, Moved] = {}
        for entry in entries:
            moved = _moved(entry, wanted)
            if moved.xfer in said:
                raise BadInput(f"{moved.xfer} stands there twice", "results")
            said[moved.xfer] = moved
        missing = wanted.keys() - said.keys()
        if missing:
            raise BadInput(f"nothing is said of {min(missing)}", "results")
        return said


def _moved(entry: Fields, wanted: Mapping[str, Asked]) -> Moved:
    xfer = entry.ulid("xfer")
    if xfer not in wanted:
        raise BadInput(f"{xfer} was not asked for", entry.name_of("xfer"))
    outcome = entry.word("outcome", *OUTCOMES)
    because = because_of(entry) or Because("", "")
    if outcome != "escrowed":
        return Moved(xfer, outcome, because.rule, because.text)
    sha256 = entry.text("sha256", 64)
    document = entry.inside("task").values
    _check_task(task_from(document), wanted[xfer], sha256)
    weight = entry.points("weight", WEIGHT_MAX)
    return Moved(xfer, outcome, task=document, sha256=sha256, weight=weight)


def _check_task(task: Task, asked: Asked, sha256: str) -> None:
    if task.uid != asked.uid:
        raise BadInput(f"{asked.xfer} brought {task.uid}, not {asked.uid}", "task.uid")
    if asked.epoch is not None and task.epoch != asked.epoch:
        raise BadInput(f"{task.uid} came at epoch {task.epoch}, not {asked.epoch}", "task.epoch")
    if hash_of(spec_of(task)) != sha256:
        raise BadInput(f"{task.uid} does not have the hash that came with it", "sha256")
