"""Says what the values of fleet.yaml may be: names, times, shares, and mappings of them."""

from __future__ import annotations

from typing import Annotated, TypeVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from .config_words import (
    NAME_PATTERN,
    parse_every,
    parse_flag,
    parse_host,
    parse_name,
    parse_some_time,
    parse_user,
    text_of,
    whole_of,
)
from .durations import (
    DURATION_PATTERN,
    PRIORITY_PATTERN,
    SHARE_PATTERN,
    parse_duration,
    parse_failing,
    parse_priority,
    parse_share,
)

LABEL_MAX = 64  # characters of one skill, as a task may carry them
BEGINNING_MAX = 200
COUNT_MAX = 1_000_000
PORT_MAX = 65_535

Value = TypeVar("Value")


_DURATION_SCHEMA = WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN})
_PRIORITY_SCHEMA = WithJsonSchema(
    {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 10},
               {"type": "string", "pattern": PRIORITY_PATTERN}]}
)  # fmt: skip


def _count_schema(low: int, high: int) -> WithJsonSchema:
    return WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})


_TEXT_SCHEMA = WithJsonSchema({"type": "string"})
Name = Annotated[
    str, BeforeValidator(parse_name), WithJsonSchema({"type": "string", "pattern": NAME_PATTERN})
]
Flag = Annotated[bool, BeforeValidator(parse_flag)]
Count = Annotated[int, BeforeValidator(whole_of(0, COUNT_MAX)), _count_schema(0, COUNT_MAX)]
Times = Annotated[int, BeforeValidator(whole_of(1, COUNT_MAX)), _count_schema(1, COUNT_MAX)]
Port = Annotated[int, BeforeValidator(whole_of(1, PORT_MAX)), _count_schema(1, PORT_MAX)]
Duration = Annotated[float, BeforeValidator(parse_duration), _DURATION_SCHEMA]
SomeTime = Annotated[float, BeforeValidator(parse_some_time), _DURATION_SCHEMA]
Every = Annotated[float, BeforeValidator(parse_every), _DURATION_SCHEMA]
_SHARE_SCHEMA = WithJsonSchema({"type": "string", "pattern": SHARE_PATTERN})
Share = Annotated[float, BeforeValidator(parse_share), _SHARE_SCHEMA]
Failing = Annotated[tuple[float, int, float], BeforeValidator(parse_failing), _TEXT_SCHEMA]
Priority = Annotated[int, BeforeValidator(parse_priority), _PRIORITY_SCHEMA]
Label = Annotated[str, BeforeValidator(text_of(LABEL_MAX, "a word")), _TEXT_SCHEMA]
Beginning = Annotated[str, BeforeValidator(text_of(BEGINNING_MAX, "a text")), _TEXT_SCHEMA]
Host = Annotated[str, BeforeValidator(parse_host), _TEXT_SCHEMA]
User = Annotated[str, BeforeValidator(parse_user), _TEXT_SCHEMA]
File = Annotated[str, BeforeValidator(text_of(4096, "a path")), _TEXT_SCHEMA]


class Section(BaseModel):
    """A mapping that refuses keys it does not know; a known key with nothing behind it is unsaid.

    So a section whose lines are all commented out means the same as no section.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _unsaid(cls, said: object) -> object:
        if not isinstance(said, dict):
            return said
        return {key: value for key, value in said.items()
                if value is not None or key not in cls.model_fields}  # fmt: skip


def says(default: object, sentence: str) -> Value:  # type: ignore[type-var]
    """A key with its default, written as a person would write it, and its sentence."""
    return cast("Value", Field(default=default, description=sentence))
