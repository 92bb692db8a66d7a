"""Judges machines by example: what stops a joining, what only warns, and what is fine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_node import __version__
from agent_node.errors import BadInput
from agent_node.requests import Fields
from arc.errors import NodeUnreachable, WrongUse
from arc.joining.confirming import HOW_TO_SEE, confirm, fingerprint_in
from arc.joining.errors import FingerprintWrong, LeftUndone
from arc.joining.installing import in_place_of, is_newer, other_program, without_effect
from arc.joining.judging import judge
from arc.joining.look import Look, Place, read_look
from arc.joining.steps import Steps
from arc.joining.wanted import Wanted
from arc.links.hostkeys import parse_host_key

GIB = 1024**3
HOME = "/home/agent/.agent-node"
WANTED = Wanted("iris", "iris.lan", "agent", run_as="arc-run")
ROOT_FS = "22 1 0:20 / / rw - ext4 /dev/sda1 rw\n"
BLOB = "AAAAC3NzaC1lZDI1NTE5AAAAIBkJhgv7S4YjvLXqT4Yf2Yp8Vn0l1bQ3m9f0w6sXWb0p"
KEY = parse_host_key(f"ssh-ed25519 {BLOB}")
OTHER = "SHA256:" + "x" * 43
LINE = 'restrict,command="/usr/bin/python3 -I -S {}/program/agent-node.pyz serve --stdio" ssh-'


def folder(path: str, mode: int = 0o755, uid: int = 0, *, alone: bool = False) -> Place:
    return Place(path, "folder", mode, uid, alone)


def a_look(**other: object) -> Look:
    """A machine on which nothing is wrong."""
    good = Look(
        at=0.0, python="/usr/bin/python3.11", version="3.11.2", user="agent", uid=1000,
        account_home="/home/agent", home=HOME, system="Linux", ssh_keygen="/usr/bin/ssh-keygen",
        systemd=True, disk_free=9 * GIB, files_free=10**6, mounts=ROOT_FS,
        ways=(folder("/"), folder("/home"), folder("/home/agent", 0o750, 1000)),
        strict=(folder("/home/agent", 0o750, 1000),), node="", node_error="", stop_grace_s=30,
        program="", line="", other_hubs=(), keys_error="", keys_hint="", run_as="arc-run",
        run_as_error="", node_toml="", run_there=True,
    )  # fmt: skip
    return replace(good, **other)  # type: ignore[arg-type]


def rules(look: Look, wanted: Wanted = WANTED) -> list[tuple[str, bool]]:
    return [(one.rule, one.stops) for one in judge(look, wanted, program_bytes=2 * 1024**2)]


def test_a_machine_as_it_should_be_has_nothing_against_it() -> None:
    assert rules(a_look()) == []
    assert rules(a_look(node="iris", line=LINE.format(HOME))) == [], "to mend it is fine"


@pytest.mark.parametrize(("what", "rule", "stops"), [
    ({"system": "Darwin"}, "system", True),
    ({"node": "loom"}, "other_node", True),
    ({"node_error": "no TOML"}, "node_toml", True),
    ({"line": LINE.format("/home/agent/two")}, "other_home", True),
    ({"mounts": "22 1 0:20 / / rw - nfs4 server:/ rw\n"}, "network_disk", True),
    ({"ways": (folder("/"), folder("/data", 0o777))}, "open_folder", True),
    ({"ways": (folder("/"), folder("/data", 0o755, 1001))}, "home_not_yours", True),
    ({"ways": (folder("/"), folder(HOME, 0o750, 1000))}, "home_open", True),
    ({"ways": (folder("/"), Place("/x", "file", 0o644, 0, group_alone=False))}, "home", True),
    ({"strict": (folder("/home/agent", 0o775, 1000),)}, "strict_modes", True),
    ({"strict": (folder("/home/agent", 0o757, 1000),)}, "strict_modes", True),
    ({"strict": (folder("/home/agent", 0o755, 1001),)}, "strict_modes", True),
    ({"keys_error": "is a link"}, "keys_file", True),
    ({"disk_free": 1024**2}, "no_space", True),
    ({"files_free": 0}, "no_space", True),
    ({"disk_free": GIB // 2}, "little_space", False),
    ({"run_as_error": "missing"}, "run_as", False),
    ({"run_as_error": "no_sudo"}, "run_as", True),
    ({"other_hubs": ("AAAA",)}, "other_hub", True),
    ({"ssh_keygen": ""}, "no_keygen", False),
])  # fmt: skip
def test_what_stands_against_a_node(what: dict[str, object], rule: str, stops: bool) -> None:
    assert rules(a_look(**what)) == [(rule, stops)]


@pytest.mark.parametrize("what", [
    {"ways": (folder("/"), folder("/tmp", 0o1777), folder("/tmp/x", 0o700, 1000))},  # sticky
    {"strict": (folder("/home/agent", 0o775, 1000, alone=True),)},  # a group of one
    {"files_free": -1},  # a file system that does not count them
    {"ways": (folder("/"), folder(HOME, 0o700, 1000))},
])  # fmt: skip
def test_what_only_looks_like_trouble_stops_nobody(what: dict[str, object]) -> None:
    assert rules(a_look(**what)) == []


def test_with_a_persons_word_another_hub_is_a_warning() -> None:
    look = a_look(other_hubs=("AAAA",))
    assert rules(look, replace(WANTED, yes=True)) == [("other_hub", False)]


@pytest.mark.parametrize("what", [
    {}, {"at": "now"}, {"at": float("1e400")}, {"uid": -1}, {"uid": True}, {"ways": "x"},
    {"ways": [{}]}, {"disk_free": -1}, {"python": None}, {"python": 7}, {"home": "x\ny"},
])  # fmt: skip
def test_a_machine_that_says_nonsense_of_itself_is_not_believed(what: dict[str, object]) -> None:
    good = {"at": 1.0, "python": "/p", "version": "3", "user": "u", "uid": 1, "account_home": "/h",
            "home": "/h/x", "system": "Linux", "disk_free": 1, "files_free": 1, "ways": [],
            "strict": [], "stop_grace_s": 1, "other_hubs": [], "run_there": True}  # fmt: skip
    assert read_look(Fields(good)).uid == 1  # type: ignore[arg-type]
    with pytest.raises(BadInput):
        read_look(Fields(good | what if what else {}))  # type: ignore[arg-type]


def test_the_floor_of_the_disk_is_that_of_the_node_toml_which_is_there() -> None:
    small = a_look(disk_free=512 * 1024**2, node="iris", node_toml='name = "iris"\n')
    assert rules(small) == [("little_space", False)]
    own = replace(small, node_toml='name = "iris"\ndisk_floor = "64 MiB"\n')
    assert rules(own) == []
    newer = replace(small, node_toml='name = "iris"\nof_a_later_version = 1\n')
    assert rules(newer) == [("little_space", False)], "what cannot be read says nothing"


@pytest.mark.parametrize(("run", "says"), [
    ("claude -p", "--run claude: not on the PATH of agent"),
    ("/opt/claude -p", "--run /opt/claude: there is none"),
])  # fmt: skip
def test_a_program_that_is_not_there_is_named_and_only_warned_of(run: str, says: str) -> None:
    (found,) = judge(a_look(run_there=False), replace(WANTED, run=run), program_bytes=1)
    assert (found.rule, found.stops) == ("run", False)
    assert says in found.text
    assert rules(a_look(run_there=True), replace(WANTED, run=run)) == []


# --- What is there already, and newer ---------------------------------------------------------


def test_a_newer_program_stays_and_what_is_replaced_is_said() -> None:
    """Guarded by `is_newer`: without it the hub's older program takes the newer one's place."""
    assert is_newer("99.0.0")
    assert not any(map(is_newer, [__version__, "0.0.1", "", "x\x1b[2J"]))
    assert in_place_of("", "") == ""
    assert "another build of" in in_place_of(__version__, "a" * 64)
    assert "the older 0.0.1 (aaaaaaaaaaaa)" in in_place_of("0.0.1", "a" * 64)
    assert "does not say its version" in in_place_of("", "a" * 64)


def test_options_that_a_kept_node_toml_outlives_are_named() -> None:
    toml = ('name = "iris"\n[[agent]]\nname = "a"\nrun = ["cat", "-u"]\nslots = 2\n'
            'skills = ["ops"]\n')  # fmt: skip
    wanted = Wanted("iris", "h", "u", run="cat -u", skills=("ops",))
    assert without_effect(a_look(node_toml=toml), wanted) == []
    more = replace(wanted, slots=4, run="cat", skills=("papers",), run_as="arc-run")
    assert without_effect(a_look(node_toml=toml), more) == [
        "--run (there: cat -u)", "--slots (there: 2)", "--skill (there: ops)",
        "--run-as (there: none)"]  # fmt: skip
    assert without_effect(a_look(), more) == [], "nothing is there, so all of it counts"


def test_a_daemon_of_another_program_is_told() -> None:
    old = Fields({"pid": 7, "program": "agent-node-aa.pyz", "current": "agent-node-bb.pyz"})
    (said,) = other_program("iris", old)
    assert "still runs agent-node-aa.pyz" in said
    assert "arc nodes upgrade iris" in said
    assert other_program("iris", Fields({"pid": 7, "program": "b.pyz", "current": "b.pyz"})) == []
    assert other_program("iris", Fields({"pid": 7, "program": "", "current": "b.pyz"})) == []


# --- Fingerprints -----------------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    KEY.fingerprint, f"  {KEY.fingerprint}\n", f"{KEY.fingerprint}=",
    f"256 {KEY.fingerprint} root@iris (ED25519)\r\n",
])  # fmt: skip
def test_a_fingerprint_is_found_in_what_was_pasted(text: str) -> None:
    assert confirm("iris", "iris:22", KEY, text, lambda question: None) == KEY.fingerprint


@pytest.mark.parametrize("text", [
    "y", "yes", "Y", "", "SHA256:", KEY.fingerprint[:-1], KEY.fingerprint + "A", OTHER,
    KEY.fingerprint.lower(), KEY.data, "MD5:00:11", f"{OTHER} {KEY.fingerprint}",
])  # fmt: skip
def test_nothing_else_confirms_a_host_key(text: str) -> None:
    """Guarded by the comparison in `confirm`: without it a `yes` would do."""
    with pytest.raises(FingerprintWrong) as refused:
        confirm("iris", "iris:22", KEY, "", lambda question: text)
    assert refused.value.exit_code == 4
    assert HOW_TO_SEE in refused.value.hint


def test_whoever_is_asked_about_a_changed_key_sees_the_pinned_one_too() -> None:
    asked: list[str] = []
    pinned = parse_host_key(f"ssh-ed25519 {BLOB[:-2]}AA")

    def person(question: str) -> str:
        asked.append(question)
        return KEY.fingerprint

    confirm("iris", "iris:22", KEY, "", person, pinned=pinned)
    assert "nobody has confirmed" not in asked[0]
    assert "pinned" in asked[0]
    for given in (OTHER, ""):
        with pytest.raises((FingerprintWrong, WrongUse)) as refused:
            confirm("iris", "iris:22", KEY, given, lambda said: None, pinned=pinned)
        assert f"another key is pinned, {pinned}" in str(refused.value)
    assert str(pinned) in asked[0]
    assert str(KEY) in asked[0]


def test_where_nobody_can_be_asked_it_is_wrong_use() -> None:
    with pytest.raises(WrongUse):
        confirm("iris", "iris:22", KEY, "", lambda question: None)


def test_the_question_shows_the_key_and_how_to_see_it_there() -> None:
    asked: list[str] = []

    def person(question: str) -> str:
        asked.append(question)
        return KEY.fingerprint

    confirm("iris", "iris:22", KEY, "", person)
    assert str(KEY) in asked[0]
    assert 'for f in /etc/ssh/*key*.pub; do ssh-keygen -lf "$f"; done' in asked[0]
    assert fingerprint_in(asked[0]) == KEY.fingerprint


# --- Steps ------------------------------------------------------------------------------------


def test_a_failed_step_says_what_was_changed_before_it() -> None:
    told: list[str] = []
    steps = Steps(lambda step: told.append(step.name))
    with steps.step("one") as step:
        step.changed = "the program lies there"
    with pytest.raises(LeftUndone) as left, steps.step("two"):
        raise NodeUnreachable("iris", "went away")
    assert str(left.value) == ("iris: went away; changed so far: the program lies there; "
                               "run the same command again to go on")
    assert (left.value.code, left.value.exit_code) == ("ARC-SSH-UNREACHABLE", 3)
    assert [one["step"] for one in left.value.problems] == told == ["one"]


def test_a_failed_first_step_says_that_nothing_was_changed() -> None:
    steps = Steps(lambda step: None)
    with pytest.raises(LeftUndone, match="nothing was changed, there or here"), steps.step("one"):
        raise BadInput("no answer")
