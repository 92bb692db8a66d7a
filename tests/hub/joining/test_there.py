"""Holds the program at the other end by its parts: key lines, files, systemd; nothing is sent."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from agent_node.requests import Fields
from agent_node.strict import decode_object
from agent_node.systemd import render_unit
from arc.joining.look import read_look
from arc.joining.there import files, inquiring, launcher, looking, placing, starting
from arc.joining.there.keyline import blob_of, other_hubs, with_line, without_line
from arc.joining.there.words import Fact, Refused, checked_path

OURS = "AAAAC3NzaC1lZDI1NTE5AAAAIOurOwnKeyOurOwnKeyOurOwnKeyOurOwnK"
THEIRS = "AAAAC3NzaC1lZDI1NTE5AAAAITheirKeyTheirKeyTheirKeyTheirKeyT"
COMMAND = "/usr/bin/python3 -I -S /h/agent-node.pyz serve --stdio"
LINE = f'restrict,command="{COMMAND}" ssh-ed25519 {OURS} hub'
FILE = (f"# a comment\n\nssh-ed25519 {THEIRS} ada@desk\n"
        f'from="a b",command="echo \\"x\\"" ssh-rsa {THEIRS} b\n')  # fmt: skip


def test_our_line_is_added_at_the_end_and_others_are_left_alone() -> None:
    assert with_line(FILE, LINE) == f"{FILE}{LINE}\n"
    assert with_line(FILE.rstrip("\n"), LINE) == f"{FILE}{LINE}\n"
    assert with_line("", LINE) == f"{LINE}\n"


def test_an_older_line_of_ours_is_replaced_where_it_stands_and_stands_there_once() -> None:
    old = f"ssh-ed25519 {OURS} without limits\n"
    assert with_line(f"{old}{FILE}{old}", LINE) == f"{LINE}\n{FILE}"
    assert with_line(f"{LINE}\n{FILE}", LINE) == f"{LINE}\n{FILE}"


def test_our_line_is_taken_out_and_the_rest_is_as_it_was() -> None:
    assert without_line(with_line(FILE, LINE), OURS) == FILE
    assert without_line(FILE, OURS) == FILE


@pytest.mark.parametrize(("line", "blob"), [
    (f"ssh-ed25519 {OURS}", OURS), (f"ssh-ed25519\t{OURS}", OURS),
    (f'command="ssh-ed25519 {THEIRS} x",no-pty ssh-ed25519 {OURS} c', OURS),
    (f"# ssh-ed25519 {OURS}", ""),
    (f"   ssh-ed25519   {OURS}   c", OURS),
    ("", ""), ("nonsense", ""),
])  # fmt: skip
def test_a_line_is_known_by_its_key_and_not_by_what_stands_in_quotes(line: str, blob: str) -> None:
    assert blob_of(line) == blob


def test_another_hub_is_known_by_what_its_key_starts() -> None:
    assert other_hubs(f"{LINE}\n{FILE}", OURS) == []
    assert other_hubs(f"{LINE}\n", THEIRS) == [OURS]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_is_no_plain_file_is_neither_read_nor_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "authorized_keys"
    if kind == "link":
        path.symlink_to("elsewhere")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(Refused, match="not a plain file"):
        files.read_own(str(path))


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    files.write_own(str(path), b"one")
    assert path.stat().st_mode & 0o777 == 0o600

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_own(str(path), b"two")
    assert [one.name for one in tmp_path.iterdir()] == ["x"]
    assert path.read_bytes() == b"one"


@pytest.mark.parametrize("path", ["", "x", "/a/../b", "/a b", "/$HOME", None, 7, "/a\0b"])
def test_a_home_is_a_plain_absolute_path(path: object) -> None:
    with pytest.raises(Refused):
        checked_path(path, "the home")


def test_a_program_that_did_not_arrive_as_it_was_sent_is_not_written(tmp_path: Path) -> None:
    sent: Fact = {"home": str(tmp_path / "h"), "sha256": "0" * 64, "file": "AAAA"}
    with pytest.raises(Refused, match="did not arrive"):
        placing.place(sent)
    assert list(tmp_path.iterdir()) == []


# --- systemd, by programs that stand in for it ------------------------------------------------


@pytest.fixture
def account(tmp_path: Path) -> pwd.struct_passwd:
    return pwd.struct_passwd(("agent", "x", 1000, 1000, "", str(tmp_path / "agent"), "/bin/sh"))


def stand_in(folder: Path, name: str, *, code: int = 0, says: str = "") -> None:
    script = f'#!/bin/sh\necho "{name} $*" >> {folder}/calls\necho "{says}" >&2\nexit {code}\n'
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


def test_where_systemd_runs_a_unit_is_kept_and_the_account_lingers(
    account: pwd.struct_passwd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "systemctl")
    stand_in(tmp_path, "loginctl")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    unit = render_unit(["/usr/bin/python3", "x.pyz", "run"], home="/h", stop_grace_s=30)
    done = starting.install_unit(account, unit)
    assert (done["kept_by"], done["said"]) == ("systemd", [])
    written = Path(account.pw_dir, starting.UNIT).read_text()
    assert "KillMode=process" in written
    assert "Delegate=yes" in written
    assert (tmp_path / "calls").read_text().splitlines() == [
        "loginctl enable-linger agent", "systemctl --user daemon-reload",
        "systemctl --user enable agent-node.service"]  # fmt: skip
    assert starting.install_unit(account, unit)["unit_there"]


def test_where_the_account_may_not_linger_no_unit_is_enabled_and_root_s_command_is_told(
    account: pwd.struct_passwd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail, with a systemd that runs: without polkit the unit was enabled nevertheless, and
    ten seconds after the last login systemd ended the daemon; a task would have gone with it.
    """
    stand_in(tmp_path, "systemctl")
    stand_in(tmp_path, "loginctl", code=1, says="Could not enable linger: Access denied")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    done = starting.install_unit(account, "text")
    assert done["kept_by"] == "nothing"
    said = str(done["said"])
    assert "Could not enable linger: Access denied" in said
    assert "as root there: loginctl enable-linger agent; then the same command again" in said
    calls = (tmp_path / "calls").read_text().splitlines()
    assert "systemctl --user disable agent-node.service" in calls
    assert "systemctl --user enable agent-node.service" not in calls


