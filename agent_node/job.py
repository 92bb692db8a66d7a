"""Defines what a shim is told to run, and the names of the files it and the daemon share."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

# NamedTuples, not dataclasses, wherever the zygote looks: `dataclasses` would drag in `inspect`,
# and every page the zygote owns is paid for again at each fork.
TASK_JSON = "task.json"
CONTEXT_JSON = "context.json"  # what other tasks left for this one
STDIN = "stdin"  # what goes on stdin when that is not task.json
STDOUT_LOG = "stdout.log"
STDERR_LOG = "stderr.log"
ANSWER_JSON = "answer.json"
VERDICT_JSON = "verdict.json"
SHIM_LOCK = "shim.lock"
TREE_LOCK = "tree.lock"
SHIM_JSON = "shim.json"
HEARTBEAT = "heartbeat"
INPUTS = "inputs"  # what an attempt is given of other tasks' files
WORK = "work"  # where the program of another user starts, in the folder made for it
TASKS_SOCKET = "tasks.sock"  # the daemon's, in the folder of which a shim is handed a descriptor
TASK_SOCK = "node.sock"  # beside it: where that program speaks to the node

SOCKET_NAME = "AGENT_NODE_SOCKET"  # the variable that tells another user's program of it

VERDICT_SCHEMA = "verdict/1"
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# To a shim, the job behind it, with two descriptors: attempt's folder, shim.lock; and for another
# user a third, the folder of the socket at which the daemon hears tasks. A job that makes the
# message too long comes as a nameless file instead, with a descriptor before the others.
RUN_ATTEMPT = b"attempt/2"
# From a shim, on the line that came with its report: its attempt is over, and it may be given
# another one there, with the same words.
OVER = b"over/1"
ASK_MAX = 16 * 1024  # bytes of the message
REPLY_MAX = 4096  # bytes of a shim's answer, which comes with its pidfd

OUTPUT_CAP = 8 * 1024 * 1024
GRACE_S = 10.0
BEAT_S = 30.0


class Job(NamedTuple):
    """One attempt, with no choice left to the shim.

    `max_s` None: no deadline was set. `cwd` empty: the attempt's own folder, which another user
    can only reach by the descriptor that comes along.
    """

    uid: str
    n: int
    token: str
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    stdin: str = TASK_JSON
    max_s: float | None = None
    grace_s: float = GRACE_S
    output_cap: int = OUTPUT_CAP
    beat_s: float = BEAT_S
    shared: bool = False  # the shim runs as another user, whose files the node has to read
    mute: bool = False  # its program cannot speak to the node, as a validator need not
    place: str = ""  # that user's own folder for this attempt, which the shim makes; "": none


def encode_job(job: Job) -> bytes:
    """ASCII JSON, so that odd bytes of the environment (lone surrogates) arrive as they left."""
    return json.dumps(job._asdict(), separators=(",", ":")).encode("ascii")


def decode_job(raw: bytes) -> Job:
    """The same job again; only ever read from our own daemon, so a fault here is ours."""
    fields = json.loads(raw)
    fields["argv"] = tuple(fields["argv"])
    return Job(**fields)
