"""A report is told again where nothing can differ, and made anew as soon as anything may."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_node.budget import Money
from agent_node.clock import iso
from agent_node.commands import Wake
from agent_node.looks import SAME_S, Looks
from agent_node.store.sqlite import SqliteStore
from tests.builders import uid
from tests.node.wire import talking
from tests.node.wire.talking import Talk


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    talk = Talk(tmp_path / "iris")
    yield talk
    talk.close()


def looks_of(talk: Talk) -> Looks:
    return talk.answers.desk.looks


def test_who_asks_right_after_the_news_is_told_the_same(talk: Talk) -> None:
    """With the moment of the question; the daemon has just made that report for its news."""
    made = looks_of(talk).now().report
    talk.clock.advance(SAME_S / 2)
    said = talk.ask("status")
    assert said.items() >= {**made, "written_at": iso(talk.clock.now())}.items()
    assert looks_of(talk).again()["agents"] is made["agents"], "it was not made anew"


def a_change(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    talk.has(1)


def an_attempt_to_change(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is only remembered changes by commands too, such as a beat."""
    talk.store.apply(Wake())


def another_limit_in_node_toml(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen to fail when only commands are counted: node.toml is read without one."""
    assert isinstance(talk.store, SqliteStore)
    talk.store.spend_within(Money("1"))


def a_daemon_that_stops(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk.host, "dispatching", False)


def another_file(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talking, "DISK_FREE", 4096)


def time(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    talk.clock.advance(2 * SAME_S)


@pytest.mark.parametrize(
    "happens",
    [a_change, an_attempt_to_change, another_limit_in_node_toml, a_daemon_that_stops, another_file,
     time],
)  # fmt: skip
def test_it_is_made_anew_after(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, happens: Callable[..., None]
) -> None:
    made = looks_of(talk).now().report
    happens(talk, monkeypatch)
    assert looks_of(talk).again()["agents"] is not made["agents"]


def test_news_are_never_made_of_what_was_told_before(talk: Talk) -> None:
    """What the process alone remembers may have changed without a command."""
    made = looks_of(talk).now()
    assert looks_of(talk).now().report["agents"] is not made.report["agents"]


def test_several_questions_are_answered_from_one_moment(talk: Talk) -> None:
    from agent_node.queries import Facts, ShowTask

    talk.has(1)
    facts, shown = talk.store.read_all((Facts(), ShowTask(uid(1))))
    assert facts == talk.store.read(Facts())
    assert shown == talk.store.read(ShowTask(uid(1)))
