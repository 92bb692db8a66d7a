"""The page on policies says what its figures say, and the figures are what the simulator gives."""

from __future__ import annotations

import json
from typing import cast
from xml.etree import ElementTree as ET

import pytest

from arc.simulate.wanted import Wanted
from tools.plots import (
    FIGURES,
    IMAGES,
    MANY,
    MOVERS,
    PAGE,
    PICTURES,
    SEEDS,
    Figures,
    compared,
    headline,
    of,
    told,
    with_tables,
)

MAKE_PLOTS = "run `make plots`"


@pytest.fixture(scope="module")
def figures() -> Figures:
    found: Figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    return found


def test_the_tables_of_the_page_are_those_of_its_figures(figures: Figures) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page, figures) == page, MAKE_PLOTS


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_its_figures_draw(figures: Figures, name: str) -> None:
    drawn = (IMAGES / name).read_text(encoding="utf-8")
    assert PICTURES[name](figures) == drawn, MAKE_PLOTS
    assert ET.fromstring(drawn).tag.endswith("svg")
    assert f"img/{name}" in PAGE.read_text(encoding="utf-8")


def test_the_seeds_headline_comes_out_again(figures: Figures) -> None:
    """Up to thirty minutes without stealing, two to seven with the seed's rules."""
    known = cast("dict[str, list[float]]", figures["headline"])
    assert headline(12) == {word: some[:12] for word, some in known.items()}, MAKE_PLOTS
    assert 25 < max(known["none"]) < 30.1
    assert 6 < max(known["arc0"]) < 7.2
    assert max(known["swift"]) < 0.1


def test_the_planner_of_today_gives_these_figures(figures: Figures) -> None:
    """Those of the page were measured when it was written; these are now, and the same, so that
    what `test_swift_reaches_what_it_should` reads is no memory. Fails when a free slot waits for
    the next sweep.
    """
    stream = told(compared(Wanted(seeds=SEEDS), MOVERS))
    assert stream["swift"] == of(figures, "four")["swift"], MAKE_PLOTS
    backlog = told(compared(Wanted(seeds=MANY, backlog=120), ("swift",)))
    assert backlog["swift"]["makespan"] == of(figures, "backlog")["swift"]["makespan"], MAKE_PLOTS


def test_swift_reaches_what_it_should(figures: Figures) -> None:
    four, backlog = of(figures, "four"), of(figures, "backlog")
    assert (four["swift"]["idle"]["high"] or 1) <= 0.06
    assert (four["swift"]["to_central"]["high"] or 9) <= 1.25
    assert (backlog["swift"]["makespan"]["mean"] or 9) <= 1.10
    assert (four["none"]["idle"]["mean"] or 0) > (four["arc0"]["idle"]["mean"] or 0) > 0.25
