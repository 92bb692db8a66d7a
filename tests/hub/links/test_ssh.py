"""Holds the way over SSH against the contract of every link, a real server at the other end."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import asyncssh
import pytest

from arc.demo.sshd import DemoSshd
from arc.errors import (
    HostKeyChanged,
    HostKeyType,
    HostKeyUnknown,
    LinkError,
    LoginRefused,
    NodeUnreachable,
    NoNodeProgram,
    OutcomeUnknown,
)
from arc.joining.steps import Steps
from arc.joining.story import Here
from arc.joining.trusting import trust
from arc.keys import make_key_pair, private_key_path, read_public_key
from arc.links import ssh
from arc.links.hostkeys import HostKeys
from arc.links.ssh import SshWay, offered_key
from arc.links.standing import StandingLink
from arc.settings import NodeEntry
from tests.hub.links.places import a_home, a_link, settings_of
from tests.hub.links.test_pipes import BEGIN, speaks
from tests.link_contract import LinkContract, Reach


class Hub:
    """A hub's state folder with its key, and links over SSH to what listens on this machine."""

    def __init__(self, place: Path) -> None:
        self.settings = settings_of(place)
        self.public = make_key_pair(self.settings.state, comment="arc-hub")
        self.keys = HostKeys(self.settings.state / "known_hosts")

    def trust(self, server: DemoSshd, name: str = "iris") -> None:
        self.keys.pin(name, server.host_key, fingerprint=server.host_key.fingerprint)

    def entry(self, port: int, name: str = "iris") -> NodeEntry:
        return NodeEntry(name, host="127.0.0.1", port=port, user="agent")

    def link(self, port: int, **how: Any) -> StandingLink:
        return a_link(SshWay(self.entry(port), self.settings), **how)


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return Hub(tmp_path)


@pytest.fixture
async def server(hub: Hub, tmp_path: Path) -> AsyncIterator[DemoSshd]:
    """A node behind SSH whose host key is trusted."""
    server = await DemoSshd.serve(a_home(tmp_path), authorized=hub.public)
    hub.trust(server)
    yield server
    await server.close()


@asynccontextmanager
async def behind_ssh(hub: Hub, code: str) -> AsyncIterator[StandingLink]:
    """A link to a server behind which this Python runs in place of agent-node."""
    argv = (sys.executable, "-I", "-S", "-c", BEGIN + code)
    server = await DemoSshd.serve(Path("/nowhere"), authorized=hub.public, argv=argv)
    hub.trust(server)
    link = hub.link(server.port)
    yield link
    await link.close()
    await server.close()


class TestSsh(LinkContract):
    """A node behind a real SSH server."""

    @asynccontextmanager
    async def reaching(self, place: Path) -> AsyncIterator[Reach]:
        hub = Hub(place)
        server = await DemoSshd.serve(a_home(place), authorized=hub.public)
        hub.trust(server)
        yield lambda term=1: hub.link(server.port, term=term)
        await server.close()


# --- Whose machine it is --------------------------------------------------------------------------


async def test_a_host_that_nobody_trusts_yet_is_sent_nothing(hub: Hub, server: DemoSshd) -> None:
    hub.keys.forget("iris")
    link = hub.link(server.port)
    with pytest.raises(HostKeyUnknown) as unknown:
        await link.ask("status")
    assert server.host_key.fingerprint in str(unknown.value)
    assert unknown.value.exit_code == 4
    await link.close()


async def test_the_command_that_a_hint_names_makes_the_host_trusted(
    hub: Hub, server: DemoSshd, tmp_path: Path
) -> None:
    """A hint that names what does not work leaves its reader at a closed door. The fingerprint
    itself does not stand in it: a person has to look at the machine.
    """
    hub.keys.forget("iris")
    link = hub.link(server.port)
    with pytest.raises(HostKeyUnknown) as unknown:
        await link.meet()
    assert unknown.value.hint.endswith("then: arc nodes trust iris --fingerprint SHA256:…")
    settings = replace(hub.settings, nodes=(hub.entry(server.port),))
    here = Here(settings, {}, lambda question: None)
    await trust("iris", server.host_key.fingerprint, here, Steps(lambda step: None))
    assert (await link.meet()).node == "iris"
    await link.close()


