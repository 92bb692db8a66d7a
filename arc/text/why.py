"""Renders why a task is where it is, and why a node gets or gives nothing."""

from __future__ import annotations

from agent_node.deadlines import say_late
from agent_node.strict import JsonObject
from agent_node.text import counted
from arc.decisions.why_states import NO_HUB, PAUSED

from .columns import (
    age,
    by_count,
    inside,
    lasting,
    number,
    objects,
    of_node,
    rows,
    said,
    shorts,
    subject,
)
from .look import Look

CHANGEABLE = "<-"  # marks what one of the "would move" lines answers


def render_why_task(data: JsonObject, look: Look) -> str:
    """The task, the verdict, its own rules, the nodes sifted, and what would move it."""
    parts = [
        _task(data), _verdict(data), _late(data), _waits(data), _own_node(data), _life(data),
        _blind(data), _checks(data), _steps(data), _ways(data), _otherwise(data), _past(data),
        _evidence(data),
    ]  # fmt: skip
    return "\n".join(part for part in parts if part)


def _task(data: JsonObject) -> str:
    short = shorts([data])[str(data.get("uid"))]
    kind = "  ".join(f"{name}: {said(data.get(name))}" for name in ("skills", "domain", "needs")
                     if data.get(name)) or "untagged"  # fmt: skip
    head = (f"{short}  P{said(data.get('priority'))}  {kind}  "
            f"{subject(data.get('subject'), Look())}")  # fmt: skip
    return f"{head}\n  {said(data.get('uid'))} is {said(data.get('state'))} {_place(data)}"


def _place(data: JsonObject) -> str:
    node = said(data.get("node"))
    where = "in the hub's queue" if node == "inbox" else f"on {node}"
    if data.get("waits_s") is not None:
        where += f" for {lasting(data.get('waits_s'))}"
    if data.get("place"):
        where += f", number {said(data.get('place'))} of {said(data.get('waiting_there'))} in line"
    return where


def _verdict(data: JsonObject) -> str:
    history, verdict = inside(data, "history"), said(data.get("verdict"))
    result = said(data.get("result"))
    if data.get("moves") or data.get("life"):
        ended = f" (ended {said(data.get('ended_at'))})" if data.get("ended_at") else ""
        of = said(data.get("failure_reason"), "")
        return f"{verdict}: {result}{ended}" + (f"\n  because: {of}" if of else "")
    cycles = int(number(history.get("cycles")))
    since = f" in {counted(cycles, 'cycle')} since {said(history.get('since'))}" if cycles else ""
    return f"NOT MOVED{since}; {verdict}: {result}"


def _late(data: JsonObject) -> str:
    """That its deadline has passed, and what follows from it."""
    late = data.get("late_s")
    if not isinstance(late, int | float):
        return ""
    when = say_late(late, ended=bool(data.get("ended_at")))
    return f"  its deadline {said(data.get('deadline'))} {when}; it makes urgent and ends nothing"


def _own_node(data: JsonObject) -> str:
    """What its own node does not do, where the verdict is not about it; else what others do."""
    says = said(inside(data, "own_node").get("says"), "")
    if says and data.get("moves"):
        return f"  {says}"
    return f"  {said(data.get('receivers_say'))}" if data.get("receivers_say") else ""


def _waits(data: JsonObject) -> str:
    """Each task that a blocked one waits for: where it is, and what its end will do."""
    edges = objects(data, "waits_for")
    lines = [f"  {said(one.get('uid'))}  {subject(one.get('subject'), Look())}  "
             f"{said(one.get('says'))}" for one in edges]  # fmt: skip
    more = int(number(data.get("waits_for_more")))
    lines += [f"  … and {counted(more, 'task')} more: arc dag show {said(data.get('uid'))}"
              ] if more else []  # fmt: skip
    lines += [f"  {said(one.get('says'))}" for one in objects(data, "files")]
    return "\n".join(["waits for", *lines]) if lines else ""


def _life(data: JsonObject) -> str:
    life = inside(data, "life")
    if not life:
        return ""
    return "\n".join(["what you may do", *_hand(data)])


def _hand(data: JsonObject) -> list[str]:
    commands = data.get("by_hand")
    return [f"  {said(one)}" for one in commands] if isinstance(commands, list) else []


