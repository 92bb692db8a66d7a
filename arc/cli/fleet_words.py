"""The commands for the fleet as a whole: init, up, pause, resume, log, doctor, explain."""
# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from agent_node.strict import JsonObject, JsonValue
from arc.operations import Told
from arc.text.columns import inside, objects

from .answering import ANSWER_S, say, tell
from .around import here
from .options import DryRun, Reason, moment, only_said

FOLLOW_S = 1.0
FOLLOW_MAX = 5_000  # lines of one look at what came since: `--limit` is about what was there before
NODE_PROGRAM = "/path/to/agent-node"


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (init, up, pause, resume, log, doctor, explain):
        app.command()(command)


def init(
    folder: Annotated[str, typer.Argument(metavar="[DIR]")] = ".", dry_run: DryRun = False
) -> int:
    """A fleet.yaml with everything explained, a key pair, and the hub's own folder."""
    from arc.config import LET_GO, VARIABLE, led_elsewhere
    from arc.setup import init as make
    from arc.text.config import render_init

    made = make(Path(folder), dry_run=dry_run)
    listed: list[JsonValue] = [*made.made]
    data: JsonObject = {"folder": str(made.folder), "file": str(made.file),
                        "state": str(made.state), "made": listed, "public_key": made.public_key,
                        "authorized": _authorized(made.public_key),
                        "fingerprint": made.fingerprint, "dry_run": made.dry_run}  # fmt: skip
    led = led_elsewhere(Path.cwd(), here().environ, made.file)
    warnings = () if led is None else (
        f"${VARIABLE} leads every command to {led}, and not to {made.file}; {LET_GO}",)
    return say("init", Told(data, warnings=warnings), render_init, here())


def _authorized(public: str) -> str:
    from arc.keys import authorized_line

    # The path on this machine is the likeliest one there too; a login shell's PATH is no promise.
    program = shutil.which("agent-node", path=here().environ.get("PATH", "")) or NODE_PROGRAM
    return authorized_line(public, command=f"{program} serve --stdio") if public else ""


def up(
    once: Annotated[bool, typer.Option("--once", help="Each sensor once, then end.")] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="From another hub, whose word then counts no more.")
    ] = False,
    web: Annotated[bool, typer.Option("--web", help="With the page, as a child process.")] = False,
    dry_run: DryRun = False,
) -> int:
    """Run the hub: its sensors on time, its links kept open. Ctrl-C ends it gracefully.

    `--dry-run` starts no hub: it shows what the first cycle would do now, as `arc plan` does.
    """
    from . import daily
    from .hub_words import check_alone, run_the_hub

    if dry_run:
        check_alone(here())
        return daily.plan()

    return run_the_hub(here(), once=once, take_over=take_over, web=web)


def _word(verb: str, reason: str, *, dry_run: bool) -> int:
    from arc.text.nodes import render_fleet

    args = only_said({"reason": reason, "dry_run": dry_run})
    return tell(verb, f"fleet.{verb}", args, render_fleet)


def pause(reason: Reason = "", dry_run: DryRun = False) -> int:
    """The whole fleet: nothing new starts or moves; what runs goes on."""
    return _word("pause", reason, dry_run=dry_run)


def resume(reason: Reason = "", dry_run: DryRun = False) -> int:
    """The whole fleet works and moves again."""
    return _word("resume", reason, dry_run=dry_run)


def log(
    since: Annotated[str, typer.Option("--since", help="A time, or 1h.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="So many at most.")] = 200,
    sensor: Annotated[str, typer.Option("--sensor", help="Of this sensor alone.")] = "",
    event: Annotated[str, typer.Option("--event", help="Only such lines: node_paused.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Also runs that were skipped.")] = False,
) -> int:
    """What happened, oldest first: the newest lines, or all since a moment."""
    from arc.text.sensors import render_log

    around = here()
    start = moment(since, "--since", past=True) if since else ""
    wanted = only_said({"sensor": sensor, "event": event, "all": everything, "limit": limit})
    args: JsonObject = {**wanted, **only_said({"since": start})}
    if not follow:
        return tell("log", "log", args, render_log)
    for told in _following(args, wanted):
        if told.data.get("more"):
            around.warn("there were older lines: arc log --limit N, --since TIME")
        for one in objects(told.data, "lines"):  # streams: one object a line
            say("log", Told({"lines": [one]}), render_log, around)
    return 0


def _following(args: JsonObject, wanted: JsonObject) -> Iterator[Told]:
    """What is there, then what comes, until somebody interrupts."""
    around = here()
    while True:
        told = around.ask(around, "log", args, timeout_s=ANSWER_S)
        yield told
        args = {**inside(told.data, "next"), **wanted, "limit": FOLLOW_MAX}
        time.sleep(FOLLOW_S)


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Mend what is safe to mend.")] = False,
    node: Annotated[str, typer.Option("--node", help="Only this node.")] = "",
    dry_run: DryRun = False,
) -> int:
    """Everything that could go wrong: this machine, the hub's folder, each node. Exit 6: findings.

    `--fix` takes others' rights from the hub's own files and writes the schema for editors.
    """
    from arc.text.config import render_doctor

    if dry_run:
        here().talk("dry run: the hints say what --fix would mend; nothing was changed\n")
    args = only_said({"fix": fix and not dry_run, "node": node})
    return tell("doctor", "doctor", args, render_doctor)


def explain(
    word: Annotated[str, typer.Argument(metavar="[CODE|RULE|KEY]")] = "",
) -> int:
    """What an error code, a rule or a key of fleet.yaml means; without a word: all there are."""
    from arc.explaining import all_pages
    from arc.explaining import explain as page_of
    from arc.text.config import render_page

    if word:
        page = page_of(word)
        data: JsonObject = {"word": page.word, "kind": page.kind, "text": page.text}
    else:
        pages: list[JsonValue] = [{"word": page.word, "kind": page.kind}
                                  for page in all_pages().values()]  # fmt: skip
        data = {"pages": pages}
    return say("explain", Told(data), render_page, here())
