"""Knows which files tasks here are to be given, which of them are here, and who left them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from ..artifact_words import ArtifactsMissing, ArtifactsNeeded, KeptPlace, Missing
from ..artifacts import is_sha256, size_of
from ..readiness import came_of
from ..references import Reference, read_reference
from ..strict import JsonObject, JsonValue
from .transaction import Transaction

COUNTED_MAX = 1000


@dataclass(frozen=True)
class Found:
    """What a reference stands for: a file, or why there is none and never will be."""

    name: str
    sha256: str | None = None
    size: int | None = None
    because: str | None = None


_LEFT_HERE = "SELECT state, failure_reason, artifacts FROM task WHERE uid = ? AND state <> 'HELD'"
_LEFT_TOLD = "SELECT artifacts FROM told WHERE uid = ? AND artifacts IS NOT NULL"


def resolve(tx: Transaction, reference: Reference) -> Found | None:
    """The file that is meant; None while nobody here knows how its task ended, or what it left."""
    if reference.kind != "artifact":
        return None
    if reference.of is None:
        sha256 = reference.text.partition(":")[2]
        return Found(sha256, sha256, _size(tx, sha256)) if is_sha256(sha256) else None
    left = _left(tx, reference.of)
    return None if left is None else _chosen(left, reference.of, str(reference.name))


def _left(tx: Transaction, uid: str) -> list[JsonValue] | None:
    """What the task left, as it was recorded; None: it has not ended, or that was not told."""
    row = tx.db.execute(_LEFT_HERE, (uid,)).fetchone()
    if row is not None and came_of(row[0], row[1]) is not None:
        return _listed(row[2])
    told = tx.db.execute(_LEFT_TOLD, (uid,)).fetchone()
    return None if told is None else _listed(told[0])


def _listed(text: str) -> list[JsonValue]:
    found = json.loads(text)
    return found if isinstance(found, list) else []


def _chosen(left: list[JsonValue], uid: str, name: str) -> Found:
    because = f"{uid} left no artifact of this name"
    for entry in left:
        if not isinstance(entry, dict) or entry.get("name") != name:
            continue
        sha256, size = entry.get("sha256"), entry.get("size")
        if isinstance(sha256, str) and is_sha256(sha256):
            return Found(name, sha256, size if isinstance(size, int) else None)
        because = str(entry.get("because") or because)
    return Found(name, because=because)


def _size(tx: Transaction, sha256: str) -> int | None:
    return None if tx.live.artifacts_dir is None else size_of(tx.live.artifacts_dir, sha256)


def is_here(tx: Transaction, reference: Reference) -> bool:
    """Whether a program could be given it now; that there is none can be given, too."""
    found = resolve(tx, reference)
    return found is not None and _has_come(tx, found)


def _has_come(tx: Transaction, found: Found) -> bool:
    return found.sha256 is None or _size(tx, found.sha256) is not None


def value_of(tx: Transaction, ref: str) -> JsonValue:
    """What a program is told of it: {name, sha256, size}, or {name, because}."""
    reference = read_reference(ref)
    found = resolve(tx, reference) if reference else None
    if found is None:
        return None
    if found.sha256 is None:
        return {"name": found.name, "because": found.because}
    said: JsonObject = {"name": found.name, "sha256": found.sha256}
    return {**said, "size": _size(tx, found.sha256)}


_OF_SOURCE = "SELECT uid, ref FROM input WHERE source = ? AND here = 0 AND kind = 'artifact'"
_HERE = "UPDATE input SET here = ? WHERE uid = ? AND ref = ?"


def arrive(tx: Transaction, source: str) -> set[str]:
    """This task has ended: what of its files is here already, or never will be, counts as here."""
    rows = tx.db.execute(_OF_SOURCE, (source,)).fetchall()
    return _mark(tx, [row for row in rows if _settled(tx, row[1])], here=True)


def _settled(tx: Transaction, ref: str) -> bool:
    reference = read_reference(ref)
    return reference is not None and is_here(tx, reference)


_OPEN = """
SELECT i.uid, i.ref FROM input i JOIN task t ON t.uid = i.uid
 WHERE i.here = ? AND i.kind = 'artifact' AND t.completed_at IS NULL
