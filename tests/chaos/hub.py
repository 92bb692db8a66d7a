"""A hub double without any memory: settles what the nodes report as doubts, then moves tasks.

`python -m tests.chaos.hub SEED LOG GIVES_UP HOME HOME` goes on until it is killed; a link that
breaks is opened anew. It writes a line to LOG when one of its `serve` processes was killed.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ANSWER_S = 5.0
CLOSE_S = 1.0
PAUSE_S = 0.02  # between two rounds, so that it leaves the machine to those who work
# It starts, or its disk fails: it may have happened.
_ASK_AGAIN = {"starting", "disk", "disk_broken", "fault"}
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class LinkDown(Exception):
    """No answer came: what was asked may or may not have happened."""


class Refused(Exception):
    """The node said no."""


class Side:
    """One `agent-node serve --stdio`, and who answers behind it."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        with (home.parent / "serve.log").open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "agent_node", "serve", "--stdio"], cwd=ROOT,
                env={**env, "AGENT_NODE_HOME": str(home)},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,
            )  # fmt: skip
        self._left = b""
        self._id = 0
        try:
            self.incarnation = str(self._line()["incarnation"])
        except LinkDown:
            self.close()
            raise
        except KeyError as error:
            self.close()
            raise LinkDown("no greeting") from error

    def ask(self, do: str, **fields: object) -> dict[str, Any]:
        """The result; `LinkDown` when there is none, `Refused` when it is no."""
        assert self.process.stdin is not None
        self._id += 1
        try:
            request = json.dumps({"id": self._id, "do": do, **fields}).encode() + b"\n"
            os.write(self.process.stdin.fileno(), request)
        except BrokenPipeError as error:
            raise LinkDown(do) from error
        reply = self._line()
        if not reply.get("ok"):
            why = reply.get("error", {})
            raise (LinkDown if why.get("code") in _ASK_AGAIN else Refused)(f"{do}: {why}")
        result: dict[str, Any] = reply["result"]
        return result

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        ear, until = self.process.stdout.fileno(), time.monotonic() + ANSWER_S
        while b"\n" not in self._left:
            left = until - time.monotonic()
            if left <= 0 or not select.select([ear], [], [], left)[0]:
                raise LinkDown("no answer in time")
            data = os.read(ear, 1 << 20)
            if not data:
                raise LinkDown("the link broke")
            self._left += data
        line, _, self._left = self._left.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said

    def close(self) -> int:
        """End the talk; the exit code of `serve`, 0 when a frozen node keeps it from ending."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            return self.process.wait(timeout=CLOSE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return 0


class HubDouble:
    """The escrow protocol between two homes. All it knows it asks the nodes for."""

    def __init__(
        self, homes: list[Path], env: Mapping[str, str], dice: Random, gives_up: float = 0.0
    ) -> None:
        self._homes, self._env, self._dice, self._gives_up = homes, env, dice, gives_up
        self._sides: dict[str, Side] = {}
        self.killed = 0
        self.stranded: list[str] = []

    def round(self) -> int:
        """Settle, then move something; how many doubts there were. A broken link ends the round."""
        try:
            self.open()
            doubts = self.settle()
            self.move()
        except LinkDown:
            self.close()
            return -1
        return doubts

    def open(self) -> None:
        """Both links, and a hello on each."""
        for home in self._homes:
            if home.name not in self._sides:
                side = self._sides[home.name] = Side(home, self._env)
                side.ask("hello", fleet="chaos", hub="double", term=1, wire=[1, 1])

    def close(self) -> None:
        """Forget both links; count the ones whose `serve` was killed."""
        sides, self._sides = self._sides, {}
        self.killed += sum(side.close() == -9 for side in sides.values())

    def settle(self) -> int:
        """Bring every doubt one step nearer to its end; how many there were."""
        said = {name: side.ask("doubts")["doubts"] for name, side in self._sides.items()}
        held = {(name, one["xfer"]) for name, doubts in said.items()
                for one in doubts if one["side"] == "taker"}  # fmt: skip
        given = {one["xfer"] for doubts in said.values()
                 for one in doubts if one["side"] == "giver"}  # fmt: skip
        for name, doubts in said.items():
            for one in doubts:
                if one["side"] == "giver":
                    self._settle(name, one, held=(one["peer"], one["xfer"]) in held)
                elif one["xfer"] not in given:
                    self._settle(one["peer"], {**one, "peer": name, "state": "?"}, held=True)
        return sum(map(len, said.values()))

    def _settle(self, giver: str, doubt: dict[str, Any], *, held: bool) -> None:
        x, uid, taker = doubt["xfer"], doubt["uid"], doubt["peer"]
        if held:
            outcome = self._tell(giver, taker, "commit", x, uid)
        elif doubt["state"] == "ESCROW":
            outcome = self._tell(giver, taker, "abort", x, uid)
        else:
            outcome = "committed" if doubt["state"] == "MOVED" else "aborted"
        then = {"committed": "activate", "aborted": "drop"}.get(outcome)
        if then is None:
            return
        done = self._tell(taker, giver, then, x, uid)
        if done in {"activated", "dropped", "too_old"}:
            self._tell(giver, taker, "settled", x, uid)
        elif then == "activate":
            self.stranded.append(f"{x} {uid}: {giver} {outcome}, {taker} {done}")

    def _tell(self, at: str, peer: str, do: str, x: str, uid: str) -> str:
        side, other = self._sides[at], self._sides[peer]
        entry = {"xfer": x, "uid": uid, "peer": peer}
        said = side.ask(do, moves=[entry], incarnation=side.incarnation,
                        peer_incarnation=other.incarnation)  # fmt: skip
        return str(said["results"][0]["outcome"])

    def move(self) -> None:
        """Some tasks from one home to the other, given up half-way now and then."""
        names = list(self._sides)
        giver, taker = self._dice.sample(names, 2)
        side, other = self._sides[giver], self._sides[taker]
        both = {"incarnation": side.incarnation, "peer_incarnation": other.incarnation}
        found = side.ask("candidates", why="moved", limit=3, **{"for": [{"node": taker}]})
        moves = [{"xfer": new_ulid(self._dice), "uid": task["uid"], "epoch": task["epoch"]}
                 for task in found["tasks"]]  # fmt: skip
        if not moves:
            return
        taken = side.ask("escrow", to=taker, why="moved", lease_s=30, moves=moves, **both)
        offers = [{name: one[name] for name in ("xfer", "task", "sha256")}
                  for one in taken["results"] if one["outcome"] == "escrowed"]  # fmt: skip
        if not offers or self._dice.random() < self._gives_up:
            return
        back = {"incarnation": other.incarnation, "peer_incarnation": side.incarnation}
        held = other.ask("hold", why="moved", moves=offers, even_if_stopped=True,
                         **{"from": giver}, **back)  # fmt: skip
        kept = {one["xfer"] for one in held["results"] if one["outcome"] == "held"}
        self._carry_on(giver, taker, [one for one in offers if one["xfer"] in kept])

    def _carry_on(self, giver: str, taker: str, offers: list[dict[str, Any]]) -> None:
        for do, at, peer in (("commit", giver, taker), ("activate", taker, giver),
                             ("settled", giver, taker)):  # fmt: skip
            for one in offers:
                if self._dice.random() < self._gives_up / 2:
                    return
                self._tell(at, peer, do, one["xfer"], one["task"]["uid"])


def new_ulid(dice: Random) -> str:
    """A fresh one; made here, so that the product's own is not what it is tested with."""
    number = int(time.time() * 1000) << 80 | dice.getrandbits(80)
    return "".join(_LETTERS[number >> shift & 31] for shift in range(125, -1, -5))


def main(seed: str, log: str, gives_up: str, *homes: str) -> None:
    hub = HubDouble([*map(Path, homes)], os.environ, Random(seed), float(gives_up))
    written = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    while True:
        killed = hub.killed
        try:
            hub.round()
        except Refused as error:
            os.write(written, f"refused {error}\n".encode())
            hub.close()
        if hub.killed > killed:
            os.write(written, b"serve_killed\n")
        for line in hub.stranded:
            os.write(written, f"stranded {line}\n".encode())
        hub.stranded.clear()
        select.select([], [], [], PAUSE_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
