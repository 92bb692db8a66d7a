"""Renders a plan: count, then lines, then why the others stay."""

from __future__ import annotations

from agent_node.strict import JsonObject
from agent_node.text import counted
from arc.decisions.why_states import NO_HUB

from .columns import by_count, number, objects, of_node, rows, said, shorts, subject
from .look import Look

KEPT_SHOWN = 20


def render_plan(data: JsonObject, look: Look) -> str:
    """What would move, what stays by which rule, and what could not be seen."""
    steals, drains, retries, routes = (
        objects(data, name) for name in ("steals", "drains", "retries", "routes")
    )
    kept, unseen = objects(data, "kept"), objects(data, "unseen")
    counts = objects(data, "counts")
    stays = int(sum(number(one.get("count")) for one in counts))
    planned = [counted(len(some), word) for name, word, some in (
        ("steals", "steal", steals), ("drains", "drained task", drains),
        ("retries", "retried task", retries), ("routes", "route", routes),
    ) if name in data and (some or name != "retries")]  # fmt: skip
    head = (f"plan ({said(data.get('policy'))}): {', '.join(planned)} planned, "
            f"{counted(stays, 'task')} kept, {counted(len(unseen), 'node')} not seen")  # fmt: skip
    lines = [head, *([f"  {NO_HUB}"] if data.get("hub_running") is False else [])]
    if data.get("paused"):
        lines.append(f"  nothing of it is done: the fleet is {said(data.get('paused'))}")
    if data.get("skipped"):
        lines.append(f"  no rebalance: {said(data.get('skipped'))}")
    short = shorts(steals, drains, retries, routes, kept)
    for word, some in (("steal", steals), ("drain", drains), ("retry", retries),
                       ("route", routes)):  # fmt: skip
        lines += [f"  {word:<6} {_step(one, short, look)}" for one in some]
    lines += [f"  cap    {said(cap)}" for cap in _caps(data)]
    lines += [_kept(one, short, look) for one in kept[:KEPT_SHOWN]]
    if len(kept) > KEPT_SHOWN:
        lines.append(f"  … and {stays - KEPT_SHOWN} more; by rule:")
    lines += [f"  {count:>6} kept by {rule}: {said(because)}" for rule, count, because in
              by_count(counts)]  # fmt: skip
    lines += [f"  unseen {said(one.get('node'))}: {of_node(one.get('node'), one.get('because'))}"
              for one in unseen]  # fmt: skip
    lines += _nodes(data, look)
    return "\n".join(lines)


def _caps(data: JsonObject) -> list[str]:
    caps = data.get("caps")
    return [str(one) for one in caps] if isinstance(caps, list) else []


def _step(one: JsonObject, short: dict[str, str], look: Look) -> str:
    return (f"{short[str(one['uid'])]} {subject(one.get('subject'), look)} "
            f"P{said(one.get('priority'))}   {said(one.get('from'))} -> {said(one.get('to'))}   "
            f"{said(one.get('because'))}")  # fmt: skip


def _kept(one: JsonObject, short: dict[str, str], look: Look) -> str:
    return (f"  kept   {short[str(one['uid'])]} {subject(one.get('subject'), look)} "
            f"P{said(one.get('priority'))} on {said(one.get('node'))}   {said(one.get('rule'))}: "
            f"{said(one.get('because'))}")  # fmt: skip


def _nodes(data: JsonObject, look: Look) -> list[str]:
    nodes = objects(data, "nodes")
    if not nodes:
        return []
    lines = [
        (said(one.get("node")), said(one.get("part")), said(one.get("pending"), "?"),
         said(one.get("rule"), ""), of_node(one.get("node"), one.get("because")).partition(";")[0])
        for one in nodes
    ]  # fmt: skip
    return ["", rows(("NODE", "PART", "WAITING", "RULE", "BECAUSE"), lines, look)]
