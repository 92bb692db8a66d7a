"""Reads the node's answers at the border, so that a strange one is an error and not a guess."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from agent_node.clock import parse_iso
from agent_node.errors import NodeError, Refused

from .around import Result


class StrangeAnswer(NodeError):
    """The node answered something this command does not understand; what it did is not known."""

    code = "strange_answer"
    hint = "does another version of agent-node run here? agent-node doctor, agent-node version"


def objects(result: Mapping[str, object], name: str) -> list[Result]:
    """The list of objects under this name."""
    value = result.get(name)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise StrangeAnswer(f"the node's answer has no list of objects called {name!r}")
    return value


def some_objects(result: Mapping[str, object], name: str) -> list[Result]:
    """The same, where the node may leave the list out when there is nothing to say."""
    return objects(result, name) if result.get(name) is not None else []


def one_object(result: Mapping[str, object], name: str) -> Result:
    """The object under this name."""
    value = result.get(name)
    if not isinstance(value, dict):
        raise StrangeAnswer(f"the node's answer has no object called {name!r}")
    return value


def words(record: Mapping[str, object], name: str, missing: str = "-") -> str:
    """A field as text for people; what is absent or empty is said, not left blank."""
    value = record.get(name)
    if value is None or value in ("", []):
        return missing
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return str(value)


def whole(record: Mapping[str, object], name: str, missing: int = 0) -> int:
    """A field as a whole number, what follows its point left out."""
    value = record.get(name)
    return int(value) if isinstance(value, int | float) else missing


def age_s(record: Mapping[str, object], name: str, now: datetime) -> float | None:
    """Seconds since the moment in this field; None when it names none."""
    value = record.get(name)
    if not isinstance(value, str):
        return None
    try:
        return (now - parse_iso(value)).total_seconds()
    except ValueError:
        return None


def reason(record: Mapping[str, object]) -> str:
    """`rule: text` of a refusal, as people read it."""
    because = record.get("because")
    if not isinstance(because, dict):
        return "no reason was given"
    return f"{because.get('rule', 'refused')}: {because.get('text', '')}"


def refusal(result: Mapping[str, object]) -> Refused:
    """The same as the error that it is; a task that was never here has its own exit code."""
    because = result.get("because")
    said = because if isinstance(because, dict) else {}
    rule = str(said.get("rule", "refused"))
    text = str(said.get("text") or "the node gave no reason")
    code = "not_found" if rule == "unknown_task" else rule
    uid = words(result, "uid", "the task")
    return Refused(code, text if text.startswith(uid) else f"{uid}: {text}", rule)
