"""Runs one command from its words to its exit code, whatever goes wrong on the way."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import NoReturn

from agent_node.clock import iso
from agent_node.envelope import Answer, Exit, Trouble, failure, success
from agent_node.errors import BadInput, DiskBroken, NodeError, is_of_the_disk
from agent_node.home import private_umask
from agent_node.text import safe_text
from agent_node.wreck import end_with

from .around import Around, ReaderLeft, real_door
from .catalogue import COMMANDS, Runnable, overview

HELP = frozenset({"-h", "--help"})


class WrongUse(BadInput):
    """The words on the command line do not make a command; nothing was done."""

    code = "usage"


class WallClock:
    """The machine's wall clock, without the files that the node's own clock needs."""

    def now(self) -> datetime:
        """The time now; commands only stamp their answers with it."""
        return datetime.now(UTC)


class CommandParser(ArgumentParser):
    """An argument parser whose complaints are errors like all others."""

    def error(self, message: str) -> NoReturn:
        """Refuse with the parser's reason and the option that is near; the usage is the hint."""
        trouble = WrongUse(f"{self.prog}: {message}{self._near(message)}")
        trouble.hint = f"{self.prog} --help"
        raise trouble

    def _near(self, message: str) -> str:
        from agent_node.toml_table import suggestion

        _, found, unknown = message.partition("unrecognized arguments: --")
        if not found:
            return ""
        name = unknown.split("=")[0].split(" ")[0]
        return suggestion(f"--{name}", self._option_string_actions)


def run_here(words: Sequence[str]) -> int:
    """Run the command with this process's own streams, environment and door."""
    private_umask()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    around = Around(
        environ=os.environ,
        stdin=sys.stdin.buffer,
        stdout=sys.stdout,
        stderr=sys.stderr,
        ask=real_door,
        clock=WallClock(),
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
    as_json, rest = _without_json(words)
    try:
        return _reported(rest, around, as_json=as_json)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except ReaderLeft:
        return Exit.CLOSED_PIPE
    except NodeError as error:  # the error itself could not be written to stdout
        around.talk(f"error[{safe_text(error.code, 64)}]: {safe_text(str(error))}\n")
        return error.exit_code


def _without_json(words: Sequence[str]) -> tuple[bool, list[str]]:
    """`--json` means the same everywhere, even where the rest cannot be understood."""
    end = list(words).index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != "--json"]
    return len(kept) < end, [*kept, *words[end:]]


def _reported(words: list[str], around: Around, *, as_json: bool) -> int:
    """Run, and say how it went on the stream and in the form that was asked for."""
    name = words[0] if words else ""
    schema = f"node.{name if name in COMMANDS else 'command'}/1"
    try:
        answer = _answer(words, around, as_json=as_json)
    except NodeError as error:
        _say_trouble(error, schema, around, as_json=as_json)
        return error.exit_code
    except ReaderLeft:
        raise
    except Exception as error:  # noqa: BLE001 - the top: one line instead of a traceback
        fault = _fault(error, name, around)
        _say_trouble(fault, schema, around, as_json=as_json)
        return fault.exit_code
    if as_json:
        around.say(success(schema, iso(around.clock.now()), answer) + "\n")
    else:
        around.say(answer.text + "\n" if answer.text and answer.text[-1] != "\n" else answer.text)
        around.talk("".join(f"warning: {safe_text(line)}\n" for line in answer.warnings))
    return answer.exit


def _answer(words: list[str], around: Around, *, as_json: bool) -> Answer:
    """What the command found out; help is an answer too."""
    if not words:
        raise WrongUse("agent-node: no command given\n" + overview())
    if words[0] in {"help", *HELP}:
        return _help(words[1:])
    name, rest = words[0], words[1:]
    runnable = _runnable(name)
    parser = _parser(name, runnable)
    if HELP & set(rest[: rest.index("--") if "--" in rest else None]):
        return _help([name])
    options = parser.parse_args(rest)
    _check_words(options)
    options.json = as_json
    return runnable.run(options, around)


def _help(words: list[str]) -> Answer:
    text = _parser(words[0], _runnable(words[0])).format_help() if words else overview()
    return Answer(data={"help": text}, text=text)


def _runnable(name: str) -> Runnable:
    """The command of this name; the nearest one is suggested for a name nobody knows."""
    command = COMMANDS.get("version" if name == "--version" else name)
    if command is None:
        from agent_node.toml_table import suggestion

        trouble = WrongUse(f"agent-node: no command {name!r}{suggestion(name, COMMANDS)}")
        trouble.hint = "agent-node help"
        raise trouble
    commands: dict[str, Runnable] = import_module(f"{__package__}.{command.module}").COMMANDS
    return commands["version" if name == "--version" else name]


def _parser(name: str, runnable: Runnable) -> CommandParser:
    parser = CommandParser(
        prog=f"agent-node {name}",
        description=f"{COMMANDS[name].summary[:1].upper()}{COMMANDS[name].summary[1:]}.",
        epilog="--json prints one line of JSON instead; it changes nothing else.",
        allow_abbrev=False,
        add_help=False,
    )
    runnable.arguments(parser)
    return parser


def _check_words(options: Namespace) -> None:
    """Refuse bytes that are no text, by the name of the option that brought them."""
    for field, value in vars(options).items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not text.isascii():
                _check_word(text, field)


def _check_word(text: str, field: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(f"is not valid UTF-8 at character {error.start + 1}", field) from error


def _say_trouble(error: NodeError, schema: str, around: Around, *, as_json: bool) -> None:
    if as_json:
        trouble = Trouble(
            code=error.code,
            message=str(error),
            hint=error.hint,
            where=getattr(error, "field", ""),
            rule=getattr(error, "rule", None) or "",
        )
        around.say(failure(schema, iso(around.clock.now()), trouble) + "\n")
        return
    around.talk(f"error[{safe_text(error.code, 64)}]: {safe_text(str(error), keep=chr(10))}\n")
    if error.hint:
        around.talk(f"hint: {safe_text(error.hint)}\n")


class Fault(NodeError):
    """A mistake of ours, not of whoever typed the command."""

    code = "fault"
    hint = "this is a fault in agent-node; ARC_TRACEBACK=1 shows where, for a report"


def _fault(error: Exception, name: str, around: Around) -> NodeError:
    """What happened, in one line that names the place; the queue itself was kept alive.

    A disk that fails anywhere is no mistake of ours.
    """
    if around.environ.get("ARC_TRACEBACK"):
        import traceback

        around.talk("".join(traceback.format_exception(error)))
    if is_of_the_disk(error):
        failed = DiskBroken(f"agent-node {name}: ended early: the disk failed: {error};"
                             " what was under way may have happened")  # fmt: skip
        failed.hint = "free some space or see dmesg; then type it again"
        return failed
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code.co_filename.rpartition("/")[2] if trace else "?"
    line = trace.tb_lineno if trace else 0
    return Fault(
        f"agent-node {name}: ended early: {type(error).__name__}: {error} ({code}:{line}); "
        "what it asked for may have happened: look before you type it again"
    )
