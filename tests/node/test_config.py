"""Claims about node.toml: what it may say, and how it is told what is wrong."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from agent_node.config import (
    AgentSettings,
    NodeSettings,
    ValidatorSettings,
    parse_settings,
    read_settings,
)
from agent_node.errors import BadSettings
from agent_node.new_toml import render_new_toml
from agent_node.toml_lines import lines_of

FULL = """\
name = "iris"
queue_max = 50
disk_floor = "512MiB"
output_cap = 1_048_576
grace_s = 3
stop_grace_s = 4
lease_min_s = 20
lease_max_s = 30
journal = "truncate"
extras_path = "/opt/extras"

[[agent]]
name = "big"
run = ["claude", "-p"]
cwd = "/srv"
stdin = {template = "Do {subject}: {body}"}
env = ["ANTHROPIC_API_KEY"]
slots = 3
skills = ["python", "ops"]
models = ["opus"]
prefix = ["sudo", "-n", "-u", "arc-run", "--"]
max_s = 600
on_stall = "fail"

[[agent]]
name = "small"
run = ["sh"]
stdin = "body"

[validators.tests]
run = ["pytest", "-q"]
stdin = "json"
max_s = 60
"""


def complaint(text: str) -> str:
    with pytest.raises(BadSettings) as refused:
        parse_settings(text)
    return str(refused.value)


def test_everything_that_can_be_said_is_read() -> None:
    settings = parse_settings(FULL)
    big = AgentSettings(
        name="big",
        run=("claude", "-p"),
        cwd="/srv",
        stdin="template",
        template="Do {subject}: {body}",
        env=("ANTHROPIC_API_KEY",),
        slots=3,
        skills=("python", "ops"),
        models=("opus",),
        prefix=("sudo", "-n", "-u", "arc-run", "--"),
        max_s=600,
        on_stall="fail",
    )
    tests = ValidatorSettings(name="tests", run=("pytest", "-q"), stdin="json", max_s=60)
    assert settings == NodeSettings(
        name="iris",
        queue_max=50,
        disk_floor=512 * 2**20,
        output_cap=2**20,
        grace_s=3,
        stop_grace_s=4,
        lease_min_s=20,
        lease_max_s=30,
        journal="truncate",
        extras_path="/opt/extras",
        agents=(big, AgentSettings(name="small", run=("sh",), stdin="body")),
        validators=(tests,),
    )


def test_an_agent_runs_as_the_nodes_account_or_as_one_of_its_own() -> None:
    text = 'name = "iris"\nrun_as = "arc-run"\n'
    text += '[[agent]]\nname = "ant"\nrun = ["x"]\n'
    text += '[[agent]]\nname = "bee"\nrun = ["x"]\nrun_as = "arc-bee"\n'
    settings = parse_settings(text)
    assert [agent.run_as for agent in settings.agents] == ["arc-run", "arc-bee"]
    assert len({agent.starter for agent in settings.agents}) == 2


def test_a_name_is_enough() -> None:
    assert parse_settings('name = "iris"') == NodeSettings(name="iris")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'node.toml: name: is missing; write name = "…"'),
        ('name = "iris"\nslot = 1', "node.toml:2: slot: is no key here"),
        (
            'name = "iris"\n\nqueuemax = 1',
            'node.toml:3: queuemax: is no key here; did you mean "queue_max"?',
        ),
        ('name = "iris"\npool = "a"', "node.toml:2: pool: is a reserved key"),
        ('name = "iris"\n[pool]\nmin = 1', "node.toml:2: pool: is a reserved key"),
        ('name = "iris"\n[[agent]]\nname="a"\npool = 1', "node.toml:4: agent[1].pool: is a res"),
        ('name = "Iris"', "node.toml:1: name: should match ^[a-z][a-z0-9-]{0,31}$, not 'Iris'"),
        ("name = 3", "node.toml:1: name: should match"),
        (f'name = "{"i" * 33}"', "node.toml:1: name: should match"),
        ('name = "iris"\nrun_as = "root"', "node.toml:2: run_as: should not be root"),
        ('name = "iris"\nrun_as = ""', "node.toml:2: run_as: should be an account"),
        ('name = "iris"\nrun_as = "-u#0"', "node.toml:2: run_as: should be an account"),
        ('name = "iris"\nrun_as = ["a"]', "node.toml:2: run_as: should be an account"),
        (
            'name = "iris"\nrun_as = "r"\n[[agent]]\nname="a"\nrun=["x"]\nprefix=["nice"]',
            "node.toml:6: agent[1].prefix: and run_as both change the user",
        ),
        ('name = "iris"\n[[validators]]\nrun = ["x"]', "node.toml: validators: should be written"),
        ('name = "iris"\n[validators.A]\nrun = ["x"]', "node.toml:2: validators.A: is no name"),
        ('name = "iris"\n[validators.a]\nrun = []', "node.toml:3: validators.a.run: needs at"),
        ('name = "iris"\n[validators.a]', "node.toml:2: validators.a.run: should be a list"),
        (
            'name = "iris"\n[validators.a]\nrun = ["x"]\nshell = 1',
            "node.toml:4: validators.a.shell: is no key here",
        ),
        (
            'name = "iris"\n[validators.a]\nrun = ["x"]\nmax_s = 3601',
            "node.toml:4: validators.a.max_s: should lie between 1 and 3600",
        ),
        (
            'name = "iris"\n[[agent]]\nname="a"\nrun=["x"]\non_stall="kill"',
            'node.toml:5: agent[1].on_stall: should be "show" or "fail"',
        ),
        ('name = "iris"\nqueue_max = "many"', "node.toml:2: queue_max: should be a whole number"),
        ('name = "iris"\nqueue_max = true', "node.toml:2: queue_max: should be a whole number"),
        ('name = "iris"\nqueue_max = 0', "node.toml:2: queue_max: should lie between 1 and"),
        ('name = "iris"\ndisk_floor = "1GB"', "node.toml:2: disk_floor: should be bytes"),
        ('name = "iris"\ndisk_floor = -1', "node.toml:2: disk_floor: should be at least 0"),
        ('name = "iris"\ndisk_floor = 1.5', "node.toml:2: disk_floor: should be bytes"),
        ('name = "iris"\noutput_cap = 10', "node.toml:2: output_cap: should be at least 1024"),
        ('name = "iris"\njournal = "off"', 'node.toml:2: journal: should be "wal" or "truncate"'),
        ('name = "iris"\nbudget_usd = 25.5', "node.toml:2: budget_usd: should be an amount"),
        ('name = "iris"\nbudget_usd = "-1"', "node.toml:2: budget_usd: should be an amount"),
        ('name = "iris"\nassume_usd = "NaN"', "node.toml:2: assume_usd: should be an amount"),
        ('name = "iris"\nurgent_overdraft = "yes"', "node.toml:2: urgent_overdraft: should be t"),
        ('name = "iris"\nextras_path = "x"', "node.toml:2: extras_path: should be an absolute"),
        ('name = "iris"\nlease_min_s = 300\nlease_max_s = 200',
         "node.toml:2: lease_min_s: is above lease_max_s"),
        ('name = "iris"\nagent = 1', "node.toml:2: agent: should be written as [[agent]]"),
        ('name = "iris"\n[agent]\nname = "a"', "node.toml:2: agent: should be written as"),
        ('name = "iris"\n[[agent]]\nrun = ["sh"]', "node.toml:2: agent[1].name: is missing"),
        ('name = "iris"\n[[agent]]\nname = "a"', "node.toml:2: agent[1].run: should be a list"),
        ('name = "iris"\nname = "iris"', "node.toml: is not TOML: Cannot overwrite a value (at"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, said: str) -> None:
    assert complaint(text).startswith(said)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("run = []", "run: needs at least the program"),
        ('run = [""]', "run: needs at least the program"),
        ('run = "sh -c x"', "run: should be a list of texts"),
        ('run = ["sh", 1]', "run: should hold texts only, not 1"),
        ('run = ["a\\u0000b"]', "run: holds a text with a NUL"),
        ("slots = 0", "slots: should lie between 1 and 1000"),
        ("slots = 1.0", "slots: should be a whole number, not 1.0"),
        ('skills = ["' + "s" * 65 + '"]', "skills: holds a text with a NUL or of more than 64"),
        ('env = ["A=b"]', "env: holds 'A=b', which should match"),
        ('cwd = "work"', "cwd: should be an absolute path"),
        ("max_s = 0", "max_s: should lie between 1"),
        ('stdin = "xml"', 'stdin: should be "json", "body" or {template'),
        ("stdin = {template = 1}", "stdin: should be"),
        ('stdin = {template = "x", more = 1}', "stdin: should be"),
        ('slot = "x"', 'slot: is no key here; did you mean "slots"?'),
        ('template = "x"', "template: is no key here"),
    ],
)
def test_an_agent_is_told_its_line_too(line: str, said: str) -> None:
    run = "" if line.startswith("run") else 'run = ["sh"]\n'
    text = f'name = "iris"\n\n[[agent]]\nname = "a"\n{run}{line}\n'
    number = text.split("\n").index(line) + 1
    assert complaint(text).startswith(f"node.toml:{number}: agent[1].{said}")


def test_two_agents_of_one_name_are_refused_at_the_second() -> None:
    text = 'name = "i"\n[[agent]]\nname = "a"\nrun = ["x"]\n[[agent]]\nrun = ["x"]\nname = "a"\n'
    assert complaint(text) == "node.toml:7: agent[2].name: a is already agent[1]"


def test_the_fault_of_the_second_agent_is_not_told_of_the_first() -> None:
    text = FULL.replace('stdin = "body"', "slots = 0")
    assert complaint(text).startswith("node.toml:28: agent[2].slots")


def test_a_long_value_is_not_printed_whole() -> None:
    assert len(complaint(f'name = "{"x" * 10_000}"')) < 200


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("1024", 1024), ('"1024"', 1024), ('"10 B"', 10), ('"2GiB"', 2**31)],
)
def test_sizes_are_bytes_or_binary_units(text: str, value: int) -> None:
    assert parse_settings(f'name = "i"\ndisk_floor = {text}').disk_floor == value


def test_a_home_folder_may_be_written_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    settings = parse_settings('name = "i"\nextras_path = "~/extras"')
    assert settings.extras_path == "/home/ada/extras"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"nowhere.toml: is not there") as missing:
        read_settings(tmp_path / "nowhere.toml")
    assert missing.value.hint == "agent-node init --name NAME"
    with pytest.raises(BadSettings, match="cannot be read: Is a directory"):
        read_settings(tmp_path)
    (tmp_path / "node.toml").write_bytes(b'name = "caf\xe9"')
    with pytest.raises(BadSettings, match="is not UTF-8 at byte 11"):
        read_settings(tmp_path / "node.toml")


def test_a_file_that_can_be_read_is_named_in_its_errors(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text('name = "iris"\nx = 1\n', encoding="utf-8")
    with pytest.raises(BadSettings, match=re.escape(f"{path}:2: x: is no key")):
        read_settings(path)


# --- the file that init writes -------------------------------------------------------------------


@pytest.mark.parametrize("run", [("claude", "-p"), ("sh", "-c", 'echo "ü 𝄞" \\ \x7f \n')])
def test_a_new_file_says_what_it_was_told(run: tuple[str, ...]) -> None:
    text = render_new_toml("iris", ("a b", "ops"), 3, run)
    agent = AgentSettings(name="iris", run=run, slots=3, skills=("a b", "ops"))
    assert parse_settings(text) == NodeSettings(name="iris", agents=(agent,))


def test_without_a_program_the_agent_is_a_comment() -> None:
    assert parse_settings(render_new_toml("iris", ("ops",), 2)) == NodeSettings(name="iris")


def uncommented(text: str) -> str:
    """Every comment that is a setting, as a setting; a later form of the same key wins."""
    lines = [re.sub(r"^# (?=[a-z_]+ = |\[\[)", "", line) for line in text.split("\n")]
    keys = [line.partition(" = ")[0] for line in lines]
    return "\n".join(
        line
        for place, line in enumerate(lines)
        if " = " not in line or line.startswith("#") or keys[place] not in keys[place + 1 :]
        or keys[place] == "name"
    )


def test_each_key_stands_in_the_new_file_with_its_default() -> None:
    text = uncommented(render_new_toml("iris"))
    for name in ("extras_path", "cwd", "max_s", "run_as", "budget_usd"):
        text = re.sub(rf"(?m)^{name} = .*$", "", text)
    agent = AgentSettings(name="iris", run=("my-agent", "--print"))
    assert parse_settings(text) == NodeSettings(name="iris", agents=(agent,))


def test_no_key_is_missing_in_the_new_file() -> None:
    text = render_new_toml("iris", run=("sh",))
    for setting in (*fields(NodeSettings), *fields(AgentSettings)):
        if setting.name not in {"agents", "template", "validators"}:
            assert re.search(rf"(?m)^(# )?{setting.name} = ", text), setting.name


# --- lines ---------------------------------------------------------------------------------------


def test_lines_are_found_past_strings_lists_and_comments() -> None:
    text = '''\
# name = 1
name = "[[agent]]"
text = """
queue_max = 1
[[agent]]
"""
quoted = "a \\" # ["
other = \'\'\'
x = ["
\'\'\'

  [[ agent ]]  # [
run = [
  "name = 2", # ]
  "]",
]
"skills" = [["a"], ["b"]]
stdin = {template = "x = 1"}
[[agent]]
a . b = 1
[table]
key=1
'''
    assert lines_of(text) == {
        ("name",): 2,
        ("text",): 3,
        ("quoted",): 7,
        ("other",): 8,
        ("agent", 0): 12,
        ("agent", 0, "run"): 13,
        ("agent", 0, "skills"): 17,
        ("agent", 0, "stdin"): 18,
        ("agent", 1): 19,
        ("agent", 1, "a"): 20,
        ("table",): 21,
        ("table", "key"): 22,
    }
