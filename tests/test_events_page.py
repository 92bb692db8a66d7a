"""Holds docs/events.md to the code: it lists every durable event of a node, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from tools.sources import ROOT, Source, sources

STORE = "agent_node/store"
# Who writes an event whose name is made, or comes from who calls it; and what may stand there.
MADE = {
    "agent_node/store/ends.py": {"dag_completed", "dag_failed"},  # f"dag_{state}"
    "agent_node/store/ending.py": set[str](),  # `Ending.change`: named beside the new state
    "agent_node/store/words.py": set[str](),  # `_end`: named beside the new state
}
_is_event = re.compile(r"[a-z]+(_[a-z]+)+").fullmatch


def test_the_page_lists_exactly_the_events_of_the_code() -> None:
    """Seen to fail with a row taken out of the page, and with a row of no event put in."""
    listed = re.findall(r"^\| `(\w+)` \|", of_nodes(), re.MULTILINE)
    assert sorted(listed) == sorted(written())


def test_a_dotted_name_is_the_events_own_with_a_dot() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \|", of_nodes(), re.MULTILINE)
    assert {name: dotted for name, dotted in rows if dotted != dotted_name(name)} == {}
    assert len(rows) > 30


def test_an_event_is_named_where_it_is_written_or_beside_its_state() -> None:
    """Else a new one could hide from the page."""
    assert {one.path for one in sources(STORE) for call in events_of(one)
            if not isinstance(call.args[0], ast.Constant)} == set(MADE)  # fmt: skip


def of_nodes() -> str:
    """The page down to where the hub has its own say."""
    page = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
    return page.partition("\n## The hub's log\n")[0]


def dotted_name(event: str) -> str:
    """As the page writes it: `task.ready` for `task_ready`; events of a node have none."""
    dotted = event.replace("_", ".", 1)
    return f"`{dotted}`" if event.startswith(("task_", "dag_")) else "\N{EN DASH}"


def written() -> set[str]:
    """The names of all events that a store writes."""
    found = {name for names in MADE.values() for name in names}
    for source in sources(STORE):
        found |= {str(call.args[0].value) for call in events_of(source)
                  if isinstance(call.args[0], ast.Constant)}  # fmt: skip
        found |= set(beside_a_state(source))
        found |= set(re.findall(r"INSERT INTO event [^']*'(\w+)'", source.text))
    return found


def events_of(source: Source) -> Iterator[ast.Call]:
    """Every `tx.event(…)`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
            node.func.attr == "event"
        ):  # fmt: skip
            yield node


def beside_a_state(source: Source) -> Iterator[str]:
    """`change(State.FAILED, "task_failed", …)`, and `(State.FAILED, "task_failed")` in a table."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            parts = node.args
        elif isinstance(node, ast.Tuple):
            parts = node.elts
        else:
            continue
        for state, name in pairwise(parts):
            if _is_state(state) and isinstance(name, ast.Constant) and _is_event(str(name.value)):
                yield str(name.value)


def _is_state(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            and node.value.id == "State")  # fmt: skip
