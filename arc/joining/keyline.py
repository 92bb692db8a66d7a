"""Writes the one line that lets the hub in: one program, and nothing else; pure."""

from __future__ import annotations

from arc.errors import StateBroken

from .there.words import is_plain_path

USUAL = ".agent-node"


def forced_command(python: str, home: str, account_home: str) -> str:
    """What runs whatever the hub asks for. A login shell reads it: plain words alone may stand in.

    The link to the program is named, so that an upgrade changes no line.
    """
    program = f"{home}/program/agent-node.pyz"
    for path in (python, program):
        if not is_plain_path(path):
            raise ValueError(f"{path!r} is no plain path, and a shell reads it")
    command = f"{python} -I -S {program} serve --stdio"
    usual = f"{account_home.rstrip('/')}/{USUAL}"
    return command if home == usual else f"/usr/bin/env AGENT_NODE_HOME={home} {command}"


def key_line(public: str, command: str, *, source: str, comment: str) -> str:
    """The whole line of authorized_keys; `source`: the only addresses it is taken from."""
    kind, blob = split_key(public)
    limits = f'from="{source}",' if source else ""
    return f'restrict,{limits}command="{command}" {kind} {blob} {comment}'


def split_key(public: str) -> tuple[str, str]:
    """Type and key of a public key's line."""
    words = public.split()
    if len(words) < 2 or words[0] != "ssh-ed25519":  # noqa: PLR2004 - a type and a key
        raise StateBroken("the hub's own key is no ed25519 key", hint="make one with: arc init")
    return words[0], words[1]
