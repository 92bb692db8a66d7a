"""Gives the tests of the daemon real nodes, and proves that nothing of them is left running."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.node.daemon.living import Bell, Node, end_all, until

MakeNode = Callable[..., Node]
MakeBell = Callable[[str], Bell]


def all_gone(nodes: list[Node]) -> bool:
    """Whether nobody was left; who was just being started had no environment to be found by."""
    left = [pid for node in nodes for pid in node.processes()]
    for node in nodes:
        end_all(node.processes)
    return not left


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[MakeNode]:
    """Builds nodes; afterwards no process carries a home of theirs."""
    nodes: list[Node] = []

    def make(name: str = "iris", *, home: Path | None = None, **settings: object) -> Node:
        agents = str(settings.pop("agents", ""))
        node = Node(home or tmp_path / name, name, agents=agents, **settings)
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.clean_up()
    until(lambda: all_gone(nodes), "the end of all who carry a home of theirs")


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    """A node named iris with one agent of two slots, not yet started."""
    return make_node()


@pytest.fixture
def make_bell(tmp_path: Path) -> Iterator[MakeBell]:
    """Builds FIFOs for programs to say something, or to wait at."""
    bells: list[Bell] = []

    def make(name: str) -> Bell:
        bells.append(Bell(tmp_path / name))
        return bells[-1]

    yield make
    for bell in bells:
        bell.close()


@pytest.fixture
def bell(make_bell: MakeBell) -> Bell:
    """Where programs say that they started: `echo … > {bell.path}`."""
    return make_bell("bell")


@pytest.fixture
def gate(make_bell: MakeBell) -> Bell:
    """Where programs wait until the test lets them go on: `read x < {gate.path}`."""
    return make_bell("gate")
