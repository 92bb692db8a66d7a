"""Remembers which nodes were met, and tells where one came back as another queue than before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonValue
from agent_node.text import counted

from .links import Met

if TYPE_CHECKING:
    from .hub import Hub
    from .journal import Journal
    from .journal_lives import Replaced
    from .journal_nodes import LastMet

INBOX, QUARANTINED = "inbox", "quarantined"


def remember_met(journal: Journal, met: Iterable[Met]) -> None:
    """These nodes were met just now, each as the queue that it was before or as another one."""
    found = list(met)
    with journal.together():
        known = journal.nodes.met()
        journal.nodes.meet(found)
        for one in found:
            before = known.get(one.node)
            if before is not None and before.incarnation != one.incarnation:
                _came_back(journal, before, one)


def _came_back(journal: Journal, before: LastMet, met: Met) -> None:
    """Nobody is told of what tells itself, or what a person did: a quarantine, which gives the same
    queue another incarnation; a machine that was declared off; a name that was given anew.
    """
    back = journal.lives.is_back(met.node, met.incarnation)
    if met.state == QUARANTINED or journal.words.is_fenced(met.node, before.incarnation):
        return
    if journal.lives.was_removed(met.node, before.at):
        return
    last = journal.nodes.last_open(met.node)
    lost = journal.lives.replace(met.node, before.incarnation, met.incarnation,
                                 open_tasks=last[0] if last else None, back=back)  # fmt: skip
    journal.runs.log("node_replaced", node=met.node, fields={
        "was": before.incarnation, "now": met.incarnation, "moved": lost,
        "back": back})  # fmt: skip


def replaced_now(hub: Hub) -> list[JsonValue]:
    """A line for each node of the fleet whose old queue is not seen any more, with what went with
    it, until that is decided or the old one is back; without any known task, for a week.
    """
    names = {*hub.roles(), INBOX}
    return [{"node": one.node, "text": _text(one),
             "try": "arc doubts list" if one.lost else "arc log --event node_replaced"}
            for one in hub.journal.lives.standing() if one.node in names]  # fmt: skip


def _text(one: Replaced) -> str:
    old = f"it is another queue than before, since {iso(one.at)}"
    if one.open:
        old += f" (the old one had {counted(one.open, 'task')} that {_were(one.open)} not over)"
    if not one.lost:
        return f"{old}: what was only in the old one is not seen any more; bring its old home back"
    many = counted(len(one.lost), "task")
    return (f"{old}: {many} that {_were(len(one.lost))} moved to the old one"
            f" {'is' if len(one.lost) == 1 else 'are'} owned by nobody who answers: bring the old"
            " home back, or arc doubts settle UID --yes has each run again")  # fmt: skip


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
