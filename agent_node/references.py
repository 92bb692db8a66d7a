"""Reads what a task wants to be given of other tasks: outputs, outcomes, artifacts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .errors import BadInput
from .strict import JsonValue, kind_of

REFS_MAX = 64  # outputs are at most 64 KiB each: 4 MiB of context
Kind = Literal["output", "outcome", "artifact"]
_ULID = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
_of_task = re.compile(rf"task:({_ULID}):(?:(output)|(outcome)|(artifact):([^\x00-\x1f]{{1,200}}))")
_of_bytes = re.compile(r"artifact:([0-9a-f]{64})")
FORMS = "task:UID:output, task:UID:outcome, task:UID:artifact:NAME or artifact:SHA256"


@dataclass(frozen=True)
class Reference:
    """One such wish. `of` is the task it is about; None: the bytes are named by their hash."""

    text: str
    kind: Kind
    of: str | None = None
    name: str | None = None


def references_of(entries: Iterable[JsonValue], where: str = "context_refs") -> list[Reference]:
    """Every reference once, in order; `BadInput` names the one that cannot be read."""
    found: dict[str, Reference] = {}
    for place, entry in enumerate(entries):
        said = entry.get("ref") if isinstance(entry, dict) and entry.keys() == {"ref"} else entry
        if not isinstance(said, str):
            raise BadInput(f"a {kind_of(entry)} where {FORMS} belongs", f"{where}[{place}]")
        reference = read_reference(said)
        if reference is None:
            raise BadInput(f"should be {FORMS}", f"{where}[{place}]")
        found[said] = reference
    if len(found) > REFS_MAX:
        raise BadInput(f"{len(found)} references; at most {REFS_MAX} are taken", where)
    return list(found.values())


def read_reference(text: str) -> Reference | None:
    """The reference that this text is; None where it is none."""
    if named := _of_task.fullmatch(text):
        uid, output, outcome, _, name = named.groups()
        kind: Kind = "output" if output else "outcome" if outcome else "artifact"
        return Reference(text, kind, uid, name)
    if named := _of_bytes.fullmatch(text):
        return Reference(text, "artifact", None, named[1])
    return None
