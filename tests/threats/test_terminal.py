"""What a task or a node says is shown by every command, and drives no terminal; a real emulator."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_node.cli.catalogue import COMMANDS
from agent_node.strict import JsonObject
from agent_node.text import safe_text
from arc.cli.around import Around
from arc.cli.joining_words import step_line
from arc.cli.running import WallClock, run_command
from arc.errors import NodeUnreachable
from arc.joining.asking import There
from arc.joining.errors import JoinRefused
from arc.joining.judging import judge
from arc.joining.steps import Step
from arc.operations import Told
from arc.text.joining import render_joined
from arc.text.look import Look
from arc.text.metrics import render_metrics
from arc.text.upgrading import render_statement_file, render_upgrade
from tests.hub.cli.desk import Desk, Ran
from tests.hub.cli.test_commands_page import there
from tests.hub.joining.test_judging import ROOT_FS, WANTED, a_look
from tests.node.cli import desk as node_desk
from tests.threats.hostile_desk import (
    A_GRAPH,
    ALL,
    CORPUS,
    ELSEWHERE,
    EVIL,
    OURS,
    SHOWN,
    STDIN,
    hostile_desk,
)
from tests.threats.screen import harm_done

QUIET = ("\x00", "\x0e", "\x7f")  # this emulator passes them over; others do not
UID = node_desk.UID
SEEN = re.compile(r"\\x[0189][0-9a-f]|\\u[0-9a-f]{4}")  # what cannot be printed, as it is shown


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A fleet in which everything that anybody may say is hostile."""
    made = hostile_desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


def test_every_command_is_shown_here_or_says_why_not() -> None:
    names = [*SHOWN, *OURS, *ELSEWHERE]
    assert sorted(names) == sorted(name.removeprefix("arc ") for name in there())


@pytest.mark.parametrize("name", SHOWN)
def test_no_command_lets_anything_but_its_own_lines_happen_to_a_terminal(
    desk: Desk, name: str
) -> None:
    """What is hostile was printed, and is to be seen. Seen to fail with `safe_text` letting what it
    gets through, and where a row ended before anything of others was printed.
    """
    ran = no_harm_is_done(desk, name, SHOWN[name])
    assert SEEN.search(ran.out + ran.err), "nothing hostile was printed: the row tests nothing"


@pytest.mark.parametrize("name", OURS)
def test_a_command_that_prints_our_own_words_shows_nothing_that_others_said(
    desk: Desk, name: str
) -> None:
    """One of which this is true no more belongs into the table above."""
    words, because = OURS[name]
    ran = no_harm_is_done(desk, name, words)
    assert not SEEN.search(ran.out + ran.err), f"not so: {because}"


def no_harm_is_done(desk: Desk, name: str, words: tuple[str, ...]) -> Ran:
    """How it ended, into a pipe; its text did nothing to a terminal, nor where somebody looks."""
    words = tuple(word.replace("{}", EVIL) for word in words)
    stdin = A_GRAPH if name == "dag submit" else STDIN
    ran = desk.arc(*words, stdin=stdin)
    assert ran.out + ran.err
    assert (harm_done(ran.out), harm_done(ran.err)) == ([], [])
    seen = desk.arc(*words, typed=stdin, environ={"COLUMNS": "120"})
    assert harm_done(seen.out, plain=False) == []
    assert harm_done(seen.err, plain=False) == []
    return ran


