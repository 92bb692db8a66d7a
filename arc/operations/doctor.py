"""Looks for everything that could go wrong: the hub's folder, this machine, and every node."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_node import __version__
from agent_node.clock import iso
from agent_node.plain_files import read_plain
from agent_node.reports import StatusReport
from agent_node.requests import Fields
from agent_node.strict import JsonObject
from agent_node.text import counted, size
from arc.asking import read_report
from arc.decisions.domains import Role
from arc.decisions.health import TAKE_OVER
from arc.decisions.limits import HealthLimits
from arc.decisions.sounding import Sounds, signs_of
from arc.displaced import displaced_by
from arc.errors import ArcError, NodeCannotServe
from arc.journal_disk import disk_failed_lately, word_in_the_way
from arc.links import Link, Met
from arc.replaced import remember_met, replaced_now
from arc.secret_files import BadSecret, read_secret

from . import Told
from .config_seen import skills_said
from .everybody import check_node
from .known_subjects import look_through
from .needs import what_to_try

if TYPE_CHECKING:
    from arc.hub import Hub

FINDINGS = 6
SQLITE_MENDED = (3, 51, 3)  # before it, several writers on a log could damage a database
INBOX, HOME_MISSING = "inbox", "home_missing"
# Of a node that was met before: a home that is made anew has none of the old one's tasks.
BRING_BACK = ("its home was there before: is its disk mounted on {0}? Bring the old home back; one "
              "that is made anew has none of its tasks")  # fmt: skip
SCHEMA_MAX = 1024 * 1024


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: ok, warn or bad, and what would mend it."""

    what: str
    state: str
    text: str
    hint: str = ""
    mended: bool = False

    def as_json(self) -> JsonObject:
        """The same for machines."""
        return {"what": self.what, "state": self.state, "text": self.text, "hint": self.hint,
                "mended": self.mended}  # fmt: skip


@dataclass(frozen=True)
class Looked:
    """What meeting one node showed; without a report nothing is known of it."""

    node: str
    checks: list[Check]
    report: StatusReport | None = None
    met: Met | None = None


async def doctor(hub: Hub, args: JsonObject) -> Told:
    """Every check with its outcome; exit 6 when one of them found something.

    `fix` mends what is safe to mend: modes of the hub's own files, and the schema for editors.
    """
    asked = Fields(args)
    only = asked.maybe_node("node")
    if only is not None:
        check_node(hub, only)
    names = [only] if only else [name for name in sorted(hub.links) if name != INBOX]
    links = [hub.links[name] for name in names if name in hub.links]
    roles = hub.roles()
    met = hub.journal.nodes.met()
    looked = await asyncio.gather(*(
        _node(link, hub.settings.health, roles.get(link.name, Role()), hub.lease.term,
              known=link.name in met)
        for link in links
    ))  # fmt: skip
    checks: list[Check] = []
    if not only:
        said = {one.node: one.report for one in looked if one.report is not None}
        checks += [*_folder(hub, fix=asked.flag("fix")), *_machine(hub),
                   *await _settings(hub, said)]  # fmt: skip
    remember_met(hub.journal, [one.met for one in looked if one.met is not None])
    checks += [one for found in looked for one in found.checks]
    checks += _standing(hub, only)
    suspended = hub.journal.words.suspended()
    checks += [Check(name, "ok", f"suspended by {word.by}: {word.reason}; not asked")
               for name, word in suspended.items() if not only or name == only]  # fmt: skip
    found = [one for one in checks if one.state != "ok" and not one.mended]
    return Told({"checks": [one.as_json() for one in checks], "findings": len(found)},
                exit=FINDINGS if found else 0)  # fmt: skip


def _standing(hub: Hub, only: str | None) -> list[Check]:
    """What a person should know of where all answers well now: whoever is another queue than
    before, and a disk that failed under the hub's own files, or could do so untold.
    """
    own = () if only else (*disk_failed_lately(hub), *word_in_the_way(hub))
    known = [one for one in (*replaced_now(hub), *own)
             if isinstance(one, dict) and only in (None, one["node"])]  # fmt: skip
    return [Check(str(one["node"]), "bad", str(one["text"]), str(one["try"])) for one in known]


