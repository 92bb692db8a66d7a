"""Holds the shapes of every answer of the API, as its OpenAPI document describes them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class Shape(BaseModel):
    """What is sent: no more than what is described."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Trouble(Shape):
    """What went wrong, for machines and for people."""

    code: str = Field(description="A word that does not change; `arc explain CODE` has a page.")
    message: str
    hint: str | None = Field(None, description="What to do now.")
    where: str | None = None
    rule: str | None = None


class Cause(BaseModel):
    """Why a node could not be read."""

    model_config = ConfigDict(extra="allow", frozen=True)
    code: str
    message: str


class Unread(Shape):
    """A node that could not be read: what it has is in no part of the answer."""

    node: str
    error: Cause


class Envelope(Shape):
    """An answer, whole or in part: what `--json` prints of the same question."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    named: str = Field(alias="schema", pattern=r"^arc\.[a-z._-]+/[0-9]+$")
    ok: bool = Field(description="False where the hub did not do what it was asked.")
    as_of: str = Field(description="When, in UTC.")
    data: dict[str, JsonValue]
    partial: list[Unread] = Field(description="Who could not be read; empty: everybody was.")
    warnings: list[str]


class Failure(Shape):
    """An error: nothing was found out."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    named: str = Field(alias="schema", pattern=r"^arc\.[a-z._-]+/[0-9]+$")
    ok: Literal[False]
    error: Trouble
    as_of: str
    partial: list[Unread]
    warnings: list[str]
