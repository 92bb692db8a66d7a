"""Claims about a shim that goes on to another attempt: after what, with what, and for how long."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_node import cgroups, zygote
from agent_node.config import read_settings
from agent_node.evidence import Dead, is_locked, read_shim_record
from agent_node.handing import hand_over, take_over
from agent_node.job import ASK_MAX, OVER, REPLY_MAX, RUN_ATTEMPT, Job, encode_job
from agent_node.kept import LINGER_S, Kept
from agent_node.kit import Kit, make_kit, renew, was_asked_to_stop
from agent_node.processes import die_with_parent, identify
from agent_node.starters import Starters
from agent_node.verdicts import read_verdict
from agent_node.watching import boot_seconds
from agent_node.zygote_link import Zygote, _spawned, parcel
from tests.node.daemon.living import an_agent
from tests.node.processes.conftest import RestartAt
from tests.node.processes.harness import Attempt, FakeDaemon, wait_readable, wait_until

SHELL = ["/bin/sh", "-c"]
PIPES = [(stream, end) for stream in ("stdout", "stderr", "wake") for end in (0, 1)]


def next_word(kept: Kept) -> bytes:
    wait_readable(kept.line.fileno())
    return kept.line.recv(REPLY_MAX)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Where a program waits until the test writes a line."""
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


def over(daemon: FakeDaemon) -> Kept:
    """A shim that has seen an attempt through, and would go on."""
    _, kept = daemon.keep(["true"])
    assert next_word(kept) == OVER
    return kept


def give(daemon: FakeDaemon, kept: Kept, script: str, **more: object) -> Attempt:
    """The shim's next attempt, of which it has said that it began."""
    job, folder = daemon.lay_out(["/bin/sh", "-c", script], **more)
    with parcel(job, folder) as (message, descriptors):
        assert kept.give(message, descriptors)
    said = json.loads(next_word(kept))
    assert (said["uid"], said["n"]) == (job.uid, job.n)
    assert isinstance(said["started"], float)
    return Attempt(folder, job.token, None)  # type: ignore[arg-type]


def opened(kept: Kept) -> int:
    """How many descriptors the shim has, once it has made the three pipes for what comes next."""
    folder, links = f"/proc/{kept.shim.pid}/fd", list[str]()

    def has_made_them() -> bool:
        links[:] = [os.readlink(f"{folder}/{number}") for number in os.listdir(folder)]
        return sum(link.startswith("pipe:") for link in links) == len(PIPES)

    wait_until(has_made_them)
    return len(links)


def dismissed(kept: Kept) -> None:
    """Told to end, it ends."""
    still_there = os.dup(kept.pidfd)
    kept.dismiss()
    wait_readable(still_there)
    os.close(still_there)


def test_a_shim_whose_attempt_is_over_sees_others_through(daemon: FakeDaemon) -> None:
    """Each with its own folder, output, token and verdict; seen to fail with a log left open."""
    first, kept = daemon.keep([*SHELL, "echo one"])
    assert next_word(kept) == OVER
    before, seen = opened(kept), [first]
    for number in range(3):
        seen.append(give(daemon, kept, f"echo {number}; exit {number}"))
        assert next_word(kept) == OVER
        assert opened(kept) == before
    verdicts = [read_verdict(one.folder) for one in seen]
    assert [one.exit_code for one in verdicts if one] == [0, 0, 1, 2]
    assert [one.printed() for one in seen] == ["one\n", "0\n", "1\n", "2\n"]
    entries = [json.loads(Path(one.folder.shim_json).read_text()) for one in seen]
    assert [one["token"] for one in entries] == [one.token for one in seen]
    assert {one["pid"] for one in entries} == {kept.shim.pid}
    dismissed(kept)


def test_the_next_program_finds_itself_as_the_first_one_did(daemon: FakeDaemon) -> None:
    """Its descriptors, its signals, its session and its environment; `PATH` was another's."""
    look = (
        "for fd in /proc/$$/fd/*; do readlink $fd; done; env | cut -d= -f1 | sort;"
        "cut -d' ' -f5,6 /proc/$$/stat; exec grep -E 'Sig(Blk|Ign)' /proc/self/status"
    )
    first, kept = daemon.keep([*SHELL, look])
    assert next_word(kept) == OVER
    then = give(daemon, kept, look)
    assert next_word(kept) == OVER
    dismissed(kept)

    def of_kind(attempt: Attempt) -> list[str]:
        lines = attempt.printed().replace(attempt.folder.path, "").splitlines()
        return [line if not line[:1].isdigit() else "ids" for line in lines
                if "pipe:" not in line]  # fmt: skip

    assert of_kind(first) == of_kind(then)
    pids = [line.split() for line in then.printed().splitlines() if line[:1].isdigit()]
    assert [group == session for group, session in pids] == [True]


