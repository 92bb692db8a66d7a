"""Renders tasks: lists, one whole, and what became of orders about them."""

from __future__ import annotations

from agent_node.deadlines import say_late
from agent_node.strict import JsonObject, JsonValue
from agent_node.text import counted, safe_text, size

from .columns import inside, lasting, objects, rows, said, shorts, subject
from .look import Look
from .nodes import reowned

EVENTS_SHOWN = 50
RESULTS_SHOWN = 100


def render_list(data: JsonObject, look: Look) -> str:
    """A line a task; the reason is why the last cycle left it where it is."""
    tasks = objects(data, "tasks")
    if not tasks:
        ended = "; ended ones: arc tasks list --state COMPLETED" if data.get("open_only") else ""
        return f"no such tasks{_where_seen(data)}{ended}"
    short = shorts(tasks)
    lines = [
        (short[str(one["uid"])], f"P{said(one.get('priority'))}", said(one.get("tier")),
         said(one.get("state")),
         said(one.get("node")), said(one.get("domain") or one.get("skills")),
         subject(one.get("subject"), look), _reason(one))
        for one in tasks
    ]  # fmt: skip
    text = rows(("TASK", "P", "TIER", "STATE", "NODE", "FOR", "SUBJECT", "REASON"), lines, look)
    return text + f"\n{_more(data, len(tasks))}: --limit N" if data.get("more") else text


def _more(data: JsonObject, shown: int) -> str:
    total = data.get("total")
    return f"these are {shown} of {total}" if isinstance(total, int) else "there are more"


def _where_seen(data: JsonObject) -> str:
    """Nothing found is only half of it where some node could not be asked."""
    unread = data.get("unread")
    return f" on the nodes that answered; not asked: {said(unread)}" if unread else ""


def _reason(one: JsonObject) -> str:
    rule, because = said(one.get("rule"), ""), said(one.get("because"), "")
    return f"{rule}: {because}" if rule else because


def render_count(data: JsonObject, look: Look) -> str:
    """A bare number, for scripts."""
    return said(data.get("count"))


def render_show(data: JsonObject, look: Look) -> str:
    """One task: its fields that say something, then its whole life in order."""
    task = inside(data, "task")
    uid, node = said(data.get("uid")), said(data.get("node"))
    at = f"{said(task.get('state'))} on {node}{_order(data)}"
    lines = [f"{uid}  P{said(task.get('priority'))}  {at}",
             f"  {subject(task.get('subject'), Look())}"]  # fmt: skip
    lines += [f"  held by        {said(one.get('rule'))}: {said(one.get('text'), '')}"
              for one in objects(task, "blocked_by")]  # fmt: skip
    lines += [f"  {name:<14} {said(task.get(name))}{_late(data, name)}" for name in _SHOWN
              if task.get(name) not in (None, "", [], 0, False)]  # fmt: skip
    body = str(task.get("body") or "")
    if body:
        lines += ["  body", *(f"    {safe_text(line)}" for line in body.splitlines()[:20])]
    copies = inside(data, "copies")
    lines += [f"  known to       {said(name)}: {said(state)}" for name, state in copies.items()]
    lines += [f"  attempt {said(one.get('n'))} on {said(one.get('node'))}: {_attempt(one)}"
              for one in objects(data, "attempts")]  # fmt: skip
    lines += what_it_wrote(uid, objects(data, "attempts"))
    lines += [f"  artifact {_artifact(one)}" for one in objects(inside(data, "task"), "artifacts")]
    lines += [f"  moved {said(one.get('from'))} -> {said(one.get('to'))} {said(one.get('at'))}: "
              f"{said(one.get('outcome'))}, {said(one.get('because'))}"
              for one in objects(data, "hub_moves")]  # fmt: skip
    lines += [f"  kept in run {said(one.get('run'))}: {said(one.get('rule'))}: "
              f"{said(one.get('because'))}" for one in objects(data, "kept")]  # fmt: skip
    events = objects(data, "events")
    if len(events) > EVENTS_SHOWN:
        lines.append(f"  … and {len(events) - EVENTS_SHOWN} earlier events: --json")
    return "\n".join([*lines, *map(_event, events[-EVENTS_SHOWN:])])


def _event(one: JsonObject) -> str:
    """When, where and what; from which state to which, by whom, and why."""
    was, state = said(one.get("was"), ""), said(one.get("state"), "")
    change = f"{was} -> {state}" if was and state and was != state else ""
    by = f"by {said(one.get('by'))}" if one.get("by") else ""
    parts = (said(one.get("at")), said(one.get("on")), said(one.get("event")), change, by,
             said(one.get("because"), ""))  # fmt: skip
    return "  " + "  ".join(filter(None, parts))


