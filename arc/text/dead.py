"""Renders dead letters, one with its whole history, and what became of decisions about them."""

from __future__ import annotations

from agent_node.strict import JsonObject, JsonValue
from agent_node.text import counted

from .columns import inside, number, objects, rows, said, shorts, subject
from .look import Look
from .tasks import became, what_it_wrote

ASKED_SHOWN = 50  # before somebody says yes to them
MESSAGE_SHOWN = 60  # characters of a message in a line of a terminal


def render_dead(data: JsonObject, look: Look) -> str:
    """A line a dead letter, by node; then how they died and what they cost together."""
    dead = objects(data, "dead")
    unread = said(data.get("unread"), "")
    if not dead:
        return f"no dead letters on those that answered; not {unread}" if unread else (
            "no dead letters")
    short = shorts(dead)
    decided = any(one.get("resolution") for one in dead)
    lines = [
        (short[str(one["uid"])], f"P{said(one.get('priority'))}", said(one.get("node")),
         said(one.get("kind")), said(one.get("attempts")), said(one.get("total_cost_usd")),
         said(one.get("died_at")), "poison" if one.get("poison") else "",
         "yes" if one.get("reviewed") else "", *([_decided(one)] if decided else []),
         subject(one.get("subject"), look))
        for one in dead
    ]  # fmt: skip
    head = ("TASK", "P", "NODE", "DIED OF", "TRIES", "USD", "AT", "POISON", "REVIEWED",
            *(["DECIDED"] if decided else []), "SUBJECT")  # fmt: skip
    kinds = ", ".join(f"{number(many):.0f} {said(kind)}"
                      for kind, many in inside(data, "by_kind").items())  # fmt: skip
    total = counted(int(number(data.get("count"))), "dead letter")
    if were := int(number(data.get("resolved_count"))):
        total += f" and {were} that {'was one' if were == 1 else 'were'}"
    total += f": {kinds}" if kinds else ""
    if data.get("total_cost_usd"):
        total += f"; {said(data.get('total_cost_usd'))} USD"
    more = ["… and more: --limit N"] if data.get("more") else []
    return "\n".join([rows(head, lines, look), *more, total])


def _decided(one: JsonObject) -> str:
    """What became of it, and by whose word."""
    resolved = inside(one, "resolution")
    return (f"{said(resolved.get('what'))} by {said(resolved.get('by'))}, now "
            f"{said(one.get('state'))}") if resolved else ""  # fmt: skip


def render_letter(data: JsonObject, look: Look) -> str:
    """One dead letter: each attempt on a line, then what was said of it and what may be done."""
    head = (f"{said(data.get('uid'))} {subject(data.get('subject'), look)} "
            f"P{said(data.get('priority'))} on {said(data.get('node'))}")  # fmt: skip
    is_dead = data.get("state") in (None, "DEAD_LETTERED")
    died = f"  died {said(data.get('died_at'))} of {said(data.get('kind'))}: "
    lines = [head, died + said(data.get("message")) if is_dead
             else f"  was a dead letter, is {said(data.get('state'))} now"]  # fmt: skip
    if data.get("poison"):
        lines.append("  poison: it failed wherever it was tried")
    lines += _left_out(data)
    lines += [
        f"  attempt {said(one.get('n'))} on {said(one.get('node'))} by {said(one.get('agent'))}: "
        f"{said(one.get('error_kind') or one.get('outcome'))}, {said(one.get('duration_s'))} s, "
        f"cost {_money(one.get('cost_usd'))}: {said(one.get('message'))}"
        for one in objects(data, "history")
    ]
    lines += what_it_wrote(said(data.get("uid")), objects(data, "history"))
    if data.get("next"):
        lines.append(f"  … and more: --after {said(data.get('next'))}")
    lines.append(f"  cost in all: {_money(data.get('total_cost_usd'))}")
    lines += [
        f"  {said(one.get('what'))} by {said(one.get('by'))} {said(one.get('at'))}"
        f" on {said(one.get('node'))}{_after(one)}: {said(one.get('reason'))}"
        for one in objects(data, "decisions")
    ]
    if data.get("decided_since") is False:
        lines.append("  nobody has decided anything since it died")
    uid = said(data.get("uid"))
    if not is_dead:
        return "\n".join([*lines, f"  now: arc tasks show {uid}"])
    now = (f"arc dead retry {uid} (elsewhere: --to NODE), arc dead edit {uid} FIELD=VALUE, "
           f"arc dead cancel {uid}")  # fmt: skip
    done = f"arc tasks resolve {uid} --as done"
    now += f" --reason TEXT; where the work is done after all: {done}"
    return "\n".join([*lines, f"  now: {now}"])


