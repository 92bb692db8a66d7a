"""Every word of `arc simulate` that makes no sense is refused, with what to write instead."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from arc.cli.around import Around
from arc.cli.asking import ask_the_hub
from arc.cli.running import WallClock, run_command
from arc.cli.simulate_words import _lines
from arc.errors import ArcError, WrongUse
from arc.simulate.policies import parse_policy
from arc.simulate.wanted import Wanted, all_scenes, source_of
from tests.builders import FakeClock

JSON_LINES = (
    '{"at": "2026-03-10T03:45:00Z", "takes_s": 60, "node": "ada", "domain": "shared", "id": "a"}\n'
    '{"at": "2026-03-10T03:45:01Z", "takes_s": 30, "node": "bob", "priority": 2}\n'
)
SWF = """; Version: 2.2
    1 0 -1 100 4 -1 -1 4 100 -1 1 3 1 1 1 1 -1 -1
    2 50 -1 60 1 -1 -1 1 100 -1 1 4 1 1 1 1 -1 -1
    3 60 -1 -1 1 -1 -1 1 100 -1 5 4 1 1 1 1 -1 -1
"""
FLEET = """\
days: .01
load: 60%
nodes:
  - {name: ada, slots: 2, owns: [a], also: [b]}
  - {name: bob, owns: [b], durations: "exp:30", skills: [gpu]}
