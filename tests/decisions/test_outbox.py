"""Who is told of which end, in which order, and which ends have to wait."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from arc.decisions.outbox import (
    EndHeard,
    JoinHeard,
    Known,
    Letter,
    last_words,
    needless,
    write_letters,
)

EARLY, LATE = "2026-03-10T03:00:00.000Z", "2026-03-10T04:00:00.000Z"


def an_end(uid: str, node: str = "iris", state: str = "COMPLETED", **fields: object) -> EndHeard:
    said = {"at": EARLY, "seq": 1, **fields}
    return EndHeard(uid, node, state, **said)  # type: ignore[arg-type]


def a_birth(uid: str, *, dag: str = "G", node: str = "iris", seq: int = 1) -> JoinHeard:
    return JoinHeard(uid, dag, node, seq, parent="P")


def test_an_end_goes_to_every_store_that_waits_for_it_and_to_no_other() -> None:
    known = Known(ends=[an_end("A"), an_end("B")])
    letters = write_letters({"inbox": {"A"}, "loom": {"A", "C"}, "forge": set()}, known)
    assert [(one.store, [end.uid for end in one.ended]) for one in letters] == [
        ("inbox", ["A"]), ("loom", ["A"])]  # fmt: skip


def test_a_store_is_not_told_of_an_end_that_it_saw_itself() -> None:
    """Seen to fail without the guard: the node would be told its own end, from elsewhere."""
    assert write_letters({"iris": {"A"}}, Known(ends=[an_end("A", "iris")])) == ()


def test_ends_are_told_in_the_order_in_which_each_node_told_them() -> None:
    ends = [an_end("A", seq=30), an_end("B", seq=2), an_end("C", "forge", seq=9),
            an_end("D", seq=-1)]  # fmt: skip
    (letter,) = write_letters({"inbox": {"A", "B", "C", "D"}}, Known(ends=ends))
    assert [end.uid for end in letter.ended] == ["C", "B", "A", "D"]


def test_of_two_ends_of_a_task_done_is_done_and_else_the_later_one_counts() -> None:
    two = [an_end("A", "iris", "CANCELLED", at=LATE), an_end("A", "loom", "COMPLETED")]
    assert last_words(two)["A"].state == "COMPLETED"
    two = [an_end("A", "iris", "CANCELLED", at=LATE), an_end("A", "loom", "DEAD_LETTERED")]
    assert last_words(two)["A"].state == "CANCELLED"


def test_a_bad_end_waits_while_its_node_has_more_to_tell() -> None:
    """It may have been taken back since: seen to fail without the guard, and then dependents of a
    task that was retried long ago are cancelled.
    """
    ends = [an_end("A", state="CANCELLED"), an_end("B")]
    assert last_words(ends, behind={"iris"}).keys() == {"B"}
    assert last_words(ends, behind={"loom"}).keys() == {"A", "B"}


def test_an_end_that_no_event_told_waits_until_its_node_was_heard() -> None:
    """Its node may have told of a birth before it, and the graph must not end without that one."""
    end = an_end("A", seq=-1)
    assert last_words([end], behind={"iris"}) == {}
    assert last_words([end]) == {"A": end}


def test_a_birth_goes_to_the_home_of_its_graph_alone() -> None:
    known = Known(joins=[a_birth("C"), a_birth("D", dag="H")], homes={"G": "inbox"})
    assert write_letters({"inbox": set(), "iris": set(), "loom": set()}, known) == (
        Letter("inbox", joined=(a_birth("C"),)),
    )


def test_a_birth_at_its_graphs_own_home_is_nobodys_news() -> None:
    known = Known(joins=[a_birth("C"), a_birth("D", node="loom")], homes={"G": "iris"})
    assert needless(known) == ("C",)
    (letter,) = write_letters({"iris": set()}, known)
    assert [one.uid for one in letter.joined] == ["D"]


def test_what_lives_again_is_told_to_those_who_were_told_its_end() -> None:
    known = Known(revived=[("inbox", "A"), ("loom", "B")])
    assert write_letters({"inbox": set()}, known) == (Letter("inbox", alive=("A",)),)


UIDS = st.sampled_from("ABCDEF")
NODES = st.sampled_from(["forge", "iris", "loom"])
ENDS = st.builds(
    EndHeard, uid=UIDS, node=NODES,
    state=st.sampled_from(["COMPLETED", "CANCELLED", "DEAD_LETTERED", "FAILED"]),
    at=st.sampled_from([EARLY, LATE]), seq=st.integers(-1, 9),
)  # fmt: skip


@given(st.lists(ENDS, max_size=20), st.sets(UIDS), st.integers())
def test_the_letter_does_not_depend_on_the_order_in_which_ends_were_read(
    ends: list[EndHeard], wanted: set[str], seed: int
) -> None:
    by_place = {(end.uid, end.node): end for end in ends}  # the journal keeps one of each
    ends = list(by_place.values())
    mixed = ends[:]
    Random(seed).shuffle(mixed)
    one = write_letters({"inbox": wanted}, Known(ends=ends))
    assert one == write_letters({"inbox": wanted}, Known(ends=mixed))
    told = [end.uid for letter in one for end in letter.ended]
    assert set(told) == wanted & {end.uid for end in ends}
    assert len(told) == len(set(told))
