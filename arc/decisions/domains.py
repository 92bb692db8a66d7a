"""Says which node may do which task, for routing and stealing alike; pure."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from agent_node.guessing import Ears, ears_for
from agent_node.strict import JsonObject

from .objections import Objection

if TYPE_CHECKING:  # view.py needs `Role` from here
    from agent_node.reports import AgentReport

    from .view import NodeSeen, QueuedTask

UNSEEN_SHOWN = 4


@dataclass(frozen=True)
class Domain:
    """One domain of fleet.yaml: by which skills, beginnings and words a task belongs to it."""

    name: str
    skills: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Role:
    """Whose work a node does: its own, what it may take when idle, and what it never touches.

    `home` is where fleet.yaml says that a local node keeps its queue; "": where nodes usually do.
    """

    owns: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    home: str = ""

    def typed(self, *verbs: str) -> str:
        """These words of `agent-node` as a person types them for this very node: without its home
        they would be said to another one.
        """
        which = f"AGENT_NODE_HOME={shlex.quote(self.home)} " if self.home else ""
        return "; ".join(f"{which}agent-node {verb}" for verb in verbs)

    def how_to_start(self, name: str) -> str:
        """What a person types to start its daemon."""
        return f"on {name}: {self.typed('start')}"


@dataclass(frozen=True, slots=True)
class Belonging:
    """To which domains a task belongs, and how that is known: the first way that says anything.

    `how` is explicit (the task names its domain), skills, guessed (from its subject), or none.
    """

    names: tuple[str, ...] = ()
    how: str = "none"


def belongs_to(task: QueuedTask, domains: Sequence[Domain]) -> Belonging:
    """The task's domains: its own word first, else those that name one of its skills, else a guess.

    A task with skills is never guessed at: that its skills fit no domain is a finding, and a word
    in its subject is no better witness.
    """
    if task.domain is not None:
        return Belonging((task.domain,), "explicit")
    if task.skills:
        skills = set(task.skills)
        names = tuple(domain.name for domain in domains if not skills.isdisjoint(domain.skills))
        return Belonging(names, "skills") if names else Belonging()
    guess = guessed(task.subject, tuple(domains))
    return Belonging((guess,), "guessed") if guess else Belonging()


def untagged(task: QueuedTask) -> bool:
    """Neither skills nor a domain of its own; what its subject lets us guess does not count."""
    return not task.skills and task.domain is None


def guessed(subject: str, domains: Sequence[Domain]) -> str | None:
    """The domain that a subject sounds like: by how it begins, else by a whole word in it.

    Upper and lower case are alike. The longest beginning wins, then the first word of the subject
    that any domain names; a draw goes to the domain that fleet.yaml names first. None: neither.
    """
    return ears_of(tuple(domains)).guess(subject)


def may_do(
    task: QueuedTask, role: Role, domains: Sequence[Domain], *, anyone_from: int
) -> Objection | None:
    """What a node's role holds against this task; None: it may do it.

    What it *never* does wins over everything else. Work that anyone can do (untagged, of priority
    `anyone_from` or less urgent) needs no domain; all other work needs one of its domains in
    *owns* or *also*. Untagged work that is more urgent and sounds like nobody's stays.
    """
    belonging = belongs_to(task, domains)
    never = touches_never(belonging, role)
    if never is not None:
        return Objection("never_this_domain", never)
    foreign = is_foreign(task, belonging, role, anyone_from=anyone_from)
    return None if foreign is None else Objection("may_do_this_work", foreign)


def touches_never(belonging: Belonging, role: Role) -> str | None:
    """Which of the task's domains the node never touches; None: none of them."""
    hit = [name for name in belonging.names if name in role.never]
    return f"it never does {', '.join(hit)}" if hit else None


def is_foreign(
    task: QueuedTask, belonging: Belonging, role: Role, *, anyone_from: int
) -> str | None:
    """Why this is not the node's work, whatever it never does; None: it is."""
    if any(name in role.owns or name in role.also for name in belonging.names):
        return None
    if untagged(task):
        if task.priority >= anyone_from:
            return None
        if not belonging.names:
            return (f"P{task.priority} without skills or domain stays; "
                    f"anyone may take it from P{anyone_from} on")  # fmt: skip
    if not belonging.names:
        return f"no domain has any of its skills ({', '.join(task.skills)})"
    done = ", ".join((*role.owns, *role.also)) or "nothing"
    sounds = "sounds like" if belonging.how == "guessed" else "belongs to"
    return f"it {sounds} {', '.join(belonging.names)}; the node does {done}"


def powers_of(node: NodeSeen) -> tuple[frozenset[str], ...]:
    """What each of its agents that takes work can do, with what the machine itself has.

    Needs are met by one agent: two halves on two agents are no whole. A node that names no agents
    is taken as one.
    """
    agents = node.report.agents
    return _with_the_machine(
        node, [agent for agent in agents if not agent.paused and agent.state != "failing"]
    )


def _with_the_machine(
    node: NodeSeen, agents: Sequence[AgentReport]
) -> tuple[frozenset[str], ...]:
    report = node.report
    machine = frozenset(report.capabilities)
    if not report.agents:
        return (machine | frozenset(report.skills),)
    return tuple(sorted({machine | frozenset(agent.skills) for agent in agents}, key=sorted))


def lacks(needs: Collection[str], powers: Sequence[frozenset[str]]) -> str | None:
    """Which needs no single agent meets; None: one of them meets all."""
    if not needs or any(power.issuperset(needs) for power in powers):
        return None
    missing = sorted(set(needs) - frozenset().union(*powers))
    if missing:
        return f"nothing there has {', '.join(missing)}"
    return f"no single agent there has {', '.join(sorted(needs))}"


def nobody_has(
    needs: Collection[str], seen: Sequence[NodeSeen], unseen: Collection[str] = ()
) -> str | None:
    """Why no agent of the fleet meets these needs, whatever it does just now; None: one does.

    None, too, where no node was seen. Who was not seen may have them, and is named.
    """
    powers = [one for node in seen for one in _with_the_machine(node, node.report.agents)]
    if not seen or not needs or any(power.issuperset(needs) for power in powers):
        return None
    missing = sorted(set(needs) - frozenset().union(*powers))
    who, what = ("node", missing) if missing else ("single agent", sorted(needs))
    if not unseen:
        return f"no {who} of the fleet has {', '.join(what)}"
    names = [*sorted(unseen)[:UNSEEN_SHOWN], *(["…"] if len(unseen) > UNSEEN_SHOWN else [])]
    return f"no {who} that was seen has {', '.join(what)} (not seen: {', '.join(names)})"


@lru_cache(maxsize=16)
def ears_of(domains: tuple[Domain, ...]) -> Ears:
    """What to listen for with these domains; the node listens in the same way."""
    table: JsonObject = {
        domain.name: {"prefix": [*domain.prefix], "words": [*domain.words]} for domain in domains
    }
    return ears_for(table)
