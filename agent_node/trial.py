"""Tries a new program in a scratch home, before it may touch the real one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import program
from .attempts import read_untrusted
from .errors import BadInput, NodeError
from .failpoints import failpoint
from .home import Home
from .lines import line_of
from .requests import Fields
from .strict import LINE_MAX, JsonObject, decode_object
from .text import safe_text
from .upgrade_record import Upgrade
from .wire import OLDEST_WIRE, WIRE

TRIAL_S = 20.0
SCRATCH = ".trial-"
SAID_MAX = 300
SETTINGS_MAX = 1024 * 1024
_HELLO: JsonObject = {
    "id": 1, "do": "hello", "fleet": "trial", "hub": "trial", "term": 1,
    "wire": [OLDEST_WIRE, WIRE],
}  # fmt: skip


class TrialFailed(NodeError):
    """The new program does not do what it has to; the old one stays."""

    code = "upgrade_trial"


def sweep(home: Home) -> None:
    """Take away what trials that were killed left behind; only who holds the upgrade's lock may."""
    for place in program.folder_of(home).glob(f"{SCRATCH}*"):
        shutil.rmtree(place, ignore_errors=True)


def try_out(home: Home, new: Path, upgrade: Upgrade, schema: int) -> None:
    """Return only when the new program starts, is what was signed, and talks to us.

    `schema`: the newest database that the program which runs now can read.
    """
    said = _asked_version(new)
    if said.text("version", 32) != upgrade.version:
        raise TrialFailed(f"it says it is {said.text('version', 32)}, signed is {upgrade.version}")
    oldest, newest = said.whole("oldest_wire", 0, 10**6), said.whole("wire", 0, 10**6)
    if oldest > WIRE or newest < OLDEST_WIRE:
        raise TrialFailed(f"it speaks wire {oldest} to {newest}, we speak {OLDEST_WIRE} to {WIRE}")
    its_schema = said.whole("schema", 0, 10**6)
    if its_schema > schema and not upgrade.one_way:
        raise TrialFailed(
            f"it would change the database from version {schema} to {its_schema}, and there would"
            " be no way back; sign it with --one-way if that is meant"
        )
    _try_to_talk(home, new, upgrade)


def talk(new: Path, place: Home, *first: JsonObject) -> tuple[Fields, Fields]:
    """Its greeting and its status, from `serve --stdio` on this home; `first` is asked before.

    A status changes nothing: without `first`, this may be asked of the real home.
    """
    asked: list[JsonObject] = [*first, {"id": 2, "do": "status"}]
    argv = [*program.start_words(new), "serve", "--stdio"]
    raw = _run(argv, place, b"".join(map(line_of, asked)))
    said = [decode_object(line) for line in raw.splitlines()[: len(asked) + 1]]
    if len(said) <= len(asked) or not all(one.get("ok") for one in said[1:]):
        raise TrialFailed(f"it answered: {safe_text(raw.decode('utf-8', 'replace'), SAID_MAX)}")
    return Fields(said[0], "greeting"), Fields(said[-1]).inside("result")


def _asked_version(new: Path) -> Fields:
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=new.parent) as place:
        raw = _run([*program.start_words(new), "version", "--json"], Home(Path(place)), b"")
    try:
        return Fields(decode_object(raw)).inside("data")
    except BadInput as error:
        raise TrialFailed(f"its answer to version cannot be read: {error}") from error


def _try_to_talk(home: Home, new: Path, upgrade: Upgrade) -> None:
    """A whole node of its own for a moment, with our settings: they have to be readable, too."""
    place = Home(Path(tempfile.mkdtemp(prefix=SCRATCH, dir=new.parent)))
    try:
        settings = read_untrusted(str(home.config), SETTINGS_MAX)
        place.config.write_bytes(settings or b"")
        failpoint("upgrade.in_trial")
        greeting, status = talk(new, place, _HELLO)
        if greeting.text("agent-node", 32) != upgrade.version or not status.has("node"):
            raise TrialFailed(f"its serve greets as {greeting.text('agent-node', 32)}")
    except BadInput as error:
        raise TrialFailed(f"what it says cannot be read: {error}") from error
    finally:
        shutil.rmtree(place.root, ignore_errors=True)


def _run(argv: Sequence[str], place: Home, said: bytes) -> bytes:
    """What it writes, bounded in time and length; not ending well is `TrialFailed`."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    with tempfile.TemporaryFile(dir=place.root) as out, tempfile.TemporaryFile() as err:
        try:
            done = subprocess.run(
                argv, input=said, stdout=out, stderr=err, cwd="/", check=False,
                env={**kept, "AGENT_NODE_HOME": str(place.root)}, timeout=TRIAL_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise TrialFailed(f"{argv[-1]}: no end within {TRIAL_S:g} s") from error
        except OSError as error:
            raise TrialFailed(f"{sys.executable} cannot start it: {error}") from error
        out.seek(0)
        answer = out.read(LINE_MAX)
        err.seek(max(err.seek(0, os.SEEK_END) - SAID_MAX, 0))
        last = err.read(SAID_MAX).decode("utf-8", "replace").strip()
    if done.returncode != 0:
        why = safe_text(last, SAID_MAX)
        raise TrialFailed(f"{argv[4]} ended with {done.returncode}: {why}")
    return answer
