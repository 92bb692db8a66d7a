"""Moves what was a dead letter to another node as soon as it may run again: `dead retry --to`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.strict import JsonObject
from arc.asking import read_report
from arc.dead_answers import Letter
from arc.errors import ArcError, MachineFailed, NeedsWord, StateBroken, WrongUse
from arc.links import Link

from . import Told
from .everybody import link_of
from .tasks_move import tasks_move

if TYPE_CHECKING:
    from arc.hub import Hub

PARTLY = 3
# How long the nodes keep them for their moves, which follow one after the other: time for a cycle
# that is under way and for nodes that do not answer, and then for each.
FIRST_S, EACH_S, MOST_S = 120, 2, 600
NOT_THERE = {"kept", "in_doubt"}
BEGUN = "; arc nodes pause {0} keeps it from starting anything before a move"
KEPT = "; {0} is not to start it before {1}, or once you say: arc tasks retry {2}"


@dataclass(frozen=True)
class Onward:
    """Where to, and with which words: the same as those of a move by hand."""

    hub: Hub
    to: str
    words: JsonObject
    even_pinned: bool
    dry_run: bool

    @classmethod
    async def asked_for(cls, hub: Hub, asked: Fields, do: str) -> Onward | None:
        """None: nobody asked for another node. One that does not answer is an error now, before
        anything is retried.
        """
        if not asked.has("to"):
            return None
        if do != "retry":
            raise WrongUse(f"dead {do}: takes no --to; dead retry does")
        to = asked.node("to")
        await link_of(hub, to).ask("status", {})
        words: JsonObject = {"to": to, "yes": asked.flag("even_pinned"),
                             "by": asked.text_or("by", "human:unknown"),
                             "reason": asked.text_or("reason", "no reason given", 1000)}
        return cls(hub, to, words, asked.flag("even_pinned"), asked.flag("dry_run"))

    def words_to(self, node: str, some: Sequence[Letter], count: int) -> JsonObject:
        """What that node is told with the retry, so that it starts none of them before its move;
        nothing where all of them are pinned there and stay.

        One of an older program does not know it, and answers without `not_here_until`.
        """
        if node == self.to or not any(self.even_pinned or not one.task.pinned for one in some):
            return {}
        return {"not_here_s": min(FIRST_S + EACH_S * count, MOST_S)}

    async def sent(self, told: Told, letters: Sequence[Letter]) -> Told:
        """The same answer, in which each that was retried says whether it is on that node now."""
        pinned = {one.task.uid for one in letters if one.task.pinned}
        warnings: list[str] = []
        rows: list[JsonObject] = []
        for one in Fields(told.data).objects("results", len(letters)):
            was, does = one.values, one.values["outcome"] == "changed"
            more = await self._moved(was, warnings, pinned=was["uid"] in pinned) if does else {}
            rows.append(_joined(was, more))
        left = any(row.get("moved") in NOT_THERE for row in rows)
        code = PARTLY if left and not self.dry_run else told.exit
        data: JsonObject = {**told.data, "to": self.to, "results": [*rows]}
        if self.dry_run:
            data["may_start_first"] = [*await self._with_a_free_slot(rows)]
        return replace(
            told, data=data, exit=code,
            warnings=(*told.warnings, *dict.fromkeys(warnings)),
        )  # fmt: skip

    async def _with_a_free_slot(self, rows: Sequence[JsonObject]) -> list[str]:
        """The nodes that may start something of it between the retry and the move: older ones."""
        names = sorted({str(row["node"]) for row in rows
                        if row.get("moved") == "would" and not row.get("not_here_until")})
        free = await asyncio.gather(*(_has_a_free_slot(link_of(self.hub, name)) for name in names))
        return [name for name, one in zip(names, free, strict=True) if one]

    async def _moved(self, row: JsonObject, warnings: list[str], *, pinned: bool) -> JsonObject:
        """What came of the move of one; in a dry run it is no waiting task that could be tried."""
        if row["node"] == self.to:
            return {"moved": "already", "move_rule": "", "move_because": "it is there"}
        try:
            if pinned and not self.even_pinned:
                raise NeedsWord(f"pinned to {row['node']}; to move it all the same: --yes")
            if self.dry_run:
                return {"moved": "would", "move_rule": "", "move_because": ""}
            told = await tasks_move(self.hub, {"tasks": [row["uid"]], **self.words})
        except WrongUse as error:  # it is READY no more
            because = f"{error}{BEGUN.format(row['node']) if row['state'] == 'READY' else ''}"
            return {"moved": "kept", "move_rule": "still_ready", "move_because": because}
        except (StateBroken, MachineFailed) as error:  # of the hub itself, maybe after the move
            return {"moved": "in_doubt", "move_rule": error.code, "move_because": str(error)}
        except ArcError as error:
            return {"moved": "kept", "move_rule": error.code, "move_because": str(error)}
        warnings += told.warnings
        (one,) = Fields(told.data).objects("results", 1)
        said = one.values
        return {"moved": said["outcome"], "move_rule": said["rule"],
                "move_because": said["because"]}  # fmt: skip


def _joined(row: JsonObject, more: JsonObject) -> JsonObject:
    """Both; one that stayed says when its node may start it, one that left says so no more."""
    until, moved = row.get("not_here_until"), more.get("moved")
    if moved in ("moved", "already"):
        return {name: value for name, value in {**row, **more}.items() if name != "not_here_until"}
    if moved == "kept" and until and more["move_rule"] != "still_ready":
        because = str(more["move_because"]) + KEPT.format(row["node"], until, row["uid"])
        return {**row, **more, "move_because": because}
    return {**row, **more}


async def _has_a_free_slot(link: Link) -> bool:
    try:
        return read_report(link.name, None, await link.ask("status", {})).free_slots > 0
    except ArcError:  # the retry itself will say so
        return False
