"""Says what to type in another terminal while the demo runs, and after one that was kept."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from .nodes import DemoNode
from .sight import Sight, short


def arc_command(named: str) -> str:
    """How this very `arc` is started again: by its name where that leads to it."""
    beside = Path(sys.executable).with_name("arc")
    ours = Path(named) if Path(named).name == "arc" else beside
    if not ours.exists():
        return f"{sys.executable} -m arc"
    found = shutil.which("arc")
    if found and Path(found).samefile(ours):
        return "arc"
    here = Path.cwd()
    return str(ours.relative_to(here) if ours.is_relative_to(here) else ours)


def what_to_try(sight: Sight, nodes: dict[str, DemoNode], *, arc: str) -> tuple[str, ...]:
    """Lines for people; each works against the hub of this very demo."""
    task = sight.waits_longest
    daemon = nodes["forge"].daemon
    why = f"why {short(task.uid)}" if task else "why --node iris"
    about = f'why "{task.subject}" stays on iris' if task else "what iris does, and why"
    broken = daemon.pid if daemon is not None and daemon.poll() is None else "PID"
    page = (f"{sight.page}    # the page, for a browser",) if sight.page else ()
    return (
        *page,
        f"export ARC_FLEET={sight.folder / 'fleet.yaml'}",
        f"{arc} status              # how the fleet is",
        f"{arc} {why:<19} # {about}",
        f"{arc} plan                # what a cycle would do now, and every refusal with its rule",
        f'{arc} tasks add "Research: a question of mine"',
        f"kill -9 {broken}    # the daemon of forge; then: {arc} status",
        f"{arc} nodes pause loom --reason lunch    # then: {arc} why --node loom",
    )


def what_was_kept(sight: Sight, nodes: dict[str, DemoNode], *, arc: str) -> tuple[str, ...]:
    """Lines for people who kept the demo: its hub is gone, the files are there."""
    home = nodes["iris"].root
    return (
        f"kept in {sight.folder}; its hub and its nodes have ended. Look at it with:",
        f"  {arc} --fleet {sight.folder / 'fleet.yaml'} sensors history fleet-rebalance",
        f"  AGENT_NODE_HOME={home} {sys.executable} -m agent_node list",
        f"  rm -r {sight.folder}    # when you are done",
    )
