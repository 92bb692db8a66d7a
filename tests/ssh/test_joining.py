"""Lets real machines join over real sshd: as they should be, and as they should not."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from arc.errors import NodeSilent
from arc.joining.confirming import HOW_TO_SEE
from arc.joining.restricted import PROBES
from tests.ssh.joining_desk import Operator, an_operator, key_of
from tests.ssh.lab import Lab
from tests.ssh.lab_node import LabNode

Pair = tuple[Operator, LabNode]
SSH = "/home/agent/.ssh"
KEYS = f"{SSH}/authorized_keys"
HOME = "/home/agent/.agent-node"
ACTING = ["program", "node.toml", "launcher", "operator", "hub key", "daemon", "host key pinned",
          "fleet.yaml"]  # fmt: skip
COVER_EVERY_PYTHON = ("for f in /usr/bin/python3* /usr/local/bin/python3* /opt/*/bin/python3*; do "
                      "[ -e $f ] && mount --bind /tmp/old $(realpath $f); done; true")
# sshd forwards a display only where there is an xauth; it is started when a program is.
WITH_X11 = {"X11Forwarding": "yes", "XAuthLocation": "/usr/bin/true"}
OTHER_HUB = ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBkJhgv7S4YjvLXqT4Yf2Yp8Vn0l1bQ3m9f0w6sXWb0p "
             "arc-hub-of-other")  # fmt: skip


@pytest.fixture
def pair(lab: Lab, tmp_path: Path) -> Pair:
    return an_operator(tmp_path, lab)


def answers(ada: Operator, node: LabNode) -> bool:
    """Whether a hub, with its own key and no other, is told how the node is."""
    listed = ada.arc("nodes", "show", "iris", "--json").envelope
    return bool(listed.get("ok") and listed["data"]["seen"])


def home_files(node: LabNode) -> set[str]:
    return set(node.exec(["find", "/home/agent"]).stdout.decode().split())


def test_a_machine_joins_and_the_hub_reaches_it(pair: Pair) -> None:
    ada, node = pair
    before = node.read(KEYS).decode()
    data = ada.joined(node, "--run", "cat", "--owns", "research", "--skill", "ops", "--slots", "2")

    assert [one["step"] for one in data["steps"] if one["changed"]] == ACTING
    assert answers(ada, node)
    after = node.read(KEYS).decode()
    assert after.startswith(before)
    assert after.removeprefix(before).startswith('restrict,command="/')
    assert f"{ada.public} arc-hub-of-arc0\n" in after
    assert ada.pinned == {"iris": key_of(node)}
    fleet = ada.fleet.read_text()
    assert f'{{name: iris, host: "{node.address}", user: agent, owns: [research]}}' in fleet
    assert "# Which nodes are well." in fleet, "comments are kept"
    modes = node.exec(["stat", "-c", "%a %U %n", KEYS, f"{HOME}/operators", f"{HOME}/node.toml",
                       HOME, f"{HOME}/program"]).stdout.decode().split("\n")  # fmt: skip
    assert [line.split()[:2] for line in modes if line] == [["600", "agent"]] * 3 + [
        ["700", "agent"]] * 2  # fmt: skip
    typed = node.exec(["/home/agent/.local/bin/agent-node", "version"], user="agent")
    assert typed.stdout.startswith(b"agent-node "), typed
    link = node.exec(["readlink", f"{HOME}/program/agent-node.pyz"]).stdout.decode().strip()
    assert node.exec(["sha256sum", f"{HOME}/program/{link}"]).stdout.decode()[:12] in link


def test_a_domain_that_does_not_exist_is_said_before_anything_is_asked(pair: Pair) -> None:
    ada, node = pair
    node.kill_sshd()
    ran = ada.add(node, "--owns", "reserch", typed="")
    assert ran.code == 2
    assert "reserch" in ran.err
    ada.fleet.write_text(ada.fleet.read_text().partition("\ndomains:")[0])
    ran = ada.add(node, "--owns", "research", typed="")
    at = next(n for n, line in enumerate(ada.fleet.read_text().splitlines(), 1)
              if line == "# domains:")  # fmt: skip
    assert f"in line {at} take the # away from domains:" in ran.err


def test_joining_again_changes_nothing(pair: Pair) -> None:
    ada, node = pair
    ada.joined(node, "--run", "cat")
    was = node.read(KEYS), ada.fleet.read_bytes()
    again = ada.add(node, "--run", "cat", sure=False)  # what is pinned was confirmed then
    assert again.code == 0, again.err
    assert "all of it was there already" in again.out
    assert (node.read(KEYS), ada.fleet.read_bytes()) == was


def test_joining_again_keeps_a_newer_program_and_tells_of_a_daemon_of_another(pair: Pair) -> None:
    """Guarded by `is_newer`: without it an older program is put there, which nobody signed."""
    ada, node = pair
    ada.joined(node, "--run", "cat", "--slots", "2")
    program = f"{HOME}/program/agent-node-newer.pyz"
    says = (b"#!/usr/bin/env python3\nimport json\n"
            b"print(json.dumps({'ok': True, 'data': {'version': '99.0.0'}}))\n")  # fmt: skip
    node.write(program, says, mode=0o700, user="agent")
    node.exec(["ln", "-sfn", "agent-node-newer.pyz", f"{HOME}/program/agent-node.pyz"])
    ran = ada.add(node, "--run", "cat", "--slots", "4", "--dry-run", "--json")
    steps = {one["step"]: one["text"] for one in ran.data["steps"]}
    assert "there already: 99.0.0, newer than the hub's" in steps["program"]
    assert steps["daemon"].startswith("runs already")
    assert "--slots (there: 2)" in ran.out
    assert "and agent-node-newer.pyz lies there" in ran.out
    node.write(program, says.replace(b"99.0.0", b"0.0.1"), mode=0o700, user="agent")
    ran = ada.add(node, "--run", "cat", "--json")
    assert ran.code == 0, ran.err
    steps = {one["step"]: one["text"] for one in ran.data["steps"]}
    assert "in place of the older 0.0.1" in steps["program"]
    assert "still runs" not in ran.out, "the daemon runs the hub's program, which lies there again"


def test_joining_again_mends_what_is_missing(pair: Pair) -> None:
    ada, node = pair
    ada.joined(node, "--run", "cat")
    pid = node.exec(["sh", "-c", f"cat {HOME}/lock"]).stdout.decode().strip()
    node.exec(["kill", "-9", pid])
    node.exec(["rm", f"{HOME}/program/agent-node.pyz", f"{HOME}/operators"])
    node.write(KEYS, node.read(KEYS).replace(b"restrict,", b""), mode=0o600, user="agent")
    data = ada.joined(node, "--run", "cat")
    assert [one["step"] for one in data["steps"] if one["changed"]] == [
        "program", "operator", "hub key", "daemon"]  # fmt: skip
    assert node.read(KEYS).count(ada.public.encode()) == 1
    assert answers(ada, node)


def test_a_dry_run_looks_and_changes_nothing_there_or_here(pair: Pair) -> None:
    ada, node = pair
    files, keys, fleet = home_files(node), node.read(KEYS), ada.fleet.read_bytes()
    data = ada.joined(node, "--run", "cat", "--dry-run")
    assert [one["step"] for one in data["steps"] if one["text"].startswith("would")] == [
        "program", "node.toml", "launcher", "operator", "hub key", "daemon", "restricted key",
        "host key pinned", "status", "fleet.yaml"]  # fmt: skip
    assert data["changed"] == []
    assert (home_files(node), node.read(KEYS), ada.fleet.read_bytes()) == (files, keys, fleet)
    assert ada.pinned == {}


def test_a_hub_that_runs_takes_the_node_in(pair: Pair, lab: Lab) -> None:
    ada, node = pair
    hub = lab.child([sys.executable, "-m", "arc", "--fleet", str(ada.fleet), "up"])
    wait_for((ada.state / "hub.sock").exists)
    data = ada.joined(node, "--run", "cat")
    assert data["steps"][-1]["text"] == "runs, and works with iris"
    gone = ada.arc("nodes", "remove", "iris")
    assert "knows no longer iris" in gone.out, gone.err
    hub.terminate()
    hub.wait(10)


def test_a_home_elsewhere_is_named_in_the_key_line(pair: Pair) -> None:
    ada, node = pair
    data = ada.joined(node, "--run", "cat", "--home", "~/queues/iris", "--from", "10.213.77.0/24")
    line = node.read(KEYS).decode().splitlines()[-1]
    assert line.startswith('restrict,from="10.213.77.0/24",command="/usr/bin/env '
                           "AGENT_NODE_HOME=/home/agent/queues/iris /")  # fmt: skip
    assert "AGENT_NODE_HOME=/home/agent/queues/iris" in data["hints"][0]
    assert answers(ada, node)


# --- The host key is confirmed by a person, and by nothing less -------------------------------


@pytest.mark.parametrize("typed", ["y\n", "yes\n", "\n", "SHA256:short\n",
                                   "SHA256:" + "A" * 43 + "\n"])  # fmt: skip
def test_anything_but_the_fingerprint_is_refused(pair: Pair, typed: str) -> None:
    ada, node = pair
    ran = ada.add(node, typed=typed, sure=False)
    assert ran.code == 4
    assert "ARC-JOIN-FINGERPRINT" in ran.err
    assert HOW_TO_SEE in ran.err
    assert str(key_of(node)) in ran.err
    assert "nothing was changed" in ran.err
    assert ada.pinned == {}
    assert b"Accepted" not in node.read("/var/log/sshd.log")


def test_without_a_terminal_and_a_fingerprint_nobody_is_trusted(pair: Pair) -> None:
    ada, node = pair
    ran = ada.add(node, sure=False)
    assert ran.code == 2
    assert "--fingerprint" in ran.err
    assert b"Accepted" not in node.read("/var/log/sshd.log")


def test_the_whole_line_of_ssh_keygen_may_be_pasted_at_a_terminal(pair: Pair, lab: Lab) -> None:
    """A real terminal: what stands on it is asked for, and what is typed there is read."""
    ada, node = pair
    seen = node.exec(["ssh-keygen", "-lf", "/etc/ssh/host_key.pub"]).stdout
    ours, theirs = pty.openpty()
    env = {**os.environ, "HOME": str(ada.home), "NO_COLOR": "1"}
    env.pop("SSH_AUTH_SOCK", None)
    child = lab.child([sys.executable, "-m", "arc", "--fleet", str(ada.fleet), "nodes", "add",
                       f"agent@{node.address}", "--name", "iris", "--run", "cat"],
                      stdin=theirs, stdout=theirs, stderr=theirs, env=env)  # fmt: skip
    os.close(theirs)
    shown = read_until(ours, b"paste the fingerprint")
    assert str(key_of(node)).encode() in shown
    os.write(ours, seen)
    shown = read_until(ours, b"in the crontab of", b"crontab")
    assert child.wait(30) == 0, shown
    os.close(ours)
    assert set(ada.pinned) == {"iris"}


# --- Machines on which no node can live -------------------------------------------------------


def refused(pair: Pair, *words: str, code: int = 1, more: tuple[str, ...] = ()) -> str:
    """The one clear line; nothing of ours is on the machine, and nothing is written down here."""
    ada, node = pair
    keys, fleet = node.exec(["sha256sum", KEYS]).stdout, ada.fleet.read_bytes()
    ran = ada.add(node, "--run", "cat", *more)
    assert ran.code == code, (ran.out, ran.err)
    for word in words:
        assert word in ran.err, ran.err
    assert "nothing was changed, there or here" in ran.err
    assert "Traceback" not in ran.err
    assert node.exec(["sha256sum", KEYS]).stdout == keys
    assert ada.fleet.read_bytes() == fleet
    assert ada.pinned == {}
    return ran.err


def test_only_an_old_python_is_said(pair: Pair) -> None:
    _, node = pair
    old = b'#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\nexit 1\n'
    node.write("/tmp/old", old, mode=0o755)
    node.exec(["sh", "-c", COVER_EVERY_PYTHON])
    refused(pair, "ARC-JOIN-PYTHON", "no Python from 3.11 on (Python 3.9.2)", "install one of")


def test_a_home_that_everybody_may_write_is_refused(pair: Pair) -> None:
    _, node = pair
    node.exec(["chmod", "0777", "/home/agent"])
    node.exec(["sed", "-i", "s/StrictModes yes/StrictModes no/", "/etc/ssh/sshd_config"])
    node.restart_sshd(StrictModes="no")
    refused(pair, "everybody may write /home/agent", "chmod")


def test_a_full_disk_is_said_before_anything_is_written(pair: Pair) -> None:
    _, node = pair
    node.fill_disk(leave=1024 * 1024)
    refused(pair, "are free at", "free some space")


def test_a_disk_that_fills_up_meanwhile_leaves_nothing_half(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, node = pair
    monkeypatch.setattr("arc.joining.judging.ROOM", -100 * 1024 * 1024)
    node.fill_disk(leave=1024 * 1024)
    ran = ada.add(node, "--run", "cat")
    assert ran.code == 1
    assert "No space left on device" in ran.err
    assert node.exec(["ls", "-A", f"{HOME}/program"]).stdout == b"", "no draft lies there"
    node.free_disk()
    assert ada.joined(node, "--run", "cat")


def test_keys_behind_a_link_are_left_alone(pair: Pair) -> None:
    _, node = pair
    node.exec(["sh", "-c", f"mv {KEYS} {SSH}/elsewhere && ln -s elsewhere {KEYS}"])
    refused(pair, "is a link, not a plain file")


def test_a_home_of_another_node_is_refused(pair: Pair) -> None:
    _, node = pair
    node.install(name="loom", hub_key=OTHER_HUB, run=["cat"])
    node.write(KEYS, b"\n".join(node.read(KEYS).splitlines()[:1]) + b"\n", mode=0o600, user="agent")
    refused(pair, "already the home of loom", code=2)


def test_a_second_node_of_one_account_is_refused(pair: Pair) -> None:
    """Without the rule its line takes the place of the first one's, which the hub then loses."""
    ada, node = pair
    ada.joined(node, "--run", "cat")
    keys = node.read(KEYS)
    ran = ada.add(node, "--run", "cat", "--home", "~/two", name="loom")
    assert ran.code == 1
    assert f"starts the node of {HOME} for agent already" in ran.err
    assert node.read(KEYS) == keys
    assert answers(ada, node)


