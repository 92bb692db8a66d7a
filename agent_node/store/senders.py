"""Refuses the word of who is not to be obeyed: one of an earlier life, or of another hub."""

from __future__ import annotations

from ..errors import Refused
from .transaction import NodeRow, Transaction


def check_sender(tx: Transaction, *, incarnation: str | None, term: int | None) -> None:
    """Refuse a word meant for an earlier life of this node, or from a hub that was replaced."""
    if incarnation is not None and incarnation != tx.node.incarnation:
        raise Refused(
            "other_incarnation",
            f"{tx.node.name} is now {tx.node.incarnation}, not {incarnation}; nothing changed",
            "other_incarnation",
        )
    check_term(tx, term)


def check_term(tx: Transaction, term: int | None) -> None:
    """Refuse a hub whose term is lower than one that was seen here."""
    if term is None or tx.obeyed == (term, tx.instance):
        return
    node = tx.node
    if term < node.term:
        raise Refused(
            "old_term",
            f"{node.name} has seen term {node.term} of hub {node.hub};"
            f" this one says {term}; nothing changed",
            "old_term",
        )
    if is_other_hub(node, term, tx.instance):
        raise Refused("other_hub", other_hub(node), "other_hub")
    tx.obeyed = (term, tx.instance)


def is_other_hub(node: NodeRow, term: int, instance: str | None) -> bool:
    """Whether another hub spoke here first with this very term. Who names no instance is believed:
    an older hub does not know the word.
    """
    known = node.hub_instance
    return term == node.term and None not in (known, instance) and instance != known


def other_hub(node: NodeRow) -> str:
    """Why the second of two hubs with one term is refused."""
    return (
        f"{node.name} obeys another hub of term {node.term} that is named {node.hub}; nothing"
        " changed; end one of the two, or let this one take over with a higher term"
    )


def check_not_quarantined(tx: Transaction) -> None:
    """Refuse what would change anything on a node whose tasks may live elsewhere."""
    if tx.node.state == "quarantined":
        text = f"{tx.node.name} is quarantined: {tx.node.reason}"
        raise Refused("quarantined", text, "quarantined")
