"""What `arc dag …` says of members and money that it does not know: unknown is never empty."""

from __future__ import annotations

import asyncio
import json
from unittest.mock import patch

import pytest

from agent_node.strict import JsonObject
from arc.operations import graph_finding
from arc.text.dags import render_show
from arc.text.look import Look
from tests.builders import uid
from tests.hub.cli.desk import Desk

DAG = uid(900)
ROUTER = ("sensors", "run", "fleet-router")
LATER = "2026-03-11T03:43:00Z"


def spread_out(desk: Desk) -> None:
    """Two members on iris, one of them without a name in its graph, and one of those at home."""
    fetch: JsonObject = {"uid": uid(1), "subject": "fetch it", "skills": ["arc-research"]}
    tasks: JsonObject = {"fetch": fetch}
    graph: JsonObject = {"id": DAG, "title": "far", "budget_usd": "5", "tasks": tasks}
    asyncio.run(desk.hub.inbox.ask("submit", {"graph": graph, "by": "human:ann"}))
    for number, words in ((2, {"skills": ["arc-research"]}), (3, {"not_before": LATER})):
        task = {"uid": uid(number), "subject": f"work {number}", "dag": DAG, **words}
        stdin = json.dumps(task).encode()
        assert desk.arc("tasks", "import", "-", stdin=stdin).code == 0
    assert desk.arc(*ROUTER).code == 0


def member(desk: Desk, number: int) -> JsonObject:
    data = desk.arc("dag", "show", DAG, "--json").data
    found: JsonObject = next(one for one in data["tasks"] if one["uid"] == uid(number))
    return found


def test_what_a_member_elsewhere_is_called_is_asked_of_the_node_that_has_it(desk: Desk) -> None:
    """Seen to fail: a dash stood where its subject should, and `""` in the JSON."""
    spread_out(desk)
    there = member(desk, 2)
    assert (there["subject"], there["name"], there["at_home"]) == ("work 2", None, False)
    assert there["node"] in ("iris", "loom", "spark")
    assert " work 2 " in desk.arc("dag", "show", DAG).out
    home = member(desk, 3)
    assert (home["node"], home["at_home"], home["progress"]) == (None, True, None)


def test_a_member_whose_node_is_away_is_not_known_and_not_empty(desk: Desk) -> None:
    """Seen to fail: `?`, a dash and `spent 0`; `""` in the JSON."""
    spread_out(desk)
    desk.nodes.switch_off(str(member(desk, 2)["node"]))
    ran = desk.arc("dag", "show", DAG)
    assert ran.code == 3
    there = member(desk, 2)
    assert (there["subject"], there["progress"], there["state"]) == (None, None, "MOVED")
    assert "(not known)" in ran.out
    assert "it left, and how it stands is not known" in ran.out
    assert "? not known" in ran.lines[-1]
    assert "  money: spent not known of 2 tasks elsewhere, reserved 0, of 5 USD" in ran.lines
    assert desk.arc("dag", "show", DAG, "--json").data["cost_unknown"] == 2
    assert "? of 5" in desk.arc("dag", "list").out


def test_what_its_members_at_home_cost_is_known_before_any_is_given_away(desk: Desk) -> None:
    raw = b'{"title": "near", "budget_usd": "5", "tasks": {"a": {"subject": "a"}}}'
    dag = desk.arc("dag", "submit", "-", "--json", stdin=raw).data["dag"]
    assert "  money: spent 0, reserved 0, of 5 USD" in desk.arc("dag", "show", dag).lines
    assert desk.arc("dag", "list", "--json").data["dags"][0]["cost_unknown"] == 0


