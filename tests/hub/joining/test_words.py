"""Holds what is put together before anything is sent: targets, key lines, the one shell line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from arc.errors import WrongUse
from arc.joining.keyline import forced_command, key_line
from arc.joining.sending import MODULES, SHELL_LINE, program
from arc.joining.wanted import Wanted, check_wanted, target_of

CANARIES = ("$(touch canary)", "`touch canary`", "; touch canary", "\ntouch canary", '" x="',
            "' ; touch canary '", "--proxy-command=touch canary", "a b", "%n")  # fmt: skip


@pytest.mark.parametrize(("text", "target"), [
    ("agent@iris.lan", ("agent", "iris.lan", 22)),
    ("agent@10.0.0.7:2222", ("agent", "10.0.0.7", 2222)),
    ("_arc@[fe80::1]:22", ("_arc", "fe80::1", 22)),
    ("a.b-c@h", ("a.b-c", "h", 22)),
])
def test_a_target_is_a_user_a_host_and_perhaps_a_port(
    text: str, target: tuple[str, str, int]
) -> None:
    assert target_of(text) == target


@pytest.mark.parametrize("text", [
    "iris.lan", "@iris", "agent@", "agent@iris:0", "agent@iris:65536", "agent@iris:x", "-o@iris",
    "agent@-oProxyCommand=x", "agent@-x", *(f"agent@{one}" for one in CANARIES),
    *(f"{one}@iris" for one in CANARIES),
])  # fmt: skip
def test_a_target_that_could_be_more_than_a_target_is_refused(text: str) -> None:
    with pytest.raises(WrongUse):
        target_of(text)


@pytest.mark.parametrize("field", ["source", "run_as", "home", "name"])
@pytest.mark.parametrize("text", [*(f"x{one}" for one in CANARIES), "-x", "agent@", "./x"])
def test_what_would_end_in_a_command_line_is_refused_before_anything_is_done(
    field: str, text: str
) -> None:
    wanted = replace(Wanted("iris", "iris.lan", "agent"), **{field: text})  # type: ignore[arg-type]
    with pytest.raises(WrongUse):
        check_wanted(wanted)


def test_tasks_do_not_run_as_the_nodes_own_account() -> None:
    with pytest.raises(WrongUse, match="an account of its own"):
        check_wanted(Wanted("iris", "iris.lan", "agent", run_as="agent"))


def test_each_word_of_init_stands_behind_its_own_option() -> None:
    """Else `--run=--dry-run` would be an option of its own."""
    wanted = Wanted("iris", "h", "u", run="--dry-run", skills=("--json",), run_as="arc-run")
    assert wanted.init_words == ["--name=iris", "--skill=--json", "--run=--dry-run",
                                 "--run-as=arc-run"]  # fmt: skip
    assert replace(wanted, slots=2).init_words[1] == "--slots=2"


@pytest.mark.parametrize("path", ["relative", "/a b", "/a$b", "/a;b", "/a\nb", '/a"b', "/a'b",
                                  "/a`b", "/a\\b", "/a//b", "/~", "/*"])  # fmt: skip
def test_no_path_that_a_shell_would_read_gets_into_a_key_line(path: str) -> None:
    """Guarded by `is_plain_path`: with it gone these lines are written."""
    with pytest.raises(ValueError, match="no plain path"):
        forced_command(path, "/home/agent/.agent-node", "/home/agent")
    with pytest.raises(ValueError, match="no plain path"):
        forced_command("/usr/bin/python3", path, "/home/agent")


def test_the_key_line_starts_one_program_from_one_place() -> None:
    usual = forced_command("/usr/bin/python3.11", "/home/a/.agent-node", "/home/a")
    assert usual == ("/usr/bin/python3.11 -I -S /home/a/.agent-node/program/agent-node.pyz "
                     "serve --stdio")  # fmt: skip
    elsewhere = forced_command("/usr/bin/python3.11", "/srv/q", "/home/a")
    assert elsewhere.startswith("/usr/bin/env AGENT_NODE_HOME=/srv/q /usr/bin/python3.11 ")
    line = key_line("ssh-ed25519 AAAA comment of a person", usual, source="10.0.0.2", comment="c")
    assert line == f'restrict,from="10.0.0.2",command="{usual}" ssh-ed25519 AAAA c'


def test_the_shell_line_means_the_same_to_every_login_shell() -> None:
    """One pair of single quotes, and in it nothing that csh, fish, zsh or bash looks at."""
    head, inner, tail = SHELL_LINE.split("'")
    assert (head, tail) == ("exec /bin/sh -c ", "")
    assert not {"\\", "!", "\n", "\t"} & set(inner)


def test_the_program_packs_every_module_of_the_other_end() -> None:
    folder = Path(sys.modules["arc.joining.sending"].__file__ or "").parent / "there"
    assert {path.stem for path in folder.glob("*.py")} == {*MODULES, "__init__"}
    length, _, text = program().partition(b"\n")
    assert int(length) == len(text)
    assert len(length) < 9, "as many digits as the other end reads"


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_the_line_and_the_program_answer_on_this_machine(shell: str, tmp_path: Path) -> None:
    asked = {"do": "look", "deadline_s": 5, "home": str(tmp_path / "home"), "blob": ""}
    told = program() + json.dumps(asked).encode() + b"\n"
    ran = subprocess.run([shell, "-c", SHELL_LINE], input=told, capture_output=True, timeout=30,
                         env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, check=True)
    lines = [json.loads(line.removeprefix(b"arc-joining ")) for line in ran.stdout.splitlines()]
    assert lines[0] == {"ready": True}
    assert lines[1]["ok"], lines[1]
    assert lines[1]["result"]["uid"] == os.getuid()
    assert list(tmp_path.iterdir()) == [], "to look changes nothing"


@pytest.mark.parametrize(("name", "hint"), [
    ("Iris", "such as: --name iris"), ("iris.lan", "such as: --name iris-lan"), ("9", ""),
    ("x" * 40, ""), ("", ""),
])  # fmt: skip
def test_a_name_that_is_none_is_said_of_the_option(name: str, hint: str) -> None:
    """Seen to fail: `the node's node.toml:6`, a line of a file that is not there yet."""
    with pytest.raises(WrongUse) as error:
        check_wanted(Wanted(name, "iris.lan", "agent"))
    said = f"--name: {name!r} should match ^[a-z][a-z0-9-]{{0,31}}$"
    assert (str(error.value), error.value.hint) == (said, hint)


def test_what_node_toml_would_not_take_names_no_line_of_a_file_that_is_not_there() -> None:
    with pytest.raises(WrongUse) as error:
        check_wanted(Wanted("iris", "iris.lan", "agent", run="work", slots=0))
    assert re.match(r"add: agent\S*slots: ", str(error.value)), error.value
