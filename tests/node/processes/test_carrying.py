"""Files that a warden of another user hands over, or lays out: its every word may be a lie."""

from __future__ import annotations

import errno
import hashlib
import os
import selectors
import socket
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from agent_node import artifacts, errands
from agent_node.artifacts import Shelf
from agent_node.attempts import AttemptFolder
from agent_node.belongings import InputGone, NotLaid, hand_over
from agent_node.carrying import Carrying, NotCarried, fetch
from agent_node.gathering import gather_by
from agent_node.job import INPUTS
from agent_node.other_user import OtherUser
from agent_node.porter import CHUNK, Fetching, Laying, carry
from agent_node.strict import JsonValue
from agent_node.workplace import STAGED, make_place
from tests.builders import uid

HELLO = hashlib.sha256(b"hello").hexdigest()
PATIENCE_S = 20.0


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "artifacts")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    (place / "a.txt").write_bytes(b"hello")
    return place


def said_by(work: Generator[bytes, bytes, Any], *answers: bytes) -> Any:
    """What comes of it when a warden answers so; the words it was asked with do not matter."""
    next(work)
    for answer in answers:
        try:
            work.send(answer)
        except StopIteration as done:
            return done.value
    raise AssertionError("it waits for more")


def carried(porter: Any, work: Generator[bytes, bytes, Any], **more: Any) -> Any:
    """What comes of it with a real porter, in a thread of its own."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ended: list[Any] = []
    wanted: Callable[[], bool] = more.get("wanted", lambda: True)
    carrying = Carrying(work, wanted, ended.append, ended.append)
    thread = threading.Thread(target=carry, args=(porter, far))
    thread.start()
    with near:
        near.settimeout(PATIENCE_S)
        while near.recv(1, socket.MSG_PEEK) and carrying.hear(near):
            pass
    carrying.over()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    far.close()
    return ended[0] if ended else None


def gathered(shelf: Shelf, *said: JsonValue) -> Generator[bytes, bytes, list[Any]]:
    return gather_by(lambda path, room: fetch(shelf, path, room), said)


def test_files_come_whole_and_what_cannot_be_taken_costs_no_other(shelf: Shelf, work: Path) -> None:
    large = os.urandom(3 * CHUNK + 1)
    (work / "large").write_bytes(large)
    (work / "empty").touch()
    (work / "link").symlink_to("a.txt")
    names = ["large", "link", "a.txt", "gone", "empty", "x" * 150]
    found = carried(Fetching({"place": str(work)}), gathered(shelf, *names))
    assert [one.get("size") for one in found] == [len(large), None, 5, None, 0, None]
    assert shelf.path_of(hashlib.sha256(large).hexdigest()).read_bytes() == large
    assert "a link" in found[1]["because"]


def test_a_file_that_changes_between_two_words_is_not_taken(shelf: Shelf, work: Path) -> None:
    porter = Fetching({"place": str(work)})
    assert porter.answer(b'o"a.txt"') == b"5"
    (work / "a.txt").write_bytes(b"other")
    os.utime(work / "a.txt", ns=(1, 1))
    assert porter.answer(b"r") == b"other"
    with pytest.raises(Exception, match="changed while it was copied"):
        porter.answer(b"r")
    porter.let_go()


@pytest.mark.parametrize(
    ("answers", "because"),
    [
        ([b"+5", b"+hello!"], "changed while it was copied"),
        ([b"+5", b"+hell", b"+"], "changed while it was copied"),
        ([b"+99999999999", b"+x"], "at most"),
        ([b"-it\nsays no" + b"!" * 9000], "it\nsays no"),
        ([b"+5", b"-gone"], "gone"),
    ],
)
def test_a_warden_that_says_other_than_it_announced_hands_over_nothing(
    shelf: Shelf, answers: list[bytes], because: str
) -> None:
    """Seen to fail without the count of what comes: the disk would hold whatever is said."""
    (found,) = said_by(gathered(shelf, "a.txt"), *answers)
    assert because in found["because"]
    assert len(found["because"]) <= 300
    assert [*shelf.root.glob(".new-*")] == []


@pytest.mark.parametrize("size", [b"+", b"+five", b"+" + b"9" * 64])
def test_a_size_that_is_no_number_ends_the_conversation(shelf: Shelf, size: bytes) -> None:
    with pytest.raises(NotCarried):
        said_by(gathered(shelf, "a.txt"), size)


def test_a_path_of_many_signs_is_asked_for_in_one_word(shelf: Shelf, work: Path) -> None:
    wish: JsonValue = {"path": "\U0001f600" * 4096, "name": "x"}
    longer: JsonValue = {"path": "x" * 4097, "name": "y"}
    found = carried(Fetching({"place": str(work)}), gathered(shelf, wish, longer, "a.txt"))
    assert ["too long" in one.get("because", "") for one in found] == [True, True, False]


def test_a_full_disk_is_the_reason_of_one_file_and_the_next_is_asked_for(
    shelf: Shelf, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "b.txt").write_bytes(b"other")
    left = [1]

    def meets(name: str) -> None:
        if name == "artifact.before_write" and left:
            left.clear()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)

    monkeypatch.setattr(artifacts, "failpoint", meets)
    found = carried(Fetching({"place": str(work)}), gathered(shelf, "a.txt", "b.txt"))
    assert "could not be kept" in found[0]["because"]
    assert found[1]["size"] == 5


def test_a_warden_that_ends_is_no_answer_and_who_asks_no_more_is_not_told(shelf: Shelf) -> None:
    wanted = [True]
    for told in (1, 0):
        ended: list[Any] = []
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        far.close()
        with near:
            carrying = Carrying(gathered(shelf, "a"), lambda: wanted[0], ended.append, ended.append)
            assert not carrying.hear(near)
        carrying.over()
        assert [type(one) for one in ended] == [NotCarried] * told
        wanted[0] = False


def an_attempt(tmp_path: Path) -> AttemptFolder:
    (tmp_path / "attempt").mkdir()
    return AttemptFolder(str(tmp_path / "attempt"), uid(1), 1)


def given(shelf: Shelf, content: bytes) -> tuple[str, dict[str, JsonValue]]:
    with shelf.write() as writing:
        writing.add(content)
        kept = writing.keep()
    ref = f"artifact:{kept.sha256}"
    return kept.sha256, {ref: {"name": "x/../in.txt", "sha256": kept.sha256, "size": kept.size}}


def test_copies_are_laid_out_read_only_and_lie_in_the_place_that_is_made_for_them(
    shelf: Shelf, tmp_path: Path
) -> None:
    content = os.urandom(2 * CHUNK + 7)
    sha256, context = given(shelf, content)
    place = f"{tmp_path}/run/attempt-1"
    laying = Laying({"folder": f"{place}{STAGED}"})
    found = carried(laying, hand_over(context, an_attempt(tmp_path), shelf, place))
    assert found[f"artifact:{sha256}"]["path"] == f"{place}/{INPUTS}/in.txt"
    make_place(place)
    copy = Path(place, INPUTS, "in.txt")
    assert copy.read_bytes() == content
    assert copy.stat().st_mode & 0o777 == 0o444
    assert not Path(f"{place}{STAGED}").exists()


def test_a_damaged_file_is_never_laid_out_as_if_it_were_the_one(
    shelf: Shelf, tmp_path: Path
) -> None:
    sha256, context = given(shelf, b"hello")
    shelf.path_of(sha256).chmod(0o600)
    shelf.path_of(sha256).write_bytes(b"HELLO")
    laying = Laying({"folder": f"{tmp_path}/run/a{STAGED}"})
    found = carried(laying, hand_over(context, an_attempt(tmp_path), shelf, "/run/a"))
    assert isinstance(found, InputGone)
    assert shelf.has(sha256) is None


@pytest.mark.parametrize("stands", ["a folder", "a link"])
def test_copies_are_laid_out_in_no_folder_of_somebody_elses_making(
    shelf: Shelf, tmp_path: Path, stands: str
) -> None:
    """Seen to fail with `exist_ok`: through a link they would come to lie anywhere."""
    (tmp_path / "elsewhere").mkdir()
    staged = tmp_path / f"a{STAGED}"
    staged.mkdir() if stands == "a folder" else staged.symlink_to(tmp_path / "elsewhere")
    _, context = given(shelf, b"hello")
    laying = Laying({"folder": str(staged)})
    found = carried(laying, hand_over(context, an_attempt(tmp_path), shelf, str(tmp_path / "a")))
    assert isinstance(found, NotLaid)
    assert [*staged.iterdir()] == []


def test_each_word_of_a_warden_gives_it_time_and_silence_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen to fail without the count of words: a large file was cut off after ten seconds."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ended: list[int] = []
    monkeypatch.setattr(errands, "start_as", lambda user, module: (os.getpid(), near))
    monkeypatch.setattr(errands, "_kill", ended.append)
    due: list[tuple[float, Callable[[], None]]] = []
    told: list[object] = []
    with selectors.DefaultSelector() as selector:
        sends = errands.Errands(selector, lambda seconds, do: due.append((seconds, do)))
        sends.talk(OtherUser("arc-run", 4242, 4242, "/nowhere"), lambda: {"do": "fetch"},
                   lambda warden: bool(warden.recv(10)), told.append)  # fmt: skip
        due.pop()[1]()
        far.send(b"+")
        ((key, _),) = selector.select(PATIENCE_S)
        key.data(key)
        due.pop()[1]()
        assert (told, ended) == ([], []), "it spoke, so it has as long again"
        seconds, look_again = due.pop()
        assert seconds == errands.PATIENCE_S
        look_again()
        assert (told, ended) == ([None], [os.getpid()])
    far.close()
