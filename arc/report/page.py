"""Lays a report out: what needs a person, whose time was wasted and why, what moved or failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agent_node import __version__
from agent_node.clock import iso
from agent_node.text import counted, duration
from arc.text.columns import objects, said

from .drawing import queue_of, time_of
from .gathering import Reported
from .markup import Child, document, table, tag

NODES_MAX = 200
INBOX = "inbox"
STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #57606a; --paper: #fff; --line: #d0d7de;
  --stranded: #d55e00; --busy: #0072b2; --idle: #dfe5ea; --paused: #e69f00; --unknown: #6b7480 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9da7b3; --paper: #0d1117;
  --line: #30363d; --stranded: #e8691b; --busy: #56b4e9; --idle: #262c34; --paused: #f0c860;
  --unknown: #8b95a1 } }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 76rem; margin: 1.5rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.05rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100%; margin-bottom: 1rem;
  font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere }
th { color: var(--dim); font-weight: 600 } code { font-size: .95em }
.dim, .nothing { color: var(--dim) } .strip { width: 30rem; max-width: 100%; height: 18px }
.stranded { fill: var(--stranded) } .busy { fill: var(--busy) } .idle { fill: var(--idle) }
.paused { fill: var(--paused) } .unknown { fill: var(--unknown) }
.queue { fill: none; stroke: var(--busy); stroke-width: 1.2; vector-effect: non-scaling-stroke }
.loud { color: var(--stranded); font-weight: 600 }
.key svg { width: .8rem; height: .8rem; margin: 0 .3rem 0 1rem; vertical-align: -1px }
@media print { body { max-width: none } h2 { break-after: avoid } tr { break-inside: avoid } }
"""


def page_of(told: Reported) -> str:
    """The whole file as text."""
    title = f"{told.fleet}: {iso(told.since)[:16]} to {iso(told.until)[:16]} UTC"
    return document(title, STYLE, *_sections(told))


def _sections(told: Reported) -> Iterator[Child]:
    yield tag("h1", f"{told.fleet}, {duration((told.until - told.since).total_seconds())}")
    yield tag("p", f"{iso(told.since)} to {iso(told.until)}, by arc {__version__}", class_="dim")
    yield _first_line(told)
    yield from (tag("p", one, class_="loud") for one in told.cut)
    yield from _needs(told)
    yield tag("h2", "Whose time went by how")
    yield _key()
    yield _nodes(told)
    if len(told.nodes) > NODES_MAX:
        yield tag("p", f"and {len(told.nodes) - NODES_MAX} more nodes, stranded less", class_="dim")
    yield tag("h2", "Stranded: a free slot beside work that it might have run")
    yield table(("rule", "for"), [(rule, duration(seconds)) for rule, seconds in
                sorted(told.by_rule.items(), key=lambda one: -one[1])],
                nothing="no node was stranded")  # fmt: skip
    yield _stretches(told)
    yield tag("h2", "What moved")
    yield table(("from", "to", "why", "tasks"),
                [(one.busy, one.idle, one.why, one.moves) for one in told.feeds],
                nothing="nothing moved")  # fmt: skip
    yield tag("h2", "What stayed, as the runs counted it")
    kept = sorted(told.kept.items(), key=lambda one: (-one[1], one[0]))
    yield table(("rule", "times"), [(rule, many) for rule, many in kept],
                nothing="no run kept anything back")  # fmt: skip
    yield tag("h2", "Attempts that ended badly, the newest last")
    yield table(("at", "node", "task", "how", "kind"), [
        (iso(one.ended_at) if one.ended_at else "", one.node, tag("code", one.uid), one.outcome,
         one.error_kind) for one in told.bad], nothing="none did")  # fmt: skip
    yield tag("h2", "Runs of the sensors")
    yield _runs(told)


def _first_line(told: Reported) -> Element:
    stranded = sum(told.stranded_s.values())
    ended = sum((some for some in told.ended.values()), Counter[str]())
    cost = sum(sum(one.cost_usd) for one in told.nodes)
    nodes = counted(sum(one.node != INBOX for one in told.nodes), "node")
    return tag(
        "p", f"{nodes}, {counted(ended.total(), 'attempt')}: "
        f"{ended['completed']} completed, {ended['failed']} failed; "
        f"{counted(sum(one.moves for one in told.feeds), 'task')} moved; ${cost:.2f}; ",
        tag("span", f"stranded {stranded / 60:.0f} node-minutes",
            class_="loud" if stranded else "dim"),
    )  # fmt: skip


def _needs(told: Reported) -> Iterator[Child]:
    yield tag("h2", "Needs you, as it is now")
    if told.status is None:
        yield tag("p", f"nobody could say: {told.trouble}", class_="loud")
        return
    yield table(("where", "what", "type"), [
        (said(one.get("node")), said(one.get("text")), tag("code", said(one.get("try"))))
        for one in objects(told.status, "needs_you")], nothing="nothing does")  # fmt: skip


def _key() -> Element:
    """What the colours mean, each beside its own."""
    key = tag("p", class_="key dim")
    for kind in ("stranded", "busy", "idle", "paused", "unknown"):
        square = tag("svg", tag("rect", width=10, height=10, class_=kind), viewBox="0 0 10 10")
        square.tail = kind
        key.append(square)
    return key


def _nodes(told: Reported) -> Element:
    now = {said(one.get("node")): one for one in objects(told.status or {}, "nodes")}
    most = max((depth for one in told.nodes for depth in one.depth if depth is not None),
               default=0.0)  # fmt: skip
    rows: list[tuple[Child, ...]] = []
    for one in told.nodes[:NODES_MAX]:
        ended = told.ended.get(one.node, Counter())
        wasted = told.stranded_s.get(one.node, 0.0)
        rows.append((
            one.node if one.node != INBOX else "inbox, at the hub",
            said(now.get(one.node, {}).get("state")), _both(time_of(one), queue_of(one, most)),
            tag("span", duration(wasted) if wasted else "-", class_="loud" if wasted else "dim"),
            f"{_mean(one.busy):.0%}", f"{_mean(one.unknown):.0%}",
            f"{ended['completed']} / {ended.total()}", f"${sum(one.cost_usd):.2f}",
        ))  # fmt: skip
    return table(("node", "now", "time, and what waited", "stranded", "busy", "unknown",
                  "completed", "cost"), rows, nothing="no node is remembered")  # fmt: skip


def _both(upper: Element, lower: Element) -> Element:
    return tag("div", upper, tag("br"), lower)


def _mean(shares: tuple[float, ...]) -> float:
    return sum(shares) / len(shares) if shares else 0.0


def _stretches(told: Reported) -> Element:
    return table(("node", "from", "for", "cause", "rule", "beside", "such as"), [
        (one.node, iso(one.since), duration(one.seconds), one.cause, one.rule, one.beside,
         tag("code", one.uid) if one.uid else "") for one in told.stretches],
        nothing="")  # fmt: skip


def _runs(told: Reported) -> Element:
    count: dict[str, Counter[str]] = {}
    acted: Counter[str] = Counter()
    for run in told.runs:
        count.setdefault(run.sensor, Counter())[run.outcome] += 1
        acted[run.sensor] += run.acted
    return table(("sensor", "runs", "how they ended", "acted on"), [
        (name, some.total(), ", ".join(f"{many} {how}" for how, many in some.most_common()),
         acted[name]) for name, some in sorted(count.items())], nothing="none ran")  # fmt: skip
