"""Rubbish is looked for seldom, and then as before."""

from __future__ import annotations

import gc

import pytest

from agent_node.rubbish import seldom


def test_within_it_is_seldom_and_afterwards_as_before() -> None:
    before = gc.get_threshold()
    with seldom():
        assert gc.get_threshold()[0] > before[0]
        assert gc.isenabled()
    assert gc.get_threshold() == before


def test_it_is_as_before_after_a_fault_too() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="it"), seldom():
        raise ValueError("it")
    assert gc.get_threshold() == before
