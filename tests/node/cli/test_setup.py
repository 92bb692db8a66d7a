"""Claims about `init`, `unit`, `doctor`, and the two commands that stay."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import types
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_node import __version__, doctor
from agent_node.checks import Check
from agent_node.config import AgentSettings, parse_settings, read_settings
from agent_node.home import Home, HomeLock, listen
from agent_node.running import Ended
from agent_node.systemd import render_unit
from tests.builders import uid
from tests.node.cli.desk import Desk


@pytest.fixture
def fresh(tmp_path: Path) -> Desk:
    """A desk whose home is not there yet."""
    return Desk({"AGENT_NODE_HOME": str(tmp_path / "new" / "home"), "PATH": "/usr/bin:/bin"})


def home_of(desk: Desk) -> Home:
    return Home(Path(desk.environ["AGENT_NODE_HOME"]))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- init ----------------------------------------------------------------------------------------


def test_init_says_what_is_wrong_with_its_words_and_names_no_line(fresh: Desk) -> None:
    """Seen to fail: `agent-node init:6: name: …`, a line of a text that nobody has seen."""
    ran = fresh.run("init", "--name", "Iris")
    assert ran.code == 2
    assert "agent-node init: name: should match" in ran.err
    assert not home_of(fresh).root.exists()


def test_init_makes_a_private_home_with_the_settings_it_was_told(fresh: Desk) -> None:
    words = ["--skill", "ops", "--skill", "py", "--slots", "2", "--run", "sh -c 'echo hi'"]
    ran = fresh.run("init", "--name", "iris", *words)

    home = home_of(fresh)
    assert ran.code == 0
    assert [mode(path) for path in (home.root, home.tasks, home.backups)] == [0o700] * 3
    assert mode(home.config) == 0o600
    settings = read_settings(home.config)
    assert settings.name == "iris"
    agent = AgentSettings(name="iris", run=("sh", "-c", "echo hi"), slots=2, skills=("ops", "py"))
    assert settings.agents == (agent,)
    assert sorted(os.listdir(home.root)) == ["backups", "node.toml", "tasks"]


def test_init_warns_of_a_program_that_is_not_here(fresh: Desk) -> None:
    """Seen to fail: the first word of it was a task that had died."""
    for words in (("--dry-run",), (), ()):
        said = fresh.run("init", "--name", "iris", "--run", "no-such-program -p", *words, "--json")
        assert said.code == 0
        (warning,) = said.envelope["warnings"]
        assert warning.startswith("agent iris: there is no program no-such-program here: it is ")


def test_init_without_a_program_says_what_is_missing(fresh: Desk) -> None:
    assert "none yet: fill in [[agent]]" in fresh.run("init", "--name", "iris").out


def test_a_second_init_of_the_same_name_changes_nothing(fresh: Desk) -> None:
    fresh.run("init", "--name", "iris")
    home_of(fresh).config.write_text('name = "iris"\n# mine\n', encoding="utf-8")
    ran = fresh.run("init", "--name", "iris", "--json")
    assert ran.code == 0
    assert ran.envelope["data"]["created"] is False
    assert home_of(fresh).config.read_text(encoding="utf-8") == 'name = "iris"\n# mine\n'


def test_a_second_init_that_wants_other_agents_says_that_it_ignored_them(fresh: Desk) -> None:
    fresh.run("init", "--name", "iris")
    ran = fresh.run("init", "--name", "iris", "--run", "sh")
    assert (ran.code, ran.err) == (
        0,
        "warning: node.toml was left as it is; change agents there\n",
    )


def test_a_second_init_of_another_name_is_refused(fresh: Desk) -> None:
    fresh.run("init", "--name", "iris")
    ran = fresh.run("init", "--name", "loom")
    assert ran.code == 2
    assert ran.err.startswith("error[other_node]")
    assert read_settings(home_of(fresh).config).name == "iris"


@pytest.mark.parametrize(
    "words",
    [
        ["--name", "Iris"],
        ["--name", "iris", "--slots", "0", "--run", "sh"],
        ["--name", "iris", "--run", "sh 'unclosed"],
    ],
)
def test_a_bad_init_makes_nothing(fresh: Desk, words: list[str]) -> None:
    assert fresh.run("init", *words).code == 2
    assert not home_of(fresh).root.exists()


def test_a_dry_init_shows_the_file_and_makes_nothing(fresh: Desk) -> None:
    ran = fresh.run("init", "--name", "iris", "--dry-run", "--json")
    assert parse_settings(ran.envelope["data"]["node_toml"]).name == "iris"
    assert not home_of(fresh).root.exists()


def test_a_dry_init_of_a_home_that_is_there_is_still_a_dry_run(fresh: Desk) -> None:
    """Seen to fail before: it said `dry_run` false."""
    for dry, more in ((False, ()), (True, ("--dry-run",)), (False, ())):
        ran = fresh.run("init", "--name", "iris", "--json", *more)
        assert (ran.code, ran.envelope["data"]["dry_run"]) == (0, dry)


def test_init_does_not_close_an_open_folder_by_itself(desk: Desk) -> None:
    home_of(desk).root.chmod(0o755)
    ran = desk.run("init", "--name", "iris")
    assert ran.code == 2
    assert "chmod 700" in ran.err
    assert not home_of(desk).config.exists()


def test_init_never_overwrites_what_appears(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shown once with a rename in the place of the link: the other's file was gone."""
    home = home_of(desk)
    real = os.fsync

    def somebody_else_is_faster(descriptor: int) -> None:
        home.config.write_text('name = "loom"\n', encoding="utf-8")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", somebody_else_is_faster)
    assert desk.run("init", "--name", "iris").code == 1
    assert read_settings(home.config).name == "loom"
    assert not [name for name in os.listdir(home.root) if name.startswith(".node.toml")]


