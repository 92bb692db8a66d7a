"""Says of what the dead letters of each node died, where `arc status` says that there are some."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping

from agent_node.strict import JsonValue
from arc.dead_answers import Letter, read_dead
from arc.errors import ArcError
from arc.links import Link
from arc.looking import Look

LOOKED_AT = 200  # dead letters of one node; of more, the kinds of these stand for all
KINDS_MAX = 4
DEAD = " dead: "


async def kinds_of(seen: Look, needs: Iterable[JsonValue]) -> dict[tuple[str, str], str]:
    """For each node's sentence about dead letters the same one with how many died how.

    A node that cannot be asked now is not in it: its own sentence stands.
    """
    said = [(str(one["node"]), str(one["text"])) for one in needs if isinstance(one, dict)]
    about = [(node, text) for node, text in said if DEAD in text and node in seen.links]
    names = sorted({node for node, _ in about})
    found = await asyncio.gather(*(_kinds(seen.links[name]) for name in names))
    kinds = {name: one for name, one in zip(names, found, strict=True) if one}
    return {(node, text): text.replace(DEAD, f" dead ({kinds[node]}): ", 1)
            for node, text in about if node in kinds}  # fmt: skip


def named(
    needs: Iterable[JsonValue], fuller: Mapping[tuple[str, str], str]
) -> list[JsonValue]:
    """The same sentences, the fuller one where there is one: of another count it is none."""
    said = [one for one in needs if isinstance(one, dict)]
    return [{**one, "text": fuller.get((str(one["node"]), str(one["text"])), one["text"])}
            for one in said]  # fmt: skip


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
