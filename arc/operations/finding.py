"""Finds the one task a person means, wherever in the fleet it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from agent_node.task import Task
from agent_node.text import WHOLE_SHORT, first_of, safe_text, short_uids
from agent_node.ulid import is_ulid
from arc.asking import read_listed
from arc.errors import Ambiguous, ArcError, NotFound, WrongUse

from .everybody import Answers, ask_all, not_asked, not_found_yet

if TYPE_CHECKING:
    from arc.hub import Hub

CANDIDATES_MAX = 20
_is_part = re.compile(r"[0-9A-HJKMNP-TV-Z]{1,26}").fullmatch
# Where several nodes know a task, the one that has it comes before those that gave it away.
_LAST = ("MOVED", "HELD")


@dataclass(frozen=True)
class Found:
    """One task: the node that has it, what every node knows of it, and who could not be asked."""

    uid: str
    node: str
    task: Task  # without its body
    copies: Mapping[str, str]  # node: state
    answers: Answers[tuple[Task, ...]]
    not_asked: tuple[str, ...] = ()  # a sentence for each node that is suspended

    @property
    def elsewhere(self) -> bool:
        """Whether the answer may be incomplete: it was moved to a node that did not answer."""
        return self.task.state == "MOVED" and bool(self.answers.failed or self.not_asked)


async def find_task(hub: Hub, part: str, *, kind: str = "task") -> Found:
    """The task that is meant by this beginning or end of a uid; all nodes are asked at once.

    `NotFound` only when every node answered; else `NotFoundYet`. `Ambiguous` names ten.
    `kind` is what a person asked for, which a task may stand for.
    """
    wanted = part_of_uid(part)
    asked: JsonObject = {"match": wanted, "limit": CANDIDATES_MAX}
    answers = await ask_all(hub, "list", asked, lambda node, said: read_listed(node, said).tasks)
    by_uid: dict[str, dict[str, Task]] = {}
    for node, tasks in answers.said.items():
        for task in tasks:
            if task.uid == wanted if is_ulid(wanted) else _fits(task.uid, wanted):
                by_uid.setdefault(task.uid, {})[node] = task
    if not by_uid:
        raise _nowhere(part, answers, not_asked(hub), kind)
    if len(by_uid) > 1:
        whole = all(len(tasks) < CANDIDATES_MAX for tasks in answers.said.values())
        said = first_of(_candidates(by_uid), all_of_them=whole)
        raise Ambiguous(f"{part}: could be any of these tasks:\n{said}",
                        hint="give more of the uid")  # fmt: skip
    uid, copies = next(iter(by_uid.items()))
    node = min(copies, key=lambda name: (_LAST.index(copies[name].state) + 1
               if copies[name].state in _LAST else 0, -copies[name].epoch, name))  # fmt: skip
    states = {name: str(task.state) for name, task in sorted(copies.items())}
    return Found(uid, node, copies[node], states, answers, not_asked(hub))


def part_of_uid(part: str) -> str:
    """The same as uids are written; `WrongUse` where no uid could begin or end so."""
    wanted = part.strip().upper()
    if not _is_part(wanted):
        raise WrongUse(f"{part[:40]!r} is no part of a uid: digits, letters but I, L, O, U",
                       hint="arc tasks list shows the tasks, arc dag list the graphs, "
                       "arc dead list the dead letters")  # fmt: skip
    return wanted


def _fits(uid: str, part: str) -> bool:
    return uid.startswith(part) or uid.endswith(part)


def _nowhere(
    part: str, answers: Answers[tuple[Task, ...]], suspended: tuple[str, ...], kind: str
) -> ArcError:
    if answers.failed or suspended:
        what = f"{part}: no node that answered has such a {kind}"
        return not_found_yet(what, answers.failed, suspended)
    return NotFound(f"{part}: no node of this fleet has a task whose uid begins or ends so",
                    hint=f"arc tasks list shows what is there; {WHOLE_SHORT}")  # fmt: skip


def _candidates(by_uid: Mapping[str, Mapping[str, Task]]) -> list[str]:
    short = short_uids(by_uid)
    return [
        f"  {short[uid]}  {uid}  {', '.join(sorted(copies))}  "
        f"{safe_text(next(iter(copies.values())).subject, 60)}"
        for uid, copies in sorted(by_uid.items())
    ]
