"""Says what a graph may spend from now on; what waited for more money goes on at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.fields import money
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.errors import WrongUse
from arc.looking import INBOX

from . import Told
from .budgets import scopes_of
from .dags import cost_unknown
from .dags_submit import goes_on
from .everybody import incarnation_of, link_of, nothing_changed
from .graph_finding import find_graph

if TYPE_CHECKING:
    from arc.hub import Hub

NO_LIMIT, URGENT_TOO = "none", "urgent_overdraft"


async def dag_budget(hub: Hub, args: JsonObject) -> Told:
    """The limit of one graph, in the queue that keeps its books. Saying it again changes nothing.
    Whether urgent tasks may pass it stays as it was where that is not said.

    What is spent stays spent, and what runs goes on, also where the new limit is below that.
    """
    asked = Fields(args)
    said, dry_run = asked.text("limit_usd", 64), asked.flag("dry_run")
    limit = None if said == NO_LIMIT else str(money(said, "limit_usd"))
    by = asked.text_or("by", "human:unknown")
    found = await find_graph(hub, asked.text("dag", 64))
    line = found.seen.line
    if found.alone:
        raise WrongUse(f"{line.id} is a task that is in no graph; what it may cost is its own "
                       "max_cost_usd", hint="arc budget")  # fmt: skip
    link = link_of(hub, found.home)
    scope = f"dag:{line.id}"
    with nothing_changed():
        before = scopes_of(link.name, await link.ask("budget", {}))
    was = _of(scope, before)
    urgent = asked.flag(URGENT_TOO) if asked.has(URGENT_TOO) else bool(was and was[URGENT_TOO])
    own: JsonObject = {"limit_usd": limit, "dry_run": dry_run,
                       URGENT_TOO: urgent and limit is not None}  # fmt: skip
    word: JsonObject = {"scope": scope, "by": by, **own, **await incarnation_of(link)}
    now = _of(scope, scopes_of(link.name, await link.ask("set_budget", word)))
    if not dry_run:
        hub.journal.runs.log("dag_budget_set", fields={"dag": line.id, "limit_usd": limit,
                                                       "by": by})  # fmt: skip
        if found.home == INBOX:
            goes_on(hub, "a graph may spend another sum")
    return Told({
        "dag": line.id, "title": line.title, "home": found.home, "state": line.state,
        "was_usd": was["limit_usd"] if was else None, **own,
        "spent_usd": (now or was or {}).get("spent_usd", line.spent_usd),
        "reserved_usd": (now or was or {}).get("reserved_usd", line.reserved_usd),
        "cost_unknown": cost_unknown(line), "waiting": _waiting(now, limit, dry_run=dry_run),
        "waited": was["waiting"] if was else 0,
    })  # fmt: skip


def _of(scope: str, scopes: list[JsonObject]) -> JsonObject | None:
    """What was told of this one; None: it has no limit there."""
    return next((one for one in scopes if one["scope"] == scope), None)


def _waiting(now: JsonObject | None, limit: str | None, *, dry_run: bool) -> JsonValue:
    """How many tasks still wait for it; without a limit nobody does. None: that was not told, or
    shows only once the limit is so.
    """
    if limit is None:
        return 0
    return None if dry_run or now is None else now["waiting"]
