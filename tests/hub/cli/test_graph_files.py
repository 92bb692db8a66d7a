"""Graph files: YAML and JSON are read, and every fault is said with its line."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from arc.cli.graph_files import graph_in, why_it_takes_long
from arc.errors import ArcError, BadGraph, WrongUse

GOOD = """\
title: nightly
budget_usd: 5.10
tasks:
  fetch: {subject: fetch it, max_cost_usd: 0.30}
  parse: {subject: parse it, after: [fetch]}
  mail:
    subject: mail it
    after: [{task: parse, on_failure: skip}]
"""


def read(text: str, file: str = "g.yaml") -> dict[str, object]:
    return dict(graph_in(text.encode(), file, by="human:ann"))


def fault(text: str, file: str = "g.yaml") -> ArcError:
    with pytest.raises(ArcError) as caught:
        read(text, file)
    return caught.value


def test_yaml_and_json_say_the_same() -> None:
    said = read(GOOD)
    assert read(json.dumps(said), "g.json") == said
    assert read(json.dumps(said), "stdin") == said
    assert list(said["tasks"]) == ["fetch", "parse", "mail"]  # type: ignore[call-overload]


def test_money_is_what_was_written_to_the_cent() -> None:
    """Read as a number, 5.10 would be 5.1, and 0.30 something near it."""
    said = read(GOOD)
    assert said["budget_usd"] == "5.10"
    assert Decimal(said["tasks"]["fetch"]["max_cost_usd"]) == Decimal("0.30")  # type: ignore[index]


@pytest.mark.parametrize(
    ("was", "becomes", "line", "says"),
    [
        ("after: [fetch]", "after: [ftech]", 5, "ftech"),
        ("subject: mail it", "subjct: mail it", 7, "subject"),
        ("title: nightly", "titel: nightly", 1, "titel"),
        ("budget_usd: 5.10", "budget_usd: -1", 2, "budget_usd"),
        ("fetch it", "fetch it, after: [mail]", 4, "fetch"),
    ],
)
def test_a_fault_is_said_with_its_line(was: str, becomes: str, line: int, says: str) -> None:
    error = fault(GOOD.replace(was, becomes, 1))
    assert isinstance(error, BadGraph)
    assert error.exit_code == 2
    assert error.where.startswith(f"g.yaml:{line}:"), (error.where, str(error))
    assert says in str(error)
    assert "nothing was added" in str(error)


def test_a_cycle_is_named_by_its_tasks() -> None:
    error = fault(GOOD.replace("fetch it", "fetch it, after: [mail]"))
    assert "->" in str(error)
    assert {"fetch", "parse", "mail"} <= set(str(error).replace(",", " ").split())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("title: [", "g.yaml:1:"),
        ("- a\n- b\n", "a graph is a mapping"),
        ("", "a graph is a mapping"),
        ("title: a\ntitle: b\ntasks: {}\n", "stands here twice"),
        ("title: !!python/object:os.system x\ntasks: {}\n", "means nothing here"),
        ("a: &a [x,x]\nb: &b [*a,*a]\nc: *c\n", "g.yaml"),
    ],
)
def test_what_is_no_graph_is_one_clear_error(text: str, says: str) -> None:
    assert says in str(fault(text))


def test_bad_json_is_said_with_line_and_column() -> None:
    error = fault('{"title": "x",\n "tasks": }', "stdin")
    assert isinstance(error, WrongUse)
    assert "stdin:2:" in str(error)


def test_a_file_that_is_too_long_is_not_read_to_its_end() -> None:
    assert "at most" in str(fault("x" * (9 * 1024 * 1024)))


def test_yaml_that_takes_seconds_is_said_to_and_json_never_is() -> None:
    """Nobody looks at a silent terminal for half a minute and wonders."""
    long = b"title: x\n" + b"# nothing\n" * 60_000
    assert "KiB of YAML, about 12 s; JSON is read at once" in why_it_takes_long(long, "x.yaml")
    assert why_it_takes_long(b"title: x\n", "x.yaml") == ""
    assert why_it_takes_long(b"{" + long, "x.json") == ""


def test_usual_yaml_is_read_fast_and_what_is_wrong_says_first_that_it_takes_long() -> None:
    """Seen to fail where everything was read by the whole reader: a quarter of a minute."""
    many = "".join(f"  t{n}: {{subject: number {n}}}\n" for n in range(6000))
    usual, said = f"title: x\ntasks:\n{many}", list[str]()
    assert len(dict(graph_in(usual.encode(), "g.yaml", by="me", talk=said.append))) == 2
    assert said == []
    with pytest.raises(BadGraph) as caught:
        graph_in(f"{usual}  t7: {{subject: again}}\n".encode(), "g.yaml", by="me",
                 talk=said.append)  # fmt: skip
    assert "g.yaml:6003:3" in str(caught.value)
    assert "KiB of YAML" in "".join(said)


MANY = """\
title: nightly
tasks:
  first: {subject: stands first}
  fetch: {subject: fetch it, after: [mail], priority: 12}
  parse: {subject: parse it, after: [fetch, ftech]}
  mail:
    subjct: mail it
    after: [{task: parse, on_failure: explode}, parse]
"""


def test_every_fault_of_a_file_is_said_with_its_line() -> None:
    """Seen to fail: a file of six faults was handed in six times, and told one each time."""
    error = fault(MANY)
    assert isinstance(error, BadGraph)
    assert [(one["line"], str(one["message"]).partition(": ")[0]) for one in error.problems] == [
        (4, "graph.tasks.fetch.after[0]"), (4, "graph.tasks.fetch.priority"),
        (5, "graph.tasks.parse.after[1]"), (7, "graph.tasks.mail.subject"),
        (8, "graph.tasks.mail.after[0].on_failure"),
    ]  # fmt: skip
    assert error.where.startswith("g.yaml:4:")
    assert str(error).count("^") == len(error.problems)
    assert str(error).endswith("\nnothing was added")


def test_the_caret_of_a_cycle_stands_below_one_of_its_tasks() -> None:
    """Seen to fail: it stood below `first`, which waits for nothing."""
    text = "title: t\ntasks:\n  first: {subject: a}\n  x: {subject: x, after: [y]}\n"
    error = fault(f"{text}  y: {{subject: y, after: [x]}}\n")
    assert error.where == "g.yaml:4:27", str(error)
    assert "a cycle: x -> y -> x" in str(error)


def test_of_very_many_faults_the_first_twenty_are_shown() -> None:
    lines = "".join(f"  t{number}: {{subject: x, after: [nobody]}}\n" for number in range(50))
    error = fault(f"title: t\ntasks:\n{lines}")
    assert isinstance(error, BadGraph)
    assert len(error.problems) == 20
    assert str(error).endswith("\n… and 30 more\nnothing was added")