async def test_fault_quotes_in_a_question_were_cut_apart_by_the_remote_shell(
    hub: Hub, server: DemoSshd
) -> None:
    """The original asked inside a quoted shell line, threw the error away, and read "no tasks".

    Here the remote command is a constant, and what is asked goes over stdin.
    """
    subject = """a "b" 'c' $(touch pwned) `id` ; x && y | z > w \\ \N{BLACK STAR}"""
    link = hub.link(server.port)
    await link.ask("add", {"tasks": [{"subject": subject, "skills": ["it's", '"q"']}]})
    found = await link.ask("candidates", {"why": "stolen", "for": [{"node": "loom"}]})
    assert found["eligible"] == 1
    (task,) = cast("list[dict[str, object]]", found["tasks"])
    assert (task["subject"], task["skills"]) == (subject, ['"q"', "it's"])
    await link.close()


async def test_a_changed_host_key_is_shown_beside_the_trusted_one(
    hub: Hub, server: DemoSshd, tmp_path: Path
) -> None:
    """With known_hosts=None in `connect` this hub would log in to whoever answers."""
    (tmp_path / "other").mkdir()
    other = await DemoSshd.serve(tmp_path / "other", authorized=hub.public)
    link = hub.link(other.port)
    with pytest.raises(HostKeyChanged) as changed:
        await link.ask("status")
    assert server.host_key.fingerprint in str(changed.value)
    assert other.host_key.fingerprint in str(changed.value)
    assert "nothing was sent" in str(changed.value)
    assert link.requests == 0
    await link.close()
    await other.close()


async def test_a_host_key_of_another_type_is_no_reset_connection(
    hub: Hub, server: DemoSshd, tmp_path: Path
) -> None:
    other = await DemoSshd.serve(
        tmp_path, authorized=hub.public, host_key_type="ecdsa-sha2-nistp256"
    )
    link = hub.link(other.port)
    with pytest.raises(HostKeyType) as raised:
        await link.ask("status")
    assert other.host_key.fingerprint in str(raised.value)
    assert "ecdsa-sha2-nistp256" in str(raised.value)
    assert server.host_key.fingerprint in str(raised.value)
    await link.close()
    await other.close()


async def test_a_key_trusted_meanwhile_counts_at_once(hub: Hub, server: DemoSshd) -> None:
    hub.keys.forget("iris")
    link = hub.link(server.port)
    with pytest.raises(HostKeyUnknown):
        await link.meet()
    hub.trust(server)
    assert (await link.meet()).node == "iris"
    await link.close()


async def test_the_offered_key_can_be_looked_at_before_it_is_trusted(
    hub: Hub, server: DemoSshd
) -> None:
    assert await offered_key(hub.entry(server.port), hub.settings) == server.host_key


async def test_known_hosts_that_cannot_be_read_send_nothing(hub: Hub, server: DemoSshd) -> None:
    (hub.settings.state / "known_hosts").write_text("iris ssh-ed25519 nonsense!\n")
    link = hub.link(server.port)
    with pytest.raises(NodeUnreachable, match=r"known_hosts:1: .*nothing was sent"):
        await link.ask("status")
    await link.close()


# --- Whether we may log in ------------------------------------------------------------------------


async def test_a_login_that_is_refused_says_what_it_may_be(hub: Hub, tmp_path: Path) -> None:
    stranger = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
    server = await DemoSshd.serve(tmp_path, authorized=stranger)
    hub.trust(server)
    link = hub.link(server.port)
    with pytest.raises(LoginRefused, match="did not take the hub's key") as refused:
        await link.ask("status")
    assert "sshd" in refused.value.hint
    await link.close()
    await server.close()


