"""Holds what the operator asked for when a machine is to join, checked before anything is done."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_node.config import parse_settings
from agent_node.errors import NodeError
from agent_node.new_toml import render_new_toml
from agent_node.toml_table import NAME
from arc.errors import WrongUse
from arc.marked_yaml import Plain
from arc.settings import NodeEntry

SSH, PORT_MAX = 22, 65535
_is_target = re.compile(r"([A-Za-z0-9_][A-Za-z0-9._-]*)"
                        r"@(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9][A-Za-z0-9._-]*)"
                        r"(?::(\d{1,5}))?").fullmatch  # fmt: skip
_is_source = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:,/_-]{0,254}").fullmatch
_is_user = re.compile(r"[a-z_][a-z0-9_-]{0,31}").fullmatch


@dataclass(frozen=True)
class Wanted:
    """A node as it is to be, and how to get there."""

    name: str
    host: str
    user: str
    port: int = 22
    owns: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    fingerprint: str = ""  # of the host key, as the machine itself shows it; empty: ask
    source: str = ""  # the only address from which the hub's key is taken; empty: any
    run_as: str = ""
    run: str = ""
    slots: int | None = None  # None: not said, which means one
    skills: tuple[str, ...] = ()
    home: str = ""
    identity: Path | None = None
    operator_key: Path | None = None
    dry_run: bool = False
    yes: bool = False

    @property
    def entry(self) -> NodeEntry:
        """The node as the hub will know it."""
        return NodeEntry(self.name, host=self.host, port=self.port, user=self.user,
                         owns=self.owns, also=self.also, never=self.never)  # fmt: skip

    @property
    def written(self) -> Mapping[str, Plain]:
        """The entry of fleet.yaml; what is as usual is left out."""
        return {
            "name": self.name, "host": self.host, "port": None if self.port == SSH else self.port,
            "user": self.user, "owns": list[Plain](self.owns),
            "also": list[Plain](self.also) or None, "never": list[Plain](self.never) or None,
        }  # fmt: skip

    @property
    def program(self) -> str:
        """The program that runs tasks, without its words; empty: none is named."""
        return next(iter(shlex.split(self.run)), "")

    @property
    def init_words(self) -> list[str]:
        """The options of `agent-node init`, each in one word, so that none can be another."""
        words = [f"--name={self.name}"]
        words += [] if self.slots is None else [f"--slots={self.slots}"]
        words += [f"--skill={skill}" for skill in self.skills]
        words += [f"--run={self.run}"] if self.run else []
        return words + ([f"--run-as={self.run_as}"] if self.run_as else [])


def target_of(text: str) -> tuple[str, str, int]:
    """User, host and port of `USER@HOST[:PORT]`, or `WrongUse`."""
    found = _is_target(text)
    if found is None or int(found[3] or 22) not in range(1, PORT_MAX + 1):
        raise WrongUse(f"add: {text!r} is no USER@HOST or USER@HOST:PORT",
                       hint="such as: arc nodes add agent@iris.lan --name iris")  # fmt: skip
    return found[1], found[2].strip("[]"), int(found[3] or 22)


def check_wanted(wanted: Wanted) -> None:
    """Return only when nothing in these words is refused later on, on the machine."""
    if not NAME.fullmatch(wanted.name):
        raise WrongUse(f"--name: {wanted.name[:60]!r} should match ^{NAME.pattern}$",
                       hint=_near_name(wanted.name))  # fmt: skip
    if wanted.source and not _is_source(wanted.source):
        raise WrongUse(f"--from: {wanted.source!r} is no address, such as 192.0.2.7 or 10.0.0.0/8")
    if wanted.run_as and (not _is_user(wanted.run_as) or wanted.run_as == wanted.user):
        raise WrongUse(f"--run-as: {wanted.run_as!r} should be an account of its own, not "
                       f"{wanted.user}, such as arc-run")  # fmt: skip
    if wanted.home and not re.fullmatch(r"(?:~/|/)[A-Za-z0-9._@+/-]+", wanted.home):
        raise WrongUse(f"--home: {wanted.home!r} should be an absolute path of plain characters")
    try:
        run = tuple(shlex.split(wanted.run))
        slots = 1 if wanted.slots is None else wanted.slots
        parse_settings(render_new_toml(wanted.name, wanted.skills, slots, run),
                       source=_NOT_THERE)  # fmt: skip
    except (NodeError, ValueError) as error:
        said = re.sub(rf"^{_NOT_THERE}(?::\d+)?: ", "", str(error))
        raise WrongUse(f"add: {said}") from error


_NOT_THERE = "node.toml of the new node"  # as which it is checked; no such file is anywhere yet


def _near_name(text: str) -> str:
    """A name that would do, where a small change makes one; empty: none is near."""
    near = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return f"such as: --name {near}" if NAME.fullmatch(near) else ""
