"""`arc config check`: what can be obeyed and is hardly meant, each doubt with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from arc.config import read_fleet
from arc.config_check import Seen, check_fleet
from arc.decisions.sounding import ENOUGH, signs_of, sounds_of
from arc.findings import render_finding

ROOT = Path(__file__).parents[2]
TWO = """\
domains: {d: {words: [w]}, e: {skills: [s]}}
nodes:
  - {name: a, host: x, owns: [d], also: [e]}
  - {name: b, host: y, owns: [e]}
"""


def findings(tmp_path: Path, text: str, seen: Seen | None = None) -> list[str]:
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    return [f"{one.where.removeprefix(f'{path}:')} {one.code.removeprefix('ARC-CFG-')}"
            for one in check_fleet(read_fleet(path), seen)]


def test_the_example_reads_and_has_no_findings() -> None:
    settings = read_fleet(ROOT / "fleet.yaml.example")
    assert check_fleet(settings) == ()
    assert [node.name for node in settings.nodes] == ["spark", "iris", "loom", "forge", "arc"]
    assert (len(settings.domains), settings.nodes[-1].local) == (4, True)
    assert any(node.also for node in settings.nodes)


def test_a_new_fleet_has_no_findings(tmp_path: Path) -> None:
    assert findings(tmp_path, "nodes: []") == []
    assert findings(tmp_path, TWO) == []


@pytest.mark.parametrize(("text", "found"), [
    ("domains: {d: {words: [w]}}\nnodes: [{name: a, host: x}]", ["1:11 NO-OWNER"]),
    ("domains: {d: {words: [w]}}\nnodes: [{name: a, host: x, also: [d]}]", ["1:11 NO-OWNER"]),
    ("domains: {d: {}}\nnodes: []", ["1:11 NEVER-MATCHES"]),
    ("domains: {d: {prefix: [' x']}}\nnodes: []", ["1:24 NEVER-MATCHES"]),
    ("domains: {d: {words: ['x ']}}\nnodes: []", ["1:23 NEVER-MATCHES"]),
    ("domains: {d: {prefix: [a, AB]}}\nnodes: []", ["1:27 OVERLAP"]),
    ("domains: {d: {words: [a]}, e: {words: [A]}}\nnodes: []", ["1:40 OVERLAP"]),
    ("domains: {d: {skills: [a]}, e: {skills: [a]}}\nnodes: []", ["1:42 OVERLAP"]),
    ("domains: {d: {skills: [a]}, e: {skills: [A]}}\nnodes: []", []),
    ("nodes: []\nrebalance: {per_cycle: 0}", ["2:24 NOBODY-MEETS"]),
    ("nodes: []\nrebalance: {per_node: 0}", ["2:23 NOBODY-MEETS"]),
    ("nodes: []\nrouter: {batch: 0}", ["2:17 NOBODY-MEETS"]),
    ("nodes: []\nrouter: {keep: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}", ["2:16 NOBODY-MEETS"]),
    ("nodes: []\nhealth: {stale_after: 30s}", ["2:23 NOBODY-MEETS"]),
    ("nodes: []\nrouter: {fallback: gone}", ["2:20 FALLBACK"]),
    ("nodes: [{name: a, host: x}, {name: b, host: x}]", ["1:29 SAME-PLACE"]),
    ("nodes: [{name: a, local: true}, {name: b, local: true}]", ["1:33 SAME-PLACE"]),
    ("nodes: [{name: a, local: true}, {name: b, local: true, home: b}]", []),
    ("domains: {d: {words: [w]}}\nnodes: [{name: a, host: x, owns: [d], also: [d]}]",
     ["2:46 NO-EFFECT"]),
    ("nodes: []\nrebalance: {gain_min: 5s}", ["2:13 NO-EFFECT"]),
    ("nodes: []\npolicy: swift\nrebalance: {gain_min: 5s, on_idle: true}", ["3:27 NO-EFFECT"]),
    ("nodes: []\npolicy: swift\nrebalance: {idle_min: 1m, busy_over: 2, steal_from: P2, every: 2m}",
     ["3:13 NO-EFFECT", "3:27 NO-EFFECT", "3:41 NO-EFFECT"]),
    ("nodes: []\npolicy: swift\nrebalance: {anyone_from: P5, per_node: 0}", ["3:13 NO-EFFECT"]),
])
def test_a_doubt_is_named_with_its_place(tmp_path: Path, text: str, found: list[str]) -> None:
    assert findings(tmp_path, text) == found


def test_owners_alone_make_stealing_impossible_and_are_a_finding(tmp_path: Path) -> None:
    """The original's affinity: one owner a domain, so no task of it could ever move."""
    assert findings(tmp_path, TWO.replace("also: [e]", "also: []")) == ["2:1 NOBODY-MEETS"]


# The original's table, and names as they were there: of its 19 beginnings these have 6.
ITS_TABLE = {
    "spark": ("stacks-js", "bitcoin-", "ordinals-", "x-", "aibtc-", "multisig", "sip-", "bip-"),
    "iris": ("arc-research-", "blog-publishing", "arc-email-", "arc-newsletter", "arc-digest"),
    "loom": ("zest-", "bitflow-", "mcp-"),
    "forge": ("arc0btc-site-", "blog-deploy", "arc0me-"),
}
ITS_NAMES = (
    "bitcoin-wallet", "aibtc-heartbeat", "blog-publishing", "arc-email-sync", "blog-deploy",
    "arc0btc-site-health", "bitcoin-taproot-multisig", "arxiv-research", "social-x-posting",
    "arc-mcp-server", "arc-link-research", "defi-zest", "defi-bitflow", "stacks-payments",
)