"""


def mark(tx: Transaction, sha256: str, *, here: bool) -> set[str]:
    """Note of every task that waits for this file whether it is here; their uids."""
    rows = tx.db.execute(_OPEN, (int(not here),)).fetchall()
    return _mark(tx, [row for row in rows if _means(tx, row[1], sha256)], here=here)


def _means(tx: Transaction, ref: str, sha256: str) -> bool:
    reference = read_reference(ref)
    found = resolve(tx, reference) if reference else None
    return found is not None and found.sha256 == sha256


def _mark(tx: Transaction, rows: Iterable[tuple[str, str]], *, here: bool) -> set[str]:
    marked = [(int(here), uid, ref) for uid, ref in rows]
    tx.db.executemany(_HERE, marked)
    return {uid for _, uid, _ in marked}


_MISSING = """
SELECT i.uid, i.ref, i.source, o.node FROM input i JOIN task t ON t.uid = i.uid
  LEFT JOIN told o ON o.uid = i.source
 WHERE i.here = 0 AND i.kind = 'artifact' AND t.completed_at IS NULL
   AND (:uid IS NULL OR i.uid = :uid)
 ORDER BY i.uid, i.ref
"""


def missing(tx: Transaction, query: ArtifactsMissing) -> tuple[Missing, ...]:
    """Those whose hash is known; `awaits` names the tasks of which nobody knows what they left."""
    found: list[Missing] = []
    if not tx.live.graphs:
        return ()
    for uid, ref, source, node in tx.db.execute(_MISSING, {"uid": query.uid}).fetchall():
        reference = read_reference(ref)
        one = resolve(tx, reference) if reference else None
        if one is None or one.sha256 is None or query.sha256 not in (None, one.sha256):
            continue
        found.append(Missing(one.sha256, uid, ref, one.size, source, node))
        if len(found) == query.limit:
            break
    return tuple(found)


def missing_count(tx: Transaction) -> int:
    """How many that are, counted no further than anybody needs to know."""
    return len(missing(tx, ArtifactsMissing(COUNTED_MAX)))


_KEPT = """
SELECT EXISTS (SELECT 1 FROM kept k JOIN task t ON t.uid = k.uid WHERE k.sha256 = ?)
"""
_WANTED = """
SELECT i.ref FROM input i JOIN task t ON t.uid = i.uid
 WHERE i.kind = 'artifact' AND t.completed_at IS NULL
"""


def needed(tx: Transaction, query: ArtifactsNeeded) -> frozenset[str]:
    """Those that a task here left and is still known for, or has yet to be given."""
    references = (read_reference(ref) for (ref,) in tx.db.execute(_WANTED).fetchall())
    means = (resolve(tx, reference) for reference in references if reference is not None)
    wanted = {found.sha256 for found in means if found is not None}
    return frozenset(
        sha256 for sha256 in query.sha256s
        if sha256 in wanted or tx.db.execute(_KEPT, (sha256,)).fetchone()[0]
    )  # fmt: skip


def note_kept(tx: Transaction, uid: str, artifacts: list[JsonValue]) -> None:
    """This task left these files: they stay on the shelf while it is known."""
    rows = [(entry["sha256"], uid) for entry in artifacts
            if isinstance(entry, dict) and isinstance(entry.get("sha256"), str)]  # fmt: skip
    tx.db.executemany("INSERT OR IGNORE INTO kept (sha256, uid) VALUES (?, ?)", rows)


def forget_kept(tx: Transaction) -> None:
    """What tasks left that are known no more."""
    tx.db.execute("DELETE FROM kept WHERE uid NOT IN (SELECT uid FROM task)")


def kept_place(tx: Transaction, query: KeptPlace) -> int | None:
    """Whose folder was kept."""
    row = tx.db.execute("SELECT n FROM workspace WHERE uid = ?", (query.uid,)).fetchone()
    return None if row is None else int(row[0])