NODE_REPLIES: dict[str, Any] = {
    "list": {"tasks": [node_desk.a_task(subject=EVIL, skills=[EVIL], source=EVIL, domain=EVIL)]},
    "show": {"task": node_desk.a_task(subject=EVIL, body=ALL, failure_reason=EVIL, progress=EVIL,
                                      state="RUNNING", output=EVIL),
             "attempts": [{"n": 1, "agent": EVIL, "outcome": EVIL, "because": EVIL,
                           "started_at": "2026-03-10T03:40:02.000Z"}], "moves": []},
    "status": {"node": EVIL, "state": EVIL, "reason": EVIL, "dispatcher": EVIL, "needs_you": [EVIL],
               "agents": [{"name": EVIL, "state": EVIL, "slots": 1, "running": 0}], "version": EVIL,
               "counts": {EVIL: 1}},
    "spawn": {"uid": EVIL, "outcome": EVIL},
    "log": {"text": f"{ALL}\n", "next": 9, "attempt": 1, "ended": True},
    "budget": {"scopes": [{"scope": EVIL, "limit_usd": EVIL, "spent_usd": EVIL, "waiting": 1,
                           "reserved_usd": EVIL, "remaining_usd": EVIL}]},
    "graphs": {"dags": [{"id": UID, "title": EVIL, "state": EVIL, "reason": EVIL, "by": EVIL,
                         "total": 1, "open": 1, "bad": 0, "counts": {EVIL: 1}}], "next": None},
    **{do: {"state": EVIL, "reason": EVIL} for do in ("pause", "resume", "drain")},
    **{do: {"results": [node_desk.refused(EVIL, EVIL)]}
       for do in ("set", "cancel", "retry", "resolve", "release", "add")},
}  # fmt: skip
NODE_SHOWN: dict[str, tuple[str, ...]] = {
    "budget": ("budget",), "dag": ("dag", "list"),
    "status": ("status",), "list": ("list",), "show": ("show", UID), "log": ("log", UID),
    "add": ("add", "--", EVIL), "set": ("set", UID, "tags=a"), "cancel": ("cancel", UID),
    "retry": ("retry", UID), "resolve": ("resolve", UID, "--as", "ready", "--alone"),
    "release": ("release", UID, "--alone"), "pause": ("pause", "--reason", EVIL),
    "resume": ("resume",), "drain": ("drain", "--reason", EVIL), "progress": ("progress", EVIL),
    "heartbeat": ("heartbeat",), "spawn": ("spawn", EVIL), "doctor": ("doctor",),
    "init": ("init", "--name", EVIL), "unit": ("unit", EVIL), "run": ("run", EVIL),
    "serve": ("serve", EVIL), "start": ("start", EVIL), "stop": ("stop", EVIL),
}  # fmt: skip
NODE_SILENT = {"version": "prints constants"}
NODE_OURS = {"init": "says how long a bad name is, not what it is", "heartbeat": "prints nothing",
             "progress": "prints nothing"}  # fmt: skip


def test_every_node_command_is_shown_here_or_says_why_not() -> None:
    assert set(COMMANDS) == set(NODE_SHOWN) | set(NODE_SILENT)


@pytest.mark.parametrize("name", NODE_SHOWN)
def test_no_node_command_lets_anything_but_its_own_lines_happen_to_a_terminal(
    tmp_path: Path, name: str
) -> None:
    home = tmp_path / ("home\x1b[2J" if name == "doctor" else "home")
    home.mkdir(mode=0o700)
    (home / "node.toml").write_text('name = "iris"\n')
    inside = {"AGENT_TASK_UID": UID, "AGENT_TASK_ATTEMPT": "1", "AGENT_NAME": EVIL,
              "AGENT_ATTEMPT_TOKEN": EVIL} if name == "spawn" else {}  # fmt: skip
    node = node_desk.Desk({"AGENT_NODE_HOME": str(home), "USER": EVIL, "PATH": "/usr/bin:/bin",
                           **inside})  # fmt: skip
    node.door.replies.update(NODE_REPLIES)
    ran = node.run(*NODE_SHOWN[name])
    assert ran.out + ran.err
    assert (harm_done(ran.out), harm_done(ran.err)) == ([], [])
    assert bool(SEEN.search(ran.out + ran.err)) is (name not in NODE_OURS), NODE_OURS.get(name)


@settings(max_examples=400, deadline=None)
@given(st.text(alphabet=st.characters(), max_size=60))
def test_no_random_text_drives_the_terminal(text: str) -> None:
    assert harm_done(f"{safe_text(text)}\n", plain=False) == []


