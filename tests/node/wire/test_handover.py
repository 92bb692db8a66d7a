"""A session is given to the daemon by a start that loads next to nothing, and by nobody else."""

from __future__ import annotations

import _socket
import importlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from agent_node import handover
from agent_node.handover import hand_over
from agent_node.home import Home
from agent_node.packing import build_zipapp
from tests.node.wire.processes import Program, a_daemon, a_program, a_serve, door_socket
from tests.node.wire.talking import a_home
from tools.interpreters import SUPPORTED, find_interpreter

SERVE = ("serve", "--stdio")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path / "iris")


@pytest.fixture(scope="module")
def zipapp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By a link, as a forced command names it."""
    folder = tmp_path_factory.mktemp("program")
    build_zipapp(folder / "agent-node-0.pyz")
    (folder / "agent-node.pyz").symlink_to("agent-node-0.pyz")
    return folder / "agent-node.pyz"


@contextmanager
def a_session(*start: str, **environ: str) -> Iterator[Program]:
    with a_program("-I", "-S", *start, *SERVE, env={"PATH": os.defpath, **environ}) as program:
        yield program


def loaded(program: Program) -> set[str]:
    """The modules of ours that it said it imports; it has ended."""
    return {name for name in imported(program.complaint()) if re.match("agent_node|handover", name)}


def imported(said: str) -> set[str]:
    """What `-X importtime` tells of."""
    return set(re.findall(r"^import time:[^|]*\|[^|]*\| +([\w.]+)$", said, re.MULTILINE))


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_session_of_a_running_daemon_loads_one_module_more_than_python(
    home: Home, zipapp: Path, version: str
) -> None:
    """Guard: `FIRST`. Without it Python itself loads twenty for a zip, and the long way sixty.

    A Python that begins a zip in another way works as well, and this test is how it is noticed.
    """
    python = find_interpreter(version)
    if python is None:
        pytest.skip(f"needs python{version}: none answers here")
    start = [str(python), "-I", "-S", "-X", "importtime"]
    alone = subprocess.run([*start, "-c", "pass"], capture_output=True, text=True, check=True)
    environ = {"PATH": os.defpath, "AGENT_NODE_HOME": str(home.root)}
    with a_daemon(home.root), a_program(
        *start[1:], str(zipapp), *SERVE, python=start[0], env=environ
    ) as session:
        assert session.hear()["node"] == "iris"
        assert session.ask("doubts") == {"doubts": []}
        session.no_more()
        assert session.ended() == 0
        more = imported(session.complaint()) - imported(alone.stderr)
        assert more - {"_socket", "_stat"} == {"handover"}


def test_a_session_that_goes_the_long_way_has_pythons_own_importlib(
    home: Home, zipapp: Path
) -> None:
    """Guard: the end of `FIRST`. With ours in its place nobody could import a module by its name.

    It is the first of all imports here too, and of a path that names the zip twice.
    """
    ask = ("import sys; sys.path[:0] = [sys.argv[1], sys.argv[1] + '/']; path = sys.path[:];"
           "import importlib; assert sys.path == path; assert importlib.__spec__.origin;"
           "print(importlib.__spec__.origin, importlib.import_module('agent_node.ulid').__file__)")
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-W", "error", "-c", ask, zipapp], capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    origin, file = said.stdout.split() if not said.stderr else ("", said.stderr)
    assert origin == importlib.__file__
    assert file.startswith(f"{zipapp}/agent_node/ulid.py")


def test_neither_does_it_where_the_program_is_no_zipapp(home: Home) -> None:
    start = "import sys; sys.path.insert(0, '.'); from agent_node.cli import main; sys.exit(main())"
    with a_daemon(home.root), a_session(
        "-X", "importtime", "-c", start, AGENT_NODE_HOME=str(home.root)
    ) as session:
        assert session.hear()["node"] == "iris"
        session.no_more()
        assert session.ended() == 0
        assert loaded(session) == {"agent_node", "agent_node.cli", "agent_node.handover"}


def test_without_a_daemon_the_zipapp_answers_by_itself(home: Home, zipapp: Path) -> None:
    with a_session(str(zipapp), AGENT_NODE_HOME=str(home.root)) as session:
        assert session.hear()["node"] == "iris"
        assert session.ask("status")["dispatcher"] == "stopped"
        session.no_more()
        assert session.ended() == 0


def test_the_usual_home_is_found_without_its_variable(tmp_path: Path, zipapp: Path) -> None:
    home = a_home(tmp_path / ".agent-node")
    with a_daemon(home.root), a_session(
        "-X", "importtime", str(zipapp), HOME=str(tmp_path), AGENT_NODE_HOME=""
    ) as session:
        assert session.hear()["node"] == "iris"
        session.no_more()
        assert session.ended() == 0
        assert loaded(session) == {"handover"}


def test_a_home_that_others_can_reach_is_refused_with_a_daemon_too(
    home: Home, zipapp: Path
) -> None:
    """Guard: `_is_ours_alone`. Without it whoever put the socket there is believed; seen."""
    with a_daemon(home.root):
        home.root.chmod(0o750)
        with a_session(str(zipapp), AGENT_NODE_HOME=str(home.root)) as session:
            assert session.line() == b""
            assert session.ended() == 2
            assert "home_open_to_others" in session.complaint()


def test_a_home_that_is_not_there_is_told_as_ever(tmp_path: Path, zipapp: Path) -> None:
    with a_session(str(zipapp), AGENT_NODE_HOME=str(tmp_path / "none")) as session:
        assert session.ended() == 2
        assert "home_missing" in session.complaint()


def test_a_file_on_stdin_is_relayed_for_the_daemon_cannot_wait_for_it(
    home: Home, zipapp: Path, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    asked.write_bytes(b'{"id":1,"do":"doubts"}\n' * 3)
    with a_daemon(home.root), asked.open("rb") as file:
        said = subprocess.run(
            [sys.executable, "-I", "-S", zipapp, *SERVE], stdin=file, capture_output=True,
            env={"PATH": os.defpath, "AGENT_NODE_HOME": str(home.root)}, timeout=20, check=True,
        ).stdout.splitlines()  # fmt: skip
    assert [json.loads(line).get("id") for line in said] == [None, 1, 1, 1]


def test_when_the_daemon_is_killed_the_hub_is_told_to_ask_again(home: Home, zipapp: Path) -> None:
    with a_daemon(home.root) as daemon, a_session(
        str(zipapp), AGENT_NODE_HOME=str(home.root)
    ) as session:
        session.hear()
        daemon.kill()
        assert session.ended() == 1
        assert "ask again" in session.complaint()


@pytest.mark.parametrize("by", ["one module", "the long way"])
def test_where_too_many_talk_the_hub_hears_why_there_is_no_session(home: Home, by: str) -> None:
    """Guard: `_line_of`. Without it four bytes are read, or none, and the reason is lost; seen.

    The daemon may have closed before anything was handed over, or after.
    """
    with a_daemon(home.root), ExitStack() as crowd:
        for _ in range(64):
            crowd.enter_context(door_socket(home))
        start = "from agent_node.cli import main; sys.exit(main())"
        session = (
            a_session("-c", f"import sys; sys.path.insert(0, '.'); {start}",
                      AGENT_NODE_HOME=str(home.root))
            if by == "one module" else a_serve(home.root)
        )  # fmt: skip
        with session as refused:
            told = refused.hear()
            assert (told["id"], told["ok"], told["error"]["code"]) == (None, False, "crowded")
            assert refused.line() == b""
            assert refused.ended() == 1


def test_a_daemon_that_closes_before_it_is_asked_is_heard_all_the_same() -> None:
    refusal = b'{"id":null,"ok":false,"error":{"code":"crowded","message":"later"}}\n'
    ours, daemon = _socket.socketpair()
    (stdin, hub_says), (hub_hears, stdout) = os.pipe(), os.pipe()
    daemon.send(refusal)
    daemon.close()
    os.set_blocking(hub_hears, False)
    assert hand_over(ours, stdin, stdout) == 1
    assert os.read(hub_hears, 4096) == refusal
    for descriptor in (stdin, hub_says, hub_hears, stdout):
        os.close(descriptor)


# So many descriptors are on their way already that this user may send no more.
CROWDED = """import ctypes, os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
for power in (21, 24):  # of one who administers, or has no limits
    ctypes.CDLL(None).prctl(24, power, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-I", "-S", *sys.argv[1:]])
"""


def test_what_the_kernel_does_not_carry_is_relayed(home: Home, zipapp: Path) -> None:
    """Guard: the second `except` of `_give`. Without it the hub met a traceback; seen."""
    ours, theirs = socket.socketpair()
    socket.send_fds(ours, [b"."], [0] * 64)
    with ours, theirs, a_daemon(home.root), a_session(
        "-c", CROWDED, str(zipapp), AGENT_NODE_HOME=str(home.root)
    ) as session:
        assert session.hear()["node"] == "iris"
        assert session.ask("status")["node"] == "iris"
        session.no_more()
        assert (session.ended(), session.complaint()) == (0, "")


def test_who_waits_for_a_stopped_daemon_leaves_when_its_hub_has_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen to fail: while a daemon is stopped, each hub that comes again left a process behind."""
    monkeypatch.setattr(handover, "LOOK_S", 0.05)
    ours, daemon = _socket.socketpair()
    (stdin, hub_says), (hub_hears, stdout) = os.pipe(), os.pipe()
    os.write(hub_says, b"a request that nobody reads\n")
    with ThreadPoolExecutor() as threads, closing(daemon):  # who waits all the same is let go
        waiting = threads.submit(hand_over, ours, stdin, stdout)
        assert wait([waiting], timeout=0.5).not_done, "the hub is there: it decides how long"
        os.set_blocking(stdin, False)  # as a daemon does with what it was given
        os.close(hub_says)
        assert waiting.result(timeout=30) == 1
    assert not os.get_blocking(stdin), "a daemon that goes on must not meet one that blocks"
    for descriptor in (stdin, hub_hears, stdout):
        os.close(descriptor)


def test_ctrl_c_ends_a_session_without_a_traceback(home: Home, zipapp: Path) -> None:
    with a_daemon(home.root), a_session(
        str(zipapp), AGENT_NODE_HOME=str(home.root)
    ) as session:
        session.hear()
        session.process.send_signal(2)
        assert session.ended() == 130
        assert session.complaint() == ""
