"""A laboratory of container nodes: machines of their own with a real OpenSSH, and no image.

It needs Linux, root (or a user namespace), and what `tools/laboratory.py` looks for. Five nodes
are up within a second. Whatever happens to the tests, nothing of it stays.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent_node.packing import build_zipapp
from tests.ssh import lab_disk
from tests.ssh.ground import Ground, run
from tests.ssh.lab_node import LabNode

NODES_MAX = 40


class Lab:
    """One laboratory for a whole run; a test starts what it needs, and everything stops after it.

    `place` is a folder of the test run for the zipapp and the operator's key. `shared` is one
    folder in every node, at /shared: what tasks write there, a checker reads whatever became of
    the node. Locks hold across nodes: it is one kernel.
    """

    def __init__(self, place: Path) -> None:
        self.zipapp = place / "agent-node.pyz"
        build_zipapp(self.zipapp, lab_disk.python_inside()[0])
        self.operator_key = place / "operator"
        made = ["ssh-keygen", "-qt", "ed25519", "-N", "", "-C", "operator"]
        run([*made, "-f", str(self.operator_key)])
        self._borrowed = tuple(
            path for path in (*lab_disk.BORROWED, *lab_disk.python_inside()[1])
            if Path(path).is_dir()
        )  # fmt: skip
        self.ground = Ground()
        self.shared = self.ground.shared
        self.nodes: list[LabNode] = []
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, count: int = 1, *, disk_mb: int = 64) -> list[LabNode]:
        """This many fresh machines with fresh disks; they boot side by side."""
        first = len(self.nodes) + 1
        assert first + count <= NODES_MAX, "so many nodes have no addresses here"
        new = [
            LabNode(self.ground, first + n, zipapp=self.zipapp, borrowed=self._borrowed)
            for n in range(count)
        ]
        self.nodes += new
        self._mount(new, disk_mb)
        for step in (LabNode.boot, LabNode.connect, LabNode.came_up, LabNode.wait_for_sshd):
            for node in new:
                step(node)
        return new

    def child(self, argv: Sequence[str], **how: object) -> subprocess.Popen[bytes]:
        """Start a program of the host in this network; it ends with the test, or before."""
        own = ["setpriv", "--pdeathsig", "KILL", "--", "nsenter", "-t", str(self.ground.pid), "-n"]
        child = subprocess.Popen([*own, "--", *argv], **how)  # type: ignore[call-overload]
        self._children.append(child)
        return child  # type: ignore[no-any-return]

    @contextmanager
    def entered(self) -> Iterator[Lab]:
        """The network of the laboratory for this thread; at the end all nodes are gone."""
        with self.ground.inside():
            try:
                yield self
            finally:
                self.clear()

    def clear(self) -> None:
        """End what a test started, and switch every node off for good."""
        for child in self._children:
            child.kill()
            child.wait(10)
            for pipe in (child.stdin, child.stdout, child.stderr):
                if pipe is not None:
                    pipe.close()
        self._children.clear()
        for node in self.nodes:
            node.stop()
        if self.nodes:
            disks = " ".join(f"/mnt/{node.name}" for node in self.nodes)
            self.ground.mounts(f"umount -l {disks}; rmdir {disks}")
        self.nodes.clear()
        for left in self.shared.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()

    def close(self) -> None:
        """End the laboratory."""
        self.clear()
        self.ground.close()

    def _mount(self, nodes: Sequence[LabNode], disk_mb: int) -> None:
        mount = f'mkdir "/mnt/$n"; mount -t tmpfs -o size={disk_mb}m,mode=755 disk "/mnt/$n"'
        self.ground.mounts(f'for n in "$@"; do {mount}; done', *(node.name for node in nodes))
        for node in nodes:
            lab_disk.make_disk(node.disk, node.name, node.address, self._borrowed)


