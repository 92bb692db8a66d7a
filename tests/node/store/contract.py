"""Gives every part of the store contract its node, and says what a backend fills in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_node import queries as q
from agent_node.store import Store
from tests.builders import NodeAtHand

MakeNode = Callable[..., NodeAtHand]


def mute_changes(node: NodeAtHand) -> list[str]:
    """Events of a state that do not say why; none where the test has closed its store."""
    if node.store is None:
        return []
    return [f"{one['event']} {one['state']}" for one in node.ask(q.Events(0, 1000))
            if one.get("state") and not one.get("because")]  # fmt: skip


class Contract:
    """What a backend's test class fills in, and the nodes that tests are given."""

    def open(self, place: Path, **settings: Any) -> Store:
        """Open the store whose files lie in this folder, making them where there are none."""
        raise NotImplementedError

    def dump(self, place: Path) -> dict[str, list[tuple[object, ...]]]:
        """Every table with every row, read as somebody outside reads it."""
        raise NotImplementedError

    def damage_spec(self, place: Path, uid: str) -> None:
        """Flip one bit in what is kept of this task's immutable fields; the store is closed."""
        raise NotImplementedError

    def force_state(self, place: Path, uid: str, state: str) -> None:
        """Write this state into the row past all rules; the store is closed."""
        raise NotImplementedError

    def lost(self, place: Path) -> list[str]:
        """Tasks that the store would never find again by itself; the store is closed."""
        return []

    @pytest.fixture
    def make_node(self, tmp_path: Path) -> Iterator[MakeNode]:
        """Nodes by name, each in a folder of its own, closed at the end of the test."""
        made: list[NodeAtHand] = []

        def make(name: str = "iris", **settings: Any) -> NodeAtHand:
            made.append(NodeAtHand(self, tmp_path / name, name, **settings))
            return made[-1]

        yield make
        mute = [one for node in made for one in mute_changes(node)]
        for node in made:
            node.close()
        lost = [one for node in made for one in self.lost(node.place)]
        assert lost == [], "what completed and is in no index is told by its event"
        assert mute == [], "each change of a state says why, also where nobody gave a reason"

    @pytest.fixture
    def node(self, make_node: MakeNode) -> NodeAtHand:
        """A node named iris: one agent of the same name with eight slots, dispatcher running."""
        return make_node()
