"""Describes the API as an OpenAPI 3.1 document, from the same table that answers it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic.json_schema import models_json_schema

from agent_node import __version__

from .models import Envelope, Failure
from .questions import LOG, PANEL, QUESTIONS, Param, Question

if TYPE_CHECKING:
    from .surroundings import Panel

REF = "#/components/schemas/{model}"
FAILURES: Mapping[str, str] = {
    "400": "The question makes no sense.",
    "401": "It wants a token.",
    "403": "Sent by another page, or turned off.",
    "404": "No such thing, or none that could be found.",
    "413": "A question carries no body.",
    "421": "The page does not answer to that name.",
    "431": "More or longer headers, or a longer question, than is read.",
    "500": "The hub could not do it.",
    "503": "No hub runs, or too many ask.",
    "504": "It took too long.",
}
PANEL_TEXT = {"type": "string", "maxLength": 200}


def document(panels: Mapping[str, Panel]) -> str:
    """The whole document as one line of JSON."""
    _, schemas = models_json_schema(
        [(Envelope, "serialization"), (Failure, "serialization")], ref_template=REF)
    paths: dict[str, object] = {
        f"/api/v1/{one.path}": {"get": _asked(one)} for one in (*QUESTIONS, LOG)
    }
    for name, panel in sorted(panels.items()):
        paths[f"/api/v1/panels/{name}"] = {"get": _panel(name, panel)}
    whole = {
        "openapi": "3.1.0",
        "info": {"title": "Arc", "version": __version__,
                 "description": "What a fleet is doing, and why. Everything here only reads."},
        "paths": paths,
        "components": {"schemas": schemas["$defs"]},
    }  # fmt: skip
    return json.dumps(whole, ensure_ascii=True, separators=(",", ":"))


def _asked(question: Question) -> dict[str, object]:
    return {
        "operationId": question.path.replace("/", ".").replace("{", "").replace("}", ""),
        "summary": question.says,
        "parameters": [_param(one) for one in question.takes],
        "responses": _responses(),
    }


def _panel(name: str, panel: Panel) -> dict[str, object]:
    return {
        "operationId": f"{PANEL.path.partition('/')[0]}.{name}",
        "summary": panel.says,
        "parameters": [
            {"name": one, "in": "query", "required": False, "description": says,
             "schema": PANEL_TEXT}
            for one, says in panel.takes.items()
        ],
        "responses": _responses(),
    }  # fmt: skip


def _param(one: Param) -> dict[str, object]:
    return {
        "name": one.name, "in": "path" if one.needed else "query", "required": one.needed,
        "description": one.says, "schema": _schema(one),
        **({"style": "form", "explode": False} if one.kind == "words" else {}),
    }  # fmt: skip


def _schema(one: Param) -> dict[str, object]:
    if one.kind == "whole":
        return {"type": "integer", "minimum": one.low, "maximum": one.high}
    if one.kind == "flag":
        return {"type": "boolean"}
    if one.kind == "moment":
        return {"type": "string", "format": "date-time"}
    if one.kind == "words":
        return {"type": "array", "items": {"enum": list(one.words)}, "minItems": 1}
    if one.words:
        return {"enum": list(one.words)}
    return {"type": "string", "minLength": 1, "maxLength": one.high,
            **({"pattern": one.pattern} if one.pattern else {})}  # fmt: skip


def _responses() -> dict[str, object]:
    answers = {"200": ("What was asked.", Envelope.__name__),
               **{status: (says, Failure.__name__) for status, says in FAILURES.items()}}
    return {
        status: {"description": says, "content": {
            "application/json": {"schema": {"$ref": REF.format(model=model)}}}}
        for status, (says, model) in answers.items()
    }  # fmt: skip
