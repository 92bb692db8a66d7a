"""Writes the systemd user unit that keeps a hub running, and running once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent_node.envelope import Exit
from agent_node.systemd import quoted

from .errors import OtherHub

STOP_S = 45  # runs get ten seconds to end by themselves, links two, and a disk may be slow
HOPELESS = (Exit.USAGE, OtherHub.exit_code)  # fleet.yaml cannot be obeyed; another hub runs


def render_hub_unit(command: Sequence[str], *, fleet: Path) -> str:
    """A unit for this command line; the fleet.yaml is named in it, so no folder is assumed."""
    words = [*command, "--fleet", str(fleet), "up"]
    return _UNIT.format(
        command=" ".join(quoted(word.replace("$", "$$")) for word in words),
        fleet=quoted(str(fleet)),
        hopeless=" ".join(str(int(code)) for code in HOPELESS),
        stop_s=STOP_S,
    )


_UNIT = """\
# Save as ~/.config/systemd/user/arc-hub.service, then:
#   systemctl --user daemon-reload
#   systemctl --user enable --now arc-hub
# A user's services end at logout unless they may linger:
#   loginctl enable-linger "$USER"
# What it says: journalctl --user -u arc-hub

[Unit]
Description=Arc hub ({fleet})
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={command}
UMask=0077

# Ctrl-C for the hub: runs that move work come to their end. Nodes and their tasks work on.
KillMode=mixed
TimeoutStopSec={stop_s}

# A hub that died leaves nothing that the next one does not settle. Started again in vain it is
# never: settings that cannot be obeyed, and another hub that runs, take a person.
Restart=on-failure
RestartSec=5
RestartPreventExitStatus={hopeless}

[Install]
WantedBy=default.target
"""
