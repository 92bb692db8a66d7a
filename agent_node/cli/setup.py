"""Commands that set a node up: `init`, `unit` and `version`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from agent_node import __version__, program
from agent_node.account import try_account
from agent_node.config import NodeSettings, parse_settings, read_settings
from agent_node.envelope import Answer
from agent_node.errors import BadInput, BadSettings, NodeError
from agent_node.home import Home, check_home, find_home
from agent_node.missing import why_missing
from agent_node.new_toml import render_new_toml

from .around import Around
from .catalogue import Runnable

_OF = "agent-node init"


class OtherNode(NodeError):
    """The home already belongs to a node of another name; nothing was changed."""

    code = "other_node"
    exit_code = 2


class CannotInit(NodeError):
    """The home could not be made."""

    code = "cannot_init"


def init_arguments(parser: ArgumentParser) -> None:
    """The words of `init`."""
    parser.add_argument("--name", required=True, help="how the fleet calls this node")
    parser.add_argument("--skill", action="append", default=[], help="what it can do; repeatable")
    parser.add_argument("--slots", type=int, default=1, help="tasks at the same time (default: 1)")
    parser.add_argument("--run", metavar="COMMAND", help="the program that runs tasks, quoted")
    parser.add_argument("--run-as", metavar="USER", help="the account that runs the tasks")
    parser.add_argument("--dry-run", action="store_true", help="show what would be written")


def init(options: Namespace, around: Around) -> Answer:
    """Make the home; what is already there is never overwritten."""
    home = find_home(around.environ)
    text = _new_toml(options)
    try:
        settings = parse_settings(text, source=_OF)
    except BadSettings as error:  # of a text that nobody has seen: its line says nothing
        raise BadSettings(re.sub(rf"^{_OF}:\d+: ", f"{_OF}: ", str(error))) from None
    if home.config.exists():
        return _already(home, settings, dry_run=bool(options.dry_run))
    if settings.run_as is not None:
        try_account(home, settings.run_as)
    data = {"home": str(home.root), "name": settings.name, "dry_run": bool(options.dry_run)}
    if options.dry_run:
        said = f"dry run, nothing changed: would write {home.config}:\n\n{text}"
        warnings = no_programs(settings)
        return Answer({**data, "created": False, "node_toml": text}, said, warnings=warnings)
    _make(home, text)
    warnings = no_programs(settings)
    return Answer({**data, "created": True}, _welcome(home, settings), warnings=warnings)


def _new_toml(options: Namespace) -> str:
    try:
        run = tuple(shlex.split(options.run)) if options.run else ()
    except ValueError as error:
        raise BadInput(f"cannot be split into words: {error}", "--run") from error
    skills = tuple(options.skill)
    return render_new_toml(options.name, skills, options.slots, run, run_as=options.run_as)


def _already(home: Home, wanted: NodeSettings, *, dry_run: bool) -> Answer:
    check_home(home)
    there = read_settings(home.config)
    if there.name != wanted.name:
        error = OtherNode(f"{home.root}: is already the home of {there.name}, not {wanted.name}")
        error.hint = f"name another home in AGENT_NODE_HOME, or edit {home.config}"
        raise error
    data = {"home": str(home.root), "name": there.name, "created": False, "dry_run": dry_run}
    text = f"{there.name}: already set up in {home.root}; nothing was changed"
    warnings = []
    if wanted.agents and wanted.agents != there.agents:
        warnings.append("node.toml was left as it is; change agents there")
    if wanted.run_as not in (None, there.run_as):
        line = f'run_as = "{wanted.run_as}"'
        warnings.append(f"node.toml was left as it is; write {line} there, before [[agent]]")
    return Answer(data, text, warnings=(*warnings, *no_programs(there)))


def no_programs(settings: NodeSettings) -> tuple[str, ...]:
    """A sentence for each agent whose program is not here, as far as this shell's PATH tells."""
    found = ((agent.name, why_missing(agent)) for agent in settings.agents)
    return tuple(f"agent {name}: {why}: it is given nothing until there is"
                 for name, why in found if why)  # fmt: skip


def _make(home: Home, text: str) -> None:
    """The folders first, node.toml last and in one step: a home with node.toml is whole."""
    try:
        home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_home(home)
        for folder in (home.tasks, home.backups):
            folder.mkdir(mode=0o700, exist_ok=True)
        _write_new(home.config, text)
    except OSError as error:
        raise CannotInit(f"{home.root}: cannot be made: {error}") from error


def _write_new(path: Path, text: str) -> None:
    """Appears whole or not at all, and never in the place of another file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    finally:
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _welcome(home: Home, settings: NodeSettings) -> str:
    agents = ", ".join(agent.name for agent in settings.agents)
    lines = [
        f"{settings.name}: set up in {home.root}",
        f"  settings  {home.config}",
        f"  agents    {agents or 'none yet: fill in [[agent]] in node.toml'}",
        "next: agent-node doctor, then agent-node run",
    ]
    return "\n".join(lines)


def unit_arguments(parser: ArgumentParser) -> None:
    """The words of `unit`: none."""


def unit(options: Namespace, around: Around) -> Answer:
    """The text of a systemd user unit for this very installation and home."""
    from agent_node.systemd import render_unit

    home = find_home(around.environ)
    grace_s = read_settings(home.config).stop_grace_s if home.config.exists() else 30
    text = render_unit([*own_command(), "run"], home=str(home.root), stop_grace_s=grace_s)
    return Answer({"unit": text}, text)


def own_command() -> list[str]:
    """The command line that starts this very agent-node again: installed, zipapp or module."""
    started = sys.argv[0] if sys.argv else ""
    if Path(started).name == "agent-node":
        return [shutil.which(started) or str(Path(started).resolve())]
    archive = program.running()
    if archive is not None:
        link = archive.with_name(program.LINK)
        follows = program.running_id() is not None and link.is_symlink()
        return program.start_words(link if follows else archive)
    return [sys.executable, "-m", "agent_node"]


def version_arguments(parser: ArgumentParser) -> None:
    """The words of `version`: none."""


def version(options: Namespace, around: Around) -> Answer:
    """The version, with what it runs on."""
    python = sys.version.split()[0]
    data = {"version": __version__, **program.abilities(), "program": program.running_id(),
            "python": python, "executable": sys.executable}  # fmt: skip
    return Answer(data, f"agent-node {__version__}")


COMMANDS = {
    "init": Runnable(init_arguments, init),
    "unit": Runnable(unit_arguments, unit),
    "version": Runnable(version_arguments, version),
}