def test_what_is_over_is_free_and_told_before_it_is_said(daemon: FakeDaemon) -> None:
    """Fails where a lock outlives the word: the daemon would find the attempt alive."""
    attempt, kept = daemon.keep([*SHELL, "exit 3"])
    assert next_word(kept) == OVER
    assert read_verdict(attempt.folder) is not None
    assert not is_locked(attempt.folder.shim_lock)
    assert not is_locked(attempt.folder.tree_lock)
    dismissed(kept)


def test_a_pipe_that_a_stranger_holds_goes_with_its_attempt(
    daemon: FakeDaemon, gate: Path
) -> None:
    """Seen to fail: its near end stayed open, and one more with each such attempt."""
    kept = over(daemon)
    before = opened(kept)
    attempt = give(daemon, kept, f"echo $$; read x < {gate}")
    wait_until(lambda: attempt.printed().endswith("\n"))
    stranger = os.open(f"/proc/{attempt.printed().strip()}/fd/1", os.O_WRONLY)
    gate.write_text("\n")
    assert next_word(kept) == OVER
    assert opened(kept) == before
    os.close(stranger)
    dismissed(kept)


@pytest.mark.parametrize(
    ("argv", "more"),
    [(["no-such-program"], {}), ([*SHELL, "kill -KILL $$"], {}),
     ([*SHELL, "sleep 9999"], {"max_s": 0.05}), ([*SHELL, "sleep 9999 & exit 0"], {}),
     ([*SHELL, "kill -TERM $PPID; sleep 9999"], {}), (["true"], {"shared": True})],
    ids=["not started", "killed", "too long", "left somebody", "stopped", "of another user"],
)  # fmt: skip
def test_a_shim_goes_on_only_after_a_program_that_ended_by_itself(
    daemon: FakeDaemon, argv: list[str], more: dict[str, object]
) -> None:
    """Whatever else happened may have left something behind, and a fresh one is there for it."""
    attempt, kept = daemon.keep(argv, **more)
    assert next_word(kept) == b""
    assert read_verdict(attempt.folder) is not None
    dismissed(kept)


def test_a_stop_that_comes_too_late_goes_with_its_attempt(
    daemon: FakeDaemon, at: RestartAt
) -> None:
    """The program has ended when it comes. Fails where the next one would be stopped for it."""
    at("shim.before_verdict:stop")
    attempt, kept = daemon.keep(["true"])
    wait_until(lambda: _is_stopped(kept.shim.pid))
    attempt.signal_shim(signal.SIGTERM)
    attempt.signal_shim(signal.SIGCONT)
    assert next_word(kept) == b""
    verdict = read_verdict(attempt.folder)
    assert verdict is not None
    assert verdict.kind == "exited"
    dismissed(kept)


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_stop_that_comes_between_two_attempts_ends_the_shim(daemon: FakeDaemon) -> None:
    """It was meant for neither. Fails where it waits for the next one, to stop that."""
    attempt, kept = daemon.keep(["true"])
    assert next_word(kept) == OVER
    attempt.signal_shim(signal.SIGTERM)
    wait_readable(kept.pidfd)
    kept.dismiss()


def test_what_one_attempt_wrote_into_the_wake_pipe_is_not_for_the_next() -> None:
    """Its program may have opened it, and filled it beyond what is read in one go."""
    me = identify(os.getpid())
    assert me is not None
    kit = make_kit(me, None)
    os.write(kit.wake[1], bytes([signal.SIGTERM]) * 9)
    kit = renew(kit, None)
    assert not was_asked_to_stop(kit)
    for number in (*kit.stdout, *kit.stderr, *kit.wake):
        os.close(number)


