"""The pictures of the documents: what an operator sees at night, of a real fleet and a large one.

`ARC_SCREENSHOTS=docs/img` keeps them, and waits until there is much to see; without it they are
drawn all the same, and dropped.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect
from playwright.async_api import TimeoutError as NotInTime

from agent_node.strict import JsonValue
from arc.history import History
from arc.journal import Journal
from tests.browser.demo_run import Demo, parked, started
from tests.browser.looking import Looking, Scheme
from tests.browser.served import Served, tells_its_past
from tests.browser.small_png import small_png
from tests.browser.test_demo import SOON_MS
from tests.browser.test_page import show_all
from tests.builders import FakeClock
from tests.hub.test_virtual_day import DAY_S, a_day
from tests.web.past_large import UNTIL, write_large
from tools.browsers import missing_for_pages

pytestmark = pytest.mark.asyncio(loop_scope="session")
KEPT = os.environ.get("ARC_SCREENSHOTS")
PNG_MAX, WHOLE_MAX = 150_000, 250_000
FLEET = """\
version: 1
domains:
  protocol: {skills: [stacks-js, clarity]}
  research: {skills: [arc-research], prefix: ["Research:"], words: [paper]}
  integrations: {skills: [defi-zest, defi-bitflow, ci]}
  infrastructure: {skills: [deploy, host], prefix: ["Ops:"]}
nodes:
  - {name: forge, host: forge.lan, owns: [infrastructure], also: [integrations]}
  - {name: iris, host: iris.lan, owns: [research]}
  - {name: loom, host: loom.lan, owns: [integrations], also: [research]}
  - {name: spark, host: spark.lan, owns: [protocol], never: [infrastructure]}
