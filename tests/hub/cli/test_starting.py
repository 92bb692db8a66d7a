"""Commands start fast, load only what they use, and fail in one line whatever they are given."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer._click import Command, Context
from typer.core import TyperArgument, TyperGroup, TyperOption

from arc.cli.app import GROUPS, command
from arc.cli.front import COMPLETES, SUMMARIES, is_asked_for
from arc.cli.plain_types import PlainParam
from tests.hub.cli.desk import Desk
from tests.node.daemon.living import ROOT

HEAVY = "asyncssh apscheduler sqlite_utils pydantic rich ruamel orjson".split()


def commands(group: Command | None = None, name: str = "arc") -> Iterator[tuple[str, Command]]:
    """Every command of the line by its whole name."""
    whole = command() if group is None else group
    assert isinstance(whole, TyperGroup)
    for word, one in sorted(whole.commands.items()):
        yield f"{name} {word}", one
        if isinstance(one, TyperGroup):
            yield from commands(one, f"{name} {word}")


def loaded_by(code: str) -> set[str]:
    """The heavy packages that this Python has loaded at its end."""
    end = f"\nimport sys\nprint(*[one for one in {HEAVY} if one in sys.modules], file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code + end], cwd=ROOT, capture_output=True,
                         text=True, timeout=60, check=True)  # fmt: skip
    return set(ran.stderr.split())


RUN = "from arc.cli import main\nassert main({words}) == 0\n"


@pytest.mark.parametrize("words", [("--help",), ("tasks", "add", "--help"), ("--version",),
                                   ("status", "--help")])  # fmt: skip
def test_help_loads_nothing_that_it_does_not_use(words: tuple[str, ...]) -> None:
    assert loaded_by(RUN.format(words=words)) == set()


def test_status_of_a_running_hub_loads_nothing_but_what_says_it(tmp_path: Path) -> None:
    """Fails when typer reads an option through pydantic again: see arc/cli/plain_types.py."""
    (tmp_path / "fleet.yaml").write_text("nodes: []\n")
    code = f"""
import arc.door
from arc.operations import Told
arc.door.ask = lambda *words, **more: Told({{"nodes": []}})
{RUN.format(words=["--fleet", str(tmp_path / "fleet.yaml"), "status", "--json"])}
"""
    assert loaded_by(code) == set()


def test_no_command_is_a_coroutine_that_nobody_would_await() -> None:
    found = [name for name, one in commands() if inspect.iscoroutinefunction(one.callback)]
    assert found == []


def test_every_option_is_of_a_type_that_is_read_without_pydantic() -> None:
    strange = [f"{name} {param.name}" for name, one in commands() for param in one.params
               if isinstance(param, TyperArgument | TyperOption)
               and not isinstance(param._runtime_param, PlainParam)]  # fmt: skip
    assert strange == []


def test_every_command_stands_in_the_group_that_is_loaded_for_it() -> None:
    tops = {name.split()[1] for name, _ in commands()}
    assert tops == {word for words in GROUPS.values() for word in words}


def test_the_front_page_says_what_each_command_says_itself() -> None:
    whole, front = command(), command(as_front=True)
    assert isinstance(whole, TyperGroup)
    assert isinstance(front, TyperGroup)
    said = {name: one.get_short_help_str(200) for name, one in whole.commands.items()}
    assert said == SUMMARIES
    assert [*said] == [*front.commands]
    pages = [one.get_help(Context(one, info_name="arc")) for one in (whole, front)]
    assert pages[0] == pages[1]


def test_only_the_front_page_is_made_without_the_commands() -> None:
    assert is_asked_for([], {})
    assert is_asked_for(["--help", "tasks"], {})
    assert is_asked_for(["-h"], {})
    assert not is_asked_for(["tasks", "--help"], {})
    assert not is_asked_for(["--show-completion"], {})
    assert not is_asked_for([], {COMPLETES: "complete_bash"})


def test_a_shell_that_completes_is_told_of_words_below_the_front_page() -> None:
    completing = {COMPLETES: "complete_bash", "COMP_WORDS": "arc nodes ", "COMP_CWORD": "2"}
    ran = subprocess.run([sys.executable, "-m", "arc"], cwd=ROOT, capture_output=True, text=True,
                         env={**os.environ, **completing}, timeout=60, check=False)  # fmt: skip
    assert {"list", "add", "drain"} <= set(ran.stdout.split())


def test_help_loads_no_command() -> None:
    code = RUN.format(words=["--help"]) + """
import sys
from arc.cli.app import GROUPS
print(*[group for group in GROUPS if f"arc.cli.{group}" in sys.modules], file=sys.stderr)
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True,
                         timeout=60, check=True)  # fmt: skip
    assert ran.stderr.split() == []


def test_a_command_line_that_is_made_again_registers_nothing_again() -> None:
    """Run once with `arc nodes add` registered in `register`: each was slower than the last."""
    command()
    groups = [one for module in GROUPS for one in vars(sys.modules[f"arc.cli.{module}"]).values()
              if isinstance(one, typer.Typer)]  # fmt: skip
    before = [len(group.registered_commands) for group in groups]
    command()
    assert len(groups) > 3
    assert [len(group.registered_commands) for group in groups] == before


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_every_command_says_what_it_is_for(desk: Desk, name: str) -> None:
    shown = desk.arc(*name.split()[1:], "--help")
    assert shown.code == 0
    assert shown.lines[0].startswith(f"Usage: {name}")
    assert shown.lines[2].strip()


@pytest.mark.parametrize("words", [
    ("nix",), ("tasks", "nix"), ("status", "--nix"), ("log", "--limit"), ("log", "--limit", "x"),
    ("tasks", "show"), ("nodes", "logs", "iris"), ("status", "extra"),
])  # fmt: skip
def test_wrong_words_are_exit_2_in_one_line_and_no_traceback(
    desk: Desk, words: tuple[str, ...]
) -> None:
    text = desk.arc(*words)
    assert text.code == 2
    assert text.out == ""
    assert text.err.startswith("error[ARC-USAGE]: ")
    machine = desk.arc(*words, "--json")
    assert machine.code == 2
    assert machine.envelope["error"]["code"] == "ARC-USAGE"


def test_a_fleet_that_is_not_named_is_wrong_use(desk: Desk) -> None:
    assert desk.arc("status", "--fleet").err.startswith("error[ARC-USAGE]: --fleet needs the path")
    assert desk.arc("--json", "status", "--fleet=").envelope["error"]["code"] == "ARC-USAGE"


def test_a_fault_of_ours_is_one_line_with_its_place(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*words: object, **more: object) -> None:
        raise ZeroDivisionError("by accident")

    monkeypatch.setattr(desk, "ask", fault)
    text = desk.arc("status")
    assert text.code == 1
    assert text.err.splitlines()[0].startswith(
        "error[ARC-FAULT]: arc status: ended early: ZeroDivisionError: by accident (test_starting")
    assert "Traceback" not in text.err


def test_a_fault_inside_an_operation_leaves_the_hub_running(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fault(hub: object, args: object) -> None:
        raise ZeroDivisionError("by accident")

    monkeypatch.setattr("arc.operations.status.status", fault)
    text, error = desk.both("status")
    assert text.code == 1
    assert error["code"] == "ARC-FAULT"
    assert desk.arc("tasks", "count").code == 0


def test_whoever_stops_reading_is_left_in_peace() -> None:
    code = "import sys\nfrom arc.cli import main\nsys.exit(main(['explain']))"
    shown = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert shown.stdout is not None
    shown.stdout.close()
    _, err = shown.communicate(timeout=60)
    assert (shown.returncode, err) == (141, "")
