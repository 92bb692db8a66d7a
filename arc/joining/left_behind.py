"""Says what a node that leaves has, what would be lost from sight, and what goes on there."""

from __future__ import annotations

from collections.abc import Callable

from agent_node.strict import JsonObject
from agent_node.text import ago, counted, safe_text
from arc.decisions.domains import Role
from arc.errors import ArcError
from arc.operations import Told
from arc.remembering import OVER

Asked = Callable[[], Told]  # one question to the hub
FENCED_SHOWN = 8


def heard_last(told: JsonObject) -> str:
    """How many tasks were open there when the node answered last."""
    last = told.get("last_open")
    if not isinstance(last, dict):
        return "what it has was never heard here"
    count, age_s = last.get("count"), last.get("age_s")
    when = f", {ago(age_s)}" if isinstance(age_s, int | float) else ""
    many = counted(count if isinstance(count, int) else 0, "open task")
    return f"{many} there when it was last heard{when}"


def comes_back(name: str, would_fence: Asked) -> str:
    """Which tasks had been moved there, and would be lost from sight unless a fence comes first."""
    try:
        told = would_fence().data
    except ArcError as error:
        return f"what had been moved to it is not known: {error}"
    if told.get("refused"):
        return f"what had been moved to it is not known: {safe_text(str(told['refused']), 200)}"
    listed = told.get("tasks")
    uids = [str(one.get("uid")) for one in (listed if isinstance(listed, list) else [])
            if isinstance(one, dict) and one.get("outcome") == "reowned"]  # fmt: skip
    if not uids:
        return "a fence would give nothing back"
    more = f" … ({len(uids)} in all)" if len(uids) > FENCED_SHOWN else ""
    return (f"moved to it, and back only by a fence while {name} is in the fleet: "
            f"{' '.join(safe_text(uid, 26) for uid in uids[:FENCED_SHOWN])}{more}")  # fmt: skip


def what_stays(name: str, told: JsonObject, role: Role) -> str:
    """What becomes of the node and its queue, and how to see it, as far as it is known."""
    if not told.get("seen"):
        return (f"whether {name} still runs is not known here; whatever it has stays in its queue: "
                f"there: {role.typed('list')}")  # fmt: skip
    left = open_tasks(told)
    has = f"its {counted(left, 'open task')} stay" if left != 1 else "its open task stays"
    sees = f"{has} there (there: {role.typed('list')}); " if left else ""
    state, stop = told.get("state"), f"there: {role.typed('stop')}"
    if state in {"paused", "drained", "draining", "quarantined"}:
        return (f"{name} is {state} and starts nothing; {sees}to have it work on, there: "
                f"{role.typed('resume')}; to end its daemon, {stop}")  # fmt: skip
    if state == "stopped":
        start = role.typed("start")
        return f"the daemon of {name} does not run; {sees}to start it, there: {start}"
    return (f"{name} works on with its own queue; {sees}to stop it, there: {role.typed('drain')}, "
            f"then {role.typed('stop')}")  # fmt: skip


def undecided(data: JsonObject) -> int:
    """How many dead letters wait there for a person: who lets the node go sees them nowhere."""
    counts = data.get("counts")
    found = counts.get("DEAD_LETTERED") if isinstance(counts, dict) else 0
    return found if isinstance(found, int) else 0


def open_tasks(data: JsonObject) -> int:
    """How many tasks of a node are not over, by its own counts; one that waits or rests is not."""
    counts = data.get("counts")
    found = counts.items() if isinstance(counts, dict) else ()
    return sum(count for state, count in found if isinstance(count, int) and state not in OVER)
