"""Puts the node's program into its home, and lets the program set that home up."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys

from .files import kind_of, make_folder, point, read_own, write_own
from .looking import LINK, PROGRAM, program_there
from .words import Fact, Refused, checked_path

INIT_S = 30.0
PROGRAM_MAX = 32 * 1024 * 1024
TEXT_MAX = 4000


def place(request: Fact) -> Fact:
    """The program under the name of its hash, and the link to it; whether it was there already."""
    home = checked_path(request.get("home"), "the node's home")
    wanted = str(request.get("sha256"))
    data = base64.b64decode(str(request.get("file")), validate=True)
    if len(data) > PROGRAM_MAX or hashlib.sha256(data).hexdigest() != wanted:
        raise Refused("damaged", "the program did not arrive as it was sent; nothing was written")
    if program_there(home) == wanted:
        return {"there": True}
    folder = os.path.join(home, PROGRAM)
    make_folder(home)
    make_folder(folder)
    link = kind_of(os.path.join(folder, LINK))
    if kind_of(folder) != "folder" or link not in {"missing", "link"}:
        raise Refused("strange_home", f"{folder}: holds what is none of ours; it was left alone")
    name = f"agent-node-{wanted[:12]}.pyz"
    write_own(os.path.join(folder, name), data, 0o700)
    point(os.path.join(folder, LINK), name)
    return {"there": False}


def settle_in(request: Fact) -> Fact:
    """node.toml, by the program's own `init`; one that is there is kept."""
    home = checked_path(request.get("home"), "the node's home")
    words = request.get("words")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise Refused("strange_words", "init was sent no list of words")
    return run_program(home, ["init", *words], INIT_S)


def list_operators(request: Fact) -> Fact:
    """The operators' file with these lines in it; others' lines stay."""
    home = checked_path(request.get("home"), "the node's home")
    path, line = os.path.join(home, "operators"), str(request.get("line")).strip()
    if not line or "\n" in line:
        raise Refused("strange_key", "the operator's line is none")
    text = read_own(path) or ""
    if line in text.splitlines() and os.lstat(path).st_mode & 0o077 == 0:
        return {"there": True}
    if line not in text.splitlines():
        text = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"
    write_own(path, text.encode("utf-8", "surrogateescape"))
    return {"there": False}


def run_program(home: str, words: list[str], timeout_s: float) -> Fact:
    """What one command of the program in this home answered, or its own refusal."""
    pyz = os.path.join(home, PROGRAM, LINK)
    argv = [os.path.realpath(sys.executable), "-I", "-S", pyz, *words, "--json"]
    try:
        ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                             timeout=timeout_s, env=surroundings(home), cwd="/")  # fmt: skip
    except subprocess.TimeoutExpired as error:
        text = f"agent-node {words[0]} took longer than {timeout_s:g} s"
        raise Refused("too_slow", text) from error
    return answer_of(words[0], ran)


def answer_of(word: str, ran: subprocess.CompletedProcess[bytes]) -> Fact:
    """The data of an envelope; an error in one, or anything else, is a refusal."""
    try:
        said = json.loads(ran.stdout)
        if said["ok"]:
            return {"data": said["data"], "warnings": said.get("warnings", []),
                    "exit": ran.returncode}  # fmt: skip
        error = said["error"]
        raise Refused(str(error.get("code")), str(error.get("message")), str(error.get("hint")))
    except (ValueError, KeyError, TypeError) as error:
        last = ran.stderr.decode("utf-8", "replace").strip()[-TEXT_MAX:] or "it said nothing"
        text = f"agent-node {word} ended with {ran.returncode}: {last}"
        raise Refused("no_answer", text) from error


def surroundings(home: str) -> dict[str, str]:
    """What a program of ours sees: this login's environment, without its SSH, and the home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SSH_")}
    runtime = f"/run/user/{os.geteuid()}"  # where this account's systemd listens
    found = {"XDG_RUNTIME_DIR": runtime} if os.path.isdir(runtime) else {}
    return found | kept | {"AGENT_NODE_HOME": home}
