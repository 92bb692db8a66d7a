"""Acting from the page in Chromium: what is offered, the plan as lines, and what is sent."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from typing import Any

import pytest
from playwright.async_api import Page

from agent_node.strict import JsonObject
from tests.browser.looking import Looking
from tests.browser.served import UID, Served, a_task

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def open_task(look: Looking, serving: AsyncExitStack, state: str) -> tuple[Page, Served]:
    """The drawer of a task in this state, on a page that may act."""
    acting = await serving.enter_async_context(Served(actions=True))
    acting.hub.answers["tasks.show"] = a_task(state=state)
    page = await look.at(f"{acting.url}?task={UID}")
    await page.locator("#drawer .subject").wait_for()
    return page, acting


async def buttons(page: Page) -> list[str]:
    return await page.locator("#drawer [data-verb]").all_inner_texts()


async def carried_out(page: Page, verb: str, *, choose: str = "") -> list[str]:
    """The form of a verb to its end; the lines of the plan that it showed."""
    await page.click(f"#drawer [data-verb={verb}]")
    await page.fill("[aria-label='Your name']", "lukas")
    await page.fill("[aria-label='Reason']", "it is time")
    if choose:
        await page.click("text=show the plan")
        await page.locator("#drawer .act >> text=choose").wait_for()
        await page.select_option("#drawer .act select", choose)
    await page.click("text=show the plan")
    await page.locator("#drawer .act h3").wait_for()
    lines = await page.locator("#drawer .said li").all_inner_texts()
    await page.locator("#drawer .act button", has_text=" now").click()
    await page.locator("#drawer .act >> text=: done").wait_for()
    return lines


def orders(acting: Served, op: str) -> list[tuple[Any, ...]]:
    """What was sent, without what the test before says already."""
    return [(args["dry_run"], by, {name: one for name, one in args.items()
                                   if name not in {"dry_run", "reason"}})
            for name, args, by in acting.hub.asked if name == op]  # fmt: skip


async def test_a_dead_letter_is_retried_and_the_plan_is_lines(
    look: Looking, serving: AsyncExitStack
) -> None:
    page, acting = await open_task(look, serving, "DEAD_LETTERED")
    assert await buttons(page) == ["cancel", "retry", "resolve"]
    acting.hub.answers["tasks.retry"] = {"results": [
        {"uid": UID, "outcome": "changed", "state": "READY", "node": "iris"}]}
    assert await carried_out(page, "retry") == ["0000  changed  now READY on iris"]
    sent = orders(acting, "tasks.retry")
    assert [dry_run for dry_run, *_ in sent] == [True, True, False]
    assert sent[-1][1:] == (f"web[uid {os.getuid()}]:lukas", {"tasks": [UID]})


async def test_what_is_parked_is_resolved_as_what_it_may_become_and_not_retried(
    look: Looking, serving: AsyncExitStack
) -> None:
    page, acting = await open_task(look, serving, "PARKED")
    assert await buttons(page) == ["cancel", "resolve"]
    await page.click("#drawer [data-verb=resolve]")
    assert await page.locator("#drawer .act option").all_inner_texts() == [
        "as what", "done", "failed", "cancelled"]
    acting.hub.answers["tasks.resolve"] = {"results": [
        {"uid": UID, "outcome": "changed", "state": "COMPLETED", "node": "iris"}]}
    assert await carried_out(page, "resolve", choose="done") == [
        "0000  changed  now COMPLETED on iris"]
    assert orders(acting, "tasks.resolve")[-1][2] == {"tasks": [UID], "as": "done"}


async def test_a_waiting_task_is_moved_to_a_node_that_is_chosen_and_one_that_runs_is_not(
    look: Looking, serving: AsyncExitStack
) -> None:
    page, acting = await open_task(look, serving, "READY")
    assert await buttons(page) == ["cancel", "move"]
    step: JsonObject = {"uid": UID, "subject": "Summarise", "from": "iris", "to": "loom"}
    acting.hub.answers["tasks.move"] = {"planned": [step], "dry_run": True, "results": [
        {**step, "outcome": "moved", "rule": "", "because": ""}]}
    assert await carried_out(page, "move", choose="loom") == [
        'would move 0000 "Summarise" iris -> loom']
    assert orders(acting, "tasks.move")[-1][2] == {"tasks": [UID], "to": "loom"}
    running, _ = await open_task(look, serving, "RUNNING")
    assert await buttons(running) == ["cancel"]


async def test_the_fleet_is_paused_from_its_drawer_and_resumed_when_the_hub_says_that_it_is(
    look: Looking, serving: AsyncExitStack
) -> None:
    acting = await serving.enter_async_context(Served(actions=True))
    page = await look.at(acting.url)
    await page.click("#fleet")
    await page.locator("#drawer >> text=nothing new starts or moves").wait_for()
    assert "fleet=open" in page.url
    acting.hub.answers["fleet.pause"] = {
        "nodes": [{"node": "iris", "state": "paused"}], "later": ["loom"]}
    assert await carried_out(page, "pause-fleet") == [
        "1 node told", "  iris is paused",
        "  loom could not be told now; the hub tells it once it is back"]
    assert orders(acting, "fleet.pause")[-1] == (False, f"web[uid {os.getuid()}]:lukas", {})
    await page.locator("#drawer .act button", has_text="leave it").click()
    acting.hub.changed(hub={"name": "arc", "running": True, "paused": {
        "by": "web:lukas", "reason": "it is time", "at": "2026-03-10T03:45:00.000Z"}})
    await page.locator("#drawer [data-verb=resume-fleet]").wait_for()
    assert await buttons(page) == ["resume the fleet"]
    await page.keyboard.press("r")
    await page.locator("#drawer .act").wait_for()
    await page.keyboard.press("Escape")
    await page.locator("#drawer-title").press("Escape")
    assert await page.locator("#drawer").is_hidden()
    assert "fleet=" not in page.url


async def test_a_page_that_only_reads_says_the_commands_for_the_fleet(
    look: Looking, served: Served
) -> None:
    page = await look.at(f"{served.url}?fleet=open")
    await page.locator("#drawer summary", has_text="what may be done").click()
    await page.locator("#drawer code", has_text="arc pause --reason").wait_for()
    assert await buttons(page) == []
