"""The hub's key is tried in words of every shell, and does not stay where it could not be tried."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_node.requests import Fields
from arc.errors import NodeSilent, NodeUnreachable
from arc.joining import installing, restricted, untried
from arc.joining.errors import KeyTooStrong, LeftUndone
from arc.joining.steps import Steps
from arc.joining.there import keyline

# As csh, tcsh and an old fish, which say the same.
NO_ARITHMETIC = r"""
knows() { case $1 in *'$(('*) echo 'Illegal variable name.' >&2; exit 1;; esac; }
if [ -n "$1" ]; then knows "$1"; eval "$1"; exit; fi
while read -r line; do knows "$line"; eval "$line"; done
"""


class AShell:
    """A session in which such a shell was started, as far as it is looked at."""

    def __init__(self, command: str | None) -> None:
        self._command, self._said = command or "", b""
        self.stdin = self.stdout = self

    def write(self, data: bytes) -> None:
        self._said += data

    def write_eof(self) -> None:
        return

    async def read(self, n: int) -> bytes:
        said, self._said = self._said, b""
        return ran(self._command, said)

    def close(self) -> None:
        return


def ran(command: str, said: bytes) -> bytes:
    argv = ["sh", "-c", NO_ARITHMETIC, "sh", command]
    return subprocess.run(argv, input=said, capture_output=True, check=False).stdout


class AConnection:
    """One on which anything may be started."""

    async def create_process(self, command: str | None, **how: Any) -> AShell:
        return AShell(command)


@pytest.mark.parametrize("probe", ["a shell", "commands"])
async def test_a_shell_that_knows_no_arithmetic_is_a_shell(probe: str) -> None:
    """Guard: `expr`. With `$((` it is taken for none; seen."""
    assert await restricted.PROBES[probe](cast("Any", AConnection()), "")


BLOB = "AAAAC3NzaC1lZDI1NTE5AAAAIEm3sB0a0Dq0v5cXlC2hqVq8kq3b8lS0l0k6k0lq7e0t"
PUBLIC = f"ssh-ed25519 {BLOB} arc-hub"
OURS = f'restrict,command="/usr/bin/python3 -I -S /h/agent-node.pyz serve --stdio" {PUBLIC}'
OLDER = OURS.replace("python3", "python3.11")
NOBODYS = f"ssh-ed25519 {'B' * 68} somebody\n"


class AMachine:
    """The other end of the operator's login, with the one file that matters here."""

    def __init__(self, *lines: str) -> None:
        self.text = NOBODYS + "".join(f"{line}\n" for line in lines)
        self.gone = False

    async def ask(self, do: str, fields: Any, timeout_s: float) -> Any:
        if self.gone:
            raise NodeUnreachable("iris", "your login was lost")
        was = self.text
        if do == "let_in":
            self.text = keyline.with_line(was, fields["line"])
            return Fields({"there": self.text == was})
        assert do == "shut_out"
        self.text = keyline.without_line(was, fields["blob"])
        return Fields({"taken": self.text != was})

    @property
    def lines(self) -> list[str]:
        """How the hub's key is let in."""
        return [line for line in self.text.splitlines() if BLOB in line]


async def joins(
    machine: AMachine, *, tried: bool = False, fails: Exception, at: str, again: Any = None
) -> str:
    """What is said where letting the hub in fails at this step."""
    was = "".join(machine.lines[:1])
    look = cast("Any", SimpleNamespace(line=was, user="agent"))
    steps, there = Steps(lambda step: None), cast("Any", machine)
    before = untried.line_of_before(look, tried=tried)

    async def another() -> Any:
        if again is None:
            raise NodeUnreachable("iris", "your login was lost")
        return again

    async def lets_in() -> None:
        letting = untried.Letting(PUBLIC, OURS, before)
        async with untried.no_untried_key(there, another, letting, steps):
            await installing.let_hub_in(there, look, OURS, steps)
            with steps.step(at):
                raise fails

    with pytest.raises(LeftUndone) as raised:
        await lets_in()
    return str(raised.value)


BREAKS = NodeSilent("iris", "trying SFTP: no answer within 10s")


@pytest.mark.parametrize("at", ["daemon", "restricted key"])
@pytest.mark.parametrize(
    ("was", "tried", "stays"),
    [((), False, ()), ((), True, ()), ((OURS,), False, ()), ((OLDER,), False, ()),
     ((OURS,), True, (OURS,)), ((OLDER,), True, (OLDER,)), ((PUBLIC,), True, ())],
    ids=["new", "new again", "of a run that broke off", "another of such a run", "in service",
         "another in service", "without limits"],
)  # fmt: skip
async def test_a_key_that_could_not_be_tried_stays_only_where_it_was_before(
    at: str, was: tuple[str, ...], tried: bool, stays: tuple[str, ...]
) -> None:
    """Guard: `no_untried_key`. Without it a line that nobody has tried to the end stays. Seen to
    fail: a line of a run in which the daemon did not start, and one in service that was replaced.
    """
    machine = AMachine(*was)
    said = await joins(machine, tried=tried, fails=BREAKS, at=at)
    assert machine.lines == [*stays]
    assert machine.text.startswith(NOBODYS)
    assert said.startswith(str(BREAKS))
    assert (untried.OUT in said) is (not stays)
    assert (untried.BACK in said) is (stays == (OLDER,))
    assert "the hub's key is in authorized_keys" not in said


async def test_it_is_taken_out_in_another_talk_where_one_broke_off() -> None:
    """Fails where it is tried in that talk alone."""
    machine, again = AMachine(), AMachine(OURS)

    class Breaks(NodeSilent):
        """By now nothing is answered there."""

        def __str__(self) -> str:
            machine.gone = True
            return "start was not answered within 120s"

    said = await joins(machine, fails=Breaks("iris", ""), at="daemon", again=again)
    assert again.lines == []
    assert untried.OUT in said


async def test_what_could_not_be_taken_out_is_said() -> None:
    machine = AMachine(OURS)
    machine.gone = True
    said = await joins(machine, fails=BREAKS, at="daemon")
    assert "could not be taken out again (iris: your login was lost)" in said


async def test_a_key_that_gets_more_stays_in_no_case() -> None:
    """Also where an earlier run had found it restricted: it is so no longer."""
    for was in ((OURS,), (OLDER,)):
        machine = AMachine(*was)
        loose = KeyTooStrong("iris: the hub's key was granted a shell")
        said = await joins(machine, tried=True, fails=loose, at="restricted key")
        assert machine.lines == []
        assert untried.OUT in said
        assert untried.UNTRIED not in said