def _order(data: JsonObject) -> str:
    """How urgent it is by now, and the region of the scale; nothing where it has ended."""
    order = inside(data, "order")
    return f", {said(order.get('tier'))} {said(order.get('effective'))}" if order else ""


def _late(data: JsonObject, field: str) -> str:
    """What stands behind a deadline that has passed."""
    late = data.get("late_s")
    if field != "deadline" or not isinstance(late, int | float):
        return ""
    return f" ({say_late(late, ended=bool(inside(data, 'task').get('completed_at')))})"


_SHOWN = ("dag", "domain", "skills", "needs", "tags", "source", "origin", "key", "ref", "parent",
          "pinned", "models", "fallback_models", "max_cost_usd", "boost_per_minute", "heat",
          "hops", "stolen_from", "not_before", "deadline", "expected_s", "max_s", "failures",
          "max_attempts", "progress", "failure_reason", "cost_usd")  # fmt: skip


def what_it_wrote(uid: str, attempts: list[JsonObject]) -> list[str]:
    """Where the last attempt is read about that failed; nothing where none did."""
    failed = [one for one in attempts if one.get("error_kind") and one.get("node")]
    if not failed:
        return []
    node, n = said(failed[-1]["node"]), said(failed[-1].get("n"))
    return [f"  what it wrote: arc nodes logs {node} {uid} --attempt {n} --stderr"]


def _attempt(one: JsonObject) -> str:
    parts = [said(one.get("outcome"), "under way")]
    parts += [f"{name} {said(one.get(name))}" for name in
              ("agent", "duration_s", "exit_code", "error_kind", "message", "cost_usd")
              if one.get(name) not in (None, "")]  # fmt: skip
    return ", ".join(parts)


def _artifact(one: JsonObject) -> str:
    """A file that the task left, or why it was not taken."""
    if one.get("because"):
        return f"{said(one.get('name'))}: not taken: {said(one.get('because'))}"
    bytes_ = one.get("size")
    many = size(bytes_) if isinstance(bytes_, int) else "-"
    return f"{said(one.get('name'))} {many} {said(one.get('sha256'))}"


def render_added(data: JsonObject, look: Look) -> str:
    """What became of each new task."""
    results = objects(data, "results")
    done = [one for one in results if one.get("outcome") == "added"]
    word = "would be added" if data.get("dry_run") else "added"
    where = "the hub's queue" if data.get("node") == "inbox" else said(data.get("node"))
    lines = [f"{counted(len(done), 'task')} {word} to {where}"]
    short = shorts(results)
    would = bool(data.get("dry_run"))
    lines += [f"  {short[str(one['uid'])]}  {said(one.get('uid'))}  {_outcome(one, would=would)}"
              f"{_why_not(one)}" for one in results[:RESULTS_SHOWN]]  # fmt: skip
    if len(results) > RESULTS_SHOWN:
        lines.append(f"  … and {len(results) - RESULTS_SHOWN} more, see --json")
    lives = [one for one in done if not one.get("rule")]
    if data.get("node") == "inbox" and lives and not would:
        lines += routed_when(data)
    return "\n".join(lines)


def _outcome(one: JsonObject, *, would: bool) -> str:
    outcome = said(one.get("outcome"))
    if outcome == "added" and one.get("rule"):  # what it waits for had ended badly
        outcome = "added and cancelled"
    return f"would be {outcome}" if would and outcome.startswith("added") else outcome


def routed_when(data: JsonObject) -> list[str]:
    """When the router comes to what is in the hub's queue, and how not to wait for it."""
    turn = inside(data, "router")
    if turn.get("in_s") is None:
        return [said(turn.get("because"))] if turn.get("because") else []
    if not turn.get("in_s"):
        return ["the router gives it away at once, where a node is free for it"]
    looks = f"the router looks in {lasting(turn.get('in_s'))}"
    return [f"{looks}; not to wait: arc sensors run fleet-router"]


def render_changed(data: JsonObject, look: Look) -> str:
    """What became of each order."""
    results = objects(data, "results")
    short, do = shorts(results), str(data.get("do") or "")
    mark = " (dry run: nothing was changed)" if data.get("dry_run") else ""
    return "\n".join(
        f"{short[str(one['uid'])]}  {became(one, do, dry_run=bool(mark))} "
        f"{said(one.get('state'))} on {_place(one.get('node'))}{_why_not(one)}{mark}"
        for one in results
    )  # fmt: skip


