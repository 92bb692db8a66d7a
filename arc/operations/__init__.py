"""Everything that may be asked of a hub, each by one name; the same with a hub running or not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from agent_node.errors import BadInput
from agent_node.strict import JsonObject
from arc.errors import ArcError, OutcomeUnknown, WrongUse

if TYPE_CHECKING:
    from arc.hub import Hub


WHY_MAX = 500  # characters of an error that the log keeps


@dataclass(frozen=True)
class Told:
    """What came of one operation, as plain JSON: the CLI makes text of it, `--json` prints it."""

    data: JsonObject
    exit: int = 0
    partial: tuple[JsonObject, ...] = ()
    warnings: tuple[str, ...] = ()


def exit_of(results: Sequence[JsonObject], *, unread: bool = False) -> int:
    """0: each was done; 1: none of them; 3: some were, or a node could not be asked."""
    left = [one for one in results if one["outcome"] in ("refused", "kept")]
    if unread or 0 < len(left) < len(results):
        return 3
    return 1 if left else 0


Operation = Callable[["Hub", JsonObject], Awaitable[Told]]

# name: module of this package; the function there has the operation's name with `_` for `.`
OPERATIONS: dict[str, str] = {
    "status": "status",
    "page.now": "page_now",
    "plan": "plan",
    "why.task": "why",
    "why.node": "why",
    "tasks.list": "tasks",
    "tasks.count": "tasks",
    "tasks.show": "tasks",
    "tasks.add": "tasks_change",
    "tasks.set": "tasks_change",
    "tasks.cancel": "tasks_change",
    "tasks.retry": "tasks_change",
    "tasks.resolve": "tasks_change",
    "tasks.move": "tasks_move",
    "dag.submit": "dags_submit",
    "dag.list": "dags",
    "dag.show": "dags",
    "dag.cancel": "dags_cancel",
    "dag.budget": "dags_budget",
    "nodes.list": "nodes",
    "nodes.show": "nodes",
    "nodes.logs": "nodes_logs",
    "nodes.pause": "nodes_steer",
    "nodes.resume": "nodes_steer",
    "nodes.drain": "nodes_steer",
    "nodes.suspend": "nodes_steer",
    "nodes.leave": "nodes_leave",
    "nodes.noted": "nodes_noted",
    "nodes.fence": "nodes_fence",
    "nodes.upgrade": "nodes_upgrade",
    "fleet.pause": "fleet",
    "fleet.resume": "fleet",
    "sensors.list": "sensors",
    "sensors.run": "sensors",
    "sensors.history": "sensors",
    "sensors.show": "sensors",
    "skills.show": "skills",
    "skills.answer": "skills",
    "skills.status": "skills",
    "doubts.list": "doubts",
    "doubts.settle": "doubts",
    "log": "log",
    "metrics": "metrics",
    "schedules.list": "schedules",
    "schedules.show": "schedules",
    "schedules.run": "schedules",
    "dead.list": "dead",
    "dead.show": "dead",
    "dead.change": "dead_change",
    "webhooks.list": "webhooks",
    "webhooks.show": "webhooks",
    "webhooks.take": "webhooks",
    "notify.list": "notices",
    "notify.test": "notices",
    "budget": "budgets",
    "doctor": "doctor",
    "config.seen": "config_seen",
}

# These change nothing, whatever they are asked; what stands in no list may.
LOOKS = frozenset((
    "status", "page.now", "plan", "why.task", "why.node", "tasks.list", "tasks.count", "tasks.show",
    "dag.list", "dag.show", "nodes.list", "nodes.show", "nodes.logs", "sensors.list",
    "sensors.history", "sensors.show", "skills.show", "skills.status", "doubts.list", "log",
    "metrics", "schedules.list", "schedules.show", "dead.list", "dead.show", "webhooks.list",
    "webhooks.show", "notify.list", "budget", "doctor", "config.seen",
))  # fmt: skip


def only_looks(name: str, args: JsonObject) -> bool:
    """Whether this leaves everything as it is: it only looks, or is no more than tried."""
    return name in LOOKS or args.get("dry_run") is True


def operation(name: str) -> Operation:
    """The function behind a name; its module is loaded when it is first asked for.

    What nobody could ask for is wrong use, whichever of its words was read as a node's would be.
    An order whose answer was lost leaves a line in the log: who gave it may have seen no more.
    """
    module = import_module(f"{__name__}.{OPERATIONS[name]}")
    found: Operation = getattr(module, name.replace(".", "_"))

    async def carried_out(hub: Hub, args: JsonObject) -> Told:
        try:
            told = await found(hub, args)
        except BadInput as error:
            raise WrongUse(str(error)) from error
        except OutcomeUnknown as error:
            _log_doubt(hub, name, args, error.node, str(error), uid=error.where)
            raise
        for node, because in _unanswered(told):
            _log_doubt(hub, name, args, node, because)
        return told

    return carried_out


def _unanswered(told: Told) -> Iterator[tuple[str, str]]:
    """Of an order to several nodes, those of which it is not known whether it happened there."""
    for one in told.partial:
        error = one["error"]
        if isinstance(error, dict) and error.get("code") == OutcomeUnknown.code:
            yield str(one["node"]), str(error.get("message"))


def _log_doubt(
    hub: Hub, name: str, args: JsonObject, node: str, because: str, *, uid: str = ""
) -> None:
    """A journal that takes no line is no better reason than this one, which the person is told.
    `uid` is what was to be added, if not just the node's name.
    """
    if only_looks(name, args):
        return
    fields: JsonObject = {"asked": name, "by": args.get("by"), "because": because[:WHY_MAX]}
    with suppress(ArcError):
        hub.journal.runs.log("word_in_doubt", node=node, fields={
            **fields, **({"uid": uid} if uid not in {"", node} else {})})  # fmt: skip