"""
SUBJECT = "charge the customers of March"
PARKED = "1 parked: what became of them is not known; resolve them"  # as a node says it
# The oldest block stands in the first fifth of the picture: the fleet has filled its span.
FULL = """() => {
  const blocks = [...document.querySelectorAll("#lanes .block")]
    .map((one) => Number(one.getAttribute("x")));
  return Math.min(...blocks) < 0.2 * document.querySelector("#lanes svg").clientWidth;
}"""
LOOKS_MAX = 20
AGAIN = "name => document.dispatchEvent(new CustomEvent('arc:again', {detail: name}))"
DRAWN = "([name, drawn]) => Number(document.getElementById(name).dataset.drawn) > drawn"


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def demo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Demo | None]:
    """A fleet with something that waits for a person."""
    if missing_for_pages():
        yield None
        return
    async with started(tmp_path_factory.mktemp("demo"), tasks=120 if KEPT else 60) as running:
        await parked(running, SUBJECT, on="loom")
        yield running


async def opened(look: Looking, demo: Demo | None, query: str = "", *, scheme: Scheme = "dark",
                 width: int = 1180, height: int = 800) -> Page:  # fmt: skip
    assert demo is not None, "look has skipped already"
    address = f"{demo.url.partition('?')[0]}?span=1m{query}"
    page = await look.at(address, scheme=scheme, width=width, height=height)
    page.set_default_timeout(SOON_MS)
    expect.set_options(timeout=SOON_MS)
    return page


async def kept(shown: Page | Locator, tmp_path: Path, name: str) -> None:
    """Small enough to lie beside the code; a person looks at them before they are kept."""
    file = Path(KEPT or tmp_path) / f"{name}.png"
    await shown.screenshot(path=file)
    assert file.stat().st_size <= PNG_MAX


async def kept_whole(look: Looking, page: Page, tmp_path: Path, name: str) -> None:
    """The page from its first line to its last, however far that is below what a window shows."""
    file = Path(KEPT or tmp_path) / f"{name}.png"
    file.write_bytes(await small_png(look.browser, await page.screenshot(full_page=True)))
    assert file.stat().st_size <= WHOLE_MAX


async def kept_tasks(page: Page) -> None:
    """An opened step looks once at what waits now: between two waves of the demo nothing does."""
    tasks = page.locator("#funnel .opened tbody tr").first
    for _ in range(LOOKS_MAX):
        with suppress(NotInTime):
            await tasks.wait_for(state="attached", timeout=SOON_MS / LOOKS_MAX)
            return
        await page.locator("#funnel [data-key=look-again]").click()
    await tasks.wait_for(state="attached")


@pytest.mark.parametrize(("name", "scheme", "width", "height"), [
    ("page-dark", "dark", 1180, 600), ("page-light", "light", 1180, 600),
    ("page-narrow", "dark", 400, 900),
])  # fmt: skip
async def test_at_night_one_sees_who_is_stranded_what_moved_and_what_waits_for_a_person(
    look: Looking, demo: Demo | None, tmp_path: Path, name: str, scheme: Scheme, width: int,
    height: int,
) -> None:  # fmt: skip
    page = await opened(look, demo, scheme=scheme, width=width, height=height)
    await show_all(page)
    await expect(page.locator("#needs ol.persons li")).to_contain_text("1 parked")
    await page.locator("#lanes .arc").nth(3).wait_for(state="attached")
    await page.locator("#lanes .block").nth(5).wait_for()
    if KEPT:
        await page.wait_for_function(FULL)
        await page.locator("#needs .stranded-nodes li").first.wait_for()
    await kept(page, tmp_path, name)


async def test_the_whole_page_shows_every_panel_with_what_it_has(
    look: Looking, demo: Demo | None, tmp_path: Path
) -> None:
    page = await opened(look, demo, "&step=low_enough_priority")
    await show_all(page)
    for shown in ("#lanes .arc", "#feeds td.some", "#depth canvas", "#money .spent",
                  "#sensors .run.acted", "#tasks tbody tr"):  # fmt: skip
        await page.locator(shown).first.wait_for(state="attached")
    await kept_tasks(page)
    if KEPT:
        await page.wait_for_function(FULL)
        await page.locator("#funnel .opened tbody tr").first.wait_for()
    for panel in ("feeds", "money", "tasks"):  # they are of the same moment as the header
        drawn = int(str(await page.locator(f"#{panel}").get_attribute("data-drawn")))
        await page.evaluate(AGAIN, panel)
        await page.wait_for_function(DRAWN, arg=[panel, drawn])
    await kept_whole(look, page, tmp_path, "page-whole")


async def test_a_stream_that_dropped_cannot_be_overlooked(
    look: Looking, serving: AsyncExitStack, tmp_path: Path
) -> None:
    look.forgiven = ("console: Failed to load resource: net::ERR_",)
    dropped = await serving.enter_async_context(Served())
    tells_its_past(dropped)
    dropped.hub.changed(needs_you=[{"node": "iris", "text": PARKED,
                                    "try": "arc tasks list --state PARKED"}])  # fmt: skip
    page = await look.at(dropped.url, width=1180, height=330)
    await show_all(page)
    await dropped.stop()
    await page.locator("#banner >> text=/, [2-9]s old, reconnecting/").wait_for()
    await kept(page, tmp_path, "page-dropped")


async def test_one_sees_why_a_task_is_where_it_is_and_what_would_change_that(
    look: Looking, demo: Demo | None, tmp_path: Path
) -> None:
    page = await opened(look, demo, height=800)
    await show_all(page)
    waiting = page.locator("#tasks tbody tr", has_text="READY")
    if KEPT:  # the last one of the longest queue waits long enough to be seen waiting
        await waiting.filter(has_text="iris").nth(9).wait_for()
    one = waiting.filter(has_text="iris").last if KEPT else waiting.first
    await one.locator("button").click()
    drawer = page.locator("#drawer")
    await drawer.locator("[aria-label=Why] strong").first.wait_for()
    await drawer.locator("[aria-label=Life] tbody tr").first.wait_for()
    if KEPT:
        await drawer.locator("h3", has_text="why it is still here").wait_for()
    await kept(drawer, tmp_path, "page-why")


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day, or a part of it, of a hub's own: real sensors, plans and queues in virtual time."""
    place = tmp_path_factory.mktemp("night")
    (place / "fleet.yaml").write_text(FLEET)
    if not missing_for_pages():
        a_day(place, seconds=DAY_S if KEPT else DAY_S / 4)
    return place


