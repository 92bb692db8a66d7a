"""Puts a node into fleet.yaml or takes it out, comments kept, and lets a running hub follow."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from agent_node.text import safe_text
from arc.config import read_text
from arc.config_faults import near
from arc.editing import add_node
from arc.errors import BadSettings, WrongUse
from arc.links.ssh import where
from arc.settings import FleetSettings, NodeEntry

from .steps import Steps
from .wanted import Wanted

FOLLOW_S = 15.0  # a hub looks at fleet.yaml every two seconds; it may be in the middle of a cycle
LOOK_S = 0.3
Known = Callable[[], bool | None]  # whether the hub has the node; None: no hub runs


def check_entry(settings: FleetSettings, wanted: Wanted) -> NodeEntry | None:
    """The node's entry that is there already; None: none is, and ours may be written.

    Nothing is written yet: what fleet.yaml would not take is refused before anything else is done.
    """
    there = settings.node(wanted.name)
    check_domains(settings, wanted)
    if there is None:
        add_node(settings.file, wanted.written, dry_run=True)
        return None
    if there.local or (there.host, there.port) != (wanted.host, wanted.port) or (
        there.user not in {None, wanted.user}
    ):
        at = "this machine" if there.local else where(there)
        raise WrongUse(f"{wanted.name}: is at {at} in {settings.file.name}, not at "
                       f"{where(wanted.entry)}",
                       hint=f"another name; or arc nodes edit {wanted.name} --host …")  # fmt: skip
    said = {"owns": wanted.owns, "also": wanted.also, "never": wanted.never}
    if any(value and value != getattr(there, key) for key, value in said.items()):
        raise WrongUse(f"{wanted.name}: is in {settings.file.name} already, for other work",
                       hint=f"change it with: arc nodes edit {wanted.name}; then again, without "
                       "--owns, --also, --never")  # fmt: skip
    return there


def check_domains(settings: FleetSettings, wanted: Wanted) -> None:
    """Return only when the file has every domain that is named, as it stands there now."""
    known = [one.name for one in settings.domains]
    named = {"--owns": wanted.owns, "--also": wanted.also, "--never": wanted.never}
    for option, domains in named.items():
        for domain in domains:
            if domain not in known:
                raise _no_domain(settings, option, domain, known)


def _no_domain(settings: FleetSettings, option: str, domain: str, known: list[str]) -> BadSettings:
    file = settings.file
    lines = read_text(file).splitlines()
    at = next((n for n, line in enumerate(lines, 1) if re.match(r"(?:#\s*)?domains:", line)), 0)
    error = BadSettings(f"{option} {safe_text(domain, 60)}: {file} has no such domain"
                        f"{near(domain, known)}", where=f"{file}:{at}" if at else str(file))
    error.code, add = "ARC-CFG-DOMAIN", f"{safe_text(domain, 60)}: {{skills: [ops]}}"
    if known:
        error.hint = f"there are: {', '.join(known)}; or add under domains: (line {at}) {add}"
    elif at:
        error.hint = (f"it has none yet: in line {at} take the # away from domains:, and put under "
                      f"it, indented: {add}; or leave {option} out")  # fmt: skip
    else:
        error.hint = f"it has none yet: add domains: {{{add}}}; or leave {option} out"
    return error


def write_entry(
    settings: FleetSettings, wanted: Wanted, there: NodeEntry | None, steps: Steps
) -> None:
    """The node's line in fleet.yaml."""
    with steps.step("fleet.yaml") as step:
        file = settings.file
        if there is not None:
            step.text = f"{wanted.name} is in {file} already"
            return
        edited = add_node(file, wanted.written, dry_run=steps.dry_run)
        added = [line[1:].strip() for line in edited.diff().splitlines()
                 if line.startswith("+") and f"name: {wanted.name}" in line]  # fmt: skip
        if steps.dry_run:
            step.text = f"would add: {' '.join(added)}"
            return
        line = line_of(edited.before, edited.after)
        step.text = f"added to {file}, line {line}: {' '.join(added)}"
        step.changed = f"{wanted.name} is in {file.name}"


def line_of(before: str, after: str) -> int:
    """The number of the first line that is other than it was."""
    old, new = before.splitlines(), after.splitlines()
    same = next((at for at, (one, two) in enumerate(zip(old, new, strict=False)) if one != two),
                min(len(old), len(new)))  # fmt: skip
    return same + 1


def follow(steps: Steps, name: str, knows: Known, *, wanted: bool) -> bool:
    """Wait until the hub that runs has read fleet.yaml again; without one, say what to type.

    False: it runs, and goes by the fleet.yaml of before as yet; or this was a dry run.
    """
    with steps.step("hub") as step:
        until = time.monotonic() + FOLLOW_S
        if steps.dry_run:
            step.text = "a hub that runs would follow fleet.yaml within seconds"
            return False
        while (known := knows()) is not wanted:
            if known is None:
                step.text = "none runs; start it with: arc up"
                return True
            if time.monotonic() > until:
                step.text = "has not followed yet; it does by itself: arc status"
                return False
            time.sleep(LOOK_S)
        step.text = f"runs, and {'works with' if wanted else 'knows no longer'} {name}"
        return True
