"""Renders what became of an upgrade, node by node, and what to do about those that have it not."""

from __future__ import annotations

from agent_node.strict import JsonObject
from agent_node.text import counted

from .columns import objects, rows, said
from .look import Look

_MEANS = {
    "already": "runs it already",
    "would": "would get it",
    "upgraded": "runs it",
    "went_back": "went back to the old program, which runs",
    "failed": "is not known to run it",
    "refused": "refused it; nothing was changed there",
    "stuck": "answers with neither program: look there",
    "unseen": "could not be asked; nothing was changed there",
    "by_hand": "is this machine itself",
    "not_begun": "was not begun, because another one failed",
    "under_way": "is still at it",
}


def render_upgrade(data: JsonObject, look: Look) -> str:
    """A line a node, then the count."""
    nodes = objects(data, "nodes")
    lines = [
        (said(one.get("node")), said(one.get("was")),
         means(str(one.get("outcome"))),
         said(one.get("because"), ""))
        for one in nodes
    ]  # fmt: skip
    have = sum(one.get("outcome") in ("upgraded", "already") for one in nodes)
    mark = " (dry run: nothing was changed)" if data.get("dry_run") else ""
    head = (f"{said(data.get('version'))} {said(data.get('program'))[:12]}: {have} of "
            f"{counted(len(nodes), 'node')} have it{mark}")  # fmt: skip
    return f"{head}\n{rows(('NODE', 'WAS', 'NOW', 'BECAUSE'), lines, look)}"


def means(outcome: str) -> str:
    """The outcome in words."""
    return _MEANS.get(outcome, said(outcome))


def render_statement_file(data: JsonObject, look: Look) -> str:
    """What was written, and how it is signed."""
    path = said(data.get("statement"))
    mark = "would be written (dry run)" if data.get("dry_run") else "written"
    return (f"{path}: {mark}; it is about {said(data.get('version'))} "
            f"{said(data.get('program'))[:12]}\nsign it:  {said(data.get('sign'))}\n"
            f"then:     arc nodes upgrade NAME… --statement {path} --signature {path}.sig")
