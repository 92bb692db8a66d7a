"""Takes the work that signed messages ask for, and lists what may be asked that way."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from agent_node.clock import iso, parse_iso
from agent_node.errors import BadInput
from agent_node.fields import check_size
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import FIELDS
from arc.adding import CONFLICTS, Wanted, add_work
from arc.decisions.webhooks import NoSuchField, example_for, key_of, task_of
from arc.errors import ArcError, NotFound
from arc.journal_deliveries import BEGUN, Delivery
from arc.settings import HookEntry

from . import Told

if TYPE_CHECKING:
    from arc.hub import Hub

REFUSED = 1
SHOWN = 10
SEAL = 64
PAYLOAD_MAX = 1024 * 1024  # as JSON; the page takes 256 KiB, in which a number may be written short


class NotTaken(ArcError):
    """A signed message asks for something that cannot be added; nothing was."""

    code = "ARC-WEBHOOK"
    exit_code = 2


class Replayed(ArcError):
    """This very message was taken before; nothing was added again."""

    code = "ARC-WEBHOOK-REPLAYED"
    exit_code = 7


class OtherContent(ArcError):
    """A task of this key is there already, and says something else; nothing was added."""

    code = "ARC-WEBHOOK-CONFLICT"
    exit_code = 7
    hint = "another occasion needs another key: `key` of the webhook in fleet.yaml makes it"


async def webhooks_list(hub: Hub, args: JsonObject) -> Told:
    """Every webhook of fleet.yaml, and what it took last."""
    return Told({"webhooks": [_line(hub, one) for one in hub.settings.webhooks],
                 "hub_running": hub.schedule is not None})  # fmt: skip


async def webhooks_show(hub: Hub, args: JsonObject) -> Told:
    """One webhook whole: the task it makes, and the newest messages that it took."""
    entry = _named(hub, Fields(args).text("name", 64))
    last: list[JsonValue] = [
        {"at": iso(one.at), "key": one.key, "uid": one.uid, "outcome": one.outcome}
        for one in hub.journal.deliveries.last(entry.name, SHOWN)
    ]  # fmt: skip
    web = hub.settings.web
    return Told({**_line(hub, entry), "task": entry.task, "example": example_of(entry),
                 "taken": last, "host": web.host, "port": web.port,
                 "socket": str(web.socket) if web.socket else None,
                 "hub_running": hub.schedule is not None})  # fmt: skip


def example_of(entry: HookEntry) -> JsonObject:
    """A message that this webhook takes."""
    return example_for(entry.task, entry.key, _fits)


def _fits(name: str, value: JsonValue) -> bool:
    try:
        FIELDS[name](value, name)
    except BadInput:
        return False
    return True


def _line(hub: Hub, entry: HookEntry) -> JsonObject:
    last = next(iter(hub.journal.deliveries.last(entry.name)), None)
    day = hub.clock.now() - timedelta(days=1)
    return {
        "name": entry.name, "path": f"/webhooks/{entry.name}", "key": entry.key or None,
        "per_minute": entry.per_minute, "secret_file": str(entry.secret_file),
        "taken_24h": hub.journal.deliveries.count(entry.name, day),
        "last_at": iso(last.at) if last else None, "uid": last.uid if last else None,
        "outcome": last.outcome if last else None,
    }  # fmt: skip


async def webhooks_take(hub: Hub, args: JsonObject) -> Told:
    """Add the task that one message asks for. Whoever asks has judged its signature.

    The same message again is `Replayed`; another one with the same key and the same content is
    `exists`. With `dry_run` nothing is added, and the task is shown.
    """
    asked = Fields(args)
    entry = _named(hub, asked.text("name", 64))
    seal, dry_run = asked.text("seal", SEAL), asked.flag("dry_run")
    before = hub.journal.deliveries.known(entry.name, seal)
    if before is not None and before.outcome != BEGUN:
        raise Replayed(f"{entry.name}: this message was taken at {iso(before.at)} as {before.uid}")
    # Where a hub died over it the first key counts: the sender's id of a delivery is not signed.
    wanted = _wanted(entry, asked, seal, begun=before.key if before else "")
    if before is None and not dry_run:
        begun = Delivery(entry.name, seal, hub.clock.now(), wanted.key, "", BEGUN)
        hub.journal.deliveries.take(begun)
    found = await add_work(hub, wanted, dry_run=dry_run)
    if found.rule in CONFLICTS:
        raise OtherContent(f"{entry.name}: {found.because}")
    if found.outcome == "refused":
        raise NotTaken(f"{entry.name}: refused by the hub's own queue: {found.because}")
    if not dry_run:
        _note(hub, Delivery(entry.name, seal, hub.clock.now(), wanted.key, found.uid,
                            found.outcome))  # fmt: skip
    said: JsonObject = {"name": entry.name, "uid": found.uid, "outcome": found.outcome,
                        "key": wanted.key, "dry_run": dry_run}  # fmt: skip
    # A task that is there already keeps its priority and whatever else may be set in it.
    there = found.outcome == "exists" and not dry_run
    return Told(said if there else {**said, "task": wanted.task})


def _note(hub: Hub, taken: Delivery) -> None:
    """After the task is in the queue: a hub that died in between finds it by the key it began."""
    hub.journal.deliveries.take(taken)
    if taken.outcome == "added":
        hub.journal.runs.log("work_added", task=taken.uid,
                             fields={"from": f"webhook:{taken.name}"})  # fmt: skip


def _wanted(entry: HookEntry, asked: Fields, seal: str, *, begun: str) -> Wanted:
    payload, at = cast("JsonObject", asked.take("payload", _message)), _moment(asked)
    origin = f"webhook:{entry.name}"
    try:
        task = task_of(entry.task, payload)
        key = key_of(entry.key, payload, delivery=asked.text_or("delivery", "", 200), seal=seal)
        for name, value in task.items():
            FIELDS[name](value, name)
    except (NoSuchField, BadInput) as error:
        raise NotTaken(f"{entry.name}: {error}",
                       hint=f"arc webhooks show {entry.name}") from error  # fmt: skip
    if begun:
        key = begun.removeprefix(f"{origin}:")
    return Wanted(f"{origin}:{key}", origin, at, key, task)


def _message(value: JsonValue, name: str) -> JsonValue:
    """What came is larger than what a task may keep of it: the template takes what it needs."""
    if not isinstance(value, dict):
        raise BadInput("an object belongs there", name)
    check_size(value, name, PAYLOAD_MAX)
    return value


def _moment(asked: Fields) -> datetime:
    return parse_iso(asked.moment("at"))


def _named(hub: Hub, name: str) -> HookEntry:
    for one in hub.settings.webhooks:
        if one.name == name:
            return one
    known = ", ".join(sorted(one.name for one in hub.settings.webhooks)) or "none"
    raise NotFound(f"no webhook is called {name!r}", hint=f"fleet.yaml has: {known}")
