"""Holds the table of the hub's log to the code that writes it, and docs/events.md to the table."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from arc.log_lines import LINES, line_named
from arc.operations.nodes_noted import EVENTS as NOTED
from tools.document import render_lines
from tools.sources import ROOT, Source, sources

# Who writes a line whose name is made, or comes from elsewhere; and what may stand there.
MADE = {
    "arc/circling.py": {"tasks_wait_in_a_circle"},
    "arc/looking.py": {"answer_came_late", "answer_never_came"},
    "arc/lost_files.py": {"awaited_file_is_nowhere"},
    "arc/unfound.py": {"awaited_task_is_nowhere"},
    "arc/operations/dead_change.py": {
        "dead_retried", "dead_cancelled", "dead_reviewed", "dead_edited"},
    "arc/operations/nodes_noted.py": set(NOTED),
    "arc/operations/nodes_steer.py": {"node_paused", "node_resumed", "node_draining"},
    "arc/operations/tasks_change.py": {
        f"{one}_{what}" for one in ("task", "tasks")
        for what in ("set", "cancelled", "retried", "resolved")},
    "arc/operations/tasks_move.py": {"task_moved", "task_kept", "task_in_doubt"},
    "sensors/fleet_health.py": {"alert_began", "alert_ended"},
}  # fmt: skip
# Runs and moves are no lines of their own: `arc log` tells them as such.
TOLD = {"run_done", "run_skipped", "run_could_not_look", "run_failed", "task_settled"}


def test_the_table_has_exactly_the_lines_that_the_code_writes() -> None:
    """Seen to fail with a row taken out of the table, and with a row of no line put in."""
    written = {str(one.value) for source in sources("arc", "sensors")
               for one in names_in(source) if isinstance(one, ast.Constant)}  # fmt: skip
    assert written.union(TOLD, *MADE.values()) == set(LINES)


def test_a_line_is_named_where_it_is_written_or_in_the_table_above() -> None:
    """Else a new one could hide from the page, and from `arc log --event`."""
    assert {source.path for source in sources("arc", "sensors") for one in names_in(source)
            if not isinstance(one, ast.Constant)} == set(MADE)  # fmt: skip


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
    assert render_lines() in page, "make docs"
    assert [*LINES] == sorted(LINES)


def test_a_line_is_known_however_it_was_typed() -> None:
    assert line_named("Task.Cancelled") == line_named("task-cancelled") == "task_cancelled"
    assert line_named("their.own") == "their.own"


def names_in(source: Source) -> Iterator[ast.expr]:
    """The first word of every `….runs.log(…)`."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of = node.func.value
        if node.func.attr == "log" and isinstance(of, ast.Attribute) and of.attr == "runs":
            yield node.args[0]
