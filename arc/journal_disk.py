"""Tells a disk that failed under the journal from one that is full, and passes on that it did."""

from __future__ import annotations

import errno
import os
import shlex
import stat
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from agent_node.clock import iso, parse_iso
from agent_node.plain_files import open_plain
from agent_node.strict import JsonValue
from agent_node.text import safe_text

from .errors import ArcError

if TYPE_CHECKING:
    from .hub import Hub
    from .journal import Journal, Rows

NAME = "journal.failed"  # beside the journal, until the next who opens that has written it down
BECAUSE_MAX = 500
TOLD_FOR = timedelta(days=1)


@dataclass(frozen=True)
class DiskFailed:
    """What the log says of a disk that failed under the hub's journal or its own queue."""

    at: datetime
    event: str
    because: str


def is_failed(error: Exception) -> bool:
    """Whether a read, a write or a sync failed, after which a second try may lie; a disk that is
    full says so before it changes anything.
    """
    if isinstance(error, OSError):
        return error.errno == errno.EIO
    return (getattr(error, "sqlite_errorname", "") or "").startswith("SQLITE_IOERR")


def leave_word(journal: Path, because: str, *, at: datetime) -> None:
    """For whoever opens the journal next, which could not take it; as far as the disk lets us."""
    with suppress(OSError):
        # Emptied only once it is known for ours: another file may have this as its second name.
        left = open_plain(journal.with_name(NAME), os.O_WRONLY | os.O_CREAT)
        with open(left, "w", encoding="utf-8") as file:
            file.truncate(0)
            file.write(f"{iso(at)} {because}\n")


def write_down(journal: Journal) -> None:
    """What was left there becomes a line of the log; it stays where the journal is full, say. Of
    too long a text the beginning is told; what is no plain file stays, see `word_in_the_way`.
    """
    place = journal.path.with_name(NAME)
    with suppress(OSError, ArcError):
        with open(open_plain(place, os.O_RDONLY), "rb") as file:
            said = file.read(4 * BECAUSE_MAX).decode("utf-8", "replace").strip()
        journal.runs.log("journal_disk_broken", fields={"because": safe_text(said, BECAUSE_MAX)})
        place.unlink(missing_ok=True)


def last_failure(rows: Rows, now: datetime) -> DiskFailed | None:
    """The last line of a day that says so; None: there is none."""
    found = rows.read(
        "SELECT at, event, json_extract(fields, '$.because') AS because FROM line"
        " WHERE at >= ? AND event IN ('journal_disk_broken', 'inbox_disk_broken')"
        " ORDER BY id DESC LIMIT 1", [iso(now - TOLD_FOR)])  # fmt: skip
    return next((DiskFailed(parse_iso(str(one["at"])), str(one["event"]), str(one["because"]))
                 for one in found), None)  # fmt: skip


def disk_failed_lately(hub: Hub) -> list[JsonValue]:
    """A line for a day after a disk failed under the hub's own files: by then it runs again, and
    nothing else would tell a person that the disk should be looked at.
    """
    last = hub.journal.disk_failed
    if last is None or last.at < hub.clock.now() - TOLD_FOR:
        return []
    return [{"node": hub.settings.hub, "try": f"arc log --since 1d --event {last.event}; dmesg",
             "text": f"its disk failed, and it was started again since: {last.because}"}]


def word_in_the_way(hub: Hub) -> list[JsonValue]:
    """A line while something else stands where the word on a failed disk is left: it is neither
    read nor written nor taken away, so that until a person does, each failure would go untold.
    """
    place = hub.journal.path.with_name(NAME)
    try:
        found = os.lstat(place)
    except OSError:
        return []
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        return []
    moved = shlex.join(["mv", f"{place}", f"{place}.strange"])
    return [{"node": hub.settings.hub, "try": moved,
             "text": f"{NAME} beside its journal is no plain file with one name: a disk that fails"
                     " under the journal would go untold"}]  # fmt: skip