def test_fault_prefix_tables_that_match_nothing_say_so(tmp_path: Path) -> None:
    """13 of the original's 19 beginnings matched nothing that was there, and nothing said so."""
    rows = [f"  {node}-work: {{prefix: {[*some]}}}" for node, some in ITS_TABLE.items()]
    also = dict.fromkeys(ITS_TABLE, "loom-work") | {"loom": "spark-work, iris-work, forge-work"}
    nodes = [f"  - {{name: {node}, host: {node}, owns: [{node}-work], also: [{also[node]}]}}"
             for node in ITS_TABLE]  # fmt: skip
    text = "\n".join(["domains:", *rows, "nodes:", *nodes])
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    settings = read_fleet(path)
    signs = signs_of(settings.domains)
    assert len(signs["prefix"]) == 19
    assert check_fleet(settings) == ()
    seen = Seen(sounds=sounds_of(signs, [f"{name}: look" for name in ITS_NAMES * ENOUGH]))
    found = check_fleet(settings, seen)
    assert {one.code for one in found} == {"ARC-CFG-NOTHING-MATCHES"}
    assert [one.text.removeprefix(f"none of the {len(ITS_NAMES) * ENOUGH} tasks that the nodes "
                                  "know begins with ") for one in found] == [
        "'stacks-js'", "'ordinals-'", "'x-'", "'multisig'", "'sip-'", "'bip-'",
        "'arc-research-'", "'arc-newsletter'", "'arc-digest'", "'zest-'", "'bitflow-'", "'mcp-'",
        "'arc0me-'"]  # fmt: skip


def test_a_sign_that_nothing_has_is_a_finding_once_enough_was_looked_through(
    tmp_path: Path,
) -> None:
    text = TWO + "router: {}\n"
    text = text.replace("words: [w]", "prefix: ['zest-', 'defi-'], words: [paper, gone]")
    signs = {"prefix": ["zest-", "defi-"], "words": ["paper", "gone"]}
    some = ["defi-zest: look", "Read the PAPER, twice", "forgone"]
    seen = Seen(sounds=sounds_of(signs, some * ENOUGH))
    assert findings(tmp_path, text, seen) == ["1:24 NOTHING-MATCHES", "1:58 NOTHING-MATCHES"]
    assert findings(tmp_path, text) == []
    few = [*some * ENOUGH][: ENOUGH - 1]  # a quiet week is no reason to change a table
    assert findings(tmp_path, text, Seen(sounds=sounds_of(signs, few))) == []


def test_skills_that_no_node_has_are_findings_once_nodes_were_asked(tmp_path: Path) -> None:
    assert findings(tmp_path, TWO, Seen(skills={"a": ["q"], "b": ["s"]})) == []
    assert findings(tmp_path, TWO, Seen(skills={"a": ["q"], "b": ["z"]})) == [
        "1:41 NOTHING-MATCHES", "4:31 NO-SKILL"]  # fmt: skip


@pytest.mark.parametrize(("skills", "found"), [
    ({}, []),
    ({"b": ["z"]}, ["4:31 NO-SKILL"]),  # that is known of b; a may have what e is called by
    ({"a": [], "b": ["z"]}, ["4:31 NO-SKILL"]),  # a does such work, too, and lists nothing
    ({"a": ["q"], "b": []}, []),
    ({"a": ["s"], "b": ["z"]}, ["4:31 NO-SKILL"]),
])  # fmt: skip
def test_who_was_not_heard_or_lists_no_skills_makes_no_finding(
    tmp_path: Path, skills: dict[str, list[str]], found: list[str]
) -> None:
    """Seen to fail: what one node that answered had not was said to be nowhere."""
    assert findings(tmp_path, TWO, Seen(skills=skills)) == found


def test_of_a_domain_that_nobody_does_every_node_is_looked_at(tmp_path: Path) -> None:
    text = TWO.replace("also: [e]", "also: []").replace("owns: [e]", "owns: []")
    ours = ["1:28 NO-OWNER", "2:1 NOBODY-MEETS"]
    assert findings(tmp_path, text, Seen({"a": ["q"], "b": []})) == ours
    assert findings(tmp_path, text, Seen({"a": ["q"], "b": ["z"]})) == [
        ours[0], "1:41 NOTHING-MATCHES", ours[1]]  # fmt: skip


def test_a_file_that_changed_or_went_meanwhile_still_gives_its_findings(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("nodes: []\nrebalance: {per_cycle: 0}")
    settings = read_fleet(path)
    path.unlink()
    assert [one.where for one in check_fleet(settings)] == [str(path)]
    path.write_text("nodes: []")
    assert [one.where for one in check_fleet(settings)] == [f"{path}:1:1"]


def test_a_finding_shows_its_line_with_a_caret(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("nodes: []\nrebalance: {per_cycle: 0} # none\n")
    (found,) = check_fleet(read_fleet(path))
    assert render_finding(found, "finding") == f"""\
{path}:2:24: finding[ARC-CFG-NOBODY-MEETS]: with rebalance.per_cycle: 0 nothing ever moves
     2 | rebalance: {{per_cycle: 0}} # none
       |                        ^
   hint: to stop it on purpose write rebalance: {{enabled: false}}"""
