"""Says which node may be told what a task left, as far as the hub can know what it gave to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent_node.readiness import DEPENDENCY_FAILED, SKIPPED
from agent_node.references import REFS_MAX, read_reference
from agent_node.strict import JsonObject, JsonValue
from agent_node.ulid import clock_ms_of, is_ulid

from .decisions.outbox import COMPLETED
from .decisions.tallying import note_given
from .looking import INBOX

if TYPE_CHECKING:
    from .hub import Hub

Noted = Callable[[str, Sequence[JsonObject]], None]
BY_AN_EDGE = (f"{DEPENDENCY_FAILED}:", f"{SKIPPED}:")


def may_be_told(hub: Hub, store: str, uid: str, *, dag: str | None = None) -> bool:
    """Whether what this task left may go to `store`: the hub had given the task to it or taken it
    from it; or gave it a task that refers to this one, or that is of the same graph `dag`. Of a
    task that is older than what the hub remembers nobody can know, and it may.
    """
    if store == INBOX or hub.journal.ties.has(store, [uid, *([dag] if dag else [])]):
        return True
    if any(store in (one.busy, one.idle) for one in hub.journal.runs.moved([uid])):
        return True
    return is_older(hub, uid)


def is_older(hub: Hub, uid: str) -> bool:
    """Whether the task was made before the hub began to remember what it gave to whom."""
    return datetime.fromtimestamp(clock_ms_of(uid) / 1000, UTC) < hub.journal.ties.since()


def tying(hub: Hub) -> Noted:
    """What notes, before a node is given tasks, how long they have waited, and to which others it
    is tied by them.

    A task that had come from that very node brings it no tie: it wrote that task itself.
    """

    def note(node: str, tasks: Sequence[JsonObject]) -> None:
        note_given(hub.waited, tasks, hub.clock.now())
        tied = {str(task.get("uid")): ties_of(task) for task in tasks}
        some = [uid for uid, ties in tied.items() if ties]
        if node == INBOX or not some:
            return
        own = {one.uid for one in hub.journal.runs.moved(some) if one.busy == node}
        hub.journal.ties.note(node, {tie for uid in some if uid not in own for tie in tied[uid]})

    return note


def ties_of(task: JsonObject) -> set[str]:
    """Of which tasks this one is to be given something, and its graph."""
    refs = task.get("context_refs")
    found = set(_named(refs[:REFS_MAX])) if isinstance(refs, list) else set()
    dag = task.get("dag")
    return found | ({dag} if isinstance(dag, str) and is_ulid(dag) else set())


def _named(refs: Iterable[JsonValue]) -> Iterable[str]:
    for said in refs:
        text = said.get("ref") if isinstance(said, dict) else said
        reference = read_reference(text) if isinstance(text, str) else None
        if reference is not None and reference.of is not None:
            yield reference.of


def bare(told: JsonObject, store: str) -> JsonObject:
    """The same end without what the task left, and without its own words on why it failed."""
    because = str(told.get("because") or "")
    why = f"withheld: nothing that the hub gave {store} refers to {told['uid']}"
    kept = because if told["state"] != COMPLETED and because.startswith(BY_AN_EDGE) else why
    files: list[JsonValue] = []
    said = {name: value for name, value in told.items() if name != "sha256"}
    return {**said, "output": None, "artifacts": files, "because": kept}
