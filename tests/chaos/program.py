"""What the tasks of the kill harness run: it writes down, outside every home, that it runs.

`python -I -S program.py FOLDER [alone]`. Each line goes to FOLDER/ledger in one synced write. As
long as the program or anything it started lives, FOLDER/UID.alive is locked: a second start of the
same task that meets the lock says `overlap`. `alone`: it leaves no child behind.
"""

from __future__ import annotations

import fcntl
import os
import random
import sys
import time


def main(folder: str, *how: str) -> None:
    uid, n = os.environ["AGENT_TASK_UID"], os.environ["AGENT_TASK_ATTEMPT"]
    home = os.path.basename(os.environ["AGENT_NODE_HOME"])
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_DSYNC
    ledger = os.open(f"{folder}/ledger", flags, 0o600)

    def say(word: str) -> None:
        with open("/proc/self/stat", encoding="ascii") as stat:
            ticks = stat.read().rpartition(")")[2].split()[19]
        boottime = time.clock_gettime(time.CLOCK_BOOTTIME)
        line = f"{word} {uid} {n} {home} {os.getpid()} {ticks} {boottime:.6f}\n"
        os.writev(ledger, [line.encode()])  # a call that no blow of crashpoints.py is meant for

    alive = os.open(f"{folder}/{uid}.alive", os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(alive, True)
    try:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("overlap")
    say("start")
    dice = random.Random()
    if dice.random() < 0.3 and "alone" not in how:
        leave_a_child_behind()
    # The work: mostly short; now and then so long that it outlives the daemon that started it.
    time.sleep(dice.random() * 0.15 if dice.random() < 0.8 else 0.4 + dice.random())
    say("end")


def leave_a_child_behind() -> None:
    """One that nobody waits for, in a session of its own: ending it is the shim's task."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