"""


def arc(*words: str, environ: dict[str, str] | None = None) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    around = Around(environ=environ or {"USER": "ada", "HOME": "/nowhere"}, stdin=io.BytesIO(),
                    stdout=out, stderr=err, clock=WallClock(), ask=ask_the_hub)  # fmt: skip
    return run_command(list(words), around), out.getvalue(), err.getvalue()


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No fleet.yaml lies around."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("words", "said"), [
    (("--nodes", "-1"), "--nodes: should lie between 1 and 1000, not -1"),
    (("--nodes", "0"), "--nodes: should lie between 1 and 1000, not 0"),
    (("--slots", "0"), "--slots: should lie between 1 and 64, not 0"),
    (("--seeds", "0"), "--seeds: should lie between 1 and 1000, not 0"),
    (("--backlog", "0"), "--backlog: should lie between 1 and"),
    (("--from-history", "7d", "--seeds", "12"), "--seeds says nothing to --from-history"),
    (("--from-history", "7d", "--seed", "3"), "--seed says nothing to --from-history"),
    (("--from-history", "7d", "--nodes", "0"), "--nodes says nothing to --from-history"),
    (("--until", "2026-03-10T03:45:00Z"), "--until says nothing to a drawn stream"),
    (("--nodes", "5000"), "--nodes: should lie between 1 and 1000"),
    (("--nodes", "x"), "--nodes"),
    (("--slots", "99"), "--slots: should lie between 1 and 64"),
    (("--load", "7"), "--load: should lie between 0 and 2"),
    (("--load", "nan"), "--load: 'nan' is no number"),
    (("--load", "0"), "no task comes at all"),
    (("--portable", "101%"), "--portable: should lie between 0 and 1, as .65 or 65%"),
    (("--at-hub", "half"), "--at-hub: 'half' is no number"),
    (("--durations", "exp"), "--durations: 'exp' is no law of lengths"),
    (("--durations", "exp:"), "is no law of lengths"),
    (("--durations", "exp:-3"), "is no law of lengths"),
    (("--durations", "const:0"), "means 0 s a task"),
    (("--durations", "uniform:9,3"), "the lower one first"),
    (("--durations", "lognormal:60,9"), "a sigma to 5"),
    (("--durations", "agents:3"), "is no law of lengths"),
    (("--days", "0"), "--days: should lie above 0"),
    (("--days", "9999"), "--days: should lie above 0 and within 366"),
    (("--days", "366", "--nodes", "1000"), "up to 2,000,000 can be simulated"),
    (("--seeds", "-2"), "--seeds: should lie between 1 and 1000"),
    (("--backlog", "-5"), "--backlog: should lie between 1 and"),
    (("--backlog", "10", "--load", ".5"), "--load says nothing to --backlog"),
    (("--backlog", "10", "--share", "2"), "--share: should lie between 0 and 1"),
    (("--share", ".5"), "--share says nothing to a drawn stream"),
    (("--policy", "bob"), "there is no 'bob'; choose among none, arc0, swift, central"),
    (("--policy", "none:every=1m"), "none has no limits to set"),
    (("--policy", "arc0:every"), "'every' is no KEY=VALUE"),
    (("--policy", "arc0:foo=1"), "rebalance.foo: there is no such key"),
    (("--policy", "arc0:web.foo=1"), "is no KEY=VALUE"),
    (("--policy", "arc0:every=5"), "rebalance.every: should be a length of time with its unit"),
    (("--policy", "arc0:busy_over=x"), "rebalance.busy_over: should be a whole number"),
    (("--policy", "arc0", "--policy", "arc0"), "arc0 is named twice"),
    (tuple("--policy arc0".split() * 13), "13 of them; at most 12"),
    (("--transfer", "5"), "--transfer: should be a length of time, such as"),
    (("--trace", "gone"), "--trace: gone: No such file or directory"),
    (("--describe", "gone"), "--describe: gone: No such file or directory"),
    (("--describe", "."), "--describe: .: Is a directory"),
    (("--trace", "a", "--describe", "b"), "one source at a time"),
    (("--trace", "a", "--backlog", "3"), "one source at a time"),
    (("--from-history", "7d"), "there is no fleet.yaml here"),
    (("more",), "unexpected extra argument"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_with_what_to_write(
    words: tuple[str, ...], said: str
) -> None:
    code, out, err = arc("simulate", "--no-advice", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize(("line", "said"), [
    ("{}", "t.jsonl:3: at: missing"), ('{"at": 1}', "t.jsonl:3: takes_s: missing"),
    ('{"at": 1, "takes_s": 0}', "takes_s: should lie between 0.001"),
    ('{"at": -1, "takes_s": 5}', "at: should lie between 0"),
    ('{"at": "yesterday", "takes_s": 5}', "at: 'yesterday' is no zoned time"),
    ('{"at": "2026-03-10T03:45:00", "takes_s": 5}', "is no zoned time"),
    ('{"at": 1, "takes_s": true}', "takes_s: should be a number"),
    ('{"at": 1, "takes_s": 5, "priority": 11}', "priority: should be 1 to 10"),
    ('{"at": 1, "takes_s": 5, "pinned": "no"}', "pinned: should be true or false"),
    ('{"at": 1, "takes_s": 5, "needs": "gpu"}', "needs: should be a list of texts"),
    ('{"at": 1, "takes_s": 5, "node": 7}', "node: should be text"),
    ('{"at": 1, "takes_s": 5, "nodes": "ada"}', "nodes: there is no such key; known are at,"),
    ('{"at": 1, "takes_s": 5', "t.jsonl:3: "), ("[1]", "t.jsonl:3: "),
    ('{"at": 1, "takes_s": 5, "node": "Ada\\u001b[2J"}', "is no name of a node"),
])  # fmt: skip
def test_a_bad_line_of_a_trace_is_named_by_its_number(
    tmp_path: Path, line: str, said: str
) -> None:
    (tmp_path / "t.jsonl").write_text(f"{JSON_LINES}{line}\n")
    code, out, err = arc("simulate", "--trace", "t.jsonl")
    assert (code, out) == (2, "")
    assert said in err
    assert "\x1b" not in err


def test_every_bad_line_is_counted_and_the_first_are_shown(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("{}\n" * 12)
    code, _, err = arc("simulate", "--trace", "t.jsonl")
    assert code == 2
    assert err.count("at: missing") == 5
    assert "and 7 more" in err


@pytest.mark.parametrize(("text", "said"), [
    ("; only comments\n", "t.swf: holds no task"), ("", "t.swf: holds no task"),
    ("1 2 3\n", "t.swf:1: 3 fields; a line of SWF has 18"),
    (SWF + "x " * 18, "t.swf:5: a field is no number"),
    (SWF.replace("1 0 -1 100", "1 -7 -1 100"), "t.swf:2: field 2"),
    (SWF.replace("1 0 -1 100", "1 0 -1 1e99"), "t.swf:2: field 4"),
])  # fmt: skip
def test_a_bad_line_of_swf_is_named_by_its_number(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "t.swf").write_text(text)
    code, _, err = arc("simulate", "--trace", "t.swf")
    assert code == 2
    assert said in err


@pytest.mark.parametrize(("name", "text"), [
    ("t.jsonl", '{"at": 0, "takes_s": 5}\n{"at": 1e11, "takes_s": 5}\n'),
    ("t.jsonl", '{"at": "0001-01-01T00:00:00Z", "takes_s": 5}\n{"at": 0, "takes_s": 5}\n'),
    ("t.swf", SWF + "9 1e15 -1 10" + " -1" * 14 + "\n"),
])  # fmt: skip
def test_a_trace_of_many_years_is_refused_and_not_simulated_look_by_look(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(WrongUse, match="years from its first task to its last; up to 10"):
        source_of(Wanted(trace=str(tmp_path / name)), None)


def test_a_line_of_a_trace_ends_where_a_newline_stands_and_nowhere_else(tmp_path: Path) -> None:
    text = '{"at": 1, "takes_s": 5, "subject": "one\u2028two\x85"}\r\n{"at": 2, "takes_s": 5}\r\n'
    (tmp_path / "t.jsonl").write_bytes(text.encode())
    assert source_of(Wanted(trace=str(tmp_path / "t.jsonl")), None).facts["lines"] == 2


def test_a_trace_that_says_all_is_not_drawn_several_times(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(JSON_LINES)
    with pytest.raises(WrongUse, match="--seeds: says nothing to a trace that says all"):
        source_of(Wanted(trace=str(tmp_path / "t.jsonl"), seeds=3), None)


def test_swf_gives_each_user_a_node_and_leaves_out_what_never_ran(tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text(SWF)
    source = source_of(Wanted(trace=str(tmp_path / "t.swf"), nodes=2, seeds=2), None)
    (first, second) = all_scenes(source, 1)
    assert [(job.at_ms, job.takes_ms, job.home) for job in first.jobs] == [
        (0, 100_000, "iris"), (50_000, 60_000, "forge")]  # fmt: skip
    assert len(second.jobs) == 2
    assert source.warnings == ("1 tasks without a length are left out",
                               "1 jobs ran on several processors; here each takes one slot")


def test_a_trace_that_says_everything_is_run_once_on_the_nodes_that_it_names(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.jsonl").write_text(JSON_LINES)
    code, out, _ = arc("simulate", "--trace", "t.jsonl", "--json", "--no-advice")
    data = json.loads(out)["data"]
    assert (code, data["seeds"], data["nodes"], data["tasks"]) == (0, 1, 2, 2)
    assert data["policies"][0]["wait_s"]["all"] == {"mean": 0.0, "low": None, "high": None}


def test_a_trace_that_names_a_strange_node_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(JSON_LINES)
    with pytest.raises(WrongUse, match="it names ada, which is none of the 2 nodes"):
        source_of(Wanted(trace=str(tmp_path / "t.jsonl"), nodes=2), None)


@pytest.mark.parametrize(("was", "now", "said"), [
    ("load: 60%", "load: much", "f.yaml:2: load: load: 'much' is no number"),
    ("days: .01", "weeks: 3", "f.yaml:1: weeks: there is no such key; known are"),
    ("name: bob", "name: Bob", "f.yaml:5: name: should be lower case letters"),
    ("name: bob", "name: inbox", "f.yaml:5: name: inbox is what the hub's own queue is called"),
    ("name: bob", "name: ada", "nodes: two have the same name"),
    ("slots: 2", "slots: two", "f.yaml:4: slots: slots: should lie between 1 and 64"),
    ("owns: [a]", "owns: a", "f.yaml:4: owns: should be a list of names"),
    ('"exp:30"', '"exp:x"', "f.yaml:5: durations: --durations: 'exp:x' is no law"),
    ("days: .01", "told: yes please", "told: should be true or false"),
    ("owns: [b]", "likes: [b]", "f.yaml:5: likes: there is no such key"),
    ("nodes:\n", "nodes: 7\nmore:\n", "there is no such key"),
    ("days: .01", "days: [", "f.yaml:"), ("days: .01", "days: 1\ndays: 2", "f.yaml:2:"),
])  # fmt: skip
def test_a_bad_description_is_named_by_its_line(
    tmp_path: Path, was: str, now: str, said: str
) -> None:
    (tmp_path / "f.yaml").write_text(FLEET.replace(was, now))
    code, out, err = arc("simulate", "--describe", "f.yaml")
    assert (code, out) == (2, "")
    assert said in err


def test_a_description_says_who_shares_what(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(FLEET)
    scene = source_of(Wanted(describe=str(tmp_path / "f.yaml")), None).scene(1)
    assert [(one.name, one.slots, one.skills) for one in scene.places] == [
        ("ada", 2, ()), ("bob", 1, ("gpu",))]  # fmt: skip
    assert {(job.home, job.kind.domain) for job in scene.jobs} <= {
        ("ada", "a"), ("ada", "b"), ("bob", "b")}  # fmt: skip


@pytest.mark.parametrize("text", ["", "7", "[1]", "nodes: []", "nodes: [7]", "nodes: [{}]"])
def test_a_description_of_nothing_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "f.yaml").write_text(text)
    with pytest.raises(ArcError):
        source_of(Wanted(describe=str(tmp_path / "f.yaml")), None)


def test_the_table_and_the_json_say_the_same_twice(tmp_path: Path) -> None:
    words = ("simulate", "--nodes", "3", "--days", ".05", "--seeds", "3", "--no-advice")
    first, again = arc(*words, "--json"), arc(*words, "--json")
    assert first[0] == 0
    said, more = json.loads(first[1]), json.loads(again[1])
    assert said["data"] == more["data"]
    assert said["schema"] == "arc.simulate/1"
    _, text, err = arc(*words)
    for one in said["data"]["policies"]:
        assert one["policy"] in text
        waits: dict[str, Any] = one["wait_s"]["all"]
        assert waits["low"] <= waits["mean"] <= waits["high"]
    assert "±" in text
    assert err == ""


def test_each_band_of_priority_has_its_mean_and_its_p95() -> None:
    """Urgent work that waits is hidden in a mean of all; in the first table there was no P4-P6."""
    words = ("simulate", "--nodes", "3", "--days", ".1", "--seeds", "2", "--no-advice")
    told = json.loads(arc(*words, "--json")[1])["data"]["policies"]
    lines = arc(*words)[1].split("by priority:\n")[1].splitlines()
    assert lines[0].split("  ")[0] == "policy"
    assert re.findall(r"P\S+ \w+", lines[0]) == [
        f"{band} {which}" for band in ("P1-P3", "P4-P6", "P7-P10") for which in ("wait", "p95")]
    for policy, line in zip(told, lines[1:], strict=False):
        name, *shown = re.split(r"\s{2,}", line.strip())
        assert name == policy["policy"]
        means = [float(policy[which][band]["mean"]) for band in ("P1-P3", "P4-P6", "P7-P10")
                 for which in ("wait_s", "wait_p95_s")]  # fmt: skip
        assert [float(one.split("s ")[0]) for one in shown] == pytest.approx(means, abs=0.5)


def test_the_advice_is_lines_of_fleet_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = {"arc0": (("busy_over", ("0",)),)}
    monkeypatch.setattr("arc.simulate.advice.TRIED", tried)
    words = ("simulate", "--nodes", "5", "--days", ".2", "--policy", "arc0", "--policy", "swift")
    _, text, _ = arc(*words)
    assert "Better limits for arc0" in text
    assert "\n  rebalance:\n    busy_over: 0   # mean wait " in text
    assert "\n  policy: swift   # mean wait " in text
    _, out, _ = arc(*words, "--json")
    advice = json.loads(out)["data"]["advice"]
    assert advice["fleet_yaml"] == ["rebalance:", "  busy_over: 0"]


def test_a_full_fleet_is_warned_about() -> None:
    _, _, err = arc("simulate", "--load", "1.5", "--days", ".05", "--seeds", "1", "--no-advice")
    assert "warning: the fleet is full nearly all of the time" in err


def test_limits_are_read_as_fleet_yaml_reads_them() -> None:
    policy = parse_policy("arc0:every=90s,steal_from=P3,on_idle=true,router.soft=6")
    assert (policy.every_s, policy.steal.steal_from, policy.on_idle) == (90.0, 3, True)
    assert policy.route.soft == 6
    swift = parse_policy("swift")
    assert (swift.every_s, swift.router_s, swift.steal.idle_min_s) == (60.0, 60.0, 0.0)


def test_how_far_it_is_stands_on_a_line_each_ten_seconds_where_nobody_looks_on() -> None:
    """Seen to fail: into a pipe it said nothing for half a minute."""
    said: list[str] = []
    clock = FakeClock()
    told = _lines(cast("Around", SimpleNamespace(clock=clock, talk=said.append)))
    told("\rarc0: 1 of 12\x1b[K")
    clock.advance(10)
    told("\r\x1b[K")
    told("\rarc0: 2 of 12\x1b[K")
    told("\rarc0: 3 of 12\x1b[K")
    assert said == ["arc0: 2 of 12\n"]
