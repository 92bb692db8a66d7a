"""The sshd settings of docs/security.md, as they stand there, hold an unrestricted key down."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path

import asyncssh
import pytest

from arc.joining.restricted import PROBES, what_is_granted
from tests.ssh.joining_desk import Operator, an_operator
from tests.ssh.lab import Lab
from tests.ssh.lab_node import LabNode
from tests.ssh.test_joining import HOME, KEYS, WITH_X11, answers
from tools.sources import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
CONF = "/etc/ssh/sshd_config.d/arc.conf"
MARK = "/tmp/rc-was-here"


def block(name: str) -> str:
    """The lines under this mark of the page."""
    (found,) = re.findall(rf"<!-- {name} -->\n```\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def profile(node: LabNode, *, whole: bool = True) -> None:
    """The file as the page has it; its Python is the one of the machine."""
    text = block("sshd, above") + block("sshd") if whole else ""
    node.exec(["mkdir", "-p", "/etc/ssh/sshd_config.d"])
    node.write(CONF, text.replace("/usr/bin/python3.11", node.python).encode())
    node.restart_sshd(Include="/etc/ssh/sshd_config.d/*.conf", **WITH_X11)


def unrestricted(ada: Operator, node: LabNode) -> Path:
    """The hub's own key with a line that limits nothing, for both accounts."""
    line = (ada.state / "keys" / "hub_ed25519.pub").read_text()
    node.write(KEYS, line.encode(), mode=0o600, user="agent")
    node.authorize("arc-run", line)
    node.write("/home/agent/.ssh/rc", f"touch {MARK}\n".encode(), user="agent")
    return ada.state / "keys" / "hub_ed25519"


def granted(node: LabNode, key: Path) -> tuple[str, ...]:
    """What the product's own tries are granted with it."""

    async def tried() -> tuple[str, ...]:
        async with asyncssh.connect(
            node.address, node.port, username="agent", client_keys=[str(key)], known_hosts=None,
            config=None, agent_path=None,
        ) as connection:  # fmt: skip
            return await what_is_granted(node.name, connection, sock=f"{HOME}/node.sock")

    return asyncio.run(tried())


def ssh(node: LabNode, key: Path, *words: str, program: str = "ssh", user: str = "agent",
        says: str = "") -> tuple[int, str]:  # fmt: skip
    """OpenSSH's own client with this key alone: its exit code, and whatever it printed."""
    options = ["-F", "none", "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
               "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR",
               "-o", "UserKnownHostsFile=/dev/null", "-i", str(key)]  # fmt: skip
    ran = subprocess.run([program, *options, f"{user}@{node.address}", *words], input=says,
                         capture_output=True, text=True, timeout=30, check=False)  # fmt: skip
    return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture
def pair(lab: Lab, tmp_path: Path) -> tuple[Operator, LabNode]:
    ada, node = an_operator(tmp_path, lab)
    ada.joined(node, "--run", "cat")
    return ada, node


def test_the_profile_of_the_page_leaves_a_key_without_limits_nothing_but_the_node(
    pair: tuple[Operator, LabNode]
) -> None:
    """Without its lines the same key has all of it. Guards: with `ForceCommand`, `PermitTTY` or
    `DisableForwarding` out of the page this fails; `PermitUserRC` holds where there is no
    `ForceCommand`, with which sshd runs no file of the account's by itself.
    """
    ada, node = pair
    key = unrestricted(ada, node)
    profile(node, whole=False)
    assert granted(node, key) == tuple(PROBES)
    assert node.path(MARK).exists(), "the account's own file is run"
    node.exec(["rm", MARK])

    profile(node)
    assert granted(node, key) == ()
    assert answers(ada, node), "and the hub has what it needs"
    assert not node.path(MARK).exists()


def test_the_profile_of_the_page_refuses_openssh_itself(pair: tuple[Operator, LabNode]) -> None:
    """The same by its own programs, each first without. Guard: so does `DenyUsers` out of it."""
    ada, node = pair
    key = unrestricted(ada, node)
    profile(node, whole=False)
    assert ssh(node, key, "echo $((6 * 7))")[1].endswith("42\n")
    assert ssh(node, key, program="sftp", says="ls .agent-node\n")[0] == 0
    assert "SSH-2.0" in ssh(node, key, "-W", "127.0.0.1:22")[1]
    assert "/dev/pts/" in ssh(node, key, "-tt", "tty")[1]
    assert ssh(node, key, "echo $((6 * 7))", user="arc-run")[1].endswith("42\n")

    profile(node)
    code, said = ssh(node, key, "echo $((6 * 7))")
    assert (code, "42\n" in said) == (0, False)
    assert '{"agent-node"' in said, "whatever is asked for, the node answers"
    assert ssh(node, key, program="sftp", says="ls .agent-node\n")[0] != 0
    assert "SSH-2.0" not in ssh(node, key, "-W", "127.0.0.1:22")[1]
    said = ssh(node, key, "-tt", "tty")[1]
    assert "PTY allocation request failed" in said
    assert "/dev/pts/" not in said
    code, said = ssh(node, key, "echo $((6 * 7))", user="arc-run")
    assert (code, "Permission denied" in said) == (255, True)


def test_the_profile_shuts_the_operators_own_login_out_as_the_page_says(
    pair: tuple[Operator, LabNode]
) -> None:
    ada, node = pair
    profile(node)
    ran = ada.add(node, "--run", "cat")
    assert ran.code == 3
    assert "iris: gives your login agent-node and no shell: ForceCommand in its sshd" in ran.err
    profile(node, whole=False)
    assert ada.joined(node, "--run", "cat"), "taken away for a moment"
