"""Sets the node up over the operator's login: its program, its settings, who may sign, the key."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from agent_node import __version__
from agent_node.errors import NodeError
from agent_node.packing import build_zipapp
from agent_node.requests import Fields
from agent_node.statement import version_of
from agent_node.text import safe_text, size
from arc.errors import WrongUse

from .asking import There, packed
from .errors import JoinRefused
from .keyline import USUAL, forced_command, key_line, split_key
from .look import Look, free_text, settings_there
from .steps import Steps
from .wanted import Wanted

PLACE_S = 120.0  # two or three megabytes over a thin line
VERSION_S = 20.0
INIT_S = 45.0
START_S = 120.0
FILE_S = 20.0


@dataclass(frozen=True)
class Program:
    """The node's program as this hub has it."""

    data: bytes
    sha256: str


def pack(folder: Path) -> Program:
    """The zipapp of the installed package, built in this folder."""
    target = folder / "agent-node.pyz"
    try:
        sha256 = build_zipapp(target)
        return Program(target.read_bytes(), sha256)
    except (NodeError, OSError) as error:
        raise JoinRefused(f"the node's program cannot be packed: {error}") from error


async def place_program(there: There, look: Look, program: Program, steps: Steps) -> None:
    """The program under its hash in the node's home, and the link to it."""
    with steps.step("program") as step:
        what = f"agent-node {__version__} ({size(len(program.data))}, {program.sha256[:12]})"
        if look.program == program.sha256:
            step.text = f"{what} there already"
            return
        version = await _version_there(there, look)
        if is_newer(version):
            step.text = f"there already: {version}, newer than the hub's {__version__}; kept"
            return
        instead = in_place_of(version, look.program)
        if steps.dry_run:
            step.text = f"would copy {what} to {look.home}/program{instead}"
            return
        await there.ask("place", {"home": look.home, "sha256": program.sha256,
                                  "file": packed(program.data)}, PLACE_S)  # fmt: skip
        step.text = f"{what} copied to {look.home}/program{instead}"
        step.changed = f"its program is in {look.home}/program"


async def _version_there(there: There, look: Look) -> str:
    """What the program in that home calls itself; empty: there is none, or it does not say."""
    if not look.program:
        return ""
    return free_text(await there.ask("version", {"home": look.home}, VERSION_S), "version", 40)


def is_newer(version: str) -> bool:
    """Whether a program of this version is newer than the hub's own, which then stays away."""
    try:
        return version_of(version) > version_of(__version__)
    except NodeError:  # it says none that compares: it is no program of a later hub
        return False


def in_place_of(version: str, sha256: str) -> str:
    """Which program ours replaces, in words; empty: there is none."""
    if not sha256:
        return ""
    known = safe_text(version, 40)
    what = f"another build of {known}" if version == __version__ else (
        f"the older {known}" if known else "one that does not say its version")
    return f", in place of {what} ({sha256[:12]})"


async def write_settings(there: There, look: Look, wanted: Wanted, steps: Steps) -> None:
    """node.toml by the program's own `init`; one that is there is kept as it is."""
    with steps.step("node.toml") as step:
        idle = without_effect(look, wanted)
        if idle:
            steps.warnings.append(f"{wanted.name}: node.toml was kept, so these did nothing: "
                                  f"{', '.join(idle)}; change it in {look.home}/node.toml")
        if steps.dry_run and look.node:
            step.text = f"there already, for {wanted.name}; kept as it is"
            return
        if steps.dry_run:
            step.text = f"would run there: agent-node init {' '.join(wanted.init_words)}"
            return
        said = await there.ask("settle_in", {"home": look.home, "words": [*wanted.init_words]},
                               INIT_S)  # fmt: skip
        created = said.inside("data").flag("created")
        step.text = f"written for {wanted.name}" if created else "there already; kept as it is"
        step.changed = f"{look.home}/node.toml is written" if created else ""
        if not idle:
            steps.warnings += [f"{wanted.name}: {safe_text(str(one), 500)}"
                               for one in said.entries("warnings", 20)]  # fmt: skip


def without_effect(look: Look, wanted: Wanted) -> list[str]:
    """The options that say something else than the node.toml which is there and is kept."""
    there = settings_there(look)
    if there is None:
        return []
    agent = there.agents[0] if there.agents else None
    run, skills = (agent.run, agent.skills) if agent else ((), ())
    said = {
        "--run": (tuple(shlex.split(wanted.run)), run, shlex.join(run)),
        "--slots": (wanted.slots, agent.slots if agent else 0, str(agent.slots if agent else 0)),
        "--skill": (wanted.skills, skills, ", ".join(skills)),
        "--run-as": (wanted.run_as, there.run_as, there.run_as or ""),
    }
    return [f"{option} (there: {safe_text(shown, 60) or 'none'})"
            for option, (meant, is_there, shown) in said.items()
            if meant and meant != is_there]  # fmt: skip


async def put_launcher(there: There, look: Look, steps: Steps) -> None:
    """`agent-node` as a command of that account, so that what hints name can be typed there."""
    with steps.step("launcher") as step:
        if steps.dry_run:
            step.text = "would put agent-node into ~/.local/bin"
            return
        said = await there.ask("launch", {"home": look.home, "python": look.python}, FILE_S)
        state, file = free_text(said, "state"), safe_text(free_text(said, "file"), 200)
        if state == "left":
            why = safe_text(free_text(said, "because"), 200)
            step.text = f"not made: {why}; there: {by_hand(look)}"
            return
        done, is_on = "there already" if state == "there" else state, said.flag("on_path")
        on_path = f"{'on' if is_on else 'not on'} the PATH of {safe_text(look.user, 40)}"
        step.text = f"{file} {done}; that folder is {on_path}"
        step.changed = "" if state == "there" else f"{file} is written"


