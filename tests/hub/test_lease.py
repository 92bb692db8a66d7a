"""One hub at a time speaks for a state folder, and a copy of the folder is another hub."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from arc.errors import OtherHub, StateBroken
from arc.lease import Lease
from tests.builders import a_clock


def take(state: Path, *, machine: str = "here", take_over: bool = False) -> Lease:
    return Lease.take(state, hub="arc", clock=a_clock(), machine=machine, take_over=take_over)


def test_a_new_folder_speaks_with_the_first_term_and_keeps_its_name(tmp_path: Path) -> None:
    with take(tmp_path / "state") as first:
        assert (first.term, first.copied) == (1, False)
    with take(tmp_path / "state") as again:
        assert (again.term, again.instance) == (1, first.instance)
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    assert (tmp_path / "state" / "hub.json").stat().st_mode & 0o077 == 0


def test_a_held_lease_names_the_process_that_holds_it(tmp_path: Path) -> None:
    with take(tmp_path), pytest.raises(OtherHub, match=f"process {os.getpid()} is the hub here"):
        take(tmp_path)


@pytest.mark.parametrize(("written", "also"), [(None, f"; kill {os.getpid()} ends it, too"),
                                               (b"who knows", "")])  # fmt: skip
def test_who_finds_another_hub_there_is_told_how_to_stop_it(
    tmp_path: Path, written: bytes | None, also: str
) -> None:
    """Seen to fail: `stop it first`, and no word of how."""
    with take(tmp_path):
        if written is not None:
            (tmp_path / "lock").write_bytes(written)
        with pytest.raises(OtherHub) as found:
            take(tmp_path)
    assert found.value.hint == (
        "ask it (arc status), or stop it first: Ctrl-C in its terminal, or where it is a service "
        f"systemctl --user stop arc-hub{also}")  # fmt: skip


def test_a_take_over_on_the_same_machine_does_not_break_the_lock(tmp_path: Path) -> None:
    with take(tmp_path), pytest.raises(OtherHub):
        take(tmp_path, take_over=True)
    with take(tmp_path) as after:
        assert after.term == 1


def test_a_lease_is_let_go_also_where_a_starting_program_still_shares_it(tmp_path: Path) -> None:
    """Between its fork and its exec a child has every descriptor. Seen to fail without the unlock
    before the close.
    """
    held = take(tmp_path)
    assert not os.get_inheritable(held.descriptor)
    shared = os.dup(held.descriptor)
    held.close()
    take(tmp_path).close()
    os.close(shared)


def test_a_take_over_raises_the_term_for_good(tmp_path: Path) -> None:
    with take(tmp_path, take_over=True) as taken:
        assert taken.term == 2
        assert taken.outbid(7) == 8
        assert taken.outbid(3) == 8
    with take(tmp_path) as after:
        assert after.term == 8


def test_a_folder_from_another_machine_is_another_hub_and_says_so(tmp_path: Path) -> None:
    """Seen to fail with the machine not looked at: both then spoke as one instance."""
    with take(tmp_path, machine="here") as first:
        pass
    with take(tmp_path, machine="there") as copy:
        assert copy.copied
        assert (copy.term, copy.instance != first.instance) == (1, True)
    with take(tmp_path, machine="there") as again:
        assert (again.copied, again.instance) == (False, copy.instance)


def test_a_folder_that_lies_beside_its_copy_is_another_hub(tmp_path: Path) -> None:
    """Seen to fail with the place not looked at: two hubs of one machine spoke as one, nodes obeyed
    both, and most tasks of the copied inbox ran twice.
    """
    with take(tmp_path / "first") as first:
        pass
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    with take(tmp_path / "second") as copy:
        assert (copy.copied, copy.instance != first.instance) == (True, True)
    with take(tmp_path / "first") as again:
        assert (again.copied, again.instance) == (False, first.instance)


def test_a_folder_that_is_renamed_or_put_back_is_the_same_hub(tmp_path: Path) -> None:
    with take(tmp_path / "first") as first:
        pass
    (tmp_path / "first").rename(tmp_path / "renamed")
    with take(tmp_path / "renamed") as renamed:
        assert (renamed.copied, renamed.instance) == (False, first.instance)
    shutil.copytree(tmp_path / "renamed", tmp_path / "backup")
    shutil.rmtree(tmp_path / "renamed")
    (tmp_path / "other").mkdir()  # may get the inode that became free
    shutil.copytree(tmp_path / "backup", tmp_path / "renamed")
    with take(tmp_path / "renamed") as back:
        assert (back.copied, back.instance) == (False, first.instance)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"hub": "arc", "term": -1}', "\x00"])
def test_a_damaged_identity_is_an_error_and_lets_go_of_the_lock(tmp_path: Path, text: str) -> None:
    (tmp_path / "hub.json").write_text(text, encoding="utf-8")
    for _ in range(2):
        with pytest.raises(StateBroken, match="is damaged"):
            take(tmp_path)


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateBroken, match="plain file"):
        take(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_closing_twice_is_fine(tmp_path: Path) -> None:
    held = take(tmp_path)
    held.close()
    held.close()
    assert json.loads((tmp_path / "hub.json").read_text(encoding="utf-8"))["term"] == 1