async def test_a_hub_without_a_key_says_how_to_make_one(hub: Hub, server: DemoSshd) -> None:
    private_key_path(hub.settings.state).unlink()
    link = hub.link(server.port)
    with pytest.raises(NodeUnreachable, match="arc init"):
        await link.ask("status")
    await link.close()


async def test_a_stolen_key_opens_nothing_but_the_one_program(hub: Hub, server: DemoSshd) -> None:
    """No shell, no SFTP, no terminal, no forwarding; whatever is run, agent-node runs."""
    thief = await asyncssh.connect(
        "127.0.0.1", server.port, config=None, known_hosts=None, agent_path=None, username="agent",
        client_keys=[str(private_key_path(hub.settings.state))],
    )  # fmt: skip
    async with thief, asyncio.timeout(20):
        with pytest.raises(asyncssh.ChannelOpenError):
            await thief.create_process()
        with pytest.raises(asyncssh.ChannelOpenError):
            await thief.create_process("true", term_type="xterm", request_pty="force")
        with pytest.raises(asyncssh.ChannelOpenError):
            await thief.start_sftp_client()
        with pytest.raises(asyncssh.ChannelOpenError):
            await thief.open_connection("127.0.0.1", server.port)
        with pytest.raises(asyncssh.ChannelListenError):
            await thief.forward_remote_port("127.0.0.1", 0, "127.0.0.1", 1)
        ran = await thief.run("echo pwned; cat /etc/passwd", stdin=asyncssh.DEVNULL)
    assert "pwned" not in str(ran.stdout)
    assert '"agent-node"' in str(ran.stdout)


# --- Whether anybody answers ----------------------------------------------------------------------


async def test_a_refused_port_is_named(hub: Hub, server: DemoSshd) -> None:
    port = server.port
    await server.close()
    link = hub.link(port)
    with pytest.raises(NodeUnreachable, match=f"nobody listens at agent@127.0.0.1:{port}"):
        await link.ask("status")
    await link.close()


@pytest.fixture
def mute() -> Iterator[socket.socket]:
    """A port that takes connections and never says a word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield listening


async def test_a_port_without_a_banner_is_never_an_empty_error(
    hub: Hub, server: DemoSshd, mute: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "CONNECT_S", 0.2)
    link = hub.link(mute.getsockname()[1])
    with pytest.raises(NodeUnreachable, match=r"0\.2s: connected .* no SSH banner has come"):
        await link.ask("status")
    await link.close()


async def test_who_gives_up_waiting_hears_how_far_it_came(
    hub: Hub, server: DemoSshd, mute: socket.socket
) -> None:
    link = hub.link(mute.getsockname()[1])
    with pytest.raises(NodeUnreachable, match=r"within 0\.2s \(connected .* no SSH banner"):
        await link.ask("status", timeout_s=0.2)
    await link.close()


@pytest.mark.parametrize(("greets", "says"), [
    (b"", "closed the connection before its SSH banner"),
    (b"Exceeded MaxStartups\r\n", "connection"),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "connection"),
    (b"SSH-1.5-old\r\n", "no SSH that we take"),
    (b"SSH-2.0-short\r\n", "exchanging keys .* perhaps it speaks no SSH that we take"),
])  # fmt: skip
async def test_a_server_that_hangs_up_is_never_a_bare_reset(
    hub: Hub, server: DemoSshd, greets: bytes, says: str
) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greets)
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as door:
        link = hub.link(door.sockets[0].getsockname()[1])
        with pytest.raises(NodeUnreachable, match=says):
            await link.ask("status")
        await link.close()


async def test_a_program_that_is_missing_there_is_said_with_its_last_words(hub: Hub) -> None:
    code = "sys.stderr.write('sh: 1: agent-node: not found\\n')\nexit(127)"
    async with behind_ssh(hub, code) as link:
        with pytest.raises(NoNodeProgram, match=r"exit 127.*agent-node: not found") as missing:
            await link.ask("status")
        assert "forced command" in missing.value.hint


async def test_a_connection_that_breaks_leaves_a_mutation_unknown(hub: Hub) -> None:
    async with behind_ssh(hub, speaks("sys.stdin.readline()\nos.kill(os.getpid(), 9)")) as link:
        with pytest.raises(OutcomeUnknown, match="signal KILL"):
            await link.ask("escrow", {"moves": []})


async def test_after_a_broken_connection_the_next_question_opens_another(
    hub: Hub, server: DemoSshd
) -> None:
    link = hub.link(server.port)
    first = await link.meet()
    assert link._session is not None
    talk = link._session.talk
    await server.drop_connections()
    await talk.closed.wait()
    assert link.met is None
    assert (await link.ask("status"))["incarnation"] == first.incarnation
    await link.close()


async def test_all_who_wait_share_one_connection(hub: Hub, server: DemoSshd) -> None:
    link = hub.link(server.port)
    await asyncio.gather(*(link.ask("status") for _ in range(20)))
    assert len(server._connections) == 1
    assert link.requests == 21
    await link.close()


async def test_a_frozen_machine_is_noticed_by_its_silence(
    hub: Hub, server: DemoSshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy stands between and, once told to, lets no byte through; nobody closes anything."""
    monkeypatch.setattr(ssh, "ALIVE_EVERY_S", 0.05)
    frozen = asyncio.Event()
    pumps: list[asyncio.Task[None]] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if not frozen.is_set():
                writer.write(data)
        writer.close()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", server.port)
        pumps.extend(asyncio.create_task(pump(*ends)) for ends in ((reader, back), (there, writer)))

    door = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    link = hub.link(door.sockets[0].getsockname()[1])
    await link.meet()
    frozen.set()
    with pytest.raises(LinkError, match="no sign of life"):
        await link.ask("status")
    await link.close()
    door.close()
    await server.drop_connections()
    await asyncio.wait(pumps, timeout=5)


