"""Runs one command from its words to its exit code, whatever goes wrong on the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agent_node.envelope import Exit, Trouble, failure
from agent_node.errors import NodeError
from agent_node.home import private_umask
from agent_node.text import safe_text
from agent_node.wreck import end_with
from arc.errors import ArcError, WrongUse, machine_failed

from .around import Around, ReaderLeft, here, surrounded_by
from .asking import ask_the_hub
from .front import ASKS_FOR_HELP, is_asked_for
from .meant import with_help, with_meant

LISTED = (  # groups that are their list
    "tasks", "dag", "nodes", "sensors", "skills", "doubts", "dead", "schedules", "notify",
    "webhooks",
)  # fmt: skip
# What one command calls otherwise than those beside it.
OTHERWISE = {
    (f"arc tasks {verb}", "--node"): "; did you mean --to?" for verb in ("add", "import", "move")
}


class WallClock:
    """The machine's wall clock; commands only stamp their answers with it."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class Fault(ArcError):
    """A mistake of ours, not of whoever typed the command."""

    code = "ARC-FAULT"
    hint = "this is a fault in arc; ARC_TRACEBACK=1 shows where, for a report"


def run_here(words: Sequence[str]) -> int:
    """Run the command with this process's own streams and environment."""
    private_umask()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    around = Around(
        environ=os.environ,
        stdin=sys.stdin.buffer,
        stdout=sys.stdout,
        stderr=sys.stderr,
        clock=WallClock(),
        ask=ask_the_hub,
    )
    code = run_command(words, around)
    if code in (Exit.CLOSED_PIPE, Exit.FAILED):
        _forget_output()
    return end_with(code)


def _forget_output() -> None:
    """Keep the interpreter's last flush from complaining about what was already reported."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run_command(words: Sequence[str], around: Around) -> int:
    """Run the command in these surroundings; every way to end has its exit code."""
    try:
        return _reported(list(words), around)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except ReaderLeft:
        return Exit.CLOSED_PIPE
    except ArcError as error:  # the error itself could not be written to stdout
        around.talk(f"error[{safe_text(error.code, 64)}]: {safe_text(str(error))}\n")
        return error.exit_code


def _reported(words: list[str], around: Around) -> int:
    """Run, and say how it went on the stream and in the form that was asked for."""
    try:
        words, around = _without_settings(words, around)
        words = _with_list(with_help(words, (*LISTED, "config")))
        with surrounded_by(around):
            return _invoked(words)
    except (ReaderLeft, KeyboardInterrupt):
        raise
    except ArcError as error:
        return _say_trouble(error, words, around)
    except NodeError as error:
        return _say_trouble(_as_ours(error), words, around)
    except Exception as error:  # noqa: BLE001 - the top: one line instead of a traceback
        trouble = machine_failed(error) or _fault(error, words, around)
        return _say_trouble(trouble, words, around)


def _without_settings(words: list[str], around: Around) -> tuple[list[str], Around]:
    """`--json` and `--fleet FILE` mean the same everywhere, wherever they stand before `--`."""
    end = words.index("--") if "--" in words else len(words)
    kept: list[str] = []
    given = iter(words[:end])
    for word in given:
        if word == "--json":
            around = replace(around, as_json=True)
        elif word == "--fleet":
            around = replace(around, fleet=_named(next(given, None)))
        elif word.startswith("--fleet="):
            around = replace(around, fleet=_named(word.partition("=")[2]))
        else:
            kept.append(word)
    return [*kept, *words[end:]], around


def _with_list(words: list[str]) -> list[str]:
    """`arc tasks --node iris` is the list too, as `arc tasks` is."""
    bare = len(words) > 1 and words[0] in LISTED and words[1].startswith("-")
    return [words[0], "list", *words[1:]] if bare and words[1] not in ASKS_FOR_HELP else words


def _named(word: str | None) -> Path:
    if not word:
        raise WrongUse("--fleet needs the path of a fleet.yaml")
    return Path(word)


def _invoked(words: list[str]) -> int:
    """Let typer find the command and its options; what it refuses is wrong use."""
    import typer
    from typer._click.exceptions import ClickException, UsageError

    from .app import command

    try:
        with redirect_stdout(here().stdout):  # where the help goes
            as_front = is_asked_for(words, here().environ)
            typed = command(words, width=here().width, as_front=as_front)
            code = typed.main(args=words, prog_name="arc", standalone_mode=False)
    except UsageError as error:
        asked = error.ctx.command_path if error.ctx else "arc"
        known = getattr(error.ctx.command, "commands", ()) if error.ctx else ()
        said = with_meant(error.format_message(), asked, tuple(known))
        meant = OTHERWISE.get((asked, str(getattr(error, "option_name", ""))), "")
        raise WrongUse(f"{asked}: {said}{meant}",
                       hint=f"{asked} --help") from error  # fmt: skip
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except ClickException as error:
        raise WrongUse(error.format_message()) from error
    except SystemExit as left:  # how it answers to a pipe that nobody reads
        if left.code == 1:
            raise ReaderLeft from left
        raise
    return code if isinstance(code, int) else Exit.DONE


def _as_ours(error: NodeError) -> ArcError:
    ours = ArcError(str(error), hint=error.hint)
    ours.code, ours.exit_code = error.code, error.exit_code
    return ours


def _say_trouble(error: ArcError, words: list[str], around: Around) -> int:
    as_json = around.as_json or "--json" in words
    if as_json:
        rule = getattr(error, "rule", "") or ""
        trouble = Trouble(error.code, str(error), error.hint, error.where, rule)
        line = failure(f"arc.{_name_of(words)}/1", around.stamp(), trouble)
        around.say(_with_problems(line, error) + "\n")
        return error.exit_code
    around.talk(f"error[{safe_text(error.code, 64)}]: {safe_text(str(error), keep=chr(10))}\n")
    if error.hint:
        around.talk(f"hint: {safe_text(error.hint, keep=chr(10))}\n")
    if _has_page(error.code):
        around.talk(f"more: arc explain {error.code}\n")
    return error.exit_code


def _has_page(code: str) -> bool:
    from arc.explaining import all_pages

    return code in all_pages()


def _with_problems(line: str, error: ArcError) -> str:
    """Where an error has several parts, each with its own place, machines are told them all."""
    problems = getattr(error, "problems", ())
    if not problems:
        return line
    import json

    said = json.loads(line)
    said["error"]["problems"] = list(problems)
    return json.dumps(said, ensure_ascii=True, separators=(",", ":"))


def _name_of(words: list[str]) -> str:
    """The command as schemas name it, as `tasks.list`; options and values are no part of it."""
    names = [word for word in words[:2] if word.isalpha()]
    groups = {*LISTED, "config"}
    return ".".join(names if names and names[0] in groups else names[:1]) or "command"


def _fault(error: Exception, words: list[str], around: Around) -> Fault:
    """What happened, in one line that names the place."""
    if around.environ.get("ARC_TRACEBACK"):
        import traceback

        around.talk("".join(traceback.format_exception(error)))
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = trace.tb_frame.f_code.co_filename.rpartition("/")[2] if trace else "?"
    line = trace.tb_lineno if trace else 0
    kind = type(error).__name__
    return Fault(f"arc {_name_of(words)}: ended early: {kind}: {error} ({place}:{line})")
