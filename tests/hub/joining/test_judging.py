"""Judges machines by example: what stops a joining, what only warns, and what is fine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_node.errors import BadInput
from agent_node.requests import Fields
from arc.errors import NodeUnreachable, WrongUse
from arc.joining.confirming import confirm, fingerprint_in, how_to_see
from arc.joining.errors import FingerprintWrong, LeftUndone
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
        run_as_error="",
    )  # fmt: skip
    return replace(good, **other)  # type: ignore[arg-type]


def rules(look: Look, wanted: Wanted = WANTED) -> list[tuple[str, bool]]:
    return [(one.rule, one.stops) for one in judge(look, wanted, program_bytes=2 * 1024**2)]


def test_a_machine_as_it_should_be_has_nothing_against_it() -> None:
    assert rules(a_look()) == []
    assert rules(a_look(node="iris")) == [], "to mend it is fine"


@pytest.mark.parametrize(("what", "rule", "stops"), [
    ({"system": "Darwin"}, "system", True),
    ({"node": "loom"}, "other_node", True),
    ({"node_error": "no TOML"}, "node_toml", True),
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
            "strict": [], "stop_grace_s": 1, "other_hubs": []}  # fmt: skip
    assert read_look(Fields(good)).uid == 1  # type: ignore[arg-type]
    with pytest.raises(BadInput):
        read_look(Fields(good | what if what else {}))  # type: ignore[arg-type]


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
    assert how_to_see(KEY) in refused.value.hint


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
    assert "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub" in asked[0]
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
