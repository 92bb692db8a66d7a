"""Starts a daemon on a home: its parts in the one order that is safe, given back at the end."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from typing import NamedTuple

from . import cgroups, program
from .apart import hand_nothing_on
from .clock import SystemClock
from .config import AgentSettings, read_settings
from .daemon import Daemon
from .errors import NodeError, Starting
from .failpoints import failpoint
from .home import Home, HomeLock, check_home, holder_of, identity_of, listen, listen_for_tasks
from .log import log
from .open_files import as_given, raise_limit
from .opening import CROWD_S, daemon_or_lock, let_go
from .other_user import find_other_user
from .report import withdraw
from .rubbish import seldom
from .store.sqlite import open_store
from .strict import JsonObject
from .zygote_link import Zygote


class AlreadyRunning(NodeError):
    """Another process holds the node's lock; nothing was changed."""

    code = "already_running"
    hint = "agent-node status shows what it does; agent-node stop ends it"


class Ended(NamedTuple):
    """How the daemon went: its exit code, and what it left undone when it went by itself."""

    code: int
    left: tuple[JsonObject, ...]


def run(home: Home, *, until_idle: bool = False) -> Ended:
    """Be the node's daemon until told to stop."""
    check_home(home)
    settings = read_settings(home.config)
    raise_limit()
    # The zygotes come before the lock: whatever is forked later would hold a copy of it.
    groups = _cgroup_base()
    zygotes = {agent.starter: _zygote(agent, home, groups) for agent in settings.agents}
    with ExitStack() as stack:
        stack.enter_context(seldom())
        for zygote in zygotes.values():
            zygote.start()
            stack.callback(zygote.close)
        lock = stack.enter_context(_take_lock(home))
        home.tasks.mkdir(mode=0o700, exist_ok=True)
        clock = SystemClock()
        store = open_store(home.root, name=settings.name, clock=clock, journal=settings.journal,
                           queue_max=settings.queue_max, check=True)  # fmt: skip
        stack.callback(let_go, store, home)
        store.spend_within(settings.money)
        daemon = Daemon(home, settings, store, clock, zygotes, until_idle=until_idle)
        door = listen(home, lock)
        stack.callback(_take_down, home, identity_of(home.socket))
        others = any(agent.run_as for agent in settings.agents)
        try:
            code = daemon.serve(door, listen_for_tasks(home, lock) if others else None)
        except BaseException:
            withdraw(home)  # it says that a daemon runs
            raise
    if daemon.makes_room:
        _become_the_current_program(home)
    return Ended(code, daemon.leaving.left)


def _become_the_current_program(home: Home) -> None:
    """The same process, under whatever keeps it, with the same words: another program."""
    current = program.current(home)
    if current is None:
        log("daemon_not_replaced", because=f"{program.link_of(home)} leads nowhere")
        return
    failpoint("upgrade.before_exec")
    words = [*program.start_words(current), *sys.argv[1:]]
    hand_nothing_on()
    with as_given():
        os.execv(words[0], words)  # noqa: S606 - a list of our own words


def _zygote(agent: AgentSettings, home: Home, groups: str | None) -> Zygote:
    """Another user's processes cannot enter a cgroup that is ours to divide."""
    if agent.run_as is None:
        return Zygote(agent.prefix, groups)
    user = find_other_user(agent.run_as)
    home.door.mkdir(mode=0o711, exist_ok=True)
    home.door.chmod(0o711)
    return Zygote(user=user, door=str(home.door))


def _take_down(home: Home, mine: tuple[int, int] | None) -> None:
    """Our own socket goes; one that somebody else put in its place stays."""
    if mine is not None and identity_of(home.socket) == mine:
        with suppress(OSError):
            home.socket.unlink()


def _cgroup_base() -> str | None:
    """Where each attempt may have a cgroup of its own: below a service's delegated one."""
    return cgroups.find_base() if "INVOCATION_ID" in os.environ else None  # set by systemd


def _take_lock(home: Home) -> HomeLock:
    """The home's lock; a command that holds it for one request is waited for, a daemon is not."""
    try:
        found = daemon_or_lock(home, crowd_s=CROWD_S)
    except Starting:
        found = None
    if isinstance(found, HomeLock):
        return found
    if found is not None:
        found.close()
    raise AlreadyRunning(f"{home.root}: process {holder_of(home)} works here already")
