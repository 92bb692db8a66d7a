"""The command `dag`: the graphs of this node, one of them whole, and the word that ends it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agent_node.envelope import Answer
from agent_node.errors import BadInput
from agent_node.text import counted, safe_text

from .around import Around, Request, Result
from .catalogue import Runnable
from .shapes import one_object, some_objects, whole, words

PAGE = 100


def dag_arguments(parser: ArgumentParser) -> None:
    """The words of `dag`."""
    more = parser.add_argument
    more("what", choices=("list", "show", "cancel"), help="list them, show one, or end one")
    more("id", nargs="?", metavar="ID", help="of a graph, or of a task that is in none")
    more("--all", action="store_true", help="those that have ended, too")
    more("--reason", default="", help="why, for whoever looks later")
    more("--dry-run", action="store_true", help="say what would happen")


def dag(options: Namespace, around: Around) -> Answer:
    """Graphs whose home is here."""
    if (options.id is None) != (options.what == "list"):
        raise BadInput("show and cancel take one ID, list takes none", "id")
    if options.what == "list":
        return _listed(options, around)
    return _shown(options, around) if options.what == "show" else _cancelled(options, around)


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


COMMANDS = {"dag": Runnable(dag_arguments, dag)}