def _blind(data: JsonObject) -> str:
    unseen = inside(data, "could_not_look")
    if not unseen:
        return ""
    times = int(number(inside(data, "history").get("could_not_look")))
    often = f", and in {counted(times, 'cycle')} before" if times else ""
    code = said(unseen.get("code"))
    why = of_node(unseen.get("node"), unseen.get("because"))
    return (f"could not look{often}\n  {said(unseen.get('node'))}: {said(unseen.get('rule'))}: "
            f"{why}\n  {_fix(unseen, code)}")  # fmt: skip


def _fix(unseen: JsonObject, code: str) -> str:
    doctor = f"arc doctor --node {said(unseen.get('node'))}"
    return f"{doctor}   ·   arc explain {code}" if code != "-" else doctor


def _checks(data: JsonObject) -> str:
    checks = objects(data, "checks")
    if not checks:
        return ""
    return "\n".join(["the task itself", *_told(checks)])


def _told(checks: list[JsonObject]) -> list[str]:
    """What is not met first, each with its reason; then what is, in one line."""
    met = [said(one.get("rule")) for one in checks if one.get("met")]
    lines = [f"  NO  {said(one.get('rule'))}: {said(one.get('said'))}"
             for one in checks if not one.get("met")]  # fmt: skip
    return [*lines, *([f"  ok  {', '.join(met)}"] if met else [])]


def _steps(data: JsonObject) -> str:
    """Each condition counted alone and left; whoever drops out and is left add up to the first."""
    lines: list[tuple[str, ...]] = []
    passed: list[str] = []
    too: list[str] = []
    steps = objects(data, "steps")
    answered = number(steps[1].get("alone")) if len(steps) > 1 else 0  # by the first condition
    for place, one in enumerate(steps):
        dropped = objects(one, "dropped")
        if place and not dropped:
            (passed if number(one.get("alone")) >= answered else too).append(said(one.get("rule")))
            continue
        reasons = [
            f"{said(out.get('node'))}: {of_node(out.get('node'), out.get('because'))}"
            + (f" {CHANGEABLE}" if out.get("changeable") else "") for out in dropped
        ]  # fmt: skip
        head = (f"[{place}]", said(one.get("alone")), said(one.get("left")), said(one.get("rule")))
        lines += [(*(head if not n else ("", "", "", "")), reason)
                  for n, reason in enumerate(reasons or [""])]  # fmt: skip
    if not lines:
        return ""
    titles = ("STEP", "ALONE", "LEFT", "CONDITION ON THE RECEIVER", "WHO DROPS OUT HERE")
    others = [f"nobody drops out by {', '.join(passed)}"] if passed else []
    others += [f"who is out already would drop out by {', '.join(too)}, too"] if too else []
    return "\n".join([rows(titles, lines, Look()), *others])


def _ways(data: JsonObject) -> str:
    """Each line was tried on the planner, and with it the task does move."""
    ways, lines = objects(data, "ways"), []
    for one in ways:
        changes = objects(one, "changes")
        says = " and ".join(said(change.get("says")) for change in changes)
        lines.append(f"  to {said(one.get('to'))} if {says}")
        lines += [f"      {said(change.get('command'))}" for change in changes
                  if change.get("command")]  # fmt: skip
    if data.get("life"):
        return ""
    hand = ["by hand", *_hand(data)] if data.get("by_hand") else []
    return "\n".join([*(["it would move"] if lines else []), *lines, *hand])


def _otherwise(data: JsonObject) -> str:
    ahead, node = data.get("ahead"), said(data.get("node"))
    if data.get("kept_here"):
        again = f"not to wait: arc tasks retry {said(data.get('uid'))}"
        return f"on {node} {said(inside(data, 'kept_here').get('because'))}; {again}"
    if ahead is None:
        return ""
    if data.get("reach_s") == 0:
        return f"else {node} starts it itself at once"
    if data.get("reach_s") is not None:
        return f"else {node} starts it itself in about {lasting(data.get('reach_s'))}"
    tasks = counted(int(number(ahead)), "task")
    return f"else {node} starts it itself, with about {tasks} ahead of it"


