"""Holds the bench to its shape: every kind of row can be measured, printed and written."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from bench.__main__ import MODULES, main
from bench.floor_steal import TIMES
from bench.measuring import Row, in_turns, ratio
from bench.table import line_of
from tools.browsers import missing_for_pages

EXPECTED = {
    "graph": {"graph-submit", "fan-out"},
    "claim": {"claim-1k", "claim-100k", "claim-1M", "claim-rare", "claim-1M-vs-1k",
              "claim-rare-vs-1k"},
    "effective": {"claim-effective", "claim-effective-p99"},
    "add": {"add-1000"},
    "move": {"move-10", "move-10-vs-two"},
    "version": {"version"},
    "true": {"true-2000"},
    "sleep": {"sleep-200"},
    "latency": {"add-to-start"},
    "idle": {"idle-cpu", "idle-memory"},
    "plan": {"plan-500-arc0", "plan-growth-arc0", "plan-500-swift", "plan-growth-swift"},
    "cli": {"arc-help", "arc-status"}, "demo": {"demo-first-move"},
    "status": {"status-100"},
    "empty": {"empty-plan-100"},
    "contact": {"contact-100", "contact-100-daemon", "contact-20-cold"},
    "rebalance": {"rebalance-100k", "rebalance-vs-1k"},
    "steal": {"steal-p50", "steal-p99"},
    "spread": {"spread-15"},
    "inbox": {"inbox-200"},
    "policy": {"policy-idle", "policy-wait", "policy-backlog"}, "simulate": {"simulate-50x7"},
    "rest": {"rest-cpu", "rest-memory"},
    "page": {"page-panel-500", "page-panels-500", "page-bytes-500", "page-cpu-500"},
    "paint": set() if missing_for_pages() else {"page-paint-5", "page-weight-5"},
    "beside": {"cycle-page-100"},
    "tasks": {"tasks-page-100k", "cycle-page-moves"},
}  # fmt: skip

BESIDE = {"steal": TIMES}  # held to a time, with a floor of the same run beside it


@pytest.mark.parametrize("kind", MODULES)
def test_every_kind_of_row_is_measured_printed_and_written(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "bench.json"
    words = ["--tiny", "--no-fail", "--only", kind, "--json", str(written), "--dir", str(tmp_path)]

    assert main(words) == 0

    document = json.loads(written.read_bytes())
    assert document["schema"] == "arc.bench/1"
    assert document["machine"]["cores"] >= 1
    assert {"load_before", "load_after", "fdatasync_us", "sqlite"} <= document["machine"].keys()
    assert {row["row"] for row in document["rows"]} == EXPECTED[kind]
    assert all(row["more"][BESIDE[kind]] > 0 for row in document["rows"] if kind in BESIDE)
    assert document["missed"] == [row["row"] for row in document["rows"] if not row["met"]]
    assert all(row["ratio"] > 0 and row["unit"] for row in document["rows"])
    printed = capsys.readouterr().out
    assert all(row["row"] in printed for row in document["rows"])
    assert sorted(tmp_path.iterdir()) == [written], "what was measured in is gone"


def test_several_kinds_are_measured_apart_and_gathered_in_one_table(tmp_path: Path) -> None:
    written = tmp_path / "bench.json"
    words = ["--tiny", "--no-fail", "--json", str(written), "--dir", str(tmp_path)]

    assert main([*words, "--only", "version", "--only", "add"]) == 0

    rows = json.loads(written.read_bytes())["rows"]
    assert [row["row"] for row in rows] == ["version", "add-1000"]


def test_a_missed_goal_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missed = a_row(ratio=2.0, goal=1.5)
    monkeypatch.setattr("bench.__main__._each", lambda *_: iter([missed]))
    words = ["--json", str(tmp_path / "bench.json"), "--dir", str(tmp_path)]

    assert (main(words), main([*words, "--no-fail"])) == (1, 0)


@pytest.mark.parametrize(("value", "goal", "at_least", "met"), [
    (1.5, 1.5, False, True), (1.51, 1.5, False, False),
    (1.0, 1.0, True, True), (0.99, 1.0, True, False),
    (99.0, None, False, True),
])  # fmt: skip
def test_a_goal_is_met_on_its_edge(
    value: float, goal: float | None, at_least: bool, met: bool
) -> None:
    row = a_row(ratio=value, goal=goal, at_least=at_least)
    assert row.met is met
    assert ("MISSED" in line_of(row)) is not met


def test_both_sides_are_taken_in_turns_and_each_goes_first() -> None:
    order: list[str] = []

    def side(name: str) -> float:
        order.append(name)
        return float(len(order))

    assert in_turns(2, partial(side, "a"), partial(side, "b")) == [[1.0, 4.0], [2.0, 3.0]]
    assert order == ["a", "b", "b", "a"]


def test_the_ratio_is_the_middle_of_the_rounds_own_ratios() -> None:
    assert ratio([1.0, 20.0, 3.0], [1.0, 10.0, 1.0])[0] == 2.0


def a_row(*, ratio: float, goal: float | None, at_least: bool = False) -> Row:
    return Row("one", "a thing", ratio, 1.0, "ms", ratio, goal, at_least=at_least)
