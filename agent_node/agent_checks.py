"""Looks whether the agents that node.toml names can be started, and as whom."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping

from .account import check_users
from .checks import Check
from .config import AgentSettings, NodeSettings
from .home import Home

RESTART = "agent-node stop, then agent-node start"


def check_agent(agent: AgentSettings, environ: Mapping[str, str]) -> Iterator[Check]:
    """Whether the program of this agent can be started at all."""
    name = f"agent {agent.name}"
    startable = agent.cwd is None or os.path.isdir(agent.cwd)
    if not startable:
        yield Check(name, "finding", f"cwd {agent.cwd} is no folder", f"mkdir -p {agent.cwd}")
    elif agent.cwd and not agent.starter and not os.access(agent.cwd, os.X_OK):
        startable = False
        yield Check(name, "finding", f"cwd {agent.cwd} may not be entered",
                    f"chmod u+x {agent.cwd}")  # fmt: skip
    programs = [words[0] for words in (agent.run, agent.prefix) if words]
    found = [_program(word, agent, environ) for word in programs]
    for word, path in zip(programs, found, strict=True):
        if path is None:
            fix = ("install it where the daemon's PATH finds it, or give its whole path in run in "
                   f"node.toml; after that {RESTART}")  # fmt: skip
            yield Check(name, "finding", f"program {word} was not found", fix)
    unset = [variable for variable in agent.env if variable not in environ]
    if unset:
        yield Check(name, "note", f"not set here, so not passed on: {', '.join(unset)}")
    if startable and None not in found:
        yield Check(name, "ok", f"{found[0]}, {agent.slots} at a time")


def _program(word: str, agent: AgentSettings, environ: Mapping[str, str]) -> str | None:
    """Where the program lies; None when it cannot be started."""
    if "/" in word and not os.path.isabs(word):
        word = os.path.join(agent.cwd or os.curdir, word)
    return shutil.which(word, path=environ.get("PATH", os.defpath))


def check_agents(home: Home, settings: NodeSettings) -> Iterator[Check]:
    """What holds for all agents together."""
    if not settings.agents:
        fix = "write an [[agent]] table in node.toml"
        yield Check("agents", "finding", "there is none: nothing can run here", fix)
        return
    yield from check_users(home, settings)
