"""Carries out a person's word on the node, or on one agent of it: pause, resume, drain."""

from __future__ import annotations

from datetime import timedelta

from ..clock import iso
from ..commands import SetNode, Steered, Stood
from ..errors import Refused
from ..strict import JsonObject
from .senders import check_not_quarantined, check_sender
from .transaction import Transaction

# How many events are looked back through for who said a word: little happens where nothing starts.
BACK = 20_000
# A word that gives a state another reason carries along when that state began.
_SAID = """
SELECT e.by, e.at, coalesce(json_extract(e.data, '$.since'), e.at),
       json_extract(e.data, '$.here') IS NOT NULL
  FROM event e
 WHERE e.seq > :after AND e.uid IS NULL AND e.event = 'state_changed' AND e.state = :state
   AND json_extract(e.data, '$.agent') IS :agent
 ORDER BY e.seq DESC LIMIT 1
"""


def set_node(tx: Transaction, command: SetNode) -> Steered:
    """pause, resume, drain: enforced by the claim and hold statements themselves.

    A word that holds already and comes without a reason leaves the one that was given; another
    reason takes its place, and `before` says what it was: each word is an event of its own. So is
    the owner's pause of what a hub had paused: no word of that hub to its whole fleet ends it.
    """
    check_sender(tx, incarnation=command.sender.incarnation, term=command.sender.term)
    check_not_quarantined(tx)
    if command.agent is not None:
        state, old = _agent_state(tx, command.agent)
    else:
        state, old = tx.node.state, tx.node.reason
    before = _stood(tx, command.agent, state, old) if state != "active" else None
    reason = command.reason or (old if state == command.to else "")
    same = (state, old) == (command.to, reason) and not _is_new_drain(tx, command)
    if same and (not _is_said_here(command) or (before is not None and before.here)):
        return Steered(state, reason, before, already=True)
    _write(tx, command, reason)
    tx.event("state_changed", state=command.to, by=command.sender.by,
             because=command.reason or f"{command.sender.by} gave no reason",
             data=_data(command, before))  # fmt: skip
    return Steered(command.to, reason, before)


def _data(command: SetNode, before: Stood | None) -> JsonObject | None:
    """Whom the word is about, if not the whole node; whether its owner pauses it, and since when
    what it says holds already.
    """
    data: JsonObject = {"agent": command.agent} if command.agent else {}
    if _is_said_here(command):
        data["here"] = True
    if before is not None and before.state == command.to and before.since:
        data["since"] = before.since
    return data or None


def _agent_state(tx: Transaction, agent: str) -> tuple[str, str]:
    row = tx.db.execute("SELECT state, reason FROM agent WHERE name = ?", (agent,)).fetchone()
    if row is None:
        text = f"{tx.node.name} has no agent named {agent}"
        raise Refused("no_such_agent", text, "no_such_agent")
    return str(row[0]), str(row[1])


def _stood(tx: Transaction, agent: str | None, state: str, reason: str) -> Stood:
    asked = {"after": tx.newest_event - BACK, "state": state, "agent": agent}
    found = tx.db.execute(_SAID, asked).fetchone()
    by, at, since, here = found or (None, None, None, 0)
    return Stood(state, reason, by, at, since, bool(here))


def _is_said_here(command: SetNode) -> bool:
    """Whether the owner of this machine pauses the whole node: whom no term binds, is no hub."""
    return command.to == "paused" and command.agent is None and command.sender.term is None


def _is_new_drain(tx: Transaction, command: SetNode) -> bool:
    """A drain of the node with a deadline is always a new one: its time counts from now."""
    if command.agent is not None:
        return False
    return command.deadline_s is not None or tx.node.drain_until is not None


def _write(tx: Transaction, command: SetNode, reason: str) -> None:
    if command.agent is None:
        tx.set_node(state=command.to, reason=reason, state_by=command.sender.by,
                    drain_until=_until(tx, command), drain_then=command.then)  # fmt: skip
        return
    tx.db.execute("UPDATE agent SET state = ?, reason = ? WHERE name = ?",
                  (command.to, reason, command.agent))  # fmt: skip


def _until(tx: Transaction, command: SetNode) -> str | None:
    if command.to != "draining" or command.deadline_s is None:
        return None
    return iso(tx.now + timedelta(seconds=command.deadline_s))