def _past(data: JsonObject) -> str:
    lines = [f"  {said(one.get('at'))}  {said(one.get('from'))} -> {said(one.get('to'))}  "
             f"{said(one.get('outcome'))}: {said(one.get('because'))}"
             for one in objects(data, "moved")]  # fmt: skip
    lines += [f"  run {said(one.get('run'))}: {said(one.get('rule'))}: {said(one.get('because'))}"
              for one in objects(data, "said")]  # fmt: skip
    return "\n".join(["what earlier runs did and said", *lines]) if lines else ""


def _evidence(data: JsonObject) -> str:
    evidence = inside(data, "evidence")
    seen = counted(int(number(evidence.get("seen"))), "report")
    oldest = f", the oldest of {age(evidence.get('oldest_report_s'))}"
    lines = [f"evidence: {seen}{oldest if evidence.get('oldest_report_s') is not None else ''}"]
    lines += [f"  not seen: {said(one.get('node'))}: {said(one.get('rule'))}: "
              f"{of_node(one.get('node'), one.get('because'))}"
              for one in objects(evidence, "unseen")]  # fmt: skip
    if evidence.get("run"):
        lines.append(f"  last run {said(evidence.get('run'))} at {said(evidence.get('at'))}: "
                     f"{said(evidence.get('summary'))}")  # fmt: skip
        lines.append(f"  arc skills run --name {said(evidence.get('sensor'))} -- show "
                     f"{said(evidence.get('run'))}")  # fmt: skip
    return "\n".join(lines)


def render_why_node(data: JsonObject, look: Look) -> str:
    """What the node is, condition by condition, and what keeps other nodes' work away from it."""
    node = said(data.get("node"))
    role = ", ".join(f"{name} {said(data.get(name))}" for name in ("owns", "also", "never")
                     if data.get(name)) or "owns nothing"  # fmt: skip
    parts = [NO_HUB] if data.get("hub_running") is False else []
    parts += [PAUSED] if data.get("fleet_paused") else []
    what = said(data.get("says")) if data.get("says") else _PARTS.get(said(data.get("part")), "")
    parts += [f"{node} is {what}; {role}"]
    for name, head in (("receives", "to be given work"), ("gives", "to have work stolen from it")):
        if objects(data, name):
            parts += [head, *_told(objects(data, name))]
            proof = said(data.get("proof"), "") if name == "receives" else ""
            parts += [f"  {proof}"] if proof else []
    parts += _planned(data, look)
    elsewhere = by_count(objects(data, "elsewhere"))
    if elsewhere:
        parts.append("what waits on other nodes, by the first rule that keeps it from here; "
                     "may_be_given: none does")
        parts += [f"  {count:>6} {rule}{': ' + said(why) if why else ''}"
                  for rule, count, why in elsewhere]  # fmt: skip
    stranded = inside(data, "stranded")
    if stranded:
        rule = said(stranded.get("rule"), "nobody looked")
        parts.append(f"stranded: a slot is free beside {said(stranded.get('uid'), 'a task')} on "
                     f"{said(stranded.get('beside'))}: {rule}: "
                     f"{said(stranded.get('because'), '')}")  # fmt: skip
    parts += [f"could not look into {said(one.get('node'))}: {said(one.get('because'))}"
              for one in objects(data, "could_not_look")]  # fmt: skip
    return "\n".join([*parts, _evidence(data)])


_PARTS = {"idle": "idle: it may be given work", "busy": "busy: work may be taken from it",
          "both": "both: it may be given work, and what no agent there can run may be taken",
          "neither": "neither idle nor busy", "out": "out: it neither gives nor takes"}  # fmt: skip


def _planned(data: JsonObject, look: Look) -> list[str]:
    gets, loses = objects(data, "gets"), objects(data, "loses")
    short = shorts(gets, loses)
    return [
        f"the next run {verb} {short[str(one['uid'])]} {subject(one.get('subject'), look)} "
        f"P{said(one.get('priority'))}  {said(one.get('from'))} -> {said(one.get('to'))}  "
        f"{said(one.get('because'))}"
        for verb, some in (("brings", gets), ("takes", loses)) for one in some
    ]  # fmt: skip
