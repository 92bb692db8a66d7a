"""Builds a node that can be talked to over the wire, with a clock and a host moved by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from agent_node.commands import AgentRow, Claim, Claimed, Command, SetAgents, Started
from agent_node.config import read_settings
from agent_node.desk import Outcome, Session
from agent_node.home import Home
from agent_node.replies import Answers
from agent_node.store import Store
from agent_node.store.sqlite import open_store
from tests.builders import FakeClock, a_clock, uid, xfer

DISK_FREE = 5_000_000_000


class FakeHost:
    """A daemon that only remembers what it was told to do."""

    def __init__(self) -> None:
        self.dispatching = True
        self.told: list[tuple[object, ...]] = []

    def stop_attempt(self, uid: str, n: int, why: str) -> None:
        self.told.append(("stop", uid, n, why))

    def changed(self, *, work: bool = True) -> None:
        self.told.append(("changed",) if work else ("changed", "no work"))

    def drain(self, deadline_s: float | None, then: str, agent: str | None) -> None:
        self.told.append(("drain", deadline_s, then, agent))

    def subscribe(self, session: Session, events: frozenset[str]) -> None:
        self.told.append(("subscribe", tuple(sorted(events))))

    def take_in(self, store: Store, command: Command[Outcome], tasks: int) -> Outcome:
        return store.apply(command)

    def disk_free(self) -> int:
        return DISK_FREE

    def carry_out_upgrade(self) -> None:
        self.told.append(("carry out upgrade",))


def a_home(place: Path, name: str = "iris", settings: str = "") -> Home:
    """A home with settings, these among them, not yet opened."""
    place.mkdir(mode=0o700)
    (place / "tasks").mkdir(mode=0o700)
    home = Home(place)
    home.config.write_text(
        f'name = "{name}"\n{settings}\n[[agent]]\nname = "{name}"\n'
        'run = ["true"]\nslots = 2\nskills = ["web"]\n',
        encoding="utf-8",
    )
    return home


class Talk:
    """One node and one peer of it: requests go in as dicts, replies come out as dicts."""

    def __init__(
        self, place: Path, name: str = "iris", *, clock: FakeClock | None = None, settings: str = ""
    ) -> None:
        self.home = a_home(place, name, settings)
        self.clock = clock or a_clock()
        self.host = FakeHost()
        self.store = open_store(place, name=name, clock=self.clock, rng=Random(7), machine="here")
        self.store.live.dispatching = True
        self.store.apply(SetAgents((AgentRow(name, 2, ("web",)),)))
        known = read_settings(self.home.config)
        self.store.spend_within(known.money)
        self.answers = Answers(
            self.store,
            home=self.home,
            settings=known,
            clock=self.clock,
            host=self.host,
        )
        self.hub, self.owner = Session("hub"), Session("owner")

    def line(self, request: Mapping[str, object], *, session: Session | None = None) -> bytes:
        return self.answers.answer(session or self.owner, json.dumps(request).encode())

    def reply(self, do: str, *, session: Session | None = None, **fields: Any) -> dict[str, Any]:
        """The whole reply, error or not."""
        reply: dict[str, Any] = json.loads(
            self.line({"id": 7, "do": do, **fields}, session=session)
        )
        assert reply["id"] == 7
        return reply

    def ask(self, do: str, *, session: Session | None = None, **fields: Any) -> dict[str, Any]:
        """The result, where there has to be one."""
        reply = self.reply(do, session=session, **fields)
        assert reply["ok"], reply
        result: dict[str, Any] = reply["result"]
        return result

    def error(self, do: str, *, session: Session | None = None, **fields: Any) -> dict[str, Any]:
        """The error, where there has to be one."""
        reply = self.reply(do, session=session, **fields)
        assert not reply["ok"], reply
        error: dict[str, Any] = reply["error"]
        return error

    def has(self, *numbers: int, **fields: Any) -> None:
        """Tasks with these numbers are here and READY."""
        tasks = [{"uid": uid(n), "subject": f"work {n}", **fields} for n in numbers]
        results = self.ask("add", tasks=tasks)["results"]
        assert [one["outcome"] for one in results] == ["added"] * len(numbers), results

    def task(self, number: int = 1) -> dict[str, Any]:
        task: dict[str, Any] = self.ask("show", uid=uid(number))["task"]
        return task

    def running(self) -> Claimed:
        """The next task is claimed and its program runs."""
        got = self.store.apply(Claim(self.home.root.name))
        assert isinstance(got, Claimed)
        assert self.store.apply(Started(got.task.uid, got.n, 4242, 99, self.clock.boot_id()))
        return got

    def close(self) -> None:
        self.store.close()


def a_move(number: int = 1, epoch: int = 1, x: int | None = None) -> dict[str, Any]:
    """One entry of an escrow."""
    return {"xfer": xfer(x or number), "uid": uid(number), "epoch": epoch}


def a_settle(number: int = 1, peer: str = "loom", x: int | None = None) -> dict[str, Any]:
    """One entry of commit, abort, settled, activate or drop."""
    return {"xfer": xfer(x or number), "uid": uid(number), "peer": peer}


def offers_of(escrowed: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of a hold, from what an escrow answered."""
    return [
        {"xfer": one["xfer"], "task": one["task"], "sha256": one["sha256"]}
        for one in escrowed["results"]
        if one["outcome"] == "escrowed"
    ]
