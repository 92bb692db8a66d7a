"""Turns where work comes from and whom to tell, as fleet.yaml says it, into settings and back."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from agent_node.strict import JsonObject

from .config import beside
from .config_model import FleetFile
from .config_sources import HAPPENINGS, NotifySection
from .durations import render_duration
from .settings import (
    FilesEntry,
    FleetSettings,
    HookEntry,
    NotifyEntry,
    ScheduleEntry,
    WatchEntry,
    WebEntry,
)


def schedules_of(file: FleetFile) -> tuple[ScheduleEntry, ...]:
    """Work that is due at times."""
    return tuple(
        ScheduleEntry(
            name, said.cron, said.zone, _document(said.task), _document(said.graph),
            catch_up=said.catch_up == "one",
        )
        for name, said in file.schedules.items()
    )  # fmt: skip


def files_of(file: FleetFile, path: Path) -> tuple[FilesEntry, ...]:
    """Work that changed files ask for; their paths start at the folder of fleet.yaml."""
    return tuple(
        FilesEntry(name, str(beside(path, said.path)), _document(said.task) or {})
        for name, said in file.watch_files.items()
    )


def watch_of(file: FleetFile) -> tuple[WatchEntry, ...]:
    """Work that failures ask for."""
    return tuple(
        WatchEntry(name, said.when, _document(said.task) or {}, said.domain, said.node)
        for name, said in file.watch.items()
    )


def notify_of(file: FleetFile, path: Path) -> tuple[NotifyEntry, ...]:
    """Whom to tell, and how."""
    return tuple(_notify(name, said, path) for name, said in file.notify.items())


def _notify(name: str, said: NotifySection, path: Path) -> NotifyEntry:
    web, mail = said.webhook, said.email
    secret = web.secret_file if web else None
    return NotifyEntry(
        name, tuple(said.on) or HAPPENINGS, said.command or (), web.url if web else "",
        beside(path, secret) if secret else None, mail.to if mail else "",
        mail.sender if mail else "", mail.host if mail else "", mail.port if mail else 25,
        said.at_most, said.attempts,
    )  # fmt: skip


def hooks_of(file: FleetFile, path: Path) -> tuple[HookEntry, ...]:
    """Work that signed messages ask for."""
    return tuple(
        HookEntry(name, beside(path, said.secret_file), _document(said.task) or {},
                  said.key or "", said.per_minute)
        for name, said in file.webhooks.items()
    )  # fmt: skip


def web_of(file: FleetFile, path: Path) -> WebEntry:
    """The page."""
    said = file.web
    return WebEntry(
        said.host, said.port, beside(path, said.socket) if said.socket else None,
        tuple(said.names), said.actions, beside(path, said.token_file) if said.token_file else None,
    )  # fmt: skip


def _document(said: dict[str, object] | None) -> JsonObject | None:
    """YAML's plain values are JSON's."""
    return cast("JsonObject | None", said)


def work_words(settings: FleetSettings) -> JsonObject:
    """The same sections in the words of fleet.yaml; those that say nothing are left out."""
    said: JsonObject = {
        "schedules": {one.name: _schedule_words(one) for one in settings.schedules},
        "watch_files": {one.name: {"path": one.path, "task": one.task}
                        for one in settings.watch_files},
        "watch": {one.name: _only({"when": one.when, "domain": one.domain, "node": one.node,
                                   "task": one.task}) for one in settings.watch},
        "notify": {one.name: _notify_words(one) for one in settings.notify},
        "webhooks": {one.name: _only({
            "secret_file": str(one.secret_file), "task": one.task, "key": one.key or None,
            "per_minute": one.per_minute}) for one in settings.webhooks},
        "web": _web_words(settings.web),
        "budget": _budget_words(settings),
    }  # fmt: skip
    return {name: section for name, section in said.items() if section}


def _budget_words(settings: FleetSettings) -> JsonObject:
    said: JsonObject = {"per_day": settings.budget_per_day, "assume_usd": settings.assume_usd}
    if set(said.values()) == {None} and not settings.urgent_overdraft:
        return {}
    return _only({**said, "urgent_overdraft": settings.urgent_overdraft})


def _web_words(one: WebEntry) -> JsonObject:
    if one == WebEntry():
        return {}
    return _only({
        "host": one.host, "port": one.port, "socket": str(one.socket) if one.socket else None,
        "names": list(one.names), "actions": one.actions,
        "token_file": str(one.token_file) if one.token_file else None,
    })  # fmt: skip


def _schedule_words(one: ScheduleEntry) -> JsonObject:
    return _only({"cron": one.cron, "zone": one.zone, "task": one.task, "graph": one.graph,
                  "catch_up": "one" if one.catch_up else "none"})  # fmt: skip


def _notify_words(one: NotifyEntry) -> JsonObject:
    web: JsonObject = _only({"url": one.url or None,
                             "secret_file": str(one.secret_file) if one.secret_file else None})
    mail: JsonObject = {"to": one.mail_to, "from": one.mail_from, "host": one.mail_host,
                        "port": one.mail_port}  # fmt: skip
    return _only({
        "on": list(one.on), "command": list(one.command) or None, "webhook": web or None,
        "email": mail if one.mail_to else None, "at_most": render_duration(one.at_most_s),
        "attempts": one.attempts,
    })  # fmt: skip


def _only(said: JsonObject) -> JsonObject:
    return {name: value for name, value in said.items() if value is not None}
