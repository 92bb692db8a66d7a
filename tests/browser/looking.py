"""Opens pages in headless Chromium, and hears everything that goes wrong in them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Literal
from urllib.parse import urlsplit

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Response,
    async_playwright,
)

from tools.browsers import find_chromium

chromium = Browser
Scheme = Literal["dark", "light"]
Motion = Literal["no-preference", "reduce"]
WAIT_MS = 20_000
FLAGS = ("--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
         " --disable-component-update --disable-sync").split()  # fmt: skip


@asynccontextmanager
async def open_browser() -> AsyncIterator[Browser]:
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield browser
        await browser.close()


@dataclass
class Looking:
    """What one test opens. `troubles` grows with each console error, each failed or refused
    request, and each request off loopback; `forgiven` are beginnings of what a test brings about.
    """

    browser: Browser
    heard: list[str] = field(default_factory=list)
    forgiven: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    @property
    def troubles(self) -> list[str]:
        return [one for one in self.heard if not one.startswith(self.forgiven or ("\0",))]

    async def at(self, url: str, *, width: int = 1280, height: int = 900, scheme: Scheme = "dark",
                 motion: Motion = "no-preference", ready: bool = True) -> Page:  # fmt: skip
        context = await self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme,
            reduced_motion=motion, permissions=["clipboard-read", "clipboard-write"],
            timezone_id="America/Lima", service_workers="block",
        )  # fmt: skip
        self.contexts.append(context)
        page = await context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.heard.append(f"script: {error}"))
        page.on("dialog", lambda dialog: self.heard.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self._went(request.url))
        page.on("response", self._answered)
        await page.goto(url)
        if ready:
            await page.wait_for_selector("#live[data-state=live]")
            await page.wait_for_selector("#lanes[data-drawn]")
        return page

    def _said(self, said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            self.heard.append(f"console: {said.text}")

    def _answered(self, answer: Response) -> None:
        if answer.status >= HTTPStatus.BAD_REQUEST:
            self.heard.append(f"answer {answer.status}: {answer.url}")

    def _went(self, url: str) -> None:
        self.asked.append(url)
        if urlsplit(url).hostname not in ("127.0.0.1", "localhost"):
            self.heard.append(f"went off loopback: {url}")

    async def close(self) -> None:
        for context in self.contexts:
            await context.close()
