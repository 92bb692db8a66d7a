"""Judges whether a node can live on a machine as it was seen; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent_node.mounts import file_system_of, is_network
from agent_node.other_user import account_command
from agent_node.text import safe_text, size

from .look import Look, Place, settings_there
from .wanted import Wanted

MIB = 1024 * 1024
ROOM = 4 * MIB  # beside the program: an empty queue, settings, logs
FLOOR = 1024 * MIB  # below this a node claims nothing, unless its node.toml says otherwise
OTHERS, GROUP, STICKY = 0o002, 0o020, 0o1000
SHOWN_MAX = 300
_home_in = re.compile(r'(/\S+)/program/agent-node\.pyz serve --stdio"').search


@dataclass(frozen=True)
class Finding:
    """What is not as it should be; `stops`: with it nothing is set up."""

    rule: str
    text: str
    hint: str = ""
    stops: bool = True


def judge(look: Look, wanted: Wanted, *, program_bytes: int) -> tuple[Finding, ...]:
    """Everything that speaks against this machine, in the order in which a person would mend it."""
    said = [_system(look), _other_node(look, wanted), _other_home(look),
            _file_system(look),
            *(_way(look, place) for place in look.ways),
            *(_strict(look, place) for place in look.strict), _keys(look),
            _space(look, program_bytes), _run_as(look, wanted), _run(look, wanted),
            _other_hub(look, wanted),
            _keygen(look)]  # fmt: skip
    return tuple(one for one in said if one is not None)


def _system(look: Look) -> Finding | None:
    if look.system == "Linux":
        return None
    return Finding("system", f"it runs {safe_text(look.system, 40)}; nodes run on Linux")


def _other_node(look: Look, wanted: Wanted) -> Finding | None:
    if look.node_error:
        return Finding("node_toml", safe_text(look.node_error, SHOWN_MAX), "mend or move it there")
    if look.node in {"", wanted.name}:
        return None
    return Finding("other_node", f"{look.home} is already the home of "
                   f"{safe_text(look.node, 40)}, not of {wanted.name}",
                   "add it under that name, or name another folder with --home")  # fmt: skip


def _other_home(look: Look) -> Finding | None:
    """A key has one line, and a line starts one program: a second node would take the first's."""
    found = _home_in(look.line)
    if found is None or found[1] == look.home:
        return None
    return Finding("other_home", f"the hub's key starts the node of {safe_text(found[1], 200)} for "
                   f"{safe_text(look.user, 40)} already, and can start one alone",
                   "an account of its own for this one; or first: arc nodes remove NAME, which "
                   "takes that line out")  # fmt: skip


def _file_system(look: Look) -> Finding | None:
    path = look.ways[-1].path if look.ways else "/"
    kind = file_system_of(path, look.mounts)
    if not is_network(kind):
        return None
    return Finding("network_disk", f"{look.home} lies on {safe_text(kind, 40)}, where locks and "
                   "fsync cannot be relied upon", "--home PATH on a local disk")  # fmt: skip


def _way(look: Look, place: Place) -> Finding | None:
    """Who may write a folder above the home may put another one in its place."""
    path = safe_text(place.path, SHOWN_MAX)
    if place.kind != "folder":
        return Finding("home", f"{path} is a {place.kind}, not a folder", "--home PATH")
    if place.uid not in {0, look.uid}:
        return Finding("home_not_yours", f"{path} belongs to user {place.uid}, who could put "
                       "another node in the place of this one", "--home PATH")  # fmt: skip
    last = place.path == look.home
    if last and place.mode & 0o077:
        return Finding("home_open", f"{path} can be reached by others (mode {place.mode:04o})",
                       f"there: chmod 700 {path}")  # fmt: skip
    if place.mode & OTHERS and not place.mode & STICKY:
        return Finding("open_folder", f"everybody may write {path} (mode {place.mode:04o}), and so "
                       "put another node in the place of this one",
                       f"there: chmod o-w {path}; or --home PATH")  # fmt: skip
    return None


def _strict(look: Look, place: Place) -> Finding | None:
    """What sshd's StrictModes does not like makes it ignore every key, without a word."""
    path = safe_text(place.path, SHOWN_MAX)
    open_to = place.mode & OTHERS or (place.mode & GROUP and not place.group_alone)
    if place.kind == "link" or not (open_to or place.uid not in {0, look.uid}):
        return None
    return Finding("strict_modes", f"others may write {path} (mode {place.mode:04o}, user "
                   f"{place.uid}): sshd ignores keys that lie there",
                   f"there: chmod go-w {path}")  # fmt: skip


def _keys(look: Look) -> Finding | None:
    if not look.keys_error:
        return None
    return Finding("keys_file", safe_text(look.keys_error, SHOWN_MAX),
                   safe_text(look.keys_hint, SHOWN_MAX))  # fmt: skip


def _space(look: Look, program_bytes: int) -> Finding | None:
    needed = ROOM + 2 * program_bytes
    if look.disk_free < needed:
        return Finding("no_space", f"{size(look.disk_free)} are free at {look.home}, a node needs "
                       f"{size(needed)} to begin with", "free some space there")  # fmt: skip
    if look.files_free == 0:
        return Finding("no_space", f"no file can be made at {look.home}: no inode is free",
                       "remove files there")  # fmt: skip
    there = settings_there(look)
    floor, whose = (FLOOR, "a node") if there is None else (there.disk_floor, "this node")
    if look.disk_free >= floor:
        return None
    return Finding("little_space", f"{size(look.disk_free)} are free at {look.home}; below "
                   f"{size(floor)} {whose} claims nothing", "free some space there, or set "
                   "disk_floor in its node.toml", stops=False)  # fmt: skip


def _run(look: Look, wanted: Wanted) -> Finding | None:
    """What it runs is known to this login's PATH, if to any; a daemon may be given another."""
    if look.run_there or not wanted.program:
        return None
    word = safe_text(wanted.program, 200)
    where = "there is none" if "/" in word else f"not on the PATH of {safe_text(look.user, 40)}"
    return Finding("run", f"--run {word}: {where}, so tasks could not start",
                   "install it there, or name its whole path in node.toml",
                   stops=False)  # fmt: skip


def _run_as(look: Look, wanted: Wanted) -> Finding | None:
    """Whether the account works is tried by `agent-node init`, which knows all of root's commands;
    so that an account which is missing stops nothing here.
    """
    user = wanted.run_as
    if look.run_as_error == "missing":
        return Finding("run_as", f"there is no account {user}",
                       f"there, as root: {account_command(user)}", stops=False)  # fmt: skip
    if look.run_as_error == "no_sudo":
        return Finding("run_as", f"sudo is not installed, by which {look.user} would start tasks "
                       f"as {user}", "there, as root: apt install sudo")  # fmt: skip
    return None


def _other_hub(look: Look, wanted: Wanted) -> Finding | None:
    if not look.other_hubs:
        return None
    return Finding("other_hub", f"the key of another hub is let in there already "
                   f"({len(look.other_hubs)}); two hubs would both move its tasks",
                   f"take its line out of authorized_keys of {look.user}, or add with --yes",
                   stops=not wanted.yes)  # fmt: skip


def _keygen(look: Look) -> Finding | None:
    if look.ssh_keygen:
        return None
    return Finding("no_keygen", "ssh-keygen is not there: `arc nodes upgrade` will be refused, as "
                   "signatures cannot be checked", "there: apt install openssh-client",
                   stops=False)  # fmt: skip
