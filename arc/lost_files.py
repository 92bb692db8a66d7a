"""Remembers who waits for a file that no queue has, or that only those may have who are silent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.strict import JsonValue
from agent_node.text import safe_text

from .looking_up import LATE_S
from .unfound import LOOKS, SHOWN_MAX, how_to_hear

if TYPE_CHECKING:
    from .hub import Hub

EVENT = "awaited_file_is_nowhere"
REF_SHOWN = 300


@dataclass(frozen=True)
class Wanted:
    """An artifact that a task waits for in a store."""

    store: str
    sha256: str
    uid: str
    source: str | None = None  # the task that left it
    node: str | None = None  # where that task ended, as the store was told
    ref: str = ""  # as the task names it
    others: int = 0  # tasks there that wait for it, too

    @property
    def key(self) -> tuple[str, str]:
        """Each file once for a store, however many tasks there wait for it."""
        return (self.store, self.sha256)


@dataclass(frozen=True)
class LostFile:
    """A file that no queue had which could be asked. `silent` are the others; nobody: it is
    nowhere. Looks count ten minutes apart: what was on its way has arrived by then.
    """

    wanted: Wanted
    silent: tuple[str, ...]
    since: datetime
    looks: int
    looked_s: float  # when the last look counted, by the clock's seconds since boot


def note_lost_files(
    hub: Hub, nowhere: Mapping[Wanted, tuple[str, ...]], unlooked: Collection[Wanted],
    unheard: Collection[str],
) -> None:  # fmt: skip
    """Remember, for a person, what was found nowhere in this run. `unlooked` it did not come to,
    and the stores `unheard` could not say what they wait for: what is known of both stays.
    """
    kept = {one.key for one in unlooked}
    before = hub.lost_files
    hub.lost_files = {key: one for key, one in before.items() if key in kept or key[0] in unheard}
    for wanted, silent in nowhere.items():
        found = _looked(hub, before.get(wanted.key), wanted, silent)
        hub.lost_files[wanted.key] = found
        last = before.get(wanted.key)
        if found.looks == LOOKS and not silent and (last is None or last.looks < LOOKS):
            hub.journal.runs.log(EVENT, node=wanted.store, task=wanted.uid,
                                 fields={"because": _text(found)})  # fmt: skip


def _looked(
    hub: Hub, last: LostFile | None, wanted: Wanted, silent: tuple[str, ...]
) -> LostFile:
    now_s = hub.clock.boottime()
    if last is None:
        return LostFile(wanted, silent, hub.clock.now(), 1, now_s)
    if last.silent != silent:  # of those who answer now, this is the first word
        return LostFile(wanted, silent, last.since, 1, now_s)
    if now_s - last.looked_s < LATE_S:
        return LostFile(wanted, silent, last.since, last.looks, last.looked_s)
    return LostFile(wanted, silent, last.since, last.looks + 1, now_s)


def lost_files_now(hub: Hub) -> list[JsonValue]:
    """A line for each file that is nowhere, or that only a silent node may have."""
    found = [one for _, one in sorted(hub.lost_files.items()) if one.looks >= LOOKS]
    return [{"node": one.wanted.store, "text": _text(one), "try": _try(hub, one)}
            for one in found[:SHOWN_MAX]]  # fmt: skip


def _text(one: LostFile) -> str:
    wanted, since = one.wanted, f"it was looked for since {one.since:%Y-%m-%dT%H:%M:%SZ}"
    who = wanted.uid + (f" (and {wanted.others} more)" if wanted.others else "")
    named = "" if wanted.sha256 in wanted.ref else f" ({safe_text(wanted.ref, REF_SHOWN)})"
    waits = f"{who} waits for the file {wanted.sha256}{named}, which no queue"
    if one.silent:
        silent = ", ".join(one.silent)
        return f"{waits} has that could be asked, and {silent} could not; {since}"
    return f"{waits} of the fleet has; {since}, and it waits for ever"


def _try(hub: Hub, one: LostFile) -> str:
    if one.silent:
        return how_to_hear(hub, one.silent[0], one.wanted.uid)
    uid, sha256 = one.wanted.uid, one.wanted.sha256
    return f"arc tasks cancel {uid} --reason 'nobody has {sha256}'"
