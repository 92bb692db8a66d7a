"""Gives a waiting task to an agent: one statement that takes it, or the reason why not."""

from __future__ import annotations

from ..commands import AgentRow, Because, Claim, Claimed, NothingToClaim, SetAgents
from ..spec import hash_of
from ..task import UNDERWAY, State
from .history import LIFE, begin_life
from .rows import JUST_CLAIMED, claimed_task
from .transaction import LAST_EVENT, LINK_AGENTS, ClaimedRow, Transaction, may_change

# Rank and seq as one number, so that the least of the few first ones is found without a sort.
_SEQ_BITS = 44
_SEQ_MASK = 2**_SEQ_BITS - 1
_NONE = 2**63 - 1  # beyond every task, and its lower bits are the `seq` of none

_CLAIMED_MAX = 1000  # attempts that are remembered; of those that end, few do so unheard


def _first(shared: int) -> str:
    return f"""coalesce((
       SELECT (r.rank << {_SEQ_BITS}) + r.seq FROM task r
        WHERE r.state = 'READY' AND r.need_set = c.need_set AND r.shared = {shared}
        ORDER BY r.rank, r.seq LIMIT 1), {_NONE})"""


# One statement takes the task: the node and the agent must be active, the task's needs must be
# among the agent's powers, and what another node may own by now waits until
# this boot has heard from the hub. Who has more slots than the whole node has tasks under way need
# not be counted.
_TAKE = f"""
UPDATE task
   SET state = 'CLAIMED', agent = :agent, attempt = attempt + 1, claimed_at = :now,
       heartbeat_at = :now, stopping = NULL, wake_at = NULL, token = :token,
       claim_event = {LAST_EVENT} + :event, life = {LIFE}
 WHERE {may_change(State.CLAIMED)} AND seq = (
   SELECT min(min({_first(0)},
     CASE WHEN node.term = 0 OR node.hello_boot = :boot
     THEN {_first(1)} ELSE {_NONE} END)) & {_SEQ_MASK}
     FROM agent a
     JOIN node ON node.state = 'active'
     JOIN agent_can c ON c.agent = a.name
    WHERE a.name = :agent AND a.state = 'active'
      AND (a.slots > :under_way
           OR a.slots > (SELECT count(*) FROM task u WHERE u.agent = a.name
                            AND u.state <> 'READY'
                            AND u.state IN ('CLAIMED', 'RUNNING', 'VALIDATING'))))
RETURNING sha256, attempt, life, {JUST_CLAIMED}
"""


def claim(tx: Transaction, command: Claim) -> Claimed | NothingToClaim:
    """The most urgent task that this agent may run, now its own; or why there is none."""
    boot = tx.clock.boot_id()
    token = tx.rng.randbytes(16).hex()
    values: dict[str, str | int] = {
        "agent": command.agent, "now": tx.stamp, "boot": boot, "token": token,
        "event": tx.events_due + 1, "under_way": sum(map(tx.count, UNDERWAY)),
    }  # fmt: skip
    while row := tx.db.execute(_TAKE, values).fetchone():
        sha256, n, life, *said = row
        tx.moves(State.READY, State.CLAIMED)
        if hash_of(said[-1]) != sha256:
            _set_aside(tx, said[0])
            values["event"] = tx.events_due + 1
            continue
        if life is None:
            begin_life(tx, said[0], boot)
        task = claimed_task(tx, said, agent=command.agent)
        tx.event("task_claimed", task.uid, n=n, was="READY", state="CLAIMED", by=command.agent)
        if len(tx.live.claimed) >= _CLAIMED_MAX:
            tx.live.claimed.clear()
        tx.live.claimed[task.uid] = ClaimedRow(said[0], n, command.agent)
        return Claimed(task, n, token)
    return NothingToClaim(_why_nothing(tx, command.agent, boot))


def _set_aside(tx: Transaction, seq: int) -> None:
    """Bytes that changed on the disk are not run: a person has to look at the task."""
    (uid,) = tx.db.execute(
        f"UPDATE task SET state = 'PARKED', agent = NULL, attempt = attempt - 1,"
        " life = NULL, failure_reason = :why"
        f" WHERE seq = :seq AND {may_change(State.PARKED, State.CLAIMED)} RETURNING uid",
        {"seq": seq, "why": "hash_mismatch: its stored text is not what was added"},
    ).fetchone()
    tx.moves(State.CLAIMED, State.PARKED)
    tx.event("task_parked", uid, was="READY", state="PARKED", because="hash_mismatch")


def _why_nothing(tx: Transaction, agent: str, boot: str) -> Because:
    node = tx.node
    if node.state != "active":
        said = f" ({node.reason})" if node.reason else ""
        return Because(node.state, f"{node.name} is {node.state}{said}")
    row = tx.db.execute("SELECT state, slots FROM agent WHERE name = ?", (agent,)).fetchone()
    if row is None:
        return Because("no_such_agent", f"{node.name} has no agent named {agent}")
    if row[0] != "active":
        return Because(row[0], f"agent {agent} is {row[0]}")
    if _running(tx, agent) >= row[1]:
        return Because("full", f"agent {agent} runs as many as it has slots: {row[1]}")
    ready = tx.count(State.READY)
    if not ready:
        return Because("nothing_ready", "nothing is READY")
    if node.term and node.hello_boot != boot:
        return Because("waits_for_hub", f"{ready} READY, moved in and waiting for the hub's hello")
    return Because("needs_unmet", f"{ready} READY, all of them need what {agent} cannot do")


def _running(tx: Transaction, agent: str) -> int:
    query = (
        "SELECT count(*) FROM task WHERE agent = ?"
        " AND state <> 'READY' AND state IN ('CLAIMED', 'RUNNING', 'VALIDATING')"
    )
    (number,) = tx.db.execute(query, (agent,)).fetchone()
    return int(number)


def set_agents(tx: Transaction, command: SetAgents) -> None:
    """Exactly these agents may claim; one that stays keeps its state."""
    kept = [agent.name for agent in command.agents]
    marks = ", ".join("?" * len(kept))
    tx.db.execute(f"DELETE FROM agent WHERE name NOT IN ({marks})", kept)
    tx.db.execute("DELETE FROM agent_power")
    tx.db.execute("DELETE FROM agent_can")
    for agent in command.agents:
        _set_agent(tx, agent)
    tx.db.execute(LINK_AGENTS)
    tx.changed = True


def _set_agent(tx: Transaction, agent: AgentRow) -> None:
    tx.db.execute(
        "INSERT INTO agent (name, slots) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET slots = excluded.slots",
        (agent.name, agent.slots),
    )
    tx.db.executemany(
        "INSERT OR IGNORE INTO agent_power (agent, word) VALUES (?, ?)",
        [(agent.name, word) for word in agent.powers],
    )
