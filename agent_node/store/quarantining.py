"""Stops a node whose tasks may live elsewhere, and lets it go again; hears the hub's hello."""

from __future__ import annotations

import json

from ..clock import iso
from ..errors import Refused
from ..moves import Hello, Quarantine, Release
from ..task import State
from ..ulid import later_ulid
from .history import file_attempt
from .senders import check_sender, is_other_hub, other_hub
from .transaction import Transaction, may_change


def quarantine(tx: Transaction, command: Quarantine) -> None:
    """Nothing runs and nothing changes here any more, under a new incarnation."""
    check_sender(tx, incarnation=command.sender.incarnation, term=command.sender.term)
    enter_quarantine(tx, command.reason, by=command.sender.by)


def enter_quarantine(tx: Transaction, reason: str, *, by: str) -> None:
    """The same from within: a restored database, or a hub that says this node was fenced."""
    if tx.node.state == "quarantined":
        return
    stopped = "('HELD', 'ESCROW', 'CLAIMED', 'RUNNING', 'VALIDATING', 'PENDING', 'RETRYING')"
    query = f"SELECT uid, state FROM task WHERE state IN {stopped}"
    for uid, was in tx.db.execute(query).fetchall():
        file_attempt(tx, uid)
        tx.db.execute(
            f"UPDATE task SET state = 'PARKED', failure_reason = ? WHERE uid = ?"
            f" AND {may_change(State.PARKED)}",
            (f"quarantine: {reason}"[:4096], uid),
        )
        tx.moves(was, State.PARKED)
        tx.event("task_parked", uid, was=was, state="PARKED", by=by, because="quarantine")
    ended = "('COMPLETED', 'FAILED', 'DEAD_LETTERED', 'CANCELLED')"
    tx.db.execute(f"UPDATE task SET quarantined = 1, wake_at = NULL WHERE state NOT IN {ended}")
    # What had ended here may have been retried and moved since: it is not brought back lightly.
    old = f"state IN {ended} AND state <> 'COMPLETED'"
    tx.db.execute(f"UPDATE task SET quarantined = 2 WHERE {old}")
    tx.db.execute(
        "UPDATE transfer SET outcome = 'quarantined' WHERE outcome IN ('escrowed', 'held')"
    )
    now_ms = int(tx.now.timestamp() * 1000)
    incarnation = later_ulid(tx.node.incarnation, now_ms, tx.rng.randbytes(10))
    tx.set_node(state="quarantined", reason=reason, state_by=by, incarnation=incarnation)
    tx.event("node_quarantined", state="quarantined", by=by, because=reason)
    tx.generation_due = True


def release(tx: Transaction, command: Release) -> None:
    """The quarantine ends; refused while a task of it waits for somebody's decision."""
    if tx.node.state != "quarantined":
        return
    (left,) = tx.db.execute("SELECT count(*) FROM task WHERE quarantined = 1").fetchone()
    if left:
        text = f"{left} tasks still wait to be released or resolved; see: agent-node list"
        raise Refused("unreleased", text, "unreleased")
    tx.set_node(state="active", reason=command.reason, state_by=command.sender.by)
    tx.event("node_released", state="active", by=command.sender.by, because=command.reason)


def hello(tx: Transaction, command: Hello) -> bool:
    """Remember the hub and its term; a fenced node is quarantined by the same word. Whether
    anything here is different now: most hellos are those of a hub that is known.
    """
    check_sender(tx, incarnation=command.incarnation, term=None)
    node = tx.node
    if command.term < node.term:
        text = f"{node.name} has seen term {node.term} of hub {node.hub}; this is {command.term}"
        raise Refused("old_term", text, "old_term")
    if is_other_hub(node, command.term, command.instance):
        raise Refused("other_hub", other_hub(node), "other_hub")
    if command.fenced:
        enter_quarantine(tx, f"fenced, says hub {command.hub}", by=f"fleet:{command.hub}")
        return tx.changed
    domains = node.domains
    if command.domains is not None:
        domains = json.dumps(command.domains, sort_keys=True)
    # A hub that says no instance leaves the known one of its term; a higher term replaces it.
    instance = command.instance or (node.hub_instance if command.term == node.term else None)
    said = (command.term, command.hub, command.fleet, command.boot_id, domains, instance)
    known = (node.term, node.hub, node.fleet, node.hello_boot, node.domains, node.hub_instance)
    if said != known:
        tx.set_node(term=command.term, hub=command.hub, fleet=command.fleet,
                    hello_boot=command.boot_id, domains=domains,
                    hub_instance=instance)  # fmt: skip
        because = f"term {command.term} at {iso(tx.now)}"
        tx.event("hub_seen", by=f"fleet:{command.hub}", because=because)
    return tx.changed
