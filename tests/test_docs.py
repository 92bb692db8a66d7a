"""Holds the docs to the code: every module on the map, every error and refusal explained."""

from __future__ import annotations

import ast
import re

from tools.document import error_classes, render_errors, render_map
from tools.sources import PACKAGES, ROOT, sources

DOCS = ROOT / "docs"
MAKE_DOCS = "run `make docs`"


def test_every_module_stands_on_the_map_with_its_own_sentence() -> None:
    page = read("map.md")
    assert [line for line in render_map().splitlines() if line not in page] == [], MAKE_DOCS


def test_the_map_names_no_module_that_is_gone() -> None:
    there = {source.path for source in sources(*PACKAGES, "tools", "tests", "bench")}
    modules = set(re.findall(r"`((?:agent_node|arc|sensors)/[\w/]+\.py)`", read("map.md")))
    assert modules - there == set(), MAKE_DOCS


def test_every_error_is_explained_with_its_exit_code() -> None:
    page = read("errors.md")
    assert [line for line in render_errors().splitlines() if line not in page] == [], MAKE_DOCS


def test_every_error_says_more_than_its_name() -> None:
    assert [f"{error.path}: {error.code}" for error in error_classes()
            if len(error.sentence) < len(error.code) + 15] == []


def test_every_refusal_is_explained() -> None:
    page = read("errors.md")
    assert sorted({code for code in refusal_codes() if f"`{code}`" not in page}) == []


def test_a_link_between_pages_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    assert [f"{page.name}: {target}" for page in pages
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
            if not (page.parent / target).exists()] == []


def read(name: str) -> str:
    """A page of docs/, whose absence is a failure and not an empty page."""
    return (DOCS / name).read_text(encoding="utf-8")


def refusal_codes() -> set[str]:
    """The words that the node's code gives to `Refused(...)` and `Because(...)` as literals."""
    calls = [node for source in sources("agent_node") for node in ast.walk(source.tree)
             if isinstance(node, ast.Call)
             and ast.unparse(node.func).split(".")[-1] in {"Refused", "Because"}]
    return {call.args[0].value for call in calls
            if call.args and isinstance(call.args[0], ast.Constant)
            and isinstance(call.args[0].value, str)}
