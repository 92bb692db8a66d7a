"""What the page cannot do for whoever asks it, each with the status that HTTP has for it."""

from __future__ import annotations

from collections.abc import Mapping

from arc.errors import ArcError


class NoHubRuns(ArcError):
    """No hub answers here. Nothing was changed; what was seen before is all there is."""

    code = "ARC-NO-HUB"
    exit_code = 8
    hint = "start it: arc up"


class TurnedAway(ArcError):
    """A request that the page does not let through; nothing was done."""

    code = "ARC-WEB-REFUSED"
    exit_code = 7
    status = 403

    def __init__(
        self, status: int, message: str, *, hint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message, hint=hint)
        self.status = status
        self.headers = headers or {}


class Crowded(ArcError):
    """Too many ask at once; nothing was done, asking again in a moment is fine."""

    code = "ARC-WEB-CROWDED"
    exit_code = 9


class Fault(ArcError):
    """A mistake of ours, not of whoever asks; the page runs on."""

    code = "ARC-FAULT"
    hint = "the page runs on; please report this line"


STATUS: dict[str, int] = {
    "ARC-NO-HUB": 503, "ARC-OTHER-HUB": 503, "ARC-OTHER-FLEET": 503, "ARC-TIMEOUT": 504,
    "ARC-NOT-FOUND": 404, "ARC-NOT-FOUND-YET": 404, "ARC-NO-HISTORY": 404,
    "ARC-USAGE": 400, "ARC-AMBIGUOUS": 400,
    "ARC-NEEDS-YES": 409, "ARC-WEB-PLAN": 409,
    "ARC-WEBHOOK": 422, "ARC-WEBHOOK-REPLAYED": 409, "ARC-WEBHOOK-CONFLICT": 409,
    "ARC-SECRET": 500, "ARC-WEB-CROWDED": 503,
}  # fmt: skip


def status_of(error: ArcError) -> int:
    """What HTTP says of an error: who asked is wrong (4xx), or it could not be done (5xx)."""
    if isinstance(error, TurnedAway):
        return error.status
    usage = 2
    return STATUS.get(error.code, 400 if error.exit_code == usage else 500)
