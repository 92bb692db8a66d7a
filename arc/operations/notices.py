"""Lists who is told of what, and how each receiver fares; sends one a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.decisions.notices import document_of
from arc.errors import NotFound
from arc.settings import NotifyEntry

from . import Told

if TYPE_CHECKING:
    from arc.hub import Hub

IN_VAIN = 3  # tries after which a person hears of it


async def notify_list(hub: Hub, args: JsonObject) -> Told:
    """Every receiver of fleet.yaml: of what it is told, how, and how it fares."""
    return Told({"receivers": [_line(hub, one) for one in hub.settings.notify],
                 "hub_running": hub.schedule is not None})  # fmt: skip


def _line(hub: Hub, entry: NotifyEntry) -> JsonObject:
    receiver = hub.journal.notices.known(entry.name)
    said: JsonObject = {
        "name": entry.name, "on": list[JsonValue](entry.on), "how": _how(entry),
        "to": _to(entry), "at_most_s": entry.at_most_s, "waiting": 0, "told_at": None,
        "tries": 0, "again_at": None, "problem": "",
    }  # fmt: skip
    if receiver is None:
        return said
    return {
        **said, "waiting": len(hub.journal.notices.waiting(receiver, entry.on)),
        "told_at": iso(receiver.told_at) if receiver.told_at else None, "tries": receiver.tries,
        "again_at": iso(receiver.again_at) if receiver.again_at else None,
        "problem": receiver.problem,
    }  # fmt: skip


def _how(entry: NotifyEntry) -> str:
    if entry.command:
        return "command"
    return "webhook" if entry.url else "email"


def _to(entry: NotifyEntry) -> str:
    """Whom, without what may be a secret: of an address only the machine, of a command its name."""
    if entry.command:
        return entry.command[0]
    return "/".join(entry.url.split("/")[:3]) if entry.url else entry.mail_to


async def notify_test(hub: Hub, args: JsonObject) -> Told:
    """One notice that says it is a test, now; `NotDelivered` where it was not taken."""
    asked = Fields(args)
    name, dry_run = asked.text("name", 64), asked.flag("dry_run")
    entry = next((one for one in hub.settings.notify if one.name == name), None)
    if entry is None:
        known = ", ".join(sorted(one.name for one in hub.settings.notify)) or "nobody"
        raise NotFound(f"notify has no receiver {name!r}", hint=f"fleet.yaml has: {known}")
    now = hub.clock.now()
    notice = document_of((), fleet=hub.settings.fleet, hub=hub.settings.hub, sink=name,
                         at=iso(now), test=True)  # fmt: skip
    if not dry_run:
        from arc.delivering import deliver  # HTTP and mail, for this alone

        await deliver(entry, notice, at_s=now.timestamp())
        hub.journal.runs.log("notice_tested", fields={
            "receiver": name, "by": asked.text_or("by", "human:unknown")})  # fmt: skip
    return Told({"name": name, "how": _how(entry), "to": _to(entry), "delivered": not dry_run,
                 "dry_run": dry_run, "notice": notice})  # fmt: skip


def untold(hub: Hub) -> list[JsonValue]:
    """Receivers that a person should look after, as `arc status` shows what needs one."""
    found: list[JsonValue] = []
    for entry in hub.settings.notify:
        receiver = hub.journal.notices.known(entry.name)
        if receiver is not None and (receiver.tries >= IN_VAIN or
                                     (receiver.problem and not receiver.tries)):  # fmt: skip
            found.append({"node": f"notify {entry.name}", "try": f"arc notify test {entry.name}",
                          "text": f"is told nothing: {receiver.problem}"})  # fmt: skip
    return found
