"""Renders graphs: a list, one as a picture in text, and what became of orders about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent_node.budget import amount_of, minus, plus, text_of
from agent_node.fields import is_money
from agent_node.strict import JsonObject, JsonValue
from agent_node.text import counted, safe_text

from .columns import inside, number, objects, rows, said, shorts, subject
from .look import Look
from .tasks import routed_when

NAMES_SHOWN = 12
WAITS_SHOWN = 10
UNKNOWN = "not known"
_AWAY = "MOVED"  # how a member stands that left, and of which nothing was heard since
_MARKS = {"COMPLETED": "+", "RUNNING": ">", "CLAIMED": ">", "VALIDATING": ">", "READY": "o",
          "CREATED": ".", "PENDING": ".", "ESCROW": ".", "HELD": ".", "RETRYING": "~",
          "CANCELLED": "x", "FAILED": "x", "DEAD_LETTERED": "x"}  # fmt: skip
LEGEND = ("+ done  > running  o ready  . waits  ~ tries again  x ended badly or left out  "
          "? not known  * critical")  # fmt: skip


def render_list(data: JsonObject, look: Look) -> str:
    """A line a graph."""
    dags = objects(data, "dags")
    if not dags:
        over = "" if data.get("all") else "; those that are over: arc dag list --all"
        unread = data.get("unread")
        where = f" on the nodes that answered; not asked: {said(unread)}" if unread else ""
        return f"no graphs{' that run or failed' if not data.get('all') else ''}{where}{over}"
    short = shorts([{"uid": one.get("id")} for one in dags])
    lines = [(short[str(one["id"])], said(one.get("state")), _far(one), _home(one.get("home")),
              _money(one), said(one.get("created_at")), subject(one.get("title"), look),
              said(one.get("reason"), "")) for one in dags]  # fmt: skip
    head = ("GRAPH", "STATE", "DONE", "HOME", "USD", "SINCE", "TITLE", "REASON")
    return rows(head, lines, look) + ("\nthere are more: --limit N" if data.get("more") else "")


def _far(one: JsonObject) -> str:
    total, still = int(number(one.get("total"))), int(number(one.get("open")))
    bad = int(number(one.get("bad")))
    return f"{total - still} of {total}" + (f", {bad} badly" if bad else "")


def _home(value: JsonValue) -> str:
    return "hub" if value == "inbox" else said(value)


def _money(one: JsonObject) -> str:
    """`0.12+?` where what some cost is not known yet."""
    spent, budget = said(one.get("spent_usd"), ""), said(one.get("budget_usd"), "")
    away = bool(number(one.get("cost_unknown")))
    if not spent:
        spent = "?" if away else "0" if budget else ""
    elif away:
        spent += "+?"
    return f"{spent} of {budget}" if budget else spent or "-"


def _spent(one: JsonObject) -> str:
    """What is known of what it cost, and of how many tasks that is not known yet."""
    away, usd = int(number(one.get("cost_unknown"))), one.get("spent_usd")
    if not away:
        return said(usd, "0")
    tasks = counted(away, "task")
    return f"{UNKNOWN} of {tasks} elsewhere" if usd is None else (
        f"{said(usd)} (and what {tasks} elsewhere cost: {UNKNOWN} yet)")  # fmt: skip


def render_show(data: JsonObject, look: Look, most: int = 0) -> str:
    """Head, money, paths, then the levels with every task's mark, name, state and place."""
    tasks = objects(data, "tasks")
    names = inside(data, "names")
    parts = [_head(data), *_paths(data, names), _levels(tasks, names, look, most),
             *_outside(data), LEGEND]  # fmt: skip
    return "\n".join(part for part in parts if part)


def _head(data: JsonObject) -> str:
    what = "a task that is in no graph" if data.get("alone") else _home_of(data)
    counts = Counter({state: int(number(many)) for state, many in inside(data, "counts").items()})
    by_state = ", ".join(f"{many} {safe_text(state)}" for state, many in sorted(counts.items())
                         if many)  # fmt: skip
    title = subject(data.get("title"), Look())
    lines = [f"{said(data.get('id'))}  {said(data.get('state'))}  {title}",
             f"  {what}; {_far(data)} over: {by_state}"]  # fmt: skip
    lines += [f"  {said(data.get('reason'))}"] if data.get("reason") else []
    if data.get("budget_usd") or data.get("spent_usd"):
        lines.append(f"  money: spent {_spent(data)}, {_allowed(data)}")
    then = _FOLLOWED.get(said(data.get("state")), "is followed by")
    for name, text in (("after", "follows"), ("then", then)):
        lines += [f"  {text} {said(data.get(name))}"] if data.get(name) else []
    ended = f", ended {said(data.get('ended_at'))}" if data.get("ended_at") else ""
    if data.get("created_at"):
        by = said(data.get("by"))
        lines.append(f"  since {said(data.get('created_at'))} by {by}{ended}")
    return "\n".join(lines)


