"""Holds docs/commands.md to the commands: each with every option, and nothing that is gone."""

from __future__ import annotations

import functools
import re

import pytest
from typer._click import Command
from typer.core import TyperGroup, TyperOption

from arc.cli.app import command
from tests.node.daemon.living import ROOT

PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
EVERYWHERE = {"--json", "--fleet"}


@functools.cache
def there() -> dict[str, set[str]]:
    """Every command by its whole name, with the names of its options."""
    found: dict[str, set[str]] = {}

    def walk(one: Command, name: str) -> None:
        if isinstance(one, TyperGroup):
            for word, below in one.commands.items():
                walk(below, f"{name} {word}")
        else:
            found[name] = {option for param in one.params if isinstance(param, TyperOption)
                           for option in (*param.opts, *param.secondary_opts)}  # fmt: skip

    walk(command(), "arc")
    return found


@functools.cache
def told() -> dict[str, str]:
    """Every command's section of the page."""
    parts = re.split(r"^### `(arc [^`]+)`$", PAGE, flags=re.MULTILINE)
    return {" ".join(re.findall(r"^arc|(?<= )[a-z]+(?= |$)", name)): text.partition("\n## ")[0]
            for name, text in zip(parts[1::2], parts[2::2], strict=True)}  # fmt: skip


def test_every_command_has_a_section_and_every_section_a_command() -> None:
    assert sorted(told()) == sorted(there())


@pytest.mark.parametrize("name", sorted(there()))
def test_a_section_lists_the_options_of_its_command_and_no_others(name: str) -> None:
    listed = {option for line in told()[name].splitlines() if line.startswith("- `-")
              for option in re.findall(r"`(-[^`]+)`", line.partition(":")[0])}  # fmt: skip
    assert listed == there()[name]


@pytest.mark.parametrize("name", sorted(there()))
def test_a_section_has_an_example_that_the_command_would_take(name: str) -> None:
    examples = re.findall(r"```\n(.*?)```", told()[name], re.DOTALL)
    assert len(examples) == 1
    for line in examples[0].strip().splitlines():
        words = line.partition(" > ")[0].split()
        top = name.split()[:2] if line.split()[:2] == name.split()[:2] else name.split()
        assert words[: len(top)] == top, line
        used = {word for word in words if re.fullmatch(r"--[a-z-]+", word)}
        assert used - EVERYWHERE <= there()[name], line
