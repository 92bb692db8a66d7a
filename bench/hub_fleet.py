"""Makes fleets for the hub's rows: a hundred nodes over SSH, or five real ones over pipes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_node.strict import JsonObject
from arc.door import ask
from arc.keys import make_key_pair
from arc.links.hostkeys import HostKeys, parse_host_key
from arc.operations import Told
from arc.settings import FleetSettings, NodeEntry

from .measuring import Place
from .nodes import ANSWER_WITHIN_S, Node

ROOT = Path(__file__).resolve().parent.parent
FIVE = ("ada", "forge", "iris", "loom", "spark")
BY = "human:bench"


@dataclass(frozen=True)
class Far:
    """A far side that listens: where each name is reached."""

    state: Path
    ports: Mapping[str, int]
    pid: int

    def wait_for_programs(self) -> None:
        """Return when every program it started is over: what comes next would share its cores."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        give_up = time.monotonic() + ANSWER_WITHIN_S
        while children.read_text().strip():
            if time.monotonic() > give_up:
                raise RuntimeError(f"programs run on after {ANSWER_WITHIN_S} s")
            time.sleep(0.01)

    def settings(self, kind: str, file: Path) -> FleetSettings:
        """The fleet as fleet.yaml would have it; `kind` says what each session does."""
        nodes = tuple(
            NodeEntry(name, host="127.0.0.1", port=port, user=f"{kind}-{name}")
            for name, port in self.ports.items()
        )
        return FleetSettings("bench", "arc", file, self.state, nodes=nodes)


def names(count: int) -> list[str]:
    """n001, n002, and so on."""
    return [f"n{number:03d}" for number in range(1, count + 1)]


@contextmanager
def far_side(
    state: Path, program: Sequence[str], *, named: Sequence[str] = (), homes: Sequence[Path] = ()
) -> Iterator[Far]:
    """A process of its own that is all these nodes; the hub of `state` may log in, and knows it."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    public = make_key_pair(state, comment="bench")
    asked = {"authorized": public, "program": [*program], "names": [*named],
             "homes": [str(home) for home in homes]}  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.hub_far"], cwd=ROOT, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        told = json.loads(process.stdout.readline())
        key, keys = parse_host_key(told["host_key"]), HostKeys(state / "known_hosts")
        for name in told["ports"]:
            keys.pin(name, key, fingerprint=key.fingerprint)
        yield Far(state, told["ports"], process.pid)
    finally:
        process.stdin.close()
        process.terminate()
        process.wait(ANSWER_WITHIN_S)
        process.stdout.close()


def write_fleet(folder: Path, nodes: Sequence[Mapping[str, object]], **more: object) -> Path:
    """A fleet.yaml; JSON is YAML too."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "fleet.yaml"
    document = {"version": 1, "fleet": "bench", "nodes": [*nodes], **more}
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return file


@contextmanager
def hub_process(fleet: Path) -> Iterator[int]:
    """`arc up` in a process of its own, from when every node has been seen; its pid."""
    with (fleet.parent / "hub.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "arc", "--fleet", str(fleet), "up"], cwd=ROOT,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        _wait_for_hub(fleet, process)
        yield process.pid
    finally:
        process.terminate()
        process.wait(ANSWER_WITHIN_S)


def _wait_for_hub(fleet: Path, process: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + ANSWER_WITHIN_S
    while time.monotonic() < give_up:
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            told = ask(fleet, "status", {}, by=BY)
            if told is not None and told.exit == 0:
                return
            continue
        break
    raise RuntimeError(f"the hub does not run: {(fleet.parent / 'hub.log').read_text()}")


def ask_hub(fleet: Path, op: str, args: JsonObject) -> Told:
    """What came of one operation of the hub that runs; anything but success ends the bench."""
    told = ask(fleet, op, args, by=BY)
    if told is None or told.exit:
        raise RuntimeError(f"{op}: {told}")
    return told


@contextmanager
def five_nodes(
    place: Place, run: Mapping[str, Sequence[str]], *, slots: int, toml: str = "", agent: str = ""
) -> Iterator[dict[str, Node]]:
    """Five real daemons. `toml` stands at the top of each node.toml, `agent` at its end."""
    with ExitStack() as stack:
        nodes = {}
        for name in FIVE:
            node = nodes[name] = Node(place, name, run.get(name, run[""]), slots=slots)
            config = node.home.config
            config.write_text(f"{toml}\n{config.read_text()}\n{agent}\n")
            stack.enter_context(node.running())
        yield nodes


def local_entries(nodes: Mapping[str, Node]) -> list[dict[str, object]]:
    """The five as fleet.yaml names them."""
    return [{"name": name, "local": True, "home": str(node.home.root.resolve())}
            for name, node in nodes.items()]  # fmt: skip
