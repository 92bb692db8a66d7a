"""Warns of new tasks that ask for more than a whole day's limit, and so never start with it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_node.budget import FLEET, NODE, URGENT, amount_of, key_of, text_of
from agent_node.fields import is_money
from agent_node.strict import JsonObject
from agent_node.task import Task, task_from
from agent_node.text import counted, safe_text
from arc.errors import ArcError
from arc.looking import INBOX

from .budgets import scopes_of

if TYPE_CHECKING:
    from arc.hub import Hub

ASK_S = 2.0  # a warning is worth no longer wait
SHOWN = 80


async def too_dear(hub: Hub, node: str, tasks: Sequence[JsonObject]) -> tuple[str, ...]:
    """A sentence of the tasks for this queue that its day's limit never pays for; nothing where the
    limit is not known. The fleet's is asked of what the hub gives away, a node's of what it starts.
    """
    some = [task_from(task) for task in tasks if task.get("max_cost_usd")]
    if node == INBOX:
        return too_dear_a_day(hub, some)
    link = hub.links.get(node)
    if link is None or not some:
        return ()
    try:
        async with asyncio.timeout(ASK_S):
            scopes = scopes_of(node, await link.ask("budget", {}))
    except (ArcError, TimeoutError):
        return ()
    own = next((one for one in scopes if one["scope"] == NODE), {})
    limit, urgent_too = own.get("limit_usd"), own.get("urgent_overdraft") is True
    known = limit if isinstance(limit, str) and is_money(limit) else None
    return _warning(NODE, node, known, some, urgent_too=urgent_too)


def too_dear_a_day(hub: Hub, tasks: Sequence[Task]) -> tuple[str, ...]:
    """The same by the fleet's limit, of tasks for the hub's own queue."""
    settings = hub.settings
    return _warning(FLEET, "the fleet", settings.budget_per_day, tasks,
                    urgent_too=settings.urgent_overdraft)  # fmt: skip


def _warning(
    scope: str, whose: str, limit: str | None, tasks: Sequence[Task], *, urgent_too: bool
) -> tuple[str, ...]:
    if limit is None:
        return ()
    dear = [(amount_of(task.max_cost_usd), task) for task in tasks
            if task.max_cost_usd is not None and not (urgent_too and task.priority <= URGENT)
            and amount_of(task.max_cost_usd) > amount_of(limit)]  # fmt: skip
    if not dear:
        return ()
    first = safe_text(dear[0][1].subject, SHOWN)
    more = f' ("{first}" and {len(dear) - 1} more)' if len(dear) > 1 else ""
    enough = text_of(max(cost for cost, _ in dear))
    smaller = "with a smaller max cost, or " if amount_of(limit) > 0 else ""
    said = (f"{counted(len(dear), 'task')}{more} may cost more than {whose} has for a whole day, "
            f"{limit} USD: such a task never starts with that, but {smaller}with: "
            f"{key_of(scope, enough)}")  # fmt: skip
    return (said,)
