"""Whatever stands in a field is text on the page: it runs nothing, and it looks like what it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_node.strict import JsonObject, JsonValue
from arc.history_seen import Arrival, KeptSeen, MoveSeen
from arc.operations import Told
from tests.browser.looking import Looking
from tests.browser.served import UID, HubMade, Served, a_row, a_task
from tests.browser.test_page import show_all
from tests.web.past_made import NOW, PastMade, s
from tests.web.payloads import PAYLOADS

pytestmark = pytest.mark.asyncio(loop_scope="session")

# What no markup of ours is made of; a payload that was parsed would have made one of these.
MADE = ("img, iframe, object, embed, video, audio, form, base, meta[http-equiv], math, marquee, "
        "a[href^=javascript]")  # fmt: skip
SCRIPTS = "document.querySelectorAll('script').length"
ALL = " ".join(PAYLOADS)
FIELDS = ("subject", "body", "domain", "failure_reason", "progress", "source", "origin", "key")


def poison_past(past: PastMade) -> None:
    """A payload in every word of the past, in turn, until each was everywhere."""
    turns = [PAYLOADS[n % len(PAYLOADS)] for n in range(2000)]
    kept = {**dict.fromkeys(PAYLOADS, 3), "still_ready": 1}
    ends = ("could_not_look", "skipped", "failed") * 2000
    past.all_runs = [
        replace(one, summary=word, because=word, skipped=word, kept=kept, outcome=end)
        for one, word, end in zip(past.all_runs, turns, ends, strict=False)
    ]  # fmt: skip
    past.kept = {one.id: [some for word in PAYLOADS for some in (
        KeptSeen(word, "still_ready", 1, word, UID), KeptSeen(word, "still_ready", 1, word))]
        for one in past.all_runs}  # fmt: skip
    past.all_stints = [replace(one, domain=word, error_kind=word, agent=word)
                       for one, word in zip(past.all_stints, turns, strict=False)]  # fmt: skip
    past.all_samples = [replace(one, state="unknown", because=turns[n]) if n % 3 == 0 else one
                        for n, one in enumerate(past.all_samples)]  # fmt: skip
    past.all_stranded = [
        replace(one, rule=word, beside=word)
        for one, word in zip(past.all_stranded * 20, turns, strict=False)
    ]  # fmt: skip
    past.all_moves = [MoveSeen(NOW - s(9 + n), UID, word, "iris", "moved", word, word, word, 5, 1,
                               UID) for n, word in enumerate(PAYLOADS)]  # fmt: skip
    past.all_arrivals = [Arrival(NOW - s(99), UID, ALL, ALL, skills=(ALL,))]


def poison_hub(hub: HubMade) -> None:
    """And in every word of what the hub says now."""
    hub.answers["tasks.list"] = {
        "tasks": [a_row(1, subject=word, node=word, domain=word, because=word)
                  for word in PAYLOADS], "more": False, "unread": [ALL], "next": None}  # fmt: skip
    hub.changed(
        needs_you=[{"node": word, "text": ALL, "try": word} for word in PAYLOADS], fleet=ALL,
        hub={"name": ALL, "paused": {"by": ALL, "reason": ALL, "at": ALL}},
        sensors=[{"sensor": word, "state": word, "summary": word} for word in PAYLOADS],
    )  # fmt: skip


def poison_task(hub: HubMade, word: str) -> None:
    """And in every word of what is said of one task."""
    words: list[JsonValue] = [word]
    fields: JsonObject = dict.fromkeys(FIELDS, word)
    attempts: list[JsonValue] = [
        {"n": 1, "on": word, "agent": word, "outcome": word, "error_kind": word, "message": word,
         "cost_usd": word, "duration_s": 1.0}]  # fmt: skip
    kept: list[JsonValue] = [{"run": 1, "node": word, "rule": word, "because": word}]
    shown = a_task(**fields, skills=words, needs=words, tags=words)
    hub.answers["tasks.show"] = {**shown, "attempts": attempts, "kept": kept}
    hub.answers["why.task"] = Told({
        "verdict": word, "result": word, "by_hand": words, "life": {"says": word},
        "checks": [{"rule": word, "met": met, "said": word} for met in (True, False)],
        "steps": [{"rule": word, "alone": 1, "left": 0, "dropped": [
            {"node": word, "because": word, "changeable": True}]}],
        "ways": [{"to": word, "changes": [{"says": word, "command": word}]}],
        "could_not_look": {"node": word, "rule": word, "because": word},
    })  # fmt: skip
    hub.answers["nodes.logs"] = {"uid": UID, "node": word, "attempt": 1, "text": word, "next": 1,
                                 "size": 1, "ended": True}  # fmt: skip


async def test_a_hundred_scripts_in_every_field_of_the_panels_are_shown_and_never_run(
    look: Looking, served: Served
) -> None:
    """With `insertAdjacentHTML` in `dom.js` in the place of text nodes this fails at once."""
    poison_past(served.past)
    poison_hub(served.hub)
    page = await look.at(f"{served.url}?step=still_ready")
    scripts = await page.evaluate(SCRIPTS)
    await show_all(page)
    await page.locator("#funnel h3:has-text('kept by')").wait_for()
    for summary in await page.locator("main details > summary").all():
        await summary.click()
    for mark in await page.locator("svg .arc-reach, svg .gap, svg .run-blind").all():
        await mark.dispatch_event("pointerenter")

    assert await page.evaluate("window.owned === undefined")
    assert await page.locator(MADE).count() == 0
    assert await page.evaluate(SCRIPTS) == scripts + 1  # uPlot, and nothing else
    shown = await page.locator("#tasks").inner_text()
    for word in PAYLOADS:
        assert " ".join(word.split()) in " ".join(shown.replace("\\u{9}", "\t").split()), word


async def test_a_hundred_scripts_in_every_field_of_a_task_are_shown_and_never_run(
    look: Looking, served: Served
) -> None:
    page = await look.at(served.url)
    scripts = await page.evaluate(SCRIPTS)
    await show_all(page)
    for number, word in enumerate(PAYLOADS):
        poison_task(served.hub, f"{word} {number}")
        await page.click(f"#tasks tbody tr:nth-child({number % 12 + 1}) button", force=True)
        subject = page.locator("#drawer .subject", has_text=f" {number}")
        await subject.wait_for()
        await page.locator("#drawer >> text=end of its output").click()
        await page.locator("#drawer pre[aria-label=stdout]").wait_for()

        assert await page.evaluate("window.owned === undefined"), word
        assert await page.locator(MADE).count() == 0, word
        assert await page.evaluate(SCRIPTS) == scripts + 1, word
        await page.keyboard.press("Escape")


async def test_what_would_turn_the_readers_eye_is_made_visible(
    look: Looking, served: Served
) -> None:
    """Without `visible` in `dom.js` the subject reads backwards."""
    served.hub.answers["tasks.list"] = {
        "tasks": [a_row(1, subject="pay \u202eevil\u202c \x07 \ufeffme")], "more": False,
        "unread": [], "next": None}  # fmt: skip
    page = await look.at(served.url)
    await show_all(page)
    text = await page.locator("#tasks tbody tr").inner_text()

    assert "pay \\u{202e}evil\\u{202c} \\u{7} \\u{feff}me" in text
