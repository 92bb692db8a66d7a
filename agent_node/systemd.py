"""Writes the systemd user unit that keeps a node's daemon alive without ever killing its tasks."""

from __future__ import annotations

from collections.abc import Sequence


def render_unit(command: Sequence[str], *, home: str, stop_grace_s: int) -> str:
    """A unit for this command line and home; what it says is explained where it stands."""
    return _UNIT.format(
        command=" ".join(quoted(word.replace("$", "$$")) for word in command),
        home=quoted(f"AGENT_NODE_HOME={home}"),
        stop_s=stop_grace_s + 15,
    )


def quoted(word: str) -> str:
    """One word as systemd reads it; `$` is special in commands alone, so that is the caller's."""
    escaped = word
    for char, safe in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("\n", "\\n")):
        escaped = escaped.replace(char, safe)
    plain = word and escaped == word and " " not in word and "'" not in word
    return word if plain else f'"{escaped}"'


_UNIT = """\
# Save as ~/.config/systemd/user/agent-node.service, then:
#   systemctl --user daemon-reload
#   systemctl --user enable --now agent-node
# A user's services end at logout unless they may linger:
#   loginctl enable-linger "$USER"

[Unit]
Description=Arc agent node
Documentation=man:systemd.kill(5)
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={command}
Environment={home}
UMask=0077

# Stop the daemon alone. Running tasks stay, and the next daemon adopts them.
KillMode=process
TimeoutStopSec={stop_s}

# Whatever ended it, the queue waits for the next one.
Restart=always
RestartSec=2

# A task that eats the memory ends by itself, not the daemon with it.
OOMPolicy=continue

# What forks without end fills this share of the machine's processes and threads, and no more of it.
# It is one share for the daemon and all its tasks: raise it where they need more.
TasksMax=15%

# The daemon makes one cgroup for each attempt, and so can end every process of it.
Delegate=yes

[Install]
WantedBy=default.target
"""
