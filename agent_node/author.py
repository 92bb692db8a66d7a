"""Says who gives an order: the running task's agent, or the person at the keyboard."""

from __future__ import annotations

import os
from collections.abc import Mapping


def author(environ: Mapping[str, str]) -> str:
    """`agent:NAME` inside a task, else `human:NAME`, by the environment or by the user's number."""
    if environ.get("AGENT_TASK_UID") and environ.get("AGENT_NAME"):
        return f"agent:{environ['AGENT_NAME']}"
    name = environ.get("USER") or environ.get("LOGNAME") or _login()
    return f"human:{name.encode('utf-8', 'replace').decode('utf-8')[:100]}"


def _login() -> str:
    """The name of this process's user; its number where nobody gave it a name."""
    import pwd  # only where no environment says it

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
