"""Measures in Chromium when the page of five nodes is first painted, and what was sent for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from tools.browsers import missing_for_pages

from .hub_far import FIXED
from .hub_fleet import FIVE, far_side, hub_process, write_fleet
from .machine import load
from .measuring import Place, Row
from .page_open import page_process

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
WAIT_MS = 20_000
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
# Header and body of everything that was brought; a stream that goes on is not among them.
SENT = (
    "performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource'))"
    ".map((one) => [new URL(one.name).pathname, one.transferSize])"
)
DRAWN = ".panel[data-drawn]"
PANELS = 8  # that bring data; "Needs you" stands in the stream


class Load(NamedTuple):
    """One load by a browser that has nothing of it yet."""

    painted_ms: float
    lanes_ms: float  # until the lanes are drawn
    first_bytes: int  # until then
    files_bytes: int  # the page and all its files, whenever they came
    all_bytes: int  # and the data of every panel


def paint_rows(place: Place) -> Iterator[Row]:
    """A fresh profile each time; nothing where there is no Chromium."""
    if missing_for_pages():
        return
    bare = [place.python, "-I", "-S", "-c", "pass"]
    folder = place.folder / "hub"
    with far_side(folder / ".arc", bare, named=FIVE) as far:
        fleet = write_fleet(folder, [
            {"name": name, "host": "127.0.0.1", "port": port, "user": f"{FIXED}-{name}"}
            for name, port in far.ports.items()])  # fmt: skip
        with hub_process(fleet), page_process(fleet) as page:
            loads = asyncio.run(_loads(page.url, place.rounds(11)))
    painted = median(one.painted_ms for one in loads)
    yield Row(
        "page-paint-5", f"first contentful paint of the page of {len(FIVE)} nodes, a fresh profile",
        painted, None, "ms", painted, 300.0, load=load(),
        more={"lanes drawn, ms": median(one.lanes_ms for one in loads),
              "slowest paint, ms": max(one.painted_ms for one in loads)},
    )  # fmt: skip
    files = median(one.files_bytes for one in loads) / 1000
    yield Row(
        "page-weight-5", "the page and all its files as they are sent, headers too", files, None,
        "kB", files, 150.0, load=load(),
        more={"until the lanes are drawn, kB": median(one.first_bytes for one in loads) / 1000,
              "with the data of all panels, kB": median(one.all_bytes for one in loads) / 1000},
    )  # fmt: skip


async def _loads(url: str, rounds: int) -> list[Load]:
    from playwright.async_api import Browser, async_playwright

    from tools.browsers import find_chromium

    async def one(browser: Browser) -> Load:
        context = await browser.new_context(viewport={"width": 1280, "height": 4000})
        page = await context.new_page()
        page.set_default_timeout(WAIT_MS)
        await page.goto(url)
        await page.wait_for_selector("#lanes[data-drawn]")
        lanes_ms, first = await page.evaluate("performance.now()"), await page.evaluate(SENT)
        await page.locator(DRAWN).nth(PANELS - 1).wait_for()
        await page.wait_for_load_state("load")
        every = await page.evaluate(SENT)
        painted = await page.evaluate(PAINTED)
        await context.close()
        return Load(painted, lanes_ms, _sum(first), _sum(every, "/api/"), _sum(every))

    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        await one(browser)  # the first of a browser pays for the browser
        found = [await one(browser) for _ in range(rounds)]
        await browser.close()
    return found


def _sum(sent: list[tuple[str, int]], without: str = "\0") -> int:
    return sum(size for path, size in sent if not path.startswith(without))
