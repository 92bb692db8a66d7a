"""Nothing that anybody says in a field becomes part of a shell line, an option or a path."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arc.cli.around import Around
from arc.cli.asking import ask_the_hub
from arc.cli.running import WallClock, run_command
from tests.hub.cli.desk import ENVIRON, Desk, Ran, RealFleet
from tests.node.daemon.living import until
from tests.threats.payloads import payloads

# Writes down how it was started: its own words, and those of every process above it.
WITNESS = """
import json, os, sys
from pathlib import Path
above, pid = [], os.getpid()
while pid > 1:
    try:
        above.append(Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace"))
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        break
    if "pytest" in above[-1]:
        del above[-1]
        break
body = sys.stdin.buffer.read().decode()
said = {"argv": sys.argv[1:], "above": above, "body": body, "cwd": os.getcwd(),
        "subject": os.environ["AGENT_TASK_SUBJECT"], "model": os.environ["AGENT_TASK_MODEL"]}
draft = Path(sys.argv[1], f".{os.environ['AGENT_TASK_UID']}")
draft.write_text(json.dumps(said))
draft.rename(draft.with_name(draft.name[1:]))
"""


@pytest.fixture
def canary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file that must not appear; its path is short enough for every field."""
    place = Path("/tmp") / f"arc{tmp_path_factory.getbasetemp().name[-3:]}{id(tmp_path_factory):x}"
    place = place.with_name(place.name[:14])
    place.unlink(missing_ok=True)
    yield place
    place.unlink(missing_ok=True)


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """Where the witness writes down how it was started."""
    (tmp_path / "seen").mkdir()
    (tmp_path / "witness.py").write_text(WITNESS)
    return tmp_path / "seen"


@pytest.fixture
def fleet(tmp_path: Path, seen: Path) -> Iterator[RealFleet]:
    """A hub, and a node whose program is the witness."""
    made = RealFleet(tmp_path)
    try:
        run = [sys.executable, "-I", "-S", str(tmp_path / "witness.py"), str(seen)]
        made.iris.daemons[0].stop()
        made.iris.configure(agents=f'[[agent]]\nname = "iris"\nrun = {json.dumps(run)}\n'
                                   'stdin = "body"\nslots = 4\n')  # fmt: skip
        made.iris.start()
        made.up()
        yield made
    finally:
        made.close()


def test_no_field_of_a_task_reaches_a_shell_or_an_argv(
    fleet: RealFleet, seen: Path, canary: Path
) -> None:
    """From `arc tasks add` through hub and node to the program, and every process above it.
    """
    said = payloads(canary)
    assert len(set(said)) == 200
    uids = [add(fleet, payload) for payload in said]
    until(lambda: len([*seen.glob("[!.]*")]) == len(uids), "every witness", 60)
    for uid, payload in zip(uids, said, strict=True):
        witness: dict[str, Any] = json.loads((seen / uid).read_text())
        assert (witness["subject"], witness["body"]) == (payload, payload)
        assert witness["argv"] == [str(seen)]
        assert [line for line in witness["above"] if payload in line or str(canary) in line] == []
        assert str(canary) not in witness["cwd"]
    assert not canary.exists()


def add(fleet: RealFleet, payload: str) -> str:
    """A task with this in every field of free text; its uid."""
    fields = dict.fromkeys(("subject", "body", "skill", "tag", "key", "ref", "source"), payload)
    words = [f"--{name}={value}" for name, value in fields.items()]
    ran = fleet.arc("tasks", "add", "--to", "iris", *words, "--json")
    assert ran.code == 0, ran.out
    return str(ran.data["results"][0]["uid"])


ANY_UID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def imported(payload: str) -> dict[str, Any]:
    """A task with this wherever a text may stand for which `arc tasks add` has no option."""
    return {
        "subject": payload, "body": payload, "type": payload, "models": [payload],
        "fallback_models": [payload], "output_type": payload, "extra": {payload: payload},
        "skills": [payload], "tags": [payload], "origin": payload, "ref": payload,
    }  # fmt: skip


# Where a name is due, and what waits for ever on a node that has not what it asks for.
NO_NAMES = ("uid", "parent", "dag", "on_interrupt", "deadline", "max_cost_usd", "stolen_from")
WAITS = ("needs", "context_refs", "depends_on")


def test_no_field_of_an_imported_task_reaches_a_shell_or_an_argv(
    fleet: RealFleet, seen: Path, canary: Path
) -> None:
    """Guard: a launch through `sh -c` with the model in its words makes the file at once."""
    some = payloads(canary)[::3]
    ran = by_import(fleet, map(imported, some))
    assert ran.code == 0, ran.out
    uids = [str(one["uid"]) for one in ran.data["results"]]
    until(lambda: len([*seen.glob("[!.]*")]) == len(uids), "every witness", 60)
    for uid, payload in zip(uids, some, strict=True):
        witness: dict[str, Any] = json.loads((seen / uid).read_text())
        assert (witness["subject"], witness["model"]) == (payload, payload)
        assert witness["argv"] == [str(seen)]
        assert [line for line in witness["above"] if payload in line or str(canary) in line] == []
    assert not canary.exists()


def test_what_stands_in_place_of_a_name_is_refused_or_waits_in_one_piece(
    fleet: RealFleet, seen: Path, canary: Path
) -> None:
    """No part of it is a task's, a node's or a file's name, and nothing of it is started."""
    late = {"subject": "waits", "uid": ANY_UID, "not_before": "2099-01-01T00:00:00Z"}
    assert by_import(fleet, [late]).code == 0  # what is given of nobody's task is not added at all
    for number, payload in enumerate(payloads(canary)[::4]):
        field = NO_NAMES[number % len(NO_NAMES)]
        ran = by_import(fleet, [{"subject": "x", field: payload}])
        assert ran.code in (1, 2), (field, payload, ran.out)
        assert ran.envelope["error"]["code"] not in ("ARC-FAULT", "ARC-FAILED"), ran.out
        wanted = {"needs": [payload], "context_refs": [f"task:{ANY_UID}:artifact:{payload}"],
                  "depends_on": [{"uid": payload}]}  # fmt: skip
        name = WAITS[number % len(WAITS)]
        ran = by_import(fleet, [{"subject": "x", name: wanted[name]}])
        assert ran.code == (2 if name == "depends_on" else 0), (name, payload, ran.out)
    assert [*seen.iterdir()] == []
    assert not canary.exists()


def by_import(fleet: RealFleet, tasks: Iterable[dict[str, Any]]) -> Ran:
    """All of these, given to iris, as `arc tasks import` takes them."""
    source = fleet.place / "tasks.jsonl"
    source.write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    return fleet.arc("tasks", "import", str(source), "--to", "iris", "--json")


def test_a_prompt_that_looks_like_an_option_is_a_prompt(fleet: RealFleet, seen: Path) -> None:
    """Also one of 200 KB, which no argv could hold."""
    for prompt in ('--settings={"hooks":{"x":"touch /tmp/no"}}', "-p " + "x" * 200_000):
        typed = fleet.place / "prompt"
        typed.write_text(prompt)
        ran = fleet.arc("tasks", "add", f"--subject={prompt[:40]}", "--body-file", str(typed),
                        "--to", "iris", "--json")  # fmt: skip
        assert ran.code == 0, ran.out
        uid = str(ran.data["results"][0]["uid"])
        until(lambda uid=uid: (seen / uid).exists(), "its witness")  # type: ignore[misc]
        witness: dict[str, Any] = json.loads((seen / uid).read_text())
        assert witness["body"] == prompt
        assert [line for line in (*witness["argv"], *witness["above"]) if prompt[:12] in line] == []


# Every place of a command where a name, a reason or a word of a person stands.
PLACES = (
    ("why", "{}"), ("why", "--node={}"), ("explain", "--", "{}"), ("tasks", "show", "--", "{}"),
    ("nodes", "show", "--", "{}"), ("nodes", "pause", "--reason={}", "loom"),
    ("nodes", "pause", "--agent={}", "loom"), ("nodes", "resume", "--", "{}"),
    ("nodes", "suspend", "--reason={}", "--until={}", "loom"), ("nodes", "logs", "--", "{}"),
    ("nodes", "edit", "loom", "--owns={}"), ("nodes", "fence", "--reason={}", "--", "{}"),
    ("pause", "--dry-run", "--reason={}"), ("sensors", "run", "--", "{}"),
    ("skills", "run", "--name={}", "--", "status"), ("log", "--sensor={}"), ("log", "--event={}"),
    ("tasks", "list", "--node={}"), ("tasks", "cancel", "--reason={}", "--", "{}"),
    ("tasks", "move", "--to={}", "--", "{}"), ("tasks", "add", "x", "--need={}", "--domain={}"),
    ("tasks", "add", "x", "--not-before={}"), ("tasks", "add", "x", "--body-file={}"),
    ("tasks", "import", "--", "{}"), ("doctor", "--node={}"), ("doubts", "settle", "--", "{}"),
    ("nodes", "trust", "--fingerprint={}", "loom"), ("nodes", "trust", "--", "{}"),
    ("nodes", "add", "ada@127.0.0.1", "--name={}"), ("nodes", "edit", "--owns=a", "--", "{}"),
    ("tasks", "import", "--to={}", "/dev/null"), ("nodes", "drain", "--dry-run", "--", "{}"),
    ("nodes", "remove", "--dry-run", "--", "{}"), ("--fleet={}", "status"),
)  # fmt: skip


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A hub over stores in memory, for the many commands."""
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_no_word_of_a_command_reaches_a_shell(
    desk: Desk, canary: Path, place: tuple[str, ...]
) -> None:
    first = PLACES.index(place)
    for payload in payloads(canary)[first::50]:
        ran = desk.arc(*(word.format(payload) if word == "{}" else word.replace("{}", payload)
                          for word in place))  # fmt: skip
        assert ran.code in range(10), ran
        assert "ARC-FAULT" not in ran.err + ran.out, ran.err
    assert not canary.exists()


SETTINGS = (
    "fleet: {}\nnodes: []\n", "hub: {{name: {}}}\nnodes: []\n", "hub: {{state: {}}}\nnodes: []\n",
    "ssh_config: {}\nnodes: [{{name: iris, local: true}}]\n", "policy: {}\nnodes: []\n",
    "router: {{fallback: {}}}\nnodes: []\n", "router: {{every: {}}}\nnodes: []\n",
    "domains: {{{}: {{}}}}\nnodes: []\n",
    "domains: {{a: {{prefix: [{0}], words: [{0}]}}}}\nnodes: []\n",
    "sensors: {{{}: {{}}}}\nnodes: []\n", "nodes: [{{name: {}, local: true}}]\n",
    "nodes: [{{name: iris, host: {}}}]\n", "nodes: [{{name: iris, host: a, user: {}}}]\n",
    "nodes: [{{name: iris, host: a, port: {}}}]\n",
    "nodes: [{{name: iris, local: true, home: {}}}]\n",
    "nodes: [{{name: iris, local: true, owns: [{}]}}]\n",
)  # fmt: skip


@pytest.mark.parametrize("text", SETTINGS, ids=[text.replace("\n", " ") for text in SETTINGS])
def test_no_value_of_fleet_yaml_reaches_a_shell(
    canary: Path, tmp_path: Path, text: str
) -> None:
    """What is taken (a path) is used by `arc status`; what is not is refused with its line."""
    file, first = tmp_path / "fleet.yaml", SETTINGS.index(text)
    for payload in payloads(canary)[first::50]:
        file.write_text(text.format(json.dumps(payload)))
        ran = status_of(file)
        assert ran.code in range(10), ran
        assert "ARC-FAULT" not in ran.err + ran.out, (payload, ran.err)
        if any(f"{field}: {{}}" in text for field in ("name", "host", "user", "fleet", "port")):
            assert ran.code == 2, (payload, ran.out)
    assert not canary.exists()


def status_of(file: Path) -> Ran:
    """`arc status` by this fleet.yaml, as anybody would type it."""
    out, err = io.StringIO(), io.StringIO()
    around = Around(environ=ENVIRON, stdin=io.BytesIO(), stdout=out, stderr=err, ask=ask_the_hub,
                    clock=WallClock(), fleet=file)  # fmt: skip
    return Ran(run_command(["status"], around), out.getvalue(), err.getvalue())
