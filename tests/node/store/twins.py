"""Two nodes that are told the same; one of them moves every batch one by one."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

from agent_node import commands as c
from agent_node import moves as m
from agent_node.errors import NodeError
from agent_node.spec import hash_of, spec_of
from agent_node.store import batches
from agent_node.store.sqlite import SqliteStore
from agent_node.task import Task
from tests.builders import NodeAtHand, a_task, uid, xfer
from tests.node.store.test_sqlite import Sqlite, read_only

NEVER = 10**9
OURS, THEIRS, PINNED = range(1, 9), range(21, 29), 8
LIFE, OTHER_LIFE = "01LQQM00000000000000000000", "01LQQN00000000000000000000"


class Twins:
    """Two nodes that hear the same, and have to answer and write the same."""

    def __init__(self, place: Path) -> None:
        self.nodes = [NodeAtHand(Sqlite(), place / name, "iris") for name in ("once", "single")]
        for node in self.nodes:
            node.has(*(ours(number) for number in OURS))
            tried = node.running()
            node.finish(tried, "interrupted", message="the machine went down")
            node.wake(3600.0)
            wait_for_nothing(node)

    def say(self, command: c.Command[Any], **how: bool) -> Any:
        """What both answer."""
        answers = []
        for node, at_once_from in zip(self.nodes, (2, NEVER), strict=True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(batches, "AT_ONCE_FROM", at_once_from)
                answers.append(said(node, command, **how))
        assert answers[0] == answers[1]
        return answers[0]

    def force(self, number: int, state: str) -> None:
        """Write a state past all rules, as no command of ours does."""
        for node in self.nodes:
            node.close()
            node.backend.force_state(node.place, uid(number), state)
            node.open()
            wait_for_nothing(node)

    def look_alike(self) -> None:
        """Every row of both, with its number, and what each remembers of them."""
        once, single = (rows_of(node.place) for node in self.nodes)
        for name, rows in once.items():
            assert rows == single[name], name
        once_knows, single_knows = (store_of(node) for node in self.nodes)
        assert once_knows._counts == single_knows._counts
        assert remembered(once_knows) == remembered(single_knows)
        assert self.nodes[0].facts() == self.nodes[1].facts()

    def close(self) -> None:
        self.look_alike()
        for node in self.nodes:
            node.close()


def store_of(node: NodeAtHand) -> SqliteStore:
    assert isinstance(node.store, SqliteStore)
    return node.store


def wait_for_nothing(node: NodeAtHand) -> None:
    """One of our tasks waits for another, and where anything waits nothing wakes at once."""
    store_of(node).live.graphs = False


def remembered(store: SqliteStore) -> dict[str, object]:
    folders = ("tasks_dir", "artifacts_dir")
    return {word: value for word, value in vars(store.live).items() if word not in folders}


def said(node: NodeAtHand, command: c.Command[Any], **how: bool) -> Any:
    try:
        return node.say(command, **how)
    except NodeError as error:
        return type(error), str(error)


def rows_of(place: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(read_only(place)) as db:
        found = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
        return {
            name: db.execute(
                f"SELECT * FROM {name}" if "WITHOUT ROWID" in sql
                else f"SELECT rowid, * FROM {name} ORDER BY rowid"
            ).fetchall()
            for name, sql in found
        }  # fmt: skip


def ours(number: int) -> Task:
    """Some are pinned, keyed, urgent, or long, and one waits for another."""
    fields: dict[str, Any] = {}
    if number in (1, 4):
        fields = {"max_cost_usd": "0.8"}
    if number == 3:
        fields = {"key": "ours", "tags": ["t"], "skills": ["s"], "domain": "d"}
    if number == 5:
        fields = {"depends_on": [{"uid": uid(4), "on_failure": "fail"}]}
    if number == 6:
        fields = {"heat": 2.5, "deadline": "2030-01-01T00:00:00.000Z", "extra": {"a": 1.5}}
    return a_task(number, pinned=number == PINNED, body="é" * 3000 * (number % 3), **fields)


# A batch: usually as the hub sends it, sometimes with something in it that stands out.

ODD = ("twice", "same task", "other task", "unknown task", "epoch", "peer", "life", "known",
       "again", "pinned")  # fmt: skip
ODDITIES = st.lists(st.sampled_from(ODD), max_size=2).map(lambda odd: odd if len(odd) > 1 else [])


class Entry(NamedTuple):
    """One move: transfer and task by their numbers, the epoch, the other side, and its life."""

    x: int
    number: int
    epoch: int
    peer: str
    life: str | None


@st.composite
def entries(draw: st.DrawFn, numbers: range) -> list[Entry]:
    """What a hub would send."""
    chosen = draw(st.lists(st.sampled_from(numbers), min_size=2, max_size=6, unique=True))
    life = draw(st.sampled_from((None, LIFE)))
    return [Entry(number, number, 1, "loom", life) for number in chosen]


def bend(made: list[Entry], odd: str, place: int) -> list[Entry]:
    """The same with one of them as no hub would send it, or as one does that missed something."""
    one = made[place]
    if odd in ("twice", "same task"):
        again = one if odd == "twice" else one._replace(x=one.x + 50)
        return [*made[:place], again, *made[place:]]
    bent = {
        "unknown task": one._replace(number=99), "other task": one._replace(number=one.number + 1),
        "epoch": one._replace(epoch=2), "known": one._replace(x=one.x + 1),
        "peer": one._replace(peer="forge"), "again": one._replace(x=one.x + 100),
        "life": one._replace(life=OTHER_LIFE),
        "pinned": one._replace(x=one.x + 100, number=PINNED),
    }[odd]  # fmt: skip
    return [*made[:place], bent, *made[place + 1 :]]


@st.composite
def bent(draw: st.DrawFn, made: list[Entry]) -> list[Entry]:
    """A part of them, bent here and there."""
    made = made[: draw(st.sampled_from((6, 6, 6, 3, 1)))]
    for odd in draw(ODDITIES):
        made = bend(made, odd, draw(st.integers(0, len(made) - 1)))
    return made


def escrow(made: list[Entry], sender: c.Sender = c.OWNER, **how: bool) -> m.Escrow:
    moves = tuple(m.Move(xfer(x), uid(n), epoch, life) for x, n, epoch, _, life in made)
    return m.Escrow("loom", "stolen", 60.0, moves, sender, **how)


def settles(made: list[Entry]) -> tuple[m.Settle, ...]:
    return tuple(m.Settle(xfer(x), uid(n), peer, life) for x, n, _, peer, life in made)


def hold(made: list[Entry], sender: c.Sender = c.OWNER, *, odd: int = 40) -> m.Hold:
    """What is offered is what a node named loom had; by `odd` some of it says more, or is hurt."""
    offers = tuple(an_offer(x, n, epoch, life, odd) for x, n, epoch, _, life in made)
    return m.Hold("loom", "routed" if odd % 2 else "stolen", offers, sender)


def an_offer(x: int, number: int, epoch: int, life: str | None, odd: int) -> m.Offer:
    fields: dict[str, Any] = {}
    if odd == number % 7:
        fields = {"key": f"k{number % 2}", "tags": ["t"]}
    if odd == number % 5:
        fields["attempts"] = [{"n": 1, "node": "forge", "agent": "forge", "outcome": "failed"}]
        fields["failures"] = 1
    if odd == number % 6:
        fields["context_refs"] = [f"task:{uid(4)}:outcome"]
    task = replace(a_task(number, body="ü" * number, **fields), epoch=epoch)
    sha256 = "0" * 64 if odd == number % 9 else hash_of(spec_of(task))
    return m.Offer(xfer(x), task, sha256, life, 13.334 if odd == number % 8 else 0.0)


@st.composite
def words(draw: st.DrawFn, ours: list[Entry], theirs: list[Entry]) -> c.Command[Any]:
    """A command of a move; now and then one that changes what the node may do."""
    kind = draw(st.sampled_from(("give", "give", "give", "take", "take", "take", "other")))
    if kind == "other":
        return draw(st.sampled_from((
            c.SetNode("paused", "upgrade"), c.SetNode("active", "upgrade"),
            m.Quarantine("restored"), m.Hello("fleet", "arc", 3, "boot"),
        )))  # fmt: skip
    made = draw(bent(ours if kind == "give" else theirs))
    sender = c.Sender("hub", term=draw(st.sampled_from((None, None, None, 1, 3))))
    if kind == "give":
        return draw(st.sampled_from((
            escrow(made, sender, even_if_pinned=True), escrow(made, sender),
            escrow(made, sender, terse=True),
            m.Commit(settles(made), sender), m.Commit(settles(made), sender),
            m.Abort(settles(made), sender),
        )))  # fmt: skip
    odd = draw(st.integers(0, 20))
    back = [one._replace(x=one.x + 10, number=one.number % 20, epoch=2) for one in made]
    return draw(st.sampled_from((
        hold(made, sender, odd=odd), hold(made, sender), hold(back, sender, odd=odd),
        m.Activate(settles(made), sender), m.Activate(settles(made), sender),
        m.Drop(settles(made), sender),
    )))  # fmt: skip


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[c.Command[Any], bool]]:
    """Commands about a few tasks that are given and a few that come, and which are only tried."""
    word = words(draw(entries(OURS)), draw(entries(THEIRS)))
    dry = st.sampled_from((False,) * 9 + (True,))
    return draw(st.lists(st.tuples(word, dry), min_size=3, max_size=10))