def test_an_account_that_root_lets_linger_is_not_told_that_it_may_not_ask_for_it(
    account: pwd.struct_passwd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail, with a systemd that runs: a warning with each `arc nodes add`."""
    stand_in(tmp_path, "systemctl")
    (tmp_path / "loginctl").write_text('#!/bin/sh\n[ "$1" = show-user ] && echo yes\n')
    (tmp_path / "loginctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    done = starting.install_unit(account, "text")
    assert (done["kept_by"], done["said"]) == ("systemd", [])


def test_what_systemd_refuses_is_told_and_no_error(
    account: pwd.struct_passwd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "systemctl", code=1, says="Failed to connect to bus")
    stand_in(tmp_path, "loginctl")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    done = starting.install_unit(account, "text")
    assert done["kept_by"] == "nothing"
    assert "systemctl --user enable agent-node.service: Failed to connect to bus" in str(done)


def test_systemd_itself_has_no_objection_to_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("needs systemd: systemd-analyze is not installed")
    unit = tmp_path / "agent-node.service"
    unit.write_text(render_unit(["/bin/sh", "run"], home="/h", stop_grace_s=30))
    ran = subprocess.run([analyze, "verify", "--man=no", str(unit)], capture_output=True,
                         text=True, check=False, timeout=30)  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")


def test_to_look_reads_a_home_of_ours_and_an_open_one(tmp_path: Path) -> None:
    home = tmp_path / "n"
    home.mkdir(0o700)
    (home / "node.toml").write_text('name = "iris"\nstop_grace_s = 5\n')
    said = looking.look({"home": str(home), "blob": OURS})
    assert (said["node"], said["stop_grace_s"], said["program"]) == ("iris", 5, "")
    (home / "node.toml").write_text("name = ")
    assert "node.toml" in str(looking.look({"home": str(home)})["node_error"])
    assert said["run_there"] is True
    assert looking.look({"home": str(home), "run": "no-such-program"})["run_there"] is False
    assert looking.look({"home": str(home), "run": "/bin/sh"})["run_there"] is True


# --- The launcher, and what runs there --------------------------------------------------------


def test_settings_that_a_person_keeps_elsewhere_are_read_through_their_link(tmp_path: Path) -> None:
    """As the node itself reads them. Fails where a link is refused: such a node could not be mended
    by the command that it joined by.
    """
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (tmp_path / "kept.toml").write_text('name = "iris"\n')
    (home / "node.toml").symlink_to(tmp_path / "kept.toml")
    said = looking.look({"home": str(home)})
    assert (said["node"], said["node_error"]) == ("iris", "")
    (tmp_path / "kept.toml").unlink()
    os.mkfifo(tmp_path / "kept.toml")
    assert "not a plain file" in str(looking.look({"home": str(home)})["node_error"])


def test_settings_that_are_no_utf_8_are_a_finding_and_the_hub_can_read_it(tmp_path: Path) -> None:
    """Fails where they are told as they stand: then the hub finds no answer in what was said."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "node.toml").write_bytes('name = "iris"  # für alle\n'.encode("latin-1"))
    said = looking.look({"home": str(home)})
    read_look(Fields(decode_object(json.dumps(said).encode())))
    assert said["node_error"] == f"{home}/node.toml: is not UTF-8 at character 18"


@pytest.fixture
def lives_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The account's folder is this one."""
    own = pwd.struct_passwd(("agent", "x", os.geteuid(), 0, "", str(tmp_path), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: own)
    return tmp_path


def ask_for_launcher(place: Path) -> Fact:
    return launcher.launch({"home": str(place / ".agent-node"), "python": "/usr/bin/python3"})


def test_the_launcher_starts_the_program_of_the_home_and_is_made_once(lives_at: Path) -> None:
    said = ask_for_launcher(lives_at)
    path = lives_at / ".local/bin/agent-node"
    assert (said["state"], said["file"]) == ("written", str(path))
    assert path.stat().st_mode & 0o777 == 0o755
    program = f"{lives_at}/.agent-node/program/agent-node.pyz"
    assert path.read_text() == f'#!/bin/sh\nexec /usr/bin/python3 -I -S {program} "$@"\n'
    assert ask_for_launcher(lives_at)["state"] == "there"
    path.write_text(launcher.launcher("/srv/q", "/usr/bin/python3.12", "/home/a"))
    assert "AGENT_NODE_HOME=/srv/q" in path.read_text()
    assert ask_for_launcher(lives_at)["state"] == "replaced"


@pytest.mark.parametrize("kind", ["script", "link", "folder", "no_folder"])
def test_a_command_that_is_none_of_ours_is_left_alone(lives_at: Path, kind: str) -> None:
    """Guarded by `_is_ours`: without it somebody's own script is lost."""
    path = lives_at / ".local/bin/agent-node"
    if kind == "no_folder":
        (lives_at / ".local").write_text("a file")
    else:
        path.parent.mkdir(parents=True)
    if kind == "script":
        path.write_text("#!/bin/sh\nexec my-own-agent-node\n")
    elif kind == "link":
        path.symlink_to("/usr/bin/env")
    elif kind == "folder":
        path.mkdir()
    said = ask_for_launcher(lives_at)
    assert said["state"] == "left"
    assert str(lives_at) in str(said["because"])
    assert kind != "script" or "my-own" in path.read_text()
    assert kind != "link" or path.is_symlink()


def test_whether_the_launchers_folder_is_on_path_is_asked_of_a_login_shell(
    lives_at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(lives_at))
    assert ask_for_launcher(lives_at)["on_path"] is False
    (lives_at / ".profile").write_text('echo hello; PATH="$HOME/.local/bin:$PATH"\n')
    assert ask_for_launcher(lives_at)["on_path"] is True


def test_no_daemon_and_no_program_are_said_as_such(tmp_path: Path) -> None:
    home = {"home": str(tmp_path / "h")}
    assert inquiring.daemon(dict(home)) == {"pid": 0, "program": "", "current": ""}
    assert inquiring.version(dict(home)) == {"version": ""}


def test_a_daemon_is_known_by_who_listens_and_by_the_file_it_keeps_open(tmp_path: Path) -> None:
    home = tmp_path / "h"
    (home / "program").mkdir(parents=True)
    (home / "program" / "agent-node.pyz").symlink_to("agent-node-bb.pyz")
    old = home / "program" / "agent-node-aa.pyz"
    old.write_text("x")
    with socket.socket(socket.AF_UNIX) as door, old.open():
        door.bind(str(home / "node.sock"))
        door.listen()
        assert inquiring.daemon({"home": str(home)}) == {
            "pid": os.getpid(), "program": old.name, "current": "agent-node-bb.pyz"}  # fmt: skip
