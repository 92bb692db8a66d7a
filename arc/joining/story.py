"""Tells how a machine joins: recognised, looked at, set up, tried, and only then written down.

Every step may be repeated: what is there already is left as it is.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_node.clock import SystemClock
from agent_node.errors import BadInput
from agent_node.text import safe_text, size
from arc.errors import AnswerUnreadable, ArcError, HostKeyChanged, NeedsWord
from arc.keys import read_public_key
from arc.links.hostkeys import HostKey, HostKeys
from arc.links.ssh import let_go, where
from arc.settings import FleetSettings

from . import installing
from .asking import There
from .confirming import Ask, confirm
from .errors import JoinRefused, KeyTooStrong
from .fleet_file import check_entry, write_entry
from .installing import Program
from .judging import Finding, judge
from .login import OwnLogin, hub_login, own_login, own_public_key, shown_key
from .look import Look, read_look
from .meeting import meet
from .restricted import what_is_granted
from .steps import Steps
from .untried import Letting, line_of_before, no_untried_key
from .wanted import Wanted, check_wanted

LOOK_S = 30.0


@dataclass(frozen=True)
class Here:
    """What this end brings: the fleet, the environment, and a person who may be asked."""

    settings: FleetSettings
    environ: Mapping[str, str]
    ask: Ask

    @property
    def pins(self) -> HostKeys:
        """The host keys that are trusted."""
        return HostKeys(self.settings.state / "known_hosts")


async def join(wanted: Wanted, here: Here, steps: Steps) -> None:
    """Let this machine join, or mend how it joined. With `dry_run` it is only looked at."""
    check_wanted(wanted)
    there_already = check_entry(here.settings, wanted)
    public = read_public_key(here.settings.state)
    operator = wanted.operator_key or own_public_key(wanted.identity, here.environ)
    if operator is not None:
        installing.operator_line(operator)  # a file that is no key is refused before all else
    with tempfile.TemporaryDirectory(prefix="arc-joining-") as folder:
        program = installing.pack(Path(folder))
    key = await recognise(wanted, here, steps)
    async with await log_in(wanted, here, key, steps) as login:
        there, look = await look_around(login, wanted, here, program, steps, public=public)
        await installing.place_program(there, look, program, steps)
        await installing.write_settings(there, look, wanted, steps)
        await installing.put_launcher(there, look, steps)
        await installing.list_operator(there, look, operator, steps, node=wanted.name)
        line = installing.line_for(look, wanted, public, here.settings.fleet)
        # A host key is pinned only after the trial of the hub's key.
        before = line_of_before(look, tried=here.pins.pinned(wanted.name) is not None)
        async with no_untried_key(there, login.begin, Letting(public, line, before), steps):
            await installing.let_hub_in(there, look, line, steps)
            await installing.start_daemon(there, look, wanted, steps)
            await try_the_key(wanted, here, key, steps, home=look.home)
    pin(wanted, here, key, steps)
    await meet(wanted.entry, here.settings, steps)
    write_entry(here.settings, wanted, there_already, steps)


async def recognise(wanted: Wanted, here: Here, steps: Steps) -> HostKey:
    """The machine's host key, once a person confirmed it; one that is pinned was confirmed then."""
    with steps.step("host key") as step:
        entry = wanted.entry
        key, pinned = await shown_key(entry, here.settings), here.pins.pinned(wanted.name)
        if pinned == key and not wanted.fingerprint:
            step.text = f"{key}, trusted already"
            return key
        if pinned is not None and pinned != key:
            raise HostKeyChanged(
                wanted.name, f"{where(entry)} shows {key}, and {pinned} is trusted; nothing was "
                "sent", hint="ask the machine itself; then: arc nodes trust "
                f"{wanted.name} --fingerprint SHA256:…")  # fmt: skip
        confirm(wanted.name, where(entry), key, wanted.fingerprint, here.ask)
        step.text = f"{key}, confirmed by its fingerprint"
        return key


async def log_in(wanted: Wanted, here: Here, key: HostKey, steps: Steps) -> OwnLogin:
    """The operator's own login, the only one."""
    with steps.step("login") as step:
        login = await own_login(wanted.entry, here.settings, key, identity=wanted.identity,
                                environ=here.environ)  # fmt: skip
        step.text = f"{where(wanted.entry)}, by {login.by}"
        return login


