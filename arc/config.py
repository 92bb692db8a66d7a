"""Finds fleet.yaml and reads it into settings, or says everything that is wrong with it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent_node.strict import JsonObject

from .errors import BadSettings, NoFleet
from .findings import Finding
from .settings import FleetSettings

if TYPE_CHECKING:
    from .config_model import FleetFile
    from .marked_yaml import Marked, Plain

NAME = "fleet.yaml"
STATE = ".arc"
VARIABLE = "ARC_FLEET"
LET_GO = f"let go of it: unset {VARIABLE}   ·   or name another: arc --fleet FILE"
BYTES_MAX = 1024 * 1024


def read_fleet(path: Path) -> FleetSettings:
    """The settings in this file; `BadSettings` names every fault in it with line and column."""
    return parse_fleet(read_text(path), path)


def parse_fleet(text: str, path: Path) -> FleetSettings:
    """The settings that this text says; relative paths in it start at the folder of `path`."""
    from .config_settings import settings_of

    return settings_of(_checked(mark(text, path), path), Path(os.path.abspath(path)))


def read_text(path: Path) -> str:
    """What the file says, as text; bounded, so that no file can fill the hub's memory."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _unusable(path, "ARC-CFG-FILE", "is no plain file")
            raw = file.read(BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise NoFleet(f"{path}: is not there") from error
    except (OSError, ValueError) as error:
        because = error.strerror if isinstance(error, OSError) else str(error)
        raise _unusable(path, "ARC-CFG-FILE", f"cannot be read: {because}") from error
    if len(raw) > BYTES_MAX:
        raise _unusable(path, "ARC-CFG-LARGE", f"has more than {BYTES_MAX} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unusable(
            path, "ARC-CFG-SYNTAX", f"is not UTF-8 at byte {error.start}"
        ) from error


def _without_waiting(path: str, flags: int) -> int:
    """A pipe in the file's place would have the hub wait for its writer for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


def mark(text: str, path: Path) -> Marked:
    """The values of this text with their places, or `BadSettings` where it is no YAML mapping."""
    from .config_faults import bad_settings, shown
    from .marked_yaml import Marked, NotYaml, read_marked

    try:
        marked = read_marked(text)
    except NotYaml as error:
        nothing = Marked(text, troubles=[error.trouble])
        raise bad_settings(str(path), nothing, ()) from error
    if not isinstance(marked.data, dict):
        said = f"not {shown(marked.data)}" if marked.data is not None else "but says nothing"
        text = f"the file should be a mapping, such as nodes: [], {said}"
        raise bad_settings(str(path), marked, [("ARC-CFG-TYPE", (), text, False)])
    return marked


def _checked(marked: Marked, path: Path) -> FleetFile:
    from .config_amounts import take_amounts_as_written
    from .config_faults import bad_settings, contradictions, faults_of_model
    from .config_model import FleetFile, check

    take_amounts_as_written(marked)
    found = check(marked.data)
    refused = () if isinstance(found, FleetFile) else found
    faults = [*contradictions(marked.data), *faults_of_model(refused)]
    if faults or marked.troubles or not isinstance(found, FleetFile):
        raise bad_settings(str(path), marked, faults)
    return found


def _unusable(path: Path, code: str, text: str) -> BadSettings:
    from .config_faults import error_of

    return error_of(str(path), [Finding(code, text, str(path))], total=1)


def find_fleet(
    start: Path, environ: Mapping[str, str], named: str | os.PathLike[str] | None = None
) -> Path:
    """The fleet.yaml that is meant; nothing is read yet.

    In this order: the one that is named, `$ARC_FLEET`, `fleet.yaml` here or in a folder above,
    `~/.config/arc/fleet.yaml`. One that is merely come across has to belong to this user, because
    it says into which machines the hub logs in.
    """
    told = named or environ.get(VARIABLE)
    if told:
        path = _meant(start, told)
        if path.is_file():
            return path
        what = "is no file" if path.exists() else "is not there"
        who, hint = ("--fleet", "") if named else (f"${VARIABLE}", LET_GO)
        raise NoFleet(f"{path}: {what}; {who} names it", hint=hint)
    start = Path(os.path.abspath(start))
    looked = [folder / NAME for folder in (start, *start.parents)]
    looked += _in_the_home(environ)
    passed: list[str] = []
    for path in looked:
        reason = _not_ours(path)
        if reason == "":
            return path
        passed += [f"{path} {reason}"] if reason else []
    raise NoFleet("; ".join([f"no {NAME} in {start} and above, nor as {looked[-1]}", *passed]))


def led_elsewhere(start: Path, environ: Mapping[str, str], file: Path) -> Path | None:
    """Where `$ARC_FLEET` leads commands that name no fleet; None: to this file, or nowhere."""
    told = environ.get(VARIABLE)
    path = _meant(start, told) if told else file
    return None if os.path.realpath(path) == os.path.realpath(file) else path


def _meant(start: Path, told: str | os.PathLike[str]) -> Path:
    return Path(os.path.abspath(os.path.join(start, os.path.expanduser(told))))


def _in_the_home(environ: Mapping[str, str]) -> list[Path]:
    told = environ.get("XDG_CONFIG_HOME", "")
    home = environ.get("HOME") or os.path.expanduser("~")
    folder = Path(told) if os.path.isabs(told) else Path(home) / ".config"
    return [folder / "arc" / NAME]


def _not_ours(path: Path) -> str | None:
    """Why a file that was come across is not used; empty: it is; None: there is no such file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    if found.st_uid not in {os.geteuid(), 0}:
        return f"belongs to user {found.st_uid}; to use it all the same, name it with --fleet"
    if found.st_mode & stat.S_IWOTH:
        return "may be written by everybody; to use it all the same, name it with --fleet"
    return ""


def state_of(path: Path) -> Path:
    """The hub's folder that this file names, found without checking anything else in it.

    For commands that only knock at a running hub: the checks cost more than the whole command.
    """
    data: Plain = mark(read_text(path), path).data
    hub = data.get("hub") if isinstance(data, dict) else None
    said = hub.get("state") if isinstance(hub, dict) else None
    return beside(Path(os.path.abspath(path)), said if isinstance(said, str) and said else STATE)


def beside(file: Path, path: str) -> Path:
    """A path of fleet.yaml: `~` is the user's home, and what is relative starts at the file."""
    return Path(os.path.abspath(file.parent / os.path.expanduser(path)))


def fleet_schema() -> JsonObject:
    """The JSON schema of fleet.yaml, with which editors complete keys and mark mistakes."""
    from .config_model import schema

    return {
        **cast("JsonObject", schema()),
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "fleet.yaml",
    }
