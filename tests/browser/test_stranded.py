"""Which node is stranded, and why, as Chromium shows it: names, rules, and the two causes apart."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import Route, expect

from agent_node.strict import JsonObject, JsonValue
from arc.history import History
from arc.history_seen import StrandedStretch
from tests.browser.looking import Looking
from tests.browser.served import UID, Served
from tests.browser.test_page import CONTRAST
from tests.web.past_large import UNTIL, write_large
from tests.web.past_made import NOW, PastMade, a_night, s

pytestmark = pytest.mark.asyncio(loop_scope="session")
BUSY = "iris has 4 left; we steal above 5"
FREE = "no rule forbids it; the next look would move it"


def stranded(node: str, *, rule: str = "busy_node_is_busy") -> JsonObject:
    because = BUSY if rule else FREE
    return {"node": node, "cause": "rule" if rule else "nobody_looked", "rule": rule,
            "because": because, "uid": UID, "beside": "iris"}  # fmt: skip


def a_count(*nodes: JsonValue) -> JsonObject:
    """What `page.now` says of stranded time."""
    return {"now": [*nodes], "seen_at": "2026-03-10T03:44:58Z", "today_s": 732.0, "by_node": {},
            "by_cause": {"busy_node_is_busy": 500.0, "low_enough_priority": 52.0,
                         "nobody_looked": 180.0}}  # fmt: skip


async def test_who_is_stranded_is_named_with_its_reason_and_the_command_to_type(
    look: Looking, served: Served
) -> None:
    """Seen to fail with the count alone: `3 nodes now` says neither which nor why."""
    served.hub.changed(stranded=a_count(stranded("forge"), stranded("loom", rule="")))
    page = await look.at(served.url)
    lines = page.locator("#needs .stranded-nodes")
    await expect(lines.locator("h3")).to_contain_text("Stranded: 2 nodes at 03:44:58 UTC")
    told = await lines.locator("li").all_inner_texts()
    assert [one.split("\n")[:2] for one in told] == [
        ["forge", f"free slot beside iris: busy_node_is_busy: {BUSY}"],
        ["loom", f"free slot beside iris: nobody looked: {FREE}"]]  # fmt: skip
    assert "arc why --node forge" in told[0]
    assert await lines.locator("p").inner_text() == (
        "today: busy_node_is_busy 8.3 min, nobody looked 3.0 min, low_enough_priority 0.9 min")

    facts = (await page.locator("#facts").inner_text()).split("\n")
    assert "forge, loom stranded now" in facts
    assert ("12 min stranded today (a rule forbade it 9.2 min, nobody looked 3.0 min)") in facts
    assert await page.locator("#lanes .name.loud").all_text_contents() == ["forge", "loom"]
    assert await page.evaluate(CONTRAST) == []
    await lines.locator("button.mono").first.click()
    await page.locator("#drawer .subject").wait_for()


async def test_the_two_parts_of_stranded_time_add_up_as_they_are_shown(
    look: Looking, served: Served
) -> None:
    """Seen to fail: `0.4 min stranded today (a rule forbade it 0.2 min, nobody looked 0.1 min)`."""
    causes: JsonObject = {"a": 14.4, "nobody_looked": 8.4}
    count: JsonObject = {**a_count(), "today_s": 22.8, "by_cause": causes}
    served.hub.changed(needs_you=[], stranded=count)
    page = await look.at(served.url)
    await expect(page.locator("#facts")).to_contain_text(
        "0.4 min stranded today (a rule forbade it 0.2 min, nobody looked 0.2 min)")


async def test_of_many_that_are_stranded_the_first_are_told_and_how_many_more(
    look: Looking, served: Served
) -> None:
    served.hub.changed(needs_you=[], stranded=a_count(*(stranded(f"n{n}") for n in range(9))))
    page = await look.at(served.url)

    lines = page.locator("#needs .stranded-nodes li")
    await expect(lines).to_have_count(6)
    assert "… and 4 more" in await lines.last.inner_text()
    assert "n0, n1, n2 and 6 more stranded now" in await page.locator("#facts").inner_text()
    served.hub.changed(stranded=a_count(stranded("spark")))
    await expect(page.locator("#lanes .name.loud")).to_have_text(["spark"])
    served.hub.changed(stranded=a_count())
    await expect(lines).to_have_count(0)
    await expect(page.locator("#lanes .name.loud")).to_have_count(0)
    await expect(page.locator("#needs .sum")).to_have_text("nothing")


def both_causes() -> PastMade:
    """Of what stranded `loom` every second stretch was seen by nobody."""
    past = a_night()
    past.all_stranded = [
        replace(one, cause="nobody_looked", rule="") if place % 2 else one
        for place, one in enumerate(past.all_stranded)
    ]
    return past


async def test_the_two_causes_are_hatched_each_in_its_own_way(
    look: Looking, serving: AsyncExitStack
) -> None:
    """Seen to fail where one hatching stood for both."""
    past = both_causes()
    own = await serving.enter_async_context(Served(past))
    page = await look.at(own.url)
    fills = await page.locator("#lanes .stranded").evaluate_all(
        "all => all.map((one) => one.getAttribute('fill'))")

    assert fills.count("url(#loud-hatch)") == sum(
        one.cause == "rule" for one in past.all_stranded)  # fmt: skip
    assert fills.count("url(#loud-dots)") == sum(
        one.cause == "nobody_looked" for one in past.all_stranded)  # fmt: skip
    assert {"url(#loud-hatch)", "url(#loud-dots)"} == set(fills)
    for name in ("loud-hatch", "loud-dots"):
        assert await page.locator(f"pattern#{name}").count() == 1
    legend = await page.locator("#lanes .legend").inner_text()
    assert "stranded: a rule forbade it" in legend
    assert "stranded: nobody looked" in legend


async def test_a_moment_of_the_past_says_who_was_stranded_then_and_why(
    look: Looking, serving: AsyncExitStack
) -> None:
    """Seen to fail where the stream spoke of now after the moment had come, and took it away."""
    past, drawn = both_causes(), asyncio.Event()
    own = await serving.enter_async_context(Served(past))
    one = next(one for one in past.all_stranded if one.cause == "rule")
    page = await look.at(own.url)

    async def held_back(route: Route) -> None:
        await drawn.wait()
        await route.continue_()

    await page.route("**/live", held_back)
    await page.goto(f"{own.url}?at={one.until:%Y-%m-%dT%H:%M:%S}.000Z")
    line = page.locator("#needs .stranded-nodes li").first
    await expect(line).to_contain_text("free slot beside iris: busy_node_is_busy")
    drawn.set()
    await page.wait_for_selector("#live[data-state=live]")
    await expect(page).to_have_title("(2) arc0 · arc")
    assert "free slot beside iris: busy_node_is_busy" in await line.inner_text()
    await expect(page.locator("#facts")).to_contain_text(f"{one.node} stranded then")
    await page.keyboard.press("l")
    await expect(page.locator("#needs .stranded-nodes")).to_have_count(0)


async def test_the_heat_map_says_what_kept_each_node_stranded(
    look: Looking, serving: AsyncExitStack, tmp_path: Path
) -> None:
    large = await serving.enter_async_context(
        Served(large=History(write_large(tmp_path, 60)), at=UNTIL))  # fmt: skip
    page = await look.at(f"{large.url}?span=24h")
    names = page.locator("#lanes .heat-names li")
    await expect(names).to_have_count(60)
    assert "(a rule forbade it" in await page.locator("#lanes .sum").inner_text()
    assert await names.first.locator("span").get_attribute("title") == "busy_node_is_busy 50 min"
    await page.locator("#lanes canvas.heat").hover(position={"x": 112, "y": 7})
    await page.locator(
        "#tip >> text=a rule forbade it; in all: busy_node_is_busy 50 min").wait_for()


HATCHED = """() => {
  const canvas = document.querySelector("#lanes canvas.heat");
  const seen = canvas.getContext("2d").getImageData(canvas.width / 2, 0, 14, 42).data;
  return [0, 1, 2].map((row) => seen.slice(row * 14 * 14 * 4, (row * 14 + 13) * 14 * 4).join());
}"""


async def test_the_heat_map_hatches_the_two_causes_as_the_lanes_do(
    look: Looking, serving: AsyncExitStack
) -> None:
    """Seen to fail where a cell was filled with the loud colour whatever the cause."""
    past = a_night([f"n{n:02d}" for n in range(50)])
    since = NOW - s(3 * 3600)
    past.all_stranded = [
        StrandedStretch("n01", since, NOW, 10_800.0, "rule", "busy_node_is_busy", "n00"),
        StrandedStretch("n02", since, NOW, 10_800.0, "nobody_looked", "", "n00"),
        StrandedStretch("n03", since, NOW, 10_800.0, "rule", "busy_node_is_busy", "n00")]
    own = await serving.enter_async_context(Served(past))
    page = await look.at(own.url)
    await expect(page.locator("#lanes .heat-names li")).to_have_count(50)
    ruled, unlooked, ruled_too = await page.evaluate(HATCHED)

    assert await page.locator("#lanes .heat-names button").first.inner_text() == "n01"
    assert ruled == ruled_too != unlooked
    assert "nobody looked 180 min" in await page.locator("#lanes .sum").inner_text()
