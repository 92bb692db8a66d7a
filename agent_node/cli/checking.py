"""The command `doctor`: findings first, with what would mend them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from agent_node.checks import Check
from agent_node.doctor import examine
from agent_node.envelope import Answer, Exit
from agent_node.home import find_home
from agent_node.text import counted, safe_text

from .around import Around
from .catalogue import Runnable

_ORDER = {"finding": 0, "note": 1, "ok": 2}


def doctor_arguments(parser: ArgumentParser) -> None:
    """The words of `doctor`: none."""


def doctor(options: Namespace, around: Around) -> Answer:
    """Look at everything; exit 6 when something should be mended."""
    checks = examine(find_home(around.environ), around.environ, around.clock.now())
    found = any(check.level == "finding" for check in checks)
    data = {"checks": [check.as_json() for check in checks]}
    return Answer(data, render_checks(checks), Exit.FINDINGS if found else Exit.DONE)


def render_checks(checks: Sequence[Check]) -> str:
    """A count, then what is wrong, what is worth knowing, and what is well."""
    findings = sum(1 for check in checks if check.level == "finding")
    lines = [f"doctor: {counted(findings, 'finding')}, {len(checks)} checks"]
    for check in sorted(checks, key=lambda check: _ORDER[check.level]):
        lines.append(safe_text(f"  {check.level:<8} {check.name}: {check.text}"))
        if check.fix:
            lines.append(safe_text(f"           fix: {check.fix}"))
    return "\n".join(lines)


COMMANDS = {"doctor": Runnable(doctor_arguments, doctor)}
