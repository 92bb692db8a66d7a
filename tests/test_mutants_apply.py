"""Holds the list of mutants to the code: each still fits, each names tests that are there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import Queue

import pytest

from tests.model.guards import NEEDED
from tools.mutant_table import (
    FIRST,
    LAST,
    PAGE,
    Mutant,
    changed,
    objection,
    read_mutants,
    render_table,
)
from tools.mutants import Verdict, trees, try_in
from tools.sources import ROOT

MUTANTS = read_mutants()
# What the hub alone has to see to; the model shows that it is needed.
THE_HUBS = {
    "fence_names_the_boot": "a fence is the hub's word; nodes compare incarnations, not boots",
}
PRODUCT = ("agent_node/", "arc/", "sensors/")
# What the machine of tests/node/store/test_three_nodes.py does not find: its hub is a double that
# keeps these, or does not remember what it would take to break them.
NOT_BY_THREE_NODES = {
    "activate_after_commit": "the hub's own: tests/hub/test_transfer.py",
    "commit_after_hold": "the hub's own: tests/hub/test_transfer.py",
    "later_incarnation_refuses": "a second guard stands before it: tests/node/store/test_guards.py",
    "hearsay_outlives_restore": "it keeps that one up: tests/node/store/test_guards.py",
}
QUICK = ("floor_is_not_raised", "held_copies_end_by_a_clock", "bar_ignores_the_disk")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_code(mutant: Mutant) -> None:
    """Code that moved on takes its mutant along, or the guard goes untested without a word."""
    assert objection(mutant) is None


def test_every_test_that_a_mutant_names_is_there() -> None:
    tests = sorted({test for mutant in MUTANTS for test in mutant.tests})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run([*command, *tests], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:]


def test_mutants_have_names_of_their_own_and_say_why() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert sorted(set(names)) == sorted(names)
    assert [mutant.name for mutant in MUTANTS if len(mutant.why) < 20 or not mutant.tests] == []


def test_every_needed_guard_of_the_protocol_is_taken_away_by_a_mutant() -> None:
    """Of the product's code: what a double of the hub leaves out shows no test of the hub."""
    taken = {mutant.guard for mutant in MUTANTS if mutant.guard}
    assert taken - {*NEEDED} == set()
    from_us = {mutant.guard for mutant in MUTANTS if is_of_the_product(mutant)}
    assert {*NEEDED} - from_us == {*THE_HUBS}


def is_of_the_product(mutant: Mutant) -> bool:
    return mutant.edits[0].file.startswith(PRODUCT)


def test_every_needed_guard_of_the_store_is_missed_by_three_nodes_to_which_anything_happens() -> (
    None
):
    """What tests/node/store/test_three_nodes.py promises in its docstring."""
    test = "tests/node/store/test_three_nodes.py::"
    missed = {mutant.guard for mutant in MUTANTS if mutant.tests[0].startswith(test)}
    assert {*NEEDED} - missed == {*THE_HUBS, *NOT_BY_THREE_NODES}


def test_the_page_lists_every_mutant() -> None:
    listed = PAGE.read_text(encoding="utf-8").split(FIRST)[1].split(LAST)[0].strip()
    assert listed == render_table(), "run: python tools/mutants.py --table"


@pytest.fixture(scope="module")
def tree() -> Iterator[Queue[Path]]:
    with trees(1) as free:
        yield free


def tried(tree: Queue[Path], name: str, instead: str | None = None) -> Verdict:
    """Try this mutant, or one of ours that leaves the guard and adds a line after it."""
    (mutant,) = (mutant for mutant in MUTANTS if mutant.name == name)
    if instead is not None:
        edit = mutant.edits[0]
        mutant = replace(mutant, edits=(replace(edit, after=edit.before + instead),))
    return try_in(tree, mutant)


@pytest.mark.parametrize("name", QUICK)
def test_a_few_mutants_are_caught_now(tree: Queue[Path], name: str) -> None:
    """All of them are tried by `make soak`; these show that the way of trying works."""
    verdict = tried(tree, name)
    assert verdict.killed, verdict.by


def test_a_change_that_takes_no_guard_away_survives(tree: Queue[Path]) -> None:
    """Otherwise a test that fails anyway would pass for one that catches every mutant."""
    assert not tried(tree, QUICK[0], "    # as it was\n").killed


def test_a_mutant_that_does_not_run_is_not_caught(tree: Queue[Path]) -> None:
    """A slip of ours in the list of mutants must not look like a guard that is missed."""
    verdict = tried(tree, QUICK[0], "    import nowhere\n")
    assert not verdict.killed
    assert "ModuleNotFoundError" in verdict.by


def test_a_copy_is_as_it_was_when_its_mutant_has_been_tried(tree: Queue[Path]) -> None:
    copy = tree.get()
    tree.put(copy)
    assert [mutant.name for mutant in MUTANTS if not changed(copy, mutant)] == []
