"""What each panel makes of the past; all pure, over a past that is written down here."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import arc.web
from agent_node.clock import iso
from arc.decisions.limits import GOES_BY, LIMITS
from arc.errors import WrongUse
from arc.history_seen import Arrival, KeptSeen, MoveSeen, NodeKnown, RunSeen, Sample, Stint
from arc.history_seen import StrandedStretch as Stretch
from arc.web.panels import PANELS
from arc.web.panels.what_if import asked_for
from tests.web.past_made import NOW, PastMade, a_night, s

HOUR = timedelta(hours=1)
UID = "01JQ0000000000000000000000"


def uid(number: int) -> str:
    return f"01JQ{number:022d}"


def shown(past: PastMade, panel: str, **query: str) -> Any:
    return PANELS[panel].data(past, NOW, query)  # type: ignore[arg-type]


def a_past(*nodes: str) -> PastMade:
    past = PastMade()
    past.all_nodes = [NodeKnown(name, NOW - 2 * HOUR, NOW, NOW) for name in nodes or ("iris",)]
    return past


def ran(number: int, ago: float, took: float | None, **more: Any) -> Stint:
    began = NOW - s(ago)
    fields: dict[str, Any] = {
        "node": "iris", "uid": uid(number), "n": 1, "agent": "iris", "domain": "infra",
        "priority": 5, "outcome": "completed" if took is not None else "", **more,
    }  # fmt: skip
    return Stint(claimed_at=began, started_at=began,
                 ended_at=None if took is None else began + s(took), **fields)


def seen(ago: float, until: float, pending: int = 0, **more: Any) -> Sample:
    fields: dict[str, Any] = {"node": "iris", "state": "running", "running": 1, "slots": 1, **more}
    return Sample(at=NOW - s(ago), until=NOW - s(until), pending=pending, **fields)


def cycle(number: int, ago: float, **more: Any) -> RunSeen:
    fields: dict[str, Any] = {
        "sensor": "fleet-rebalance", "because": "interval", "outcome": "done", "skipped": "",
        "summary": "", "code": "", "looked": 5, "unseen": 0, "decided": 0, "acted": 0,
        "requests": 9, "took_s": 0.2, "kept": {}, **more,
    }  # fmt: skip
    return RunSeen(id=number, at=NOW - s(ago), **fields)


# --- What may be asked ----------------------------------------------------------------------------


@pytest.mark.parametrize(("query", "says"), [
    ({"at": "yesterday"}, "at: should be a moment"), ({"at": "2026-03-10T03:00:00"}, "at: "),
    ({"at": "0001-01-01T00:00:00Z"}, "nothing was remembered"), ({"span": "3"}, "span: "),
    ({"span": "1s"}, "10s to 14d"), ({"span": "15d"}, "10s to 14d"), ({"nodes": "a,B"}, "nodes: "),
    ({"nodes": "../x"}, "nodes: "), ({"width": "9" * 30}, "width: "), ({"width": "-1"}, "width: "),
])  # fmt: skip
def test_a_question_that_makes_no_sense_is_wrong_use_and_names_its_part(
    query: dict[str, str], says: str
) -> None:
    with pytest.raises(WrongUse, match=re.escape(says)):
        shown(a_past(), "lanes", **query)


def test_a_moment_that_is_still_to_come_is_now() -> None:
    data = shown(a_past(), "lanes", at="2030-01-01T00:00:00Z")

    assert data["until"] == int(NOW.timestamp() * 1000)


def test_every_panel_is_plain_json_of_a_night_and_of_a_past_without_anything() -> None:
    for past in (a_night(), PastMade()):
        for name in PANELS.keys() - {"what_if"}:
            query = {"uid": UID} if name == "life" else {}
            json.dumps(shown(past, name, **query), allow_nan=False)


def test_a_part_of_a_uid_is_no_life() -> None:
    with pytest.raises(WrongUse, match="uid"):
        shown(a_past(), "life", uid="7k3f")


# --- Lanes ----------------------------------------------------------------------------------------


def test_a_block_is_an_attempt_with_its_time_its_domain_its_end_and_its_cost() -> None:
    past = a_past()
    past.all_stints = [ran(1, 600, 60, cost_usd=Decimal("0.12"))]
    data = shown(past, "lanes", span="1h")

    assert data["domains"] == ["infra"]
    assert data["nodes"][0]["blocks"] == [
        [3000.0, 3060.0, 0, 0, uid(1), "completed", 1, 0.12, 5, ""]]


def test_attempts_side_by_side_lie_in_rows_and_those_after_one_another_in_one() -> None:
    past = a_past()
    past.all_stints = [ran(1, 600, 100), ran(2, 550, 100), ran(3, 400, 100)]
    blocks = shown(past, "lanes", span="1h")["nodes"][0]["blocks"]

    assert [block[2] for block in blocks] == [0, 1, 0]


def test_a_task_without_a_domain_has_the_colour_of_its_first_skill() -> None:
    past = a_past()
    past.all_stints = [ran(1, 600, 60, domain="")]
    past.all_arrivals = [Arrival(NOW - s(700), uid(1), "iris", "added", skills=("deploy", "x"))]

    assert shown(past, "lanes")["domains"] == ["deploy"]


def test_attempts_narrower_than_a_pixel_are_joined_but_one_that_failed_is_never_hidden() -> None:
    """Without the third condition of `Lane._joins` it lies in a block that went well."""
    past = a_past()
    past.all_stints = [ran(n, 600 - n, 0.9, outcome="failed" if n == 50 else "completed")
                       for n in range(100)]  # fmt: skip
    blocks = shown(past, "lanes", span="24h")["nodes"][0]["blocks"]

    assert len(blocks) == 3
    assert [(block[5], block[6]) for block in blocks] == [
        ("completed", 50), ("failed", 1), ("completed", 49)]


def test_however_many_attempts_there_were_the_lanes_stay_small() -> None:
    past = a_past(*(f"n{n}" for n in range(20)))
    past.all_stints = [ran(n, 3000 - n * 0.1, 3, node=f"n{n % 20}", domain=f"d{n % 7}")
                       for n in range(20_000)]  # fmt: skip
    data = shown(past, "lanes", span="1h")

    assert sum(len(node["blocks"]) for node in data["nodes"]) <= 1500
    assert sum(block[6] for node in data["nodes"] for block in node["blocks"]) == 20_000
    assert len(json.dumps(data)) < 300_000


def test_where_all_is_joined_the_block_is_as_bad_as_its_worst() -> None:
    past = a_past(*(f"n{n}" for n in range(40)))
    past.all_stints = [ran(n, 3000 - n * 0.1, 3, node=f"n{n % 40}",
                           outcome="failed" if n // 40 % 2 else "completed")
                       for n in range(20_000)]  # fmt: skip
    nodes = shown(past, "lanes", span="1h")["nodes"]

    assert sum(len(node["blocks"]) for node in nodes) <= 1500
    assert {block[5] for node in nodes for block in node["blocks"] if block[6] > 1} == {"failed"}


def test_where_nobody_looked_there_is_a_gap_and_no_flat_line() -> None:
    past = a_past()
    past.all_samples = [seen(3600, 3000, 4), seen(2000, 1000, 2), seen(1000, 600, 0)]
    node = shown(past, "lanes", span="1h")["nodes"][0]

    assert node["gaps"] == [[600.0, 1600.0, "nobody looked"]]
    assert node["depth"] == [[0.0, 4], [600.0, None], [1600.0, 2], [2600.0, 0]]
    assert node["looked"] == 3000.0


def test_a_node_that_did_not_answer_is_a_gap_with_its_reason() -> None:
    past = a_past()
    past.all_samples = [seen(3600, 3000, 4), seen(3000, 0, 0, state="unknown", because="silent")]
    node = shown(past, "lanes", span="1h")["nodes"][0]

    assert node["gaps"] == [[600.0, 3600.0, "no answer: silent"]]
    assert node["depth"][-1] == [600.0, None]


def test_before_a_node_was_met_nothing_is_missing() -> None:
    past = a_past()
    past.all_nodes = [NodeKnown("iris", NOW - s(600), NOW, NOW)]
    past.all_samples = [seen(600, 0, 1)]
    node = shown(past, "lanes", span="1h")["nodes"][0]

    assert node["gaps"] == []
    assert node["met"] == 3000.0


def test_what_kept_a_node_from_work_is_a_stretch_with_its_word() -> None:
    past = a_past()
    past.all_samples = [seen(3600, 1800), seen(1800, 900, state="draining"),
                        seen(900, 0, state="draining")]  # fmt: skip

    assert shown(past, "lanes", span="1h")["nodes"][0]["states"] == [[1800.0, 3600.0, "draining"]]


def test_a_queue_of_many_changes_keeps_its_deepest_point() -> None:
    past = a_past()
    past.all_samples = [seen(3600 - n, 3599 - n, 50 if n == 1234 else n % 3) for n in range(3600)]
    depth = shown(past, "lanes", span="1h")["nodes"][0]["depth"]

    assert len(depth) <= 241
    assert max(count for _, count in depth if count is not None) == 50


def test_a_move_tells_when_it_began_and_when_its_old_node_would_have_come_to_it() -> None:
    """Four waited, an attempt there took 60 s at one slot: 240 s; it began after 3 s."""
    past = a_past("iris", "loom")
    past.all_samples = [seen(3600, 0, 4)]
    past.all_stints = [ran(1, 3000, 60), ran(2, 2900, 60), ran(9, 897, 10, node="loom")]
    past.all_moves = [MoveSeen(NOW - s(900), uid(9), "iris", "loom", "moved", "stolen", "", "b", 6,
                               3, uid(99)),
                      MoveSeen(NOW - s(800), uid(8), "iris", "loom", "kept", "stolen", "full", "",
                               6, 3, uid(98))]  # fmt: skip
    moves = shown(past, "lanes", span="1h")["moves"]

    assert (moves["moved"], moves["refused"]) == (1, 1)
    assert moves["shown"][0]["started_s"] == 3.0
    assert (moves["shown"][0]["ahead"], moves["shown"][0]["else_s"]) == (4, 240.0)


def test_a_move_that_was_in_doubt_is_one_where_the_taker_has_it_and_counts_once() -> None:
    """Seen to fail: a doubt that ended well was no move, and one that was open was not told of."""
    past = a_past("iris", "loom")
    said = (("moved", "stolen", "", 91), ("settled", "doubt", "taker_has_it", 91),
            ("in_doubt", "stolen", "", 92), ("settled", "doubt", "taker_has_it", 92),
            ("in_doubt", "stolen", "", 93), ("settled", "doubt", "", 93),
            ("in_doubt", "stolen", "", 94), ("in_doubt", "stolen", "", 94))  # fmt: skip
    past.all_moves = [
        MoveSeen(NOW - s(900 - n), uid(number), "iris", "loom", outcome, why, rule, "", 6, 3,
                 uid(number))
        for n, (outcome, why, rule, number) in enumerate(said)
    ]  # fmt: skip
    moves = shown(past, "lanes", span="1h")["moves"]
    assert (moves["moved"], moves["in_doubt"]) == (2, 1)
    assert [(one["uid"], one["why"]) for one in moves["shown"]] == [
        (uid(91), "stolen"), (uid(92), "stolen")]  # fmt: skip


def test_of_a_move_from_a_node_that_nobody_knew_nothing_is_guessed() -> None:
    past = a_past("iris", "loom")
    past.all_moves = [MoveSeen(NOW - s(900), uid(9), "iris", "loom", "moved", "stolen", "", "", 6,
                               3, uid(99))]  # fmt: skip
    move = shown(past, "lanes")["moves"]["shown"][0]

    assert (move["ahead"], move["else_s"], move["started_s"]) == (None, None, None)


def test_stranded_time_is_cut_and_counted_as_far_as_it_is_shown() -> None:
    """As the heat map and the header of a past moment count it."""
    past = a_past()
    past.all_stranded = [Stretch("iris", NOW - s(7000), NOW - s(1800), 5000.0, "rule",
                                 "cycle_has_room", "loom", uid(1))]  # fmt: skip
    node = shown(past, "lanes", span="1h")["nodes"][0]

    assert (node["stranded"][0]["t0"], node["stranded"][0]["t1"]) == (0.0, 1800.0)
    within = round(5000.0 * 1800 / 5200, 1)  # 1800 s of the stretch, which adds up to less
    assert (node["stranded_s"], node["stranded"][0]["seconds"]) == (within, within)


def test_the_hubs_own_queue_is_the_last_lane_and_runs_nothing() -> None:
    past = a_past("inbox", "loom")
    past.all_samples = [seen(3600, 0, 3, node="inbox", state="stopped")]
    nodes = shown(past, "lanes", span="1h")["nodes"]

    assert [node["node"] for node in nodes] == ["loom", "inbox"]
    assert nodes[1]["states"] == []


# --- Heat map -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "lanes"), [(49, 50), (50, 0)])
def test_from_fifty_nodes_on_there_are_no_lanes_and_the_hubs_queue_is_no_node(
    nodes: int, lanes: int
) -> None:
    """Fails where the inbox is counted as one of them."""
    data = shown(a_past("inbox", *(f"n{n:02d}" for n in range(nodes))), "lanes", span="1h")
    assert (data["fleet"], len(data["nodes"])) == (nodes, lanes)


def test_the_heat_map_has_stranded_nodes_first_and_a_letter_for_each_stretch() -> None:
    past = a_past("iris", "loom")
    past.all_samples = [seen(3600, 0, 3), seen(1800, 0, 0, node="loom", running=0, free=1,
                                               idle_since=NOW - HOUR)]  # fmt: skip
    past.all_stranded = [Stretch("loom", NOW - s(900), NOW, 900.0, "rule", "r", "iris", "")]
    data = shown(past, "heat", span="1h", buckets="12")

    assert [node["node"] for node in data["nodes"]] == ["loom", "iris"]
    assert data["nodes"][0]["loud"] == "000000000999"
    assert data["nodes"][0]["states"][:9] == "uuuuuuiii"
    assert data["nodes"][1]["states"] == "b" * 12
    assert data["nodes"][1]["depth"] == "3" * 12


def test_the_hubs_own_queue_is_no_row_of_the_heat_map_and_who_did_nothing_is_quiet() -> None:
    """Seen to fail: a fleet of three was told as one of four."""
    past = a_past("inbox", "iris", "loom", "spark")
    past.all_samples = [seen(3600, 0, 2, node="inbox"), seen(3600, 0, 0, running=0, free=1,
                                                             idle_since=NOW - HOUR),
                        seen(1800, 1500, 1, node="loom")]  # fmt: skip
    data = shown(past, "heat", span="1h", buckets="12")

    assert data["fleet"] == 3
    assert {one["node"]: one.get("quiet", False) for one in data["nodes"]} == {
        "iris": True, "loom": False, "spark": True}  # fmt: skip
    assert [one["node"] for one in shown(past, "heat", nodes="inbox")["nodes"]] == ["inbox"]


def test_the_heat_map_says_what_kept_each_node_stranded_and_where_nobody_looked() -> None:
    """Of what began before the window only what fell into it; of a node that was not, nothing."""
    past = a_past("iris", "loom", "spark")
    past.all_samples = [seen(3600, 0, 0, node=node, running=0, free=1, idle_since=NOW - HOUR)
                        for node in ("iris", "loom", "spark")]  # fmt: skip
    past.all_stranded = [
        Stretch("loom", NOW - 2 * HOUR, NOW - s(1800), 5400.0, "rule", "r", "iris", ""),
        Stretch("loom", NOW - s(450), NOW, 450.0, "nobody_looked", "queue_was_read", "iris", ""),
        Stretch("spark", NOW - s(600), NOW, 600.0, "rule", "r", "iris", ""),
    ]
    data = shown(past, "heat", span="1h", buckets="12")
    loom, spark, iris = data["nodes"]

    assert data["by_cause"] == {"r": 2400.0, "nobody_looked": 450.0}
    assert loom["by_cause"] == {"r": 1800.0, "nobody_looked": 450.0}
    assert (loom["loud"], loom["unlooked"]) == ("999999000049", "000000000049")
    assert spark["by_cause"] == {"r": 600.0}
    assert "unlooked" not in spark
    assert "by_cause" not in iris


# --- The others -----------------------------------------------------------------------------------


def test_the_funnel_takes_away_rule_by_rule_and_ends_with_what_was_planned() -> None:
    past = a_past()
    past.all_runs = [
        cycle(1, 900, kept={"low_enough_priority": 6, "may_do_this_work": 3}, decided=2, acted=2),
        cycle(2, 600, outcome="could_not_look", unseen=5,
              summary="could not look: no node answered"),
        cycle(3, 300, outcome="skipped", skipped="no idle"),
    ]
    data = shown(past, "funnel")

    assert (data["waiting"], data["planned"], data["moved"]) == (11, 2, 2)
    assert [(one["rule"], one["out"], one["left"]) for one in data["steps"]] == [
        ("low_enough_priority", 6, 5), ("may_do_this_work", 3, 2)]
    assert (data["blind"], data["skipped"]) == (1, {"no idle": 1})
    assert "no node answered" in data["blind_because"]


def test_a_step_of_the_funnel_names_its_tasks_once_with_how_often() -> None:
    past = a_past()
    past.all_runs = [cycle(1, 900, kept={"r": 3}), cycle(2, 600, kept={"r": 2, "other": 1})]
    past.kept = {1: [KeptSeen("iris", "r", 3, "why"), KeptSeen("iris", "r", 1, "old", uid(1))],
                 2: [KeptSeen("iris", "r", 2, "why"), KeptSeen("iris", "r", 1, "new", uid(1)),
                     KeptSeen("iris", "other", 1, "no", uid(2))]}  # fmt: skip
    step = shown(past, "funnel", step="r")["step"]

    assert step["tasks"] == [
        {"uid": uid(1), "node": "iris", "because": "new", "run": 2, "cycles": 2}]
    assert step["nodes"] == [{"node": "iris", "count": 5, "because": "why"}]


def test_a_step_whose_tasks_no_run_wrote_down_names_the_nodes_that_kept_them() -> None:
    past = a_past("iris")
    past.all_runs = [cycle(1, 900, kept={"low_enough_priority": 9})]
    past.kept = {1: [KeptSeen("iris", "low_enough_priority", 9, "iris says so of its own tasks")]}
    step = shown(past, "funnel", step="low_enough_priority")["step"]

    assert (step["tasks"], step["more"]) == ([], 0)
    assert step["nodes"] == [
        {"node": "iris", "count": 9, "because": "iris says so of its own tasks"}]


def test_the_ends_of_the_funnel_are_steps_too() -> None:
    """Seen to fail where they were rules that had kept nothing."""
    past = a_past("iris", "loom")
    past.all_runs = [cycle(1, 900, unseen=2, decided=1, acted=1, kept={"r": 3}),
                     cycle(2, 600, outcome="could_not_look", unseen=5, summary="no node answered")]
    past.kept = {1: [KeptSeen("iris", "r", 3, "why"), KeptSeen("iris", "r", 1, "why", uid(1))]}
    past.all_moves = [
        MoveSeen(NOW - s(899), uid(number), "iris", "loom", "moved", "stolen", "", "", 5, run, "x")
        for number, run in ((1, 1), (2, None), (3, 9))
    ]  # fmt: skip
    past.all_samples = [seen(890, 700, node="loom", state="unknown", because="unreachable"),
                        seen(890, 700, node="iris"),
                        seen(599, 500, node="spark", state="unknown", because="host_key"),
                        seen(400, 0, node="iris", state="unknown", because="silent")]  # fmt: skip
    blind, waiting, moved = (shown(past, "funnel", step=step)["step"]
                             for step in ("could_not_look", "waiting", "moved"))

    assert [(one["run"], one["unseen"], one["summary"]) for one in blind["runs"]] == [
        (2, 5, "no node answered"), (1, 2, "")]
    assert blind["unseen"] == [
        {"node": "loom", "because": "unreachable", "since": iso(NOW - s(890))},
        {"node": "spark", "because": "host_key", "since": iso(NOW - s(599))}]
    assert waiting["nodes"] == [{"node": "iris", "count": 4, "because": ""}]
    assert [(one["uid"], one["from"], one["to"]) for one in moved["moves"]] == [
        (uid(1), "iris", "loom")]


def test_a_doubt_that_a_cycle_ended_is_a_move_of_the_cycle_that_made_it() -> None:
    """Seen to fail: more waited on a node than everywhere, and an old doubt was a move of now."""
    past = a_past("iris", "loom")
    past.all_runs = [cycle(1, 900, decided=1, acted=1, kept={"r": 3})]
    past.kept = {1: [KeptSeen("iris", "r", 3, "why")]}
    past.all_moves = [
        MoveSeen(NOW - s(899), uid(number), "iris", "loom", outcome, why, "", "", 5, 1, uid(number))
        for number, outcome, why in ((1, "moved", "stolen"), (2, "settled", "doubt"))
    ]  # fmt: skip
    whole = shown(past, "funnel", step="waiting")
    moved = shown(past, "funnel", step="moved")["step"]

    assert whole["step"]["nodes"] == [{"node": "iris", "count": 4, "because": ""}]
    assert whole["waiting"] == 4
    assert [one["uid"] for one in moved["moves"]] == [uid(1)]


def test_nodes_that_a_step_does_not_name_are_counted() -> None:
    """Seen to fail: of sixty nodes ten were nowhere."""
    past = a_past("iris")
    past.all_runs = [cycle(1, 900, kept={"r": 60})]
    past.kept = {1: [KeptSeen(f"n{number}", "r", 1, "") for number in range(60)]}
    for asked in ("r", "waiting"):
        step = shown(past, "funnel", step=asked)["step"]
        assert (len(step["nodes"]), step["nodes_more"]) == (50, 10)


def test_feeds_add_up_by_both_ends_over_a_day_whatever_span_is_looked_at() -> None:
    past = a_past("iris", "loom")
    past.all_moves = [
        MoveSeen(NOW - s(hours * 3600), uid(hours), "iris", "loom", "moved", why, "", "", 5, 1,
                 uid(50 + hours))
        for hours, why in ((1, "stolen"), (20, "drained"), (25, "stolen"))
    ]  # fmt: skip
    data = shown(past, "feeds", span="1h")

    assert data["cells"] == [{"from": "iris", "to": "loom", "moves": 2,
                              "why": {"stolen": 1, "drained": 1}}]  # fmt: skip


def test_feeds_of_a_fleet_that_is_younger_than_a_day_say_since_when_they_count() -> None:
    """Seen to fail: `126 moves in 24 h` of a fleet that had lived a minute."""
    past = a_past("iris", "loom")
    young = shown(past, "feeds")
    assert (young["whole"], young["since"]) == (False, (NOW - 2 * HOUR).timestamp() * 1000)
    past.all_nodes.append(NodeKnown("opal", NOW - 30 * HOUR, NOW, NOW))
    assert shown(past, "feeds")["whole"] is True


def test_depth_is_unknown_where_nobody_looked() -> None:
    past = a_past()
    past.all_samples = [seen(3600, 1800, 4)]
    node = shown(past, "depth", span="1h", buckets="12")["nodes"][0]

    assert node["most"] == [4] * 6 + [None] * 6


def test_the_depth_of_now_is_what_the_last_look_found() -> None:
    """Seen to fail: it was the most of the last stretch, which of a day has twelve minutes."""
    past = a_past("iris", "loom", "opal")
    past.all_samples = [seen(3600, 40, 9), seen(40, 0, 0),
                        seen(3600, 40, 4, node="loom"),
                        seen(40, 0, 0, node="loom", state="unknown"),
                        seen(7000, 3600, 2, node="opal")]  # fmt: skip
    for span in ("10m", "3h", "24h"):
        nodes = shown(past, "depth", span=span)["nodes"]
        assert {one["node"]: one["now"] for one in nodes} == {
            "iris": 0, "loom": None, "opal": None}
    then = shown(past, "depth", at=iso(NOW - s(600)))["nodes"]
    assert {one["node"]: one["now"] for one in then} == {"iris": 9, "loom": 4, "opal": None}


def test_money_adds_up_since_midnight_and_names_who_spent() -> None:
    past = a_past("iris", "loom")
    past.all_stints = [ran(1, 3600, 60, cost_usd=Decimal("0.50")),
                       ran(2, 1800, 60, cost_usd=Decimal("0.25")),
                       ran(3, 5 * 3600, 60, cost_usd=Decimal(9))]  # fmt: skip
    data = shown(past, "money")

    assert data["spent_usd"] == "0.7500"
    assert [node["node"] for node in data["nodes"]] == ["iris"]
    assert data["nodes"][0]["line"][-1] == 0.75


def test_a_run_after_a_long_pause_is_late_and_one_that_could_not_look_says_so() -> None:
    past = a_past()
    past.all_runs = [cycle(n, 3000 - 100 * n) for n in range(10)]
    past.all_runs += [cycle(10, 1200), cycle(11, 1100, outcome="could_not_look")]
    sensor = shown(past, "sensors", span="1h")["sensors"][0]

    assert [tick[1] for tick in sensor["ticks"]][-2:] == ["late", "could_not_look"]
    assert sensor["bad"] == {"could_not_look": 1, "late": 1}
    assert sensor["usual_s"] == 100.0


def test_a_run_that_news_woke_is_not_late_however_long_nothing_was_new() -> None:
    past = a_past()
    past.all_runs = [cycle(n, 3000 - 100 * n) for n in range(10)]
    past.all_runs += [cycle(10, 1200, because="news"), cycle(11, 200)]
    sensor = shown(past, "sensors", span="1h")["sensors"][0]

    assert [tick[1] for tick in sensor["ticks"]][-2:] == ["done", "late"]
    assert sensor["bad"] == {"late": 1}


def test_a_moment_of_the_past_knows_how_old_its_looks_were_and_whom_it_forgot() -> None:
    """The hub's own queue is none of them. Seen to fail where a moment before which no hub had run
    for long had one node more than the fleet.
    """
    past = a_past("inbox", "iris", "loom")
    past.all_samples = [seen(4000, 3700, 7), seen(3000, 0, 1)]
    data = shown(past, "moment", at="2026-03-10T02:45:04Z")

    assert [(one["node"], one["pending"], one["age_s"]) for one in data["nodes"]] == [
        ("iris", 7, 100.0)]
    assert data["forgotten"] == ["loom"]
    assert data["waiting"] == 7


def test_the_day_before_a_moment_holds_no_more_stranded_time_than_fell_into_it() -> None:
    past = PastMade()
    past.all_nodes.append(NodeKnown("iris", NOW - 72 * s(3600), NOW, NOW))
    past.all_stranded = [Stretch("iris", NOW - 48 * s(3600), NOW, 48 * 3600.0, "rule", "r"),
                         Stretch("loom", NOW - s(60), NOW - s(30), 20.0, "rule", "r")]  # fmt: skip
    data = shown(past, "moment")
    assert data["stranded_24h_s"] == 24 * 3600 + 20
    assert data["by_cause"] == {"r": 24 * 3600 + 20}


def test_a_moment_of_the_past_says_beside_whom_a_node_was_stranded_and_why() -> None:
    past = a_past("iris", "loom")
    past.all_stranded = [
        Stretch("iris", NOW - s(900), NOW - s(600), 300.0, "nobody_looked", "", "loom"),
        Stretch("loom", NOW - s(300), NOW, 300.0, "rule", "busy_node_is_busy", "iris", uid(3))]
    data = shown(past, "moment")

    assert data["stranded_now"] == ["loom"]
    assert data["stranded_because"] == [{"node": "loom", "cause": "rule", "uid": uid(3),
                                         "rule": "busy_node_is_busy", "beside": "iris"}]
    assert data["by_cause"] == {"busy_node_is_busy": 300.0, "nobody_looked": 300.0}


def test_a_life_has_every_moment_in_order() -> None:
    past = a_past("iris", "loom")
    past.all_arrivals = [Arrival(NOW - s(900), uid(1), "iris", "added")]
    past.all_moves = [MoveSeen(NOW - s(800), uid(1), "iris", "loom", "moved", "stolen", "", "idle",
                               6, 3, uid(99))]  # fmt: skip
    past.all_stints = [ran(1, 700, 60, node="loom", cost_usd=Decimal("0.1"))]
    lines = shown(past, "life", uid=uid(1))["lines"]

    assert [line["what"] for line in lines] == ["added", "moved", "started", "completed"]
    assert (lines[-1]["took_s"], lines[-1]["cost_usd"]) == (60.0, "0.1")


# --- What if --------------------------------------------------------------------------------------


def test_every_limit_has_a_slider_under_the_policies_that_go_by_it() -> None:
    """Seen to fail: `on_idle` and `anyone_from`, which an advice may name, could not be moved."""
    script = (Path(arc.web.__file__).parent / "static/js/panels/what_if.js").read_text()
    found = re.findall(r'^  \["(\w+)", (\[[^]]+\]), "', script, flags=re.MULTILINE)

    assert {name: tuple(json.loads(policies)) for name, policies in found} == {
        key: tuple(policy for policy, keys in GOES_BY.items() if key in keys) for key in LIMITS}


def test_what_if_takes_the_limits_that_the_page_has_sliders_for_and_nothing_else(
    tmp_path: Path
) -> None:
    asked = asked_for(tmp_path, NOW, {"span": "1h", "idle_min": "30s", "busy_over": "3"})

    assert asked["limits"] == {"idle_min": "30s", "busy_over": "3"}
    assert asked["since"] == iso(NOW - s(3600))
    assert asked_for(tmp_path, NOW, {})["since"] == iso(NOW - s(86_400))
    for wrong in ({"fleet": "/etc/passwd"}, {"idle_min": ""}, {"every": "5" * 30}):
        with pytest.raises(WrongUse, match="what_if"):
            asked_for(tmp_path, NOW, wrong)
