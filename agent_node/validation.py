"""Says what a task's `validate` may hold, and what a validator's end means. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from .errors import BadInput
from .patterns import fault_of_pattern
from .schemas import fault_of
from .strict import JsonObject, JsonValue, kind_of

KINDS = ("json-schema", "test-pass", "llm-judge", "regex", "none")
COMMANDS = ("test-pass", "llm-judge")  # what node.toml names under [validators.NAME]
OURS = ("json-schema", "regex")  # what the node judges itself, in a process of its own
PATTERN_MAX = 1000
TIMEOUT_MAX_S = 3600.0
TIMEOUT_S = {"json-schema": 30.0, "regex": 10.0, "test-pass": 600.0, "llm-judge": 300.0}
TRIES = 3
SAID_MAX = 16_384  # bytes that are kept of what a validator prints: head and tail
REASON_MAX = 500
JSON_SCHEMA = "json-schema"
# Of judge.py, which can import nothing of ours, nor may this import what it does.
EXIT_REJECTED, EXIT_NO_RULE, EXIT_TOO_LONG = 10, 11, 12
_FAILED_MAX = 123  # above: what `timeout`, shells and signals say when nothing was judged
_KEYS = {
    "json-schema": {"schema"}, "test-pass": {"validator"}, "llm-judge": {"validator"},
    "regex": {"pattern"}, "none": set[str](),
}  # fmt: skip
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_is_name = re.compile(r"[a-z][a-z0-9-]{0,31}").fullmatch


@dataclass(frozen=True)
class Passed:
    """The output is good."""


@dataclass(frozen=True)
class Rejected:
    """The output is not: the attempt failed as `invalid_output`."""

    why: str


@dataclass(frozen=True)
class Broken:
    """The validator did not do its work, which is not the task's fault. It may next time."""

    why: str


@dataclass(frozen=True)
class NoRule:
    """Nothing can be judged by this, however often it is tried: a person decides."""

    why: str


Judgement = Passed | Rejected | Broken | NoRule


def is_judged(validate: JsonObject) -> bool:
    """Whether an output has to be looked at before it counts."""
    return bool(validate) and validate.get("kind") != "none"


def check_validate(validate: JsonObject) -> None:
    """Refuse what nobody here can judge by, naming the field; the empty object says nothing."""
    if not validate:
        return
    kind = validate.get("kind")
    if kind not in KINDS:
        raise BadInput(f"one of {', '.join(KINDS)} belongs here", "validate.kind")
    known = {"kind", "timeout_s", *_KEYS[str(kind)]}
    for name in validate:
        if name not in known:
            there = ", ".join(sorted(known))
            raise BadInput(f"{kind} has no such field; there are {there}", f"validate.{name[:80]}")
    for name in _KEYS[str(kind)]:
        if name not in validate:
            raise BadInput(f"missing; {kind} needs it", f"validate.{name}")
        _CHECKS[name](validate[name])
    _check_timeout(validate.get("timeout_s"))


def _check_schema(value: JsonValue) -> None:
    if not isinstance(value, dict):
        raise BadInput(f"a {kind_of(value)} where an object belongs", "validate.schema")
    level: list[JsonValue] = [value]
    while level:  # as deep as a task may be nested, which is checked where it is read
        for one in level:
            for name in _REFERENCES if isinstance(one, dict) else ():
                ref = one.get(name) if isinstance(one, dict) else None
                if isinstance(ref, str) and not ref.startswith("#"):
                    text = "refers to another document; a schema is judged without the network"
                    raise BadInput(text, f"validate.schema.{name}")
        level = [inner for one in level for inner in _inside(one)]
    fault = fault_of(value)
    if fault is not None:
        raise BadInput(fault[1], f"validate.schema{fault[0]}")


