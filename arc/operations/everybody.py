"""Asks many nodes the same thing at once, and keeps who could not answer apart from who did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from agent_node.strict import JsonObject, JsonValue
from agent_node.text import safe_text
from arc.errors import ArcError, LinkError, NodeUnreachable, NotFound, NotFoundYet
from arc.looking import INBOX
from arc.telling import may_have_happened

if TYPE_CHECKING:
    from arc.decisions.view import NodeUnseen
    from arc.hub import Hub
    from arc.links import Link

Value = TypeVar("Value")
SILENT_SHOWN = 10
REASON_SHOWN = 200


@dataclass(frozen=True)
class Answers(Generic[Value]):
    """What each node said, by name, and the error of each that said nothing that can be read."""

    said: Mapping[str, Value]
    failed: Mapping[str, ArcError]

    @property
    def partial(self) -> tuple[JsonObject, ...]:
        """The failures as they stand in an envelope."""
        return tuple(partial(name, error) for name, error in sorted(self.failed.items()))


def partial(node: str, error: ArcError) -> JsonObject:
    """One node that could not be read, as it stands in an envelope."""
    said: JsonObject = {"code": error.code, "message": str(error)}
    if error.hint:
        said["hint"] = error.hint
    return {"node": node, "error": said}


def partial_of(nodes: Iterable[NodeUnseen]) -> tuple[JsonObject, ...]:
    """Those that told nothing, each once, as they stand in an envelope."""
    once = {one.name: one for one in nodes}
    return tuple({"node": name, "error": {"code": one.code or LinkError.code,
                                          "message": one.because}}
                 for name, one in sorted(once.items()))  # fmt: skip


async def ask_all(
    hub: Hub,
    do: str,
    fields: JsonObject,
    read: Callable[[str, JsonObject], Value],
    *,
    names: Iterable[str] | None = None,
) -> Answers[Value]:
    """Ask these nodes, or all with the inbox; each within the link's own limit."""
    wanted = sorted(hub.links if names is None else names)
    found = await asyncio.gather(*(_ask(hub.links[name], do, fields, read) for name in wanted))
    pairs = dict(zip(wanted, found, strict=True))
    said = {name: one for name, one in pairs.items() if not isinstance(one, ArcError)}
    failed = {name: one for name, one in pairs.items() if isinstance(one, ArcError)}
    return Answers(said, failed)


async def _ask(
    link: Link, do: str, fields: JsonObject, read: Callable[[str, JsonObject], Value]
) -> Value | ArcError:
    try:
        return read(link.name, await link.ask(do, dict(fields)))
    except ArcError as error:
        return error


def not_found_yet(
    what: str, failed: Mapping[str, ArcError], suspended: Sequence[str] = ()
) -> NotFoundYet:
    """It was not found, and these may have it: why each told nothing, and what to type."""
    names = sorted(failed)
    silent = [f"{name} did not answer: {_reason(name, failed[name])}"
              for name in names[:SILENT_SHOWN]]  # fmt: skip
    if len(names) > SILENT_SHOWN:
        silent.append(f"{len(names) - SILENT_SHOWN} more did not answer")
    hint = ("arc nodes resume NODE, and it is asked again" if not names else
            "arc doctor" if names == [INBOX] else
            f"arc doctor --node {next(name for name in names if name != INBOX)}")  # fmt: skip
    return NotFoundYet("; ".join([what, *silent, *suspended[:SILENT_SHOWN]]), hint=hint)


def _reason(node: str, error: ArcError) -> str:
    return safe_text(str(error).removeprefix(f"{node}: "), REASON_SHOWN)


@contextmanager
def nothing_changed() -> Iterator[None]:
    """Around the first request of an order that changes something: without contact the error says
    that nothing was changed, and what to type.
    """
    try:
        yield
    except NodeUnreachable as error:
        why = "arc doctor says why" if error.node == INBOX else (
            f"arc doctor --node {error.node} says why, arc nodes show {error.node} when it was "
            "seen last")  # fmt: skip
        raise error.hinting(f"nothing was changed; {error.hint or why}") from error


@contextmanager
def naming(uid: str, hint: str, *, begun: bool = False) -> Iterator[None]:
    """Around an order that adds something: where it may have been added, the error names the uid
    that it has, which was drawn here and which nobody could look for otherwise. `begun`: something
    was added before, so that every error does.
    """
    try:
        yield
    except ArcError as error:
        if not begun and not may_have_happened(error):
            raise
        both = f"{hint}; {error.hint}" if error.hint else hint
        raise error.hinting(both, where=uid) from error


def link_of(hub: Hub, name: str) -> Link:
    """The link to this node, or `NotFound` with what may be meant."""
    link = hub.links.get(name)
    if link is not None:
        return link
    if name in hub.journal.words.suspended():
        raise NotFound(f"{name} is suspended, so it is not asked", hint=f"arc nodes resume {name}")
    raise NotFound(f"the fleet has no node {name!r}", hint=f"there are: {_names(hub)}")


def check_node(hub: Hub, name: str) -> None:
    """Return only when fleet.yaml has this node, suspended or not."""
    if hub.settings.node(name) is None:
        raise NotFound(f"the fleet has no node {name!r}", hint=f"there are: {_names(hub)}")


def _names(hub: Hub) -> str:
    return ", ".join(sorted(node.name for node in hub.settings.nodes)) or "none yet"


async def incarnation_of(link: Link) -> JsonObject:
    """The field by which a change is meant for the node as it is now, and for no later one."""
    met = await link.meet()
    return {"incarnation": met.incarnation}


def not_asked(hub: Hub) -> tuple[str, ...]:
    """A warning for each node that is suspended: what it has is in no answer."""
    return tuple(f"{name} is suspended, so it was not asked"
                 for name in sorted(hub.journal.words.suspended())
                 if hub.settings.node(name) is not None)  # fmt: skip


def words_of(values: Iterable[str]) -> list[JsonValue]:
    """Texts as a JSON list."""
    return list(values)
