"""Claims about the pages that explain the commands and node.toml: nothing is left out or wrong."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

from agent_node.cli.catalogue import COMMANDS
from agent_node.cli.running import _parser, _runnable
from agent_node.config import AgentSettings, NodeSettings, parse_settings

DOCS = Path(__file__).parents[3] / "docs"
COMMANDS_PAGE = (DOCS / "node-commands.md").read_text(encoding="utf-8")
TOML_PAGE = (DOCS / "node-toml.md").read_text(encoding="utf-8")


def examples() -> list[list[str]]:
    """Every `agent-node …` line of the page's code blocks, as words."""
    blocks = re.findall(r"```\n(.*?)```", COMMANDS_PAGE, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line.partition("agent-node ")[2].partition(" >")[0]) for line in lines]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_explained_with_an_example(name: str) -> None:
    assert f"**`{name}`**" in COMMANDS_PAGE
    assert name in {words[0] for words in examples()}


@pytest.mark.parametrize("words", examples(), ids=" ".join)
def test_every_example_is_a_command_that_is_understood(words: list[str]) -> None:
    _parser(words[0], _runnable(words[0])).parse_args(words[1:])


def test_every_key_of_node_toml_is_explained() -> None:
    node, _, agent = TOML_PAGE.partition("## `[[agent]]`")
    for page, settings in ((node, NodeSettings), (agent, AgentSettings)):
        for setting in fields(settings):
            name = "agent" if setting.name == "agents" else setting.name
            assert name == "template" or f"| `{name}` |" in page


def test_the_example_of_node_toml_is_one() -> None:
    example = TOML_PAGE.partition("```toml\n")[2].partition("```")[0]
    assert parse_settings(example).agents[0].max_s == 3600
