"""Renders sensors, their runs, and the log."""

from __future__ import annotations

from agent_node.strict import JsonObject
from agent_node.text import counted

from .columns import age, by_count, inside, lasting, number, objects, of_node, rows, said, shorts
from .folding import folded
from .look import Look

DECISIONS_SHOWN = 40


def render_sensors(data: JsonObject, look: Look) -> str:
    """A line a sensor: how it is, when it ran, when it runs next."""
    lines = [
        (said(one.get("sensor")), said(one.get("state")), lasting(one.get("every_s")),
         age(one.get("ago_s")), said(one.get("next")), said(one.get("summary")))
        for one in objects(data, "sensors")
    ]  # fmt: skip
    return rows(("SENSOR", "STATE", "EVERY", "LAST", "NEXT", "WHAT IT SAID"), lines, look)


def render_skills(data: JsonObject, look: Look) -> str:
    """Every sensor with its words, as they are typed."""
    lines: list[str] = []
    for one in objects(data, "sensors"):
        name, verbs = said(one.get("sensor")), inside(one, "verbs")
        wide = max((len(verb) for verb in verbs), default=0)
        lines += [f"{name}: {said(one.get('state'))}" if one.get("state") else name]
        lines += [f"  arc skills run --name {name} -- {said(verb):<{wide}}  {said(what)}"
                  for verb, what in verbs.items()]  # fmt: skip
    return "\n".join(lines)


def render_runs(data: JsonObject, look: Look) -> str:
    """Runs, the newest first."""
    runs = objects(data, "runs")
    if not runs:
        return "no sensor has run yet"
    lines = [
        (said(one.get("run")), said(one.get("at")), said(one.get("sensor")),
         said(one.get("outcome")), said(one.get("because")), f"{number(one.get('took_s')):.2f}s",
         said(one.get("requests")), said(one.get("summary")))
        for one in runs
    ]  # fmt: skip
    head = ("RUN", "AT", "SENSOR", "OUTCOME", "BECAUSE", "TOOK", "ASKED", "WHAT IT SAID")
    return rows(head, lines, look)


def render_run(data: JsonObject, look: Look) -> str:
    """One run: its line, its moves, its reasons by rule."""
    head = f"{said(data.get('sensor'), '')} run {said(data.get('run'))}:".strip()
    summary = f"{head} {said(data.get('summary'))}"
    return "\n".join([summary, *_moves(data), *_reasons(data), *_nodes(data)])


def _moves(data: JsonObject) -> list[str]:
    moves = objects(data, "moves")
    short = shorts(moves)
    return [
        f"  {said(one.get('outcome')):<8} {short[str(one['uid'])]} P{said(one.get('priority'))}  "
        f"{said(one.get('from'))} -> {said(one.get('to'))}  {said(one.get('rule'), '')} "
        f"{said(one.get('because'), '')}".rstrip()
        for one in moves
    ]


def _reasons(data: JsonObject) -> list[str]:
    decisions = objects(data, "decisions")
    counted_lines = [one for one in decisions if not one.get("uid")]
    lines = [f"  kept {count:>6} by {rule}: {said(because)}"
             for rule, count, because in by_count(counted_lines)]  # fmt: skip
    single = [one for one in decisions if one.get("uid")]
    short = shorts(single)
    lines += [f"  kept {short[str(one['uid'])]} on {said(one.get('node'))}  "
              f"{said(one.get('rule'))}: {said(one.get('because'))}"
              for one in single[:DECISIONS_SHOWN]]  # fmt: skip
    cut = len(single) - DECISIONS_SHOWN + int(number(data.get("cut")))
    return [*lines, f"  … and {cut} more, see --json"] if cut > 0 else lines


def _nodes(data: JsonObject) -> list[str]:
    nodes = objects(inside(data, "details"), "nodes")
    return [
        f"  node {said(one.get('node'))}: {said(one.get('part') or one.get('state'))}"
        + (f", {said(one.get('pending'))} waiting" if one.get("pending") is not None else "")
        + (f", idle since {said(one.get('idle_since'))}" if one.get("idle_since") else "")
        + (f"  {said(one.get('rule'), '')}: {of_node(one.get('node'), one.get('because'))}"
           if one.get("rule") else "")
        + "".join(f"; {said(trouble.get('rule'))}: "
                  f"{of_node(one.get('node'), trouble.get('because'))}"
                  for trouble in objects(one, "troubles"))
        for one in nodes
    ]  # fmt: skip


def render_skill(data: JsonObject, look: Look) -> str:
    """What a sensor did last: cost, nodes, moves, reasons, the next run, and ten runs' totals."""
    line = inside(data, "line")
    last = data.get("last")
    head = f"{said(data.get('sensor'))}: {said(line.get('state'))}, next {said(line.get('next'))}"
    if not isinstance(last, dict):
        return f"{head}\nhas not run yet"
    totals = inside(data, "totals")
    took, requests = number(last.get("took_s")), int(number(last.get("requests")))
    ran = (f"last run {said(last.get('run'))} {age(line.get('ago_s'))}, took {took:.2f} s, "
           f"{counted(requests, 'request')}")  # fmt: skip
    caps = inside(last, "details").get("caps")
    capped = [f"  caps hit: {said(caps)}"] if caps else []
    asked, spent = int(number(totals.get("requests"))), number(totals.get("took_s"))
    ten = (f"last {counted(int(number(totals.get('runs'))), 'run')}: "
           f"{said(totals.get('planned'))} planned, {said(totals.get('moved'))} done, "
           f"{counted(asked, 'request')}, {spent:.2f} s")  # fmt: skip
    return "\n".join([head, ran, f"  {said(last.get('summary'))}", *_moves(last), *_reasons(last),
                      *_nodes(last), *capped, ten])  # fmt: skip


def render_answer(data: JsonObject, look: Look) -> str:
    """What a sensor said to a word of its own, line by line and safe for a terminal."""
    lines = [said(line, "") for line in str(data.get("said") or "").splitlines()]
    cut = int(number(data.get("cut")))
    return "\n".join([*lines, *([f"… and {counted(cut, 'character')} more"] if cut else [])])


def render_log(data: JsonObject, look: Look) -> str:
    """A line an event; what was left out is said."""
    lines = [folded(render_log_line(one), look.width) for one in objects(data, "lines")]
    if data.get("more"):
        lines.insert(0, "there are older lines: --limit N, --since TIME")
    return "\n".join(lines) or "nothing happened since then"


def render_log_line(one: JsonObject) -> str:
    """One event with its fields."""
    known = {"sensor": one.get("sensor"), "run": one.get("run"), "node": one.get("node"),
             "task": one.get("task"), **inside(one, "fields")}  # fmt: skip
    fields = " ".join(f"{name}={said(value)}" for name, value in known.items()
                      if value not in (None, ""))  # fmt: skip
    return f"{said(one.get('at'))}  {said(one.get('event')):<20} {fields}".rstrip()