def test_a_shim_between_two_attempts_goes_with_its_zygote(daemon: FakeDaemon) -> None:
    """Seen to fail: stopped with work on its line, as its daemon was killed, it held that work's
    lock for ever, and no later daemon could tell who that was.
    """
    kept = over(daemon)
    daemon.zygote.close()
    wait_readable(kept.pidfd)
    kept.dismiss()


def test_a_shim_with_another_attempt_outlives_its_zygote(
    daemon: FakeDaemon, gate: Path
) -> None:
    kept = over(daemon)
    attempt = give(daemon, kept, f"read x < {gate}; exit 4")
    daemon.zygote.close()
    gate.write_text("\n")
    assert next_word(kept) == OVER
    verdict = read_verdict(attempt.folder)
    assert verdict is not None
    assert verdict.exit_code == 4
    dismissed(kept)


def test_each_attempt_of_a_shim_has_a_cgroup_of_its_own(
    daemon: FakeDaemon, real_base: str
) -> None:
    """Seen to fail: what was over looked alive for as long as what came after it ran there."""
    inside = FakeDaemon(Path(daemon.tasks), Zygote(cgroup_base=real_base))
    inside.zygote.start()
    first, kept = inside.keep(["true"])
    assert next_word(kept) == OVER
    second = give(inside, kept, "echo up; read x < /dev/zero")
    wait_until(lambda: second.printed() == "up\n")
    groups = [read_shim_record(one.folder) for one in (first, second)]
    paths = [one.cgroup or "" for one in groups if one]
    assert [len(cgroups.members(path)) for path in paths] == [0, 2]
    assert isinstance(first.judge(), Dead)
    os.kill(kept.shim.pid, signal.SIGTERM)
    wait_readable(kept.pidfd)
    kept.dismiss()
    inside.zygote.close()


def test_a_shim_whose_daemon_has_gone_sees_its_attempt_through_and_ends(
    daemon: FakeDaemon, gate: Path
) -> None:
    kept = over(daemon)
    attempt = give(daemon, kept, f"read x < {gate}; exit 4")
    kept.line.close()
    gate.write_text("\n")
    wait_readable(kept.pidfd)
    os.close(kept.pidfd)
    verdict = read_verdict(attempt.folder)
    assert verdict is not None
    assert verdict.exit_code == 4


def test_work_for_a_shim_that_has_died_is_not_taken(daemon: FakeDaemon) -> None:
    """Fails where that is an error: the attempt would not go to another shim."""
    kept = over(daemon)
    os.kill(kept.shim.pid, signal.SIGKILL)
    wait_readable(kept.pidfd)
    assert not kept.give(RUN_ATTEMPT, [])
    kept.dismiss()


# For how long.


