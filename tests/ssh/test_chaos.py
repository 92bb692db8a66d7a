"""Chaos finds nothing in a short run, and catches a mover that creates and then closes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.checker import read_ledger
from tests.ssh.chaos import Chaos
from tests.ssh.chaos_faults import FAULTS, create_then_close
from tests.ssh.chaos_report import told
from tests.ssh.fleet import NAMES, SshFleet
from tests.ssh.lab import Lab

QUICK = ("kill daemon", "kill zygote or shim", "kill serve", "power off", "cut", "kill hub")


def short(fleet: SshFleet, monkeypatch: pytest.MonkeyPatch) -> Chaos:
    """Faults that are over soon, each taken back within the second."""
    monkeypatch.setattr("tests.ssh.chaos.NIGHT_MAX_S", 1.0)
    quick = tuple(fault for fault in FAULTS if fault.name in QUICK)
    monkeypatch.setattr("tests.ssh.chaos.FAULTS", quick)
    chaos = Chaos(fleet, "short", policy="swift", broken=False)
    fleet.up()
    return chaos


def test_a_short_chaos_loses_and_doubles_nothing(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chaos = short(SshFleet(lab, tmp_path, NAMES[:3], disk_mb=256), monkeypatch)
    chaos.rage(8.0)
    chaos.settle()
    report = chaos.count()
    assert report.clean, told(report)
    assert report.acknowledged > 10
    assert report.done == report.acknowledged


def test_a_mover_that_creates_and_then_closes_is_caught(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: a task of one node is made on another, and never closed at home."""
    chaos = short(SshFleet(lab, tmp_path, NAMES[:2], disk_mb=256), monkeypatch)
    fleet = chaos.fleet
    assert fleet.arc("pause", "--reason", "the work has to wait").code == 0
    added = fleet.homes["iris"].run("add", "once", "-p", "1")["results"]
    assert isinstance(added, list)
    fleet.added += [str(one["uid"]) for one in added if isinstance(one, dict)]
    assert create_then_close(fleet, "iris", "loom") == 1
    assert fleet.arc("resume").code == 0
    ledger = fleet.lab.shared / "ledger"
    fleet.until(lambda: len([one for one in read_ledger(ledger) if one.word == "end"]) == 2,
                "it has run in both places")  # fmt: skip
    report = chaos.count()
    assert report.duplicated, told(report)
    assert not report.clean
