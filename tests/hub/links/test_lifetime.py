"""Holds that no SSH connection grows old, and that nothing is lost when one retires."""

from __future__ import annotations

import asyncio

import asyncssh
import pytest

from arc.demo.sshd import DemoSshd
from arc.errors import NodeUnreachable, OutcomeUnknown
from arc.links.lifetime import LIFE_S, Lifetime
from arc.links.ssh import SshWay
from arc.links.talk import Talk
from tests.hub.links.places import a_link
from tests.hub.links.test_ssh import Hub, hub, server
from tests.virtual_time import in_virtual_time

__all__ = ["hub", "server"]

LIFE = b"01J0000000000000000000000A"
GREETING = (
    b'{"agent-node":"0.1.0","wire":1,"node":"iris","incarnation":"' + LIFE + b'","generation":1}\n'
)


class Wire:
    """A connection of which only its end is looked at, and when it came."""

    def __init__(self) -> None:
        self.ended: tuple[str, float] | None = None

    def close(self) -> None:
        self.ended = self.ended or ("closed", asyncio.get_running_loop().time())

    def abort(self) -> None:
        self.ended = self.ended or ("cut", asyncio.get_running_loop().time())

    def is_closed(self) -> bool:
        return self.ended is not None


class Sink:
    """A channel of which nobody reads."""

    def send(self, line: bytes) -> None:
        return

    def unsent(self) -> int:
        return 0

    def close(self) -> None:
        return


def a_talk() -> Talk:
    """One that was greeted by iris and goes on."""
    talk = Talk("iris", lambda event: None)
    talk.connect(Sink())
    talk.received(GREETING)
    return talk


def test_ten_minutes_are_the_most() -> None:
    """The promise of docs/security.md: a key that was taken away counts no longer than this."""
    assert LIFE_S <= 600


def test_an_idle_connection_retires_in_time_and_ends_at_once() -> None:
    async def story() -> tuple[str | None, tuple[str, float] | None]:
        wire, talk = Wire(), a_talk()
        life = Lifetime(wire)
        life.began(talk)
        await talk.closed.wait()
        assert not life.takes_more
        life.ended(talk)
        return talk.over, wire.ended

    (why, ended), _ = in_virtual_time(story())
    assert why is not None
    assert "age" in why
    assert ended is not None
    assert (ended[0], 0.8 * LIFE_S <= ended[1] <= 0.9 * LIFE_S) == ("closed", True)


def test_what_was_asked_before_is_still_answered() -> None:
    async def story() -> None:
        wire, talk = Wire(), a_talk()
        life = Lifetime(wire)
        life.began(talk)
        await asyncio.sleep(0.79 * LIFE_S)
        asked = asyncio.create_task(talk.ask("escrow", {}, 300))
        await asyncio.sleep(0.15 * LIFE_S)
        assert (talk.over, wire.ended, bool(talk.retires)) == (None, None, True)
        talk.received(b'{"id":1,"ok":true,"result":{"fine":1}}\n')
        assert await asked == {"fine": 1}
        assert talk.over is not None

    in_virtual_time(story())


def test_what_is_not_answered_by_then_is_cut() -> None:
    """With `cut` taken out of the timers a node that holds an answer back keeps a revoked key."""

    async def story() -> tuple[str, float] | None:
        wire, talk = Wire(), a_talk()
        Lifetime(wire).began(talk)
        await asyncio.sleep(0.79 * LIFE_S)
        with pytest.raises(OutcomeUnknown, match="none lives longer"):
            await talk.ask("escrow", {}, 3600)
        return wire.ended

    ended, _ = in_virtual_time(story())
    assert ended == ("cut", LIFE_S)


async def test_a_retired_connection_is_followed_by_another(hub: Hub, server: DemoSshd) -> None:
    way = SshWay(hub.entry(server.port), hub.settings)
    link = a_link(way)
    first = await link.meet()
    assert link._session is not None
    assert way._lifetime is not None
    talk, old = link._session.talk, way._connection
    way._lifetime._new_until = 0.0
    way._lifetime._retire()
    await asyncio.wait_for(talk.closed.wait(), 10)
    assert (await link.meet()).incarnation == first.incarnation
    assert way._connection is not old
    assert old is not None
    await asyncio.wait_for(old.wait_closed(), 10)
    await link.close()


async def test_who_takes_no_part_in_strict_key_exchange_is_asked_nothing(
    hub: Hub, server: DemoSshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server from before CVE-2023-48795. Without the check in `_connect` it is asked."""
    monkeypatch.setattr(asyncssh.SSHServerConnection, "_get_extra_kex_algs", lambda self: [])
    link = hub.link(server.port)
    with pytest.raises(NodeUnreachable, match="strict key exchange") as refused:
        await link.meet()
    assert "update its sshd" in refused.value.hint
    assert link.requests == 0
    await link.close()
