"""Starts a daemon on a home: its parts in the one order that is safe, given back at the end."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress

from . import cgroups
from .clock import SystemClock
from .config import read_settings
from .daemon import Daemon
from .errors import NodeError, Starting
from .home import Home, HomeLock, check_home, holder_of, identity_of, listen
from .opening import daemon_or_lock
from .store.sqlite import open_store
from .zygote_link import Zygote


class AlreadyRunning(NodeError):
    """Another process holds the node's lock; nothing was changed."""

    code = "already_running"


def run(home: Home, *, until_idle: bool = False) -> int:
    """Be the node's daemon until told to stop; the exit code of `agent-node run`."""
    check_home(home)
    settings = read_settings(home.config)
    # The zygotes come before the lock: whatever is forked later would hold a copy of it.
    groups = _cgroup_base()
    zygotes = {agent.prefix: Zygote(agent.prefix, groups) for agent in settings.agents}
    with ExitStack() as stack:
        for zygote in zygotes.values():
            zygote.start()
            stack.callback(zygote.close)
        lock = stack.enter_context(_take_lock(home))
        home.tasks.mkdir(mode=0o700, exist_ok=True)
        clock = SystemClock()
        store = open_store(home.root, name=settings.name, clock=clock, journal=settings.journal,
                           queue_max=settings.queue_max, check=True)  # fmt: skip
        stack.callback(store.close)
        daemon = Daemon(home, settings, store, clock, zygotes, until_idle=until_idle)
        door = listen(home, lock)
        stack.callback(_take_down, home, identity_of(home.socket))
        return daemon.serve(door)


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
        found = daemon_or_lock(home)
    except Starting:
        found = None
    if isinstance(found, HomeLock):
        return found
    if found is not None:
        found.close()
    raise AlreadyRunning(f"{home.root}: process {holder_of(home)} works here already")
