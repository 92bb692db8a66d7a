"""Holds the pinned files to what makes them install the same on any machine."""

from __future__ import annotations

import re

import pytest

from tools.sources import ROOT

PINNED = ("dev.txt", "peers.txt", "run.txt", "web.txt")


@pytest.mark.parametrize("name", PINNED)
def test_a_pinned_file_names_no_index_and_no_folder(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text()
    assert re.findall(r"https?:|file://|--(?:extra-)?index-url|--find-links|\s/\S+", text) == []


@pytest.mark.parametrize("name", PINNED)
def test_every_pin_is_exact_and_hashed(name: str) -> None:
    text = re.sub(r"\s*#.*", "", (ROOT / "requirements" / name).read_text())
    pins = [pin for pin in text.replace("\\\n", " ").splitlines() if pin.strip()]
    assert [pin for pin in pins
            if not re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; .*?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*",
                                pin)] == []


def test_every_tool_that_is_asked_for_is_pinned() -> None:
    asked = re.findall(r"^[a-z-]+$", (ROOT / "requirements" / "dev.in").read_text(), re.MULTILINE)
    pinned = re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements" / "dev.txt").read_text(),
                        re.MULTILINE)
    assert set(asked) - set(pinned) == set()
