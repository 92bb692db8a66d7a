"""Collects what an attempt is given of other tasks, each value checked against its hash."""

from __future__ import annotations

import json

from ..errors import NodeError
from ..graph_words import Given, Inputs
from ..output_hash import digest, hash_of_output
from ..readiness import came_of
from ..strict import JsonObject, JsonValue
from .artifact_inputs import value_of
from .completing import output_hash
from .transaction import Transaction


class InputDamaged(NodeError):
    """What another task left has not the hash that it came with; the attempt did not begin."""

    code = "input_damaged"
    hint = "retry the task that made it, or resolve this one"


_WANTED = "SELECT ref, kind, source FROM input WHERE uid = ? ORDER BY ref"
_HERE = """
SELECT state, output, artifacts, failure_reason, cost_usd FROM task
 WHERE uid = ? AND state <> 'HELD'
"""
_TOLD = (
    "SELECT state, output, artifacts, because, cost_usd, node, sha256 FROM told WHERE uid = ?"
)


def inputs(tx: Transaction, query: Inputs) -> Given | None:
    """The value of every reference of the task, and the folder that was kept for it."""
    if not tx.live.graphs:
        return None
    context: JsonObject = {}
    for ref, kind, source in tx.db.execute(_WANTED, (query.uid,)).fetchall():
        if kind == "artifact":
            context[ref] = value_of(tx, ref)
        elif source is not None:
            context[ref] = _value(tx, kind, source)
    row = tx.db.execute("SELECT n FROM workspace WHERE uid = ?", (query.uid,)).fetchone()
    return None if not context and row is None else Given(context, None if row is None else row[0])


def _value(tx: Transaction, kind: str, source: str) -> JsonValue:
    row = tx.db.execute(_HERE, (source,)).fetchone()
    if row is not None and came_of(row[0], row[3]) is not None:
        sha256 = output_hash(tx, source)
        if sha256 is not None:
            _check(source, row[1], sha256)
        return _as(kind, (*row, tx.node.name))
    told = tx.db.execute(_TOLD, (source,)).fetchone()
    if told is None:
        return None
    *said, sha256 = told
    _check(source, said[1], sha256)
    return _as(kind, tuple(said))


def _check(source: str, output: str | None, sha256: str | None) -> None:
    """What was changed since it was left, or told, is given to nobody; nor is nothing in the place
    of an output of which the hash alone is known.
    """
    if output is None:
        if sha256 is not None:
            raise InputDamaged(f"{source}: its output was damaged where it lay, and is gone")
        return
    if digest(output) == sha256:
        return
    try:
        same = hash_of_output(json.loads(output)) == sha256  # it may be written in another way
    except ValueError:
        same = False
    if not same:
        raise InputDamaged(f"{source}: its output is not what was told of it")


_Said = tuple[str, str | None, str | None, str | None, str | None, str]


def _as(kind: str, said: _Said) -> JsonValue:
    state, output, artifacts, because, cost_usd, node = said
    value: JsonValue = None if output is None else json.loads(output)
    if kind == "output":
        return value
    return {
        "state": state, "output": value, "artifacts": json.loads(artifacts or "[]"),
        "because": because, "cost_usd": cost_usd, "node": node,
    }  # fmt: skip
