"""One table says which limits a policy goes by; simulator, page and fleet.yaml hold to it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from arc.decisions.limits import GOES_BY, LIMITS
from arc.simulate.advice import TRIED
from arc.simulate.command import run_simulation
from arc.simulate.engine import simulate
from arc.simulate.policies import parse_policy, with_limits
from arc.simulate.scene import Kind, Scene
from arc.simulate.wanted import Wanted, source_of
from tests.simulate.hands import a_job, a_place, a_scene

ROOT = Path(__file__).parents[2]
SLIDERS = ROOT / "arc/web/static/js/panels/what_if.js"
OTHER = {"every": "1s", "on_idle": "true", "idle_min": "10s", "busy_over": "0", "steal_from": "P9",
         "anyone_from": "P1", "per_node": "1", "per_cycle": "1", "gain_min": "9m", "hops": "1",
         "transfer": "9m", "task_takes": "1s"}  # fmt: skip
# Where each limit makes a difference, if it does: much waits at once, beside nodes that are free.
BASES = {
    "arc0": ("every=1m,idle_min=1m,busy_over=2,per_node=3,per_cycle=4",),
    "swift": ("gain_min=5s,transfer=1s,task_takes=10m", "gain_min=5m,transfer=1s"),
}


@pytest.mark.parametrize("key", LIMITS)
@pytest.mark.parametrize("name", ["arc0", "swift"])
def test_a_policy_goes_by_the_limits_of_its_table_and_by_no_other(name: str, key: str) -> None:
    """The table by which the page has its sliders, and `arc config check` its finding."""
    bases = [parse_policy(f"{name}:{words}") for words in BASES[name]]
    differs = any(simulate(scene, base) != simulate(scene, with_limits(base, {key: OTHER[key]}))
                  for base in bases for scene in limit_scenes())  # fmt: skip
    goes_by_it = key in GOES_BY[name]
    assert differs == goes_by_it
    assert with_limits(parse_policy(name), {key: OTHER[key]}).passed_over == (
        () if goes_by_it else (key,))


@cache
def limit_scenes() -> tuple[Scene, ...]:
    """A small stream, and tasks without a domain that all wait on one node."""
    stream = source_of(Wanted(nodes=4, days=".1", load=".8"), None).scene(1)
    places = tuple(a_place(name) for name in ("forge", "iris", "loom"))
    untagged = [replace(a_job(number, "iris", 40 + 13 * (number % 7)), kind=Kind(),
                        priority=1 + number % 10) for number in range(1, 31)]  # fmt: skip
    moved_on = [a_job(number, "forge", 30, at_s=9 * number) for number in range(31, 61)]
    return stream, a_scene(*places, *untagged), a_scene(*places, *untagged, *moved_on)


def test_the_search_for_better_limits_tries_none_that_do_nothing() -> None:
    for policy, tried in TRIED.items():
        assert {key for key, _ in tried} <= set(GOES_BY[policy])


def test_a_limit_that_does_nothing_is_said_beside_the_figures() -> None:
    found = run_simulation(Wanted(nodes=2, days=".01", seeds=1),
                           ["swift:idle_min=1m,hops=1,busy_over=3", "arc0:hops=1"], "",
                           advise=False, fleet=None)  # fmt: skip
    assert found.warnings == (
        "swift:idle_min=1m,hops=1,busy_over=3: swift does not look at idle_min, busy_over",
        "arc0:hops=1: arc0 does not look at hops",
    )


def test_fleet_yaml_is_explained_by_the_same_table() -> None:
    page = (ROOT / "docs/fleet-yaml.md").read_text(encoding="utf-8")
    for policy, keys in GOES_BY.items():
        assert f"| `{policy}` | {', '.join(f'`{key}`' for key in keys)} |" in page


def test_the_page_has_sliders_for_what_each_policy_goes_by() -> None:
    """The script cannot import the table, so it is held against it here."""
    text = SLIDERS.read_text(encoding="utf-8")
    found: dict[str, set[str]] = {"arc0": set(), "swift": set()}
    for key, policies in re.findall(r'^  \["(\w+)", \[(.*?)\], "', text, re.MULTILINE):
        for policy in re.findall(r'"(\w+)"', policies):
            found[policy].add(key)
    assert found["swift"] == set(GOES_BY["swift"])
    assert found["arc0"] == set(GOES_BY["arc0"])