async def test_one_sees_what_other_limits_would_have_brought(
    look: Looking, serving: AsyncExitStack, night: Path, tmp_path: Path
) -> None:
    history = History(night / ".arc")
    past = Served(large=history, at=history.span().until)
    past.settings = replace(past.settings, fleet=night / "fleet.yaml")
    await serving.enter_async_context(past)
    page = await look.at(f"{past.url}?span=24h", width=1180, height=800)
    await show_all(page)
    await page.locator("#what-if input[data-name=policy]").focus()
    await page.keyboard.press("End")
    await page.wait_for_selector("#what-if input[data-name=gain_min]")
    panel = page.locator("#what-if")
    await panel.locator("svg .other").wait_for(state="attached")
    await expect(panel.locator(".sum")).to_contain_text("with these limits")
    await page.evaluate("document.activeElement.blur()")
    await kept(panel, tmp_path, "page-what-if")


TONIGHT = [(f"n{number:03d}", "nobody_looked" if number % 3 else "rule")
           for number in range(21, 21 + 11 * 13, 11)]  # fmt: skip


def strand(place: Path) -> None:
    """In the last hours of the day one after the other; some because nobody looked."""
    journal = Journal(place / "journal.db", FakeClock())
    until = int(UNTIL.timestamp() * 1000)
    journal._rows.write_many(
        "INSERT INTO stranded_stretch (node, since, until, seconds, cause, rule, beside, uid)"
        " VALUES (?,?,?,?,?,?,'n000','')",
        [(node, until - minutes * 60_000, until, minutes * 60, cause,
          "busy_node_is_busy" if cause == "rule" else "")
         for minutes, (node, cause) in zip(range(360, 100, -20), TONIGHT, strict=True)],
    )  # fmt: skip
    journal.close()


def at_night() -> list[JsonValue]:
    """Which of five hundred nodes the hub says to be stranded now."""
    said = {"rule": ("busy_node_is_busy", "4 waiting; we steal above 5"),
            "nobody_looked": ("", "no rule forbids it; the next look would move it")}
    return [
        {"node": node, "cause": cause, "rule": said[cause][0], "because": said[cause][1],
         "beside": "n000", "uid": f"01JQ00000000000000000000{place + 10}"}
        for place, (node, cause) in enumerate(TONIGHT)
    ]


async def test_of_five_hundred_nodes_the_stranded_ones_stand_first(
    look: Looking, serving: AsyncExitStack, tmp_path: Path
) -> None:
    strand(write_large(tmp_path))
    large = await serving.enter_async_context(
        Served(large=History(tmp_path), at=UNTIL))  # fmt: skip
    tells_its_past(large)
    told: Any = large.hub.now["stranded"]
    large.hub.changed(stranded={**told, "now": at_night()}, needs_you=[
        {"node": "n117", "text": PARKED, "try": "arc tasks list --state PARKED"}])  # fmt: skip
    page = await look.at(f"{large.url}?span=12h", width=1180, height=700)
    await page.locator("#lanes .heat-names li").nth(499).wait_for()
    await expect(page.locator("#needs .stranded-nodes li")).to_have_count(6)
    await expect(page.locator("#lanes .heat-names li").first).to_contain_text("n021")
    facts = page.locator("#facts")
    await expect(facts).to_contain_text("8000 moved in 24 h")
    # of thirteen that were stranded for up to six hours, what fell into the 225 minutes of today
    await expect(facts).to_contain_text("43 h stranded today")
    await kept(page, tmp_path, "page-large")
