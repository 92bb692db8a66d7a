"""Says what this machine lacks to look at the page in a real browser."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """The browser's own program; None: there is none here."""
    return next((found for found in map(shutil.which, NAMES) if found), None)


def missing_for_pages() -> list[str]:
    """What has to be installed first; empty: pages can be looked at."""
    missing = [] if find_chromium() else ["no chromium here (apt-get install chromium)"]
    if find_spec("playwright") is None:
        missing.append("no playwright here (requirements/dev.txt)")
    return missing
