"""A hub's folder and an operator who types commands, for joins of container nodes."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from arc.cli.around import Around
from arc.cli.asking import ask_the_hub
from arc.cli.running import WallClock, run_command
from arc.links.hostkeys import HostKey, HostKeys, parse_host_key
from arc.setup import init
from tests.hub.cli.desk import Keyboard, Ran, Screen
from tests.ssh.lab import Lab
from tests.ssh.lab_node import LabNode


class Operator:
    """Somebody at the hub's machine: a fleet.yaml, a key of their own, and a keyboard."""

    def __init__(self, place: Path, lab: Lab) -> None:
        self.place, self.lab = place, lab
        self.fleet = place / "fleet" / "fleet.yaml"
        self.home = place / "ada"
        (self.home / ".ssh").mkdir(parents=True, mode=0o700)
        for name in ("", ".pub"):
            own = self.home / ".ssh" / f"id_ed25519{name}"
            own.write_bytes(lab.operator_key.with_name(lab.operator_key.name + name).read_bytes())
            own.chmod(0o600)
        init(self.fleet.parent)
        with self.fleet.open("a") as file:
            file.write("domains:\n  research: {skills: [papers]}\n")

    @property
    def state(self) -> Path:
        return self.fleet.parent / ".arc"

    @property
    def public(self) -> str:
        """The hub's own public key."""
        return (self.state / "keys" / "hub_ed25519.pub").read_text().split()[1]

    @property
    def pinned(self) -> dict[str, HostKey]:
        return HostKeys(self.state / "known_hosts").read()

    def arc(self, *words: str, typed: str | None = None, **environ: str) -> Ran:
        """One command; with `typed` at a terminal, where this is typed."""
        out, err = (io.StringIO() if typed is None else Screen()), io.StringIO()
        around = Around(
            environ={"USER": "ada", "HOME": str(self.home), "PATH": os.environ["PATH"], **environ},
            stdin=io.BytesIO() if typed is None else Keyboard(typed.encode()),
            stdout=out, stderr=err, ask=ask_the_hub, clock=WallClock(), fleet=self.fleet,
        )  # fmt: skip
        code = run_command(list(words), around)
        return Ran(code, out.getvalue(), err.getvalue())

    def add(self, node: LabNode, *more: str, name: str = "iris", typed: str | None = None,
            sure: bool = True, **environ: str) -> Ran:  # fmt: skip
        """`arc nodes add` for this node; `sure`: with the true fingerprint."""
        known = ["--fingerprint", key_of(node).fingerprint] if sure else []
        return self.arc("nodes", "add", f"agent@{node.address}:{node.port}", "--name", name,
                        *known, *more, typed=typed, **environ)  # fmt: skip

    def joined(self, node: LabNode, *more: str) -> Any:
        """The data of a join that has to work."""
        ran = self.add(node, "--json", *more)
        assert ran.code == 0, (ran.out, ran.err)
        return ran.data


def key_of(node: LabNode) -> HostKey:
    """The host key that the machine itself has."""
    return parse_host_key(node.host_key)


def an_operator(place: Path, lab: Lab) -> tuple[Operator, LabNode]:
    """One of them, and a machine on which they may log in."""
    operator = Operator(place, lab)
    node = lab.start(1)[0]
    node.authorize("agent", lab.operator_key.with_suffix(".pub").read_text())
    return operator, node
