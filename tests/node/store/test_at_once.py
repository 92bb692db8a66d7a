"""Holds batches that move at once against the same batches, moved one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_node import commands as c
from agent_node import moves as m
from agent_node.budget import Money
from agent_node.budget_words import SetBudget
from agent_node.store import batches, giving, keeping, settling, taking
from tests.builders import NodeAtHand, a_task, uid, xfer
from tests.node.store.contract_forget import Forgets
from tests.node.store.contract_giver import Gives
from tests.node.store.contract_quarantine import Quarantines
from tests.node.store.contract_repeats import Repeats
from tests.node.store.contract_senders import KnowsSenders
from tests.node.store.contract_taker import Takes
from tests.node.store.test_sqlite import Sqlite, read_only
from tests.node.store.twins import (
    LIFE,
    ODD,
    OURS,
    THEIRS,
    Entry,
    Twins,
    an_offer,
    bend,
    escrow,
    hold,
    rows_of,
    settles,
    store_of,
    stories,
)

FROM_ONE, BATCH = 1, 10
HUGE = "\x01" * 200_000  # 1.2 MB in a reply; five fit, and what follows has no room


class TestOneTaskAtOnce(Sqlite, Gives, Takes, Repeats, KnowsSenders, Quarantines, Forgets):
    """Whatever a single move promises it promises at once, too."""

    @pytest.fixture(autouse=True)
    def _at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(batches, "AT_ONCE_FROM", FROM_ONE)


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[Twins]:
    twins = Twins(tmp_path)
    yield twins
    twins.close()


@settings(max_examples=100, deadline=None)
@given(told=stories(), way=st.sampled_from(("plain", "plain", "plain", "money", "full", "graphs")))
def test_a_batch_at_once_is_the_same_batch_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, told: list[tuple[c.Command[Any], bool]], way: str
) -> None:
    """Fails when a batch with something odd in it goes at once, or when what goes at once leaves
    out a word or an event, or numbers them otherwise.
    """
    twins = Twins(tmp_path_factory.mktemp("twins"))
    for node in twins.nodes:
        store = store_of(node)
        store.live.queue_max = 12 if way == "full" else 10_000
        store.live.graphs = way == "graphs"
        if way == "money":
            store.spend_within(Money("1.5"))
            node.say(SetBudget("fleet", "1"))
    for command, dry_run in told:
        twins.say(command, dry_run=dry_run)
    twins.close()


# Each oddity by itself, at each step.

GIVEN = [Entry(number, number, 1, "loom", LIFE) for number in (1, 2, 3, 6)]
TAKEN = [one._replace(x=one.x + 20, number=one.number + 20) for one in GIVEN]
STEPS: dict[str, tuple[list[Entry], Callable[[list[Entry]], c.Command[Any]]]] = {
    "escrow": (GIVEN, escrow), "commit": (GIVEN, lambda made: m.Commit(settles(made))),
    "hold": (TAKEN, hold), "activate": (TAKEN, lambda made: m.Activate(settles(made))),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("bent_at", STEPS)
def test_one_odd_move_of_a_batch_is_judged_as_it_is_one_by_one(
    twins: Twins, bent_at: str, odd: str
) -> None:
    """Fails when what stands out of a batch goes at once with it."""
    twins.say(escrow([one._replace(number=7) for one in GIVEN[2:3]]))  # of which one is known
    for step, (made, command) in STEPS.items():
        told = [one._replace(x=one.x + 60) if one.x == 3 else one for one in made]
        twins.say(command(bend(told, odd, 1) if step == bent_at else told))
    twins.look_alike()


@pytest.mark.parametrize("hurt", range(9))
def test_what_a_copy_says_besides_is_kept_at_once(twins: Twins, hurt: int) -> None:
    """Fails when a batch leaves out attempts, references or keys, or believes any hash."""
    made = [Entry(number, number, 1, "loom", LIFE) for number in THEIRS]
    twins.say(hold(made, odd=hurt))
    twins.say(m.Activate(settles(made)))
    twins.look_alike()


def test_a_batch_may_be_one_of_two_commands_of_a_transaction(twins: Twins) -> None:
    """Fails when it is forgotten that what was looked up before it is so no longer."""
    for node in twins.nodes:
        store = store_of(node)
        *_, dropped = store.together([hold(TAKEN), m.Drop(settles(TAKEN))])
        assert {one.outcome for one in dropped} == {"dropped"}  # type: ignore[attr-defined]


def test_what_leaves_with_others_is_awaited_by_who_waits_for_it(twins: Twins) -> None:
    """Fails when a batch leaves and nobody asks for the ends of its tasks."""
    for node in twins.nodes:
        store_of(node).live.graphs = True
    made = [Entry(number, number, 1, "loom", LIFE) for number in (4, 6)]
    twins.say(escrow(made))
    assert set(outcomes(twins.say(m.Commit(settles(made))))) == {"committed"}
    assert rows_of(twins.nodes[0].place)["awaited"] == [(uid(4),)]
    twins.look_alike()


@pytest.mark.parametrize("left", range(3))
def test_a_batch_has_the_room_that_is_left(twins: Twins, left: int) -> None:
    """Fails when a batch is asked once for room, as if it were one task."""
    for node in twins.nodes:
        store_of(node).live.queue_max = len(OURS) + len(TAKEN) - left
    held = outcomes(twins.say(hold(TAKEN)))
    assert "no_room" in held or left < 2


# What stands out by its size, its damage, or its row alone.


def moves_of(*numbers: int) -> tuple[m.Move, ...]:
    return tuple(m.Move(xfer(number), uid(number), 1) for number in numbers)


def settles_of(*numbers: int) -> tuple[m.Settle, ...]:
    return tuple(m.Settle(xfer(number), uid(number), "loom") for number in numbers)


def outcomes(answers: tuple[m.Transferred, ...]) -> list[str]:
    return [one.because.rule if one.because else one.outcome for one in answers]


def test_a_batch_that_fills_the_reply_is_cut_where_it_is_one_by_one(twins: Twins) -> None:
    """Fails when a batch at once is not measured: the reply would be longer than a line."""
    for node in twins.nodes:
        node.has(*(a_task(number, body=HUGE) for number in range(41, 49)))
    got = outcomes(twins.say(m.Escrow("loom", "stolen", 60.0, moves_of(*range(41, 49), 1, 2))))
    assert got == ["escrowed"] * 6 + ["batch_full"] * 2 + ["escrowed"] * 2


def test_one_damaged_task_of_a_batch_is_parked_and_the_others_leave(twins: Twins) -> None:
    """Fails when a batch at once is not hashed anew: a damaged task would travel."""
    for node in twins.nodes:
        node.has(a_task(41, body="coin"))
        node.close()
        node.backend.damage_spec(node.place, uid(41))
        node.open()
    got = outcomes(twins.say(m.Escrow("loom", "stolen", 60.0, moves_of(1, 41, 2))))
    assert got == ["escrowed", "hash_mismatch", "escrowed"]


@pytest.mark.parametrize("state", ["READY", "HELD", "COMPLETED"])
def test_a_row_that_is_not_in_its_escrow_stays_when_its_batch_leaves(
    twins: Twins, state: str
) -> None:
    """Fails when the statement of a whole commit asks for no escrow: the task would be gone."""
    numbers = range(41, 48)
    for node in twins.nodes:
        node.has(*(a_task(number) for number in numbers))
    taken = twins.say(m.Escrow("loom", "stolen", 60.0, moves_of(*numbers)))
    assert set(outcomes(taken)) == {"escrowed"}
    twins.force(46, state)
    got = outcomes(twins.say(m.Commit(settles_of(*numbers))))
    assert got == ["committed"] * 5 + ["not_escrow", "committed"]


def test_a_row_that_is_not_held_stays_as_it_is_when_its_batch_wakes(twins: Twins) -> None:
    """Fails when the statement of a whole activation asks for no hold: what ended runs again."""
    offers = tuple(an_offer(number, number, 1, None, 40) for number in THEIRS)
    assert set(outcomes(twins.say(m.Hold("loom", "stolen", offers)))) == {"held"}
    twins.force(23, "COMPLETED")
    got = outcomes(twins.say(m.Activate(settles_of(*THEIRS))))
    assert got == ["activated"] * 2 + ["not_held"] + ["activated"] * 5


# That the usual batch goes at once, and looks for no task by reading all of them.


def statements(node: NodeAtHand, command: c.Command[Any]) -> list[str]:
    """What one command, refused nothing, has SQLite change of tasks, one by one."""
    said: list[str] = []
    db = store_of(node)._db
    db.set_trace_callback(said.append)
    answers = node.say(command)
    db.set_trace_callback(None)
    assert {one.because for one in answers} == {None}
    return [one for one in said if one.split()[:2] in (["UPDATE", "task"], ["INSERT", "INTO"])
            and " INTO event" not in one]  # fmt: skip


@pytest.mark.parametrize("odd", [False, True], ids=["usual", "one known"])
def test_ten_usual_moves_are_a_statement_for_each_table(tmp_path: Path, *, odd: bool) -> None:
    """Fails when a batch in which nothing stands out goes one by one."""
    node, numbers = NodeAtHand(Sqlite(), tmp_path / "iris"), range(41, 41 + BATCH)
    node.has(*(a_task(number) for number in numbers))
    if odd:
        node.say(m.Escrow("loom", "stolen", 60.0, moves_of(41)))
    set_aside = statements(node, m.Escrow("loom", "stolen", 60.0, moves_of(*numbers)))
    commit = statements(node, m.Commit(settles_of(*numbers)))
    assert len(set_aside) == (2 * (BATCH - 1) if odd else 2)
    assert len(commit) == -(-BATCH // settling.FEW)
    offers = tuple(an_offer(number, number, 1, None, 40) for number in THEIRS)
    held = statements(node, m.Hold("loom", "stolen", offers))
    woken = statements(node, m.Activate(settles_of(*THEIRS)))
    assert (len(held), len(woken)) == (len(THEIRS) + 1, 1)
    node.close()


PLANS = {
    "set aside": giving._SET_ALL_ASIDE,
    "kept": keeping._KEEP_ALL_MOVED,
    "activated": taking._ACTIVATE_ALL,
    "written": batches._SET_ALL,
}


@pytest.mark.parametrize("statement", PLANS.values(), ids=PLANS)
def test_a_whole_batch_is_found_by_its_ids(tmp_path: Path, statement: str) -> None:
    """Fails when SQLite would read every task or transfer for the few of a batch."""
    NodeAtHand(Sqlite(), tmp_path).close()
    values = dict.fromkeys(("moves", "xfers", "rows", "now", "further", "even_if_pinned"))
    with closing(read_only(tmp_path)) as db:
        given = (None,) * 4 if "?" in statement else values
        plan = [str(step) for *_, step in db.execute(f"EXPLAIN QUERY PLAN {statement}", given)]
    scanned = [step.split()[1] for step in plan if step.startswith("SCAN")]
    assert {*scanned} <= {"node", "j", "json_each"}, plan
    assert [step for step in plan if step.startswith("SEARCH")]
