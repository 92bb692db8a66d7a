"""Every error the hub raises, drawn as a tree; each says what may have changed."""

from __future__ import annotations

import errno
import traceback
from typing import Self

from agent_node.strict import JsonObject


class ArcError(Exception):
    """The root: whatever the hub itself raises. `code` is for machines, the text for people."""

    code = "ARC-FAILED"
    exit_code = 1
    hint = ""

    def __init__(self, message: str, *, hint: str = "", where: str = "") -> None:
        super().__init__(message)
        self.hint = hint or self.hint
        self.where = where

    def hinting(self, hint: str, *, where: str = "") -> Self:
        """The same error with this hint. A link raises one error many times: it stays as it is."""
        other = type(self).__new__(type(self), *self.args)
        other.__dict__.update(self.__dict__, hint=hint, where=where or self.where)
        return other


class WrongUse(ArcError):
    """The words of a command make no sense; nothing was done."""

    code = "ARC-USAGE"
    exit_code = 2


class BadSettings(ArcError):
    """fleet.yaml says something that cannot be obeyed; nothing was changed.

    The message names every fault, each on lines of its own and safe to print; `problems` are the
    same for machines: code, message, where, line, column, hint.
    """

    code = "ARC-CFG"
    exit_code = 2

    def __init__(
        self, message: str, *, hint: str = "", where: str = "",
        problems: tuple[JsonObject, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(message, hint=hint, where=where)
        self.problems = problems


class BadGraph(BadSettings):
    """A graph's file says something that cannot be carried out; nothing was added."""

    code = "ARC-GRAPH"


class NoFleet(ArcError):
    """There is no fleet.yaml here; nothing was done."""

    code = "ARC-NO-FLEET"
    exit_code = 2
    hint = "try: arc demo   ·   start a fleet here: arc init   ·   or name one: arc --fleet FILE"


class CannotInit(ArcError):
    """The folder is no place for a fleet, or cannot be written; what was made so far stays."""

    code = "ARC-INIT"


class NotFound(ArcError):
    """No such task, node or sensor, and every node was asked; nothing was done."""

    code = "ARC-NOT-FOUND"
    exit_code = 5


class NotFoundYet(ArcError):
    """It was not found, but some node could not be asked: it may be there. Nothing was done."""

    code = "ARC-NOT-FOUND-YET"
    exit_code = 3


class Ambiguous(ArcError):
    """Several tasks fit the short form that was typed; nothing was done."""

    code = "ARC-AMBIGUOUS"
    exit_code = 2


class NeedsWord(ArcError):
    """Refused for safety: it needs a person's word, such as `--yes` or a reason."""

    code = "ARC-NEEDS-YES"
    exit_code = 7


class OtherHub(ArcError):
    """Another hub holds the lease or speaks with a higher term; nothing was done by this one."""

    code = "ARC-OTHER-HUB"
    exit_code = 8


class OtherFleet(ArcError):
    """The hub that answers here serves another fleet.yaml; nothing was done."""

    code = "ARC-OTHER-FLEET"
    exit_code = 8


class WaitedTooLong(ArcError):
    """What was waited for did not come in time; what was begun goes on."""

    code = "ARC-TIMEOUT"
    exit_code = 9


class Interrupted(ArcError):
    """Ctrl-C came while a change was asked for; whether it happened is not known here."""

    code = "ARC-INTERRUPTED"
    exit_code = 130
    hint = "look with arc log, arc tasks list or arc status; what has a --key may be typed again"


class StateBroken(ArcError):
    """The hub's own state folder cannot be used as it is; nothing was done."""

    code = "ARC-STATE"


class NoHistory(ArcError):
    """There is no journal here, or one that never kept a history; nothing was read or changed."""

    code = "ARC-NO-HISTORY"
    hint = "history is written while a hub runs: arc up"


class MachineFailed(ArcError):
    """The machine that this runs on: disk full or unreadable, no descriptors or memory left.

    What was under way may have happened.
    """

    code = "ARC-MACHINE"
    hint = "look at this machine (df, dmesg, ulimit -n); the next cycle settles what was left"


# What a file system or a kernel says when it is at its end; any other OSError is a fault of ours.
_AT_ITS_END = frozenset({errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE,
                         errno.ENFILE, errno.ENOMEM})  # fmt: skip


def machine_failed(error: BaseException) -> MachineFailed | None:
    """What a person should read of it; None: this machine is not what failed."""
    if not isinstance(error, OSError) or error.errno not in _AT_ITS_END:
        return None
    what = f"{error.filename}: " if isinstance(error.filename, str) else ""
    text = f"this machine failed: {what}{error.strerror}"
    return MachineFailed(f"{text}; what was under way may have happened")


class SensorBroken(ArcError):
    """A sensor cannot be used: it is none, its name is taken, or it failed. Others run on."""

    code = "ARC-SENSOR"


# --- Reaching a node ------------------------------------------------------------------------------


class LinkError(ArcError):
    """Something between the hub and one node; the others are not concerned."""

    code = "ARC-LINK"
    exit_code = 3

    def __init__(self, node: str, message: str, *, hint: str = "") -> None:
        super().__init__(f"{node}: {message}", hint=hint, where=node)
        self.node = node


class NodeUnreachable(LinkError):
    """No contact was made. Nothing changed on the node; trying again is safe."""

    code = "ARC-SSH-UNREACHABLE"


class HostKeyChanged(NodeUnreachable):
    """The node showed another host key than the pinned one; not a byte was sent to it."""

    code = "ARC-SSH-HOSTKEY"
    exit_code = 4


class HostKeyUnknown(NodeUnreachable):
    """No host key is pinned for the node; not a byte was sent to it."""

    code = "ARC-SSH-HOSTKEY-UNKNOWN"
    exit_code = 4


class HostKeyType(NodeUnreachable):
    """The node offers only host keys of another type than the pinned one; nothing was sent."""

    code = "ARC-SSH-HOSTKEY-TYPE"
    exit_code = 4


class LoginRefused(NodeUnreachable):
    """The node did not take the hub's key; nothing changed there."""

    code = "ARC-SSH-LOGIN"
    exit_code = 4


class NoNodeProgram(NodeUnreachable):
    """The login worked, but no agent-node answered behind it; nothing was asked."""

    code = "ARC-SSH-NO-NODE"


class NodeCannotServe(NodeUnreachable):
    """The node's program answered that it cannot serve, in its own words; nothing was asked.

    `told` is the code of the node's own error.
    """

    code = "ARC-CANNOT-SERVE"

    def __init__(self, node: str, message: str, *, hint: str = "", told: str = "") -> None:
        super().__init__(node, message, hint=hint)
        self.told = told


class WrongNode(NodeUnreachable):
    """Another node answered than the one meant; nothing was asked of it."""

    code = "ARC-WRONG-NODE"
    hint = "in fleet.yaml, correct its host and port, or its name"


class NodeSilent(NodeUnreachable):
    """A question that changes nothing was not answered in time."""

    code = "ARC-SILENT"


class OutcomeUnknown(LinkError):
    """The request left, no answer came. Ask the node about it before all else."""

    code = "ARC-OUTCOME-UNKNOWN"

    def __init__(self, node: str, doing: str, because: str) -> None:
        super().__init__(node, f"sent {doing}, no answer ({because}); it may have happened",
                         hint=f"before you say it again, look what stands: arc nodes show {node}"
                         if node != "inbox" else "")  # fmt: skip
        self.doing = doing


class AnswerUnreadable(LinkError):
    """What came back is no answer of ours: the node lies, is broken, or speaks another version."""

    code = "ARC-ANSWER"


class NodeRefused(LinkError):
    """The node said no, with its own rule and reason; nothing changed there."""

    code = "ARC-REFUSED"
    exit_code = 1

    def __init__(self, node: str, rule: str, because: str, *, hint: str = "") -> None:
        super().__init__(node, f"{rule}: {because}", hint=hint)
        self.rule, self.because = rule, because


def fault_of(error: BaseException) -> str:
    """Where in the code an unforeseen error was raised: file, line and function."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "?"
    last = frames[-1]
    return f"{'/'.join(last.filename.split('/')[-2:])}:{last.lineno} {last.name}"
