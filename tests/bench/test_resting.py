"""Which processes of a node count as its idle ones."""

from __future__ import annotations

import pytest

from agent_node.zygote import SPARES
from bench import resting


def test_a_spare_that_rehearses_is_not_yet_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a child for a moment, which stood for the spare that was still to come."""
    spares = list(range(3, 3 + SPARES))
    looks = iter([[[1], [2]], [[1], [2], [3], [9]], [[1], [2], spares, [9]], [[1], [2], spares]])
    monkeypatch.setattr(resting, "generations_of", lambda root: next(looks))

    assert resting.whole_tree(1) == [1, 2, *spares]
    assert list(looks) == []
