"""Carries a person's decision on dead letters to the nodes that have them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from agent_node.errors import BadInput
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import IMMUTABLE, SETTABLE, to_wire
from agent_node.text import counted
from arc.asking import read_added, read_changed
from arc.dead_answers import Letter, meant_by
from arc.errors import ArcError, NeedsWord, WrongUse
from arc.links import Link

from . import Told, exit_of
from .dead import Pile, pick, pile_of
from .dead_awaited import nobody_waits_for
from .dead_onward import Onward
from .everybody import incarnation_of, link_of, partial

if TYPE_CHECKING:
    from arc.hub import Hub

BATCH = 500
REASON_MAX = 1000
LOGGED_MAX = 50
SHOWN_MAX = 1_000_000  # that a person can have been asked about
PAST = {"retry": "dead_retried", "cancel": "dead_cancelled", "review": "dead_reviewed",
        "edit": "dead_edited"}  # fmt: skip
# What a copy of a dead letter takes from it; its life, its key and its edges are its own.
_COPIED = (IMMUTABLE | SETTABLE) - {"uid", "key", "created_at", "body", "depends_on", "ref"}


@dataclass(frozen=True)
class Decision:
    """What a person decided, as every node is told."""

    do: str  # retry | cancel | review | edit
    reason: str
    by: str
    dry_run: bool
    fields: JsonObject  # of edit: what is set before the retry
    body: str | None  # of edit: the new task's; None: the body stays


async def dead_change(hub: Hub, args: JsonObject) -> Told:
    """Retry, cancel, review or edit dead letters: those that are named, or all that fit a filter.

    All are found before anything is done to one of them. By filter it takes `yes` and a reason.
    """
    asked = Fields(args)
    decision = _decision(asked)
    onward = await Onward.asked_for(hub, asked, decision.do)
    named = asked.words("tasks")
    pile = await pile_of(hub, meant_by(asked))
    letters = _meant(asked, pile, named, decision)
    said = () if named else pile.warnings
    if not named and asked.has("shown"):
        letters, more_said = _shown(asked, letters, decision)
        said = (*said, *more_said)
    if decision.body is not None:
        return await _replaced(hub, letters, decision)
    by_node: dict[str, list[Letter]] = defaultdict(list)
    for one in letters:
        by_node[one.node].append(one)
    results: list[JsonObject] = []
    unread = [*(pile.partial if not named else ())]
    for node, some in sorted(by_node.items()):
        try:
            more = onward.words_to(node, some, len(letters)) if onward is not None else {}
            results += await _told(link_of(hub, node), some, decision, more)
        except ArcError as error:
            if len(by_node) == 1 and not results:
                raise
            unread.append(partial(node, error))
    if not decision.dry_run:
        _remember(hub, decision, results)
    told = _answer(results, decision, unread, said)
    return await onward.sent(told, letters) if onward is not None else told


def _decision(asked: Fields) -> Decision:
    do = asked.word("do", "retry", "cancel", "review", "edit")
    fields = asked.mapping("fields") if asked.has("fields") else {}
    body = asked.values.get("body")
    if body is not None and not isinstance(body, str):
        raise BadInput("should be a text", "body")
    if do == "edit" and not fields and body is None:
        raise WrongUse("dead edit: what is to change? FIELD=VALUE, or --body-file FILE")
    reason, by = asked.text_or("reason", "", REASON_MAX), asked.text_or("by", "human:unknown")
    return Decision(do, reason, by, asked.flag("dry_run"), fields, body)


def _meant(
    asked: Fields, pile: Pile, named: Sequence[str], decision: Decision
) -> list[Letter]:
    """The dead letters that this is about, each once."""
    if named:
        return [*{one.task.uid: one for one in (pick(pile, part) for part in named)}.values()]
    if not meant_by(asked).says_something and not asked.flag("all"):
        raise WrongUse(f"dead {decision.do}: which? name dead letters, give a filter, or --all")
    if pile.letters and not decision.dry_run:
        if not asked.flag("yes"):
            raise NeedsWord(f"{decision.do}: all of {counted(len(pile.letters), 'dead letter')} "
                            "takes --yes", hint="--dry-run shows which")  # fmt: skip
        if not decision.reason:
            raise NeedsWord(f"{decision.do}: all of {counted(len(pile.letters), 'dead letter')} "
                            "takes a --reason")  # fmt: skip
    return [*pile.letters]


def _shown(
    asked: Fields, letters: Sequence[Letter], decision: Decision
) -> tuple[list[Letter], tuple[str, ...]]:
    """Those of them that a person was shown before the yes; and in words, what has changed since.

    What died meanwhile fits the filter too, and nobody has seen it.
    """
    known = {str(one) for one in asked.entries("shown", SHOWN_MAX)}
    taken = [one for one in letters if one.task.uid in known]
    new, gone = len(letters) - len(taken), len(known) - len(taken)
    said = []
    if new:
        said.append(f"{counted(new, 'dead letter')} came after the question, and no {decision.do}"
                    " is about what was not shown: type it again to be asked")
    if gone:
        said.append(f"{gone} of those that were shown could not be found as dead letters any more;"
                    " arc dead list --resolved shows what became of them")
    return taken, tuple(said)


async def _told(
    link: Link, letters: Sequence[Letter], decision: Decision, more: JsonObject | None = None
) -> list[JsonObject]:
    """What became of these on one node; an edited one is set first and then retried.

    `more` is what else the node is told of each; None: nothing.
    """
    results: list[JsonObject] = []
    for start in range(0, len(letters), BATCH):
        some = letters[start : start + BATCH]
        if decision.do != "edit":
            do, fields = _WORDS[decision.do]
            results += await _say(link, do, {**fields, **(more or {})}, some, decision)
            continue
        was = await _say(link, "set", {"fields": decision.fields}, some, decision)
        good = {str(one["uid"]) for one in was if one["outcome"] != "refused"}
        results += [one for one in was if one["uid"] not in good]
        left = [one for one in some if one.task.uid in good]
        results += await _say(link, "retry", {}, left, decision) if left else []
    return results


# `resolve` and not `cancel`: it refuses what is no dead letter any more.
_WORDS: dict[str, tuple[str, JsonObject]] = {
    "retry": ("retry", {}),
    "review": ("dead_review", {}),
    "cancel": ("resolve", {"as": "cancelled"}),
}


async def _say(
    link: Link, do: str, more: JsonObject, letters: Sequence[Letter], decision: Decision
) -> list[JsonObject]:
    known = {one.task.uid: one for one in letters}
    fields: JsonObject = {
        "uids": list[JsonValue](known), "reason": decision.reason, "by": decision.by,
        "dry_run": decision.dry_run, **more, **await incarnation_of(link),
    }  # fmt: skip
    said = read_changed(link.name, do, await link.ask(do, fields))
    return [
        {"uid": one.uid, "node": link.name, "outcome": one.outcome,
         "subject": known[one.uid].task.subject if one.uid in known else "",
         "state": str(one.task.state) if one.task else "DEAD_LETTERED",
         "rule": one.because.rule if one.because else "",
         "because": one.because.text if one.because else "",
         **({"not_here_until": one.not_here_until} if one.not_here_until else {})}
        for one in said
    ]  # fmt: skip


async def _replaced(hub: Hub, letters: Sequence[Letter], decision: Decision) -> Told:
    """A body never changes: a new task takes the dead one's place, which is then cancelled."""
    if len(letters) != 1:
        raise WrongUse("dead edit: a body is changed of one dead letter at a time")
    (letter,), link = letters, hub.inbox
    if letter.task.dag is not None:
        raise WrongUse(f"dead edit: {letter.task.uid} is part of graph {letter.task.dag}, whose "
                       "other tasks wait for it and for no other: its body stays",
                       hint="retry it, or cancel the graph and submit another")  # fmt: skip
    warnings = await nobody_waits_for(hub, letter.task.uid)
    fields: JsonObject = {"tasks": [_copy_of(letter, decision, hub.mint())], "by": decision.by,
                          "whole": True, "dry_run": decision.dry_run,
                          **await incarnation_of(link)}  # fmt: skip
    added = read_added(link.name, await link.ask("add", fields))[0]
    result: JsonObject = {
        "uid": added.uid, "node": link.name, "outcome": added.outcome, "state": "READY",
        "subject": letter.task.subject, "replaces": letter.task.uid,
        "rule": added.because.rule if added.because else "",
        "because": added.because.text if added.because else "",
    }  # fmt: skip
    results, unread = [result], list[JsonObject]()
    if added.outcome != "refused":
        try:
            said = await _told(link_of(hub, letter.node), [letter], _instead(added.uid, decision))
        except ArcError as error:
            said, unread = [], [partial(letter.node, error)]
            warnings = (*warnings, *_both_there(added.uid, letter, decision))
        results += said
        if added.outcome == "added" and any(one["outcome"] == "refused" for one in said):
            results.append(await _taken_back(link, result, decision))
    if not decision.dry_run:
        _remember(hub, decision, results)
    return _answer(results, decision, unread, warnings)


