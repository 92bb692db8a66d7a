"""Lists and shows dead letters wherever they lie, with every attempt and what it cost."""

from __future__ import annotations

import asyncio
import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.retries import KINDS
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import to_wire
from agent_node.text import WHOLE_SHORT, first_of, safe_text, short_uids
from agent_node.ulid import is_ulid
from arc.asking import ENTRIES_MAX, reading
from arc.dead_answers import Letter, Meant, letter_line, meant_by, read_dead, total_of
from arc.errors import Ambiguous, ArcError, NotFound, NotFoundYet
from arc.links import Link

from . import Told
from .dead_decisions import decisions_about, moved_letter
from .everybody import Answers, check_node, link_of, not_asked, not_found_yet
from .finding import part_of_uid
from .nobodys import no_domain

if TYPE_CHECKING:
    from arc.hub import Hub

PAGE = 1000
LETTERS_MAX = 20_000  # of one node that one answer looks at
SHOWN = 200
ATTEMPTS = 100  # of one dead letter
CANDIDATES = 20


@dataclass(frozen=True)
class Pile:
    """Every dead letter of the nodes that answered, oldest first at each, and who did not."""

    letters: tuple[Letter, ...]
    failed: Mapping[str, ArcError]
    suspended: tuple[str, ...]
    cut: tuple[str, ...] = ()  # nodes that have more than one answer looks at
    slips: tuple[str, ...] = ()  # words of the filter by which nothing can have been meant

    @property
    def partial(self) -> tuple[JsonObject, ...]:
        """The failures as they stand in an envelope."""
        return Answers({}, self.failed).partial

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is in no answer."""
        more = tuple(f"{node} has more than {LETTERS_MAX} dead letters; only the oldest were "
                     "looked at" for node in self.cut)  # fmt: skip
        return (*self.suspended, *more, *self.slips)


async def pile_of(hub: Hub, meant: Meant, *, resolved: bool = False) -> Pile:
    """All dead letters that are meant; nodes are asked at once, page by page. `resolved`: also what
    was one until somebody decided.
    """
    if meant.node is not None and meant.node != "inbox":
        check_node(hub, meant.node)
    links = [link_of(hub, name) for name in ([meant.node] if meant.node else sorted(hub.links))]
    found = await asyncio.gather(*(
        _letters(link, {"poison": meant.poison, "resolved": resolved}) for link in links))
    letters = tuple(one for some in found if isinstance(some, list) for one in some)
    failed = {link.name: said for link, said in zip(links, found, strict=True)
              if isinstance(said, ArcError)}  # fmt: skip
    full = Counter(one.node for one in letters)
    cut = tuple(sorted(node for node, count in full.items() if count >= LETTERS_MAX))
    left = () if meant.node is not None else not_asked(hub)
    taken = tuple(one for one in letters if meant.takes(one))
    slips = () if taken else (*_no_kind(meant.kind, letters), *no_domain(hub, meant.domain))
    return Pile(taken, failed, left, cut, slips)


def _no_kind(kind: str | None, letters: Sequence[Letter]) -> tuple[str, ...]:
    """That nothing is known to die of this. It is no error: a program may fail in a way of its own,
    of which there is none now.
    """
    known = {*KINDS, *(one.kind for one in letters if one.kind)}
    if kind is None or kind in known:
        return ()
    near = difflib.get_close_matches(kind.lower(), sorted(known), n=1, cutoff=0.5)
    words = ", ".join(sorted(known)[:CANDIDATES])
    meant = f"did you mean {near[0]}?" if near else f"known are {words}"
    return (safe_text(f"--kind: no dead letter that was looked at died of {kind!r}; {meant}"),)


async def _letters(link: Link, which: JsonObject) -> list[Letter] | ArcError:
    letters: list[Letter] = []
    asked: JsonObject = {"limit": PAGE, **which}
    try:
        while len(letters) < LETTERS_MAX:
            page, following = read_dead(link.name, await link.ask("dead", dict(asked)))
            letters += page
            if following is None or not page:  # a list that says nothing new has ended
                break
            asked["after"] = following
    except ArcError as error:
        return error
    return letters[:LETTERS_MAX]


async def dead_list(hub: Hub, args: JsonObject) -> Told:
    """Dead letters that fit, by node and the order they came; what they cost, and how they died.

    With `resolved` also what was one; counted, and added up, is what is dead now.
    """
    asked = Fields(args)
    limit = asked.limit(SHOWN, LETTERS_MAX)
    pile = await pile_of(hub, meant_by(asked), resolved=asked.flag("resolved"))
    dead = [one for one in pile.letters if one.is_dead]
    kinds = Counter(one.kind or "?" for one in dead)
    data: JsonObject = {
        "dead": [letter_line(one) for one in pile.letters[:limit]],
        "more": len(pile.letters) > limit, "count": len(dead),
        "resolved_count": len(pile.letters) - len(dead),
        "by_kind": dict(kinds.most_common()), "unread": [*sorted(pile.failed)],
        "poison": sum(one.poison for one in dead),
        "total_cost_usd": total_of([one.total_cost_usd for one in dead]),
    }  # fmt: skip
    return Told(data, 3 if pile.failed else 0, pile.partial, pile.warnings)


async def dead_show(hub: Hub, args: JsonObject) -> Told:
    """One dead letter whole: every attempt, where, by whom, how it failed and what it cost.

    `attempts` and `after` ask its node for other attempts than the last hundred. What was a dead
    letter is found where none that is one still fits.
    """
    asked = Fields(args)
    part = asked.text("task", 64)
    pile = await pile_of(hub, Meant())
    try:
        letter = pick(pile, part)
    except (NotFound, NotFoundYet):
        pile = await pile_of(hub, Meant(), resolved=True)
        letter = await _decided(hub, pile, part)
    decisions = await decisions_about(hub, letter)
    said = (*pile.warnings, *decisions.unheard)
    data: JsonObject = {
        **letter_line(letter), "task": to_wire(letter.task),
        "history": [dict(one) for one in letter.attempts], "after": None, "next": None,
        "decisions": [*decisions.listed], "decided_since": decisions.since,
    }  # fmt: skip
    if not asked.has("attempts") and not asked.has("after"):
        return Told(data, warnings=said)
    page, warnings = await _attempts(hub, letter, asked)
    return Told({**data, **page}, warnings=(*said, *warnings))


async def _decided(hub: Hub, pile: Pile, part: str) -> Letter:
    """What was a dead letter, also where it moved on since: then no record says so where it is."""
    try:
        return pick(pile, part)
    except (NotFound, NotFoundYet):
        try:
            letter = await moved_letter(hub, part)
        except ArcError:
            letter = None  # no such task: what the pile says of it is nearer
        if letter is None:
            raise
        return letter


async def _attempts(
    hub: Hub, letter: Letter, asked: Fields
) -> tuple[JsonObject, tuple[str, ...]]:  # fmt: skip
    """The attempts that were asked for, as the node of the dead letter tells them."""
    after = asked.maybe_whole("after", 0, 10**9)
    most = asked.maybe_whole("attempts", 1, PAGE) or ATTEMPTS
    told = await link_of(hub, letter.node).ask(
        "show", {"uid": letter.task.uid, "attempts": most, "attempts_after": after})  # fmt: skip
    with reading(letter.node, "show"):
        said = Fields(told)
        history: list[JsonValue] = [one.values for one in said.objects("attempts", ENTRIES_MAX)]
        following = said.maybe_whole("attempts_next", 0, 10**9)
    if "attempts_next" in told:
        return {"history": history, "after": after, "next": following}, ()
    old = f"{letter.node} is too old to tell other attempts than the last {len(history)}"
    return {"history": history[-most:]}, (old,)


def pick(pile: Pile, part: str) -> Letter:
    """The dead letter that is meant by this beginning or end of a uid.

    `NotFound` only when every node answered with all that it has; else `NotFoundYet`. `Ambiguous`
    names ten.
    """
    wanted = part_of_uid(part)
    found = [one for one in pile.letters if _fits(one.task.uid, wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise Ambiguous(f"{part[:40]}: could be any of these:\n{_candidates(found)}",
                        hint="give more of the uid")  # fmt: skip
    if pile.failed or pile.suspended:
        raise not_found_yet(f"{part[:40]}: no node that answered has such a dead letter",
                            pile.failed, pile.suspended)  # fmt: skip
    if pile.cut:
        raise NotFoundYet(f"{part[:40]}: no dead letter that was looked at; {pile.warnings[-1]}",
                          hint="arc tasks show UID and arc tasks retry UID find any task by its "
                               "whole uid")  # fmt: skip
    raise NotFound(f"{part[:40]}: no dead letter's uid begins or ends so",
                   hint="arc dead list shows those that are there, arc tasks show other tasks; "
                        + WHOLE_SHORT)  # fmt: skip


def _fits(uid: str, part: str) -> bool:
    if is_ulid(part):
        return uid == part
    return bool(part) and (uid.startswith(part) or uid.endswith(part))


def _candidates(letters: Sequence[Letter]) -> str:
    short = short_uids(one.task.uid for one in letters)
    return first_of([
        f"  {short[one.task.uid]}  {one.task.uid}  {one.node}  {safe_text(one.task.subject, 60)}"
        for one in letters
    ])