def _inside(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else []


def _check_pattern(value: JsonValue) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= PATTERN_MAX:
        raise BadInput(f"a text of 1 to {PATTERN_MAX} characters belongs here", "validate.pattern")
    fault = fault_of_pattern(value)
    if fault is not None:
        raise BadInput(f"is no regular expression: {fault}", "validate.pattern")


def _check_validator(value: JsonValue) -> None:
    if not isinstance(value, str) or not _is_name(value):
        text = "the name of a [validators.NAME] table of the node belongs here, and no command"
        raise BadInput(text, "validate.validator")


def _check_timeout(value: JsonValue) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"a {kind_of(value)} where seconds belong", "validate.timeout_s")
    if not 0 < value <= TIMEOUT_MAX_S:
        raise BadInput(f"{value}; it goes up to {TIMEOUT_MAX_S:g}", "validate.timeout_s")


_CHECKS = {"schema": _check_schema, "pattern": _check_pattern, "validator": _check_validator}


def needs_of(needs: list[str], validate: JsonObject) -> list[str]:
    """What an agent must be able to do to run the task, and its node to judge it.

    A kind that a newer node made up is a power that nobody here has: the task waits, and says so.
    """
    if not is_judged(validate):
        return needs
    kind = str(validate.get("kind"))
    if kind in COMMANDS:
        return [*needs, validator_power(str(validate.get("validator")))]
    if kind == "regex":
        return needs
    return [*needs, kind if kind in KINDS else f"validate:{kind[:50]}"]


def validator_power(name: str) -> str:
    """The power of a node whose node.toml names this validator."""
    return f"validator:{name}"


def timeout_of(validate: JsonObject, longest: float | None) -> float:
    """Seconds that a validator may take: the task's word, never more than the node's own."""
    asked = validate.get("timeout_s")
    seconds = float(asked) if isinstance(asked, int | float) else (
        longest or TIMEOUT_S.get(str(validate.get("kind")), TIMEOUT_MAX_S)
    )
    return min(seconds, longest or TIMEOUT_MAX_S)


def judge_check(kind: str, *, exit_code: int | None, timed_out: bool, said: bytes) -> Judgement:
    """What a validator's end means; `exit_code` None: it was killed, or could not be started."""
    if kind in OURS:
        return _judge_ours(exit_code, timed_out=timed_out, said=said)
    if kind == "llm-judge":
        return _judge_judge(exit_code, timed_out=timed_out, said=said)
    if timed_out:
        return Rejected("the test did not end in time")
    if exit_code == 0:
        return Passed()
    if exit_code is None or exit_code > _FAILED_MAX:
        return Broken(f"the validator {_end_of(exit_code)}: {_last_line(said)}")
    return Rejected(f"exit {exit_code}: {_last_line(said)}")


def _judge_ours(exit_code: int | None, *, timed_out: bool, said: bytes) -> Judgement:
    if timed_out or exit_code == EXIT_TOO_LONG:
        return Rejected("the rule could not be judged in time on this output")
    if exit_code == 0:
        return Passed()
    if exit_code == EXIT_REJECTED:
        return Rejected(_last_line(said))
    if exit_code == EXIT_NO_RULE:
        return NoRule(_last_line(said))
    return Broken(f"the node's own judge {_end_of(exit_code)}: {_last_line(said)}")


def _judge_judge(exit_code: int | None, *, timed_out: bool, said: bytes) -> Judgement:
    if timed_out:
        return Broken("the judge did not end in time")
    if exit_code != 0:
        return Broken(f"the judge {_end_of(exit_code)}: {_last_line(said)}")
    try:
        verdict = json.loads(said.split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return Broken("the judge's first line is no JSON object")
    if not isinstance(verdict, dict) or not isinstance(verdict.get("pass"), bool):
        return Broken('the judge\'s first line does not say {"pass": true} or {"pass": false}')
    if verdict["pass"]:
        return Passed()
    return Rejected(_sayable(str(verdict.get("reason") or "the judge gives no reason")))


def _end_of(exit_code: int | None) -> str:
    return "was killed, or could not be started" if exit_code is None else f"exited {exit_code}"


def _last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").split("\n")
    spoken = [line.strip() for line in lines if line.strip()]
    return _sayable(spoken[-1]) if spoken else "it printed nothing"


def _sayable(text: str) -> str:
    """What somebody printed, without what neither the queue nor a line of the wire can hold."""
    return text[:REASON_MAX].replace("\0", "?").encode("utf-8", "replace").decode()
