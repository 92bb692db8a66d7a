"""What a task or a node says is shown by every command, and drives no terminal; a real emulator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_node import commands as c
from agent_node.cli.catalogue import COMMANDS
from agent_node.text import safe_text
from tests.builders import uid
from tests.hub.cli.desk import Desk
from tests.hub.cli.test_commands_page import there
from tests.node.cli import desk as node_desk
from tests.threats.screen import harm_done

CORPUS = (
    "\x1b[2J", "\x1b[1A", "\x1b[1;1Hover", "\x1b]0;gone\x07", "\x1b]2;gone\x1b\\", "\x1b[31m",
    "\x1b[?1049h", "\x1b[?25l", "\x1b[6n", "\x1b[c", "\x1bc", "\x1bD", "\x1b(0", "\x0e", "\x9b2J",
    "\x9d0;gone\x9c", "\x90q\x9c", "\r", "\b\b\b\b", "\x07", "\x0b\x0c", "\x84\x8d", "\u202egone",
    "\u2066\u2069", "\u200b", "\ufeff", "\u2028", "\x1b]52;c;Z29uZQ==\x07", "\x1b]8;;http://x\x07",
    "\U000e0041", "\x7f", "\x00",
)  # fmt: skip
QUIET = ("\x00", "\x0e", "\x7f")  # this emulator passes them over; others do not
ALL = "".join(one for one in CORPUS if one != "\x00") + "gone"
EVIL = "".join(part for part in ALL.splitlines())  # what a subject may hold
UID = node_desk.UID
GRAPH = uid(60)

# Every command of `arc` as it prints something that others said. {} stands for what they said.
SHOWN: dict[str, tuple[str, ...]] = {
    "status": ("status",), "plan": ("plan",), "log": ("log", "--all"), "why": ("why", uid(1)),
    "doctor": ("doctor",), "explain": ("explain", "--", "{}"),
    "nodes list": ("nodes", "list"), "nodes show": ("nodes", "show", "loom"),
    "nodes pause": ("nodes", "pause", "loom", "--reason={}"),
    "nodes resume": ("nodes", "resume", "loom", "--reason={}"),
    "nodes drain": ("nodes", "drain", "loom", "--reason={}", "--dry-run"),
    "nodes suspend": ("nodes", "suspend", "loom", "--reason={}", "--dry-run"),
    "nodes fence": ("nodes", "fence", "loom", "--reason={}", "--dry-run"),
    "nodes edit": ("nodes", "edit", "--owns={}", "loom"),
    "nodes logs": ("nodes", "logs", "loom", uid(1)), "nodes trust": ("nodes", "trust", "--", "{}"),
    "nodes remove": ("nodes", "remove", "--dry-run", "--", "{}"),
    "nodes add": ("nodes", "add", "--name={}", "a@b"),
    "nodes upgrade": ("nodes", "upgrade", "--dry-run", "--", "{}"),
    "tasks list": ("tasks", "list"), "tasks show": ("tasks", "show", uid(1)),
    "tasks count": ("tasks", "count", "--node={}"), "tasks add": ("tasks", "add", "--", "{}"),
    "tasks set": ("tasks", "set", uid(1), "tags={}"), "tasks import": ("tasks", "import", "-"),
    "tasks move": ("tasks", "move", uid(1), "--to", "loom", "--reason={}", "--dry-run"),
    "tasks cancel": ("tasks", "cancel", uid(1), "--reason={}", "--dry-run"),
    "tasks retry": ("tasks", "retry", "--", "{}"),
    "tasks resolve": ("tasks", "resolve", uid(1), "--as={}"),
    "doubts list": ("doubts", "list"), "doubts settle": ("doubts", "settle", "--", "{}"),
    "sensors list": ("sensors", "list"), "sensors history": ("sensors", "history"),
    "sensors run": ("sensors", "run", "fleet-rebalance"), "skills list": ("skills", "list"),
    "skills show": ("skills", "show", "{}"),
    "skills run": ("skills", "run", "--name", "fleet-rebalance", "--", "status"),
    "pause": ("pause", "--reason={}", "--dry-run"), "resume": ("resume", "--reason={}"),
    "dag list": ("dag", "list"), "dag show": ("dag", "show", GRAPH),
    "dag submit": ("dag", "submit", "-"),
    "dag cancel": ("dag", "cancel", GRAPH, "--reason={}", "--dry-run"),
    "dag budget": ("dag", "budget", GRAPH, "5", "--dry-run"),
    "dead list": ("dead", "list"), "dead show": ("dead", "show", uid(3)),
    "dead retry": ("dead", "retry", uid(3), "--reason={}", "--dry-run"),
    "dead cancel": ("dead", "cancel", uid(3), "--reason={}", "--dry-run"),
    "dead review": ("dead", "review", uid(3), "--note={}", "--dry-run"),
    "dead edit": ("dead", "edit", uid(3), "tags={}", "--reason={}", "--dry-run"),
    "schedules list": ("schedules", "list"), "schedules show": ("schedules", "show", "--", "{}"),
    "schedules run": ("schedules", "run", "--dry-run", "--", "{}"),
    "notify list": ("notify", "list"), "notify test": ("notify", "test", "--dry-run", "--", "{}"),
    "budget": ("budget",), "metrics": ("metrics",),
    "simulate": ("simulate", "--policy", "{}"), "unit": ("unit",),
    "webhooks list": ("webhooks", "list"), "webhooks show": ("webhooks", "show", "--", "{}"),
    "webhooks test": ("webhooks", "test", "--dry-run", "--", "{}"),
    "report": ("report", "--html", "--since", "{}"), "web": ("web", "--port", "99999"),
}
SILENT = {
    "init": "makes a folder; only the folder's own name is printed",
    "up": "its lines are those of `sensors run` and `log`",
    "demo": "has pictures of its own: test_plain_lines_show_what_could_drive_a_terminal",
    "config check": "test_what_the_file_holds_cannot_drive_the_terminal",
    "config show": "test_what_the_file_holds_cannot_drive_the_terminal",
    "config schema": "prints a constant",
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A fleet in which everything that anybody may say is hostile."""
    made = Desk(tmp_path_factory.mktemp("desk"))
    for number in (1, 2):
        made.waits("iris", number, subject=EVIL, body=f"{ALL}\n{ALL}", needs=["gpu"],
                   source=f"human:{EVIL[:40]}", ref=EVIL[-60:])  # fmt: skip
    made.arc("nodes", "pause", "spark", "--reason", EVIL)
    made.arc("tasks", "cancel", uid(2), "--reason", EVIL)
    task = {"uid": uid(61), "subject": EVIL}
    graph = {"id": GRAPH, "title": EVIL[:100], "tasks": {"a": task}}
    assert made.arc("dag", "submit", "-", stdin=json.dumps(graph).encode()).code == 0
    failed = c.Result("failed", error_kind="auth_failure", message=ALL)
    dead = made.runs("loom", 3, subject=EVIL)
    made.nodes.machines["loom"].store.apply(c.Finish(dead, 1, failed))
    yield made
    made.close()


