"""Setting up the account that runs tasks: what root types, what is tried, and what is refused."""

from __future__ import annotations

import json

import pytest

from tests.ssh.lab import Lab
from tests.ssh.lab_node import LabNode
from tests.ssh.two_users import TwoUsers

PROGRAM = "/opt/arc/agent-node.pyz"
DROP_IN = "/etc/sudoers.d/agent-node"


@pytest.fixture
def two(lab: Lab) -> TwoUsers:
    return TwoUsers(lab.start(1)[0])


def said_by(node: LabNode, *words: str) -> dict[str, object]:
    argv = [node.python, "-I", "-S", PROGRAM, *words, "--json"]
    said: dict[str, object] = json.loads(node.exec(argv, user="agent", check=False).stdout)
    return said


def user_checks(node: LabNode) -> list[dict[str, str]]:
    data = said_by(node, "doctor")["data"]
    assert isinstance(data, dict)
    return [check for check in data["checks"] if check["check"].startswith("user")]


def test_doctor_tries_the_account_and_finds_nothing(two: TwoUsers) -> None:
    (check,) = user_checks(two.node)
    assert (check["level"], check["check"]) == ("ok", "user arc-run")


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (f"rm {DROP_IN}", "sudo -n does not let us"),
        ("chown root /home/arc-run", "no home where it could work"),
        ("userdel arc-run || sed -i /^arc-run/d /etc/passwd", "no user arc-run"),
    ],
)
def test_what_is_missing_is_a_finding_with_what_mends_it(
    two: TwoUsers, spoil: str, text: str
) -> None:
    two.node.exec(["sh", "-c", spoil])
    (check,) = user_checks(two.node)
    assert check["level"] == "finding"
    assert text in check["text"]
    assert "as root: " in check["fix"]


def test_roots_commands_are_all_that_a_new_account_takes(lab: Lab) -> None:
    """They are taken from doctor's advice and typed as they stand."""
    (node,) = lab.start(1)
    node.write("/etc/sudoers", b"@includedir /etc/sudoers.d\n", mode=0o440)
    node.install(name="iris", run=["/bin/true"])
    (advice,) = user_checks(node)
    assert advice["level"] == "note"
    commands = advice["fix"].removeprefix("as root: ").partition("; then run_as")[0]
    node.exec(["sh", "-ec", commands])
    node.exec(["rm", "/home/agent/.agent-node/node.toml"])
    made = said_by(node, "init", "--name", "iris", "--run", "/bin/true", "--run-as", "arc-run")
    assert made["ok"], made
    assert [check["level"] for check in user_checks(node)] == ["ok"]


def test_init_refuses_an_account_that_it_could_not_use_and_says_what_root_types(
    lab: Lab,
) -> None:
    (node,) = lab.start(1)
    node.write("/etc/sudoers", b"@includedir /etc/sudoers.d\n", mode=0o440)
    for name, hint in (("nobody-here", "useradd"), ("arc-run", "NOPASSWD")):
        said = said_by(node, "init", "--name", "iris", "--run-as", name)
        error = said["error"]
        assert isinstance(error, dict)
        assert error["code"] == "no_other_user"
        assert hint in error["hint"]
    assert not node.path("/home/agent/.agent-node/node.toml").exists()


def test_a_daemon_whose_account_is_not_there_says_so_and_starts_nothing(two: TwoUsers) -> None:
    two.node.exec(["sed", "-i", "s/arc-run/gone/", f"{two.home.path}/node.toml"])
    error = said_by(two.node, "run")["error"]
    assert isinstance(error, dict)
    assert error["code"] == "no_other_user"
