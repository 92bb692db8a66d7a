"""What the nemesis does to a fleet: each fault with the way it is taken back, chosen by a seed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import Random

from agent_node.lines import line_of
from tests.node.daemon.living import children_of
from tests.ssh.breaking import faults_in_log
from tests.ssh.fleet import SshFleet
from tests.ssh.ground import CommandFailed
from tests.ssh.lab_node import Home

REASON = ("--reason", "chaos")
SKEW_S = 3600.0
STARTS_MAX = 5

Heal = Callable[[], None]


@dataclass(frozen=True)
class Fault:
    """One kind: `strike` does it to a node and gives back what takes it back."""

    name: str
    strike: Callable[[SshFleet, Home, Random], Heal]
    deaf: bool = False  # the hub answers nobody meanwhile


def nothing() -> None:
    """There is nothing to take back."""


def kill_daemon(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """Its shims and what they run stay; the next daemon adopts them."""
    _end_daemon(home)
    return home.start_daemon


def kill_everything(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """Daemon, zygote, shims and serve at once; what the shims had started lives on."""
    home.node.exec(["pkill", "-9", "-u", home.user, "-f", "agent.node"], check=False)
    return home.start_daemon


def kill_a_child(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """One of the daemon's own: the zygote, or a shim under it."""
    daemon = home.daemon_pid()
    zygotes = list(children_of(daemon)) if daemon else []
    shims = [shim for zygote in zygotes for shim in children_of(zygote)]
    at_work = [shim for shim in shims if children_of(shim)]
    below = dice.choice([zygotes, shims, at_work, at_work])
    if below:
        with suppress(ProcessLookupError):
            os.kill(dice.choice(below), signal.SIGKILL)
    return nothing


def kill_serve(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """The hub's session ends in the middle of whatever was asked."""
    home.node.exec(["pkill", "-9", "-f", "serve --stdio"], check=False)
    return nothing


def kill_sshd(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """Listener and sessions; nobody gets in until it is started again."""
    with suppress(CommandFailed):
        home.node.kill_sshd()
    return home.node.start_sshd


def power_off(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """No byte leaves; it boots later from the same disk, under another boot id."""
    home.node.stop()

    def boot() -> None:
        home.node.start()
        home.start_daemon()

    return boot


def cut(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """A silent hole, both ways or one way, or the carrier is lost."""
    home.node.cut(dice.choice(("both", "in", "out", "down")))
    return home.node.heal


def slow_down(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """Latency, jitter and loss on its cable."""
    home.node.slow(dice.uniform(0.02, 0.3), loss=dice.choice((0.0, 0.02, 0.1)), jitter_s=0.05)
    return home.node.fast


def freeze(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """Every process stands still; its kernel still takes connections."""
    home.node.freeze()
    return home.node.thaw


def fill_the_disk(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """Nothing can be written, or only a little."""
    home.node.fill_disk(leave=dice.choice((0, 4096, 65536)))
    return home.node.free_disk


def skew_the_clock(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """Its next daemon and sessions live an hour, or ten years, beside the others."""
    by = dice.choice((-SKEW_S, SKEW_S, 87_600 * 3600.0))
    home.node.skew(by)
    _end_daemon(home)
    _start_under_faketime(home)

    def right_it() -> None:
        home.node.skew(0)
        _end_daemon(home)
        home.start_daemon()

    return right_it


def _start_under_faketime(home: Home) -> None:
    """A sleep fails under this library with "invalid argument", and a daemon that finds its lock
    taken for a moment sleeps: then another is started.
    """
    for _ in range(STARTS_MAX):
        with suppress(CommandFailed):
            return home.start_daemon()
    return home.start_daemon()


def _end_daemon(home: Home) -> None:
    """-9, if there is one: a number that is 0 would mean ourselves."""
    pid = home.daemon_pid()
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def drain(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """A person's word, taken back later."""
    fleet.arc("nodes", "drain", home.name, "--yes", *REASON)
    return lambda: _resume(fleet, home)


def pause(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """The same, with its queue kept."""
    fleet.arc("nodes", "pause", home.name, *REASON)
    return lambda: _resume(fleet, home)


def _resume(fleet: SshFleet, home: Home) -> None:
    fleet.until(lambda: fleet.arc("nodes", "resume", home.name, *REASON).code == 0,
                f"{home.name} is resumed")  # fmt: skip


def pause_the_fleet(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """Whoever is away hears it later."""
    fleet.arc("pause", *REASON)
    return lambda: _resume_all(fleet)


def _resume_all(fleet: SshFleet) -> None:
    fleet.until(lambda: fleet.arc("resume", *REASON).code in {0, 3}, "the fleet is resumed")


def kill_the_hub(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """-9, in the middle of whatever it moves."""
    fleet.kill_hub()
    return fleet.up


def freeze_the_hub(fleet: SshFleet, home: Home, dice: Random) -> Heal:
    """STOP and CONT: it goes on with what it believed before."""
    hub = fleet.hub
    assert isinstance(hub, subprocess.Popen)
    hub.send_signal(signal.SIGSTOP)
    return lambda: hub.send_signal(signal.SIGCONT)


FAULTS = (
    Fault("kill daemon", kill_daemon), Fault("kill everything", kill_everything),
    Fault("kill zygote or shim", kill_a_child), Fault("kill serve", kill_serve),
    Fault("kill sshd", kill_sshd), Fault("power off", power_off), Fault("cut", cut),
    Fault("slow link", slow_down), Fault("freeze", freeze), Fault("full disk", fill_the_disk),
    Fault("clock skew", skew_the_clock), Fault("drain", drain), Fault("pause", pause),
    Fault("pause fleet", pause_the_fleet), Fault("kill hub", kill_the_hub),
    Fault("freeze hub", freeze_the_hub, deaf=True),
)  # fmt: skip


def create_then_close(fleet: SshFleet, giver: str, taker: str) -> int:
    """The negative control: tasks of one node are made on another, and the mover dies before it
    closes them. How many there were.
    """
    found = fleet.homes[giver].run("list", "--state", "READY").get("tasks")
    ready = [task for task in found if isinstance(task, dict)] if isinstance(found, list) else []
    lines = "".join(line_of({"uid": task["uid"], "subject": task["subject"]}).decode()
                    for task in ready)  # fmt: skip
    if lines:
        home = fleet.homes[taker]
        home.node.exec([*home.argv("add", "--file", "-")], user=home.user, stdin=lines.encode())
    return len(ready)


@contextmanager
def struck(fleet: SshFleet, fault: Fault, home: Home, dice: Random) -> Iterator[None]:
    """The fault is there inside; afterwards it is taken back, whatever happened."""
    heal = fault.strike(fleet, home, dice)
    try:
        yield
    finally:
        heal()


def tracebacks(fleet: SshFleet) -> list[str]:
    """What a program of ours said in any log when it broke; the first lines of each."""
    logs = [fleet.place / "hub.log", *(home.node.path(f"{home.path}/daemon.log")
                                       for home in fleet.homes.values())]  # fmt: skip
    return [said for log in logs for said in faults_in_log(log)]
