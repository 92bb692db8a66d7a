"""Gives a waiting task to an agent: one statement that takes it, or the reason why not."""

from __future__ import annotations

from ..budget import NODE, NOTHING, URGENT, objection
from ..commands import AgentRow, Because, Claim, Claimed, NothingToClaim, SetAgents
from ..priority import USUAL_PACE, Turn, key
from ..spec import hash_of
from ..task import UNDERWAY, State
from .by_state import by_state
from .care import FOREVER, let_anyone, words_against_others
from .history import this_life
from .live import ClaimedRow
from .purses import purse_of
from .rows import JUST_CLAIMED, claimed_task
from .spending import Ask, set_aside_or_refuse
from .transaction import LINK_AGENTS, Transaction, may_change
from .turns import order_ms, usual_growth

# What a task is worth and its `seq` as one number, so that the least of the few first ones is found
# without a sort. Whoever waits for more than a year is taken to be worth what it was then.
_SEQ_BITS = 36
_SEQ_MASK = 2**_SEQ_BITS - 1
_WORTH_MAX = 2**26
_NONE = 2**63 - 1  # beyond every task, and its lower bits are the `seq` of none

_TOKEN, _DRAWN = 16, 64  # bytes of one, and how many are drawn at once
_CLAIMED_MAX = 1000  # attempts that are remembered; of those that end, few do so unheard


def _first(shared: int) -> str:
    return f"""coalesce((
       SELECT (max(min(r.turn - :grown, {_WORTH_MAX}), -{_WORTH_MAX}) << {_SEQ_BITS}) + r.seq
         FROM task r
        WHERE r.state = 'READY' AND r.need_set = c.need_set AND r.shared = {shared}
          AND r.pace = {USUAL_PACE}
        ORDER BY r.turn, r.seq LIMIT 1), {_NONE})"""


# Who may claim, by the statement itself: the node and the agent must be active, the task's needs
# must be among the agent's powers, and what another node may own by now waits until this boot has
# heard from the hub. Who has more slots than the node has tasks under way need not be counted.
_HEARD = "(node.term = 0 OR node.hello_boot = :boot)"
_WHO = f"""
     FROM agent a
     JOIN node ON node.state = 'active'
     JOIN agent_can c ON c.agent = a.name {{joined}}
    WHERE a.name = :agent AND a.state = 'active'
      AND (a.slots > :under_way
           OR a.slots > (SELECT count(*) FROM task u WHERE u.agent = a.name
                            AND {by_state(*UNDERWAY, of="u")}))
"""
_FIRST = f"""(
   SELECT min(min({_first(0)},
     CASE WHEN {_HEARD} THEN {_first(1)} ELSE {_NONE} END)) & {_SEQ_MASK} {_WHO.format(joined="")})
"""
_TAKE = f"""
UPDATE task
   SET state = 'CLAIMED', agent = :agent, attempt = attempt + 1, claimed_at = :now,
       heartbeat_at = :now, stopping = NULL, wake_at = NULL, token = :token,
       claim_event = :event, life = :life
 WHERE {may_change(State.CLAIMED)} AND seq = %s
RETURNING sha256, attempt, {JUST_CLAIMED}
"""
# Which one was looked up before, in the same transaction; the statement leans on none of it.
_THIS = f""":seq AND EXISTS (SELECT 1 {_WHO.format(joined="")}
                            AND c.need_set = task.need_set AND (task.shared = 0 OR {_HEARD}))"""
_TAKE_FIRST, _TAKE_THIS = _TAKE % _FIRST, _TAKE % _THIS
_HEAD = """(SELECT r.{what} FROM task r WHERE r.state = 'READY' AND r.need_set = c.need_set
         AND r.shared = s.shared AND r.pace = p.pace {{only}} ORDER BY r.turn, r.seq LIMIT 1)"""
_PACES = f"(SELECT {USUAL_PACE} AS pace UNION ALL SELECT pace FROM pace)"
_SIDES = "(SELECT 0 AS shared UNION ALL SELECT 1)"
# The first task of each set of needs and each pace; what they are worth is for priority.py to say.
_HEADS = f"""
SELECT p.pace, {_HEAD.format(what="turn")}, {_HEAD.format(what="seq")}
{_WHO.format(joined=f"JOIN {_PACES} p JOIN {_SIDES} s ON s.shared = 0 OR {_HEARD}")}
"""
_ALL_HEADS = _HEADS.format(only="")
_URGENT_HEADS = _HEADS.format(only=f"AND r.priority <= {URGENT}")


def _a_token(tx: Transaction) -> str:
    """A secret of the attempt's own. They are drawn many at once: each look is felt in a claim."""
    if not tx.live.tokens:
        drawn = tx.rng.randbytes(_TOKEN * _DRAWN).hex()
        step = 2 * _TOKEN
        tx.live.tokens = [drawn[at : at + step] for at in range(0, len(drawn), step)]
    return tx.live.tokens.pop()


_Values = dict[str, str | int | None]


def claim(tx: Transaction, command: Claim) -> Claimed | NothingToClaim:
    """The most urgent task that this agent may run, now its own; or why there is none."""
    return claim_for(tx, command.agent)


