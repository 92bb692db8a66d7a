"""Notices that a node obeys another hub than this one, by what it says anyway."""

from __future__ import annotations

from collections.abc import Mapping

from agent_node.reports import StatusReport

from .decisions.view import NodeSeen
from .links import Link, Met


def displaced_by(report: StatusReport, met: Met | None, term: int) -> str:
    """Why the node refuses whatever a hub of this term orders; empty: it does not. Its hello, or
    its last refusal, may have said so; its report says it at each look, with no more asked.
    """
    if met is not None and met.old_term:
        return met.old_term
    if report.term is None or report.term <= term:
        return ""
    named = f" of hub {report.hub}" if report.hub else ""
    return f"{report.node} has seen term {report.term}{named}; this one says {term}"


def displaced_on(node: NodeSeen, links: Mapping[str, Link], term: int) -> str:
    """The same of a node that was seen; of one without a link its report alone counts."""
    link = links.get(node.name)
    return displaced_by(node.report, link.met if link is not None else None, term)
