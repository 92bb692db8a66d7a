"""Claims about cgroups: used only where a part of the tree is ours, and then nothing escapes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from agent_node import cgroups
from agent_node.evidence import Dead, Leftovers, read_shim_record
from agent_node.zygote_link import Zygote
from tests.node.processes.harness import FakeDaemon, a_mark, carrying, wait_until

ROOT = "1 2 0:3 / / rw - ext4 /dev/x rw\n"
MOUNT = "30 24 0:26 / {at} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


def a_fake_tree(tmp_path: Path, own: str) -> dict[str, str]:
    (tmp_path / "own").write_text(f"4:memory:/elsewhere\n0::{own}\n")
    (tmp_path / "mounts").write_text(ROOT + MOUNT.format(at=tmp_path))
    return {"own": str(tmp_path / "own"), "mounts": str(tmp_path / "mounts")}


def a_cgroup(folder: Path, *files: str) -> str:
    folder.mkdir(parents=True)
    for name in files:
        (folder / name).write_text("")
    return str(folder)


def test_a_delegated_cgroup_is_found(tmp_path: Path) -> None:
    base = a_cgroup(tmp_path / "user/arc.service", "cgroup.procs", "cgroup.kill")

    assert cgroups.find_base(**a_fake_tree(tmp_path, "/user/arc.service")) == base


def test_the_root_of_the_tree_is_never_ours(tmp_path: Path) -> None:
    for name in ("cgroup.procs", "cgroup.kill"):
        (tmp_path / name).write_text("")

    assert cgroups.find_base(**a_fake_tree(tmp_path, "/")) is None


def test_a_kernel_without_cgroup_kill_is_not_used(tmp_path: Path) -> None:
    a_cgroup(tmp_path / "user", "cgroup.procs")

    assert cgroups.find_base(**a_fake_tree(tmp_path, "/user")) is None


def test_no_second_version_mounted_means_none(tmp_path: Path) -> None:
    files = a_fake_tree(tmp_path, "/user")
    Path(files["mounts"]).write_text(ROOT)

    assert cgroups.find_base(**files) is None


def test_only_old_empty_cgroups_of_attempts_are_swept_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, full, strange = (tmp_path / name for name in ("arc-attempt-1", "arc-attempt-2", "other"))
    for folder in (new, full, strange):
        folder.mkdir()
    (full / "cgroup.procs").write_text("1")
    cgroups.sweep(str(tmp_path))
    assert new.exists()
    monkeypatch.setattr(cgroups, "_ENTERED_BY_S", -1.0)
    cgroups.sweep(str(tmp_path))

    assert not new.exists()
    assert full.exists()
    assert strange.exists()


def test_a_cgroup_that_is_gone_is_empty(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")

    assert not cgroups.is_populated(gone)
    assert cgroups.members(gone) == frozenset()
    assert cgroups.remove(gone)
    cgroups.kill_all(gone)


def test_what_dropped_everything_else_is_found_by_its_cgroup(
    daemon: FakeDaemon, real_base: str
) -> None:
    """Run once with the members of the cgroup left out of the search: it was called dead."""
    zygote = Zygote(cgroup_base=real_base)
    zygote.start()
    inside = FakeDaemon(Path(daemon.tasks), zygote)
    mark = a_mark()
    script = f"exec env -i /bin/sh -c 'exec 3>&- && echo up && exec /bin/sleep {mark}'"
    attempt = inside.shell(script, env={"PATH": os.environ["PATH"]})
    wait_until(lambda: attempt.printed() == "up\n")
    attempt.signal_shim(signal.SIGKILL)
    inside.end(attempt)
    record = read_shim_record(attempt.folder)

    assert record is not None
    assert record.cgroup == attempt.spawned.cgroup
    assert isinstance(attempt.judge(), Leftovers)
    cgroups.kill_all(attempt.spawned.cgroup or "")
    wait_until(lambda: carrying(mark) == [])
    assert isinstance(inside.clear(attempt), Dead)
    zygote.close()