def _instead(copy: str, decision: Decision) -> Decision:
    """What the dead one's node is told."""
    why = f"replaced by {copy}" + (f": {decision.reason}" if decision.reason else "")
    return Decision("cancel", why[:REASON_MAX], decision.by, decision.dry_run, {}, None)


def _both_there(copy: str, letter: Letter, decision: Decision) -> tuple[str, ...]:
    """Its node failed after the copy was added: who retried the dead one would have it twice."""
    if decision.dry_run:
        return ()
    text = (f"{copy} is in the hub's queue with the new body, and whether {letter.task.uid} is"
            " still a dead letter is not known: type the same again, which adds nothing twice")
    return (text,)


async def _taken_back(link: Link, copy: JsonObject, decision: Decision) -> JsonObject:
    """Somebody let the dead task live again meanwhile, so the work that was to stand in its place
    would be done twice; where that has begun already, the answer says so.
    """
    why = f"{copy['replaces']} is no dead letter any more, so nothing takes its place"
    fields: JsonObject = {"uids": [copy["uid"]], "reason": why, "by": decision.by,
                          "dry_run": decision.dry_run, **await incarnation_of(link)}  # fmt: skip
    (one,) = read_changed(link.name, "cancel", await link.ask("cancel", fields))
    refused = one.because
    return {
        **copy, "outcome": "refused", "state": str(one.task.state) if one.task else "",
        "rule": refused.rule if refused else "not_dead",
        "because": f"{why}; its copy could not be cancelled: {refused.text}" if refused else why,
    }  # fmt: skip


