"""The program that the demo's agents run: it works, fails or runs away as its task's body says."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path


def main(notes: str, agent_node: str) -> int:
    """Does one task; what really happened goes to `notes`, which the node does not know of."""
    task = json.load(sys.stdin)
    work = json.loads(task["body"])
    attempt = int(os.environ["AGENT_TASK_ATTEMPT"])
    with Path(notes, f"{task['uid']}.lock").open("a") as lock:
        note(notes, task["uid"], attempt, "began" if is_alone(lock.fileno()) else "began_twice")
        if "child" in work:
            child = subprocess.Popen(["sleep", "600"], start_new_session=True)
            note(notes, task["uid"], attempt, "child", child.pid)
        labour(work, agent_node)
        if attempt <= work.get("fails", 0):
            note(notes, task["uid"], attempt, "failed")
            return 1
        answer = json.dumps({"output": f"worked {work['seconds']} s", "cost_usd": "0.01"})
        Path(os.environ["AGENT_ANSWER"]).write_text(answer, encoding="utf-8")
        note(notes, task["uid"], attempt, "done")
    return 0


def is_alone(lock: int) -> bool:
    """False when another program works on the same task at this moment."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def labour(work: dict[str, float], agent_node: str) -> None:
    """Takes its time in steps, and tells the node between them when it is asked to."""
    steps = int(work.get("steps", 1))
    for step in range(1, steps + 1):
        time.sleep(work["seconds"] / steps)
        if steps > 1:
            tell(agent_node, "progress", f"{step} of {steps} parts")
    for number in range(int(work.get("spawns", 0))):
        tell(agent_node, "spawn", f"look into finding {number + 1}", "--body", '{"seconds": 0.4}')


def tell(agent_node: str, *words: str) -> None:
    """Speaks to the node as any program may; `agent-node` finds the task by its environment."""
    subprocess.run([sys.executable, "-I", "-S", agent_node, *words], check=True,
                   stdout=subprocess.DEVNULL, timeout=30)


def note(notes: str, uid: str, attempt: int, what: str, pid: int | None = None) -> None:
    """One line in one write, so that programs side by side do not mix theirs."""
    line = json.dumps({"uid": uid, "attempt": attempt, "what": what, "pid": pid or os.getpid()})
    with Path(notes, "ledger").open("a", encoding="utf-8") as ledger:
        ledger.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
