"""Starts a process of ours as another user, and gives it our code and nothing else of ours."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from .handing import hand_over
from .open_files import as_given
from .other_user import OtherUser, command_as
from .own_code import own_code

# Sent as the first message, and run by what the command line says. Root is given up before a
# line of ours is imported; a process that gave up root is closed to its new user's debuggers.
_BECOME = """\
import array, os, socket, sys
ours = socket.socket(fileno=os.dup(0))
os.set_inheritable(ours.fileno(), False)
if os.getuid() == 0:
    os.initgroups({name!r}, {gid})
    os.setresgid({gid}, {gid}, {gid})
    os.setresuid({uid}, {uid}, {uid})
if os.getresuid() != ({uid},) * 3:
    sys.exit("agent-node: this is user %d, not {uid}" % os.getuid())
os.umask(0o022)
_, rights, _, _ = ours.recvmsg(1, socket.CMSG_LEN(4), socket.MSG_CMSG_CLOEXEC)
code = array.array("i", rights[0][2])[0]
ours.close()
sys.path.insert(0, "/proc/self/fd/%d" % code)
from agent_node.processes import hide_from_debuggers
hide_from_debuggers()
from agent_node.{module} import main_as
sys.exit(main_as(code))
"""


def start_as(user: OtherUser, module: str) -> tuple[int, socket.socket]:
    """The child's pid, be it sudo's, and our end of its stdin. It imports and calls `main_as`.

    `OSError` when nothing could be started; whether sudo let it through shows only later.
    """
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = command_as(user)
    first = _BECOME.format(name=user.name, uid=user.uid, gid=user.gid, module=module)
    try:
        near.send(first.encode(), socket.MSG_DONTWAIT)
        hand_over(near, b"c", [own_code()])
        with as_given():
            pid = os.posix_spawnp(
                words[0],
                words,
                _environment(os.environ),
                file_actions=((os.POSIX_SPAWN_DUP2, far.fileno(), 0),),
                setsid=True,  # a Ctrl-C meant for the daemon is not meant for the work
                setsigmask=(),
            )
    except OSError:
        near.close()
        raise
    finally:
        far.close()
    return pid, near


def _environment(base: Mapping[str, str]) -> dict[str, str]:
    """Whatever else the daemon knows could be read by every program of that user."""
    return {name: base[name] for name in ("PATH", "LANG", "ARC_FAILPOINT") if name in base}
