"""Starts a fleet in a folder: fleet.yaml, its schema, the hub's folder and its key pair."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from .config import NAME, STATE, fleet_schema, state_of
from .durable import write_durably
from .errors import CannotInit, StateBroken

SCHEMA = "fleet.schema.json"


@dataclass(frozen=True)
class Created:
    """What `arc init` made; with `dry_run`, what it would make."""

    folder: Path
    file: Path
    state: Path
    made: tuple[str, ...]  # paths beneath `folder`; empty: all of it was there already
    public_key: str  # the line for authorized_keys; empty after a dry run without a key
    fingerprint: str
    dry_run: bool = False


def init(folder: Path, *, dry_run: bool = False) -> Created:
    """Make what is missing, and never touch what is there; a second run changes nothing.

    fleet.yaml comes last and in one step, so a folder that has one is whole. A folder that others
    may write is refused: who can change fleet.yaml decides where the hub's key logs in.
    """
    from .keys import private_key_path

    folder = Path(os.path.abspath(folder))
    check_private(folder)
    file = folder / NAME
    state = state_of(file) if file.exists() else folder / STATE
    missing = [path for path in (state, state / ".gitignore", state / SCHEMA,
                                 private_key_path(state), file) if not path.exists()]  # fmt: skip
    made = tuple(os.path.relpath(path, folder) for path in missing)
    if dry_run:
        return Created(folder, file, state, made, "", "", dry_run=True)
    try:
        public = _make(folder, file, state, missing)
    except OSError as error:
        raise CannotInit(f"{error.filename or folder}: cannot be made: {error.strerror}") from error
    return Created(folder, file, state, made, public, fingerprint_of(public))


def _make(folder: Path, file: Path, state: Path, missing: list[Path]) -> str:
    from .keys import make_key_pair

    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    if stat.S_IMODE(state.stat().st_mode) & 0o077:
        raise StateBroken(f"{state}: others can reach it", hint=f"chmod 700 {state}")
    if state / ".gitignore" in missing:  # keys and tasks never belong into a repository
        write_durably(state / ".gitignore", "*\n", point="init", new=True)
    if state / SCHEMA in missing:
        write_durably(state / SCHEMA, render_schema(), point="init", new=True)
    public = make_key_pair(state, comment=f"arc hub of {folder.name}")
    if file in missing:
        write_durably(file, FLEET_YAML, point="init", mode=0o644, new=True)
    return public


def render_schema() -> str:
    """The schema of fleet.yaml as a file."""
    return json.dumps(fleet_schema(), indent=1, ensure_ascii=False) + "\n"


def fingerprint_of(public: str) -> str:
    """`SHA256:…` of a public key's line, as ssh-keygen shows it."""
    blob = base64.b64decode(public.split()[1])
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode("ascii")
    return f"SHA256:{digest.rstrip('=')}"


def check_private(folder: Path) -> None:
    """Return only when nobody but this user and root can put another file in the place of ours."""
    here = Path(os.path.realpath(folder))
    inside = here.exists()
    for place in (here, *here.parents):
        if not place.exists():
            continue
        try:
            found = place.stat()
        except OSError as error:
            raise CannotInit(f"{place}: cannot be looked at: {error.strerror}") from error
        if not stat.S_ISDIR(found.st_mode):
            raise CannotInit(f"{place}: is not a folder")
        if found.st_uid not in {os.geteuid(), 0}:
            raise CannotInit(f"{place}: belongs to user {found.st_uid}, who could change it all",
                             hint="choose a folder of your own: arc init DIR")  # fmt: skip
        # In a sticky folder such as /tmp others can add files, but not replace ours.
        if found.st_mode & stat.S_IWOTH and (not found.st_mode & stat.S_ISVTX or place == here):
            raise CannotInit(f"{place}: everybody may write here",
                             hint=f"choose another folder, or: chmod o-w {place}" if inside
                             else "choose a folder of your own: arc init DIR")  # fmt: skip


FLEET_YAML = """\
# yaml-language-server: $schema=./.arc/fleet.schema.json
# The fleet. What stands in comments is the default; take the # away to change it.
# `arc config check` says what is wrong with this file, `arc explain KEY` what a key is for.
# The running hub follows changes by itself, and keeps the last good file when this one is not.

# Machines, one line each; `arc nodes add USER@HOST --name NAME` sets one up and writes its line:
#   - {name: spark, host: spark.lan, port: 22, user: agent, owns: [protocol], also: [research]}
#   - {name: arc, local: true}        a node on this machine; its queue is in ~/.agent-node, or:
#   - {name: loom, local: true, home: /srv/loom, never: [protocol]}
# Of the domains below, `owns` names a machine's own work, `also` what it may take beside, and
# `never` what it is not given, whatever else speaks for it.
nodes: []

# version: 1
# fleet: arc0
# hub: {name: arc, state: .arc}

# By which rules work is moved: arc0 (every few minutes, by thresholds) or swift (at once, by gain).
# policy: arc0

# From the hub's inbox to the nodes.
# router: {every: 30m, soft: 12, hard: 20, batch: 10, keep: [], fallback_after: 2}

# Which nodes are well.
# health: {every: 5m, stale_after: 10m, running_over: 1h, stalled_after: 30m, disk_over: 80%,
#          failing: 50% of 4 in 1h, streak: 5, clock_off: 30s}

# From busy nodes to idle ones. P1 is the most urgent.
# rebalance: {every: 5m, on_idle: false, idle_min: 2m, busy_over: 5, steal_from: P5,
#             anyone_from: P8, per_node: 3, per_cycle: 10}

# Kinds of work, and how they are recognised: by skills, by how a subject begins, by its words.
# domains:
#   protocol: {skills: [clarity]}
#   research: {skills: [arc-research], prefix: ["Research:"], words: [paper]}

# Work that comes by itself: at times, for files that are new or changed, and when much fails.
# schedules:
#   audit: {cron: "0 9 * * 1", zone: Europe/Berlin, task: {subject: audit, skills: [clarity]}}
# watch_files:
#   orders: {path: drop/*.json, task: {subject: take the order in, domain: protocol}}
# watch:
#   papers-fail: {when: failing 40% of 5 in 1d, domain: research, task: {subject: why papers fail}}

# Work that signed messages from elsewhere ask for, taken by the page (arc up --web).
# webhooks:
#   ci: {secret_file: .arc/ci.secret, key: "{build}", task: {subject: "look at build {build}"}}

# The page: where it listens, and whether people may act from it.
# web: {host: 127.0.0.1, port: 8420, actions: false}

# What the whole fleet may spend a day (UTC), in USD.
# budget: {per_day: "20.00", urgent_overdraft: false, assume_usd: "0.50"}

# Who is told of what needs a person: by a command, a webhook or a mail.
# notify:
#   pager: {on: [dead_letter, node_silent], command: [/usr/local/bin/page, ops], at_most: 10m}
"""
