"""Renders which signed messages bring work in, and what came of one."""

from __future__ import annotations

import json
from shlex import quote

from agent_node.strict import JsonObject

from .columns import inside, objects, rows, said
from .look import Look

_PROOF = ('import hashlib, hmac, sys; print(hmac.new(open(sys.argv[1], "rb").read().strip(), '
          "sys.stdin.buffer.read(), hashlib.sha256).hexdigest())")  # fmt: skip


def render_webhooks(data: JsonObject, look: Look) -> str:
    """A line a webhook, and what it took last."""
    hooks = objects(data, "webhooks")
    if not hooks:
        return "no webhook brings work in: fleet.yaml has no webhooks:"
    lines = [(said(one.get("name")), said(one.get("path")), said(one.get("taken_24h")),
              said(one.get("last_at")), said(one.get("outcome")), said(one.get("uid")))
             for one in hooks]  # fmt: skip
    head = ("NAME", "POST TO", "IN 24 H", "LAST", "IT WAS", "TASK")
    return rows(head, lines, look)


def render_webhook(data: JsonObject, look: Look) -> str:
    """One webhook whole, with a request that it would take."""
    most = f"{said(data.get('per_minute'))} a minute at most"
    lines = [f"{said(data.get('name'))}: POST {said(data.get('path'))}, {most}"]
    lines.append(f"  key {said(data.get('key'), 'of the sender, else of the message itself')}")
    lines += [f"  task {said(name)}: {said(_short(value))}"
              for name, value in inside(data, "task").items()]  # fmt: skip
    lines += [f"  took {said(one.get('at'))} {said(one.get('outcome'))} {said(one.get('uid'))}"
              for one in objects(data, "taken")]  # fmt: skip
    return "\n".join([*lines, "", "  a message that it takes, from a shell:", *_example(data)])


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _example(data: JsonObject) -> list[str]:
    """What its sender does; the secret is read from its file and stands nowhere."""
    socket, name = data.get("socket"), said(data.get("name"))
    where = f"--unix-socket {said(socket)} http://localhost" if socket else (
        f"http://{said(data.get('host'))}:{said(data.get('port'))}")
    return [
        f"    body={quote(json.dumps(inside(data, 'example')))}; at=$(date +%s)",
        "    proof=$(printf '%s.%s' \"$at\" \"$body\" | python3 -c \\",
        f"      '{_PROOF}' {said(data.get('secret_file'))})",
        f"    curl {where}/webhooks/{name} -H 'Content-Type: application/json' \\",
        '      -H "X-Arc-Timestamp: $at" -H "X-Arc-Signature: sha256=$proof" -d "$body"',
        "  X-Arc-Delivery may name the delivery: sent again under the same name, it is added once",
    ]


def render_taken(data: JsonObject, look: Look) -> str:
    """What came of one message."""
    outcome = said(data.get("outcome"))
    would = "would be " if data.get("dry_run") and outcome == "added" else ""
    word = "is there already:" if outcome == "exists" else outcome
    what = f"{would}{word} {said(data.get('uid'))}  key {said(data.get('key'))}"
    lines = [f"{said(data.get('name'))}: {what}"]
    lines += [f"  task {said(name)}: {said(_short(value))}"
              for name, value in inside(data, "task").items()]  # fmt: skip
    return "\n".join(lines)
