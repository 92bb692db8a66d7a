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

from tools.browsers import missing_for_pages
from tools.interpreters import SUPPORTED, TOO_OLD, find_interpreter
from tools.laboratory import cgroup_base, faketime, missing_for_nodes, missing_for_slow_cables
from tools.tally import OUTCOMES, Tally, write_tally

TESTS = "tests/"
SKIP_FORM = "needs NAME: what is missing"
# Tiers that have to run whole, where a machine was set up for them: "ssh node".
MUST_RUN = frozenset(os.environ.get("TIERS_MUST_RUN", "").split())


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
    "cgroup": lambda: cgroup_base() is not None,
    "chromium": lambda: not missing_for_pages(),
    "cable": lambda: not missing_for_slow_cables(),
    "faketime": lambda: faketime() is not None,
    "lab": lambda: not missing_for_nodes(),
    "mount": may_mount,
    "other-user": may_change_user,
    "systemd": lambda: shutil.which("systemd-analyze") is not None,
    "ssh-keygen": lambda: shutil.which("ssh-keygen") is not None,
    "sudo": lambda: shutil.which("sudo") is not None,
    "root": lambda: os.geteuid() == 0,
}


class Tiers:
    """Counts what became of each tier, a tier being a folder of tests/.

    `file`: where to leave the count for who adds up several runs; None: nowhere.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.tally = Tally()
        self.file = file

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Tests of another run, such as `make soak`, are named, not forgotten."""
        self.tally.deselected.update(tier_of(item.nodeid) for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test counts once: by its call, or by the set-up or tear-down that ended it."""
        if report.when == "call" or report.outcome != "passed":
            self.count(report.nodeid, report.outcome)
        if report.skipped and not hasattr(report, "wasxfail"):
            self.judge_skip(report.nodeid, skip_reason(report.longrepr))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that skips itself is held to the same rule as a test."""
        if report.skipped:
            self.count(report.nodeid, "skipped")
            self.judge_skip(report.nodeid, skip_reason(report.longrepr))

    def count(self, nodeid: str, outcome: str) -> None:
        """One more of this outcome in the tier of this test."""
        self.tally.ran.setdefault(tier_of(nodeid), Counter())[outcome] += 1

    def judge_skip(self, nodeid: str, reason: str) -> None:
        """A skip stands only where the machine really lacks what the test says it needs."""
        objection = objection_to_skip(reason)
        if objection is None and tier_of(nodeid) in MUST_RUN:
            objection = f"skipped, but this tier must run here: {reason}"
        if objection is None:
            self.tally.cannot[reason] += 1
        else:
            self.tally.unlawful.append(f"{nodeid}: {objection}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A test that could have run and did not is a failure of the run."""
        if self.tally.unlawful and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table that a person reads, just above pytest's own closing line."""
        terminalreporter.section("tiers")
        for line in self.tally.lines():
            terminalreporter.write_line(line)
        if self.file is not None:
            self.tally.outcomes, self.tally.troubles = outcomes(terminalreporter)
            self.tally.cpu_s = sum(os.times()[:4])
            write_tally(self.tally, self.file)


def outcomes(reporter: pytest.TerminalReporter) -> tuple[Counter[str], list[str]]:
    """How often pytest's closing line has each of its words, and its lines of what failed."""
    counts = Counter({
        word: sum(getattr(one, "count_towards_summary", True) for one in reporter.stats[word])
        for word in OUTCOMES if word in reporter.stats
    })  # fmt: skip
    failed = [f"{told} {one.nodeid} - {first_line(one)}"
              for told, word in (("FAILED", "failed"), ("ERROR", "error"))
              for one in reporter.stats.get(word, [])]  # fmt: skip
    return counts, failed


def first_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The beginning of what went wrong."""
    crash = getattr(report.longrepr, "reprcrash", None)
    words = str(crash.message if crash is not None else report.longrepr).strip()
    return words.split("\n", 1)[0]


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--tally` is for tools.all_tiers, which runs several of us side by side."""
    parser.addoption("--tally", metavar="FILE", type=Path, help="leave the counts here as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Loaded by `-p tools.tiers`, which is what make test does."""
    config.pluginmanager.register(Tiers(config.getoption("--tally")), "arc-tiers")
