"""Builds programs that differ, nodes that run one, and requests that bring another."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import agent_node
from agent_node.packing import archive_members, bytecode, zipped
from agent_node.signing import NAMESPACE, operators_line
from agent_node.statement import Statement, render_statement
from tests.node.daemon.living import PATIENCE_S, Node, until

LATER = {"0.1.0": "2026-01-01", "0.2.0": "2026-02-01", "0.3.0": "2026-03-01"}
IMPATIENT = ("upgrader.py", "PATIENCE_S = 20.0", "PATIENCE_S = 3.0")
Change = tuple[str, str, str]  # in this module, this text, becomes this text


@dataclass(frozen=True)
class Pyz:
    """A program, and what its statement says."""

    content: bytes = field(repr=False)
    version: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def name(self) -> str:
        return f"agent-node-{self.sha256[:12]}.pyz"


@cache
def _members() -> Mapping[str, bytes]:
    return archive_members(Path(agent_node.__file__).parent)


def a_program(version: str = "0.2.0", *changes: Change) -> Pyz:
    """Today's agent-node under another version, changed where it is told."""
    members = dict(_members())
    own = f'__version__ = "{agent_node.__version__}"'
    for module, old, new in (("__init__.py", own, f'__version__ = "{version}"'), *changes):
        name = f"agent_node/{module}"
        source = members[name].decode()
        assert old in source, (module, old)
        members[name] = source.replace(old, new, 1).encode()
        members[f"{name}c"] = bytecode(members[name], name)
    return Pyz(b"#!/usr/bin/env python3\n" + zipped(members), version)


def a_broken_program(version: str = "0.3.0") -> Pyz:
    """It passes every trial, and its daemon ends at once."""
    broken = '        raise SystemExit("broken on purpose")\n'
    return a_program(version, ("daemon.py", "        self._set_up()\n", broken))


class Keys:
    """An operator's key, and the hub's, which may sign nothing."""

    def __init__(self, place: Path) -> None:
        self.operator, self.hub = place / "operator", place / "hub"
        for key in (self.operator, self.hub):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)],
                           check=True, timeout=PATIENCE_S)  # fmt: skip

    def sign(self, content: bytes, *, key: Path | None = None, namespace: str = NAMESPACE) -> str:
        done = subprocess.run(
            ["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", str(key or self.operator)],
            input=content, capture_output=True, check=True, timeout=PATIENCE_S,
        )  # fmt: skip
        return done.stdout.decode()

    def offer(self, pyz: Pyz, *, made_at: str = "", **said: Any) -> dict[str, Any]:
        """A whole request for this program, well signed."""
        made_at = made_at or f"{LATER.get(pyz.version, '2026-04-01')}T00:00:00.000Z"
        statement = render_statement(Statement(pyz.sha256, pyz.version, made_at, **said))
        return {
            "do": "upgrade", "sha256": pyz.sha256, "statement": statement.decode(),
            "signature": self.sign(statement), "file": base64.b64encode(pyz.content).decode(),
        }  # fmt: skip


class ProgramNode(Node):
    """A node as joining leaves it: its program in its home, found by the link."""

    def install(self, pyz: Pyz, keys: Keys) -> None:
        folder = self.home / "program"
        folder.mkdir(mode=0o700)
        (folder / pyz.name).write_bytes(pyz.content)
        (folder / "agent-node.pyz").symlink_to(pyz.name)
        operators = self.home / "operators"
        operators.write_text(operators_line(keys.operator.with_suffix(".pub").read_text()))
        operators.chmod(0o600)
        self.command = [sys.executable, "-I", "-S", str(folder / "agent-node.pyz")]

    def wire(self, *requests: dict[str, Any]) -> list[dict[str, Any]]:
        """The replies of one `serve` to these requests, the greeting first."""
        asked = b"".join(json.dumps({"id": n, **one}).encode() + b"\n"
                         for n, one in enumerate(requests))  # fmt: skip
        ran = subprocess.run(
            [*self.command, "serve", "--stdio"], env=self.env, input=asked,
            capture_output=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def upgrade(self, offer: dict[str, Any]) -> dict[str, Any]:
        """What became of it, once that is known: asked again and again, as the hub does."""
        reply = self.wire(offer)[-1]
        assert reply.get("ok"), reply
        again = {name: value for name, value in offer.items() if name != "file"}

        def over() -> dict[str, Any] | None:
            said = self.wire(again)
            result: dict[str, Any] = said[1].get("result", {}) if len(said) > 1 else {}
            return result if result.get("outcome", "under_way") != "under_way" else None

        return until(over, "an outcome", 40.0)

    @property
    def runs(self) -> str:
        """Which program the link leads to."""
        return os.readlink(self.home / "program" / "agent-node.pyz")

    @property
    def programs(self) -> set[str]:
        """Every whole program that lies here."""
        return {path.name for path in (self.home / "program").glob("agent-node-*.pyz")}
