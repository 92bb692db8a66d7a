"""What may go wrong while a machine joins or leaves; each says what may have changed."""

from __future__ import annotations

from agent_node.errors import NodeError
from agent_node.strict import JsonObject
from arc.errors import ArcError


class JoinRefused(ArcError):
    """The machine, or what is on it, is not fit for a node; this step changed nothing."""

    code = "ARC-JOIN"


class NoPython(JoinRefused):
    """No Python there is new enough for a node; nothing was changed there."""

    code = "ARC-JOIN-PYTHON"
    hint = "install one of python3.11, python3.12, python3.13 there; nothing else is needed"


class FingerprintWrong(ArcError):
    """The host key was not confirmed by its fingerprint; nothing was sent and nothing trusted."""

    code = "ARC-JOIN-FINGERPRINT"
    exit_code = 4


class KeyTooStrong(ArcError):
    """With the hub's key more could be done than to speak to the node; the key was taken out."""

    code = "ARC-JOIN-LOOSE"


class LeftUndone(ArcError):
    """A step failed with others done before it; which they are stands in the text.

    Its code and its exit code are those of the step's own error.
    """

    code = "ARC-JOIN"

    def __init__(
        self, cause: ArcError | NodeError, done: str, steps: tuple[JsonObject, ...]
    ) -> None:
        where = str(getattr(cause, "where", ""))
        super().__init__(f"{cause}; {done}", hint=cause.hint, where=where)
        self.code, self.exit_code, self.problems = cause.code, cause.exit_code, steps