def claim_for(tx: Transaction, agent: str) -> Claimed | NothingToClaim:
    """The same for whoever has the agent's name alone."""
    boot, token = tx.clock.boot_id(), _a_token(tx)
    values: _Values = {
        "agent": agent, "now": tx.stamp, "boot": boot, "token": token,
        "under_way": sum(map(tx.count, UNDERWAY)), "grown": usual_growth(tx),
        "life": this_life(tx, boot),
    }  # fmt: skip
    particular = tx.live.paces or tx.live.budgeted
    while True:
        query, ask = _how(tx, values) if particular else (_TAKE_FIRST, None)
        values["event"] = tx.next_event  # only now: what cannot be afforded was written of first
        row = tx.db.execute(query, values).fetchone()
        if row is None:
            break
        sha256, n, *said = row
        tx.moves(State.READY, State.CLAIMED)
        if hash_of(said[-1]) != sha256:
            _set_aside(tx, said[0])
            continue
        if ask is not None:
            ask.reserve()
        task = claimed_task(tx, said, agent=agent)
        because = f"P{task.priority}: the first of all READY ones that {agent} may run"
        tx.event("task_claimed", task.uid, n=n, was="READY", state="CLAIMED", by=agent,
                 because=because)  # fmt: skip
        if len(tx.live.claimed) >= _CLAIMED_MAX:
            tx.live.claimed.clear()
        tx.live.claimed[task.uid] = ClaimedRow(said[0], n, agent)
        return Claimed(task, n, token)
    return NothingToClaim(_why_nothing(tx, agent, boot))


def _how(tx: Transaction, values: _Values) -> tuple[str, Ask | None]:
    """What takes the first task where boosts differ or money counts: it has to be found first."""
    if not tx.live.budgeted:
        values["seq"] = _first_of_all(tx, values, _ALL_HEADS)
        return _TAKE_THIS, None
    purse = purse_of(tx, NODE)
    empty = purse is not None and purse.empty
    query = _URGENT_HEADS if empty else _ALL_HEADS
    ask = None if empty and not tx.live.money.urgent_overdraft else _afford(tx, values, query)
    if ask is None:
        values["seq"] = None
    return _TAKE_THIS, ask


def _afford(tx: Transaction, values: _Values, query: str) -> Ask | None:
    """The first task that there is money for; those before it wait aside from now on."""
    while (seq := _first_of_all(tx, values, query)) is not None:
        values["seq"] = seq
        (uid,) = tx.db.execute("SELECT uid FROM task WHERE seq = ?", (seq,)).fetchone()
        ask = Ask(tx, uid, moves=False)
        if set_aside_or_refuse(tx, ask) is None:
            return ask
    return None


def _first_of_all(tx: Transaction, values: _Values, query: str) -> int | None:
    """The `seq` of the first task where boosts differ: one for each pace has to be looked at."""
    now = order_ms(tx)
    heads = tx.db.execute(query, values)
    found = [(key(Turn(pace, turn), seq, now), seq) for pace, turn, seq in heads if seq]
    return min(found)[1] if found else None


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
    why = _out_of_money(tx)
    if why is not None:
        return Because("over_budget", f"{ready} READY; {why}")
    if node.term and node.hello_boot != boot:
        return Because("waits_for_hub", f"{ready} READY, moved in and waiting for the hub's hello")
    return Because("needs_unmet", f"{ready} READY, all of them need what {agent} cannot do")


def _out_of_money(tx: Transaction) -> str | None:
    purse = purse_of(tx, NODE) if tx.live.money.budget_usd is not None else None
    return None if purse is None else objection(purse, NOTHING, URGENT + 1)


_UNDER_WAY = f"SELECT count(*) FROM task WHERE agent = ? AND {by_state(*UNDERWAY)}"


def _running(tx: Transaction, agent: str) -> int:
    (number,) = tx.db.execute(_UNDER_WAY, (agent,)).fetchone()
    return int(number)


def set_agents(tx: Transaction, command: SetAgents) -> None:
    """Exactly these agents may claim; one that stays keeps its state."""
    kept = [agent.name for agent in command.agents]
    marks = ", ".join("?" * len(kept))
    tx.db.execute(f"DELETE FROM agent WHERE name NOT IN ({marks})", kept)
    tx.db.execute("DELETE FROM agent_power")
    tx.db.execute("DELETE FROM agent_can")
    for agent in command.agents:
        _set_agent(tx, agent, kept)
    tx.db.execute(LINK_AGENTS)
    let_anyone(tx, FOREVER)  # whom a retry was kept for may be gone
    tx.changed = True


def _set_agent(tx: Transaction, agent: AgentRow, names: list[str]) -> None:
    tx.db.execute(
        "INSERT INTO agent (name, slots) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET slots = excluded.slots",
        (agent.name, agent.slots),
    )
    tx.db.executemany(
        "INSERT OR IGNORE INTO agent_power (agent, word) VALUES (?, ?)",
        [(agent.name, word)
         for word in (*agent.powers, *words_against_others(agent.name, names))],
    )
