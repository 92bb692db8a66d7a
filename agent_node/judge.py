"""Judges an output by a pattern or a schema, in a process of its own that cannot take long.

The text of this module is what that process is given to run: it runs as whoever ran the program,
who may be unable to read anything of the node's. So it imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
from importlib import import_module
from pkgutil import get_data
from typing import NoReturn

CPU_S = 5
MEMORY = 1024 * 1024 * 1024
REASON_MAX = 500
# Exit codes beyond 0, which is passed: none of them is a fault of Python's.
REJECTED, NO_RULE, TOO_LONG = 10, 11, 12
INTERPRETER = "/proc/self/exe"  # the supervisor's own, which its user could start, wherever it lies


def judge_command() -> tuple[str, ...]:
    """How to start one: the case on stdin as JSON, the reason on stdout, the verdict by exit."""
    source = get_data(__name__.partition(".")[0], "judge.py") or b""  # of a folder or a zipapp
    return (INTERPRETER, "-I", "-S", "-c", f"{source.decode()}\nmain()\n")


def main() -> NoReturn:
    """Exit 0: it passes. Every other verdict has a code that no fault of Python's shares.

    A pattern may backtrack for ever, here or inside a schema: the kernel counts the seconds.
    """
    signal.signal(signal.SIGXCPU, lambda number, frame: os._exit(TOO_LONG))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 2))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        case: dict[str, object] = json.load(sys.stdin)
        rule = case["validate"]
        assert isinstance(rule, dict), "the node gives every judge a rule"
        if rule["kind"] == "regex":
            _by_pattern(str(rule["pattern"]), case["output"])
        _by_schema(rule["schema"], case["output"], case["extras_path"])
    except (MemoryError, RecursionError):
        os._exit(TOO_LONG)


def _by_pattern(pattern: str, output: object) -> NoReturn:
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    try:
        found = re.search(pattern, text)
    except (re.error, OverflowError) as error:
        _end(NO_RULE, f"{pattern!r} is no regular expression: {error}")
    _end(0 if found else REJECTED, f"the output does not match {pattern!r}")


def _by_schema(schema: object, output: object, extras_path: object) -> NoReturn:
    if isinstance(extras_path, str):
        sys.path.append(extras_path)
    try:
        jsonschema = import_module("jsonschema")  # nobody's but this process, and seldom there
    except ImportError as error:
        _end(NO_RULE, f"jsonschema cannot be imported from extras_path: {error}")
    kind = jsonschema.validators.validator_for(schema)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        _end(NO_RULE, f"its schema is no schema: {error.message}")
    fault = jsonschema.exceptions.best_match(kind(schema).iter_errors(output))
    if fault is None:
        _end(0, "")
    place = "/".join(map(str, fault.absolute_path)) or "the output"
    _end(REJECTED, f"{place}: {fault.message}")


def _end(code: int, reason: str) -> NoReturn:
    """The reason is one line: what stands in it came from the task."""
    print(" ".join(reason.split())[:REASON_MAX])
    sys.stdout.flush()
    os._exit(code)
