"""What a dry run says of tasks is what would be, never what was; in JSON it is marked as one."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from agent_node import commands as c
from tests.builders import uid
from tests.hub.cli.desk import Desk
from tests.hub.cli.test_dead import dies

# What a text of a real run says of something that was done.
_is_done = re.compile(
    r"(?<!be )\b(changed|cancelled|retried|resolved|reviewed|edited|added|reowned|stopping"
    r"|refused|moved)\b(?!\))"
).findall


def ready(desk: Desk) -> None:
    desk.waits("iris", 1)


def under_way(desk: Desk) -> None:
    desk.runs("iris", 1)


def dead(desk: Desk) -> None:
    dies(desk, "iris", 1, kind="timeout")


def parked(desk: Desk) -> None:
    desk.runs("iris", 1)
    desk.nodes.machines["iris"].store.apply(c.Finish(uid(1), 1, c.Result("unproved")))


CASES = [
    (ready, ("tasks", "set", "-p", "1"), "would be changed  then READY on iris"),
    (ready, ("tasks", "cancel"), "would be cancelled  then CANCELLED on iris"),
    (ready, ("tasks", "move", "--to", "loom"), "would move "),
    (ready, ("tasks", "resolve", "--as", "done"), "would be refused  now READY on iris"),
    (ready, ("tasks", "retry"), "already  now READY on iris"),
    (parked, ("doubts", "settle", "--yes"), "would be reowned 0001 iris"),
    (parked, ("tasks", "resolve", "--as", "failed"), "would be resolved  then FAILED on iris"),
    (under_way, ("tasks", "cancel"), "would be told to stop  now RUNNING on iris"),
    (under_way, ("tasks", "set", "-p", "1"), "would be refused  now RUNNING on iris"),
    (dead, ("tasks", "retry"), "would be retried  then READY on iris"),
    (dead, ("tasks", "resolve", "--as", "done"), "would be resolved  then COMPLETED on iris"),
    (dead, ("dead", "retry"), "would be retried  then READY on iris"),
    (dead, ("dead", "cancel"), "would be cancelled  then CANCELLED on iris"),
    (dead, ("dead", "review"), "would be reviewed  then DEAD_LETTERED on iris"),
    (dead, ("dead", "edit", "priority=1"), "would be edited  then READY on iris"),
    (dead, ("dead", "edit", "--body-file", "-"), "would be cancelled  then CANCELLED on iris"),
]


@pytest.mark.parametrize(("stage", "words", "says"), CASES)
def test_the_words_of_a_dry_run_are_conditional(
    desk: Desk, stage: Callable[[Desk], None], words: tuple[str, ...], says: str
) -> None:
    """Seen to fail: `changed  now READY`, `stopping`, `reowned`, `would change` of a cancel."""
    stage(desk)
    before = desk.nodes.states(1)
    group, verb, *more = words
    text = desk.arc(group, verb, uid(1), *more, "--dry-run", stdin=b"new")
    assert says in text.out, text
    said = re.sub(r"\(dry run: nothing was changed\)", "", text.out)
    assert _is_done(said.partition("  not_")[0]) == [], text.out
    machine = desk.arc(group, verb, uid(1), *more, "--dry-run", "--json", stdin=b"new")
    assert (machine.code, machine.data["dry_run"]) == (text.code, True)
    assert desk.nodes.states(1) == before


def test_json_names_the_outcome_in_a_dry_run_as_in_a_real_run(desk: Desk) -> None:
    """Scripts compare the two: the mark alone tells them apart."""
    ready(desk)
    words = ("tasks", "cancel", uid(1), "--json")
    dry, done = desk.arc(*words, "--dry-run").data, desk.arc(*words).data
    assert dry == {**done, "dry_run": True}
    assert (dry["do"], dry["results"][0]["outcome"]) == ("cancel", "changed")


def test_a_real_run_says_what_was_done(desk: Desk) -> None:
    ready(desk)
    assert "changed  now CANCELLED on iris" in desk.arc("tasks", "cancel", uid(1)).out
