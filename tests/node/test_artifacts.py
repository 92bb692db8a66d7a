"""Claims about the files that tasks leave: what is taken, what is kept, and what is given."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_node import artifacts, gathering, uploads
from agent_node.artifacts import KEEP_S, LEFTOVER_S, Shelf
from agent_node.attempts import AttemptFolder
from agent_node.belongings import InputGone, file_name, hand_in
from agent_node.errors import BadInput, Refused
from agent_node.gathering import gather
from agent_node.strict import JsonValue
from agent_node.uploads import Progress, Uploads
from tests.builders import uid

HELLO = hashlib.sha256(b"hello").hexdigest()


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "artifacts")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    (place / "a.txt").write_bytes(b"hello")
    return place


def to_the_end(steps: Generator[Any, Any, Any]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def taken(shelf: Shelf, work: Path, *said: JsonValue) -> list[Any]:
    found: list[Any] = to_the_end(gather(said, str(work), shelf))
    return found


def why(shelf: Shelf, work: Path, *said: JsonValue) -> str:
    """Why the last of these is not taken; nothing unfinished is left of it."""
    found = taken(shelf, work, *said)[-1]
    assert "sha256" not in found, found
    assert leftovers(shelf) == []
    return str(found["because"])


def leftovers(shelf: Shelf) -> list[str]:
    return [path.name for path in shelf.root.glob(".*")]


def kept(shelf: Shelf, content: bytes) -> str:
    with shelf.write() as writing:
        writing.add(content)
        return writing.keep().sha256


def test_a_named_file_is_kept_under_its_hash_for_its_owner_alone(shelf: Shelf, work: Path) -> None:
    (work / "out").mkdir()
    (work / "out" / "x.csv").write_bytes(b"1,2")
    found = taken(shelf, work, "a.txt", {"path": "./out/x.csv", "name": "x"})
    assert found[0] == {"name": "a.txt", "sha256": HELLO, "size": 5}
    assert found[1]["name"] == "x"
    assert shelf.path_of(HELLO).read_bytes() == b"hello"
    assert os.stat(shelf.path_of(HELLO)).st_mode & 0o777 == 0o600
    assert os.stat(shelf.root).st_mode & 0o077 == 0


def test_the_same_bytes_are_kept_once(shelf: Shelf, work: Path) -> None:
    (work / "b.txt").write_bytes(b"hello")
    taken(shelf, work, "a.txt", "b.txt")
    taken(shelf, work, "a.txt")
    assert [path.name for path in shelf.root.rglob("*") if path.is_file()] == [HELLO]


@pytest.mark.parametrize(
    ("entry", "because"),
    [
        ("../secret", "inside the working folder"),
        ("out/../../secret", "inside the working folder"),
        ("/etc/passwd", "inside the working folder"),
        ({"path": "", "name": "x"}, "inside the working folder"),
        (".", "inside the working folder"),
        ("a\0b", "control character"),
        ({"path": "a\0b", "name": "x"}, "inside the working folder"),
        ("gone.txt", "no such file"),
        ("link", "a link"),
        ("folder-link/a.txt", "a link or a file"),
        ("a.txt/b", "a link or a file"),
        ("fifo", "no plain file"),
        ("socket", "no plain file"),
        ("folder", "no plain file"),
        ("twin", "no plain file of one name"),
        ("x" * 300, "1 to 200"),
        ({"path": "x" * 5000, "name": "x"}, "too long"),
        ({"path": "x/" * 40 + "y", "name": "x"}, "too long"),
        ({"path": "x" * 300, "name": "x"}, "too long"),
        ({"path": "a.txt", "name": ""}, "1 to 200"),
        ({"path": "a.txt", "name": 7}, "1 to 200"),
        ({"path": "a.txt", "name": "a\x1bb"}, "control character"),
        ({"path": "a.txt", "name": "a\ud800"}, "control character"),
        ({"path": "a\ud800", "name": "x"}, "no text that a file can have"),
        ({"name": "x"}, "where a path"),
        (7, "where a path"),
        (None, "where a path"),
    ],
)
def test_what_is_no_plain_file_inside_is_named_with_the_reason(
    shelf: Shelf, work: Path, entry: JsonValue, because: str
) -> None:
    """Without `O_NOFOLLOW`, or without the look at the parts of the path, some are taken."""
    (work.parent / "secret").write_bytes(b"secret")
    (work / "link").symlink_to(work / "a.txt")
    (work / "folder").mkdir()
    (work / "folder-link").symlink_to(work)
    os.mkfifo(work / "fifo")
    (work / "one").write_bytes(b"two names")
    os.link(work / "one", work / "twin")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(work / "socket"))
        assert because in why(shelf, work, entry)


def test_a_name_is_given_once(shelf: Shelf, work: Path) -> None:
    assert "has that name" in why(shelf, work, "a.txt", {"path": "a.txt"})


def test_a_file_is_taken_up_to_its_size_and_not_beyond(
    shelf: Shelf, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "SIZE_MAX", 5)
    assert taken(shelf, work, "a.txt")[0]["size"] == 5
    (work / "b.txt").write_bytes(b"hello!")
    assert "at most 5" in why(shelf, work, "b.txt")


def test_together_they_are_taken_up_to_a_size(
    shelf: Shelf, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "TOTAL_MAX", 10)
    for name in "bcd":
        (work / name).write_bytes(b"12345" if name != "d" else b"")
    found = taken(shelf, work, "a.txt", "b", "c", "d")
    assert ["sha256" in one for one in found] == [True, True, False, True]
    assert "together" in found[2]["because"]


def test_more_than_the_count_are_one_entry_that_says_how_many(shelf: Shelf, work: Path) -> None:
    for number in range(70):
        (work / str(number)).write_bytes(b"%d" % number)
    found = taken(shelf, work, *map(str, range(70)))
    assert len(found) == 65
    assert all("sha256" in one for one in found[:64])
    assert found[64] == {"name": "", "because": "6 more were named; at most 64 are taken"}


def test_an_empty_file_is_an_artifact(shelf: Shelf, work: Path) -> None:
    (work / "empty").touch()
    assert taken(shelf, work, "empty")[0]["sha256"] == hashlib.sha256().hexdigest()


@pytest.mark.parametrize("change", ["grows", "shrinks", "other bytes"])
def test_a_file_that_changes_while_it_is_copied_is_not_taken(
    shelf: Shelf, work: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Without the second look, a file is recorded that never was."""
    monkeypatch.setattr(gathering, "PIECE", 2)
    steps = gather(["a.txt"], str(work), shelf)
    next(steps)
    with (work / "a.txt").open("r+b") as file:
        if change == "shrinks":
            file.truncate(3)
        else:
            file.write(b"HELLO, YOU" if change == "grows" else b"HELLO")
    os.utime(work / "a.txt", ns=(1, 1))
    (found,) = to_the_end(steps)
    assert "changed while it was copied" in found["because"]
    assert leftovers(shelf) == []


