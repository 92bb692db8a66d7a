"""Reads a status of each node over warm connections, as parallel-ssh and paramiko do it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from .hub_far import ONCE
from .peer_rounds import NOT_INSTALLED, PeerRounds, answer_rounds, is_there

COMMAND, LIMIT_S = "status", 60.0
PACKAGES = {"parallel-ssh": "pssh", "paramiko": "paramiko"}
Poll = Callable[[], Sequence[bytes]]


def ssh_peers(rounds: int, ports: Mapping[str, int], key: Path) -> dict[str, float | str]:
    """What each takes, in the middle, or that it is not installed; one after the other.

    Not in turns with ours: a thread for each of a hundred connections looks ten times a second.
    """
    found: dict[str, float | str] = {}
    for name, package in PACKAGES.items():
        if not is_there(package):
            found[name] = NOT_INSTALLED
            continue
        told = {"peer": name, "key": str(key), "ports": dict(ports)}
        with PeerRounds("peer_ssh", told) as peer:
            took = [peer.round() for _ in range(rounds)]
        found[f"{name}, a command on each warm connection, ms"] = median(took)
    return found


def parallel_ssh(ports: Mapping[str, int], key: str) -> Poll:
    """One client for all hosts, as its own documents have it; its connections stay."""
    module: Any = import_module("pssh.clients")
    config: Any = import_module("pssh.config")
    hosts = ["127.0.0.1"] * len(ports)
    each = [config.HostConfig(user=f"{ONCE}-{name}", port=port, private_key=key)
            for name, port in ports.items()]  # fmt: skip
    client = module.ParallelSSHClient(
        hosts, host_config=each, pool_size=len(hosts), allow_agent=False, timeout=LIMIT_S,
    )  # fmt: skip

    def poll() -> list[bytes]:
        output = client.run_command(COMMAND, stop_on_errors=True)
        return ["\n".join(one.stdout).encode() for one in output]

    return poll


def paramiko(ports: Mapping[str, int], key: str) -> Poll:
    """A thread for each connection; whom it talks to is not even looked at."""
    module: Any = import_module("paramiko")
    clients = []
    for name, port in ports.items():
        client = module.SSHClient()
        client.set_missing_host_key_policy(module.AutoAddPolicy())
        client.connect("127.0.0.1", port, username=f"{ONCE}-{name}", key_filename=key,
                       allow_agent=False, look_for_keys=False, timeout=LIMIT_S)  # fmt: skip
        clients.append(client)
    pool = ThreadPoolExecutor(len(clients))

    def one(client: Any) -> bytes:
        _, said, _ = client.exec_command(COMMAND, timeout=LIMIT_S)
        return bytes(said.read())

    return lambda: list(pool.map(one, clients, timeout=LIMIT_S))


def main(told: str) -> None:
    """Rounds in milliseconds; a status that is missing ends it."""
    asked = json.loads(told)
    start = {"parallel-ssh": parallel_ssh, "paramiko": paramiko}[asked["peer"]]
    poll = start(asked["ports"], asked["key"])

    def take() -> float:
        began = time.perf_counter()
        said = poll()
        took = 1000 * (time.perf_counter() - began)
        if len(said) != len(asked["ports"]) or any(b"fleet-status/1" not in one for one in said):
            raise RuntimeError("not every node was heard")
        return took

    for _ in range(2):
        take()
    answer_rounds(take)


if __name__ == "__main__":
    main(sys.argv[1])
