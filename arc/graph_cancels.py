"""Cancels members of cancelled graphs wherever they are; who is away is told when it is back."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue

from .asking import read_changed
from .errors import ArcError
from .links import Link

if TYPE_CHECKING:
    from .hub import Hub

UIDS_MAX = 500  # in one request
# What a node says of a task that will not change there: it ended, or it is not there at all.
ENDED, ABSENT = frozenset({"ended"}), frozenset({"unknown_task", "moved_to"})


@dataclass(frozen=True)
class CancelsCarried:
    """What became of them: which are over, and why some nodes could not be told."""

    done: Mapping[str, str]  # uid: cancelled | stopping | ended | nowhere
    failed: Mapping[str, ArcError]


async def carry_out_cancels(
    hub: Hub, links: Mapping[str, Link], *, all_there: bool
) -> CancelsCarried:
    """Tell every node of `links` to cancel what is owed; what is over is owed no longer. Only for
    who holds `hub.moving`: a task that moves meanwhile could be missed at both ends.

    `all_there`: no node of the fleet is missing among the links, so that a task which none of them
    has is nowhere.
    """
    by_word: dict[tuple[str, str], list[str]] = defaultdict(list)
    for owed in hub.journal.outbox.owed_cancels():
        by_word[owed.by, owed.reason].append(owed.uid)
    done: dict[str, str] = {}
    failed: dict[str, ArcError] = {}
    for (by, reason), uids in by_word.items():
        for start in range(0, len(uids), UIDS_MAX):
            some = uids[start : start + UIDS_MAX]
            said, silent = await _tell_all(links, some, {"by": by, "reason": reason})
            failed |= silent
            done |= _over(some, said, all_there=all_there and not silent)
    hub.journal.outbox.cancelled(done)
    return CancelsCarried(done, failed)


Said = dict[str, tuple[str, str]]  # uid: outcome and rule


async def _tell_all(
    links: Mapping[str, Link], uids: Sequence[str], word: JsonObject
) -> tuple[list[Said], dict[str, ArcError]]:
    found = await asyncio.gather(*(_tell(link, uids, word) for link in links.values()))
    pairs = list(zip(links, found, strict=True))
    return ([one for _, one in pairs if not isinstance(one, ArcError)],
            {name: one for name, one in pairs if isinstance(one, ArcError)})  # fmt: skip


async def _tell(link: Link, uids: Sequence[str], word: JsonObject) -> Said | ArcError:
    try:
        met = await link.meet()
        asked: JsonObject = {"uids": list[JsonValue](uids), **word, "incarnation": met.incarnation}
        changed = read_changed(link.name, "cancel", await link.ask("cancel", asked))
    except ArcError as error:
        return error
    return {one.uid: (one.outcome, one.because.rule if one.because else "") for one in changed}


def _over(uids: Iterable[str], said: Sequence[Said], *, all_there: bool) -> dict[str, str]:
    """Of which tasks nothing more has to be said: somebody cancelled it, or it had ended, or it is
    nowhere; one that is on its way between two nodes is told again.
    """
    over: dict[str, str] = {}
    for uid in uids:
        words = [one[uid] for one in said if uid in one]
        outcomes, rules = {outcome for outcome, _ in words}, {rule for _, rule in words}
        if "changed" in outcomes or "stopping" in outcomes:
            over[uid] = "stopping" if "stopping" in outcomes else "cancelled"
        elif rules & ENDED:
            over[uid] = "ended"
        elif all_there and rules <= ABSENT:
            over[uid] = "nowhere"
    return over
