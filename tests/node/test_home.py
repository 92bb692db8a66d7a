"""Claims about the node's home: where it is, when it is refused, its lock and its socket."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_node.home import (
    Home,
    HomeLock,
    HomeMissing,
    HomeNotYours,
    HomeOnNetwork,
    HomeOpenToOthers,
    HomeRefusal,
    check_home,
    connect,
    find_home,
    holder_of,
    listen,
)
from agent_node.mounts import file_system_of

LOCAL = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    root.chmod(0o700)
    return Home(root)


def mounted(point: str, kind: str) -> str:
    return f"{LOCAL}30 22 0:41 / {point} rw,relatime shared:7 - {kind} server:/x rw\n"


def test_the_environment_names_the_home() -> None:
    assert find_home({"AGENT_NODE_HOME": "/srv/node"}).root == Path("/srv/node")
    assert find_home({"HOME": "/home/ada"}).root == Path("/home/ada/.agent-node")


def test_an_empty_variable_is_not_the_root_folder() -> None:
    told = {"AGENT_NODE_HOME": "", "HOME": "/home/ada"}
    assert find_home(told).root == Path("/home/ada/.agent-node")


def test_a_relative_home_is_fixed_at_once() -> None:
    assert find_home({"AGENT_NODE_HOME": "here"}).root == Path.cwd() / "here"


def test_without_any_variable_the_account_says_where_home_is() -> None:
    assert find_home({}).root.name == ".agent-node"


def test_a_private_local_home_is_fine(home: Home) -> None:
    check_home(home, mountinfo=LOCAL)


def test_no_home_is_refused_with_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(HomeMissing) as refused:
        check_home(Home(tmp_path / "nowhere"), mountinfo=LOCAL)
    assert "agent-node init" in refused.value.hint


def test_a_file_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HomeMissing, match="not a folder"):
        check_home(Home(tmp_path / "file"), mountinfo=LOCAL)


@pytest.mark.parametrize("mode", [0o710, 0o701, 0o720, 0o704, 0o755, 0o777])
def test_a_home_others_can_reach_is_refused_with_the_exact_fix(home: Home, mode: int) -> None:
    """Shown once without the check: a home of mode 0755 was then opened."""
    home.root.chmod(mode)
    with pytest.raises(HomeOpenToOthers) as refused:
        check_home(home, mountinfo=LOCAL)
    assert refused.value.hint == f"chmod 700 {home.root}"
    assert f"{mode:04o}" in str(refused.value)


def test_a_home_of_somebody_else_is_refused(home: Home) -> None:
    with pytest.raises(HomeNotYours) as refused:
        check_home(home, mountinfo=LOCAL, uid=os.geteuid() + 1)
    assert "chown" in refused.value.hint


@pytest.mark.parametrize(
    "kind",
    "nfs nfs4 cifs smb3 9p ceph afs lustre glusterfs fuse.sshfs fuse.glusterfs fuse.s3fs".split(),
)
def test_a_home_on_a_network_is_refused(home: Home, kind: str) -> None:
    with pytest.raises(HomeOnNetwork, match=kind):
        check_home(home, mountinfo=mounted(str(home.root.parent), kind))


@pytest.mark.parametrize("kind", "ext4 xfs btrfs tmpfs overlay fuse.fuse-overlayfs".split())
def test_a_home_on_a_local_disk_is_taken(home: Home, kind: str) -> None:
    check_home(home, mountinfo=mounted(str(home.root.parent), kind))


def test_a_link_to_a_network_disk_does_not_hide_it(home: Home, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home.root)
    with pytest.raises(HomeOnNetwork):
        check_home(Home(link), mountinfo=mounted(str(home.root), "nfs4"))


def test_the_deepest_mount_decides_and_the_later_one_of_two() -> None:
    text = mounted("/srv", "nfs4") + "31 30 8:1 / /srv/disk rw - xfs /dev/sdb rw\n"
    assert file_system_of("/srv/disk/node", text) == "xfs"
    assert file_system_of("/srv/other", text) == "nfs4"
    assert file_system_of("/srvx", text) == "ext4"
    again = text + "32 31 0:9 / /srv/disk rw - nfs x rw\n"
    assert file_system_of("/srv/disk/node", again) == "nfs"


def test_a_mount_with_a_space_in_its_name_is_recognised() -> None:
    assert file_system_of("/my disk/node", mounted("/my\\040disk", "cifs")) == "cifs"


def test_a_line_that_cannot_be_read_is_passed_over() -> None:
    assert file_system_of("/x", "nonsense\n" + LOCAL) == "ext4"


# --- the lock ------------------------------------------------------------------------------------

TAKE = """
import sys
from collections.abc import Iterator
from pathlib import Path
from agent_node.home import Home, HomeLock
lock = HomeLock.try_take(Home(Path(sys.argv[1])))
print("taken" if lock else "held", flush=True)
sys.stdin.read()
"""


def another(home: Home) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", TAKE, str(home.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_one_process_alone_holds_the_home(home: Home) -> None:
    """Shown once without the flock: both had it."""
    with another(home) as first:
        assert said(first) == "taken"
        assert holder_of(home) == first.pid
        assert HomeLock.try_take(home) is None
        first.kill()
        first.wait()
        mine = HomeLock.try_take(home)
        assert mine is not None
        mine.release()


def test_the_lock_ends_with_its_block_and_may_be_released_twice(home: Home) -> None:
    lock = HomeLock.try_take(home)
    assert lock is not None
    with lock:
        assert holder_of(home) == os.getpid()
    lock.release()
    assert holder_of(home) is None
    again = HomeLock.try_take(home)
    assert again is not None
    again.release()


def test_a_lock_is_let_go_whatever_the_disk_says(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when an error over the holder's name, which is for messages alone, leaves `release`."""
    lock = HomeLock.try_take(home)
    assert lock is not None

    def full(_descriptor: int, _length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.ftruncate", full)
    lock.release()
    again = HomeLock.try_take(home)
    assert again is not None
    again.release()


def test_a_child_that_shares_the_lock_does_not_keep_it(home: Home) -> None:
    """Shown once with a close alone: the lock then stayed with the child."""
    lock = HomeLock.try_take(home)
    assert lock is not None
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    try:
        lock.release()
        again = HomeLock.try_take(home)
        assert again is not None
        again.release()
    finally:
        os.close(writing)
        os.waitpid(child, 0)


def test_a_lock_file_that_is_removed_meanwhile_guards_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shown once without looking again: the lock then was one of a file nobody could see."""
    real = fcntl.flock
    calls: list[int] = []

    def removed_before(descriptor: int, operation: int) -> None:
        if not calls:
            home.lock.unlink()
        calls.append(operation)
        real(descriptor, operation)

    monkeypatch.setattr("fcntl.flock", removed_before)
    with taken(home):
        assert len(calls) == 2
        assert HomeLock.try_take(home) is None


def test_the_lock_is_private_and_no_link_is_followed(home: Home, tmp_path: Path) -> None:
    lock = HomeLock.try_take(home)
    assert lock is not None
    lock.release()
    assert home.lock.stat().st_mode & 0o777 == 0o600

    home.lock.unlink()
    home.lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HomeRefusal, match="no plain file") as refused:
        HomeLock.try_take(home)
    assert refused.value.hint.endswith(f"ls -ld {home.lock}")


# --- the socket ----------------------------------------------------------------------------------


@pytest.fixture
def lock(home: Home) -> Iterator[HomeLock]:
    with taken(home) as lock:
        yield lock


def taken(home: Home) -> HomeLock:
    lock = HomeLock.try_take(home)
    assert lock is not None
    return lock


def talk(home: Home, door: socket.socket) -> None:
    with connect(home, timeout_s=10) as asker:
        answerer, _ = door.accept()
        with answerer:
            asker.sendall(b"?")
            assert answerer.recv(1) == b"?"


def test_the_socket_answers_and_is_private(home: Home, lock: HomeLock) -> None:
    with listen(home, lock) as door:
        talk(home, door)
        assert home.socket.stat().st_mode & 0o777 == 0o600


def test_a_path_beyond_what_the_kernel_takes_works(tmp_path: Path) -> None:
    root = tmp_path / ("d" * 100) / ("e" * 100)
    root.mkdir(parents=True)
    home = Home(root)
    assert len(str(home.socket)) > 200
    with taken(home) as lock, listen(home, lock) as door:
        talk(home, door)


def test_what_a_dead_daemon_left_is_replaced(home: Home, lock: HomeLock) -> None:
    listen(home, lock).close()
    with pytest.raises(ConnectionRefusedError):
        connect(home, timeout_s=10)
    with listen(home, lock) as door:
        talk(home, door)


def test_a_socket_that_was_half_made_is_no_hindrance(home: Home, lock: HomeLock) -> None:
    (home.root / "node.sock.new").write_text("a crash left this", encoding="ascii")
    with listen(home, lock) as door:
        talk(home, door)
    assert not (home.root / "node.sock.new").exists()


def test_nobody_listening_is_told_apart_from_no_home(home: Home) -> None:
    with pytest.raises(FileNotFoundError):
        connect(home, timeout_s=10)
    with pytest.raises(FileNotFoundError):
        connect(Home(home.root / "nowhere"), timeout_s=10)


def test_no_descriptor_is_left_behind(home: Home, lock: HomeLock) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with listen(home, lock) as door:
            talk(home, door)
        with pytest.raises(ConnectionRefusedError):
            connect(home, timeout_s=10)
    assert len(os.listdir("/proc/self/fd")) == before