def _folder(hub: Hub, *, fix: bool) -> list[Check]:
    state = hub.settings.state
    holder = f"held by the hub, process {os.getpid()}"
    if hub.schedule is None:
        holder = "no hub runs; held for this command"
    checks = [Check("lease", "ok", f"term {hub.lease.term}, {holder}")]
    wrong = [place for path, _, files in os.walk(state)
             for place in (path, *(os.path.join(path, name) for name in files))
             if _others_may_read(place, fix=fix)]  # fmt: skip
    if wrong:
        shown = ", ".join(os.path.relpath(place, state) for place in wrong[:5])
        hint = "" if fix else "arc doctor --fix takes the others' rights away"
        many = counted(len(wrong), "file")
        checks.append(Check("state", "bad", f"others may read {many}: {shown}", hint, mended=fix))
    else:
        checks.append(Check("state", "ok", f"{state}: only this user may read it"))
    last = next(iter(hub.journal.runs.last("fleet-health")), None)
    ran = f"the last look at the nodes' health was at {iso(last.at)}" if last else "no run yet"
    checks.append(Check("journal", "ok", f"sound; {ran}"))  # it was checked when it was opened
    checks.append(_schema(hub, fix=fix))
    return checks


def _others_may_read(place: str, *, fix: bool) -> bool:
    """Whether they could, before `fix`. What is gone by now, such as a file on its way, is none."""
    with suppress(FileNotFoundError):
        found = os.lstat(place)
        if not stat.S_ISLNK(found.st_mode) and found.st_mode & 0o077:
            if fix:
                os.chmod(place, stat.S_IMODE(found.st_mode) & 0o700)
            return True
    return False


def _schema(hub: Hub, *, fix: bool) -> Check:
    from arc.setup import render_schema

    path = hub.settings.state / "fleet.schema.json"
    wanted = render_schema()
    if _said(path) == wanted.encode():
        return Check("schema", "ok", f"{path.name} is up to date")
    if fix:
        path.unlink(missing_ok=True)  # a link in its place leads to a file that is not ours
        with open(path, "x", encoding="utf-8") as file:
            file.write(wanted)
    return Check("schema", "warn", f"{path.name} is missing or of another version; editors use it",
                 "" if fix else "arc doctor --fix writes it", mended=fix)  # fmt: skip


def _said(path: Path) -> bytes | None:
    """What this file of ours says; None: it is not there, or is none of ours."""
    try:
        return read_plain(path, SCHEMA_MAX)
    except OSError:
        return None


def _machine(hub: Hub) -> list[Check]:
    old = sqlite3.sqlite_version_info < SQLITE_MENDED
    safe = "; older than 3.51.3, which is safe here: one process writes" if old else ""
    checks = [Check("sqlite", "ok", sqlite3.sqlite_version + safe)]
    arc = shutil.which("arc")
    if arc and "arc-fleet" not in _head_of(arc) and "arc.cli" not in _head_of(arc):
        checks.append(Check("command", "warn", f"`arc` is {arc}, another program",
                            "type arcfleet, or put ours before it on PATH"))  # fmt: skip
    else:
        checks.append(Check("command", "ok", f"{arc}, by the hub's PATH" if arc else
                            "`arc` is not on the hub's PATH; `python -m arc` works there"))
    return checks


def _head_of(path: str) -> str:
    """The beginning of a program, to tell ours from Debian's archiver of the same name."""
    try:
        with open(path, "rb") as file:
            return file.read(500).decode("utf-8", "replace")
    except OSError:
        return ""