def _copy_of(letter: Letter, decision: Decision, uid: str) -> JsonObject:
    """The same work with another body; its key is the same however often this is repeated."""
    body = decision.body or ""
    whole = to_wire(letter.task)
    kept = {name: value for name, value in whole.items() if name in _COPIED}
    digest = sha256(body.encode()).hexdigest()[:16]
    return {**kept, **decision.fields, "uid": uid, "body": body, "ref": letter.task.uid,
            "source": decision.by, "key": f"instead:{letter.task.uid}:{digest}"}  # fmt: skip


def _remember(hub: Hub, decision: Decision, results: Sequence[JsonObject]) -> None:
    """The log has who and why; what lives again is not taken for ended any more."""
    done = [one for one in results if one["outcome"] in {"changed", "added"}]
    said: JsonObject = {"by": decision.by, "reason": decision.reason}
    if len(done) > LOGGED_MAX:
        hub.journal.runs.log(PAST[decision.do], fields={"count": len(done), **said})
    for one in done if len(done) <= LOGGED_MAX else ():
        hub.journal.runs.log(PAST[decision.do], node=str(one["node"]), task=str(one["uid"]),
                             fields=said)  # fmt: skip
    for one in done:
        if one["state"] == "READY" and one["outcome"] == "changed":
            hub.journal.ends.take_back(str(one["node"]), [str(one["uid"])])


def _answer(
    results: list[JsonObject], decision: Decision, unread: list[JsonObject],
    warnings: tuple[str, ...],
) -> Told:  # fmt: skip
    """A new body is one thing, done or not, however many results tell of it."""
    data: JsonObject = {"do": decision.do, "results": [*results], "dry_run": decision.dry_run}
    code = exit_of(results, unread=bool(unread))
    if decision.body is not None and not unread:
        code = 1 if code else 0
    return Told(data, code, tuple(unread), warnings)


