"""Reads the program's own answer, which nobody has to believe, without ever failing on it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime

from .attempts import AttemptFolder, EvidenceUnreadable, read_untrusted
from .clock import parse_iso
from .errors import BadInput
from .fields import check_nesting
from .strict import JsonObject, JsonValue, decode_object, kind_of

ANSWER_MAX = 256 * 1024
OUTPUT_MAX = 64 * 1024  # bytes of `output`, `artifacts` and unknown fields together, as JSON
WANTED = 'a JSON object belongs there, such as {"output": "a text"}'
_KIND_MAX = 64
_MESSAGE_MAX = 2000
_TOKEN_NAMES_MAX = 16
_ARTIFACTS_MAX = 256
_TOKENS_MAX = 2**53
_KNOWN = ("output", "cost_usd", "tokens", "artifacts", "error")
_is_money = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?").fullmatch


@dataclass(frozen=True)
class ReportedError:
    """What the program says went wrong; `retry_at` None: it does not say when to try again."""

    kind: str
    message: str
    retry_at: datetime | None = None


@dataclass(frozen=True)
class Answer:
    """What the program said; with a `problem` it said nothing that we take, and this is why.

    `given` is False when the program wrote no answer at all, which is no fault.
    """

    given: bool = True
    output: JsonValue = None
    cost_usd: str | None = None
    tokens: dict[str, int] = field(default_factory=dict)
    artifacts: tuple[JsonValue, ...] = ()
    error: ReportedError | None = None
    extra: JsonObject = field(default_factory=dict)
    problem: str | None = None


def read_answer(folder: AttemptFolder) -> Answer:
    """Never raises: a bad answer is an `Answer` whose `problem` says what is wrong with it."""
    try:
        raw = read_untrusted(folder.answer, ANSWER_MAX)
    except (BadInput, EvidenceUnreadable) as error:
        return Answer(problem=f"answer.json: {error}")
    try:
        return Answer(given=False) if raw is None else parse_answer(raw)
    except BadInput as error:
        # Who writes a bare text there does not know yet what belongs there.
        wanted = "" if raw and raw.lstrip()[:1] == b"{" else f"; {WANTED}"
        return Answer(problem=f"answer.json: {error}{wanted}")


def parse_answer(raw: bytes) -> Answer:
    """The answer in these bytes, or `BadInput` naming the field."""
    said = decode_object(raw, ANSWER_MAX)
    extra = {name: value for name, value in said.items() if name not in _KNOWN}
    kept: JsonObject = {
        "output": said.get("output"), "artifacts": said.get("artifacts"), "extra": extra,
    }  # fmt: skip
    if len(json.dumps([*kept.values()], ensure_ascii=False).encode()) > OUTPUT_MAX:
        raise BadInput(f"larger than {OUTPUT_MAX} bytes as JSON", "output")
    for name, value in kept.items():  # it travels inside other objects, as a task does
        check_nesting(value, name)
    return Answer(
        output=said.get("output"),
        cost_usd=_money(said.get("cost_usd")),
        tokens=_tokens(said.get("tokens")),
        artifacts=_artifacts(said.get("artifacts")),
        error=_error(said.get("error")),
        extra=extra,
    )


def _money(value: JsonValue) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _is_money(value):
        raise BadInput('should be a decimal string such as "0.12"', "cost_usd")
    return value


def _tokens(value: JsonValue) -> dict[str, int]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > _TOKEN_NAMES_MAX:
        raise BadInput(f"should be an object of at most {_TOKEN_NAMES_MAX} counts", "tokens")
    counts: dict[str, int] = {}
    for name, count in value.items():
        where = f"tokens/{name[:_KIND_MAX]}"
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _TOKENS_MAX:
            raise BadInput("should be a whole number, not negative", where)
        if len(name) > _KIND_MAX or not name.isprintable():
            raise BadInput(f"a name is at most {_KIND_MAX} characters that can be printed", where)
        counts[name] = count
    return counts


def _artifacts(value: JsonValue) -> tuple[JsonValue, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > _ARTIFACTS_MAX:
        raise BadInput(f"should be a list of at most {_ARTIFACTS_MAX}", "artifacts")
    return tuple(value)


def _error(value: JsonValue) -> ReportedError | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise BadInput(f"a {kind_of(value)} where an object belongs", "error")
    kind, message = value.get("kind"), value.get("message", "")
    if not isinstance(kind, str) or not 0 < len(kind) <= _KIND_MAX:
        raise BadInput(f"should be a text of 1 to {_KIND_MAX} characters", "error/kind")
    if not isinstance(message, str):
        raise BadInput("should be a text", "error/message")
    return ReportedError(kind, message[:_MESSAGE_MAX], _moment(value.get("retry_at")))


def _moment(value: JsonValue) -> datetime | None:
    if value is None:
        return None
    try:
        return parse_iso(str(value))
    except (ValueError, OverflowError) as error:
        raise BadInput("should be a time such as 2026-03-10T03:45:02Z", "error/retry_at") from error
