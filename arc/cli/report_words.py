"""The command `arc report`: what happened in the fleet, in one file to keep or to send."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from agent_node.clock import iso
from agent_node.strict import JsonObject
from agent_node.text import size
from arc.errors import ArcError, WrongUse
from arc.operations import Told

from .answering import say
from .around import Around, here
from .options import DryRun, seconds

STATUS_S = 30.0
SPAN_MAX_S = 31 * 86_400.0


def register(app: typer.Typer) -> None:
    """Add it to the command line."""
    app.command()(report)


def report(
    html: Annotated[bool, typer.Option("--html", help="As one HTML file, the only form.")] = False,
    since: Annotated[str, typer.Option("--since", help="How far back, as 24h.")] = "24h",
    out: Annotated[
        str, typer.Option("--out", "-o", help="Into this file; else on stdout.", metavar="FILE")
    ] = "",
    dry_run: DryRun = False,
) -> int:
    """What happened, in one HTML file that needs nothing else: no script, no network.

    The hub need not run. What cannot be asked now is named, and told as it is remembered.
    """
    from arc.config import read_fleet
    from arc.door import fleet_of
    from arc.history import History
    from arc.report.gathering import gathered
    from arc.report.page import page_of

    if not html:
        raise WrongUse("report: in which form? --html is the only one",
                       hint="arc report --html --out FILE")  # fmt: skip
    around = here()
    fleet = read_fleet(fleet_of(around.fleet, around.environ))
    back_s = seconds(since, "--since")
    if not 0 < back_s <= SPAN_MAX_S:
        raise WrongUse("--since: up to 31d")
    until = around.clock.now()
    now = _status(around)
    (trouble,) = now.warnings or ("",)
    text = page_of(gathered(History(fleet.state), fleet.fleet, until - timedelta(seconds=back_s),
                            until, status=now.data or None, trouble=trouble))  # fmt: skip
    if out and not dry_run:
        _write(Path(out), text)
    data: JsonObject = {"since": iso(until - timedelta(seconds=back_s)), "until": iso(until),
                        "file": out or None, "bytes": len(text.encode()),
                        "html": None if out or dry_run else text, "dry_run": dry_run}  # fmt: skip
    warnings = (f"how the fleet is now is not known: {trouble}",) if trouble else ()
    told = Told(data, exit=now.exit, warnings=warnings, partial=now.partial)
    return say("report", told, lambda data, _: _said(data, text), around)


def _said(data: JsonObject, text: str) -> str:
    if not data.get("file") and not data.get("dry_run"):
        return text
    would = "would write " if data.get("dry_run") else ""
    return f"{would}{data.get('file') or 'on stdout'}: {size(len(text.encode()))}"


def _status(around: Around) -> Told:
    """How the fleet is now; where nobody can say, no data and a warning why."""
    try:
        told = around.ask(around, "status", {}, timeout_s=STATUS_S)
        return Told(told.data, told.exit, told.partial)
    except ArcError as error:
        return Told({}, 3, warnings=(str(error),))


def _write(path: Path, text: str) -> None:
    """Whole or not at all, for this user alone: it holds what tasks are called."""
    if path.is_dir():
        raise WrongUse(f"--out: {path}: that is a folder; nothing was written there")
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(fresh, path)
    except OSError as error:
        raise WrongUse(f"--out: {path}: {error.strerror}; nothing was written there") from error
