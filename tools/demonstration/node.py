"""Runs the demo's node from outside, as a person and a hub do: by its commands and its wire."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from agent_node.packing import build_zipapp

START_WITHIN_S = 30.0
ANSWER_WITHIN_S = 30.0
AGENTS = """
[[agent]]
name = "ada"
run = {run}
slots = 3
skills = ["code"]

[[agent]]
name = "bob"
run = {run}
slots = 2
skills = ["ops"]
"""


class DemoFailed(Exception):
    """The node did not do what the demo asked of it."""


class Talk:
    """One `agent-node serve --stdio`, spoken to as a hub speaks to it."""

    def __init__(self, command: list[str], environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(command, env=environ, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._id = 0
        self._waiting = b""
        self._line()  # the greeting

    def ask(self, do: str, **fields: object) -> dict[str, object]:
        """The result of one request; `DemoFailed` when there is none."""
        self._id += 1
        assert self._process.stdin is not None
        try:
            line = json.dumps({"id": self._id, "do": do, **fields})
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise DemoFailed(f"{do}: the node hung up") from error
        reply = json.loads(self._line())
        if not reply.get("ok"):
            raise DemoFailed(f"{do}: {reply.get('error')}")
        result: dict[str, object] = reply["result"]
        return result

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        out = self._process.stdout.fileno()
        while b"\n" not in self._waiting:
            if not select.select([out], [], [], ANSWER_WITHIN_S)[0]:
                raise DemoFailed(f"no answer from serve within {ANSWER_WITHIN_S:.0f} s")
            data = os.read(out, 1 << 16)
            if not data:
                raise DemoFailed("the node ended the talk")
            self._waiting += data
        line, _, self._waiting = self._waiting.partition(b"\n")
        return line

    def close(self) -> None:
        """Hang up; who does not end by that is ended."""
        for end in (self._process.stdin, self._process.stdout):
            try:
                if end is not None:
                    end.close()
            except BrokenPipeError:
                continue  # closed all the same: what stood in the buffer has no reader
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class DemoNode:
    """A home in a folder, the node as one file beside it, and at most one daemon and one talk."""

    def __init__(self, folder: Path) -> None:
        self.home, self.notes = folder / "home", folder / "notes"
        self.pyz, self._log = folder / "agent-node.pyz", folder / "daemon.log"
        self.environ = {**os.environ, "AGENT_NODE_HOME": str(self.home)}
        self.daemon: subprocess.Popen[bytes] | None = None
        self._talk: Talk | None = None

    def set_up(self) -> None:
        """What a person does: build the file, `init`, and fill in node.toml."""
        build_zipapp(self.pyz)
        self.notes.mkdir()
        self.command("init", "--name", "iris")
        settings = self.home / "node.toml"
        text = settings.read_text(encoding="utf-8")
        text = text.replace('# disk_floor = "1GiB"', 'disk_floor = "16MiB"')
        text = text.replace("# grace_s = 10", "grace_s = 1")
        program = Path(__file__).with_name("work.py")
        run = [sys.executable, "-I", "-S", str(program), str(self.notes), str(self.pyz)]
        settings.write_text(text + AGENTS.format(run=json.dumps(run)), encoding="utf-8")

    def command(self, *words: str, stdin: str = "") -> dict[str, object]:
        """The `data` of one command; its own words on stderr when it fails."""
        done = subprocess.run(self._argv(*words, "--json"), env=self.environ, input=stdin,
                              text=True, capture_output=True, timeout=60, check=False)
        try:
            said = json.loads(done.stdout)
        except ValueError as error:
            raise DemoFailed(f"{words[0]}: exit {done.returncode}: {done.stderr}") from error
        if not said["ok"]:
            raise DemoFailed(f"{words[0]}: {said['error']['message']}; {said['error']['hint']}")
        data: dict[str, object] = said["data"]
        return data

    def start(self, *words: str) -> int:
        """Start the daemon; how many attempts of an earlier one it took over."""
        seen = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self.daemon = subprocess.Popen(self._argv("run", *words), env=self.environ,
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        adopted = self._started(seen)
        self._talk = Talk(self._argv("serve", "--stdio"), self.environ)
        return adopted

    def _started(self, seen: int) -> int:
        until = time.monotonic() + START_WITHIN_S
        while time.monotonic() < until:
            text = self._log.read_bytes()[seen:].decode()
            for line in text.splitlines():
                if line.startswith("{") and line.endswith("}"):
                    said = json.loads(line)
                    if said["event"] == "node_started":
                        return int(said["adopted"])
            if self.daemon is None or self.daemon.poll() is not None:
                raise DemoFailed(f"the daemon did not start: {text}")
            time.sleep(0.02)
        raise DemoFailed(f"the daemon did not start within {START_WITHIN_S:.0f} s")

    def ask(self, do: str, **fields: object) -> dict[str, object]:
        """One request over the wire."""
        if self._talk is None:
            self._talk = Talk(self._argv("serve", "--stdio"), self.environ)
        return self._talk.ask(do, **fields)

    def kill_daemon(self) -> int:
        """`kill -9` of the daemon alone; its pid."""
        assert self.daemon is not None
        self.hang_up()
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()
        return self.daemon.pid

    def has_ended(self, within_s: float = 0) -> bool:
        """Whether the daemon has ended by itself, now or within so many seconds."""
        assert self.daemon is not None
        try:
            self.daemon.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def exit_code(self) -> int | None:
        """How the last daemon ended; None while it runs, or when there was none."""
        return None if self.daemon is None else self.daemon.poll()

    def hang_up(self) -> None:
        """End the talk, if there is one."""
        if self._talk is not None:
            self._talk.close()
            self._talk = None

    def _argv(self, *words: str) -> list[str]:
        return [sys.executable, "-I", "-S", str(self.pyz), *words]