@pytest.mark.parametrize("point", ["before_write", "before_sync", "before_rename"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_full_or_failing_disk_is_the_reason_of_one_file_alone(
    shelf: Shelf, work: Path, monkeypatch: pytest.MonkeyPatch, point: str, number: int
) -> None:
    (work / "b.txt").write_bytes(b"other")
    left = [1]

    def meets(name: str) -> None:
        if name == f"artifact.{point}" and left:
            left.clear()
            raise OSError(number, os.strerror(number), name)

    monkeypatch.setattr(artifacts, "failpoint", meets)
    found = taken(shelf, work, "a.txt", "b.txt")
    assert found[0]["because"] == f"it could not be kept: {os.strerror(number)}"
    assert "sha256" in found[1]
    assert leftovers(shelf) == []


# --- The shelf -----------------------------------------------------------------------------------


def test_a_strange_hash_never_becomes_a_path(shelf: Shelf) -> None:
    for strange in ("../../etc/passwd", "A" * 64, "0" * 63, ""):
        with pytest.raises(ValueError, match="no sha256"):
            shelf.path_of(strange)


def test_what_is_old_and_needed_by_nobody_goes(shelf: Shelf) -> None:
    old, young, needed = kept(shelf, b"old"), kept(shelf, b"young"), kept(shelf, b"needed")
    for name in (old, needed):
        os.utime(shelf.path_of(name), (1, os.stat(shelf.path_of(name)).st_mtime - KEEP_S - 60))
    for name, age_s in ((".new-1", LEFTOVER_S + 60), (".part-2", 60)):
        (shelf.root / name).touch()
        at = os.stat(shelf.root / name).st_mtime - age_s
        os.utime(shelf.root / name, (at, at))
    assert shelf.forget(lambda asked: {needed} & set(asked)) == 1
    assert [shelf.has(name) is None for name in (old, young, needed)] == [True, False, False]
    assert leftovers(shelf) == [".part-2"]


# --- Piece by piece ------------------------------------------------------------------------------


def put(take: Uploads, offset: int, data: bytes, *, size: int = 5, sha256: str = HELLO) -> Progress:
    return take.put(sha256, size=size, offset=offset, data=data)


def test_pieces_in_order_become_an_artifact(shelf: Shelf) -> None:
    take = Uploads(shelf)
    assert put(take, 0, b"he") == Progress(2, done=False)
    assert shelf.has(HELLO) is None
    assert put(take, 2, b"llo") == Progress(5, done=True)
    assert shelf.path_of(HELLO).read_bytes() == b"hello"
    assert leftovers(shelf) == []


def test_a_piece_that_comes_again_or_too_early_changes_nothing(shelf: Shelf) -> None:
    take = Uploads(shelf)
    assert put(take, 2, b"llo") == Progress(0, done=False)
    put(take, 0, b"he")
    assert put(take, 0, b"he") == Progress(2, done=False)
    assert put(take, 4, b"o") == Progress(2, done=False)
    assert put(take, 2, b"llo").done
    assert put(take, 0, b"he") == Progress(5, done=True)


def test_another_process_goes_on_where_this_one_was_cut_off(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies there is hashed anew a little at a time; until it has caught up nothing is done."""
    monkeypatch.setattr(uploads, "HASHED_AT_ONCE", 2)
    put(Uploads(shelf), 0, b"hell")
    take = Uploads(shelf)
    assert take.progress(HELLO) == Progress(4, done=False)
    assert put(take, 4, b"o") == Progress(5, done=False)
    assert put(take, 5, b"") == Progress(5, done=False)
    assert put(take, 5, b"") == Progress(5, done=True)


def test_other_bytes_than_the_hash_says_are_thrown_away(shelf: Shelf) -> None:
    take = Uploads(shelf)
    with pytest.raises(Refused) as refused:
        put(take, 0, b"HELLO")
    assert refused.value.code == "hash_mismatch"
    assert shelf.has(HELLO) is None
    assert leftovers(shelf) == []
    assert put(take, 0, b"hello").done


@pytest.mark.parametrize("point", ["before_write", "before_sync", "before_rename"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_what_the_disk_failed_under_is_sent_anew(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, point: str, number: int
) -> None:
    """A second sync of what one sync did not write may lie. Seen to fail where the bytes were kept:
    they were synced again and became an artifact.
    """
    take = Uploads(shelf)
    put(take, 0, b"he")
    with monkeypatch.context() as patched:
        patched.setattr(artifacts, "failpoint", partial(fails_at, f"artifact.{point}", number))
        with pytest.raises(OSError, match=f"artifact.{point}"):
            put(take, 2, b"llo")
    assert leftovers(shelf) == []
    assert put(take, 2, b"llo") == Progress(0, done=False)
    assert put(take, 0, b"hello") == Progress(5, done=True)
    assert shelf.path_of(HELLO).read_bytes() == b"hello"


def fails_at(place: str, number: int, name: str) -> None:
    """A failpoint that the disk fails at."""
    if name == place:
        raise OSError(number, os.strerror(number), name)


def test_more_bytes_than_were_announced_are_refused(shelf: Shelf) -> None:
    with pytest.raises(BadInput, match="announced"):
        put(Uploads(shelf), 0, b"hello you")
    with pytest.raises(BadInput, match="at most"):
        put(Uploads(shelf), 0, b"", size=2**40)


def test_the_unfinished_are_bounded_and_the_oldest_makes_room(shelf: Shelf) -> None:
    take = Uploads(shelf)
    hashes = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(12)]
    for number, sha256 in enumerate(hashes):
        put(take, 0, b"1", sha256=sha256)
        os.utime(shelf.root / f".part-{sha256}", (number, number))
    assert len(leftovers(shelf)) == uploads.UNFINISHED_MAX
    assert take.progress(hashes[0]).have == 0
    assert take.progress(hashes[-1]).have == 1


def test_a_link_in_the_place_of_an_unfinished_one_is_not_written_through(
    shelf: Shelf, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    shelf.root.mkdir()
    (shelf.root / f".part-{HELLO}").symlink_to(victim)
    with pytest.raises(OSError, match=r"plain file"):
        put(Uploads(shelf), 0, b"hello", size=500)
    assert victim.read_bytes() == b""


# --- What an attempt is given --------------------------------------------------------------------


def a_folder(tmp_path: Path) -> AttemptFolder:
    path = tmp_path / "attempt"
    path.mkdir()
    return AttemptFolder(str(path), uid(1), 1)


def test_an_attempt_gets_read_only_copies_and_their_paths(shelf: Shelf, tmp_path: Path) -> None:
    kept(shelf, b"hello")
    folder = a_folder(tmp_path)
    ref = f"artifact:{HELLO}"
    context: Any = {ref: {"name": "out/a.txt", "sha256": HELLO, "size": 5}, "task:x": 7}
    given = to_the_end(hand_in(context, folder, shelf, folder.path))
    path = Path(given[ref]["path"])
    assert path == Path(folder.path) / "inputs" / "a.txt"
    assert path.read_bytes() == b"hello"
    assert os.stat(path).st_mode & 0o777 == 0o444
    assert given["task:x"] == 7
    path.chmod(0o600)
    path.write_bytes(b"spoilt")
    assert shelf.path_of(HELLO).read_bytes() == b"hello"


@pytest.mark.parametrize("damage", ["gone", "other bytes"])
def test_a_file_that_is_gone_or_damaged_is_never_given(
    shelf: Shelf, tmp_path: Path, damage: str
) -> None:
    """Without the hash on the way, the program reads what nobody wrote."""
    kept(shelf, b"hello")
    if damage == "gone":
        shelf.throw_away(HELLO)
    else:
        shelf.path_of(HELLO).write_bytes(b"hellO")
    context: Any = {f"artifact:{HELLO}": {"name": "a", "sha256": HELLO, "size": 5}}
    with pytest.raises(InputGone) as gone:
        to_the_end(hand_in(context, a_folder(tmp_path), shelf, ""))
    assert gone.value.sha256 == HELLO
    assert shelf.has(HELLO) is None


def test_files_of_one_name_get_different_ones_and_no_name_leaves_the_folder() -> None:
    taken: set[str] = set()
    said = ("a/x.txt", "b/x.txt", "c/x.txt", "..", "/", "e\x1bf", "\u00e9" * 300)
    names = [file_name(name, HELLO, taken) for name in said]
    assert names[:2] == ["x.txt", f"{HELLO[:8]}-x.txt"]
    assert len(set(names)) == len(names)
    assert all("/" not in name and name not in (".", "..") for name in names)
    assert all(0 < len(name.encode()) <= 255 for name in names)
