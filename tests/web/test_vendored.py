"""What others wrote lies here whole, with its licence, exactly as they published it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import arc.web

STATIC = Path(arc.web.__file__).parent / "static"
VENDOR = STATIC / "vendor"


def test_each_vendored_file_is_the_one_that_was_taken_and_none_is_unlisted() -> None:
    lines = [line.split() for line in (VENDOR / "SHA256SUMS").read_text().splitlines()]
    listed = {name: digest for digest, name in lines}
    there = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
             for path in VENDOR.iterdir() if path.name != "SHA256SUMS"}  # fmt: skip

    assert there == listed


def test_each_vendored_program_has_its_licence_beside_it() -> None:
    programs = {path.name.partition("-")[0] for path in VENDOR.glob("*.js")}

    for name in programs:
        assert "Permission is hereby granted" in (VENDOR / f"{name}-LICENSE.txt").read_text()


def test_no_own_file_of_the_page_parses_markup_or_makes_code_out_of_text() -> None:
    """A subject that holds a script is text wherever it is shown; this is why."""
    words = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
             "new Function", "DOMParser", "createContextualFragment", "srcdoc", "javascript:")
    for path in (*STATIC.rglob("*.js"), *STATIC.rglob("*.css"), *STATIC.rglob("*.svg")):
        if path.parent != VENDOR:
            text = path.read_text()
            assert [word for word in words if word in text] == [], path


def test_nothing_of_the_page_is_fetched_from_elsewhere() -> None:
    allowed = "http://www.w3.org/2000/svg"
    for path in (*STATIC.rglob("*"), *(STATIC.parent / "templates").iterdir()):
        if path.is_file() and path.parent != VENDOR:
            text = path.read_text().replace(allowed, "")
            assert "http:" not in text, path
            assert "https:" not in text, path


def test_the_files_of_the_page_stay_small_and_each_says_what_it_is_for() -> None:
    for path in STATIC.rglob("*.js"):
        if path.parent != VENDOR:
            lines = path.read_text().splitlines()
            assert lines[0].startswith("// "), path
            assert len(lines) <= 300, path
