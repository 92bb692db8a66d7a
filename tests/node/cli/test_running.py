"""Claims about every command alike: exit codes, envelopes, errors, streams."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys

import pytest

from agent_node import errors
from agent_node.cli.around import LOOKS
from agent_node.cli.catalogue import COMMANDS
from agent_node.cli.running import _parser, _runnable
from agent_node.replies import ASKS
from tests.node.cli.desk import UID, Desk, a_task


def start(desk: Desk, *words: str | bytes) -> subprocess.CompletedProcess[bytes]:
    environ = {"PYTHONPATH": os.getcwd(), **desk.environ}
    command = [sys.executable, "-m", "agent_node", *words]
    return subprocess.run(command, env=environ, capture_output=True, timeout=60, check=False)


def test_an_answer_is_one_line_of_json_with_its_schema(desk: Desk) -> None:
    desk.door.replies["list"] = {"tasks": [a_task()], "next": None}
    ran = desk.run("list", "--json")

    assert ran.code == 0
    assert list(ran.envelope) == ["schema", "ok", "as_of", "data", "partial", "warnings"]
    assert ran.envelope["schema"] == "node.list/1"
    assert ran.envelope["as_of"] == "2026-03-10T03:45:02.000Z"


def test_json_may_stand_before_the_command(desk: Desk) -> None:
    desk.door.replies["list"] = {"tasks": []}
    assert desk.run("--json", "list").envelope["ok"] is True


def test_a_failure_is_an_envelope_on_stdout_with_the_same_exit_code(desk: Desk) -> None:
    desk.door.replies["pause"] = errors.Refused("old_term", "a hub of term 4 was here", "old_term")
    plain, as_json = desk.run("pause"), desk.run("pause", "--json")

    assert plain.code == as_json.code == 1
    assert plain.out == ""
    assert plain.err == "error[old_term]: a hub of term 4 was here\n"
    assert as_json.envelope["error"] == {
        "code": "old_term",
        "message": "a hub of term 4 was here",
        "rule": "old_term",
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotRunning("no daemon"), 8),
        (errors.DoorTimeout("no answer within 30s"), 9),
        (errors.Starting("the lock is held"), 1),
        (errors.Refused("not_found", "no such task"), 5),
        (errors.Refused("needs_alone", "say --alone"), 7),
    ],
)
def test_each_error_of_the_door_has_its_exit_code(desk: Desk, error: Exception, code: int) -> None:
    desk.door.replies["status"] = error
    assert desk.run("status").code == code


def test_an_unknown_command_is_wrong_use_with_a_suggestion(desk: Desk) -> None:
    ran = desk.run("lst", "--json")
    assert ran.code == 2
    assert 'did you mean "list"?' in ran.envelope["error"]["message"]


def test_wrong_options_are_an_envelope_too(desk: Desk) -> None:
    ran = desk.run("show", "--json")
    assert ran.code == 2
    assert ran.envelope["error"]["code"] == "usage"
    assert ran.envelope["error"]["hint"] == "agent-node show --help"


@pytest.mark.parametrize("words", [("--pririty", "3", "x"), ("--pririty=3", "x")])
def test_a_mistyped_option_is_told_the_near_one(desk: Desk, words: tuple[str, ...]) -> None:
    """Seen to fail: `unrecognized arguments: --pririty x`, and no more."""
    ran = desk.run("add", *words, "--json")
    assert ran.code == 2
    assert 'did you mean "--priority"?' in ran.envelope["error"]["message"]
    assert "did you mean" not in desk.run("add", "x", "y").err


@pytest.mark.parametrize("word", ["", "  ", "=x"])
def test_a_word_without_a_name_is_wrong_use(desk: Desk, word: str) -> None:
    """Seen to fail: an empty variable of a shell ended in `fault`, as a fault of ours."""
    ran = desk.run("status", word)
    assert (ran.code, "error[usage]: agent-node status: unrecognized" in ran.err) == (2, True)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(desk: Desk, name: str) -> None:
    ran = desk.run("help", name)
    assert ran.code == 0
    assert ran.out == desk.run(name, "--help").out
    assert f"usage: agent-node {name}" in ran.out


CHANGES = (
    "init add set cancel retry resolve release pause resume drain heartbeat progress spawn"
).split()


@pytest.mark.parametrize("name", CHANGES)
def test_everything_that_changes_something_takes_dry_run(name: str) -> None:
    assert "--dry-run" in _parser(name, _runnable(name)).format_help()


def test_a_fault_of_ours_is_one_line_and_no_traceback(desk: Desk) -> None:
    desk.door.replies["status"] = ZeroDivisionError("oops")
    ran = desk.run("status")
    assert ran.code == 1
    assert ran.err.startswith("error[fault]: agent-node status: ended early: ZeroDivisionError")
    assert "Traceback" not in ran.err
    assert "desk.py:" in ran.err


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_a_disk_that_fails_anywhere_is_no_fault_of_ours(desk: Desk, number: int) -> None:
    """Fails when an error of the disk that nobody expected is told as one of ours."""
    desk.door.replies["status"] = OSError(number, os.strerror(number), "tasks")
    ran = desk.run("status")
    assert ran.code == 1
    assert ran.err.startswith("error[disk_broken]: agent-node status: ended early: the disk")


def test_a_fault_can_be_traced_on_request(desk: Desk) -> None:
    desk.environ["ARC_TRACEBACK"] = "1"
    desk.door.replies["status"] = ZeroDivisionError("oops")
    assert "Traceback" in desk.run("status").err


def test_ctrl_c_ends_quietly_with_130(desk: Desk) -> None:
    desk.door.replies["status"] = KeyboardInterrupt()
    ran = desk.run("status")
    assert (ran.code, ran.out, ran.err) == (130, "", "")


def test_a_closed_pipe_ends_quietly_with_141(desk: Desk) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = start_into(desk, writing)
    assert (ran.returncode, ran.stderr) == (141, b"")


def start_into(desk: Desk, stdout: int) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [sys.executable, "-m", "agent_node", "help"],
            env={"PYTHONPATH": os.getcwd(), **desk.environ},
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(stdout)


def test_a_full_disk_under_stdout_is_told_once(desk: Desk) -> None:
    ran = start_into(desk, os.open("/dev/full", os.O_WRONLY))
    assert ran.returncode == 1
    assert ran.stderr.startswith(b"error[output_failed]: stdout: could not be written: No space")
    assert ran.stderr.count(b"\n") == 1


def test_a_broken_pipe_of_the_door_is_not_taken_for_a_reader_who_left(desk: Desk) -> None:
    desk.door.replies["status"] = BrokenPipeError(32, "Broken pipe")
    assert desk.run("status").code == 1


def test_what_a_task_says_cannot_drive_the_terminal(desk: Desk) -> None:
    wild = "\x1b]0;gone\x07\x9b2J\u202ereversed"
    desk.door.replies["list"] = {"tasks": [a_task(subject=wild)]}
    desk.door.replies["show"] = {"task": a_task(subject=wild, body=wild + "\r\n\x1b[2J")}
    for ran in (desk.run("list"), desk.run("list", "--json"), desk.run("show", UID)):
        assert not {"\x1b", "\x9b", "\u202e", "\x07", "\r"} & set(ran.out)
    assert "\\x1b]0;gone\\x07\\x9b2J\\u202ereversed" in desk.run("list").out


def test_errors_cannot_drive_the_terminal_either(desk: Desk) -> None:
    desk.door.replies["status"] = errors.Refused("bad", "said \x1b[2J")
    assert desk.run("status").err == "error[bad]: said \\x1b[2J\n"


def test_bytes_that_are_no_text_are_one_error_with_the_field(desk: Desk) -> None:
    ran = start(desk, "add", b"caf\xe9", "--json")
    error = json.loads(ran.stdout)["error"]
    assert ran.returncode == 2
    assert error["where"] == "subject"
    assert error["message"] == "subject: is not valid UTF-8 at character 4"
    assert ran.stderr == b""


def test_version_imports_next_to_nothing(desk: Desk) -> None:
    code = (
        f"import sys; sys.path.insert(0, {os.getcwd()!r}); from agent_node.cli import main; "
        "main(['version']); print(*sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    version, modules = told.splitlines()
    assert version.startswith("agent-node ")
    heavy = "argparse sqlite3 json subprocess asyncio ssl logging inspect re pathlib".split()
    assert not set(heavy) & set(modules.split())


def test_version_in_json_names_python_and_wire(desk: Desk) -> None:
    data = desk.run("version", "--json").envelope["data"]
    assert set(data) == {"version", "wire", "oldest_wire", "schema", "program", "python",
                         "executable"}  # fmt: skip


def test_without_a_command_the_overview_is_the_error(desk: Desk) -> None:
    ran = desk.run()
    assert ran.code == 2
    assert "From inside a running task:" in ran.err


def test_the_home_is_checked_before_the_door_is_used(desk: Desk) -> None:
    os.chmod(desk.environ["AGENT_NODE_HOME"], 0o755)
    ran = desk.run("status", "--json")
    assert ran.code == 2
    assert ran.envelope["error"]["code"] == "home_open_to_others"
    assert ran.envelope["error"]["hint"] == f"chmod 700 {desk.environ['AGENT_NODE_HOME']}"
    assert desk.door.requests == []


def test_a_stream_that_cannot_say_a_character_shows_its_code(desk: Desk) -> None:
    desk.environ["PYTHONIOENCODING"] = "latin-1"
    ran = start(desk, "list", "--limit", "\N{SNOWMAN}")
    assert ran.returncode == 2
    assert b"Traceback" not in ran.stderr


def test_an_answer_that_is_no_list_is_an_error_and_not_emptiness(desk: Desk) -> None:
    desk.door.replies["list"] = {}
    ran = desk.run("list")
    assert ran.code == 1
    assert ran.err.startswith("error[strange_answer]")


def test_output_goes_to_the_stream_that_was_given(desk: Desk) -> None:
    stream = io.StringIO()
    desk.run("help", stdout=stream)
    assert stream.getvalue().startswith("agent-node COMMAND")


@pytest.mark.parametrize(
    ("words", "told"),
    [(("pause",), True), (("add", "x"), True), (("cancel", UID), True),
     (("status",), False), (("list",), False)],
)  # fmt: skip
def test_an_interrupted_change_may_have_happened_and_a_look_says_nothing(
    desk: Desk, words: tuple[str, ...], told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: whoever interrupted a change was told nothing at all, with --json either."""
    monkeypatch.setattr(type(desk.door), "__call__", _interrupted)
    plain, as_json = desk.run(*words), desk.run(*words, "--json")
    assert (plain.code, as_json.code) == (130, 130)
    assert (plain.out, as_json.err) == ("", "")
    if not told:
        assert (plain.err, as_json.out) == ("", "")
        return
    assert plain.err.startswith(f"error[interrupted]: interrupted: {words[0]} was asked and may")
    assert as_json.envelope["error"]["code"] == "interrupted"


def _interrupted(*given: object, **more: object) -> dict[str, object]:
    raise KeyboardInterrupt


def test_what_is_said_to_look_only_looks() -> None:
    assert set(ASKS) >= LOOKS
