"""Finds what cannot be obeyed in the work that fleet.yaml asks for: tasks, graphs, whom to tell."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import normpath

from agent_node.errors import BadInput
from agent_node.task import FIELDS, LIFE, task_from

from .config_faults import Fault, inside, near, shown
from .decisions.webhooks import fault_of, has_fields
from .marked_yaml import Loc, Plain

SECTIONS = ("schedules", "watch_files", "watch")
WAYS = ("command", "webhook", "email")
# What the hub itself says of a task that it adds.
OURS = frozenset({"uid", "key", "origin", "created_at", "parent", "dag"}) | LIFE
GIVEN = sorted(FIELDS.keys() - OURS)
_UID = "0" * 26


def work_faults(data: Plain) -> Iterator[Fault]:
    """Everything in these sections that the model itself cannot see; works on half-wrong files."""
    first: dict[str, str] = {}
    for section in SECTIONS:
        for name, said in inside(data, section).items():
            loc: Loc = (section, name)
            if first.setdefault(name, section) != section:
                yield "ARC-CFG-TWICE", loc, f"'{name}' stands under {first[name]}: already", True
            if isinstance(said, dict):
                yield from _asked(said, loc)
    yield from _watched(data)
    for name, said in inside(data, "webhooks").items():
        if isinstance(said, dict):
            yield from _hook(said, ("webhooks", name))
    for name, said in inside(data, "notify").items():
        yield from _told(said, ("notify", name))
    yield from _shared_secrets(data)


def _asked(said: dict[str, Plain], loc: Loc) -> Iterator[Fault]:
    """The task or the graph of one entry."""
    section, name = loc
    task, graph = said.get("task"), said.get("graph")
    if section == "schedules" and (task is None) == (graph is None):
        both = "both" if task is not None else "neither"
        yield ("ARC-CFG-CONFLICT", loc,
               f"{section}.{name} needs a task: or a graph:, and says {both}", True)
    if isinstance(task, dict):
        yield from task_faults(task, (*loc, "task"))
    if isinstance(graph, dict):
        yield from _graph(graph, (*loc, "graph"))


def task_faults(task: dict[str, Plain], loc: Loc) -> Iterator[Fault]:
    """Each field that is none, or holds what it may not."""
    bad = False
    for name, value in task.items():
        where: Loc = (*loc, name)
        if (wrong := _no_field(name, where)) is not None:
            yield wrong
        else:
            try:
                FIELDS[name](value, name)
            except BadInput as error:
                yield "ARC-CFG-VALUE", where, f"{error}, not {shown(value)}", False
            else:
                continue
        bad = True
    if not bad:
        yield from _whole(task, loc)


def _no_field(name: str, where: Loc) -> Fault | None:
    if name in FIELDS and name not in OURS:
        return None
    said = near(name, GIVEN) if name not in FIELDS else "; the hub itself says it"
    return "ARC-CFG-UNKNOWN", where, f"{name} is no field of a task here{said}", True


def _hook(said: dict[str, Plain], loc: Loc) -> Iterator[Fault]:
    """What comes from the message cannot be judged yet; all else is, and every template."""
    yield from _templates(said.get("key"), (*loc, "key"))
    task = said.get("task")
    if not isinstance(task, dict):
        return
    fixed: dict[str, Plain] = {}
    for name, value in task.items():
        where: Loc = (*loc, "task", name)
        yield from _templates(value, where)
        if not has_fields(value):
            fixed[name] = value
        elif name == "subject":
            fixed[name] = "x"  # there will be one
        elif (wrong := _no_field(name, where)) is not None:
            yield wrong
    yield from task_faults(fixed, (*loc, "task"))


def _shared_secrets(data: Plain) -> Iterator[Fault]:
    """A signature does not say for whom it is meant: a message to one would open the other."""
    first = {normpath(secret): f"notify.{name}" for name, said in inside(data, "notify").items()
             if (secret := _secret(said.get("webhook") if isinstance(said, dict) else None))}
    for name, said in inside(data, "webhooks").items():
        if (secret := _secret(said)) is None:
            continue
        other = first.setdefault(normpath(secret), f"webhooks.{name}")
        if other != f"webhooks.{name}":
            yield ("ARC-CFG-CONFLICT", ("webhooks", name, "secret_file"),
                   f"{secret} is the secret of {other}, too; each needs its own", True)


def _secret(said: Plain) -> str | None:
    """The file that an entry names; None: it names none."""
    secret = said.get("secret_file") if isinstance(said, dict) else None
    return secret if isinstance(secret, str) else None


def _templates(value: Plain, where: Loc) -> Iterator[Fault]:
    for text in _texts(value):
        if (wrong := fault_of(text)) is not None:
            yield "ARC-CFG-VALUE", where, f"{where[-1]}: {wrong}", False


def _texts(value: Plain) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _whole(task: dict[str, Plain], loc: Loc) -> Iterator[Fault]:
    try:
        task_from({**task, "uid": _UID})
    except BadInput as error:
        code = "ARC-CFG-VALUE" if task.get(error.field) else "ARC-CFG-MISSING"
        yield code, loc, str(error), True


def _graph(graph: dict[str, Plain], loc: Loc) -> Iterator[Fault]:
    if not graph.get("tasks"):
        yield "ARC-CFG-MISSING", loc, "tasks: missing or empty; every graph has some", True
    for name in ("key", "id"):
        if name in graph:
            yield "ARC-CFG-UNKNOWN", (*loc, name), f"{name}: the hub itself says it", True


def _watched(data: Plain) -> Iterator[Fault]:
    """Rules about a domain or a node that this file does not have would never fire."""
    listed = data.get("nodes") if isinstance(data, dict) else None
    nodes = [str(one.get("name")) for one in listed if isinstance(one, dict)] if (
        isinstance(listed, list)) else []
    known = {"domain": list(inside(data, "domains")), "node": nodes}
    for name, said in inside(data, "watch").items():
        for key, there in known.items():
            meant = said.get(key) if isinstance(said, dict) else None
            if isinstance(meant, str) and meant not in there:
                code = "ARC-CFG-DOMAIN" if key == "domain" else "ARC-CFG-VALUE"
                text = f"watch.{name}.{key} names no {key} of this file: {shown(meant)}"
                yield code, ("watch", name, key), f"{text}{near(meant, there)}", False


def _told(said: Plain, loc: Loc) -> Iterator[Fault]:
    ways = [way for way in WAYS if isinstance(said, dict) and said.get(way) is not None]
    if isinstance(said, dict) and len(ways) != 1:
        many = " and ".join(ways) or "none of them"
        yield ("ARC-CFG-CONFLICT", loc,
               f"notify.{loc[1]} needs one of command:, webhook: and email:, and has {many}", True)
