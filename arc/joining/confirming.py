"""Has the operator confirm a host key by its fingerprint; a yes proves nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

from agent_node.text import safe_text
from arc.errors import WrongUse
from arc.links.hostkeys import HostKey

from .errors import FingerprintWrong

Ask = Callable[[str], str | None]  # a question; None: there is nobody to ask
_fingerprint = re.compile(r"SHA256:[A-Za-z0-9+/]{43}(?![A-Za-z0-9+/])=?").search
HOW_TO_SEE = 'for f in /etc/ssh/*key*.pub; do ssh-keygen -lf "$f"; done'
"""What shows the fingerprints of a machine's own keys on it, wherever sshd has them usually."""


def fingerprint_in(text: str) -> str:
    """The one fingerprint in what was pasted, which may be the whole line; empty: there is none."""
    found = _fingerprint(text)
    return found[0].rstrip("=") if found else ""


def confirm(
    node: str, where: str, key: HostKey, given: str, ask: Ask, *, pinned: HostKey | None = None
) -> str:
    """The confirmed fingerprint. Anything but this key's own raises; nothing was trusted then.

    `pinned` is the key that is trusted until now; whoever is asked sees both.
    """
    said = given or _asked(node, where, key, pinned, ask)
    pasted = fingerprint_in(said)
    if not pasted:
        shown = safe_text(said.strip(), 60) or "nothing"
        raise FingerprintWrong(
            f"{node}: {shown} is no fingerprint; nothing was trusted",
            hint=f"a yes proves nothing: run on the machine itself: {HOW_TO_SEE}; and paste the "
            f"SHA256:… of its {key.kind} key", where=node,
        )  # fmt: skip
    if pasted != key.fingerprint:
        raise FingerprintWrong(
            f"{node}: {_shown(where, key, pinned)}, and you gave {pasted}; nothing was trusted",
            hint="somebody may stand in between; or it is the fingerprint of another of its keys: "
            f"{HOW_TO_SEE}", where=node,
        )  # fmt: skip
    return pasted


def _shown(where: str, key: HostKey, pinned: HostKey | None) -> str:
    another = pinned is not None and pinned != key
    return f"{where} shows {key}" + (f", and another key is pinned, {pinned}" if another else "")


def _asked(node: str, where: str, key: HostKey, pinned: HostKey | None, ask: Ask) -> str:
    told = f"this host key, which nobody has confirmed yet:\n  {key}"
    if pinned is not None and pinned != key:
        told = f"another host key than the one that is pinned:\n  now     {key}\n  pinned  {pinned}"
    answer = ask(
        f"{node}: {where} shows {told}\n"
        "on the machine itself (its console, or whoever set it up), this shows the true one:\n"
        f"  {HOW_TO_SEE}\n"
        "paste the fingerprint that you see there: "
    )
    if answer is None:
        raise WrongUse(
            f"{node}: {_shown(where, key, pinned)}, and nobody is here to confirm it; nothing was "
            "trusted", hint=f"on the machine itself: {HOW_TO_SEE}; then --fingerprint SHA256:…",
        )  # fmt: skip
    return answer
