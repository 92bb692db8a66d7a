"""What `make crashpoints` makes of a trace: whose file it was, how to meet it, what differs."""

from __future__ import annotations

from random import Random

from tests.chaos.crash_trace import count, struck, worth_a_blow

TRACE = """\
7  write(4<pipe:[81]>, "\\0", 1) = 1
7  write(9</w/iris/.fleet-status.json.0ba9ca14db1f4df4>, "{}", 2) = 2
7  renameat(8</w/iris>, ".fleet-status.json.0ba9ca14db1f4df4", 8</w/iris>, "fleet-status.json") = 0
7  rename("/w/.arc/.hub.json.6427", "/w/.arc/hub.json") = 0
7  rename("/w/node.sock.new", "/w/node.sock") = 0
7  unlink("/w/.arc/.hub.json.6427") = -1 ENOENT (No such file or directory)
8  fdatasync(5</w/iris/queue.db-wal> <unfinished ...>
7  fsync(3</elsewhere/cache>) = 0
8  <... fdatasync resumed>) = 0
8  fdatasync(5</w/iris/queue.db-wal>) = 0
""".splitlines()


def test_only_files_of_the_world_count_and_the_others_are_told() -> None:
    counted = count(TRACE, "/w")
    assert counted.left_out == {"pipe": 1, "a file elsewhere": 1}
    assert [(call.process, call.name, call.file) for call in counted.calls] == [
        (0, "write", "iris/.fleet-status.json.*"),
        (0, "renameat", "iris/fleet-status.json"),
        (0, "rename", ".arc/hub.json"),
        (0, "rename", "node.sock"),
        (0, "unlink", ".arc/.hub.json.*"),
        (1, "fdatasync", "iris/queue.db-wal"),
        (1, "fdatasync", "iris/queue.db-wal"),
    ]


def test_a_name_made_by_chance_is_met_by_counting_and_every_other_by_its_path() -> None:
    calls = count(TRACE, "/w").calls
    log = "/w/iris/queue.db-wal"
    assert [call.aim for call in calls] == ["", "/w/iris", "", "/w/node.sock.new", "", log, log]
    assert calls[0].of_name == 2  # the pipe is counted with it
    assert [call.of_aim for call in calls[5:]] == [1, 2]


def test_a_blow_is_known_by_the_file_that_it_met() -> None:
    lines = [
        "7  write(4<pipe:[81]>, 1) = -1 EIO (Input/output error) (INJECTED)",
        "8  fdatasync(5</w/iris/queue.db-wal> <unfinished ...>",
        "7  write(4</w/iris/lock>, 1) = 1",
        "8  <... fdatasync resumed>) = -1 EIO (Input/output error) (INJECTED)",
        "9  pwrite64(4</w/loom/queue.db>, 2048, 0) = ?",
        "9  +++ killed by SIGKILL +++",
    ]
    assert struck(lines, "/w") == ["?pipe", "iris/queue.db-wal", "loom/queue.db"]
    assert struck(TRACE, "/w") == []


def test_what_sqlite_writes_between_two_syncs_is_struck_at_both_ends_and_once_within() -> None:
    log = '7  pwrite64(5</w/iris/queue.db-wal>, "", 24, 0) = 24'
    sync = "7  fdatasync(5</w/iris/queue.db-wal>) = 0"
    calls = count([log] * 9 + [sync] + [log] * 2, "/w").calls
    kept = worth_a_blow(calls, Random(1))
    written = sorted(call.of_aim for call in kept if call.name == "pwrite64")
    assert len(written) == 5
    assert {1, 9, 10, 11} < set(written)
    assert [call.of_aim for call in kept if call.name == "fdatasync"] == [1]


def test_no_other_file_is_spared() -> None:
    mark = '7  pwrite64(5</w/iris/generation>, "", 256, 0) = 256'
    assert len(worth_a_blow(count([mark] * 9, "/w").calls, Random(1))) == 9
