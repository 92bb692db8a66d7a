"""`arc unit` prints a service that keeps one hub running, and never starts one in vain."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from arc.unit import render_hub_unit
from tests.hub.cli.desk import Desk


def test_the_unit_starts_this_installation_with_this_fleet_whatever_the_folder(desk: Desk) -> None:
    (desk.place / "fleet.yaml").write_text("nodes: []\n")
    text, data = desk.both("unit")
    (start,) = [line for line in text.lines if line.startswith("ExecStart=")]
    assert start.startswith("ExecStart=/")
    assert start.endswith(f" --fleet {desk.place / 'fleet.yaml'} up")
    assert data["unit"] == text.out
    assert desk.asked == []  # it is the same while no hub runs


def test_what_takes_a_person_is_not_started_again(desk: Desk) -> None:
    """Wrong settings are exit 2, another hub is exit 8: each would fail every five seconds."""
    (desk.place / "fleet.yaml").write_text("nodes: []\n")
    lines = desk.arc("unit").lines
    assert "Restart=on-failure" in lines
    assert "RestartPreventExitStatus=2 8" in lines


def test_what_systemd_would_read_otherwise_is_quoted(tmp_path: Path) -> None:
    unit = render_hub_unit(["/opt/my arc/arc"], fleet=tmp_path / "50% of $HOME" / "fleet.yaml")
    place = str(tmp_path)
    assert f'ExecStart="/opt/my arc/arc" --fleet "{place}/50%% of $$HOME/fleet.yaml" up' in unit
    assert f'Description=Arc hub ("{place}/50%% of $HOME/fleet.yaml")' in unit


def test_systemd_itself_has_no_objection_to_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("needs systemd: systemd-analyze is not installed")
    unit = tmp_path / "arc-hub.service"
    unit.write_text(render_hub_unit(["/bin/sh"], fleet=Path("/srv/fleet.yaml")))
    ran = subprocess.run([analyze, "verify", "--man=no", str(unit)], capture_output=True,
                         text=True, check=False, timeout=30)  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")


def test_without_a_fleet_there_is_nothing_to_keep_running(desk: Desk) -> None:
    ran = desk.arc("unit")
    assert ran.code == 2
    assert "arc init" in ran.err