@pytest.mark.parametrize(
    ("spent", "reserved", "said"),
    [("1", "4", "of 5 USD"), ("1", "4.5", "of 5 USD; 0.5 more than that"),
     ("7", "0", "of 5 USD; 2 more than that"), (None, "9", "of 5 USD")],
)  # fmt: skip
def test_by_how_much_a_graph_has_passed_its_limit_is_said(
    spent: str | None, reserved: str, said: str
) -> None:
    """Children that began elsewhere before their graph's home heard of them may pass it."""
    text = render_show({"budget_usd": "5", "spent_usd": spent, "reserved_usd": reserved}, Look())
    (line,) = [one for one in text.splitlines() if "money" in one]
    assert line.endswith(f"reserved {reserved}, {said}")


def test_where_a_member_is_that_no_word_came_of_is_not_home(desk: Desk) -> None:
    """A child that was born elsewhere into the graph: its home knows its uid and no more."""
    spread_out(desk)
    births: JsonObject = {"tasks": [{"uid": uid(7), "dag": DAG, "parent": uid(1)}]}
    asyncio.run(desk.hub.inbox.ask("joined", births))
    there = member(desk, 7)
    assert (there["node"], there["at_home"], there["subject"]) == (None, False, None)
    (line,) = [one for one in desk.arc("dag", "show", DAG).lines if "how it stands" in one]
    assert " ".join(line.split()[:7]) == "? (not known) 0007 MOVED not known"


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_a_store_that_does_not_tell_who_waits_for_money_has_not_said_that_nobody_does(
    desk: Desk, words: tuple[str, ...]
) -> None:
    """Seen to fail: `0 tasks waiting for it`, and in the JSON 0."""
    spread_out(desk)
    ask = desk.hub.inbox.ask

    async def older(do: str, fields: JsonObject) -> JsonObject:
        said = await ask(do, fields)
        for one in said.get("scopes") or []:  # type: ignore[union-attr]
            del one["waiting"]  # type: ignore[union-attr,arg-type]
        return said

    with patch.object(desk.hub.inbox, "ask", older):
        ran = desk.arc("dag", "budget", DAG, "7", *words)
        data = desk.arc("dag", "budget", DAG, "7", *words, "--json").data
    assert ran.code == 0, ran.err
    assert "not known how many tasks are" in ran.out
    assert (data["waited"], data["waiting"]) == (None, None)


def test_a_dry_run_of_less_money_does_not_say_that_nobody_would_wait(desk: Desk) -> None:
    """Seen to fail: `waiting` was 0, or the figure of the limit that holds."""
    spread_out(desk)
    assert desk.arc("dag", "budget", DAG, "1", "--dry-run", "--json").data["waiting"] is None
    assert desk.arc("dag", "budget", DAG, "none", "--dry-run", "--json").data["waiting"] == 0


def test_without_a_limit_before_and_after_what_was_spent_is_told_all_the_same(desk: Desk) -> None:
    """Seen to fail: `0 spent, 0 reserved`, of tasks that are elsewhere."""
    spread_out(desk)
    assert desk.arc("dag", "budget", DAG, "none").code == 0
    ran = desk.arc("dag", "budget", DAG, "none")
    assert ran.out.endswith("was any sum: spent not known of 2 tasks elsewhere\n")


def test_a_graph_of_several_pages_has_the_roots_and_leaves_of_all_its_members(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: of 2,000 members and more those of the first page stood there."""
    tasks = {f"t{n}": {"subject": f"work {n}", **({"after": [f"t{n - 1}"]} if n else {})}
             for n in range(5)}  # fmt: skip
    tasks["alone"] = {"subject": "for itself"}
    raw = json.dumps({"title": "long", "tasks": tasks}).encode()
    dag = desk.arc("dag", "submit", "-", "--json", stdin=raw).data["dag"]
    whole = desk.arc("dag", "show", dag, "--json").data
    assert (len(whole["roots"]), len(whole["leaves"])) == (2, 2)

    monkeypatch.setattr(graph_finding, "MEMBERS_PAGE", 2)

    paged = desk.arc("dag", "show", dag, "--json").data
    assert (paged["roots"], paged["leaves"]) == (whole["roots"], whole["leaves"])
    assert [one["uid"] for one in paged["tasks"]] == [one["uid"] for one in whole["tasks"]]
