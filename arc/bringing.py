"""Brings artifacts from the nodes that have them to the stores whose tasks wait for them."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent_node.artifact_orders import read_data, read_sha256
from agent_node.artifacts import PIECE, SIZE_MAX
from agent_node.requests import Fields
from agent_node.strict import JsonObject
from agent_node.text import counted
from agent_node.uploads import Progress

from .asking import ENTRIES_MAX, reading
from .decisions.view import NodeSeen
from .errors import AnswerUnreadable, ArcError, NodeRefused
from .links import Link
from .looking import Look
from .lost_files import Wanted, note_lost_files
from .outbox import waiting_for_others
from .sensor import SensorReport

if TYPE_CHECKING:
    from .hub import Hub

BYTES_MAX = 64 * 1024 * 1024  # that one run carries; what is left is carried by the next one
SECONDS_MAX = 20.0  # of one run: ends have to be told in between
WANTED_MAX = 1000  # of one store
STUCK_MAX = 16  # answers in a row that bring a transfer no further
REF_MAX = 500
UNKNOWN = frozenset({"unknown_request"})  # a node that is older than artifacts
HAS_NONE = UNKNOWN | {"not_found"}


@dataclass(eq=False)
class Brought:
    """What one run carried, for its report."""

    arrived: list[str] = field(default_factory=list)  # `STORE SHA256`
    stores: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)  # `STORE SHA256`, or a store: why not
    carried: int = 0  # bytes, each way
    left: int = 0  # artifacts for which this run had no time


class _Enough(Exception):
    """This run has carried what one may."""


class _Nowhere(ArcError):
    """Nobody who was asked has it; nothing changed. `silent` could not say."""

    def __init__(self, message: str, silent: tuple[str, ...]) -> None:
        super().__init__(message)
        self.silent = silent


async def bring(hub: Hub, seen: Look, *, told: Collection[str] = ()) -> Brought:
    """Carry what stores wait for, piece by piece; one that fails keeps no other from coming.

    Asked for it are those that said so in this look, and those that were `told` something since. A
    piece that was carried stays carried: the next run goes on there, after any crash.
    """
    done = Brought()
    hub.artifacts.tidy(hub.clock.boottime())
    stores = [one.name for one in waiting_for_others(seen)
              if one.report.artifacts_missing_count != 0 or one.name in told]  # fmt: skip
    wanted = [one for name in stores for one in await _wanted_by(seen.links[name], done)]
    nowhere: dict[Wanted, tuple[str, ...]] = {}
    until = hub.clock.boottime() + SECONDS_MAX
    for number, one in enumerate(wanted):
        carrier = _Carrier(hub, seen, done, until)
        try:
            await carrier.carry(one)
        except _Enough:
            done.left = len(wanted) - number
            break
        except ArcError as error:
            done.failed[f"{one.store} {one.sha256}"] = str(error)
            if isinstance(error, _Nowhere):
                nowhere[one] = error.silent
        else:
            done.arrived.append(f"{one.store} {one.sha256}")
            done.stores.add(one.store)
    unheard = seen.whole.unheard | done.failed.keys()
    note_lost_files(hub, nowhere, wanted[len(wanted) - done.left :], unheard)
    return done


async def _wanted_by(link: Link, done: Brought) -> list[Wanted]:
    """Each artifact once, however many tasks there wait for it."""
    try:
        said = await link.ask("artifacts_missing", {"limit": WANTED_MAX})
        return _each_once(read_missing(link.name, said))
    except NodeRefused as refused:
        if refused.rule not in UNKNOWN:
            done.failed[link.name] = str(refused)
    except ArcError as error:
        done.failed[link.name] = str(error)
    return []


def _each_once(missing: Sequence[Wanted]) -> list[Wanted]:
    waiting = Counter(sha256 for sha256, _ in {(one.sha256, one.uid) for one in missing})
    first = {one.sha256: one for one in reversed(missing)}
    return [replace(one, others=waiting[one.sha256] - 1) for one in reversed(first.values())]


def read_missing(store: str, result: JsonObject) -> list[Wanted]:
    """What its tasks wait for."""
    with reading(store, "artifacts_missing"):
        return [
            Wanted(store, read_sha256(entry), entry.ulid("uid"),
                   entry.ulid("source") if entry.has("source") else None, entry.maybe_node("node"),
                   str(entry.values.get("ref", ""))[:REF_MAX])
            for entry in Fields(result).objects("artifacts", ENTRIES_MAX)
        ]  # fmt: skip


def sources_of(hub: Hub, seen: Look, one: Wanted) -> list[str]:
    """Who may have it, likeliest first: where its task ended, then everybody who can be asked."""
    others = [node.name for node in seen.whole.seen]
    return [name for name in dict.fromkeys([*_told_of(hub, one), *others])
            if name in seen.links and name != one.store
            and isinstance(seen.whole.node(name), NodeSeen)]  # fmt: skip


def _told_of(hub: Hub, one: Wanted) -> list[str]:
    """Where its task ended, as it was told; such a node may be in the fleet no more."""
    ended = hub.journal.ends.of([one.source]).get(one.source) if one.source else None
    return [name for name in (one.node, ended.node if ended else None) if name]


class _Carrier:
    """Carries one artifact: to the hub, unless it is here, and on to the store."""

    def __init__(self, hub: Hub, seen: Look, done: Brought, until: float) -> None:
        self._hub, self._seen, self._done, self._until = hub, seen, done, until

    async def carry(self, one: Wanted) -> None:
        """`_Enough` when the run is over first; an `ArcError` says why it could not be done."""
        if self._hub.artifacts.has(one.sha256) is None:
            await self._fetch(one)
        await self._push(self._seen.links[one.store], one.sha256)

    async def _fetch(self, one: Wanted) -> None:
        tried: dict[str, ArcError] = {}
        for name in sources_of(self._hub, self._seen, one):
            try:
                await self._fetch_from(self._seen.links[name], one.sha256)
            except ArcError as error:
                tried[name] = error
            else:
                return
        asked = "; ".join(f"{name}: {error.rule if isinstance(error, NodeRefused) else error}"
                          for name, error in tried.items()) or "nobody could be asked"  # fmt: skip
        raise _Nowhere(f"{one.store}: artifact {one.sha256} was found nowhere: {asked}",
                       self._silent(one, tried))  # fmt: skip

    def _silent(self, one: Wanted, tried: Mapping[str, ArcError]) -> tuple[str, ...]:
        """Who may have it and has not said that it has none, by name."""
        have_none = {name for name, error in tried.items()
                     if isinstance(error, NodeRefused) and error.rule in HAS_NONE}  # fmt: skip
        whole = self._seen.whole
        may_have = {node.name for node in whole.seen} | whole.unheard
        may_have.update(_told_of(self._hub, one))
        return tuple(sorted(may_have - have_none - {one.store}))

    async def _fetch_from(self, link: Link, sha256: str) -> None:
        """On from where an earlier run ended, whoever it was fetched from then."""
        artifacts, stuck = self._hub.artifacts, 0
        at = artifacts.begun(sha256)
        while not at.done:
            self._check_room()
            asked: JsonObject = {"sha256": sha256, "offset": at.have, "limit": PIECE}
            said = await link.ask("artifact", asked)
            with reading(link.name, "artifact"):
                data, size = read_data(Fields(said)), Fields(said).whole("size", 0, SIZE_MAX)
            self._done.carried += len(data)
            before, at = at, artifacts.put(sha256, size=size, offset=at.have, data=data)
            stuck = self._stuck(link.name, "artifact", stuck, moved=at != before)

    async def _push(self, link: Link, sha256: str) -> None:
        size, stuck = self._hub.artifacts.has(sha256), 0
        assert size is not None, "it was fetched just now"
        at = await self._put(link, sha256, size, offset=0, data=b"")
        while not at.done:
            self._check_room()
            piece = self._hub.artifacts.read(sha256, at.have, PIECE)
            data = piece.data if piece else b""
            self._done.carried += len(data)
            before, at = at, await self._put(link, sha256, size, offset=at.have, data=data)
            stuck = self._stuck(link.name, "artifact_put", stuck, moved=at != before)

    async def _put(
        self, link: Link, sha256: str, size: int, *, offset: int, data: bytes
    ) -> Progress:
        met = await link.meet()
        said = await link.ask("artifact_put", {
            "sha256": sha256, "size": size, "offset": offset,
            "data": base64.b64encode(data).decode("ascii"), "incarnation": met.incarnation,
        })  # fmt: skip
        with reading(link.name, "artifact_put"):
            answer = Fields(said)
            return Progress(answer.whole("have", 0, size), answer.flag("done"))

    def _check_room(self) -> None:
        over = self._hub.clock.boottime() >= self._until
        if over or self._done.carried >= BYTES_MAX:
            raise _Enough

    def _stuck(self, node: str, do: str, count: int, *, moved: bool) -> int:
        """A node whose answers lead nowhere must not hold the hub."""
        if moved:
            return 0
        if count + 1 >= STUCK_MAX:
            raise AnswerUnreadable(node, f"{do} was answered {STUCK_MAX} times and goes nowhere")
        return count + 1


def with_artifacts(report: SensorReport, brought: Brought) -> SensorReport:
    """The same report, and what came, what did not and why."""
    if not (brought.arrived or brought.failed or brought.left):
        return report
    said = [counted(len(brought.arrived), "artifact") + " brought"] if brought.arrived else []
    said += [f"{counted(len(brought.failed), 'artifact')} not brought"] if brought.failed else []
    said += [f"{counted(brought.left, 'artifact')} on the way"] if brought.left else []
    details: JsonObject = {
        "artifacts": [*brought.arrived], "artifacts_failed": {**brought.failed},
        "artifact_bytes": brought.carried, "artifacts_left": brought.left,
    }  # fmt: skip
    return replace(
        report, summary="; ".join([report.summary, *said]), details={**report.details, **details},
        acted=report.acted + len(brought.arrived),
    )  # fmt: skip
