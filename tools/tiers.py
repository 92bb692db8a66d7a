"""Tells after a test run which tiers ran, and holds every skip to what this machine lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tools.interpreters import SUPPORTED, TOO_OLD, find_interpreter
from tools.laboratory import faketime, missing_for_nodes, missing_for_slow_cables

TESTS = "tests/"
SKIP_FORM = "needs NAME: what is missing"
# Tiers that have to run whole, where a machine was set up for them: "ssh node".
MUST_RUN = frozenset(os.environ.get("TIERS_MUST_RUN", "").split())


def writable_cgroup() -> bool:
    """True when this process may make cgroups below its own (version 2)."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return False
    own = next((line[3:] for line in lines if line.startswith("0::")), None)
    folder = Path(f"/sys/fs/cgroup{own}") if own else None
    return bool(folder and (folder / "cgroup.procs").exists() and os.access(folder, os.W_OK))


def has_python(version: str) -> bool:
    """True when an interpreter of this version answers, wherever it lies."""
    return find_interpreter(version) is not None


CAP_SYS_ADMIN = 21
AS_NOBODY = ("setpriv", "--reuid=65534", "--clear-groups")
LOOK_S = 20.0


def may_change_user() -> bool:
    """Whether this Python can be started as another user, and ended by us."""
    try:
        start = [*AS_NOBODY, sys.executable, "-c", "pass"]
        ran = subprocess.run(start, capture_output=True, check=False, timeout=LOOK_S)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
    return os.geteuid() == 0 and ran.returncode == 0


def may_mount() -> bool:
    """Whether a small disk of its own can be mounted for a test."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> CAP_SYS_ADMIN & 1)


# What a test may need and a machine may lack. A skip names one of these, or it is a failure.
CAPABILITIES: dict[str, Callable[[], bool]] = {
    **{f"python{version}": partial(has_python, version) for version in (*TOO_OLD, *SUPPORTED)},
    "cgroup": writable_cgroup,
    "cable": lambda: not missing_for_slow_cables(),
    "faketime": lambda: faketime() is not None,
    "lab": lambda: not missing_for_nodes(),
    "mount": may_mount,
    "other-user": may_change_user,
    "systemd": lambda: shutil.which("systemd-analyze") is not None,
    "sudo": lambda: shutil.which("sudo") is not None,
    "root": lambda: os.geteuid() == 0,
    "no-root": lambda: os.geteuid() != 0,
}


class Tiers:
    """Counts what became of each tier, a tier being a folder of tests/."""

    def __init__(self) -> None:
        self.ran: dict[str, Counter[str]] = {}
        self.cannot: Counter[str] = Counter()
        self.unlawful: list[str] = []
        self.deselected: Counter[str] = Counter()

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Tests of another run, such as `make soak`, are named, not forgotten."""
        self.deselected.update(tier_of(item.nodeid) for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test counts once: by its call, or by the set-up or tear-down that ended it."""
        if report.when == "call" or report.outcome != "passed":
            self.ran.setdefault(tier_of(report.nodeid), Counter())[report.outcome] += 1
        if report.skipped and not hasattr(report, "wasxfail"):
            self.judge_skip(report.nodeid, skip_reason(report.longrepr))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that skips itself is held to the same rule as a test."""
        if report.skipped:
            self.ran.setdefault(tier_of(report.nodeid), Counter())["skipped"] += 1
            self.judge_skip(report.nodeid, skip_reason(report.longrepr))

    def judge_skip(self, nodeid: str, reason: str) -> None:
        """A skip stands only where the machine really lacks what the test says it needs."""
        objection = objection_to_skip(reason)
        if objection is None and tier_of(nodeid) in MUST_RUN:
            objection = f"skipped, but this tier must run here: {reason}"
        if objection is None:
            self.cannot[reason] += 1
        else:
            self.unlawful.append(f"{nodeid}: {objection}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A test that could have run and did not is a failure of the run."""
        if self.unlawful and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table that a person reads, just above pytest's own closing line."""
        terminalreporter.section("tiers")
        for line in self.lines():
            terminalreporter.write_line(line)

    def lines(self) -> list[str]:
        """Count first, then what could not run and why, then what nobody may skip."""
        ran = [f"ran     {tier:12} {told(count)}" for tier, count in sorted(self.ran.items())]
        cannot = [f"cannot  {reason} (tests: {n})" for reason, n in sorted(self.cannot.items())]
        later = [f"not now {tier:12} {n} deselected by markers; make soak runs the long ones"
                 for tier, n in sorted(self.deselected.items())]
        return ran + cannot + later + [f"FAILED  {line}" for line in self.unlawful]


def objection_to_skip(reason: str) -> str | None:
    """Why this skip is not accepted; None when the machine cannot run the test."""
    needs, _, rest = reason.removeprefix("Skipped: ").partition(":")
    name = needs.removeprefix("needs ")
    if not needs.startswith("needs ") or not rest or name not in CAPABILITIES:
        return f"skipped, but not in the form '{SKIP_FORM}': {reason}"
    if CAPABILITIES[name]():
        return f"skipped, but this machine has {name}: {reason}"
    return None


def skip_reason(longrepr: object) -> str:
    """What the test said when it skipped itself; pytest hands over (path, line, reason)."""
    return str(longrepr[2] if isinstance(longrepr, tuple) else longrepr)


def tier_of(nodeid: str) -> str:
    """The folder below tests/ that a test lives in; loose files are the fences."""
    parts = nodeid.split("::", 1)[0].removeprefix(TESTS).split("/")
    return parts[0] if len(parts) > 1 else "fences"


def told(count: Counter[str]) -> str:
    """`12 passed, 1 skipped`, in that order, leaving out what did not happen."""
    return ", ".join(f"{count[word]} {word}" for word in ("passed", "failed", "skipped")
                     if count[word])


def pytest_configure(config: pytest.Config) -> None:
    """Loaded by `-p tools.tiers`, which is what make test does."""
    config.pluginmanager.register(Tiers(), "arc-tiers")
