"""Which beginnings and words no subject has: many subjects at once are heard as each alone is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_node.guessing import ears_for
from arc.decisions import sounding
from arc.decisions.sounding import ENOUGH, KINDS, sounds_of

SIGNS = ["Ops:", "ops", "paper", "read", "a", "ß", "İ"]
words = st.sampled_from(["Ops:", "ops", "PAPER", "papers", "read", "a-b", "ẞ", "ss", "i̇", "x"])


@given(st.lists(st.lists(words, min_size=1, max_size=3).map(" ".join), max_size=6))
def test_many_subjects_at_once_are_heard_as_each_alone_is(some: list[str]) -> None:
    """Fails where a piece begins with no line of its own, or is looked through as it was typed."""
    subjects = [*some, *["nothing of it"] * ENOUGH]
    with pytest.MonkeyPatch.context() as small:
        small.setattr(sounding, "AT_ONCE", 4)
        missing = sounds_of(dict.fromkeys(KINDS, SIGNS), subjects).missing
    for kind in KINDS:
        alone = [sign for sign in SIGNS
                 if not any(map(ears_for({"it": {kind: [sign]}}).guess, subjects))]  # fmt: skip
        assert list(missing[kind]) == alone


def test_of_few_subjects_nothing_is_concluded() -> None:
    signs = {"words": ["gone"]}
    assert sounds_of(signs, ["x"] * (ENOUGH - 1)).missing == {}
    assert sounds_of(signs, ["x"] * ENOUGH).missing["words"] == ["gone"]
