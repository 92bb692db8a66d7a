"""Reads what a joining machine said about itself; it is believed for this joining alone."""

from __future__ import annotations

from dataclasses import dataclass

from agent_node.config import NodeSettings, parse_settings
from agent_node.errors import NodeError
from agent_node.requests import Fields
from agent_node.strict import JsonValue

TEXT_MAX = 4096
MOUNTS_MAX = 1024 * 1024
TOML_MAX = 64 * 1024
WAYS_MAX = 80
COUNT_MAX = 2**63 - 1


@dataclass(frozen=True)
class Place:
    """One file or folder: whose it is, and who may write it."""

    path: str
    kind: str  # folder, file, link, other
    mode: int
    uid: int
    group_alone: bool  # the group has no member but the owner


@dataclass(frozen=True)
class Look:
    """A machine and an account, as the program there saw them."""

    at: float  # its wall clock, seconds since 1970
    python: str
    version: str
    user: str
    uid: int
    account_home: str
    home: str
    system: str
    ssh_keygen: str
    systemd: bool
    disk_free: int
    files_free: int  # -1: the file system does not count them
    mounts: str
    ways: tuple[Place, ...]  # from the root folder down to the home, as far as it is there
    strict: tuple[Place, ...]  # what sshd looks at before it obeys a key
    node: str  # whose home it is already; empty: nobody's
    node_error: str
    stop_grace_s: int
    node_toml: str  # its text; empty: there is none, or it cannot be read
    program: str  # sha256; empty: none is there
    line: str  # the line that lets the hub's key in now; empty: none does
    other_hubs: tuple[str, ...]
    keys_error: str
    keys_hint: str
    run_as: str
    run_as_error: str  # missing, no_sudo; empty: nothing is wrong with it
    run_there: bool  # whether the account finds the program that is to run tasks


def read_look(said: Fields) -> Look:
    """The machine's words as values, or `BadInput` naming the field that is none."""
    return Look(
        at=float(said.seconds("at", 1e12) or 0.0),
        python=said.text("python", TEXT_MAX), version=said.text("version", 40),
        user=said.text("user", 256), uid=said.whole("uid", 0, 2**32),
        account_home=said.text("account_home", TEXT_MAX), home=said.text("home", TEXT_MAX),
        system=said.text("system", 100), ssh_keygen=free_text(said, "ssh_keygen"),
        systemd=said.flag("systemd"), disk_free=said.whole("disk_free", 0, COUNT_MAX),
        files_free=said.whole("files_free", -1, COUNT_MAX),
        mounts=free_text(said, "mounts", MOUNTS_MAX),
        ways=_places(said, "ways"), strict=_places(said, "strict"),
        node=free_text(said, "node"), node_error=free_text(said, "node_error"),
        stop_grace_s=said.whole("stop_grace_s", 0, 86_400),
        node_toml=free_text(said, "node_toml", TOML_MAX),
        program=free_text(said, "program"), line=free_text(said, "line"),
        other_hubs=tuple(map(str, said.entries("other_hubs", 16))),
        keys_error=free_text(said, "keys_error"), keys_hint=free_text(said, "keys_hint"),
        run_as=free_text(said, "run_as"), run_as_error=free_text(said, "run_as_error"),
        run_there=said.flag("run_there"),
    )  # fmt: skip


def settings_there(look: Look) -> NodeSettings | None:
    """What its node.toml says; None: there is none, or none that this hub can read."""
    if not look.node_toml:
        return None
    try:
        return parse_settings(look.node_toml)
    except NodeError:
        return None


def free_text(said: Fields, name: str, longest: int = TEXT_MAX) -> str:
    """Text of any form, cut; empty where there is none. Whoever prints it makes it safe."""
    value: JsonValue = said.values.get(name)
    return value[:longest] if isinstance(value, str) else ""


def _places(said: Fields, name: str) -> tuple[Place, ...]:
    return tuple(
        Place(one.text("path", TEXT_MAX), one.text("kind", 20), one.whole("mode", 0, 0o7777),
              one.whole("uid", 0, 2**32), one.flag("group_alone"))
        for one in said.objects(name, WAYS_MAX)
    )  # fmt: skip