async def test_nothing_of_the_operators_own_ssh_is_used(
    hub: Hub, server: DemoSshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trap in ~/.ssh/config, and an agent that hangs up on whoever comes. Seen to fail with the
    file read, and with no word on the agent. One that is not there would be no trap: asyncssh
    passes over it in silence.
    """
    asked: list[str] = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append("somebody")
        writer.close()

    agent = await asyncio.start_unix_server(hang_up, tmp_path / "agent")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host *\n  ProxyCommand false\n  Port 1\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    link = hub.link(server.port)
    assert (await link.meet()).node == "iris"
    assert asked == []
    await link.close()
    agent.close()


async def test_a_config_that_fleet_yaml_names_is_used_and_no_other(
    hub: Hub, server: DemoSshd, tmp_path: Path
) -> None:
    """`far` is known to this file alone; seen to fail with the file left aside."""
    own = tmp_path / "ssh-config"
    own.write_text("Host far\n  HostName 127.0.0.1\n  User demo\n")
    entry = replace(hub.entry(server.port), host="far")
    with_it = SshWay(entry, replace(hub.settings, ssh_config=own))
    link = a_link(with_it)
    assert (await link.meet()).node == "iris"
    await link.close()
    without = a_link(SshWay(entry, hub.settings))
    with pytest.raises(LinkError, match="far"):
        await without.meet()
    await without.close()


async def test_only_modern_algorithms_are_agreed_upon(hub: Hub, server: DemoSshd) -> None:
    way = SshWay(hub.entry(server.port), hub.settings)
    link = a_link(way)
    await link.meet()
    assert way._connection is not None
    for side in ("send", "recv"):
        assert way._connection.get_extra_info(f"{side}_cipher") == "aes256-gcm@openssh.com"
        assert way._connection.get_extra_info(f"{side}_compression") == "none"
    await link.close()


def test_the_public_key_is_made_from_the_private_one(hub: Hub) -> None:
    assert read_public_key(hub.settings.state) == hub.public
    assert make_key_pair(hub.settings.state, comment="again") == hub.public
    assert private_key_path(hub.settings.state).stat().st_mode & 0o777 == 0o600