async def look_around(
    login: OwnLogin, wanted: Wanted, here: Here, program: Program, steps: Steps, *, public: str
) -> tuple[There, Look]:
    """What the machine is like; anything that stands against a node there ends the joining."""
    with steps.step("machine") as step:
        there = await login.begin()
        began, sent = time.monotonic(), now()
        said = await there.ask("look", {"home": wanted.home, "run_as": wanted.run_as,
                                        "run": wanted.program, "blob": public.split()[1]},
                               LOOK_S)  # fmt: skip
        try:
            look = read_look(said)
        except BadInput as error:
            raise AnswerUnreadable(wanted.name, f"what it said of itself: {error}") from error
        off_s = look.at - sent - (time.monotonic() - began) / 2
        step.text = f"python {safe_text(look.version, 20)} {safe_text(look.python, 200)}"
    found = judge(look, wanted, program_bytes=len(program.data))
    _told(look, off_s, there.noise, here, steps, name=wanted.name)
    with steps.step("fit for a node") as step:
        steps.warnings += [in_a_line(wanted.name, one) for one in found if not one.stops]
        against = [one for one in found if one.stops]
        if against:
            raise _unfit(wanted.name, against)
        step.text = "yes"
    return there, look


def _told(look: Look, off_s: float, noise: str, here: Here, steps: Steps, *, name: str) -> None:
    """The facts that a person wants to see."""
    limit_s = here.settings.health.clock_off_s
    with steps.step("clock") as step:
        step.text = f"{off_s:+.1f} s against this machine"
        if abs(off_s) > limit_s:
            steps.warnings.append(f"{name}: its clock is {off_s:+.0f} s off (clock_off: "
                                  f"{limit_s:g} s): set it, such as with chrony")  # fmt: skip
    with steps.step("disk") as step:
        step.text = f"{size(look.disk_free)} free at {look.home}"
    with steps.step("login shell") as step:
        step.text = "prints nothing" if not noise else f"prints: {noise}"
        if noise:
            steps.warnings.append(f"{name}: its login shell prints text before our program speaks; "
                                  "it is skipped, and better silenced")  # fmt: skip


def _unfit(name: str, against: list[Finding]) -> ArcError:
    said = "; ".join(one.text for one in against)
    hint = "; ".join(one.hint for one in against if one.hint)
    kind = NeedsWord if {one.rule for one in against} == {"other_hub"} else JoinRefused
    error = kind(f"{name}: {said}", hint=hint, where=name)
    if any(one.rule == "other_node" for one in against):
        error.exit_code = 2
    return error


def in_a_line(name: str, finding: Finding) -> str:
    """A finding as a warning."""
    return f"{name}: {finding.text}" + (f" ({finding.hint})" if finding.hint else "")


async def try_the_key(
    wanted: Wanted, here: Here, key: HostKey, steps: Steps, *, home: str
) -> None:
    """With the hub's key nothing but the node may be reached; else it does not stay."""
    with steps.step("restricted key") as step:
        if steps.dry_run:
            step.text = "would try a shell, commands, SFTP, a pty and every forwarding with it"
            return
        granted = await _granted(wanted, here, key, sock=f"{home}/node.sock")
        if granted:
            raise KeyTooStrong(
                f"{wanted.name}: the hub's key was granted {', '.join(granted)}",
                hint="does sshd there read authorized_keys, and options in it? see its sshd_config",
                where=wanted.name)  # fmt: skip
        step.text = "no shell, no commands, no SFTP, no pty, no forwarding of any kind"


async def _granted(wanted: Wanted, here: Here, key: HostKey, *, sock: str) -> tuple[str, ...]:
    connection = await hub_login(wanted.entry, here.settings, key)
    try:
        return await what_is_granted(wanted.name, connection, sock=sock)
    finally:
        await let_go(connection)


def pin(wanted: Wanted, here: Here, key: HostKey, steps: Steps) -> None:
    """The host key that this node is known by from now on."""
    with steps.step("host key pinned") as step:
        if here.pins.pinned(wanted.name) == key:
            step.text = "already"
        elif steps.dry_run:
            step.text = f"would pin {key} for {wanted.name}"
        else:
            here.pins.pin(wanted.name, key, fingerprint=key.fingerprint)
            step.text = f"{key} for {wanted.name}"
            step.changed = "its host key is pinned here"


def now() -> float:
    """This machine's wall clock, in seconds since 1970."""
    return SystemClock().now().timestamp()