_NEVER = "is not followed, as it did not complete, by"
_FOLLOWED = {"completed": "was followed by", "failed": _NEVER, "cancelled": _NEVER}


def _allowed(data: JsonObject) -> str:
    """Where there is no limit nothing is reserved."""
    limit = data.get("budget_usd")
    reserved = said(data.get("reserved_usd"), UNKNOWN)
    return f"reserved {reserved}, of {said(limit)} USD{_over(data)}" if limit else "no limit"


def _over(data: JsonObject) -> str:
    """Children that began elsewhere before their home heard of them may pass the limit."""
    sums = [data.get(name) for name in ("spent_usd", "reserved_usd", "budget_usd")]
    usd = [amount_of(one) for one in sums if isinstance(one, str) and is_money(one)]
    if len(usd) < len(sums):
        return ""
    over = minus(plus(usd[0], usd[1]), usd[2])
    return f"; {text_of(over)} more than that" if over > 0 else ""


def _home_of(data: JsonObject) -> str:
    home = data.get("home")
    return "lives in the hub's queue" if home == "inbox" else f"lives on {said(home)}"


def _paths(data: JsonObject, names: JsonObject) -> list[str]:
    """Critical path, roots and leaves by name; of very many the first."""
    return [f"  {title}: {_named(data.get(key), names, mark)}" for title, key, mark in
            (("critical path", "critical_path", " -> "), ("roots", "roots", ", "),
             ("leaves", "leaves", ", ")) if data.get(key)]  # fmt: skip


def _named(uids: JsonValue, names: JsonObject, mark: str) -> str:
    listed = [str(uid) for uid in uids] if isinstance(uids, list) else []
    shown = [said(names.get(uid) or uid) for uid in listed[:NAMES_SHOWN]]
    more = [f"… {len(listed) - NAMES_SHOWN} more"] if len(listed) > NAMES_SHOWN else []
    return mark.join([*shown, *more])


def _levels(tasks: list[JsonObject], names: JsonObject, look: Look, most: int) -> str:
    short = shorts(tasks)
    lines: list[tuple[str, ...]] = []
    level: JsonValue = None
    for one in tasks[: most or None]:
        first = one.get("level") != level
        level = one.get("level")
        mark = _MARKS.get(str(one.get("state")), "?") + ("*" if one.get("critical") else " ")
        name = said(one.get("name") or one.get("subject"), f"({UNKNOWN})")
        lines.append((said(level) if first else "", mark, name, short[str(one["uid"])],
                      said(one.get("state")), _where(one), _after(one, names), _because(one)))
    left = len(tasks) - len(lines)
    more = f"\n… and {counted(left, 'task')} more: --limit 0 shows them all" if left > 0 else ""
    head = ("LEVEL", "", "NAME", "TASK", "STATE", "WHERE", "AFTER", "")
    return rows(head, lines, look) + more


def _where(one: JsonObject) -> str:
    node = one.get("node")
    if node:
        return _home(node)
    return "home" if one.get("at_home") else UNKNOWN


def _because(one: JsonObject) -> str:
    unheard = f"it left, and how it stands is {UNKNOWN}" if one.get("state") == _AWAY else ""
    return said(one.get("because") or one.get("progress"), unheard)


def _after(one: JsonObject, names: JsonObject) -> str:
    """What it still waits for first, then what is over; with what happens if that goes badly."""
    edges = sorted(objects(one, "depends_on"), key=lambda edge: edge.get("came") is not None)
    shown = [_edge(edge, names) for edge in edges[:WAITS_SHOWN]]
    more = [f"… {len(edges) - WAITS_SHOWN} more"] if len(edges) > WAITS_SHOWN else []
    return ", ".join([*shown, *more]) or "-"


def _edge(edge: JsonObject, names: JsonObject) -> str:
    uid, how = str(edge.get("uid")), str(edge.get("on_failure"))
    name = safe_text(str(names.get(uid) or uid))
    name += f":{safe_text(how)}" if how != "fail" else ""
    came = edge.get("came")
    return name if came is None else f"({name} {said(came)})"


