"""Renders how the fleet is: what needs a person first, then a line a node."""

from __future__ import annotations

from agent_node.strict import JsonObject
from agent_node.text import counted, safe_text

from .columns import age, inside, lasting, number, objects, of_node, rows, said, shorts, unseen
from .folding import folded
from .look import Look

NARROW = 72  # columns below which a line keeps name, state, what waits and the reason
TENTH_S = 6.0  # of a minute: what stranded time is told in


def render_status(data: JsonObject, look: Look) -> str:
    """NEEDS YOU, nodes, the hub's queue, stranded time, sensors that are not well, last moves."""
    parts = [
        _head(data), _needs(data), _nodes(data, look), _inbox(inside(data, "inbox")),
        _graphs(inside(data, "graphs")),
        _stranded(inside(data, "stranded"), look), _sensors(data, look), _moves(data, look),
    ]  # fmt: skip
    return "\n".join(part for part in parts if part)


def _head(data: JsonObject) -> str:
    hub, nodes = inside(data, "hub"), objects(data, "nodes")
    seen = sum(bool(one.get("seen")) for one in nodes)
    runs = f"hub {said(hub.get('name'))} running"
    if not hub.get("running"):
        runs = f"no hub runs ({said(hub.get('name'))}): nothing moves by itself (arc up)"
    head = (f"{said(data.get('fleet'))}: {seen} of {counted(len(nodes), 'node')} seen, "
            f"policy {said(data.get('policy'))}, {runs}")  # fmt: skip
    paused = hub.get("paused")
    if isinstance(paused, dict):
        because = f": {said(paused.get('reason'))}" if paused.get("reason") else ""
        head += f"\nPAUSED by {said(paused.get('by'))}{because} (arc resume)"
    for one in objects(hub, "owed"):
        head += f"\n{said(one.get('node'))} has not heard it yet: {said(one.get('do'))}"
    if not nodes:
        head += "\nno nodes yet: arc nodes add USER@HOST --name NAME"
    return head


def _needs(data: JsonObject) -> str:
    needs = objects(data, "needs_you")
    if not needs:
        return ""
    lines = [f"NEEDS YOU ({len(needs)})"]
    for one in needs:
        lines.append(f"  {said(one.get('node'))}: {of_node(one.get('node'), one.get('text'))}")
        lines.append(f"      {said(one.get('try'))}")
    return "\n".join(lines)


def _nodes(data: JsonObject, look: Look) -> str:
    nodes = objects(data, "nodes")
    if not nodes:
        return ""
    head = ("NODE", "STATE", "WAITING", "RUNNING", "FREE", "SEEN", "OWNS", "ALSO", "REASON")
    lines = [head, *(_node(one) for one in nodes)]
    if look.width is not None and look.width < NARROW:  # the reason before all that is less
        lines = [(*line[:3], line[-1]) for line in lines]
    return rows(lines[0], lines[1:], look)


def _node(one: JsonObject) -> tuple[str, ...]:
    name, owns, also = said(one.get("node")), said(one.get("owns")), said(one.get("also"))
    if not one.get("seen"):
        return (name, said(one.get("state")), "?", "?", "?", age(one.get("age_s")), owns, also,
                unseen(one))
    state = said(one.get("state"))
    if state == "idle":
        state += f" {lasting(one.get('idle_s'))}"
    free = f"{number(one.get('free_slots')):.0f}/{number(one.get('slots')):.0f}"
    reason = said(one.get("reason"), "")
    doubts = number(one.get("doubts"))
    if doubts:
        reason = f"{reason}; {doubts:.0f} in doubt".lstrip("; ")
    reason = "; ".join(filter(None, (reason, _at_rest(inside(one, "counts")))))
    return (name, state, said(one.get("pending")), said(one.get("running")), free,
            age(one.get("age_s")), owns, also, reason)  # fmt: skip


def _inbox(inbox: JsonObject) -> str:
    if not inbox.get("seen"):
        return f"hub's queue: could not look: {said(inbox.get('reason'))}"
    waits = number(inbox.get("pending"))
    oldest = f", the oldest for {lasting(inbox.get('oldest_ready_s'))}" if waits else ""
    rest = _at_rest(inside(inbox, "counts"))
    return f"hub's queue: {waits:.0f} waiting{oldest}{rest and f'; {rest}'}"


def _at_rest(counts: JsonObject) -> str:
    """What has not ended and is neither READY nor runs: it waits for tasks, money or a time."""
    return ", ".join(f"{number(counts[state]):.0f} {state}" for state in ("PENDING", "RETRYING")
                     if counts.get(state))  # fmt: skip


def _graphs(graphs: JsonObject) -> str:
    """Nothing where nobody uses graphs."""
    running, failed = (int(number(graphs.get(name))) for name in ("running", "failed"))
    if not (running or failed):
        return ""
    words = [f"{running} running"] + ([f"{failed} failed"] if failed else [])
    return f"graphs: {', '.join(words)}   (arc dag list)"


_CAUSES = {"nobody_looked": "nobody looked"}  # the others are rules: `arc explain` knows them


def _stranded(stranded: JsonObject, look: Look) -> str:
    """Node-minutes with a free slot beside waiting work that fits it."""
    causes = {cause: number(one) for cause, one in inside(stranded, "by_cause").items()}
    total, parts = _tenths(number(stranded.get("today_s")), causes)
    split = ", ".join(f"{_CAUSES.get(cause, said(cause))} {part / 10:.1f}"
                      for cause, part in parts.items() if part)  # fmt: skip
    lines = [f"stranded today: {total / 10:.1f} node-minutes" + (f" ({split})" if split else "")]
    at = said(stranded.get("seen_at"))
    lines += [f"  at {at} {said(one.get('node'))} had a free slot beside work on "
              f"{said(one.get('beside'))}: {said(one.get('rule'), 'nobody looked')}: "
              f"{said(one.get('because'), '')}"
              for one in objects(stranded, "now")]  # fmt: skip
    return "\n".join(folded(line, look.width) for line in lines)


def _tenths(whole_s: float, parts_s: dict[str, float]) -> tuple[int, dict[str, int]]:
    """Tenths of a minute whose parts add up to the whole: what rounding leaves over goes to those
    that it took the most from.
    """
    parts = {name: int(seconds // TENTH_S) for name, seconds in parts_s.items()}
    whole = max(round(whole_s / TENTH_S), sum(parts.values()))
    left = sorted(parts, key=lambda name: (-(parts_s[name] % TENTH_S), name))
    for name in left[: whole - sum(parts.values())]:
        parts[name] += 1
    return whole, parts


def _sensors(data: JsonObject, look: Look) -> str:
    well = {"on time", "no hub", "new"}
    bad = [one for one in objects(data, "sensors") if one.get("state") not in well]
    return "\n".join(
        folded(f"sensor {said(one.get('sensor'))}: {said(one.get('state'))}: "
               f"{safe_text(str(one.get('summary')))}", look.width) for one in bad)  # fmt: skip


def _moves(data: JsonObject, look: Look) -> str:
    moves = objects(data, "moves")
    head = f"moved in 24h: {number(data.get('moved_24h')):.0f}"
    short = shorts(moves)
    lines = [
        f"  {said(one.get('at'))}  {short[str(one['uid'])]}  {said(one.get('from'))} -> "
        f"{said(one.get('to'))}  {_because(one)}"
        for one in moves
    ]
    return "\n".join([head, *(folded(line, look.width) for line in lines)])


def _because(one: JsonObject) -> str:
    drains = f"{said(one.get('from'))} drains; " if one.get("why") == "drained" else ""
    return drains + said(one.get("because"))