# --- unit ----------------------------------------------------------------------------------------


def test_the_unit_stops_the_daemon_alone_and_always_starts_it_again(desk: Desk) -> None:
    ran = desk.run("unit")
    for line in ("KillMode=process", "Delegate=yes", "Restart=always", "UMask=0077"):
        assert line in ran.out.splitlines()
    assert "TasksMax=15%" in ran.out.splitlines(), "what forks without end leaves the machine room"
    assert "loginctl enable-linger" in ran.out
    assert f"Environment=AGENT_NODE_HOME={desk.environ['AGENT_NODE_HOME']}" in ran.out


def test_the_unit_waits_longer_than_the_daemon_does() -> None:
    assert "TimeoutStopSec=55" in render_unit(["agent-node"], home="/h", stop_grace_s=40)


def test_what_systemd_would_read_otherwise_is_quoted() -> None:
    unit = render_unit(["/opt/my node/x", "a$b", "50%"], home='/srv/a "b"', stop_grace_s=1)
    assert 'ExecStart="/opt/my node/x" a$$b "50%%"' in unit
    assert 'Environment="AGENT_NODE_HOME=/srv/a \\"b\\""' in unit


# --- run and serve -------------------------------------------------------------------------------


def test_run_hands_over_to_the_daemon(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Home, bool]] = []

    def run(home: Home, *, until_idle: bool) -> Ended:
        calls.append((home, until_idle))
        return Ended(3, ())

    monkeypatch.setitem(sys.modules, "agent_node.running", types.SimpleNamespace(run=run))
    assert desk.run("run", "--until-idle").code == 3
    assert calls == [(home_of(desk), True)]


