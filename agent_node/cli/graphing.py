"""The command `dag`: the graphs of this node, one of them whole, its money, and its end."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace

from agent_node.budget import DAG
from agent_node.envelope import Answer
from agent_node.errors import BadInput
from agent_node.fields import money
from agent_node.text import counted, safe_text

from .around import Around, Request, Result
from .catalogue import Runnable
from .shapes import one_object, some_objects, whole, words

PAGE = 100
NO_LIMIT = "none"


def dag_arguments(parser: ArgumentParser) -> None:
    """The words of `dag`."""
    more = parser.add_argument
    more("what", choices=("list", "show", "cancel", "budget"),
         help="list them, show one, end one, or say what one may spend")  # fmt: skip
    more("id", nargs="?", metavar="ID", help="of a graph, or of a task that is in none")
    more("usd", nargs="?", metavar="USD", help="of budget: its limit from now on, or none")
    more("--all", action="store_true", help="those that have ended, too")
    more("--reason", default="", help="why, for whoever looks later")
    more("--urgent-overdraft", action=BooleanOptionalAction,
         help="of budget: whether P1 to P4 may go on beyond it; else as it was")  # fmt: skip
    more("--dry-run", action="store_true", help="say what would happen")


def dag(options: Namespace, around: Around) -> Answer:
    """Graphs whose home is here."""
    if (options.id is None) != (options.what == "list"):
        raise BadInput("show, cancel and budget take one ID, list takes none", "id")
    if (options.usd is not None) != (options.what == "budget"):
        raise BadInput(f"budget takes a sum or {NO_LIMIT} after its ID, no other does", "usd")
    if options.urgent_overdraft is not None and options.what != "budget":
        raise BadInput("belongs to budget alone", "urgent_overdraft")
    return _WHAT[options.what](options, around)


def _listed(options: Namespace, around: Around) -> Answer:
    request: Request = {"do": "graphs", "limit": PAGE}
    if not options.all:
        request["states"] = ["running"]
    result = around.door(request)
    graphs = some_objects(result, "dags")
    head = counted(len(graphs), "graph")
    more = ["  and more"] if result.get("next") else []
    return Answer(result, "\n".join([head, *map(_line, graphs), *more]))


def _line(graph: Result) -> str:
    counts = one_object(graph, "counts")
    told = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    return safe_text(f"  {words(graph, 'id')}  {words(graph, 'state'):<9}  {told}"
                     f"  {words(graph, 'title')}")  # fmt: skip


def _shown(options: Namespace, around: Around) -> Answer:
    result = around.door({"do": "graph", "dag": options.id})
    tasks = some_objects(result, "tasks")
    names = {str(task.get("uid")): words(task, "name", words(task, "uid")) for task in tasks}
    return Answer(result, "\n".join([_line(result), *(_task(task, names) for task in tasks)]))


def _task(task: Result, names: dict[str, str]) -> str:
    waits = [names.get(str(edge.get("uid")), str(edge.get("uid")))
             for edge in some_objects(task, "depends_on") if edge.get("came") is None]  # fmt: skip
    mark = "*" if task.get("critical") else " "
    line = f"  {mark} {words(task, 'state'):<13} {words(task, 'uid')}  {names[str(task['uid'])]}"
    return safe_text(f"{line}  waits for {', '.join(waits)}" if waits else line)


def _cancelled(options: Namespace, around: Around) -> Answer:
    request: Request = {"do": "graph_cancel", "dag": options.id, "reason": options.reason,
                        "by": around.by}  # fmt: skip
    if options.dry_run:
        request["dry_run"] = True
    result = around.door(request)
    dry = "dry run, nothing changed: " if options.dry_run else ""
    ended, stopping = whole(result, "cancelled"), whole(result, "stopping")
    said = (f"{words(result, 'id')} is {words(result, 'state')}: {ended} ended,"
            f" {stopping} are being stopped")  # fmt: skip
    away = result.get("elsewhere")
    if isinstance(away, list) and away:
        said += f", {len(away)} live elsewhere: cancel them there, or with arc"
    return Answer({**result, "dry_run": bool(options.dry_run)}, safe_text(dry + said))


def _allowed(options: Namespace, around: Around) -> Answer:
    """What it may spend from now on; saying it again changes nothing. What is spent stays spent."""
    limit = None if options.usd == NO_LIMIT else str(money(options.usd, "usd"))
    seen = around.door({"do": "graph", "dag": options.id, "limit": 1})
    dag, dry_run = str(seen.get("id")), bool(options.dry_run)
    if [one.get("uid") for one in some_objects(seen, "tasks")] == [dag]:
        raise BadInput(f"{dag} is a task that is in no graph; what it may cost is its own"
                       " max_cost_usd", "id")  # fmt: skip
    was = _scope(around.door({"do": "budget"}), dag)
    urgent = options.urgent_overdraft
    if urgent is None:
        urgent = was.get("urgent_overdraft") is True
    request: Request = {
        "do": "set_budget", "scope": f"{DAG}{dag}", "limit_usd": limit,
        "urgent_overdraft": urgent and limit is not None, "by": around.by,
    }  # fmt: skip
    if dry_run:
        request["dry_run"] = True
    now = _scope(around.door(request), dag)
    told: Result = {
        "dag": dag, "state": seen.get("state"), "was_usd": was.get("limit_usd"),
        "limit_usd": limit, "urgent_overdraft": request["urgent_overdraft"],
        "waited": whole(was, "waiting"), "dry_run": dry_run,
        "waiting": 0 if limit is None else None if dry_run else whole(now, "waiting"),
    }  # fmt: skip
    return Answer(told, safe_text(_may_spend(told)))


def _scope(result: Result, dag: str) -> Result:
    """What is told of this graph's money; empty: it has no limit."""
    return next((one for one in some_objects(result, "scopes")
                 if one.get("scope") == f"{DAG}{dag}"), {})  # fmt: skip


def _may_spend(told: Result) -> str:
    sums = {name: "any sum" if told[name] is None else f"{told[name]} USD"
            for name in ("was_usd", "limit_usd")}  # fmt: skip
    beyond = ", P1 to P4 beyond it" if told["urgent_overdraft"] else ""
    if told["dry_run"]:
        return (f"dry run, nothing changed: {told['dag']} would be allowed {sums['limit_usd']}"
                f"{beyond}, is allowed {sums['was_usd']}")  # fmt: skip
    again = whole(told, "waited") - whole(told, "waiting")
    on = f"; {counted(again, 'task')} READY again" if again > 0 else ""
    left = whole(told, "waiting")
    still = f"; {counted(left, 'task')} still held back by it" if left else ""
    return f"{told['dag']} may spend {sums['limit_usd']}{beyond}{on}{still}"


_WHAT = {"list": _listed, "show": _shown, "cancel": _cancelled, "budget": _allowed}
COMMANDS = {"dag": Runnable(dag_arguments, dag)}
