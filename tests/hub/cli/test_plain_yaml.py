"""The fast reader says of a text what the whole one says, places included, or nothing at all."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arc.marked_yaml import NotYaml, YamlLimits, read_marked
from arc.plain_yaml import read_plain

LIMITS = YamlLimits("graphs are", 40, 100, 10_000)
USUAL = """\
# a release
title: release 4.2   # of the product
key: "a key: with a colon"
budget_usd: 12.50
tasks:
  build:
    subject: build it (twice), and more
    skills: [rust, 'big one', "x"]
    priority: 3
    extra: {a: 1, b: [no, 2], c: {}}

  test:
    subject: -5 is http://no.colon
    after: [build, {task: build, on_failure: skip}]
    body: |
      line one: # no comment

        indented
      last

    validate: {}
  ship:
    after:
    - build
    - task: test
      on_failure: run
      extra:
      - 1
      - ~
    context:
      - test.outcome
    pinned: yes
    heat: 1e3
    body: |-
      no line at the end
"""
WORDS = st.sampled_from([
    "a", "b c", "yes", "no", "true", "null", "~", "12", "0x1f", "0o17", "012", "1_000", "-3",
    "4.50", "1e3", ".5", ".inf", "2026-03-10", "12:30", "a:b", "a #b", "a#b", "'q'", '"q: r"',
    "[]", "{}", "[a, b]", "[a,b]", "[a, {b: c}]", "{a: b, c: [d]}", "[a b, 'c']", "[1, ]", "<<",
    "=", "|", "|-", ">", "&a b", "*a", "!t x", "- a", "a:", "", "x  ", "(a)", "$a", "@a", "a, b",
    "a [b]", "[a]: b", "\N{LATIN SMALL LETTER E WITH ACUTE}", "[- a]", "[-1]", "{a: }", "{a: b:c}",
    "[a:b]", '"\\n"',
])
LINES = st.builds(
    lambda deep, mark, key, gap, word, note: f"{'  ' * deep}{mark}{key}{gap}{word}{note}",
    st.integers(0, 4), st.sampled_from(["", "", "", "- ", "-  "]),
    st.sampled_from(["a:", "b:", "tasks:", "k-1:", "", "a :", "yes:"]),
    st.sampled_from([" ", "", "  "]), WORDS, st.sampled_from(["", "", "", " # n", "# n", " "]),
)  # fmt: skip
TEXTS = st.lists(st.one_of(LINES, st.just(""), st.just("  # note")), max_size=12).map(
    lambda lines: "\n".join(lines) + "\n")  # fmt: skip
EDITS = st.lists(st.tuples(st.integers(0, len(USUAL)), st.integers(0, 2),
                           st.text(" \n:#-[]{},'\"|ab1~", max_size=2)), max_size=4)  # fmt: skip


def says_the_same(text: str) -> bool:
    """Whether the fast reader read it; what it read is what the whole one reads."""
    fast = read_plain(text, LIMITS)
    if fast is None:
        return False
    whole = read_marked(text, LIMITS)
    assert whole.troubles == []
    assert fast.data == whole.data
    assert repr(fast.data) == repr(whole.data)
    assert fast.keys == whole.keys
    assert fast.values == whole.values
    return True


def test_a_usual_text_is_read_fast() -> None:
    assert says_the_same(USUAL)


def edited(edits: list[tuple[int, int, str]]) -> str:
    text = USUAL
    for at, gone, new in edits:
        text = text[:at] + new + text[at + gone :]
    return text


@settings(max_examples=400, deadline=None)
@given(EDITS)
def test_a_usual_text_with_something_changed_means_the_same_to_both(
    edits: list[tuple[int, int, str]],
) -> None:
    says_the_same(edited(edits))


@settings(max_examples=400, deadline=None)
@given(TEXTS)
@example("a: |\n  x\n # n\nb: 1\n")
@example("a: |\n  x\n\n\n  y\n\nb: 1\n")
def test_any_text_means_the_same_to_both(text: str) -> None:
    says_the_same(text)


@pytest.mark.parametrize(
    "text",
    ["a: 1\na: 2\n", "a: {b: 1, b: 2}\n", "a: *b\n", "a: &b 1\n", "a: !x 1\n", "a:\n", "a: b: c\n",
     "a: 1\n  b: 2\n", "a: [1, 2\n", "a: 'x' y\n", "a: 1", "a:\t1\n", "- a\n", "---\na: 1\n",
     "a: x\n  y\n", "a: >\n  x\n", "? a\n: b\n", "a: \x85b\n", "a: 1\r\n", "", "[" * 5000 + "\n",
     "a: " + "[" * 5000 + "\n", "a: <<\n"],
)  # fmt: skip
def test_what_is_wrong_or_unusual_is_left_to_the_whole_reader(text: str) -> None:
    assert read_plain(text, LIMITS) is None


def test_limits_are_those_of_the_whole_reader() -> None:
    """Fails where the fast one counts less: what the whole one refuses would be taken."""
    many = "".join(f"a{n}: [1, 2]\n" for n in range(30))
    deep = "".join(f"{' ' * n}a:\n" for n in range(9)) + " " * 9 + "a: 1\n"
    for text in (many, deep):
        for limit in range(1, 140):
            limits = YamlLimits("graphs are", limit if text is deep else 40, 20, limit)
            if read_plain(text, limits) is not None:
                try:
                    read_marked(text, limits)
                except NotYaml as error:
                    pytest.fail(f"{limit}: {error}")