def became(one: JsonObject, do: str, *, dry_run: bool) -> str:
    """What an order came to, up to the state that it left; in a dry run, what it would come to."""
    outcome = said(one.get("outcome"))
    if not dry_run:
        return f"{outcome}  now"
    if outcome in ("changed", "added"):
        past = "added" if outcome == "added" else _PAST.get(do, "changed")
        return f"would be {past}  then"
    return f"{_WOULD.get(outcome, outcome)}  now"


_PAST = {"set": "changed", "cancel": "cancelled", "retry": "retried", "resolve": "resolved",
         "review": "reviewed", "edit": "edited"}  # fmt: skip
_WOULD = {"stopping": "would be told to stop", "refused": "would be refused"}


def _why_not(one: JsonObject) -> str:
    reason = _reason(one)
    return f"  {reason}" if reason else ""


def _place(node: JsonValue) -> str:
    return "the hub" if node == "inbox" else said(node)


def render_moved(data: JsonObject, look: Look) -> str:
    """Where each task went, or why it stayed."""
    results = objects(data, "results")
    short = shorts(results)
    tells = {"moved": "would move", "kept": "would stay"} if data.get("dry_run") else {}
    return "\n".join(
        f"{tells.get(str(one.get('outcome')), said(one.get('outcome')))} {short[str(one['uid'])]} "
        f"{subject(one.get('subject'), look)} {_way(one)}{_because(one)}"
        for one in results)  # fmt: skip


def _way(one: JsonObject) -> str:
    ends = (said(one.get("from")), said(one.get("to")))
    return f"on {ends[1]}" if one.get("outcome") == "already" else " -> ".join(ends)


def _because(one: JsonObject) -> str:
    rule = f"{said(one.get('rule'))}: " if one.get("rule") else ""
    return f"  {rule}{said(one.get('because'))}" if one.get("because") else ""


def render_doubts(data: JsonObject, look: Look) -> str:
    """Every transfer that is not over, and what a person may do."""
    doubts, parked = objects(data, "doubts"), objects(data, "parked")
    lost = objects(data, "lost")
    if not doubts and not parked and not lost:
        if data.get("unread"):
            return f"no doubts{_where_seen(data)}"
        return "no doubts: every transfer is over at both ends"
    short = shorts(doubts, lost)
    lines = [
        (said(one.get("node")), short[str(one["uid"])], said(one.get("side")),
         said(one.get("state")), said(one.get("peer")), f"{said(one.get('age_s'))} s",
         said(one.get("xfer")))
        for one in doubts
    ]  # fmt: skip
    text = rows(("NODE", "TASK", "SIDE", "STATE", "PEER", "AGE", "TRANSFER"), lines, look)
    more = [f"{said(one.get('node'))}: {said(one.get('parked'))} parked, for what became of them "
            "is not known: arc tasks resolve TASK --as done|failed|cancelled; to run one again: "
            "arc doubts settle TASK --yes" for one in parked]  # fmt: skip
    more += [f"{short[str(one['uid'])]} was moved to {said(one.get('node'))}, which is another "
             f"queue since {said(one.get('since'))}: bring the old home back, or arc doubts settle "
             f"{said(one.get('uid'))} --yes" for one in lost]  # fmt: skip
    return "\n".join([*([text] if doubts else []), *more])


def render_settled(data: JsonObject, look: Look) -> str:
    """What became of each doubt, or of each task that was named."""
    settled, tasks = objects(data, "settled"), objects(data, "tasks")
    if not settled and not tasks:
        return f"nothing was in doubt{_where_seen(data)}"
    short, dry_run = shorts(settled, tasks), bool(data.get("dry_run"))
    lines = [f"{_settled(one, dry_run=dry_run)} {short[str(one['uid'])]} "
             f"{said(one.get('giver'))} -> {said(one.get('taker'))}: "
             f"{said(one.get('because') or one.get('now'))}" for one in settled]  # fmt: skip
    return "\n".join([*lines, *reowned(tasks, short, dry_run=dry_run)])


def _settled(one: JsonObject, *, dry_run: bool) -> str:
    """What stays in doubt does so anyway."""
    outcome = said(one.get("outcome"))
    return "would be settled" if dry_run and outcome == "settled" else outcome
