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
FILES = {"ssh-ed25519": "ed25519", "ssh-rsa": "rsa"}


def how_to_see(key: HostKey) -> str:
    """What shows this key's fingerprint on the machine itself."""
    return f"ssh-keygen -lf /etc/ssh/ssh_host_{FILES.get(key.kind, 'ecdsa')}_key.pub"


def fingerprint_in(text: str) -> str:
    """The one fingerprint in what was pasted, which may be the whole line; empty: there is none."""
    found = _fingerprint(text)
    return found[0].rstrip("=") if found else ""


def confirm(node: str, where: str, key: HostKey, given: str, ask: Ask) -> str:
    """The confirmed fingerprint. Anything but this key's own raises; nothing was trusted then."""
    said = given or _asked(node, where, key, ask)
    pasted = fingerprint_in(said)
    if not pasted:
        shown = safe_text(said.strip(), 60) or "nothing"
        raise FingerprintWrong(
            f"{node}: {shown} is no fingerprint; nothing was trusted",
            hint=f"a yes proves nothing: run on the machine itself: {how_to_see(key)}, and paste "
            "its SHA256:…", where=node,
        )  # fmt: skip
    if pasted != key.fingerprint:
        raise FingerprintWrong(
            f"{node}: {where} shows {key}, and you gave {pasted}; nothing was trusted",
            hint="somebody may stand in between; or it is the fingerprint of another of its keys: "
            f"{how_to_see(key)}", where=node,
        )  # fmt: skip
    return pasted


def _asked(node: str, where: str, key: HostKey, ask: Ask) -> str:
    answer = ask(
        f"{node}: {where} shows this host key, which nobody has confirmed yet:\n"
        f"  {key}\n"
        f"on the machine itself (its console, or whoever set it up), this shows the true one:\n"
        f"  {how_to_see(key)}\n"
        "paste the fingerprint that you see there: "
    )
    if answer is None:
        raise WrongUse(
            f"{node}: {where} shows {key}, and nobody is here to confirm it; nothing was trusted",
            hint=f"on the machine itself: {how_to_see(key)}; then --fingerprint SHA256:…",
        )  # fmt: skip
    return answer