def _outside(data: JsonObject) -> list[str]:
    waits = objects(data, "waits_for")
    lines = [f"  {said(one.get('uid'))}  {counted(int(number(one.get('tasks'))), 'task')} here "
             f"wait for it: arc why {said(one.get('uid'))}" for one in waits[:WAITS_SHOWN]]
    return ["waits for tasks outside of it", *lines] if lines else []


def render_submitted(data: JsonObject, look: Look) -> str:
    """The graph's id, how many tasks, and its shape."""
    names = inside(data, "names")
    outcome = str(data.get("outcome"))
    tasks = counted(int(number(data.get("tasks"))), "task")
    if outcome == "refused":
        return f"refused: {said(data.get('rule'))}: {said(data.get('because'))}"
    what = {"added": "added", "exists": "is there already"}.get(outcome, outcome)
    if data.get("dry_run"):
        what = f"would be {what}" if outcome == "added" else what
    who = said(data.get("dag")) if data.get("dag") else "a graph with an id of its own"
    lines = [f"{who}  {what}: {tasks}  {subject(data.get('title'), look)}",
             *_paths(data, names)]  # fmt: skip
    if outcome == "added" and not data.get("dry_run"):
        lines += routed_when(data)
    return "\n".join(lines)


def render_cancelled(data: JsonObject, look: Look) -> str:
    """What ended, what is being stopped, and who has yet to be told."""
    title = subject(data.get("title"), look)
    ended, stopping = said(data.get("cancelled")), said(data.get("stopping"))
    if data.get("dry_run"):
        away = said(data.get("open_elsewhere"))
        return (f"{said(data.get('dag'))} {title}: would be cancelled: at home {ended} would end "
                f"and {stopping} would be told to stop, and {away} elsewhere would be told "
                "(dry run: nothing was changed)")
    counts = f"{ended} cancelled, {stopping} being stopped"
    outcomes = Counter(str(word) for word in inside(data, "elsewhere").values())
    away = ", ".join(f"{many} {word}" for word, many in sorted(outcomes.items())) or "none"
    head = f"{said(data.get('dag'))} {title}: {said(data.get('state'))}"
    lines = [f"{head}: {counts}; elsewhere: {away}"]
    owed = data.get("owed")
    lines += _owed([str(uid) for uid in owed] if isinstance(owed, list) else [])
    return "\n".join(lines)


def _owed(uids: Iterable[str]) -> list[str]:
    return [f"  {safe_text(uid)} could not be told yet; it is told when its node is back"
            for uid in uids]  # fmt: skip


def render_budgeted(data: JsonObject, look: Look) -> str:
    """What a graph may spend now, what of that is gone, and who goes on or still waits for it."""
    limit, was = _sum(data.get("limit_usd")), _sum(data.get("was_usd"))
    head = f"{said(data.get('dag'))} {subject(data.get('title'), look)}"
    limit += ", P1 to P4 beyond it" if data.get("urgent_overdraft") else ""
    reserved = data.get("reserved_usd")  # where there is and was no limit, nothing is
    gone = f"spent {_spent(data)}" + (f", reserved {said(reserved)}" if reserved else "")
    if data.get("dry_run"):
        return (f"{head}: would be allowed {limit}, is allowed {was}: {gone}; "
                f"{_held_back(data.get('waited'))} waiting for it "
                "(dry run: nothing was changed)")  # fmt: skip
    return f"{head}: allowed {limit}, was {was}: {gone}{_goes_on(data)}"


def _goes_on(data: JsonObject) -> str:
    """Who goes on by it, and who still waits for it, as far as either was told."""
    before, now = data.get("waited"), data.get("waiting")
    if now is None:
        return f"; {_held_back(now)} still waiting for it: arc budget"
    waited, still = int(number(before)), int(number(now))
    left = f"; {counted(still, 'task')} still waiting for it: arc budget" if still else ""
    if before is None:
        return f"; how many tasks are READY again is {UNKNOWN}{left}"
    return (f"; {counted(waited - still, 'task')} READY again" if waited > still else "") + left


def _held_back(many: JsonValue) -> str:
    """How many tasks; what a store did not tell is not none."""
    return f"{UNKNOWN} how many tasks are" if many is None else counted(int(number(many)), "task")


def _sum(usd: JsonValue) -> str:
    return "any sum" if usd is None else f"{said(usd)} USD"
