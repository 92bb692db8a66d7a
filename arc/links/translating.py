"""Turns what went wrong on the way to a node into words a person can act on; pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent_node.text import safe_text
from arc.errors import (
    HostKeyChanged,
    HostKeyType,
    HostKeyUnknown,
    LoginRefused,
    NodeUnreachable,
)

from .hostkeys import HostKey

TCP, BANNER, KEYS, LOGIN, START = "tcp", "banner", "keys", "login", "start"
STAGES = {
    TCP: "no connection to {where} yet",
    BANNER: "connected to {where}, but no SSH banner has come",
    KEYS: "exchanging keys with {where}",
    LOGIN: "logging in to {where}",
    START: "starting agent-node behind {where}",
}
LISTS = "see MaxStartups and PerSourceMaxStartups of its sshd, and what blocks addresses there"
SESSIONS = "see MaxSessions of its sshd; the hub needs one session"
SEE_SSHD = "the reason stands in the log of its sshd: journalctl -u ssh"
UPDATE = "update its sshd: OpenSSH 9.6, or any package of a distribution since January 2024"
FROZEN = "the machine, or the network between, stands still"
KEEPALIVE = "keepalive"  # stands in the text of what asyncssh raises then; words only
REASON_MAX = 200


@dataclass(frozen=True)
class Failure:
    """What is known of a way that led nowhere."""

    where: str  # user@host:port
    stage: str
    kind: str  # the name of the exception's class
    reason: str  # its text, which may be empty
    seconds: float  # the limit, where time ran out
    pinned: HostKey | None = None
    offered: HostKey | None = None  # None: no key was seen

    @property
    def may_be_about_keys(self) -> bool:
        """The other side left in the key exchange: perhaps it has no key of the pinned type."""
        return self.stage == KEYS and self.offered is None and self.kind != "TimeoutError"


def explain(node: str, failure: Failure) -> NodeUnreachable:
    """The error for this failure. Nothing was asked of the node, whichever it is."""
    about_keys = _about_keys(node, failure)
    if about_keys is not None:
        return about_keys
    by_kind = _BY_KIND.get(failure.kind)
    if by_kind is not None:
        return by_kind(node, failure)
    return _left(node, failure)


def not_strict(node: str, where: str) -> NodeUnreachable:
    """The other side is too old to protect the exchange of keys itself (CVE-2023-48795)."""
    text = f"{where} does not take part in strict key exchange, so messages could be cut out"
    return NodeUnreachable(node, f"{text}; nothing was asked", hint=UPDATE)


def lost(reason: str) -> str:
    """How a connection ended that had been up, in words; `reason` may be empty."""
    if KEEPALIVE in reason:
        return f"the SSH connection gave no sign of life to keepalive questions: {FROZEN}"
    return f"the SSH connection was lost: {safe_text(reason, REASON_MAX) or 'no reason given'}"


def _about_keys(node: str, failure: Failure) -> NodeUnreachable | None:
    pinned, offered, where = failure.pinned, failure.offered, failure.where
    if offered is None or offered == pinned:
        return None
    if pinned is None:
        return HostKeyUnknown(
            node,
            f"no host key is trusted for it yet; {where} offers {offered}; nothing was sent",
            hint="compare with ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub on the machine itself,"
            f" {_to_trust(node)}",
        )
    if pinned.kind != offered.kind:
        return HostKeyType(
            node,
            f"the trusted host key is {pinned}, {where} offers only another type: {offered};"
            " nothing was sent",
            hint="did its sshd lose a key file? ask the machine itself,"
            f" {_to_trust(node)}",
        )
    return HostKeyChanged(
        node,
        f"{where} presented a different host key: {offered.fingerprint} instead of {pinned};"
        " nothing was sent",
        hint="somebody may stand in between, or the machine was set up anew; ask the machine"
        f" itself, {_to_trust(node)}",
    )


def _to_trust(node: str) -> str:
    """What a person types, once the machine itself showed a fingerprint. Ours is not copied into
    it: it has to come from there.
    """
    return f"then: arc nodes trust {node} --fingerprint SHA256:…"


def _login_refused(node: str, failure: Failure) -> NodeUnreachable:
    text = f"{failure.where} did not take the hub's key: missing, expired or revoked there"
    return LoginRefused(node, f"{text}, kept to another address, or the account is locked",
                        hint=SEE_SSHD)  # fmt: skip


def _port_refused(node: str, failure: Failure) -> NodeUnreachable:
    return NodeUnreachable(node, f"nobody listens at {failure.where} (connection refused)",
                           hint="see on that machine that sshd runs, and at which port")


def _no_such_host(node: str, failure: Failure) -> NodeUnreachable:
    return NodeUnreachable(node, f"the name in {failure.where} is not known{_said(failure)}")


def _too_late(node: str, failure: Failure) -> NodeUnreachable:
    doing = STAGES[failure.stage].format(where=failure.where)
    return NodeUnreachable(node, f"gave up after {failure.seconds:g}s: {doing}")


def _no_common(node: str, failure: Failure) -> NodeUnreachable:
    return NodeUnreachable(node, f"{failure.where} speaks no SSH that we take{_said(failure)}")


def _no_session(node: str, failure: Failure) -> NodeUnreachable:
    text = f"{failure.where} took the login and refused a session{_said(failure)}"
    return NodeUnreachable(node, text, hint=SESSIONS)


def _left(node: str, failure: Failure) -> NodeUnreachable:
    """The other side closed the connection, or something that has no words of its own."""
    if KEEPALIVE in failure.reason:
        return NodeUnreachable(node, f"{failure.where} gave no sign of life: {FROZEN}")
    if failure.stage == BANNER:
        text = f"{failure.where} closed the connection before its SSH banner{_said(failure)}"
        return NodeUnreachable(node, f"{text}; too many logins at once?", hint=LISTS)
    doing = STAGES[failure.stage].format(where=failure.where)
    text = f"the connection ended: {doing}{_said(failure)}"
    if failure.may_be_about_keys:
        # Who finds nothing in common just leaves, and may have left before we have found the same.
        return NodeUnreachable(node, f"{text}; perhaps it speaks no SSH that we take",
                               hint=SEE_SSHD)  # fmt: skip
    return NodeUnreachable(node, text)


def _said(failure: Failure) -> str:
    reason = safe_text(failure.reason.strip(), REASON_MAX)
    return f": {reason}" if reason else f" ({failure.kind})"


_BY_KIND = {
    "PermissionDenied": _login_refused,
    "ConnectionRefusedError": _port_refused,
    "gaierror": _no_such_host,
    "TimeoutError": _too_late,
    "KeyExchangeFailed": _no_common,
    "ProtocolNotSupported": _no_common,
    "ChannelOpenError": _no_session,
}
