"""The colours of the page are told apart by any eyes, in the dark theme and in the light one."""

from __future__ import annotations

import re
from itertools import combinations
from math import dist
from pathlib import Path

import pytest

import arc.web
from arc.report.drawing import KINDS
from arc.report.page import STYLE as REPORT

CSS = (Path(arc.web.__file__).parent / "static" / "page.css").read_text()
TOLD_APART = ("loud", *(f"d{number}" for number in range(7)))  # of stranded time, and of domains
MARKS = ("loud", "warn", "d0", "dim")  # of a sensor's runs: failed, late, did something, the rest
# In steps of CIE 1976; about two are seen side by side. The set of Okabe and Ito has 16.
APART_MIN = 18.0
LEAST_CONTRAST = {"light": 2.0, "dark": 2.5}  # of a block against the panel it lies on

Linear = tuple[float, float, float]
Sight = tuple[Linear, Linear, Linear]
# Machado, Oliveira and Fernandes 2009, of eyes that lack one kind of cones altogether.
SIGHTS: dict[str, Sight] = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
                   (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
                     (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
                   (0.004733, 0.691367, 0.303900)),
}  # fmt: skip
TO_XYZ: Sight = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.95047, 1.0, 1.08883)


def themes() -> dict[str, list[dict[str, str]]]:
    """Every block of colours that the page has, by theme: dark by the system, and by its reader."""
    found = [dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", block))
             for block in re.findall(r":root[^{]*\{([^}]*)\}", CSS)]  # fmt: skip
    return {"light": found[:1], "dark": found[1:]}


def linear(colour: str) -> Linear:
    parts = [int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
                        for part in parts)  # fmt: skip
    return red, green, blue


def through(matrix: Sight, colour: Linear) -> Linear:
    first, second, third = (sum(a * b for a, b in zip(row, colour, strict=True)) for row in matrix)
    return first, second, third


def lab(colour: Linear) -> Linear:
    x, y, z = (
        part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116
        for part in (one / white for one, white in zip(through(TO_XYZ, colour), WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen(colour: str, sight: Sight) -> Linear:
    red, green, blue = (min(max(part, 0.0), 1.0) for part in through(sight, linear(colour)))
    return lab((red, green, blue))


def nearest(colours: dict[str, str], sight: Sight) -> tuple[float, str, str]:
    return min((dist(seen(one, sight), seen(other, sight)), name, beside)
               for (name, one), (beside, other) in combinations(colours.items(), 2))  # fmt: skip


def contrast(one: str, other: str) -> float:
    light, dark = sorted((through(TO_XYZ, linear(colour))[1] for colour in (one, other)),
                         reverse=True)  # fmt: skip
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_two_colours_of_the_lanes_look_alike_to_any_eyes(theme: str, sight: str) -> None:
    """Seen to fail with those that had been altered by eye: 2.8 for deuteranopia."""
    for colours in themes()[theme]:
        apart, one, other = nearest({name: colours[name] for name in TOLD_APART}, SIGHTS[sight])
        assert apart >= APART_MIN, (one, other)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_two_marks_of_a_sensor_look_alike_to_any_eyes(theme: str, sight: str) -> None:
    """Seen to fail: late and failed lay 15 and 16 steps apart for two kinds of eyes."""
    for colours in themes()[theme]:
        apart, one, other = nearest({name: colours[name] for name in MARKS}, SIGHTS[sight])
        assert apart >= APART_MIN, (one, other)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_block_stands_out_from_its_panel(theme: str) -> None:
    for colours in themes()[theme]:
        least = min((contrast(colours[name], colours["panel"]), name) for name in TOLD_APART)
        assert least[0] >= LEAST_CONTRAST[theme], least


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_how_a_nodes_time_went_by_is_told_apart_in_a_report_by_any_eyes(
    theme: str, sight: str
) -> None:
    """Seen to fail: idle and unknown were almost the same grey, one of them at a third."""
    light, dark = (dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", block))
                   for block in re.findall(r":root \{([^}]*)\}", REPORT))  # fmt: skip
    colours = light if theme == "light" else {**light, **dark}
    assert "opacity" not in REPORT, "what shines through is another colour"
    apart, one, other = nearest({name: colours[name] for name in KINDS}, SIGHTS[sight])
    assert apart >= APART_MIN, (one, other)


def test_the_dark_theme_is_the_same_whoever_chose_it() -> None:
    by_the_system, by_its_reader = themes()["dark"]

    assert by_the_system == by_its_reader
    assert by_the_system.keys() == themes()["light"][0].keys()


def test_the_measure_finds_what_is_known_of_the_set_of_okabe_and_ito() -> None:
    """A measure that calls everything far apart would promise nothing."""
    known = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7")
    apart, *which = min(nearest({one: one for one in known}, sight) for sight in SIGHTS.values())

    assert (round(apart, 1), which) == (16.1, ["#56b4e9", "#009e73"])
    assert nearest({"one": "#2f6fa5", "other": "#6f63a8"}, SIGHTS["deuteranopia"])[0] < 3
