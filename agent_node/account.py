"""Looks whether tasks run as a user of their own, tries that user for real, and says what to do."""

from __future__ import annotations

import os
import pwd
import shlex
from collections.abc import Iterator

from .checks import Check
from .config import NodeSettings
from .errands import ask_now
from .home import Home
from .other_user import (
    NoOtherUser,
    OtherUser,
    account_command,
    find_other_user,
    sudoers_line,
)
from .strict import JsonObject

USUAL = "arc-run"


def commands_for_root(name: str) -> list[str]:
    """What root types, once, so that this user's node can run tasks as `name`; in this order."""
    commands = []
    user = _account(name)
    if user is None:
        commands.append(account_command(name))
        user = OtherUser(name, -1, -1, f"/var/lib/{name}")
    if os.geteuid() != 0:
        file = f"/etc/sudoers.d/agent-node-{name}"
        rule = shlex.quote(sudoers_line(_own_name(), user))
        commands.append(f"printf '%s\\n' {rule} > {file} && chmod 0440 {file} && visudo -c")
    return commands


def try_account(home: Home, name: str) -> OtherUser:
    """The account, once a process of ours has run as it; `NoOtherUser` with what to type."""
    user = find_other_user(name)
    problem = what_is_wrong(home, user)
    if problem is not None:
        text, fix = problem
        error = NoOtherUser(f"run_as: {text}")
        error.hint = fix
        raise error
    return user


def what_is_wrong(home: Home, user: OtherUser) -> tuple[str, str] | None:
    """What keeps tasks from running as this user, and what would mend it; None: nothing does."""
    said: JsonObject | None
    said = ask_now(user, {"do": "hello", "node": str(home.root), "folder": user.folder})
    as_root = f"as root: {'; '.join(commands_for_root(user.name))}"
    if said is None:
        return f"nothing could be started as {user.name}: sudo -n does not let us", as_root
    if said.get("uid") != user.uid:
        return f"what was started as {user.name} runs as another user", as_root
    if said.get("works") is not True:
        fix = f"as root: install -d -o {user.name} -m 0700 {user.home}"
        return f"{user.name} has no home where it could work: {user.home}", fix
    if said.get("enters") is not False:
        return f"{user.name} can enter {home.root}", f"chmod 0700 {home.root}"
    return None


def check_users(home: Home, settings: NodeSettings) -> Iterator[Check]:
    """One check for each account that runs tasks here; a node without one is told how."""
    names = {agent.run_as for agent in settings.agents if agent.run_as is not None}
    for name in sorted(names):
        yield _check(home, name)
    if all(agent.starter for agent in settings.agents):
        return
    who = "root" if os.geteuid() == 0 else "the node's own user"
    text = f"tasks run as {who} and could change the queue; an account of their own could not"
    yield Check("user", "note", text, _advice())


def _check(home: Home, name: str) -> Check:
    try:
        user = try_account(home, name)
    except NoOtherUser as error:
        return Check(f"user {name}", "finding", str(error), error.hint)
    text = f"uid {user.uid}, works in {user.folder}, cannot enter {home.root}"
    return Check(f"user {name}", "ok", text)


def _advice() -> str:
    try:
        commands = "; ".join(commands_for_root(USUAL))
    except NoOtherUser as error:
        return error.hint
    first = f"as root: {commands}; then " if commands else ""
    return f'{first}run_as = "{USUAL}" in node.toml'


def _account(name: str) -> OtherUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return OtherUser(name, entry.pw_uid, entry.pw_gid, entry.pw_dir)


def _own_name() -> str:
    """Sudoers takes a number for an account without a name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"#{os.geteuid()}"
