"""A fleet in which whatever anybody may say is hostile, and what each command shows of it."""

from __future__ import annotations

import json
from pathlib import Path

from agent_node import commands as c
from agent_node.moves import Quarantine
from arc.settings import HookEntry, NotifyEntry, ScheduleEntry
from tests.builders import uid
from tests.hub.cli.desk import Desk

CORPUS = (
    "\x1b[2J", "\x1b[1A", "\x1b[1;1Hover", "\x1b]0;gone\x07", "\x1b]2;gone\x1b\\", "\x1b[31m",
    "\x1b[?1049h", "\x1b[?25l", "\x1b[6n", "\x1b[c", "\x1bc", "\x1bD", "\x1b(0", "\x0e", "\x9b2J",
    "\x9d0;gone\x9c", "\x90q\x9c", "\r", "\b\b\b\b", "\x07", "\x0b\x0c", "\x84\x8d", "\u202egone",
    "\u2066\u2069", "\u200b", "\ufeff", "\u2028", "\x1b]52;c;Z29uZQ==\x07", "\x1b]8;;http://x\x07",
    "\U000e0041", "\x7f", "\x00",
)  # fmt: skip
ALL = "".join(one for one in CORPUS if one != "\x00") + "gone"
EVIL = "".join(part for part in ALL.splitlines())  # what a subject may hold
NAMES = ("iris", "loom", "spark", "forge")
GRAPH, DEAD, RAN, DOUBTED, LOST, PARKED = uid(60), uid(3), uid(4), uid(5), uid(6), uid(7)
FLEET = """\
fleet: arc0
hub: {state: .state}
nodes:
  - {name: iris, local: true, home: iris}
  - {name: loom, local: true, home: loom, owns: [integrations]}
domains:
  integrations: {skills: [api]}
webhooks:
  ci: {secret_file: secret, task: {subject: "\\e[2J"}}
"""


SHORT = EVIL[:30]  # what is looked at where a name is meant
STDIN = b'{"subject": "x", "\\u001b[2J": 1}\n{"subject": "y", "after": "\\u001b[2J"}\n'
A_GRAPH = b'{"title": "t", "tasks": {"a": {"subject": "x", "\\u001b[2J": 1}}}'

# Every command of `arc`, so that it prints something that others said. {} stands for what they
# said, SHORT for as much of it as a name may have.
SHOWN: dict[str, tuple[str, ...]] = {
    "status": ("status",), "plan": ("plan",), "log": ("log", "--all"), "why": ("why", uid(1)),
    "doctor": ("doctor",), "explain": ("explain", "--", "{}"),
    "nodes list": ("nodes", "list"), "nodes show": ("nodes", "show", "forge"),
    "nodes pause": ("nodes", "pause", "loom", "--reason={}"),
    "nodes resume": ("nodes", "resume", "loom", "--reason={}"),
    "nodes drain": ("nodes", "drain", "loom", "--reason={}", "--dry-run"),
    "nodes suspend": ("nodes", "suspend", "loom", "--reason={}", "--dry-run"),
    "nodes edit": ("nodes", "edit", "loom", "--owns", SHORT),
    "nodes logs": ("nodes", "logs", "loom", RAN), "nodes trust": ("nodes", "trust", "--", SHORT),
    "nodes remove": ("nodes", "remove", "--dry-run", "--", SHORT),
    "nodes add": ("nodes", "add", f"--name={SHORT}", "a@b"),
    "nodes upgrade": ("nodes", "upgrade", "--dry-run", "--file={}", "loom"),
    "tasks list": ("tasks", "list"), "tasks show": ("tasks", "show", uid(1)),
    "tasks add": ("tasks", "add", "x", "--to", "spark"),
    "tasks set": ("tasks", "set", uid(1), "tags={}"), "tasks import": ("tasks", "import", "-"),
    "tasks move": ("tasks", "move", uid(1), "--to", "loom", "--reason={}", "--dry-run"),
    "tasks cancel": ("tasks", "cancel", PARKED), "tasks retry": ("tasks", "retry", LOST),
    "sensors list": ("sensors", "list"), "sensors history": ("sensors", "history", "fleet-health"),
    "sensors run": ("sensors", "run", "fleet-health"), "skills show": ("skills", "show", SHORT),
    "skills run": ("skills", "run", "--name", "fleet-health", "--", "status"),
    "pause": ("pause", "--reason={}", "--dry-run"), "resume": ("resume", "--reason={}"),
    "dag list": ("dag", "list"), "dag show": ("dag", "show", GRAPH),
    "dag submit": ("dag", "submit", "-"),
    "dag cancel": ("dag", "cancel", GRAPH, "--reason={}", "--dry-run"),
    "dag budget": ("dag", "budget", GRAPH, "5", "--dry-run"),
    "dead list": ("dead", "list"), "dead show": ("dead", "show", DEAD),
    "dead retry": ("dead", "retry", LOST, "--reason={}"),
    "dead edit": ("dead", "edit", DEAD, "tags={}", "--reason={}", "--dry-run"),
    "schedules show": ("schedules", "show", "nightly"),
    "notify list": ("notify", "list"), "notify test": ("notify", "test", "--dry-run", "ada"),
    "simulate": ("simulate", "--policy", "{}"), "report": ("report", "--html", "--since", "{}"),
    "webhooks show": ("webhooks", "show", "ci"),
    "webhooks test": ("webhooks", "test", "--dry-run", "--", SHORT),
}
# These print nothing that others may say: nothing of it is seen, and the reason is why.
OURS: dict[str, tuple[tuple[str, ...], str]] = {
    "nodes fence": (("nodes", "fence", "forge", "--dry-run"), "uids, names and our own words"),
    "tasks count": (("tasks", "count", "--subject={}"), "a number"),
    "tasks resolve": (("tasks", "resolve", uid(1), "--as={}"), "names the words it takes alone"),
    "doubts list": (("doubts", "list"), "uids, names of nodes, states and ages"),
    "doubts settle": (("doubts", "settle", "--dry-run"), "uids, names and our own words"),
    "dead cancel": (("dead", "cancel", DEAD, "--reason={}", "--dry-run"), "uids and states"),
    "dead review": (("dead", "review", DEAD, "--note={}", "--dry-run"), "uids and states"),
    "skills list": (("skills", "list"), "names of sensors and our own words"),
    "schedules list": (("schedules", "list"), "names, times and uids: what is added is not shown"),
    "schedules run": (("schedules", "run", "--dry-run", "nightly"), "a name and a uid"),
    "webhooks list": (("webhooks", "list"), "names, counts and uids"),
    "budget": (("budget",), "names, uids and sums"),
    "metrics": (("metrics",), "names of nodes and agents, states and numbers; its renderer below"),
    "unit": (("unit",), "the operator's own paths"),
    "web": (("web", "--host=0.0.0.0"), "ends before it shows a line; the page shows HTML"),
}
# These are shown elsewhere.
ELSEWHERE = {
    "init": "makes a folder; only the folder's own name is printed",
    "up": "its lines are those of `sensors run` and `log`",
    "demo": "has pictures of its own: test_plain_lines_show_what_could_drive_a_terminal",
    "config check": "test_what_the_file_holds_cannot_drive_the_terminal",
    "config show": "test_what_the_file_holds_cannot_drive_the_terminal",
    "config schema": "prints a constant",
}


