"""Whatever Python would not compile is refused by reading it alone, and nothing else is."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_node.errors import BadInput
from agent_node.patterns import fault_of_pattern
from agent_node.schemas import fault_of
from agent_node.validation import check_validate

PARTS = ("a", "bc", "[ab]", ".", "x*", "y+?", "z{2}", "w{1,3}", "^", "$", "|", "(", ")", "(?:",
         "(?=", "(?!", "(?<=", "(?<!", "(?P<n>", "(?P=n)", "\\1", "[", "]", "(?(1)", "(?>",
         "++", "\\b")


@pytest.mark.parametrize("pattern", [
    "(?<=a+)b", "(?<!a|bc)d", "x(?:y(?<=a*))", "(?:(?<!a{1,2}))+", "(?=(?<=a?)b)", "a|(?<=b+)",
    "(a)?(?(1)(?<=x*)|y)", "(?>(?<=x*))",
])  # fmt: skip
def test_what_looks_behind_by_no_fixed_width_is_no_pattern(pattern: str) -> None:
    """Fails when a pattern is parsed alone: its program runs, is paid for, and judged by none."""
    with pytest.raises(re.error, match="look-behind"):
        re.compile(pattern)
    with pytest.raises(BadInput, match="is no regular expression: look-behind") as refused:
        check_validate({"kind": "regex", "pattern": pattern})
    assert refused.value.field == "validate.pattern"
    fault = fault_of({"items": {"pattern": pattern}})
    assert fault is not None
    assert fault[0] == ".items.pattern"


@pytest.mark.parametrize("pattern", ["(?<=ab)c", "(?<!a|b)c", "(?=a+)b", "(?<=a{2})(?!b*)", "[[a]"])
def test_a_pattern_is_one_and_nothing_is_printed(pattern: str) -> None:
    """Fails when Python's own warnings come through: they are errors here, and talk elsewhere."""
    check_validate({"kind": "regex", "pattern": pattern})


@given(st.lists(st.sampled_from(PARTS), max_size=8).map("".join))
def test_reading_finds_what_compiling_would(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            re.compile(pattern)
            compiles = True
        except re.error:
            compiles = False
    assert (fault_of_pattern(pattern) is None) is compiles