async def _settings(hub: Hub, said: Mapping[str, StatusReport]) -> list[Check]:
    """What the file says, by itself and against what the nodes said just now."""
    from arc.config_check import Seen, check_fleet, unheard

    signs, unread = signs_of(hub.settings.domains), tuple[str, ...]()
    sounds = Sounds()
    if any(signs.values()):
        sounds, unread = await look_through(hub, signs)
    seen = Seen({name: skills_said(report) for name, report in said.items()}, sounds)
    found = check_fleet(hub.settings, seen)
    rest, silent = [*_secrets(hub)], unheard(hub.settings, seen)
    if unread:
        rest.append(Check("signs", "ok", f"not read to the end: {', '.join(unread)}: no sign of a "
                          "domain was held against the tasks there are"))  # fmt: skip
    if silent:
        names = ", ".join(silent)
        rest.append(Check("skills", "ok", f"not known of {names}: domains.skills was not held "
                          "against what nodes report"))  # fmt: skip
    if not found:
        many = counted(len(hub.settings.nodes), "node")
        return [Check("fleet.yaml", "ok", f"{many}, no findings"), *rest]
    return [*(Check("fleet.yaml", "warn", f"{one.where}: {one.text}", one.hint) for one in found),
            *rest]  # fmt: skip


def _secrets(hub: Hub) -> Iterator[Check]:
    """A secret is read when a message comes or goes; that is late to learn that it cannot be."""
    for one in hub.settings.webhooks:
        try:
            read_secret(one.secret_file)
        except BadSecret as error:
            hint = error.hint or "arc explain ARC-SECRET"
            yield Check(f"webhook {one.name}", "bad", str(error), hint)


async def _node(
    link: Link, limits: HealthLimits, role: Role, term: int, *, known: bool
) -> Looked:
    """What meeting one node shows; whatever goes wrong is about this node alone."""
    name, before = link.name, link.met
    try:
        met = await link.meet()
        report = read_report(name, met.incarnation, await link.ask("status"))
    except ArcError as error:
        said = str(error).removeprefix(f"{name}: ")
        hint = error.hint or f"arc explain {error.code}"
        if known and isinstance(error, NodeCannotServe) and error.told == HOME_MISSING:
            hint = BRING_BACK.format(name)
        anew = link.met if link.met != before else None  # an older session says nothing of now
        return Looked(name, [Check(name, "bad", said, hint)], met=anew)
    checks = [Check(name, "ok", f"answers; agent-node {met.version}, wire {met.wire}, "
                    f"clock {met.clock_off_s:+.1f} s")]  # fmt: skip
    if met.version != __version__:
        checks.append(Check(name, "warn", f"runs {met.version}, the hub {__version__}"))
    other = displaced_by(report, link.met, term)
    if other:
        checks.append(Check(name, "bad", f"obeys another hub: {other}", TAKE_OVER))
    noise = str(getattr(link, "noise", "") or "")
    if noise:
        checks.append(Check(name, "warn", f"its login shell prints before our first line: {noise}",
                            "harmless; quiet its rc files"))  # fmt: skip
    return Looked(name, [*checks, *_well(name, met, report, limits, role)], report, met)


def _well(
    name: str, met: Met, report: StatusReport, limits: HealthLimits, role: Role
) -> Iterator[Check]:
    """What a node that answers may still need."""
    if report.dispatcher != "running":
        yield Check(name, "bad", "its daemon does not run, so nothing is started there",
                    role.how_to_start(name))  # fmt: skip
    if abs(met.clock_off_s) > limits.clock_off_s:
        yield Check(name, "warn", f"its clock is {met.clock_off_s:+.0f} s off the hub's",
                    f"on {name}: let something keep its time, such as chrony")  # fmt: skip
    free, total = report.disk_free_bytes, report.disk_total_bytes
    if free is not None and total and 1 - free / total > limits.disk_over:
        yield Check(name, "warn", f"its disk is {1 - free / total:.0%} full; {size(free)} free",
                    f"on {name}: make room where the node's home lies")  # fmt: skip
    yield from (Check(name, "warn", f"needs you: {text}", what_to_try(role, name, text))
                for text in report.needs_you)  # fmt: skip
