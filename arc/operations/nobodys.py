"""Warns of new tasks that no node would be given: what they name is nobody's here."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from agent_node.text import counted, safe_text
from agent_node.validation import needs_of
from arc.looking import INBOX

if TYPE_CHECKING:
    from agent_node.reports import StatusReport
    from arc.hub import Hub

SHOWN_MAX = 20
SAID_MAX = 80


def nobodys(hub: Hub, node: str, tasks: Sequence[JsonObject]) -> Iterator[str]:
    """A line for each word by which tasks for this queue would wait for nobody, with the first of
    them. They are taken all the same: whose work they are may be on its way into fleet.yaml.
    """
    yield from _meant_as_domains(hub, tasks)
    if node == INBOX:
        yield from _pinned(tasks)
        if hub.settings.route.fallback is None:
            yield from _domains(hub, tasks)
            yield from _skills(hub, tasks)
    yield from _needs(hub, node, tasks)


def no_domain(hub: Hub, name: str | None) -> tuple[str, ...]:
    """That fleet.yaml has no such domain, where nothing was found of it; a task may name any."""
    names = {domain.name for domain in hub.settings.domains}
    if name is None or name in names:
        return ()
    return (f"no domain is called {_shown(name)}{_meant(name, names)}",)


def _meant_as_domains(hub: Hub, tasks: Sequence[JsonObject]) -> Iterator[str]:
    """Skills that are no skill here but the name of a domain: the task is nobody's work so."""
    names = {domain.name for domain in hub.settings.domains} - _skills_of(hub)
    found = _by_word((one, task) for task in tasks if not task.get("domain")
                     for one in _words(task, "skills") if one in names)  # fmt: skip
    for name, who in found:
        yield (f"{who} with the skill {name}, which is a domain and no skill of "
               f"any: meant is --domain {name}")  # fmt: skip


def _pinned(tasks: Sequence[JsonObject]) -> Iterator[str]:
    """The hub's own queue is a place to wait in, and nothing runs there."""
    stay = [task for task in tasks if task.get("pinned")]
    if stay:
        yield (f"{_who(stay[0], len(stay))} pinned to the hub's own queue, where nothing runs and "
               "which the router does not take them from: meant is --to NODE")


def _domains(hub: Hub, tasks: Sequence[JsonObject]) -> Iterator[str]:
    """Domains that no node owns, and none has in `also`."""
    taken = {name for role in hub.roles().values() for name in (*role.owns, *role.also)}
    found = _by_word((str(task["domain"]), task) for task in tasks
                     if task.get("domain") and task["domain"] not in taken)  # fmt: skip
    for name, who in found:
        yield (f"{who} with the domain {_shown(name)}, which no node owns or "
               f"takes also; it would wait{_meant(name, taken)}")  # fmt: skip


def _skills(hub: Hub, tasks: Sequence[JsonObject]) -> Iterator[str]:
    """Skills that no domain has, of tasks that name no domain and have no other skill of one."""
    known = _skills_of(hub)
    domains = {domain.name for domain in hub.settings.domains}
    lost = [(some, task) for task in tasks if not task.get("domain")
            if (some := _words(task, "skills")) and known.isdisjoint(some)]  # fmt: skip
    found = _by_word((one, task) for some, task in lost for one in some if one not in domains)
    for name, who in found:
        yield (f"{who} with the skill {_shown(name)}, which no domain has; it "
               f"would wait{_meant(name, known)}")  # fmt: skip


def _needs(hub: Hub, node: str, tasks: Sequence[JsonObject]) -> Iterator[str]:
    """Needs that no agent has; nothing is said where a node that may have it was not seen."""
    view = hub.last_view
    if view is None or (view.silent if node == INBOX else view.node(node) not in view.seen):
        return
    every = [one for one in view.seen if node in (INBOX, one.name)]
    known = {word for one in every for word in _can(one.report)}
    found = _by_word((one, task) for task in tasks for one in _needed(task) if one not in known)
    where = "anywhere" if node == INBOX else f"on {node}"
    for name, who in found:
        yield (f"{who} with the need {_shown(name)}, which no agent {where} has; "
               f"it would wait{_meant(name, known)}")  # fmt: skip


def _by_word(pairs: Iterable[tuple[str, JsonObject]]) -> Iterator[tuple[str, str]]:
    """Each word once, with the first task that has it and how many there are; of many words some.
    A task has a name where it stands in a graph.
    """
    many: Counter[str] = Counter()
    first: dict[str, JsonObject] = {}
    for word, task in pairs:
        many[word] += 1
        first.setdefault(word, task)
    for word, count in sorted(many.items())[:SHOWN_MAX]:
        yield word, _who(first[word], count)


def _who(first: JsonObject, count: int) -> str:
    if first.get("name"):
        more = f" and {count - 1} more" if count > 1 else ""
        return f"task {_shown(str(first['name']))}{more}"
    more = f' ("{_shown(str(first.get("subject")))}" and {count - 1} more)' if count > 1 else ""
    return counted(count, "task") + more


def _needed(task: JsonObject) -> list[str]:
    """Its needs, and what judges its output; the task was checked before."""
    rule = task.get("validate")
    return needs_of(_words(task, "needs"), rule if isinstance(rule, dict) else {})


def _can(report: StatusReport) -> Iterator[str]:
    """Whatever is there, also what is paused just now."""
    yield from (*report.capabilities, *report.skills)
    for agent in report.agents:
        yield from agent.skills


def _skills_of(hub: Hub) -> set[str]:
    return {skill for domain in hub.settings.domains for skill in domain.skills}


def _words(task: JsonObject, field: str) -> list[str]:
    said = task.get(field)
    return [str(one) for one in said] if isinstance(said, list) else []


def _shown(name: str) -> str:
    return safe_text(name, SAID_MAX)


def _meant(name: str, known: Iterable[str]) -> str:
    """The near word; with none near, those there are, if they are few."""
    names = sorted(known)
    close = difflib.get_close_matches(name.lower()[:SAID_MAX], names, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]}?"
    few = ", ".join(names) if 0 < len(names) <= SHOWN_MAX else ""
    return f"; there are {few}" if few else "; there is none yet"
