"""The commands `start` and `stop`: a daemon that outlives the terminal."""

from __future__ import annotations

import os
import select
import shlex
import signal
import time
from argparse import ArgumentParser, Namespace

from agent_node.config import NodeSettings, read_settings
from agent_node.envelope import Answer
from agent_node.errors import BadSettings, NodeError
from agent_node.home import Home

from .around import Around
from .catalogue import Runnable
from .setup import no_programs, own_command

STOP_MORE_S = 15.0  # beyond the grace that a daemon gives to what runs


class StillRuns(NodeError):
    """The daemon was told to stop and has not ended yet; it takes no more work."""

    code = "still_runs"
    exit_code = 9
    hint = "agent-node status; stopping it again makes it wait for nothing"


def start_arguments(parser: ArgumentParser) -> None:
    """The words of `start`."""
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")


def start(options: Namespace, around: Around) -> Answer:
    """A daemon that answers; one that runs already is left alone."""
    from agent_node.starting import daemon_pid, has_unit, start_daemon

    home = around.home
    settings = read_settings(home.config)
    name, warnings = settings.name, no_programs(settings)
    if options.dry_run:
        pid = daemon_pid(home)
        how = "already" if pid else "systemd" if has_unit(home, around.environ) else "detached"
        said = f"dry run, nothing changed: {name}: {_HOW[how].format(pid=pid)}"
        return Answer({"node": name, "pid": pid, "how": how, "dry_run": True}, said,
                      warnings=warnings)  # fmt: skip
    started = start_daemon(home, own_command(), around.environ)
    data = {"node": name, "pid": started.pid, "how": started.how, "dry_run": False}
    return Answer(data, f"{name}: {_SAID[started.how].format(pid=started.pid)}", warnings=warnings)


_HOW = {
    "already": "runs already, pid {pid}",
    "systemd": "systemd would start it",
    "detached": "a process of its own would be started",
}
_SAID = {
    "already": "runs already, pid {pid}",
    "systemd": "runs, pid {pid}, started by systemd",
    "detached": "runs, pid {pid}; what it says goes to daemon.log",
}


def stop_arguments(parser: ArgumentParser) -> None:
    """The words of `stop`."""
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")


def stop(options: Namespace, around: Around) -> Answer:
    """No daemon: it takes no more work, lets running tasks end within its grace, and leaves them
    to their shims after that. Where systemd keeps it, systemd is told.
    """
    from agent_node.starting import daemon_pid, has_unit, systemctl

    home = around.home
    pid = daemon_pid(home)
    name, grace_s, warnings = _whom(home, pid)
    data = {"node": name, "pid": pid, "stopped": pid is not None and not options.dry_run,
            "dry_run": bool(options.dry_run)}  # fmt: skip
    if pid is None:
        return Answer(data, f"{name}: no daemon runs")
    if options.dry_run:
        said = f"dry run, nothing changed: {name}: would stop pid {pid}"
        return Answer(data, said, warnings=warnings)
    patience_s = grace_s + STOP_MORE_S
    if has_unit(home, around.environ):
        systemctl("stop", around.environ, patience_s=patience_s)
    _end(pid, patience_s)  # it may have been started otherwise
    said = f"{name}: stopped; start it with: {typed(around, 'start')}"
    return Answer(data, said, warnings=warnings)


def _whom(home: Home, pid: int | None) -> tuple[str, int, tuple[str, ...]]:
    """The node's name, its daemon's grace, and what is wrong with node.toml: a daemon that runs has
    read another one, and a slip in it keeps nobody from stopping that.
    """
    try:
        settings = read_settings(home.config)
    except BadSettings as error:
        if pid is None:
            raise
        usual = NodeSettings(name=home.root.name)
        return str(home.root), usual.stop_grace_s, (f"{error}; no daemon starts with it",)
    return settings.name, settings.stop_grace_s, ()


def typed(around: Around, verb: str) -> str:
    """As a person types it for this very home: without its name it would be said to another one."""
    told = around.environ.get("AGENT_NODE_HOME")
    which = f"AGENT_NODE_HOME={shlex.quote(str(around.home.root))} " if told else ""
    return f"{which}agent-node {verb}"


def _end(pid: int, patience_s: float) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        began = time.monotonic()
        if not select.select([pidfd], [], [], patience_s)[0]:
            took = time.monotonic() - began
            raise StillRuns(f"pid {pid} has not ended after {took:.0f} s")
    except ProcessLookupError:
        return
    finally:
        os.close(pidfd)


COMMANDS = {
    "start": Runnable(start_arguments, start),
    "stop": Runnable(stop_arguments, stop),
}
