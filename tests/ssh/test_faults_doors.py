"""Shuts every door that an sshd has, tears connections, breaks a queue: with tasks waiting.

What a link says of each stands in tests/ssh/test_links.py. Here the hub runs, moves work and finds
its way back by itself; how soon, and the books.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from tests.chaos.checker import read_ledger
from tests.ssh.fleet import SshFleet
from tests.ssh.ground import HUB_ADDRESS
from tests.ssh.heard import next_cycles, noticed, now, usual, well_again
from tests.ssh.lab import Lab
from tests.ssh.lab_node import LabNode
from tests.ssh.test_faults import (
    BACK_S,
    KEYS,
    LET_IN_AGAIN_S,
    NOTICED_S,
    begin_anew,
    ends_clean,
)

Undo = Callable[[], None]


def no_session(node: LabNode) -> Undo:
    node.options["MaxSessions"] = 0
    begin_anew(node)
    return lambda: node.restart_sshd(MaxSessions=10)


def no_login_free(node: LabNode) -> Undo:
    """One login at a time, and somebody is at it for as long as they please.

    The key is gone meanwhile, or the hub might be in again before them.
    """
    node.options |= {"MaxStartups": 1, "LoginGraceTime": 0}
    let_in = from_elsewhere(node)
    taker = one_at_the_door(node)
    let_in()

    def undo() -> None:
        taker.close()
        node.restart_sshd(MaxStartups=100)

    return undo


def one_at_the_door(node: LabNode) -> socket.socket:
    """Somebody who is greeted, and says nothing."""
    end = time.monotonic() + 10
    while True:
        taker = socket.create_connection((node.address, node.port), 5)
        if taker.recv(64).startswith(b"SSH-"):
            return taker
        taker.close()
        assert time.monotonic() < end, "others were first, every time"


def other_key_type(node: LabNode) -> Undo:
    before = {name: node.read(f"/etc/ssh/{name}") for name in host_keys(node)}
    node.new_host_key("ecdsa")
    begin_anew(node)

    def undo() -> None:
        for name in host_keys(node):
            node.path(f"/etc/ssh/{name}").unlink()
        for name, key in before.items():
            node.write(f"/etc/ssh/{name}", key, mode=0o600)
        node.restart_sshd()

    return undo


def host_keys(node: LabNode) -> list[str]:
    return [path.name for path in node.path("/etc/ssh").glob("host_key*")]


def locked(node: LabNode) -> Undo:
    before = node.read("/etc/shadow")
    node.write("/etc/shadow", before.replace(b"agent:*:", b"agent:!:"), mode=0o600)
    begin_anew(node)
    return lambda: node.write("/etc/shadow", before, mode=0o600)


def from_elsewhere(node: LabNode) -> Undo:
    before = node.read(KEYS)
    node.write(KEYS, b'from="192.0.2.7",' + before, mode=0o600, user="agent")
    begin_anew(node)
    return lambda: node.write(KEYS, before, mode=0o600, user="agent")


# How it is shut, what is said, and how soon the hub is back by itself once it is open.
DOORS: dict[str, tuple[Callable[[LabNode], Undo], str, float]] = {
    "iris": (no_login_free, "before its SSH banner", BACK_S),
    "loom": (no_session, "refused a session", BACK_S),
    "spark": (other_key_type, "ecdsa-sha2-nistp256", LET_IN_AGAIN_S),
    "forge": (locked, "the account is locked", LET_IN_AGAIN_S),
    "quill": (from_elsewhere, "kept to another address", LET_IN_AGAIN_S),
}


def test_every_door_that_an_sshd_shuts_is_named_and_found_open_again(
    lab: Lab, tmp_path: Path
) -> None:
    """No person asks meanwhile: every cycle does, whatever pause there is after a failure.

    Guard: with `forgive` out of `StandingLink.meet`, and longer pauses, none of them is back.
    """
    fleet = SshFleet(lab, tmp_path, tuple(DOORS))
    fleet.up()
    fleet.until(lambda: all(fleet.shown(name)["seen"] for name in DOORS), "all are met")
    uids = fleet.add(30)
    fleet.until(lambda: read_ledger(lab.shared / "ledger"), "some run")
    began = now()
    with ExitStack() as doors:
        for name, (shut, _, _) in DOORS.items():
            doors.callback(shut(fleet.homes[name].node))
        for name in DOORS:
            print(f"{name} noticed after {noticed(fleet, name, began, within_s=NOTICED_S):.1f} s")
        for name, (_, says, _) in DOORS.items():
            fleet.until(partial(is_told, fleet, name, says), says)
        assert "Traceback" not in fleet.arc("status").out
        began = now()  # the first one opens now
    for name, (_, says, within_s) in DOORS.items():
        took = well_again(fleet, name, began, within_s=within_s)
        print(f"{name} ({says}) is back after {took:.1f} s")
    ends_clean(fleet, uids)


def is_told(fleet: SshFleet, name: str, says: str) -> bool:
    return says in str(fleet.shown(name)["reason"])


def test_connections_that_are_reset_while_tasks_move_cost_no_task(
    lab: Lab, tmp_path: Path
) -> None:
    """Bodies of 200 KB cross in many packets; one of them is answered by a reset, four times."""
    fleet = SshFleet(lab, tmp_path, ("iris", "loom"))
    fleet.up()
    fleet.until(lambda: all(fleet.shown(name)["seen"] for name in fleet.homes), "all are met")
    uids = fleet.add(24, body="x" * 200_000)
    for name in ("iris", "loom") * 2:
        node, began = fleet.homes[name].node, now()
        node.reset()
        noticed(fleet, name, began, within_s=NOTICED_S)
        node.heal()
        print(f"{name} is back after {well_again(fleet, name, now(), within_s=BACK_S):.1f} s")
    ends_clean(fleet, uids)


def test_a_queue_that_is_damaged_is_named_and_the_others_work_on(
    lab: Lab, tmp_path: Path
) -> None:
    """Its copy put back, from before anything else happened there, it is the same node again."""
    fleet = SshFleet(lab, tmp_path, ("iris", "loom"))
    fleet.up()
    fleet.until(lambda: all(fleet.shown(name)["seen"] for name in fleet.homes), "all are met")
    uids = fleet.add(10)
    fleet.until(lambda: fleet.done(uids), "all is done")
    iris = fleet.homes["iris"]
    iris.kill_daemon()
    files = {path.name: path.read_bytes() for path in iris.node.path(iris.path).glob("queue.db*")}
    garbage = files["queue.db"][:100] + b"\xff" * (len(files["queue.db"]) - 100)
    began = now()
    place(fleet, "iris", {"queue.db": garbage})
    noticed(fleet, "iris", began, within_s=NOTICED_S)
    fleet.until(lambda: "store_corrupt" in str(fleet.shown("iris")["reason"]), "why it is unseen")
    assert fleet.data("doctor", "--node", "iris")["checks"][0]["hint"]
    uids += fleet.add(6)
    fleet.until(lambda: fleet.done(uids), "loom does it all")
    began = now()
    place(fleet, "iris", files)
    iris.start_daemon()
    well_again(fleet, "iris", began, within_s=BACK_S)
    ends_clean(fleet, uids)


def place(fleet: SshFleet, name: str, files: dict[str, bytes]) -> None:
    """These are all the files of its database from now on."""
    home = fleet.homes[name]
    for path in home.node.path(home.path).glob("queue.db*"):
        path.unlink()
    for file, content in files.items():
        home.node.write(f"{home.path}/{file}", content, mode=0o600, user=home.user)


MUTE_RESOLVER = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
ANSWERED, ADDRESS = b"\x81\x80", b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4"  # of the name asked for, for 1 s


def test_a_name_that_is_long_looked_up_holds_nobody_up(lab: Lab, tmp_path: Path) -> None:
    """Whoever the hub asks for names says nothing; the other nodes are known by their addresses.

    Once it answers, the node of that name is found, and does what it was given.
    """
    conf = tmp_path / "resolv.conf"
    conf.write_text(f"nameserver {HUB_ADDRESS}\n")
    ghost = "  - {name: ghost, host: ghost.example, user: agent}\n"
    fleet = SshFleet(lab, tmp_path, ("iris", "loom"), every="2s", more=ghost)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:
        resolver.bind((HUB_ADDRESS, 53))
        resolver.settimeout(10)
        fleet.up(within=("unshare", "--mount", "sh", "-c", MUTE_RESOLVER, str(conf)))
        asked, _ = resolver.recvfrom(512)
        began = now()  # of the lookup; how long a hub takes to start is another matter
        assert b"ghost" in asked
        for name in fleet.homes:  # who asks for the status waits for the name, too
            well_again(fleet, name, began, within_s=BACK_S)
        next_cycles(fleet, 2)
        uids = fleet.add(10)
        took = next_cycles(fleet, 4)
        print(f"beside a lookup without an end: {[round(1000 * one) for one in took]} ms")
        assert usual(took) < 0.1 * 2
        why = fleet.shown("ghost")
        assert not why["seen"]
        assert "\n" not in str(why["reason"])
        print(why["reason"])
        fleet.until(lambda: fleet.done(uids), "all is done")
        node = fleet.also("ghost").node
        with answering(resolver, node.address):
            took_s = well_again(fleet, "ghost", now(), within_s=LET_IN_AGAIN_S)
            print(f"the name is answered for, and its node met after {took_s:.1f} s")
            uids += fleet.add(2, "--to", "ghost", pinned=True)
            ends_clean(fleet, uids)


@contextmanager
def answering(resolver: socket.socket, address: str) -> Iterator[None]:
    """Whatever name is asked for has this address, and no other, from now on."""
    over = threading.Event()
    resolver.settimeout(0.1)

    def answer() -> None:
        while not over.is_set():
            with suppress(TimeoutError):
                asked, who = resolver.recvfrom(512)
                resolver.sendto(_answer_to(asked, address), who)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _answer_to(asked: bytes, address: str) -> bytes:
    """By RFC 1035: the question again, and where it is for an IPv4 address the one answer."""
    end = asked.index(b"\0", 12) + 5
    known = asked[end - 4 : end] == b"\0\1\0\1"
    found = ADDRESS + socket.inet_aton(address) if known else b""
    counts = b"\0\1" + bytes([0, known]) + b"\0\0\0\0"
    return asked[:2] + ANSWERED + counts + asked[12:end] + found