def test_serve_speaks_only_the_wire_on_stdout(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    serve = types.SimpleNamespace(serve_stdio=lambda home: 0)
    monkeypatch.setitem(sys.modules, "agent_node.serve", serve)
    ran = desk.run("serve", "--stdio")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert desk.run("serve").code == 2


# --- doctor --------------------------------------------------------------------------------------

NOW = datetime.now(UTC)


def checks(desk: Desk, now: datetime = NOW) -> dict[str, Check]:
    return {check.name: check for check in doctor.examine(home_of(desk), desk.environ, now)}


@pytest.fixture
def set_up(desk: Desk) -> Desk:
    desk.now = datetime.now(UTC)
    desk.run("init", "--name", "iris", "--run", "sh")
    return desk


def settings_with(desk: Desk, old: str, new: str) -> None:
    path = home_of(desk).config
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_new_node_has_no_findings(set_up: Desk) -> None:
    found = doctor.examine(home_of(set_up), set_up.environ, datetime.now(UTC))
    assert [check for check in found if check.level == "finding"] == []


def test_findings_are_exit_6_and_stand_first(set_up: Desk) -> None:
    settings_with(set_up, 'run = ["sh"]', 'run = ["no-such-program"]')
    ran, as_json = set_up.run("doctor"), set_up.run("doctor", "--json")
    assert ran.code == as_json.code == 6
    assert ran.out.startswith("doctor: 1 finding, ")
    assert ran.out.splitlines()[1].startswith("  finding  ")
    assert as_json.envelope["ok"] is True


@pytest.mark.parametrize(
    ("old", "new", "name", "said"),
    [
        ('run = ["sh"]', 'run = ["gone"]', "agent iris", "program gone was not found"),
        ('run = ["sh"]', 'run = ["/bin/gone"]', "agent iris", "program /bin/gone was not found"),
        ('# cwd = "/srv/work"', 'cwd = "/gone"', "agent iris", "cwd /gone is no folder"),
        ("# prefix = []", 'prefix = ["gone"]', "agent iris", "program gone was not found"),
        ('# disk_floor = "1GiB"', 'disk_floor = "900000TiB"', "disk", "free, the floor is"),
        ("slots = 1", "slots = 0", "settings", "slots: should lie"),
        ("[[agent]]", "[[agnet]]", "settings", 'did you mean "agent"?'),
    ],
)
def test_what_cannot_work_is_a_finding(
    set_up: Desk, old: str, new: str, name: str, said: str
) -> None:
    settings_with(set_up, old, new)
    check = checks(set_up)[name]
    assert check.level == "finding"
    assert said in check.text
    assert check.fix


def test_a_variable_nobody_set_is_worth_a_note(set_up: Desk) -> None:
    settings_with(set_up, "# env = []", 'env = ["NOT_SET_HERE"]')
    notes = [c for c in doctor.examine(home_of(set_up), set_up.environ, NOW) if c.level == "note"]
    assert any("NOT_SET_HERE" in check.text for check in notes)


def test_a_home_that_is_refused_is_the_last_thing_looked_at(desk: Desk) -> None:
    home_of(desk).root.chmod(0o755)
    found = checks(desk)
    assert list(found)[-1] == "home"
    assert found["home"].fix.startswith("chmod 700")


def test_a_file_others_may_read_is_a_finding(set_up: Desk) -> None:
    home_of(set_up).config.chmod(0o644)
    assert checks(set_up)["files"].fix == f"chmod 600 {home_of(set_up).config}"


def test_a_clock_behind_the_files_is_a_finding(set_up: Desk) -> None:
    assert checks(set_up, datetime(2020, 1, 1, tzinfo=UTC))["clock"].level == "finding"


def test_the_daemon_is_seen_by_its_socket(set_up: Desk) -> None:
    home = home_of(set_up)
    assert "does not run" in checks(set_up)["daemon"].text
    lock = HomeLock.try_take(home)
    assert lock is not None
    with lock:
        assert f"pid {os.getpid()} holds the lock" in checks(set_up)["daemon"].text
        with listen(home, lock):
            assert checks(set_up)["daemon"].text == f"runs, pid {os.getpid()}, and listens"


@pytest.mark.parametrize("journal", ["wal", "truncate"])
def test_the_journal_in_force_is_read_from_the_file_itself(set_up: Desk, journal: str) -> None:
    db = sqlite3.connect(home_of(set_up).database)
    db.execute(f"PRAGMA journal_mode = {journal}")
    db.execute("CREATE TABLE t (x)")
    db.close()
    home_of(set_up).database.chmod(0o600)
    before = sorted(os.listdir(home_of(set_up).root))

    check = checks(set_up)["journal"]
    assert check.text.startswith(journal)
    assert check.level == ("ok" if journal == "wal" else "note")
    assert sorted(os.listdir(home_of(set_up).root)) == before


@pytest.mark.parametrize(
    ("mode", "synchronous", "level", "says"),
    [
        ("wal", "2", "ok", "wal with synchronous=FULL, read back by the daemon: readers"),
        ("delete", "2", "note", "delete with synchronous=FULL, read back by the daemon: nobody"),
        ("wal", "1", "finding", "wal with synchronous=NORMAL, read back by the daemon: the next"),
    ],
)
def test_a_daemon_that_runs_says_itself_what_is_in_force(
    set_up: Desk, monkeypatch: pytest.MonkeyPatch,
    mode: str, synchronous: str, level: str, says: str,
) -> None:  # fmt: skip
    """Seen to fail before: whatever was in force, FULL was said of it, and truncate of any other
    journal than WAL."""
    home_of(set_up).database.write_bytes(b"its header is not looked at")
    said: dict[str, object] = {"store": {"journal_mode": mode, "synchronous": synchronous}}
    monkeypatch.setattr(doctor, "ask_daemon", lambda home, request, timeout_s: said)
    check = checks(set_up)["journal"]
    assert check.text.startswith(says)
    assert check.level == level


def test_settings_that_a_daemon_has_not_read_are_not_said_to_be_in_force(
    set_up: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: `0 findings` and `ok`, while the daemon ran on without the program."""
    read = {"version": __version__, "sha256": read_settings(home_of(set_up).config).digest()}
    monkeypatch.setattr(doctor, "ask_daemon", lambda home, request, timeout_s: {"settings": read})
    assert checks(set_up)["settings"].level == "ok"
    settings_with(set_up, 'run = ["sh"]', '# a word\nrun = ["sh"]')
    assert checks(set_up)["settings"].level == "ok", "it says the same"
    settings_with(set_up, 'run = ["sh"]', 'run = ["env"]')
    check = checks(set_up)["settings"]
    assert check.level == "note"
    assert "was changed since the daemon read it, which runs on by what it said" in check.text
    assert check.fix == "agent-node stop, then agent-node start"
    read["version"] = "0.0.9"
    assert checks(set_up)["settings"].level == "ok", "another version reads it differently"


def test_the_doctor_says_of_a_program_that_is_missing_where_to_mend_it_and_to_restart(
    set_up: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Seen to fail: no word of the restart, and of a cwd that may not be entered `ok`."""
    settings_with(set_up, 'run = ["sh"]', 'run = ["nosuchprog"]')
    check = checks(set_up)["agent iris"]
    assert "program nosuchprog was not found" in check.text
    assert check.fix.endswith("run in node.toml; after that agent-node stop, then agent-node start")
    settings_with(set_up, 'run = ["nosuchprog"]', f'run = ["sh"]\ncwd = "{tmp_path}"')
    assert checks(set_up)["agent iris"].level == "ok"
    may = os.access
    monkeypatch.setattr("os.access", lambda path, mode: path != str(tmp_path) and may(path, mode))
    assert checks(set_up)["agent iris"].text == f"cwd {tmp_path} may not be entered"


def test_a_task_that_stays_because_of_its_folder_is_named_with_what_mends_it(
    set_up: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: nobody was told of it, and it stayed for ever."""
    tasks = home_of(set_up).tasks
    tasks.mkdir(exist_ok=True)
    kept = [{"uid": uid(n), "because": "Permission denied"} for n in (1, 2)]
    (tasks / uid(1)).mkdir()
    said: dict[str, object] = {"folders_kept": {"count": 2, "folders": kept}}
    monkeypatch.setattr(doctor, "ask_daemon", lambda home, request, timeout_s: said)
    check = checks(set_up)["old tasks"]
    assert check.level == "finding"
    assert check.text.startswith("1 folder of tasks that ended long ago cannot be removed "
                                 "(Permission denied)"), "the other has gone meanwhile"
    assert "costs the disk that they take; nothing else is affected" in check.text
    assert check.fix.startswith(f"sudo rm -r --one-file-system {tasks / uid(1)}; ")
    (tasks / uid(1)).rmdir()
    assert checks(set_up)["old tasks"].level == "ok"
    said["folders_kept"] = None
    assert "old tasks" not in checks(set_up), "no daemon has tried yet"


def test_what_a_daemon_did_not_name_is_not_said_to_have_gone(
    set_up: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: whoever removed the first twenty by hand was told that all had gone."""
    said: dict[str, object] = {"folders_kept": {
        "count": 21, "folders": [{"uid": uid(n), "because": "x"} for n in range(1, 21)]}}
    monkeypatch.setattr(doctor, "ask_daemon", lambda home, request, timeout_s: said)
    check = checks(set_up)["old tasks"]
    assert (check.level, check.text[:13]) == ("finding", "1 more folder")


def test_nothing_but_a_task_is_named_to_be_removed(
    set_up: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail without the look at the uid: `sudo rm -r` of the home itself."""
    kept = [{"uid": "..", "because": "x"}]
    said: dict[str, object] = {"folders_kept": {"count": 1, "folders": kept}}
    monkeypatch.setattr(doctor, "ask_daemon", lambda home, request, timeout_s: said)
    assert checks(set_up)["old tasks"].level == "ok"


def test_without_a_daemon_no_more_is_said_than_the_header_tells(set_up: Desk) -> None:
    home_of(set_up).database.write_bytes(bytes([0] * 18 + [1, 1]))
    check = checks(set_up)["journal"]
    assert check.text.startswith("truncate, or another rollback journal, by the file's own header")
    assert f"node.toml says wal: {WHY_WAL}" in check.text


WHY_WAL = "readers and the one writer do not wait for each other, and a commit is one fsync"
WHY_TRUNCATE = "node.toml asked for it; readers wait while the one writer commits"


@pytest.mark.parametrize("there", [True, False], ids=["a database", "none yet"])
@pytest.mark.parametrize(
    ("journal", "mark", "why"), [("wal", 2, WHY_WAL), ("truncate", 1, WHY_TRUNCATE)]
)
def test_without_a_daemon_it_is_said_too_why_this_journal(
    set_up: Desk, journal: str, mark: int, why: str, *, there: bool
) -> None:
    home = home_of(set_up)
    home.config.write_text(f'journal = "{journal}"\n{home.config.read_text()}')
    home.database.unlink(missing_ok=True)
    if there:
        home.database.write_bytes(bytes([0] * 18 + [mark, mark]))
    check = checks(set_up)["journal"]
    assert (check.level, check.text.endswith(f": {why}")) == ("ok", True), check.text


@pytest.mark.parametrize(
    ("version", "faulty"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 0), True),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 52, 0), False),
    ],
)
def test_the_wal_reset_fault_is_known_by_version(
    version: tuple[int, int, int], *, faulty: bool
) -> None:
    assert doctor.has_wal_reset_fault(version) is faulty
    check = doctor.check_sqlite(version)
    assert check.level == ("note" if faulty else "ok")
    assert ("one connection alone" in check.text) is faulty


def test_a_cgroup_of_ours_is_told_apart_from_none() -> None:
    assert doctor.check_cgroups(None).level == "note"
    assert doctor.check_cgroups("/sys/fs/x").text == "/sys/fs/x: ours to divide"


def test_doctor_looks_for_the_cgroup_of_the_daemon_and_not_for_that_of_a_shell(
    fresh: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail, with a systemd that runs: `none is delegated`, typed beside a daemon which made
    a cgroup for each attempt.
    """
    fresh.run("init", "--name", "iris", "--run", "sh -c true")
    asked: list[int | None] = []
    monkeypatch.setattr(doctor, "find_base_of", asked.append)
    fresh.run("doctor")
    lock = HomeLock.try_take(home_of(fresh))
    assert lock is not None
    with lock:
        fresh.run("doctor")
    assert asked == [None, os.getpid()]


def test_a_command_that_is_none_is_answered_with_where_they_stand(fresh: Desk) -> None:
    """Seen to fail before: there was no hint."""
    for words in (("nope",), ("help", "nope")):
        ran = fresh.run(*words, "--json")
        assert (ran.code, ran.envelope["error"]["hint"]) == (2, "agent-node help")