def test_every_command_is_shown_here_or_says_why_not() -> None:
    assert {name.removeprefix("arc ") for name in there()} == set(SHOWN) | set(SILENT)


@pytest.mark.parametrize("name", SHOWN)
def test_no_command_lets_anything_but_its_own_lines_happen_to_a_terminal(
    desk: Desk, name: str
) -> None:
    """Seen to fail with `safe_text` letting what it gets through."""
    words = [word.replace("{}", EVIL) for word in SHOWN[name]]
    stdin = b'{"subject": "x", "tint": "\x1b[2J"}\n{"subject": ["\x1b[2J"]}\n'
    ran = desk.arc(*words, stdin=stdin)
    assert ran.out + ran.err
    assert (harm_done(ran.out), harm_done(ran.err)) == ([], [])
    seen = desk.arc(*words, typed=stdin, environ={"COLUMNS": "120"})
    assert harm_done(seen.out, plain=False) == []
    assert harm_done(seen.err, plain=False) == []


NODE_REPLIES: dict[str, Any] = {
    "list": {"tasks": [node_desk.a_task(subject=EVIL, skills=[EVIL], source=EVIL, domain=EVIL)]},
    "show": {"task": node_desk.a_task(subject=EVIL, body=ALL, failure_reason=EVIL, progress=EVIL,
                                      state="RUNNING", output=EVIL),
             "attempts": [{"n": 1, "agent": EVIL, "outcome": EVIL, "because": EVIL,
                           "started_at": "2026-03-10T03:40:02.000Z"}], "moves": []},
    "status": {"node": EVIL, "state": EVIL, "reason": EVIL, "dispatcher": EVIL, "needs_you": [EVIL],
               "agents": [{"name": EVIL, "state": EVIL, "slots": 1, "running": 0}], "version": EVIL,
               "counts": {EVIL: 1}},
    "log": {"text": f"{ALL}\n", "next": None, "size": 9},
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
    "add": ("add", "--", EVIL), "set": ("set", UID, f"tags={EVIL}"), "cancel": ("cancel", UID),
    "retry": ("retry", UID), "resolve": ("resolve", UID, "--as", "READY", "--alone"),
    "release": ("release", UID, "--alone"), "pause": ("pause", "--reason", EVIL),
    "resume": ("resume",), "drain": ("drain", "--reason", EVIL), "progress": ("progress", EVIL),
    "heartbeat": ("heartbeat",), "spawn": ("spawn", EVIL), "doctor": ("doctor",),
    "init": ("init", "--name", EVIL), "unit": ("unit", EVIL), "run": ("run", EVIL),
    "serve": ("serve", EVIL), "start": ("start", EVIL), "stop": ("stop", EVIL),
}  # fmt: skip
NODE_SILENT = {"version": "prints constants"}


def test_every_node_command_is_shown_here_or_says_why_not() -> None:
    assert set(COMMANDS) == set(NODE_SHOWN) | set(NODE_SILENT)


@pytest.mark.parametrize("name", NODE_SHOWN)
def test_no_node_command_lets_anything_but_its_own_lines_happen_to_a_terminal(
    tmp_path: Path, name: str
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "node.toml").write_text('name = "iris"\n')
    node = node_desk.Desk({"AGENT_NODE_HOME": str(home), "USER": EVIL, "PATH": "/usr/bin:/bin"})
    node.door.replies.update(NODE_REPLIES)
    ran = node.run(*NODE_SHOWN[name])
    assert ran.out + ran.err
    assert (harm_done(ran.out), harm_done(ran.err)) == ([], [])


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