def test_the_key_of_another_hub_takes_a_persons_word(pair: Pair) -> None:
    ada, node = pair
    node.install(name="iris", hub_key=OTHER_HUB, run=["cat"])
    refused(pair, "another hub", "--yes", code=7)
    data = ada.joined(node, "--run", "cat", "--yes")
    assert OTHER_HUB.split()[1].encode() in node.read(KEYS), "others' lines stay"
    assert data["changed"]


def test_what_root_has_to_type_for_a_second_account_is_said_and_is_enough(pair: Pair) -> None:
    if not shutil.which("sudo"):
        pytest.skip("needs sudo: it is not installed")
    ada, node = pair
    node.write("/etc/sudoers", b"@includedir /etc/sudoers.d\n", mode=0o440)
    for named in ("useradd", "/etc/sudoers.d/agent-node-arc-tasks"):
        ran = ada.add(node, "--run", "id -un", "--run-as", "arc-tasks")
        assert ran.code == 1, ran.err
        hint = next(line for line in ran.err.splitlines() if line.startswith("hint: as root: "))
        assert named in hint
        node.exec(["sh", "-c", hint.partition("as root: ")[2].partition("; then look")[0]])
    ada.joined(node, "--run", "id -un", "--run-as", "arc-tasks")
    assert b'\nrun_as = "arc-tasks"\n' in node.read(f"{HOME}/node.toml")


