"""What may still be spent is exact, and no amount is believed that is none."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_node.budget import (
    Purse,
    amount_of,
    asked_by,
    day_of,
    enough_for,
    midnight_after,
    minus,
    objection,
    plus,
    text_of,
)

amounts = st.decimals(0, Decimal("999999999999.999999999"), places=9)


@given(st.lists(amounts, max_size=30))
def test_what_is_taken_and_given_back_leaves_nothing(some: list[Decimal]) -> None:
    total = Decimal(0)
    for amount in some:
        total = plus(total, amount)
    for amount in reversed(some):
        total = minus(total, amount)
    assert total == 0


@given(amounts)
def test_an_amount_survives_being_written_down(amount: Decimal) -> None:
    text = text_of(amount)
    assert amount_of(text) == amount
    assert "E" not in text


@pytest.mark.parametrize("text", ["-1", "NaN", "inf", "1e3", "", "1.", " 1", "1" * 13,
                                  "0.1234567891", "+1", "\uff11"])  # fmt: skip
def test_what_is_no_amount_is_refused(text: str) -> None:
    """Fails when Decimal alone is asked: it takes NaN, exponents and signs."""
    with pytest.raises(ValueError, match="no amount"):
        amount_of(text)


@pytest.mark.parametrize(
    ("limit", "spent", "reserved", "asks", "may"),
    [("5", "0", "0", "5", True), ("5", "0", "0", "5.000000001", False),
     ("5", "3", "2", "0", False), ("5", "3", "1.5", "0.5", True), ("5", "3", "1.5", "0", True),
     ("0", "0", "0", "0", False), ("5", "7", "0", "0", False)],
)  # fmt: skip
def test_what_fits_begins_and_what_does_not_waits(
    limit: str, spent: str, reserved: str, asks: str, *, may: bool
) -> None:
    purse = Purse("node", "2026-03-10", Decimal(limit), Decimal(spent), Decimal(reserved))
    why = objection(purse, Decimal(asks), 5)
    assert (why is None) == may
    if why is not None:
        assert "5" in why or "0" in why


@pytest.mark.parametrize(("limit", "smaller"), [("0", False), ("0.01", True)])
def test_no_smaller_cost_is_named_where_none_is_small_enough(limit: str, *, smaller: bool) -> None:
    why = objection(Purse("node", "2026-03-10", Decimal(limit)), Decimal(1), 5)
    assert why is not None
    assert ("smaller max cost" in why) == smaller


@pytest.mark.parametrize(("priority", "overdraft", "may"),
                         [(4, True, True), (5, True, False), (1, False, False)])  # fmt: skip
def test_urgent_work_may_go_on_over_budget_where_that_is_said(
    priority: int, *, overdraft: bool, may: bool
) -> None:
    purse = Purse("fleet", "2026-03-10", Decimal(1), Decimal(1), urgent_overdraft=overdraft)
    assert (objection(purse, Decimal(1), priority) is None) == may


@given(amounts, amounts, amounts)
def test_with_the_limit_that_is_named_as_enough_it_begins(
    spent: Decimal, reserved: Decimal, asks: Decimal
) -> None:
    """Seen to fail without the cent: of nothing left not even what asks for nothing begins."""
    purse = Purse("dag:x", "", Decimal(0), spent, reserved)
    assert objection(replace(purse, limit=enough_for(purse, asks)), asks, 5) is None


def test_a_task_asks_for_what_is_left_of_its_own_limit() -> None:
    assert asked_by("2", cost_so_far=Decimal("0.5"), assume_usd="7") == Decimal("1.5")
    assert asked_by("2", cost_so_far=Decimal(3), assume_usd="7") == 0
    assert asked_by(None, cost_so_far=Decimal(3), assume_usd="7") == 7


def test_days_are_utc_and_a_graph_knows_none() -> None:
    late = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert (day_of("node", late), day_of("dag:x", late)) == ("2026-12-31", "")
    assert midnight_after(late) == "2027-01-01T00:00:00.000Z"
