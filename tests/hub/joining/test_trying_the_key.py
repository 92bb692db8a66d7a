"""The hub's key is tried in words of every shell, and does not stay where it could not be tried."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from arc.errors import NodeSilent
from arc.joining import restricted, story
from arc.joining.errors import LeftUndone
from arc.joining.steps import Step, Steps
from arc.keys import make_key_pair
from tests.hub.links.places import settings_of

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


class AMachine:
    """The other end of the operator's login: what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, do: str, fields: object, timeout_s: float) -> Any:
        self.asked.append(do)
        return self

    def flag(self, name: str) -> bool:
        return True


@pytest.mark.parametrize("added", [True, False])
async def test_a_key_that_could_not_be_tried_stays_only_where_it_was_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, added: bool
) -> None:
    """Guard: `_take_back`. Without it a line that nobody has tried to the end stays; seen."""
    settings, machine, steps = settings_of(tmp_path), AMachine(), Steps(lambda step: None)
    make_key_pair(settings.state, comment="arc-hub")
    here, wanted = story.Here(settings, {}, cast("Any", None)), cast("Any", Step("wanted"))
    steps.done.append(Step("hub key", changed="the hub's key is in" if added else ""))

    async def breaks(*words: object, **more: object) -> Any:
        raise NodeSilent("iris", "trying SFTP: no answer within 10s")

    monkeypatch.setattr(story, "_granted", breaks)
    wanted.entry = None
    with pytest.raises(LeftUndone, match="trying SFTP") as raised:
        await story.try_the_key(cast("Any", machine), wanted, here, cast("Any", None), steps,
                                home="/home/agent")  # fmt: skip
    assert machine.asked == (["shut_out"] if added else [])
    assert ("taken out of authorized_keys again" in str(raised.value)) is added
    assert "the hub's key is in" not in str(raised.value)
