"""Names the rule by which a node counts as unseen, for every error that may keep it from us."""

from __future__ import annotations

from .decisions.domains import Role
from .decisions.view import NodeUnseen
from .errors import (
    AnswerUnreadable,
    ArcError,
    HostKeyChanged,
    HostKeyType,
    HostKeyUnknown,
    LoginRefused,
    NodeCannotServe,
    NodeRefused,
    NodeSilent,
    NodeUnreachable,
    NoNodeProgram,
    OtherHub,
    OutcomeUnknown,
    WrongNode,
    machine_failed,
)

# The first class that fits names the rule; a class stands before those it is a kind of.
RULES: tuple[tuple[type[ArcError], str], ...] = (
    (OtherHub, "other_hub"),
    (HostKeyChanged, "host_key"), (HostKeyUnknown, "host_key"), (HostKeyType, "host_key"),
    (LoginRefused, "login"), (NoNodeProgram, "no_node"), (NodeCannotServe, "cannot_serve"),
    (WrongNode, "wrong_node"),
    (NodeSilent, "silent"), (NodeUnreachable, "unreachable"), (OutcomeUnknown, "silent"),
    (AnswerUnreadable, "unreadable"), (NodeRefused, "refused"),
)  # fmt: skip


def silent_after(node: str, deadline_s: float) -> NodeSilent:
    """Nothing came, and nothing was changed."""
    return NodeSilent(node, f"no answer within {deadline_s:g}s; nothing changed there")


def broken(node: str, error: BaseException) -> ArcError:
    """What ended a look as none should; this machine may have no descriptors left, for one."""
    text = f"the look at it broke: {type(error).__name__}: {error}; nothing changed there"
    return machine_failed(error) or NodeUnreachable(node, text)


def unseen(node: str, role: Role, error: ArcError) -> NodeUnseen:
    """A node of which nothing is known now, and why."""
    return NodeUnseen(node, rule_of(error), str(error), error.code, role)


def unread(node: str, error: ArcError) -> tuple[NodeUnseen, ...]:
    """The node that this error kept from us; none where it answered, if with a no."""
    return () if isinstance(error, NodeRefused) else (unseen(node, Role(), error),)


def rule_of(error: ArcError) -> str:
    """The rule by which a node counts as unseen: unreachable, host_key, login, silent, …"""
    return next((rule for kind, rule in RULES if isinstance(error, kind)), "unreachable")
