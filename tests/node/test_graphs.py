"""Holds the pure half of graphs: documents, cycles, the longest path, and what edges say."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_node.errors import BadInput
from agent_node.graph_document import following, minted, read_graph
from agent_node.graphs import TASKS_MAX, THEN_MAX, Derived, Graph
from agent_node.readiness import (
    EDGES_MAX,
    Came,
    Edge,
    OnFailure,
    Verdict,
    came_of,
    edges_of,
    judge,
)
from agent_node.references import references_of
from agent_node.strict import JsonObject, JsonValue
from tests.builders import uid

DAG = "01DAG000000000000000000001"


def document(**tasks: JsonValue) -> JsonObject:
    """Tasks by name, of which only what they wait for is said."""
    told: JsonObject = {
        name: {"subject": name, **(said if isinstance(said, dict) else {"after": said})}
        for name, said in tasks.items()
    }
    return {"title": "t", "id": DAG, "tasks": told}


def read(said: JsonValue) -> Graph:
    return read_graph(said, mint=Derived(DAG, "tasks"))


def names(graph: Graph, uids: tuple[str, ...]) -> list[str]:
    known = {one.task.uid: one.name for one in graph.members}
    return [known[uid] for uid in uids]


def test_names_become_uids_and_edges() -> None:
    graph = read(document(a=[], b=["a", {"task": uid(9), "on_failure": "run"}]))
    a, b = graph.members
    assert b.task.depends_on == [
        {"uid": a.task.uid, "on_failure": "fail"}, {"uid": uid(9), "on_failure": "run"},
    ]  # fmt: skip
    assert (names(graph, graph.roots), names(graph, graph.leaves)) == (["a"], ["b"])
    assert a.task.dag == DAG


def test_the_longest_path_goes_by_what_tasks_are_expected_to_take() -> None:
    long: JsonValue = {"after": ["a"], "expected_s": 9}
    graph = read(document(a=[], short=["a"], long=long, z=["short", "long"]))
    assert names(graph, graph.critical_path) == ["a", "long", "z"]
    weights = {one.name: one.weight for one in graph.members}
    assert weights["a"] > weights["long"] > weights["z"] == 0.0


def test_a_context_is_waited_for_and_stands_with_uids() -> None:
    graph = read(document(a=[], b={"context": ["a", "a.outcome", f"task:{uid(9)}:output"]}))
    a, b = (one.task for one in graph.members)
    assert b.context_refs == [
        f"task:{a.uid}:output", f"task:{a.uid}:outcome", f"task:{uid(9)}:output"]  # fmt: skip
    assert [edge.needs for edge in edges_of(b.depends_on, of=b.uid)] == [a.uid, uid(9)]


def test_an_edge_of_which_nothing_is_said_fails_its_task_with_what_it_waits_for() -> None:
    said: list[JsonValue] = [uid(2), {"uid": uid(3)}, {"uid": uid(4), "on_failure": "run"}]
    assert edges_of(said, of=uid(1)) == [
        Edge(uid(2), "fail"), Edge(uid(3), "fail"), Edge(uid(4), "run")]  # fmt: skip


def test_a_list_of_named_tasks_is_the_same_graph() -> None:
    listed: JsonObject = {"title": "t", "id": DAG, "tasks": [
        {"name": "a", "subject": "a"}, {"name": "b", "subject": "b", "after": ["a"]}]}  # fmt: skip
    assert read(listed).content == read(document(a=[], b=["a"])).content


def test_ids_are_no_content_and_all_else_is() -> None:
    first, second = (minted(document(a=[], b=["a"]), Derived(uid(n), "x")) for n in (1, 2))
    assert read(first).content == read(second).content
    assert read(first).members[0].task.uid != read(second).members[0].task.uid
    assert read(document(a=[], b=[{"task": "a", "on_failure": "skip"}])).content != (
        read(document(a=[], b=["a"])).content)  # fmt: skip


def test_what_follows_has_the_same_ids_every_time() -> None:
    then: JsonObject = {"title": "n", "tasks": {"x": {"subject": "x"}}}
    assert following(DAG, then) == following(DAG, then)
    assert following(DAG, then).id == Derived(DAG)()
    assert following(DAG, then).members[0].task.source == f"graph:{DAG}"


def followed_by(then: JsonValue) -> JsonObject:
    """A good graph, and what is to follow it."""
    return {**document(a=[]), "then": then}


def nested(depth: int) -> JsonObject:
    said: JsonObject = document(a=[])
    for _ in range(depth - 1):
        said = {"title": "t", "tasks": {"a": {"subject": "a"}}, "then": said}
        inner = said["then"]
        assert isinstance(inner, dict)
        inner.pop("id", None)
    return said


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (document(a=["c"], b=["a"], c=["b"]), "a cycle: [abc] -> [abc] -> [abc] -> [abc]"),
        (document(a=["a"]), "a cycle: a -> a"),
        (document(a=["nobody"]), r"tasks\.a\.after\[0\].*named nobody"),
        (document(a=[], b=["a", {"task": "a", "on_failure": "run"}]), "twice, and not alike"),
        (document(a=[{"task": "b", "on_failure": "explode"}], b=[]), "fail, skip, run"),
        (document(a=[{"task": "b", "when": 1}], b=[]), "no such field"),
        (document(a=7), "where a list belongs"),
        (document(a={"subject": ""}), "missing or empty"),
        (document(a={"state": "COMPLETED"}), "written by the node alone"),
        (document(a={"depends_on": [uid(1)]}), "said as `after`"),
        (document(a={"dag": DAG}), "belongs to this graph"),
        (document(a={"context": ["b.output"]}), "task of this graph"),
        (document(a=[], b={"context": ["a.nonsense"]}), "output, outcome or artifact"),
        (document(a={"max_cost_usd": "-1"}), "decimal string.*never below 0"),
        (document(a={"uid": uid(1)}, b={"uid": uid(1)}), "stands twice"),
        ({**document(a=[]), "budget_usd": "-5"}, "budget_usd: an amount"),
        ({**document(a=[]), "budget_usd": 5}, "budget_usd: an amount"),
        ({**document(a=[]), "titel": "x"}, "no such field"),
        ({**document(a=[]), "title": ""}, "every graph has one"),
        ({"title": "t", "tasks": {}}, "0 tasks"),
        ({"title": "t", "tasks": {"a b": {"subject": "x"}}}, "a name is"),
        ({"title": "t", "tasks": {uid(1): {"subject": "x"}}}, "a name is"),
        ({"title": "t", "tasks": [{"name": "a", "subject": "x"}] * 2}, "the name a stands twice"),
        ({"title": "t", "tasks": [{"subject": "x"}]}, "a name is"),
        ({"title": "t"}, "tasks by their names"),
        (followed_by({"title": "n", "id": DAG, "tasks": {}}), "from the one before"),
        (followed_by({"title": "n", "tasks": {"x": {}}}), "then.tasks.x.subject"),
        (nested(THEN_MAX + 1), f"at most {THEN_MAX} may"),
        ([], "a list where a graph belongs"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_error_that_says_where(said: JsonValue, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        read(said)


def test_only_a_budget_can_be_passed_by_what_is_urgent() -> None:
    money: JsonObject = {"budget_usd": "5", "urgent_overdraft": True}
    assert read({**document(a=[]), **money}).urgent_overdraft
    assert not read({**document(a=[]), "budget_usd": "5"}).urgent_overdraft
    with pytest.raises(BadInput, match=r"graph\.urgent_overdraft: there is no budget_usd"):
        read({**document(a=[]), "urgent_overdraft": True})
    with pytest.raises(BadInput, match="urgent_overdraft"):
        read({**document(a=[]), **money, "urgent_overdraft": "yes"})


def test_too_many_tasks_are_refused_also_where_they_follow() -> None:
    many: JsonObject = {f"t{number}": {"subject": "x"} for number in range(TASKS_MAX + 1)}
    with pytest.raises(BadInput, match=f"{TASKS_MAX + 1} tasks"):
        read({"title": "t", "tasks": many})
    many.popitem()
    with pytest.raises(BadInput, match=f"{TASKS_MAX + 1} tasks with those that follow"):
        read({**document(a=[]), "then": {"title": "n", "tasks": many}})
    assert read(nested(THEN_MAX)).then is not None


def test_more_edges_than_a_graph_may_have_are_refused() -> None:
    """Fails where only tasks are counted: ten thousand of them may name each other a great deal."""
    width = next(number for number in range(1000) if number * (number - 1) // 2 > EDGES_MAX)
    tasks: JsonObject = {
        f"t{number}": [f"t{before}" for before in range(number)] for number in range(width)
    }
    with pytest.raises(BadInput, match=rf"{width * (width - 1) // 2} edges; at most {EDGES_MAX}"):
        read(document(**tasks))


def test_a_reference_that_cannot_be_read_is_named() -> None:
    with pytest.raises(BadInput, match=r"context_refs\[1\]"):
        references_of([f"task:{uid(1)}:output", "task:nobody:output"])
    with pytest.raises(BadInput, match="at most 64"):
        references_of([f"task:{uid(number)}:output" for number in range(65)])


# --- What edges say ----------------------------------------------------------------------------

WORDS: st.SearchStrategy[OnFailure] = st.sampled_from(["fail", "skip", "run"])
CAME: st.SearchStrategy[Came] = st.sampled_from(["well", "badly", "skipped"])


def plainly(edges: list[Edge]) -> str:
    """The definition: of edges that have all come."""
    bad = {edge.on_failure for edge in edges if edge.came == "badly"}
    return "fails" if "fail" in bad else "skips" if "skip" in bad else "ready"


@given(st.lists(st.tuples(WORDS, CAME), max_size=4))
def test_the_order_of_ends_decides_nothing(said: list[tuple[OnFailure, Came]]) -> None:
    """Whatever is decided early is what is decided at the end, in every order."""
    whole = [Edge(uid(place), word, came) for place, (word, came) in enumerate(said)]
    for order in permutations(range(len(whole))):
        for known in range(len(whole) + 1):
            come = set(order[:known])
            some = [edge if place in come else Edge(edge.needs, edge.on_failure)
                    for place, edge in enumerate(whole)]  # fmt: skip
            kind = judge(some).kind
            assert kind == plainly(whole) or (kind == "waits" and known < len(whole))


def test_how_each_state_counts() -> None:
    assert came_of("COMPLETED") == "well"
    assert {came_of(state) for state in ("FAILED", "CANCELLED", "DEAD_LETTERED")} == {"badly"}
    assert came_of("CANCELLED", Verdict("skips", uid(1)).because) == "skipped"
    assert came_of("CANCELLED", Verdict("fails", uid(1)).because) == "badly"
    assert came_of("CANCELLED", "skipped: because I say so") == "badly"
    assert {came_of(state) for state in ("PARKED", "RETRYING", "MOVED", "READY")} == {None}


@settings(max_examples=50)
@given(st.integers(1, 30), st.randoms(use_true_random=False))
def test_the_longest_path_is_a_path_and_none_is_longer(size: int, chance: object) -> None:
    import random

    assert isinstance(chance, random.Random)
    after = [[f"t{one}" for one in range(place) if chance.random() < 0.2] for place in range(size)]
    tasks: JsonObject = {f"t{place}": [*some] for place, some in enumerate(after)}
    graph = read(document(**tasks))
    path = names(graph, graph.critical_path)
    assert all(one in after[int(two[1:])] for one, two in pairwise(path))
    longest = [0] * size
    for place in range(size):
        longest[place] = 1 + max((longest[int(one[1:])] for one in after[place]), default=0)
    assert len(path) == max(longest)


def faults_of(said: JsonValue) -> BadInput:
    with pytest.raises(BadInput) as caught:
        read(said)
    return caught.value


def test_all_that_is_wrong_is_told_at_once_and_each_by_its_place() -> None:
    """Seen to fail: only the first one was told, and so once for each time it was handed in."""
    said = document(good=[], lost=["nobody", "good", "none"], bad={"after": 7, "priority": "x"},
                    born={"state": "COMPLETED", "max_cost_usd": "-1", "subject": ""},
                    free={"after": ["bad", "born"], "context": ["good.nonsense"]})  # fmt: skip
    error = faults_of({**said, "titel": "x", "budget_usd": 5,
                       "then": {"title": "n", "key": "k", "tasks": {"a b": {"subject": "x"}}}})
    assert [one.field for one in error.faults] == [
        "graph.titel", "graph.budget_usd", "graph.tasks.lost.after[0]", "graph.tasks.lost.after[2]",
        "graph.tasks.bad.after", "graph.tasks.bad.priority", "graph.tasks.born.state",
        "graph.tasks.born.max_cost_usd", "graph.tasks.born.subject", "graph.tasks.free.context[0]",
        "graph.then.key", "graph.then.tasks.a b",
    ]  # fmt: skip
    assert (error.code, error.field, error.more) == ("bad_input", "graph.titel", 0)
    assert str(error).count("\n") == len(error.faults) - 1


def test_of_very_many_faults_the_first_are_told_and_the_others_counted() -> None:
    many: JsonObject = {f"t{number}": {"subject": "x", "after": ["nobody"]} for number in range(50)}
    error = faults_of({"title": "t", "tasks": many})
    assert (len(error.faults), error.more) == (20, 30)
    assert str(error).endswith("\n… and 30 more")


def test_where_not_every_fault_is_looked_for_that_is_a_fault_that_is_told() -> None:
    """Seen to fail: twenty of 25 cycles, and eight of 30 odd fields, were said to be all."""
    pairs: JsonObject = {}
    for number in range(25):
        here, there = f"a{number}", f"b{number}"
        pairs[here] = {"subject": "x", "after": [there]}
        pairs[there] = {"subject": "x", "after": [here]}
    error = faults_of({"title": "t", "tasks": pairs})
    assert (len(error.faults), error.more) == (20, 1)
    odd: JsonObject = {f"odd{number}": 1 for number in range(30)}
    error = faults_of({"title": "t", "tasks": {"a": {"subject": "x"}}, **odd})
    assert str(error.faults[-1]) == "graph: more is wrong here than was looked for"


def test_a_name_cannot_write_a_line_of_its_own_into_what_is_told() -> None:
    """Seen to fail of the first fault: what stood behind a line break looked like ours."""
    wrong: JsonObject = {"subject": "x"}
    error = faults_of({"title": "t", "tasks": {"a\nhint: b": wrong, "c\nhint: d": wrong}})
    assert len(error.faults) == 2
    assert len(str(error).splitlines()) == len(error.faults), str(error)


def test_a_cycle_is_told_at_its_own_tasks_and_each_of_several() -> None:
    """Seen to fail: its place was `tasks`, and what stands first there has no part in it."""
    error = faults_of(document(
        innocent=[], a=["innocent", "c"], b={"context": ["a"]}, c=["b"], one=["two"], two=["one"],
        behind=["a", "one"], self=["self"],
    ))  # fmt: skip
    told = {one.field: str(one).partition(": ")[2] for one in error.faults}
    assert told == {
        "graph.tasks.a.after[1]": "a cycle: a -> b -> c -> a",
        "graph.tasks.one.after[0]": "a cycle: one -> two -> one",
        "graph.tasks.self.after[0]": "a cycle: self -> self",
    }


@settings(max_examples=60)
@given(st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | st.sampled_from(["a", "b", "", uid(1), "x."]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["title", "tasks", "then", "a", "b", "subject", "after", "context", "task", "on_failure",
         "uid", "name", "priority", "dag", "depends_on", "key"]), inner, max_size=5),
    max_leaves=25,
))  # fmt: skip
def test_whatever_is_handed_in_is_a_graph_or_one_error_with_places(said: JsonValue) -> None:
    error: BadInput | None = None
    try:
        read(said)
    except BadInput as found:
        error = found
    assert error is None or str(error).startswith(str(error.faults[0]))


def test_no_document_makes_more_of_its_faults_than_is_told() -> None:
    """Of a million faults the first thousand are looked for, and no list of them is kept."""
    error = faults_of({"title": "t", "tasks": {"a": {"subject": "x", "after": [7] * 1_000_000}}})
    assert str(error).endswith("\n… and 980 more at least")
