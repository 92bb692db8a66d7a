"""Gives a test Chromium and a page to look at, or says exactly what this machine lacks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.browser.looking import Looking, chromium, open_browser
from tests.browser.served import Served
from tools.browsers import missing_for_pages

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[chromium | None]:
    """One for the whole run; None where there can be none."""
    if missing_for_pages():
        yield None
        return
    async with open_browser() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def look(
    browser: chromium | None, serving: AsyncExitStack, served: Served
) -> AsyncIterator[Looking]:
    """Opens pages; at the end of the test each has to have been quiet, and stayed on loopback.

    `serving` and `served` are asked for so that they end later than the pages that look at them.
    """
    if browser is None:
        pytest.skip(f"needs chromium: {'; '.join(missing_for_pages())}")
    looking = Looking(browser)
    yield looking
    await looking.close()
    assert looking.troubles == []


@pytest_asyncio.fixture(loop_scope="session")
async def serving() -> AsyncIterator[AsyncExitStack]:
    """Where a test enters each `Served` of its own: they end when nobody looks any more.

    One that a test ends by itself is still asked by its open page, which is then refused.
    """
    async with AsyncExitStack() as kept:
        yield kept


@pytest_asyncio.fixture(loop_scope="session")
async def served(serving: AsyncExitStack) -> Served:
    """The page of a made fleet, on a port of its own."""
    return await serving.enter_async_context(Served())
