"""A report is one file that needs nothing else, and in which every text is a text."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agent_node.ulid import new_ulid
from arc.history_seen import MoveSeen, NodeKnown, RunSeen, Sample, Stint, StrandedStretch
from arc.report import gathering
from arc.report.drawing import WIDE
from arc.report.gathering import BUCKETS, gathered
from arc.report.page import page_of
from tests.hub.cli.desk import Desk
from tests.web.past_made import NOW, PastMade
from tests.web.test_api import SCRIPTS

DAY = timedelta(days=1)
ALLOWED = frozenset(
    "html head meta title style body h1 h2 p span table thead tbody tr th td code div br svg path"
    " rect".split()
)


class Seen(HTMLParser):
    """Which elements, attributes and texts a browser finds in a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def a_past(words: str) -> PastMade:
    """A day in which every text that a node or a task may say is this one."""
    past, begin = PastMade(), NOW - DAY / 2
    uid = new_ulid(int(begin.timestamp() * 1000), b"0123456789")
    past.all_nodes.append(NodeKnown("iris", begin, NOW, NOW))
    past.all_samples.append(Sample("iris", begin, NOW, "running", words, 3, 1, 2, 1))
    past.all_stints.append(Stint("iris", uid, 1, words, begin, begin, begin + DAY / 8, "failed",
                                 words, words, 3))  # fmt: skip
    past.all_stranded.append(StrandedStretch("iris", begin, begin + DAY / 8, 900.0, words, words,
                                             words, words))  # fmt: skip
    past.all_moves.append(MoveSeen(begin, uid, words, "iris", "moved", "stolen", words, words, 3, 1,
                                   uid))  # fmt: skip
    past.all_runs.append(RunSeen(1, words, begin, words, "done", "", words, "", 3, 0, 1, 1, 9, 0.1,
                                 {words: 7}))  # fmt: skip
    return past


def a_report(past: PastMade, **more: object) -> str:
    given = {"status": {"needs_you": [], "nodes": []}, "trouble": "", **more}
    return page_of(gathered(past, "arc0", NOW - DAY, NOW, **given))  # type: ignore[arg-type]


def test_it_says_who_was_stranded_by_which_rule_and_what_moved_and_failed() -> None:
    said = Seen(a_report(a_past("may_do_this_work"))).text
    for text in ("stranded 15 node-minutes", "may_do_this_work", "1 failed", "iris", "15m"):
        assert text in said


def test_of_a_stretch_that_began_before_it_a_report_counts_what_falls_into_it() -> None:
    """A node that was stranded for three days was not stranded for 72 hours of the last one."""
    past = a_past("x")
    past.all_stranded = [StrandedStretch("iris", NOW - 3 * DAY, NOW, 3 * 72_000.0, "rule", "r")]
    assert "stranded 1200 node-minutes" in Seen(a_report(past)).text


def test_a_month_of_runs_is_counted_whole_and_what_is_cut_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    past = a_past("x")
    past.all_runs *= 12_000
    assert "84000" in Seen(a_report(past)).text  # seven tasks each were kept
    monkeypatch.setattr(gathering, "ROWS_MAX", 1000)
    text = Seen(a_report(past)).text
    assert "7000" in text
    assert "only the newest 1,000 runs are counted" in text


def test_it_needs_nothing_else_and_runs_nothing() -> None:
    page = a_report(a_past("x"))
    seen = Seen(page)
    assert seen.tags <= ALLOWED
    assert not seen.attributes & {"src", "href", "style", "onload"}
    assert "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_hundred_scripts_in_every_field_are_text_of_the_report(script: str) -> None:
    """Seen to fail with texts put into the page as they are."""
    need = {"node": script, "text": script, "try": script}
    page = a_report(a_past(script), status={"needs_you": [need], "nodes": []})
    seen = Seen(page)
    assert seen.tags <= ALLOWED
    assert seen.attributes == Seen(a_report(a_past("x"), status={
        "needs_you": [{"node": "x", "text": "x", "try": "x"}], "nodes": []})).attributes
    plain = "".join(char for char in script if char.isprintable())
    if plain == script:
        assert script in seen.text


def test_a_node_that_nobody_looked_at_is_unknown_and_a_past_without_anything_says_so() -> None:
    past = PastMade()
    past.all_nodes.append(NodeKnown("iris", NOW - DAY, NOW, None))
    said = Seen(a_report(past)).text
    for text in ("no node was stranded", "nothing moved", "none ran", "100%"):
        assert text in said
    assert "nobody could say: no hub" in Seen(a_report(past, status=None, trouble="no hub")).text


def test_the_picture_of_a_nodes_time_reaches_to_its_end() -> None:
    """Seen to fail with paths cut as texts are."""
    past = PastMade()
    past.all_nodes.append(NodeKnown("iris", NOW - DAY, NOW, None))
    drawn = re.search(r'<path d="([^"]*)" class="unknown">', a_report(past))
    assert drawn is not None
    columns = [float(left) for left in re.findall(r"M([\d.]+) ", drawn[1])]
    assert (len(columns), columns[-1]) == (BUCKETS, WIDE - WIDE / BUCKETS)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    (tmp_path / "fleet.yaml").write_text("version: 1\nnodes: []\n")
    yield made
    made.close()


def test_the_command_writes_the_file_whole_and_for_its_owner_alone(desk: Desk) -> None:
    desk.arc("sensors", "run", "fleet-health")
    out = desk.place / "night.html"
    tried = desk.arc("report", "--html", "--out", str(out), "--dry-run")
    assert (tried.code, out.exists()) == (0, False), tried.err
    said = desk.arc("report", "--html", "--since", "3h", "--out", str(out), "--json").data
    assert (said["bytes"], stat.S_IMODE(out.stat().st_mode)) == (out.stat().st_size, 0o600)
    assert "iris" in out.read_text()
    assert desk.arc("report", "--html").out.startswith("<!DOCTYPE html>")


def test_a_dry_run_prints_how_large_it_would_be_and_never_the_report(desk: Desk) -> None:
    """Seen to fail before: without `--out` it was the whole report."""
    desk.arc("sensors", "run", "fleet-health")
    dry = desk.arc("report", "--html", "--dry-run")
    assert (dry.code, dry.out.startswith("would write on stdout: "), len(dry.lines)) == (0, True, 1)
    assert desk.arc("report", "--html", "--dry-run", "--json").data["html"] is None


def test_a_report_of_a_fleet_that_is_not_whole_says_who_is_missing(desk: Desk) -> None:
    """Seen to fail before: exit 0 and nobody named, whoever could not be read."""
    desk.arc("sensors", "run", "fleet-health")
    desk.nodes.switch_off("loom")
    said = desk.arc("report", "--html", "--json")
    assert (said.code, [one["node"] for one in said.envelope["partial"]]) == (3, ["loom"])
    assert desk.arc("report", "--html").err.startswith("warning: loom: ")


@pytest.mark.parametrize("words", [(), ("--html", "--since", "soon"), ("--html", "--since", "99d"),
                                   ("--html", "--out", "/none/x.html"), ("--html", "--out", ".")])
def test_words_that_make_no_sense_are_refused(desk: Desk, words: tuple[str, ...]) -> None:
    desk.arc("sensors", "run", "fleet-health")
    assert desk.arc("report", *words).code == 2
