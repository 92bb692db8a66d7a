"""Stands in for agent-node and means harm: `hostile.py MODE NODE` greets, and never ends well."""

from __future__ import annotations

import json
import os
import sys
import time

LIFE = "01J0000000000000000000000A"
CHUNK = b"x" * 65_536


def main(mode: str, node: str) -> None:
    greeting = {"agent-node": "0.1.0", "wire": 1, "node": node, "incarnation": LIFE,
                "generation": 1}  # fmt: skip
    os.write(1, json.dumps(greeting).encode() + b"\n")
    while mode == "endless":  # one line that never ends
        os.write(1, CHUNK)
    while mode == "stderr":
        os.write(2, CHUNK)
    while mode == "loris":  # a byte now and then, never an answer
        time.sleep(0.5)
        os.write(1, b" ")
    while mode == "mute":  # all is well, but how it is nobody hears
        asked = json.loads(sys.stdin.readline() or "{}")
        if not asked:
            return
        if asked["do"] != "status":
            answer = {"id": asked["id"], "ok": True, "result": hello(node)}
            os.write(1, json.dumps(answer).encode() + b"\n")


def hello(node: str) -> dict[str, object]:
    """What a node that obeys everybody says; other requests may have it, too."""
    return {"wire": 1, "node": node, "incarnation": LIFE, "generation": 1, "term": 1,
            "state": "active", "waits_for_hub": False, "version": "0.1.0",
            "at": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()), "events": []}  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
