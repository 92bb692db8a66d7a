"""Lets tasks go on whose files have come, and wait again for a file that is gone."""

from __future__ import annotations

from ..artifact_words import ArtifactCame, ArtifactGone
from ..task import State
from .artifact_inputs import mark
from .ends import settle, spread
from .senders import check_not_quarantined, check_sender
from .transaction import Transaction


def came(tx: Transaction, command: ArtifactCame) -> int:
    """A task that lacks nothing more becomes READY in this transaction."""
    sender = command.sender
    check_sender(tx, incarnation=sender.incarnation, term=sender.term)
    check_not_quarantined(tx)
    return _noted(tx, mark(tx, command.sha256, here=True))


def gone(tx: Transaction, command: ArtifactGone) -> int:
    """What was READY is PENDING again; what runs has what it needs."""
    return _noted(tx, mark(tx, command.sha256, here=False))


def _noted(tx: Transaction, uids: set[str]) -> int:
    if uids:
        tx.changed = True
        spread(tx, settle(tx, uids, State.PENDING, State.READY))
    return len(uids)