def hostile_desk(place: Path) -> Desk:
    """A hub, its nodes and its fleet.yaml, full of what could drive a terminal."""
    secret = place / "secret"
    secret.write_text("s" * 40)
    secret.chmod(0o600)
    (place / "fleet.yaml").write_text(FLEET)
    task = {"subject": EVIL}
    made = Desk(
        place, names=NAMES, schedules=(ScheduleEntry("nightly", "0 3 * * *", task=dict(task)),),
        notify=(NotifyEntry("ada", ("parked",), command=(EVIL,)),),
        webhooks=(HookEntry("ci", secret, dict(task)),),
    )  # fmt: skip
    _in_doubt(made)
    for number in (1, 2):
        made.waits("iris", number, subject=EVIL, body=f"{ALL}\n{ALL}", needs=["gpu"],
                   source=f"human:{EVIL[:40]}", ref=EVIL[-60:])  # fmt: skip
    made.arc("nodes", "pause", "spark", "--reason", EVIL)
    made.arc("tasks", "cancel", uid(2), "--reason", EVIL)
    tasks = {"a": {"uid": uid(61), "subject": EVIL}}
    graph = {"id": GRAPH, "title": EVIL[:100], "budget_usd": "5", "tasks": tasks}
    assert made.arc("dag", "submit", "-", stdin=json.dumps(graph).encode()).code == 0
    _ended(made)
    made.nodes.machines["forge"].store.apply(Quarantine(EVIL))
    made.hub.journal.notices.failed(made.hub.journal.notices.receivers(["ada"])["ada"], EVIL)
    assert made.arc("sensors", "run", "fleet-health").code in (0, 3)
    return made


def _in_doubt(desk: Desk) -> None:
    """A move from iris to loom that was cut off after the commit."""
    desk.waits("iris", 5, subject=EVIL)
    desk.nodes.will("", "", "", "lost")
    assert desk.arc("tasks", "move", DOUBTED, "--to", "loom", "--reason", EVIL).code == 3


def _ended(desk: Desk) -> None:
    """Two dead letters, one of them on a node that is no more to be believed, and a task whose
    program wrote something.
    """
    failed = c.Result("failed", error_kind="auth_failure", message=ALL)
    store = desk.nodes.machines["loom"].store
    forge = desk.nodes.machines["forge"].store
    forge.apply(c.Finish(desk.runs("forge", 6, subject=EVIL), 1, failed))
    desk.waits("forge", 7, subject=EVIL)
    store.apply(c.Finish(desk.runs("loom", 3, subject=EVIL), 1, failed))
    folder = desk.nodes.machines["loom"].place / "tasks" / desk.runs("loom", 4) / "1"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_bytes(f"{ALL}\n".encode())
