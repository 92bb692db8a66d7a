"""Makes tasks out of what people type or send: fields, bodies, and whole files of JSON lines."""

from __future__ import annotations

from pathlib import Path

from agent_node.errors import BadInput
from agent_node.strict import JsonObject, JsonValue, decode_line, decode_object
from agent_node.task import FIELDS, SETTABLE, task_from
from agent_node.text import counted
from arc.errors import WrongUse

from .around import here
from .options import one_word_of

BODY_MAX = 256 * 1024
FILE_MAX = 256 * 1024 * 1024
BAD_SHOWN = 50
_LISTS = {"skills", "tags", "models", "fallback_models"}
_TEXTS = {"domain", "not_before", "deadline"}


def body_of(text: str, file: str) -> str:
    """The body that was given as text, as a file, or on stdin."""
    if text and file:
        raise WrongUse("tasks add: either --body or --body-file")
    if not file:
        return text
    raw = read_input(file, BODY_MAX)
    if len(raw) > BODY_MAX:
        raise WrongUse(f"{file}: a body takes {BODY_MAX} bytes at most")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WrongUse(f"{file}: is not UTF-8 at byte {error.start}") from error


def read_input(file: str, most: int) -> bytes:
    """The bytes of a file, or of stdin for `-`; of more than so many one more, and no further."""
    try:
        if file == "-":
            return here().stdin.read(most + 1)
        with Path(file).open("rb") as opened:
            return opened.read(most + 1)
    except OSError as error:
        raise WrongUse(f"{file}: cannot be read: {error.strerror}") from error


def fields_of(given: list[str], command: str = "set") -> JsonObject:
    """FIELD=VALUE as fields: lists with commas, texts as they are, everything else as JSON."""
    fields: JsonObject = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals or name not in SETTABLE:
            meant = one_word_of(name, SETTABLE) if equals else ""
            what = f"{name} is no field that may be set{meant}" if equals else "write FIELD=VALUE"
            known = ", ".join(sorted(SETTABLE))
            raise WrongUse(f"{command}: {one!r}: {what}", hint=f"fields that may be set: {known}")
        fields[name] = _value(name, text, command)
    return fields


def _value(name: str, text: str, command: str) -> JsonValue:
    try:
        value = _parsed(name, text)
        return value if value is None else FIELDS[name](value, name)
    except BadInput as error:
        raise WrongUse(f"{command}: {name}={text!r}: {error}") from error


def _parsed(name: str, text: str) -> JsonValue:
    if name in _LISTS:
        return [word.strip() for word in text.split(",") if word.strip()]
    return text or None if name in _TEXTS else decode_line(text.encode())


_OPTIONS = {"max_cost_usd": "--max-cost", "boost_per_minute": "--boost", "heat": "--heat"}


def checked(name: str, text: str) -> JsonValue:
    """What was typed for such a field: an amount of money as text, else a number; "" is None."""
    if not text:
        return None
    try:
        value = text if name == "max_cost_usd" else decode_line(text.encode())
        return FIELDS[name](value, name)
    except BadInput as error:
        raise WrongUse(f"{_OPTIONS[name]}: {text!r}: {error}") from error


def references_in(given: list[str] | None) -> list[JsonValue]:
    """What the task is to be given, each in one of the forms that a node can read."""
    from agent_node.references import references_of

    said: list[JsonValue] = [*(given or [])]
    try:
        references_of(said, "--context")
    except BadInput as error:
        raise WrongUse(str(error)) from error
    return said


def validation_in(text: str) -> JsonValue:
    """What the output must be; `WrongUse` where no node could judge by it."""
    if not text:
        return None
    from agent_node.validation import check_validate

    try:
        rule = decode_object(text.encode())
        check_validate(rule)
    except BadInput as error:
        raise WrongUse(f"--validate: {error}") from error
    return rule


def tasks_in(raw: bytes, file: str, *, by: str, strict: bool = False) -> list[JsonObject]:
    """Every task of a file of JSON lines; `WrongUse` names every line that is none.

    `strict`: a field that no node knows is a fault, where it would be kept and mean nothing.
    """
    if len(raw) > FILE_MAX:
        raise WrongUse(f"{file}: more than {FILE_MAX} bytes, and no more are taken at a time")
    tasks: list[JsonObject] = []
    bad: list[str] = []
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            task = {"source": by, "origin": by, **decode_object(line)}
            task_from(task, mint="0" * 26)
            if strict:
                _only_known(task)
            tasks.append(task)
        except BadInput as error:
            bad.append(f"{file}:{number}: {error}")
    if bad:
        more = [f"… and {len(bad) - BAD_SHOWN} more"] if len(bad) > BAD_SHOWN else []
        said = f"{counted(len(bad), 'bad line')}; nothing was added"
        raise WrongUse("\n".join([said, *bad[:BAD_SHOWN], *more]))
    if not tasks:
        raise WrongUse(f"{file}: holds no task; nothing was added")
    return tasks


def _only_known(task: JsonObject) -> None:
    for name in task:
        if name not in FIELDS:
            raise BadInput(f"no task has such a field{one_word_of(name, FIELDS)}", name)
