"""Tasks that wait for each other are found, whatever else waits beside them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from arc.decisions.circles import CIRCLES_MAX, circles

names = st.sampled_from("abcdefgh")
fleets = st.dictionaries(names, st.sets(names), max_size=8)


def test_a_circle_is_named_from_its_least_task_on_in_the_order_of_waiting() -> None:
    assert circles({"b": {"c"}, "c": {"a"}, "a": {"b"}, "x": {"a"}}) == (("a", "b", "c"),)


def test_what_runs_by_itself_is_in_no_circle() -> None:
    assert circles({"a": {"b"}}) == ()
    assert circles({"a": {"b"}, "b": {"c"}}) == ()


def test_circles_that_share_no_task_are_all_named_up_to_a_few() -> None:
    pairs = {f"{n}{end}": {f"{n}{other}"} for n in range(9) for end, other in ("ab", "ba")}
    assert circles(pairs)[0] == ("0a", "0b")
    assert len(circles(pairs)) == CIRCLES_MAX


@given(fleets)
def test_each_of_a_circle_waits_for_the_next_and_without_one_all_can_go_on(
    waits: dict[str, set[str]],
) -> None:
    found = circles(waits)
    for one in found:
        assert all(after in waits[uid]
                   for uid, after in zip(one, (*one[1:], one[0]), strict=True))  # fmt: skip
    if not found:
        open_tasks = dict(waits)
        while free := [uid for uid, needs in open_tasks.items() if not needs & open_tasks.keys()]:
            for uid in free:
                open_tasks.pop(uid)
        assert open_tasks == {}
