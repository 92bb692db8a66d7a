"""Says why a task that waits is still where it is: its node's own reason, else the last cycle's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.task import Task
from agent_node.text import ago
from arc.asking import queued
from arc.decisions.domains import nobody_has
from arc.decisions.draining import DRAINING, PINNED
from arc.decisions.limits import StealLimits
from arc.decisions.node_rules import busy_rules, first_objection
from arc.decisions.receiving import has_an_agent
from arc.decisions.rules import SWIFT_TASK_RULES, TASK_RULES
from arc.decisions.view import FleetView, NodeSeen
from arc.journal_runs import MoveLine, Run
from arc.looking import INBOX, look

from .going_on import PINNED_HERE, not_routed_yet

if TYPE_CHECKING:
    from arc.hub import Hub

MOVER = "fleet-rebalance"
OLD = 2  # intervals of a sensor after which what its run said is told with its age
Reason = tuple[str, str]  # a rule, and a sentence


@dataclass(frozen=True)
class Reasons:
    """What is known of why tasks stay, for one answer."""

    hub: Hub
    of_nodes: Mapping[str, Reason]  # what holds of all that waits on a node, as it is now
    last: Run | None = None  # the last rebalance, whole
    of_the_rest: Mapping[str, Reason] = field(default_factory=dict)  # what it said of a node
    runs: dict[int, Run | None] = field(default_factory=dict)  # those that were looked at
    view: FleetView | None = None  # the fleet as it is now; None: nobody looked
    drained: Mapping[str, str] = field(default_factory=dict)  # nodes that are to be empty: state
    nobodys: dict[tuple[str, ...], str | None] = field(default_factory=dict)  # needs looked for

    @classmethod
    async def now(cls, hub: Hub) -> Reasons:
        """Look at every node; who does not answer now has no reason of its own."""
        seen = await look(hub)
        limits = hub.settings.steal
        said: dict[str, Reason] = {}
        for node in seen.view.seen:
            not_busy = first_objection(busy_rules(limits), node, limits, seen.memory)
            why = _held(node) or ((not_busy.rule, not_busy.because) if not_busy else None)
            if why is not None:
                said[node.name] = why
        last = next(iter(hub.journal.runs.last(MOVER)), None)
        whole = hub.journal.runs.run(last.id) if last else None
        drained = {one.name: one.report.state for one in seen.view.seen
                   if one.report.state in DRAINING}  # fmt: skip
        return cls(hub, said, whole, _of_the_rest(whole), view=seen.view, drained=drained)

    def about(self, node: str, task: Task) -> Reason:
        """Why this task is still on this node; two empty texts: nobody looked at it yet."""
        if node == INBOX and task.pinned:
            return "not_pinned", f"{PINNED_HERE}: arc tasks set {task.uid} pinned=false"
        if (nobody := self._nobody(task)) is not None:
            return "needs_are_met", nobody
        if node == INBOX:
            return self._kept(node, task) or ("", not_routed_yet(self.hub, self._before(task)))
        if task.pinned and node in self.drained:
            return "not_pinned", f"{node} is {self.drained[node]} and starts nothing; {PINNED}"
        of_task = _of_task(task, self.hub.settings.steal)
        return self.of_nodes.get(node) or of_task or self._kept(node, task) or ("", "")

    def _nobody(self, task: Task) -> str | None:
        """Why no node at all can run it, whatever else may hold it; None: one can."""
        if self.view is None or not (task.needs or task.validate):
            return None
        needs = queued(task).needs
        if needs not in self.nobodys:
            self.nobodys[needs] = nobody_has(needs, self.view.seen, self.view.unheard)
        return self.nobodys[needs]

    def _kept(self, node: str, task: Task) -> Reason | None:
        """What the last cycle wrote down of it, or of all the others of its node; nothing, if the
        task came or moved since then.
        """
        runs = self.hub.journal.runs
        moved = next(iter(runs.moves(uid=task.uid, limit=1)), None)
        said = next(iter(runs.decisions_about(task.uid, 1)), None)
        run = self._run(said[0]) if said is not None else None
        later = moved is not None and run is not None and run.at > moved.at
        if moved is not None and not later and _refused(moved, node, task):
            tried = self._run(moved.run) if moved.run is not None else None
            return moved.move.rule, self._dated(moved.move.because, tried)
        stands = moved is None or (run is not None and moved.at < run.at)
        if said is not None and said[1].node == node and stands:
            return said[1].rule, self._dated(said[1].because, run)
        last, others = self.last, self.of_the_rest.get(node)
        if last is None or others is None or (task.ready_at or "") > iso(last.at):
            return None
        if moved is not None and moved.at >= last.at:
            return None
        return others[0], self._dated(others[1], self.last)

    def _before(self, task: Task) -> str:
        """By which rule it did not leave the hub when a run last tried to send it; empty: none did.
        What it waited for since then, such as money, made it READY anew.
        """
        last = next(iter(self.hub.journal.runs.moves(uid=task.uid, limit=1)), None)
        kept = last is not None and last.move.busy == INBOX and last.move.outcome == "kept"
        return last.move.rule if last is not None and kept else ""

    def _run(self, number: int) -> Run | None:
        """Many tasks of a list stayed by one run: it is read once."""
        if number not in self.runs:
            self.runs[number] = self.hub.journal.runs.run(number)
        return self.runs[number]

    def _dated(self, because: str, run: Run | None) -> str:
        """The sentence, with its age where the run that said it is older than two of its intervals:
        what it says of the fleet may be over by now.
        """
        if run is None:
            return because
        age_s = (self.hub.clock.now() - run.at).total_seconds()
        every_s = next((one.every_s for one in self.hub.sensors if one.name == run.report.sensor),
                       0.0)  # fmt: skip
        return f"{because} (said {ago(age_s)})" if age_s > OLD * every_s else because


def _refused(last: MoveLine, node: str, task: Task) -> bool:
    """Whether this is a move from here that one of both ends refused, and nothing has happened to
    the task since: it was planned, so no plan has a reason of its own.
    """
    here = last.move.outcome == "kept" and last.move.busy == node
    return here and (task.ready_at or "") <= iso(last.at)


def _of_task(task: Task, limits: StealLimits) -> Reason | None:
    """A rule about the task itself, which no look at other nodes changes."""
    rules = SWIFT_TASK_RULES if limits.swift else TASK_RULES
    found = ((rule.__name__, rule(queued(task), limits)) for rule in rules)
    return next(((name, because) for name, because in found if because is not None), None)


def _held(node: NodeSeen) -> Reason | None:
    """A word or a fault by which nothing starts on the node, whatever the task is."""
    name, report = node.name, node.report
    if report.dispatcher != "running":
        return "dispatcher_runs", f"{name}'s daemon does not run: {node.role.how_to_start(name)}"
    if report.state != "active":
        because = f": {report.reason}" if report.reason else ""
        return "takes_new_work", f"{name} is {report.state}{because}"
    none = has_an_agent(node)
    return (none.rule, f"{name}: {none.because}") if none is not None else None


def _of_the_rest(run: Run | None) -> dict[str, Reason]:
    """By node: the one rule, beside those about single tasks, by which all the others stayed. Where
    there were several, which of them held one task is not known.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    single = {rule.__name__ for rule in (*TASK_RULES, *SWIFT_TASK_RULES)}
    for one in run.report.decisions if run else ():
        if not one.uid and one.rule not in single:
            found[one.node][one.rule] = one.because
    return {node: next(iter(rules.items())) for node, rules in found.items() if len(rules) == 1}
