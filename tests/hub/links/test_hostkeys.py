"""Holds the file of trusted host keys: what it refuses, and that it is replaced whole."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from arc.errors import NeedsWord, StateBroken
from arc.links.hostkeys import HostKeys, parse_host_key

ONE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
TWO = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE3oTIsnnY2UdvHUmQ8SJ8cuDURSfkmFAu/Wek1ppVJt"


@pytest.fixture
def keys(tmp_path: Path) -> HostKeys:
    return HostKeys(tmp_path / "known_hosts")


def test_a_pinned_key_is_found_by_the_nodes_name(keys: HostKeys, tmp_path: Path) -> None:
    one, two = parse_host_key(ONE), parse_host_key(TWO + " root@loom")
    keys.pin("iris", one, fingerprint=one.fingerprint)
    keys.pin("loom", two, fingerprint=two.fingerprint)
    assert (keys.pinned("iris"), keys.pinned("loom"), keys.pinned("forge")) == (one, two, None)
    assert (tmp_path / "known_hosts").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["known_hosts"]


def test_a_key_is_trusted_only_by_its_own_fingerprint(keys: HostKeys) -> None:
    one, two = parse_host_key(ONE), parse_host_key(TWO)
    with pytest.raises(NeedsWord, match="nothing was trusted"):
        keys.pin("iris", one, fingerprint=two.fingerprint)
    assert keys.pinned("iris") is None


def test_a_key_is_replaced_and_forgotten(keys: HostKeys) -> None:
    one, two = parse_host_key(ONE), parse_host_key(TWO)
    keys.pin("iris", one, fingerprint=one.fingerprint)
    keys.pin("iris", two, fingerprint=two.fingerprint)
    assert keys.read() == {"iris": two}
    assert (keys.forget("iris"), keys.forget("iris")) == (True, False)


@pytest.mark.parametrize(("line", "says"), [
    ("iris", "should be a type"),
    ("iris ssh-dss AAAA", "should be a type"),
    ("iris ssh-ed25519 not-base64!", "no base64"),
    ("iris ssh-ed25519 AAAAB3NzaC1yc2EAAAADAQABAAAA", "none of type"),
    (f"iris {ONE}\niris {TWO}", "stands there twice"),
    ("iris \xff", "cannot be read"),
])  # fmt: skip
def test_a_line_that_cannot_be_read_is_named_never_skipped(
    keys: HostKeys, tmp_path: Path, line: str, says: str
) -> None:
    (tmp_path / "known_hosts").write_bytes(b"# a comment\n\n" + line.encode("latin-1") + b"\n")
    with pytest.raises(StateBroken, match=says):
        keys.read()


def test_a_fingerprint_is_what_ssh_keygen_prints(tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen: it is not on this machine")
    (tmp_path / "key.pub").write_text(ONE + "\n")
    said = subprocess.run(["ssh-keygen", "-lf", tmp_path / "key.pub"], capture_output=True,
                          text=True, check=True).stdout  # fmt: skip
    assert parse_host_key(ONE).fingerprint in said
