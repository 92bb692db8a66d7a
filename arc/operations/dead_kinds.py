"""Says of what the dead letters of each node died, where `arc status` says that there are some."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

from agent_node.strict import JsonObject, JsonValue
from arc.dead_answers import Letter, read_dead
from arc.errors import ArcError
from arc.links import Link
from arc.looking import Look

LOOKED_AT = 200  # dead letters of one node; of more, the kinds of these stand for all
KINDS_MAX = 4
DEAD = " dead: "


async def with_kinds(seen: Look, needs: Iterable[JsonValue]) -> list[JsonValue]:
    """The same sentences; those about dead letters also count them by how they died.

    A node that cannot be asked now keeps its own sentence.
    """
    said = [one for one in needs if isinstance(one, dict)]
    about = {str(one["node"]) for one in said if DEAD in str(one["text"])} & seen.links.keys()
    names = sorted(about)
    found = await asyncio.gather(*(_kinds(seen.links[name]) for name in names))
    kinds = dict(zip(names, found, strict=True))
    return [_named(one, kinds.get(str(one["node"]), "")) for one in said]


def _named(one: JsonObject, kinds: str) -> JsonObject:
    text = str(one["text"])
    return {**one, "text": text.replace(DEAD, f" dead ({kinds}): ", 1)} if (
        kinds and DEAD in text) else one


async def _kinds(link: Link) -> str:
    try:
        letters, following = read_dead(
            link.name, await link.ask("dead", {"limit": LOOKED_AT}))
    except ArcError:
        return ""  # an older program, or gone since: its count stands, and the kinds are not known
    return _by_kind(letters, more=following is not None)


def _by_kind(letters: tuple[Letter, ...], *, more: bool) -> str:
    count = Counter(one.kind or "?" for one in letters).most_common(KINDS_MAX)
    parts = [f"{many} {kind}" for kind, many in count]
    poison = sum(one.poison for one in letters)
    parts += [f"{poison} poison"] if poison else []
    parts += ["…"] if more or len({one.kind for one in letters}) > KINDS_MAX else []
    return ", ".join(parts)
