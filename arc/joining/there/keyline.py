"""Puts the hub's key line into authorized_keys, or takes it out; no other line is touched."""

from __future__ import annotations

import os
import pwd
import re

from .files import kind_of, make_folder, read_own, write_own
from .words import Fact, Refused

has_other_hub = re.compile(r'command="[^"]*agent-node[^"]* serve --stdio"').search
_key_of = re.compile(r"(?:^|\s)((?:ssh|ecdsa|sk)-[a-z0-9@.-]+)[ \t]+([A-Za-z0-9+/=]{20,})").search


def with_line(text: str, line: str) -> str:
    """The file with this line of ours in it once, where an older one stood or else at the end."""
    blob = blob_of(line)
    kept = text.splitlines(keepends=True)
    places = [at for at, one in enumerate(kept) if blob_of(one) == blob]
    if [kept[at] for at in places] == [f"{line}\n"]:
        return text
    if not places:
        return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"
    kept[places[0]] = f"{line}\n"
    return "".join(one for at, one in enumerate(kept) if at not in places[1:])


def without_line(text: str, blob: str) -> str:
    """The file without any line that lets this key in."""
    return "".join(one for one in text.splitlines(keepends=True) if blob_of(one) != blob)


def blob_of(line: str) -> str:
    """The key of one line in base64; empty for a comment or what is no key line."""
    if line.lstrip().startswith("#"):
        return ""
    found = _key_of(re.sub(r'"(?:[^"\\]|\\.)*"', "", line))
    return found[2] if found else ""


def other_hubs(text: str, blob: str) -> list[str]:
    """The keys, in base64, with which other hubs speak to a node of this account."""
    return [blob_of(one) for one in text.splitlines()
            if has_other_hub(one) and blob_of(one) not in {"", blob}]  # fmt: skip


def keys_file(home: str) -> str:
    """Where this account's keys stand; what sshd would not obey, or is not ours, is refused."""
    folder = os.path.join(home, ".ssh")
    if kind_of(folder) not in {"missing", "folder"}:
        raise Refused("not_a_folder", f"{folder}: is a {kind_of(folder)}; it was left alone")
    return os.path.join(folder, "authorized_keys")


def let_in(request: Fact) -> Fact:
    """The hub's key line in this account's file; whether it stood there already."""
    line = str(request.get("line"))
    if "\n" in line or not blob_of(line):
        raise Refused("strange_key", "the hub's key line is none; nothing was changed")
    path = keys_file(account_home())
    make_folder(os.path.dirname(path))
    return {"there": not _replace(path, with_line(read_own(path) or "", line))}


def shut_out(request: Fact) -> Fact:
    """The hub's key in no line any more; whether it had been in one."""
    blob = str(request.get("blob"))
    if blob_of(f"ssh-ed25519 {blob}") != blob:
        raise Refused("strange_key", "no key was named; nothing was changed")
    path = keys_file(account_home())
    text = read_own(path)
    return {"taken": text is not None and _replace(path, without_line(text, blob))}


def account_home() -> str:
    """This account's own folder, whatever the environment says."""
    return pwd.getpwuid(os.geteuid()).pw_dir


def _replace(path: str, text: str) -> bool:
    was = read_own(path)
    private = was is None or os.lstat(path).st_mode & 0o077 == 0
    if was == text and private:
        return False
    write_own(path, text.encode("utf-8", "surrogateescape"))
    return was != text
