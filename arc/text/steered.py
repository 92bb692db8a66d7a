"""Renders what became of a word to one node, and what a drain moves and leaves there."""

from __future__ import annotations

from collections.abc import Mapping

from agent_node.stood import stood_before
from agent_node.strict import JsonObject, JsonValue
from agent_node.text import counted

from .columns import by_count, inside, number, objects, of_node, said, shorts, subject
from .look import Look
from .nodes import ways_out

TASKS_SHOWN = 20
BEYOND = "not_looked_at"  # the rule that counts what no page had


def render_steered(data: JsonObject, look: Look) -> str:
    """What state a node is in after a word, and what that drain leaves there."""
    return "\n".join([_state(data), *_run(data), *_left(data, look),
                      *(f"  {line}" for line in _drained(data, look))])  # fmt: skip


def render_watched(data: JsonObject, look: Look) -> str:
    """The same before a watch, which names what the drain leaves there itself."""
    return "\n".join([_state(data), *_run(data)])


def _state(data: JsonObject) -> str:
    mark = " (dry run: nothing was changed)" if data.get("dry_run") else ""
    who = said(data.get("node"))
    if data.get("agent"):
        who += f", agent {said(data.get('agent'))}"
    because = f": {said(data.get('reason'))}" if data.get("reason") else ""
    until = f", until {said(data.get('until'))}" if data.get("until") else ""
    before = stood_before(data, dry_run=bool(data.get("dry_run")))
    more = f"\n{before}" if before else ""
    as_it_was = bool(data.get("already")) and not before
    verb = "would be" if data.get("dry_run") and not as_it_was else "is"
    state = said(data.get("state")) + (" already" if as_it_was else "")
    return f"{who} {verb} {state}{because}{until}{mark}{more}"


def _run(data: JsonObject) -> list[str]:
    """What the run for a drain did; where it had nothing to do for this node, that in plain words:
    why it stole nothing elsewhere reads as if the drain had failed.
    """
    left = inside(data, "left")
    if not data.get("summary"):
        return []
    if left.get("fleet_paused"):
        return ["nothing moves while the fleet is paused: arc resume"]
    if data.get("planned") == 0 and data.get("agent"):
        return ["no waiting task leaves a node for one agent of it"]
    if data.get("planned") == 0 and left.get("known") and left.get("pending") == left.get("pinned"):
        rest = " that a drain moves" if left.get("pinned") else ""
        return [f"nothing waits there{rest}, so nothing had to move"]
    return [f"the run for it: {said(data.get('summary'))}"]


def _left(data: JsonObject, look: Look) -> list[str]:
    """What still waits there behind that run, and how each wait that no drain ends is ended."""
    left = inside(data, "left")
    if not left:
        return []
    name = said(data.get("node"))
    if not left.get("known"):
        because = of_node(data.get("node"), left.get("because"))
        return [f"what still waits there is not known: {because}: arc nodes show {name}"]
    stays, pinned = objects(left, "stays"), int(number(left.get("pinned")))
    more = int(number(left.get("pending"))) - pinned
    lines = [f"{_waits(more)} there for the next run: arc plan"] if more > 0 else []
    if not pinned:
        return lines
    short = shorts(stays)
    lines.append(f"{_waits(pinned)} there and will: no drain moves what is pinned, and {name} "
                 "starts nothing")  # fmt: skip
    lines += _first([f"  {_named(one, short, look)}" for one in stays], pinned)
    ways = ways_out(str(stays[0]["uid"]) if pinned == len(stays) == 1 else "UID")
    return [*lines, "it ends by one of these for each:", *(f"  {way}" for way in ways)]


def _waits(many: int) -> str:
    return f"{counted(many, 'task')} still wait{'s' * (many == 1)}"


def _drained(data: JsonObject, look: Look) -> list[str]:
    """What a drain that is only tried would make of each waiting task; the JSON has all of them."""
    drain = inside(data, "drain")
    if not drain:
        return []
    if not drain.get("known"):
        return [f"what would move is not known: {said(drain.get('because'))}"]
    moves, stays = objects(drain, "moves"), objects(drain, "stays")
    short = shorts(moves, stays)
    many = int(number(drain.get("moves_count", len(moves))))
    lines = [f"{counted(many, 'waiting task')} would move"]
    lines += ["nothing moves while the fleet is paused"] if drain.get("fleet_paused") else []
    lines += _first([f"  {_named(one, short, look)} -> {_to(one.get('to'))}: "
                     f"{said(one.get('because'))}" for one in moves], many)  # fmt: skip
    return lines + _stay(objects(drain, "counts"), [
        f"  {_named(one, short, look)}: {said(one.get('rule'))}: {said(one.get('because'))}"
        for one in stays
    ])  # fmt: skip


def _stay(counts: list[JsonObject], named: list[str]) -> list[str]:
    """Which tasks a drain would leave there; of what was not looked at nobody knows that."""
    known = [one for one in counts if one.get("rule") != BEYOND]
    stay = int(sum(number(one.get("count")) for one in known))
    lines = [f"{counted(stay, 'waiting task')} would stay"] if stay else []
    lines += _first(named, stay)
    lines += [f"  {count} by {rule}{f': {said(why)}' if why else ''}"
              for rule, count, why in by_count(known) if stay > len(named)]  # fmt: skip
    lines += [f"{counted(count, 'waiting task')} not looked at: {said(why)}"
              for rule, count, why in by_count(counts) if rule == BEYOND]  # fmt: skip
    return lines


def _named(one: JsonObject, short: Mapping[str, str], look: Look) -> str:
    title = subject(one.get("subject"), look)
    return f"{short[str(one['uid'])]} {title} P{said(one.get('priority'))}"


def _to(node: JsonValue) -> str:
    return "the hub's queue" if node == "inbox" else said(node)


def _first(lines: list[str], many: int) -> list[str]:
    """The first of so many; where not all were told, the JSON has no more of them than were."""
    more, where = many - TASKS_SHOWN, ": --json has them all" if many == len(lines) else ""
    return [*lines[:TASKS_SHOWN], *([f"  … and {more} more{where}"] * (more > 0))]
