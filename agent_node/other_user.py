"""Knows the user that tasks run as: who it is, how to become it, and with which Python."""

from __future__ import annotations

import os
import pwd
import re
import stat
import sys
from functools import cache
from typing import NamedTuple

from .errors import NodeError
from .workplace import RUN_FOLDER

NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")

# The whole program on the command line, so that one rule of sudoers can name it to the letter.
# What it runs comes over its stdin, which is a socket that only this node holds.
FIRST_WORDS = "import os;exec(os.read(0,65536))"
_PLACES = ("/usr/bin", "/usr/local/bin", "/opt/python/bin")
_VERSIONS = ("3.13", "3.12", "3.11")
_SUDOERS_SPECIAL = re.compile(r"([,:=\\])")


class NoOtherUser(NodeError):
    """Tasks are to run as a user that cannot be had here; nothing was started."""

    code = "no_other_user"
    exit_code = 2


class OtherUser(NamedTuple):
    """An account that runs tasks and owns nothing of the node's."""

    name: str
    uid: int
    gid: int
    home: str

    @property
    def folder(self) -> str:
        """Where what its tasks work on lies, and the command that they speak to the node with."""
        return f"{self.home}/{RUN_FOLDER}"

    def place(self, uid: str, n: int) -> str:
        """Where everything of one attempt lies that is this user's."""
        return f"{self.folder}/{uid}-{n}"


@cache
def find_other_user(name: str) -> OtherUser:
    """The account of this name; `NoOtherUser`, with what to type, where it can run nothing."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError as error:
        missing = NoOtherUser(f"run_as: this machine has no user {name}")
        missing.hint = f"as root: {account_command(name)}; then look again: agent-node doctor"
        raise missing from error
    if entry.pw_uid in (0, os.geteuid()):
        why = "is root" if entry.pw_uid == 0 else "is the node's own user"
        raise NoOtherUser(f"run_as: {name} {why}; name an account that owns nothing of the node's")
    return OtherUser(name, entry.pw_uid, entry.pw_gid, entry.pw_dir)


@cache
def command_as(user: OtherUser) -> tuple[str, ...]:
    """What to start; root becomes the user by itself, everybody else is let through by sudo."""
    words = (python_for(user), "-I", "-S", "-c", FIRST_WORDS)
    if os.geteuid() == 0:
        return words
    return ("sudo", "-n", "-u", user.name, "--", *words)


def account_command(name: str) -> str:
    """What root types to make the account: a home of its own, no password, no login."""
    return (
        f"useradd --system --create-home --home-dir /var/lib/{name} "
        f"--shell /usr/sbin/nologin {name}"
    )


def sudoers_line(owner: str, user: OtherUser) -> str:
    """The narrowest rule that works: one account may start this one program as one other."""
    words = _SUDOERS_SPECIAL.sub(r"\\\1", FIRST_WORDS)
    return f"{owner} ALL=({user.name}) NOPASSWD: {python_for(user)} -I -S -c {words}"


@cache
def python_for(user: OtherUser) -> str:
    """A Python that the user may start: our own where it can be reached, else the machine's."""
    for path in (os.path.realpath(sys.executable), *_machine_pythons()):
        if may_reach(path, user, stat.S_IXOTH) and _has_library(path, user):
            return path
    missing = NoOtherUser(
        f"run_as: {user.name} can start no Python here: {sys.executable} lies where it cannot look"
    )
    missing.hint = "install one for all, such as /usr/bin/python3.11 (apt-get install python3)"
    raise missing


def _machine_pythons() -> list[str]:
    named = [f"{place}/python{version}" for version in _VERSIONS for place in _PLACES]
    return [os.path.realpath(path) for path in named if os.path.exists(path)]


def _has_library(path: str, user: OtherUser) -> bool:
    """Our own interpreter's library may lie elsewhere; a machine's own is where it belongs."""
    if path != os.path.realpath(sys.executable):
        return True
    return may_reach(os.path.realpath(os.__file__), user, stat.S_IROTH)


def may_reach(path: str, user: OtherUser, wanted: int) -> bool:
    """Whether the modes let the user through to `path`, and there do what `wanted` says.

    `wanted` is in bits of "others". Only the account's first group counts: rather too few than
    too many.
    """
    try:
        abouts = [os.stat(place) for place in _upward(os.path.realpath(path))]
    except OSError:
        return False
    last, *above = abouts
    return _grants(last, user, wanted) and all(_grants(one, user, stat.S_IXOTH) for one in above)


def _upward(path: str) -> list[str]:
    places = [path]
    while places[-1] != "/":
        places.append(os.path.dirname(places[-1]))
    return places


def _grants(about: os.stat_result, user: OtherUser, wanted: int) -> bool:
    if about.st_uid == user.uid:
        wanted <<= 6
    elif about.st_gid == user.gid:
        wanted <<= 3
    return about.st_mode & wanted == wanted