@settings(max_examples=6, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_no_random_reason_drives_the_terminal_through_status(desk: Desk, text: str) -> None:
    desk.arc("nodes", "pause", "spark", f"--reason={text}")
    for words in (("status",), ("nodes", "list"), ("log",)):
        assert harm_done(desk.arc(*words).out, plain=False) == []


@pytest.mark.parametrize("one", [one for one in CORPUS if one not in QUIET])
def test_the_emulator_sees_what_unshielded_text_would_do(one: str) -> None:
    """The control: printed as it is, each of these does something else than be shown."""
    assert harm_done(f"before{one}after\n") != []
    assert harm_done(f"before{safe_text(one)}after\n") == []


def printed(*texts: str, width: int | None = None) -> str:
    """These texts as they come to a terminal: shown, and without harm."""
    for text in texts:
        assert SEEN.search(text), text
        assert harm_done(f"{text}\n".replace("\n\n", "\n")) == []
    return "".join(texts)


@pytest.mark.parametrize("width", [None, 120])
def test_what_a_machine_says_while_it_joins_cannot_drive_the_terminal(width: int | None) -> None:
    """Its steps, what stands against it, and what is left to do."""
    look = a_look(
        system=EVIL, node_error=EVIL, keys_error=EVIL, keys_hint=EVIL, run_as_error="missing",
        user=EVIL, run_there=False, mounts=ROOT_FS.replace("ext4", EVIL.replace(" ", "")),
    )  # fmt: skip
    found = judge(look, WANTED, program_bytes=2 * 1024**2)
    said = [text for one in found for text in (one.text, one.hint) if SEEN.search(text)]
    assert {"system", "node_toml", "keys_file"} <= {one.rule for one in found}
    steps = [step_line(Step("look", EVIL, EVIL), width), step_line(Step("look", ALL), width)]
    data: JsonObject = {"node": EVIL, "changed": [EVIL], "hints": [EVIL, ALL]}
    printed(*said, *steps, render_joined(data, Look()))
    assert len(said) > 3


class Nowhere:
    """A machine that takes what it is sent."""

    def write(self, data: bytes, /) -> None:
        assert data

    async def drain(self) -> None:
        return


async def test_what_a_login_prints_while_it_joins_cannot_drive_the_terminal() -> None:
    """A shell that talks and leaves: it is told as noise, as a warning and as an error."""
    heard, last_words = asyncio.StreamReader(), asyncio.StreamReader()
    heard.feed_data(f"{EVIL}\n".encode())
    last_words.feed_data(f"{ALL}\n".encode())
    heard.feed_eof()
    last_words.feed_eof()
    there = There("iris", heard, Nowhere(), last_words)
    with pytest.raises(NodeUnreachable) as caught:
        await there.begin()
    printed(step_line(Step("login", f"prints: {there.noise}"), None))

    def refuses(*_: object, **__: object) -> Told:
        raise JoinRefused(f"iris: {ALL}", hint=EVIL) from caught.value

    out, err = io.StringIO(), io.StringIO()
    around = Around(environ={}, stdin=io.BytesIO(), stdout=out, stderr=err, clock=WallClock(),
                    ask=refuses)  # fmt: skip
    around.warn(f"iris: {ALL}")
    assert run_command(["status"], around) == 1
    printed(*err.getvalue().splitlines()[:3], there.noise, str(caught.value))


@pytest.mark.parametrize("outcome", ["went_back", "failed", "refused", "unseen", EVIL])
def test_why_an_upgrade_failed_cannot_drive_the_terminal(outcome: str) -> None:
    one: JsonObject = {"node": EVIL, "was": EVIL, "outcome": outcome, "because": ALL}
    data: JsonObject = {"version": EVIL, "program": EVIL, "nodes": [one], "statement": EVIL,
                        "sign": EVIL}  # fmt: skip
    printed(render_upgrade(data, Look()), render_statement_file(data, Look()))


def test_a_label_of_the_metrics_cannot_drive_the_terminal() -> None:
    sample: JsonObject = {"name": EVIL, "labels": {"node": ALL}, "value": 1.0}
    printed(render_metrics({"families": [{"name": EVIL, "help": EVIL, "kind": EVIL,
                                          "samples": [sample]}]}, Look()))