def by_hand(look: Look) -> str:
    """What starts the program there without a launcher."""
    return f"{look.python} -I -S {look.home}/program/agent-node.pyz"


async def list_operator(
    there: There, look: Look, public: Path | None, steps: Steps, *, node: str
) -> None:
    """Whose signature new code needs there; without one `nodes upgrade` stays refused."""
    with steps.step("operator") as step:
        if public is None:
            step.text = "no public key of yours was found"
            steps.warnings.append(f"{node}: `arc nodes upgrade` will be refused until an operator "
                                  "is named: the same command again with --operator-key FILE.pub")
            return
        line = operator_line(public)
        if steps.dry_run:
            step.text = f"would let {public} sign new code"
            return
        said = await there.ask("list_operators", {"home": look.home, "line": line}, FILE_S)
        known = said.flag("there")
        step.text = f"{public} may sign new code{' already' if known else ''}"
        step.changed = "" if known else f"{look.home}/operators has your key"


def operator_line(public: Path) -> str:
    """The operator's line for this public key in a file, or `WrongUse`."""
    from agent_node.signing import operators_line

    try:
        return operators_line(public.read_text(encoding="utf-8")).strip()
    except (OSError, UnicodeDecodeError, NodeError) as error:
        raise WrongUse(f"--operator-key {public}: {error}",
                       hint="name the .pub file of your own key") from error  # fmt: skip


def line_for(look: Look, wanted: Wanted, public: str, fleet: str) -> str:
    """The line that lets this hub in there."""
    try:
        command = forced_command(look.python, look.home, look.account_home)
    except ValueError as error:
        raise JoinRefused(f"{wanted.name}: {error}", hint="--home PATH") from error
    return key_line(public, command, source=wanted.source, comment=f"arc-hub-of-{fleet}")


async def let_hub_in(there: There, look: Look, line: str, steps: Steps) -> None:
    """The hub's key, restricted to its one program; an older line of it is replaced."""
    with steps.step("hub key") as step:
        shown = line.partition(" ssh-ed25519 ")[0]
        if look.line == line:
            step.text = f"there already: {shown}"
        elif steps.dry_run:
            step.text = f"would {'replace' if look.line else 'add'} in authorized_keys: {shown}"
        else:
            await there.ask("let_in", {"line": line}, FILE_S)
            step.text = f"{'replaced' if look.line else 'added'} in authorized_keys: {shown}"
            step.changed = f"the hub's key is in authorized_keys of {look.user}"


async def shut_hub_out(there: There, public: str) -> bool:
    """Take the hub's key out again; whether it had been in."""
    said = await there.ask("shut_out", {"blob": split_key(public)[1]}, FILE_S)
    return said.flag("taken")


async def start_daemon(there: There, look: Look, wanted: Wanted, steps: Steps) -> None:
    """A daemon that answers, and stays if anything here can see to that."""
    from agent_node.systemd import render_unit

    program = f"{look.home}/program/agent-node.pyz"
    command = [look.python, "-I", "-S", program]
    with steps.step("daemon") as step:
        runs = await there.ask("daemon", {"home": look.home}, FILE_S)
        steps.warnings += other_program(wanted.name, runs)
        by = "a systemd user unit" if look.systemd else "agent-node start; no systemd runs there"
        if steps.dry_run:
            step.text = f"runs already ({by})" if runs.whole("pid", 0, 2**31) else (
                f"would start it: {by}")
        else:
            unit = render_unit([*command, "run"], home=look.home, stop_grace_s=look.stop_grace_s)
            said = await there.ask("start", {"home": look.home, "unit": unit}, START_S)
            started = free_text(said.inside("data"), "how") != "already"
            kept = free_text(said, "kept_by")
            if look.systemd and kept != "systemd":
                by = "agent-node start; systemd keeps no unit of it"
            step.text = f"{'started' if started else 'runs already'} ({by})"
            step.changed = "its daemon is started" if started else ""
            steps.warnings += [f"{wanted.name}: {safe_text(str(one), 500)}"
                               for one in said.entries("said", 10)]  # fmt: skip
            if kept == "systemd":
                return
        if not look.systemd or not steps.dry_run:
            steps.hints.append(f"so that it starts with the machine, put this into the crontab of "
                               f"{look.user} there: {reboot_line(look, command)}")  # fmt: skip


def other_program(name: str, runs: Fields) -> list[str]:
    """That the daemon still runs another program than lies there; empty: it does not."""
    old, new = free_text(runs, "program", 80), free_text(runs, "current", 80)
    if not old or old == new:
        return []
    said = f"{name}: its daemon still runs {safe_text(old)}, and {safe_text(new)} lies there: "
    return [f"{said}arc nodes upgrade {name}; or there: agent-node stop, then agent-node start"]


def reboot_line(look: Look, command: list[str]) -> str:
    """The line of a crontab that starts the daemon with the machine."""
    usual = look.home == f"{look.account_home.rstrip('/')}/{USUAL}"
    named = "" if usual else f"AGENT_NODE_HOME={look.home} "
    return f"@reboot {named}{' '.join(command)} start"
