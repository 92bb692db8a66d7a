"""The program that the demo's nodes run: it works a moment, and writes down that it did."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
import time
from pathlib import Path

USUAL_S = 0.5  # for tasks of people, whose body is no word of the demo
AT_MOST_S = 60.0


def main(evidence: str) -> int:
    """Do one task. What really happens goes to `evidence`, of which no queue knows."""
    task = json.load(sys.stdin)
    uid, node = str(task["uid"]), os.environ["AGENT_NAME"]
    with Path(evidence, "locks", uid).open("a") as lock:
        note(evidence, node, uid, "begin", alone=is_alone(lock.fileno()))
        time.sleep(seconds_of(task["body"]))
        digest = hashlib.sha256(str(task["subject"]).encode()).hexdigest()
        answer = json.dumps({"output": f"{node} did it: {digest[:12]}", "cost_usd": "0.01"})
        Path(os.environ["AGENT_ANSWER"]).write_text(answer, encoding="utf-8")
        note(evidence, node, uid, "end", alone=True)
    return 0


def is_alone(lock: int) -> bool:
    """False when another program, on any node, works on the same task at this moment."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def seconds_of(body: str) -> float:
    """How long the task takes, as its body says; a body of people says nothing."""
    try:
        said = json.loads(body)
    except ValueError:
        return USUAL_S
    seconds = said.get("seconds") if isinstance(said, dict) else None
    return min(max(float(seconds), 0.0), AT_MOST_S) if isinstance(seconds, int | float) else USUAL_S


def note(evidence: str, node: str, uid: str, what: str, *, alone: bool) -> None:
    """One line, in one write, on the disk before the task goes on."""
    line = {
        "uid": uid, "attempt": int(os.environ["AGENT_TASK_ATTEMPT"]), "node": node,
        "pid": os.getpid(), "what": what, "at": time.clock_gettime(time.CLOCK_BOOTTIME),
        "alone": alone,
    }  # fmt: skip
    path = Path(evidence, f"{node}.jsonl")
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
        os.fsync(file)
    finally:
        os.close(file)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
