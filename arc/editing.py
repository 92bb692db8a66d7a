"""Changes one node's entry in fleet.yaml and leaves every other character as it was."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_node.failpoints import failpoint

from .config import mark, parse_fleet, read_text
from .durable import NotSynced, sync_names
from .errors import BadSettings, NotFound, WrongUse
from .marked_yaml import Plain
from .splicing import add_item, drop_item, drop_key, set_key

Changes = Mapping[str, Plain]
_ORDER = "name host port user local home owns also never".split()


@dataclass(frozen=True)
class EditedText:
    """What one edit does to the file; with `dry_run` it is only told, not done."""

    path: Path
    before: str
    after: str

    @property
    def changed(self) -> bool:
        """Whether anything in the file is other than it was."""
        return self.before != self.after

    def diff(self) -> str:
        """The lines that differ, as `diff -u` shows them; empty: none do."""
        import difflib

        was, now = (text.splitlines(keepends=True) for text in (self.before, self.after))
        name = self.path.name
        return "".join(difflib.unified_diff(was, now, name, name))


def edit_node(path: Path, name: str, changes: Changes, *, dry_run: bool = False) -> EditedText:
    """Set keys of one node, or take them away where the new value is None.

    The result is read and checked before it takes the file's place: what would not be valid, or
    would say anything else than what was asked for, raises `BadSettings` and changes nothing.
    """
    if "name" in changes:
        raise WrongUse("a node's name cannot be changed: add it under the new one, then remove it")

    def change(text: str) -> tuple[str, Plain]:
        meant = _data(text, path)
        index = _index(meant, name, path)
        for key, value in changes.items():
            marked = mark(text, path)
            text = (set_key if value is not None else drop_key)(
                marked, ("nodes", index), key, render_value(value)
            )
        _entries(meant)[index] = _changed(_entries(meant)[index], changes)
        return text, meant

    return _edit(path, change, dry_run=dry_run)


def add_node(path: Path, entry: Changes, *, dry_run: bool = False) -> EditedText:
    """Add one node behind the others; `entry` has the keys of fleet.yaml, None ones left out."""
    said = {key: entry[key] for key in sorted(entry, key=_rank) if entry[key] is not None}

    def change(text: str) -> tuple[str, Plain]:
        meant = _data(text, path)
        after = add_item(mark(text, path), ("nodes",), render_value(said))
        _entries(meant).append(said)
        return after, meant

    return _edit(path, change, dry_run=dry_run)


def remove_node(path: Path, name: str, *, dry_run: bool = False) -> EditedText:
    """Take one node out; comments above its entry stay."""

    def change(text: str) -> tuple[str, Plain]:
        meant = _data(text, path)
        index = _index(meant, name, path)
        after = drop_item(mark(text, path), ("nodes",), index)
        del _entries(meant)[index]
        return after, meant

    return _edit(path, change, dry_run=dry_run)


def _edit(
    path: Path, change: Callable[[str], tuple[str, Plain]], *, dry_run: bool
) -> EditedText:
    before = read_text(path)
    parse_fleet(before, path)
    after, meant = change(before)
    if _data(after, path) != meant:
        raise BadSettings(
            f"{path}: the entry is written in a way that cannot be changed safely",
            hint="change it by hand; arc config check reads it", where=str(path),
        )  # fmt: skip
    _check_edited(after, path)
    edited = EditedText(path, before, after)
    if edited.changed and not dry_run:
        _replace(path, edited)
    return edited


def _check_edited(text: str, path: Path) -> None:
    """The lines that an error shows are those that the file would have, and nobody can look up."""
    try:
        parse_fleet(text, path)
    except BadSettings as error:
        raise BadSettings(
            f"with this change {path.name} could not be obeyed, so nothing was changed; as it "
            f"would read then:\n{error}", hint=error.hint, where=error.where,
            problems=error.problems,
        ) from error  # fmt: skip


def _data(text: str, path: Path) -> Plain:
    return mark(text, path).data


def _entries(data: Plain) -> list[Plain]:
    """The nodes of a file that was checked before."""
    listed = data.get("nodes") if isinstance(data, dict) else None
    return listed if isinstance(listed, list) else []


def _index(data: Plain, name: str, path: Path) -> int:
    for index, node in enumerate(_entries(data)):
        if isinstance(node, dict) and node.get("name") == name:
            return index
    raise NotFound(f"{path}: has no node {name}")


def _changed(entry: Plain, changes: Changes) -> Plain:
    was = entry if isinstance(entry, dict) else {}
    now = {**was, **changes}
    return {key: value for key, value in now.items() if value is not None}


def _rank(key: str) -> int:
    return _ORDER.index(key) if key in _ORDER else len(_ORDER)


def render_value(value: Plain) -> str:
    """A value as YAML in one line; text is quoted unless it is plainly a word."""
    import json

    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {render_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(render_value, value)) + "]"
    if isinstance(value, str) and _is_word(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_word(text: str) -> bool:
    import re

    plain = re.fullmatch(r"[A-Za-z_/~][A-Za-z0-9_./~-]*", text) is not None
    return plain and text.lower() not in {"true", "false", "null", "yes", "no", "on", "off", "~"}


def _replace(path: Path, edited: EditedText) -> None:
    """The new text in one step, durable, with the mode of the old; a link is followed."""
    real = os.path.realpath(path)
    draft = f"{real}.{os.urandom(4).hex()}.new"
    try:
        was = os.stat(real)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            try:
                _keep_owner_and_mode(file.fileno(), was)
                file.write(edited.after.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
                _check_unchanged(path, edited.before)
                failpoint("fleet_yaml.before_rename")
                os.replace(draft, real)
            except BaseException:
                os.unlink(draft)
                raise
        sync_names(Path(real), point="fleet_yaml")
    except NotSynced as error:
        raise BadSettings(f"{path}: was changed, and cannot be brought to the disk: "
                          f"{error.strerror}; look at it again after a loss of power") from error
    except OSError as error:
        raise BadSettings(
            f"{path}: cannot be written: {error.strerror}; nothing was changed"
        ) from error


def _keep_owner_and_mode(descriptor: int, was: os.stat_result) -> None:
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (was.st_uid, was.st_gid):
        os.fchown(descriptor, was.st_uid, was.st_gid)
    os.fchmod(descriptor, was.st_mode & 0o7777)


def _check_unchanged(path: Path, before: str) -> None:
    if read_text(path) != before:
        raise BadSettings(f"{path}: somebody changed it meanwhile; nothing was changed here",
                          hint="try again")  # fmt: skip