def _after(one: JsonObject) -> str:
    n = one.get("after_attempt")
    return f", after attempt {said(n)}" if n is not None else ""


def _money(amount: JsonValue) -> str:
    return f"{said(amount)} USD" if amount else "not known"


def _left_out(data: JsonObject) -> list[str]:
    """Which attempts before the first that is told there were: a node tells the last hundred."""
    history, after = objects(data, "history"), data.get("after")
    first = history[0].get("n") if history else 1
    begun = after + 1 if isinstance(after, int) else 1
    if not isinstance(first, int) or first <= begun:
        return []
    which = f"  attempts {begun} to {first - 1} are"
    if isinstance(after, int):
        return [f"{which} not known there; the cost has what was"]
    return [f"{which} not told here; ask with --after 0; the cost has them"]


def render_decided(data: JsonObject, look: Look) -> str:
    """What became of each."""
    results = objects(data, "results")
    if not results:
        return "no dead letter fits; nothing was changed"
    short = shorts(results)
    mark = " (dry run: nothing was changed)" if data.get("dry_run") else ""
    replaced = any(one.get("replaces") for one in results)  # the dead one is cancelled then
    do = "cancel" if replaced else str(data.get("do") or "")
    lines = []
    for one in results:
        line = (f"{short[str(one['uid'])]}  {became(one, do, dry_run=bool(mark))} "
                f"{_where(one, said(data.get('to')))}")  # fmt: skip
        if one.get("replaces"):
            line += f"  in the place of {said(one.get('replaces'))}"
        if one.get("rule"):
            line += f"  {said(one.get('rule'))}: {said(one.get('because'))}"
        lines.append(line + _onward(one, said(data.get("to"))) + mark)
    done = sum(one.get("outcome") != "refused" for one in results)
    would = "would " if mark else ""
    lines.append(f"{would}{said(data.get('do'))}: {done} of {len(results)}")
    if data.get("to"):
        there = sum(one.get("moved") in ("moved", "already", "would") for one in results)
        lines.append(f"{would}be on {said(data.get('to'))}: {there} of {len(results)}" if mark
                     else f"on {said(data.get('to'))}: {there} of {len(results)}")
    return "\n".join([*lines, *_first(data)])


def _where(one: JsonObject, to: str) -> str:
    """Where it is now; of what went on to another node its old state says nothing any more."""
    node = said(one.get("node"))
    if one.get("moved") in ("moved", "already") and node != to:
        return f"on {to}, moved from {node}"
    return f"{said(one.get('state'))} on {node}"


def _first(data: JsonObject) -> list[str]:
    """Which nodes may be faster than the move, and how a person keeps them from it."""
    found = data.get("may_start_first")
    return [f"{said(name)} may start it first; to prevent that: arc nodes pause {said(name)}"
            for name in (found if isinstance(found, list) else [])]  # fmt: skip


_ONWARD = {"moved": "", "would": "  and would be moved to {0} then", "already": "",
           "kept": "  not moved to {0}: ", "in_doubt": "  its move to {0} is in doubt: "}


def _onward(one: JsonObject, to: str) -> str:
    """What came of its move to another node, where one was asked for."""
    moved = str(one.get("moved") or "already")
    because = said(one.get("move_because")) if moved in ("kept", "in_doubt") else ""
    return _ONWARD[moved].format(to) + because


def render_asked_about(data: JsonObject, look: Look) -> str:
    """Which ones a person is asked about, a line each, their count first; empty: there are none."""
    results = [one for one in objects(data, "results") if one.get("outcome") != "refused"]
    if not results:
        return ""
    short = shorts(results)
    lines = [f"  {short[str(one['uid'])]}  {subject(one.get('subject'), look)}  on "
             f"{said(one.get('node'))}" for one in results[:ASKED_SHOWN]]  # fmt: skip
    left = len(results) - len(lines)
    more = [f"  … and {left} more: --dry-run shows them"] if left else []
    to = f", to run on {said(data.get('to'))}" if data.get("to") else ""
    count = counted(len(results), "dead letter")
    return "\n".join([f"{said(data.get('do'))}: {count}{to}", *lines, *more, *_first(data), ""])