def test_an_operators_key_that_is_refused_is_said(pair: Pair) -> None:
    ada, node = pair
    node.write(KEYS, b"# nobody\n", mode=0o600, user="agent")
    ran = ada.add(node)
    assert ran.code == 4
    assert "ARC-SSH-LOGIN" in ran.err
    assert "did not take your own key" in ran.err
    assert "nothing was changed, there or here" in ran.err


def test_an_sshd_without_strict_key_exchange_gets_no_program(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one from before CVE-2023-48795. Without the check the operator's login goes on."""
    monkeypatch.setattr("arc.joining.login.is_strict", lambda connection: False)
    refused(pair, "strict key exchange", code=3)


def test_a_login_shell_that_prints_is_skipped_and_said(pair: Pair) -> None:
    ada, node = pair
    node.write("/etc/loud", b"#!/bin/sh\necho 'Welcome \033[31mto iris'\n"
               b'exec /bin/sh "$@"\n', mode=0o755)  # fmt: skip
    node.exec(["sed", "-i", "/^agent:/s#:/bin/sh$#:/etc/loud#", "/etc/passwd"])
    data = ada.joined(node, "--run", "cat")
    shell = next(one for one in data["steps"] if one["step"] == "login shell")
    assert shell["text"] == "prints: Welcome \\x1b[31mto iris"
    assert answers(ada, node)


def test_a_login_shell_that_never_stops_printing_is_given_up(pair: Pair) -> None:
    _, node = pair
    node.write("/etc/endless", b"#!/bin/sh\nexec yes\n", mode=0o755)
    node.exec(["sed", "-i", "/^agent:/s#:/bin/sh$#:/etc/endless#", "/etc/passwd"])
    refused(pair, "ARC-ANSWER", "prints without end", code=3)


# --- The hub's key can speak to the node, and nothing else ------------------------------------


def test_a_key_that_gets_more_is_taken_out_again(pair: Pair) -> None:
    """Here sshd obeys another file first, in which the hub's key has no limits."""
    ada, node = pair
    line = (ada.state / "keys" / "hub_ed25519.pub").read_bytes()
    node.write("/etc/ssh/more_keys", line, mode=0o644)
    node.restart_sshd(AuthorizedKeysFile="/etc/ssh/more_keys .ssh/authorized_keys", **WITH_X11)
    ran = ada.add(node, "--run", "cat")
    assert ran.code == 1
    assert "ARC-JOIN-LOOSE" in ran.err
    for word in PROBES:
        assert word in ran.err
    assert ada.public.encode() not in node.read(KEYS)
    assert ada.pinned == {}
    assert "nodes:\n" not in ada.fleet.read_text()


NO_ARITHMETIC = r"""#!/bin/sh
knows() { case $1 in *'$(('*) echo 'Illegal variable name.' >&2; exit 1;; esac; }
if [ "$1" = -c ]; then knows "$2"; exec /bin/sh -c "$2"; fi
while read -r line; do knows "$line"; eval "$line"; done
"""


def test_a_shell_that_knows_no_arithmetic_is_a_shell(pair: Pair) -> None:
    """As csh, tcsh and an old fish. Guard: `expr`; with `$((` neither is found out here; seen."""
    ada, node = pair
    node.write("/etc/other_shell", NO_ARITHMETIC.encode(), mode=0o755)
    node.exec(["sed", "-i", "/^agent:/s#:/bin/sh$#:/etc/other_shell#", "/etc/passwd"])
    line = (ada.state / "keys" / "hub_ed25519.pub").read_bytes()
    node.write("/etc/ssh/more_keys", line, mode=0o644)
    node.restart_sshd(AuthorizedKeysFile="/etc/ssh/more_keys .ssh/authorized_keys")
    ran = ada.add(node, "--run", "cat")
    assert ran.code == 1
    assert "was granted a shell, commands, " in ran.err


@pytest.mark.parametrize("kept", [False, True])
def test_a_key_that_could_not_be_tried_is_taken_out_again_by_the_run_that_put_it_in(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, *, kept: bool
) -> None:
    """Guard: `no_untried_key`. Without it a line that nobody has tried to the end stays; seen.

    A line of an earlier run, tried then, stays as it is.
    """
    ada, node = pair
    if kept:
        ada.joined(node, "--run", "cat")

    async def breaks(*words: object, **more: object) -> tuple[str, ...]:
        raise NodeSilent("iris", "trying SFTP: no answer within 10s")

    monkeypatch.setattr("arc.joining.story.what_is_granted", breaks)
    ran = ada.add(node, "--run", "cat")
    assert ran.code == 3
    assert "trying SFTP" in ran.err
    assert (ada.public.encode() in node.read(KEYS)) is kept
    assert ("the hub's key was taken out of authorized_keys again" in ran.err) is not kept
    assert "the hub's key is in authorized_keys" not in ran.err
    monkeypatch.undo()
    assert ada.joined(node, "--run", "cat")


def test_a_key_that_is_not_tried_and_cannot_be_taken_out_is_said(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, node = pair

    async def breaks(*words: object, **more: object) -> tuple[str, ...]:
        node.kill_sshd()
        raise NodeSilent("iris", "trying SFTP: no answer within 10s")

    monkeypatch.setattr("arc.joining.story.what_is_granted", breaks)
    ran = ada.add(node, "--run", "cat")
    assert "trying SFTP" in ran.err
    assert "could not be taken out again" in ran.err
    assert "the hub's key is in authorized_keys" in ran.err


def test_a_key_is_tried_to_the_end_where_sshd_takes_one_session_at_a_time(pair: Pair) -> None:
    """No room for a session is no refusal. Taken for one, a shell would have been refused here."""
    ada, node = pair
    node.restart_sshd(MaxSessions="1")
    data = ada.joined(node, "--run", "cat")
    assert next(one for one in data["steps"] if one["step"] == "restricted key")["changed"] is False
    line = (ada.state / "keys" / "hub_ed25519.pub").read_bytes()
    node.write("/etc/ssh/more_keys", line, mode=0o644)
    keys = "/etc/ssh/more_keys .ssh/authorized_keys"
    node.restart_sshd(MaxSessions="1", AuthorizedKeysFile=keys)
    ran = ada.add(node, "--run", "cat")
    assert ran.code == 1
    for word in ("a shell", "commands", "SFTP", "a pty", "agent forwarding"):
        assert word in ran.err


def test_a_source_that_is_not_ours_is_noticed_and_mended(pair: Pair) -> None:
    ada, node = pair
    ran = ada.add(node, "--run", "cat", "--from", "192.0.2.1")
    assert ran.code == 4
    assert "did not take the hub's key" in ran.err
    assert "changed so far: " in ran.err
    assert "run the same command again" in ran.err
    assert ada.joined(node, "--run", "cat")
    assert b"192.0.2.1" not in node.read(KEYS)


# --- Trusted anew -----------------------------------------------------------------------------


def test_a_new_host_key_is_trusted_only_by_its_fingerprint(pair: Pair) -> None:
    ada, node = pair
    ada.joined(node, "--run", "cat")
    old = key_of(node)
    node.new_host_key()
    node.restart_sshd()
    new = key_of(node)
    refused_again = ada.add(node, "--run", "cat")
    assert refused_again.code == 4
    assert "arc nodes trust iris" in refused_again.err
    for given in (old.fingerprint, "yes"):
        ran = ada.arc("nodes", "trust", "iris", "--fingerprint", given)
        assert (ran.code, ada.pinned["iris"]) == (4, old)
    assert ada.arc("nodes", "trust", "iris").code == 2
    dry = ada.arc("nodes", "trust", "iris", "--fingerprint", new.fingerprint, "--dry-run")
    assert (dry.code, ada.pinned["iris"]) == (0, old)
    assert ada.arc("nodes", "trust", "iris", "--fingerprint", new.fingerprint).code == 0
    assert ada.pinned["iris"] == new
    assert answers(ada, node)


# --- Leaving ----------------------------------------------------------------------------------


def test_a_node_leaves_and_works_on(pair: Pair) -> None:
    ada, node = pair
    before = node.read(KEYS)
    ada.joined(node, "--run", "cat")
    dry = ada.arc("nodes", "remove", "iris", "--dry-run")
    assert dry.code == 0, dry.err
    assert "name: iris" in ada.fleet.read_text()
    ran = ada.arc("nodes", "remove", "iris")
    assert ran.code == 0, ran.err
    assert node.read(KEYS) == before
    assert ada.pinned == {}
    assert "name: iris" not in ada.fleet.read_text()
    pid = node.exec(["cat", f"{HOME}/lock"]).stdout.decode().strip()
    assert node.exec(["kill", "-0", pid]).returncode == 0, "its daemon runs on"
    log = ada.arc("log", "--json").data["lines"]
    noted = {line["event"]: line for line in log if line["node"] == "iris"}
    assert {"node_joined", "node_removed"} <= set(noted)
    assert noted["node_joined"]["fields"]["host_key"] == key_of(node).fingerprint


def test_a_removal_that_fails_half_way_says_what_is_changed_and_goes_on(pair: Pair) -> None:
    ada, node = pair
    ada.joined(node, "--run", "cat")
    (ada.home / "other").write_bytes((ada.state / "keys" / "hub_ed25519").read_bytes())
    (ada.home / "other").chmod(0o600)
    ran = ada.arc("nodes", "remove", "iris", "--identity", str(ada.home / "other"))
    assert ran.code != 0
    assert "changed so far: iris is suspended until " in ran.err
    assert "run the same command again" in ran.err
    assert "suspended" in ada.arc("nodes", "show", "iris").out
    assert "name: iris" in ada.fleet.read_text()
    again = ada.arc("nodes", "remove", "iris")
    assert again.code == 0, again.err
    assert "name: iris" not in ada.fleet.read_text()
    ada.joined(node, "--run", "cat")
    assert answers(ada, node), "no word about it has outlived its leaving"


def test_a_node_with_work_leaves_only_with_a_reason(pair: Pair) -> None:
    ada, node = pair
    ada.joined(node, "--run", "cat")
    node.exec([node.python, "-I", "-S", f"{HOME}/program/agent-node.pyz", "add", "later",
               "--not-before", "2999-01-01T00:00Z"], user="agent")  # fmt: skip
    ran = ada.arc("nodes", "remove", "iris")
    assert ran.code == 7
    assert "1 open task" in ran.err
    assert ada.arc("nodes", "remove", "iris", "--yes").code == 7
    assert ada.public.encode() in node.read(KEYS)
    done = ada.arc("nodes", "remove", "iris", "--yes", "--reason", "it is sold", "--json")
    assert json.loads(done.out)["ok"], done.err


def test_a_node_that_cannot_be_reached_is_only_forgotten(pair: Pair) -> None:
    ada, node = pair
    ada.joined(node, "--run", "cat")
    node.kill_sshd()
    ran = ada.arc("nodes", "remove", "iris")
    assert ran.code == 3
    assert "--forget" in ran.err
    assert "name: iris" in ada.fleet.read_text()
    assert ada.arc("nodes", "remove", "iris", "--forget").code == 7
    dry = ada.arc("nodes", "remove", "iris", "--forget", "--dry-run")
    assert dry.code == 0, dry.err
    assert "would be left there" in " ".join(dry.out.split())
    assert "would stay in authorized_keys" in dry.err
    assert "name: iris" in ada.fleet.read_text()
    gone = ada.arc("nodes", "remove", "iris", "--forget", "--yes", "--reason", "sold")
    assert gone.code == 0, gone.err
    assert "still in authorized_keys" in gone.err
    assert ada.pinned == {}


def wait_for(ready: Callable[[], bool], within_s: float = 15.0) -> None:
    until = time.monotonic() + within_s
    while not ready():
        assert time.monotonic() < until
        select.select([], [], [], 0.02)


def read_until(terminal: int, *marks: bytes, within_s: float = 20.0) -> bytes:
    """What stands on the terminal once one of these does, or it is closed."""
    shown, until = b"", time.monotonic() + within_s
    while not any(mark in shown for mark in marks):
        left = until - time.monotonic()
        assert left > 0, shown
        if select.select([terminal], [], [], left)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                break
    return shown