def served(until: float, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many attempts a shim sees through, its first among them, whose daemon always has more."""
    line, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    me, seen = identify(os.getpid()), 1
    assert me is not None
    null = os.open(os.devnull, os.O_RDONLY)
    kit = make_kit(me, None)

    def renewed(kit: Kit, cgroup: str | None) -> Kit:
        assert ours.recv(REPLY_MAX) == OVER
        job = Job("0" * 26, 1, "t", ("true",), {}, "/")
        hand_over(ours, RUN_ATTEMPT + encode_job(job), [null, null])
        return kit

    def attended(*given: object) -> bool:
        nonlocal seen
        seen += 1
        return True

    monkeypatch.setattr(zygote, "renew", renewed)
    monkeypatch.setattr(zygote, "attend", attended)
    setting = zygote._Setting(os.getppid(), me.boot_id, "")
    zygote._stay(line, (os.dup(null), os.dup(null)), kit, setting, until)
    die_with_parent(on=False)
    for number in (null, *kit.stdout, *kit.stderr, *kit.wake):
        os.close(number)
    line.close()
    ours.close()
    return seen


def test_a_shim_ends_after_a_hundred_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert served(boot_seconds() + 3600, monkeypatch) == zygote.ATTEMPTS_MAX == 100


def test_a_shim_that_is_not_young_any_more_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs for minutes has a shim of its own, as if none ever went on."""
    assert served(boot_seconds() - 0.001, monkeypatch) == 1


# At hand.


class Listed(Zygote):
    """A zygote that notes what it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = 0

    def send(self, message: bytes, descriptors: list[int]) -> None:
        self.sent += 1


class Hand:
    """Starters with one shim of iris at hand, and their timers, run by hand."""

    def __init__(self, folder: Path) -> None:
        config = folder / "node.toml"
        config.write_text(f'name = "iris"\n{an_agent("iris")}{an_agent("moth")}')
        self.agents = {agent.name: agent for agent in read_settings(config).agents}
        self.due, self.zygote, self.went_on = list[Callable[[], None]](), Listed(), list[str]()
        self.selector = selectors.DefaultSelector()
        starter = self.agents["iris"].starter
        self.starters = Starters({starter: self.zygote}, self.selector, self._later)
        self.starters.on_went_on = self._note
        line, self.its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        itself = identify(os.getpid())
        assert itself is not None
        self.kept = Kept("iris", itself, os.pidfd_open(os.getpid()), line)
        self.starters.at_hand.keep(self.kept)

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        assert seconds == LINGER_S
        self.due.append(do)

    def _note(self, uid: str, n: int, kept: Kept) -> None:
        self.went_on.append(uid)
        kept.dismiss()

    def pass_time(self) -> None:
        due, self.due = self.due, []
        for do in due:
            do()

    def close(self) -> None:
        self.selector.close()
        self.its_end.close()


@pytest.fixture
def hand(daemon: FakeDaemon, tmp_path: Path) -> Iterator[Hand]:
    hand = Hand(tmp_path)
    yield hand
    hand.close()


@pytest.mark.parametrize("agent", ["iris", "moth"])
def test_a_shim_at_hand_is_for_its_own_agent(daemon: FakeDaemon, hand: Hand, agent: str) -> None:
    """Fails where it is for anybody: another agent's may be started by other words, or be another
    user's.
    """
    job, folder = daemon.lay_out(["true"])
    hand.starters.hand_over(hand.agents[agent], job, folder)
    if agent == "iris":
        message, descriptors = take_over(hand.its_end, ASK_MAX, 3, wait=True)
        assert message.startswith(RUN_ATTEMPT)
        for number in descriptors:
            os.close(number)
        assert (hand.went_on, hand.zygote.sent) == ([job.uid], 0)
    else:
        assert (hand.went_on, hand.zygote.sent) == ([], 1)
        hand.starters.at_hand.take("iris")
        hand.kept.dismiss()


def test_who_is_dead_at_hand_is_passed_over(daemon: FakeDaemon, hand: Hand) -> None:
    """The attempt goes to the zygote, with its lock; fails where it goes nowhere."""
    hand.its_end.close()
    job, folder = daemon.lay_out(["true"])
    hand.starters.hand_over(hand.agents["iris"], job, folder)
    assert (hand.went_on, hand.zygote.sent) == ([], 1)
    assert hand.starters.at_hand.pids == []


def test_who_gets_nothing_for_a_moment_is_dismissed(hand: Hand) -> None:
    """Not at the first look, which may come at once; and nobody looks where nobody is kept."""
    hand.pass_time()
    assert hand.starters.at_hand.pids == [os.getpid()]
    hand.pass_time()
    assert (hand.starters.at_hand.pids, hand.due) == ([], [])
    assert hand.its_end.recv(1) == b""


def test_one_look_is_enough_however_often_one_is_kept(hand: Hand) -> None:
    """Seen to fail: a timer for each attempt. Who was taken and came again is not old."""
    at_hand = hand.starters.at_hand
    hand.pass_time()
    for _ in range(3):
        assert at_hand.take("iris") == hand.kept
        at_hand.keep(hand.kept)
    assert len(hand.due) == 1
    hand.pass_time()
    assert at_hand.pids == [os.getpid()]
    hand.pass_time()
    assert at_hand.pids == []


@pytest.mark.parametrize("number", [0, 1])
def test_a_report_whose_files_found_no_room_is_lost_and_no_more(number: int) -> None:
    """Whoever sent it is found by its lock. Seen to fail: the daemon ended of it."""
    said = {"uid": "u", "n": 1, "pid": 1, "start_ticks": 1, "boot_id": "b", "cgroup": None}
    came = [os.open(os.devnull, os.O_RDONLY) for _ in range(number)]
    assert list(_spawned(json.dumps({**said, "started": 1.5}).encode(), came)) == []
    for one in came:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(one)
