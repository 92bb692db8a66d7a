"""Gives a hub's session to the daemon that runs here, with next to nothing of the program loaded.

Every session of a hub begins with it. Loading all that a hub may ask for takes ten times as much
processor as starting Python, and the daemon has it loaded already. Python alone loads neither
`os`, `stat` nor `socket`: what they are made of is built in, and costs nothing.
"""

import _socket
import posix
import sys
from _stat import S_ISFIFO, S_ISSOCK
from posix import _exit

OPENING = b'{"session":"hub"}\n'
WELL_ENDED = b"bye\n"
REFUSED = b'{"id":null,"ok":false'  # how a refusal of the whole talk begins
LINE_MAX = 4096  # of what the daemon itself says on the connection; a pipe takes so much at once
GONE = "the talk ended early; what was asked and not answered may have happened: ask again"
DONE, FAILED, INTERRUPTED = 0, 1, 130
PATIENCE_S = 30.0
LOOK_S = 60.0  # so often a session looks whether its hub is still there
LIFE_S = 660  # of a connection of sshd: a hub's own end after 600 s, and is never met by this
PARENTS_MAX = 3  # between sshd and us: the login shell, and whatever it was told to start us by
_SSHD = (b"sshd", b"sshd-session")
_PARENT, _STARTED = 1, 19  # of /proc/PID/stat, counted after the program's name
_OTHERS = 0o077
_FOLDER = posix.O_PATH | posix.O_DIRECTORY | posix.O_CLOEXEC


def at_once() -> int | None:
    """The exit code of `serve --stdio` where a daemon held the talk; None: go the long way.

    Nothing was said then, and nothing is told of what stood in the way: the long way meets it
    again and has the words. It also asks on what disk the home lies, as the daemon has before.
    """
    root, left_s = posix.environ.get(b"AGENT_NODE_HOME") or _usual(), time_left()
    if not root or left_s == 0 or not (can_be_waited_for(0) and can_be_waited_for(1)):
        return None
    try:
        daemon = _daemon_at(root)
        return None if daemon is None else hand_over(daemon, 0, 1, left_s)
    except KeyboardInterrupt:
        return INTERRUPTED


def can_be_waited_for(descriptor: int) -> bool:
    """Pipes and sockets; a file or a terminal cannot be given to somebody else's selector."""
    try:
        mode = posix.fstat(descriptor).st_mode
    except OSError:  # it is closed
        return False
    return S_ISFIFO(mode) or S_ISSOCK(mode)


def time_left(proc: bytes = b"/proc") -> int | None:
    """Seconds that a session which begins now may last; None: it did not come by SSH.

    sshd asks for a key at login alone. Who has logged in with one that was taken away since may
    begin sessions for as long as they keep the connection: so it is its age that counts, by how
    long before us the sshd that serves it began. One that cannot be seen has begun just now.
    """
    if b"SSH_CONNECTION" not in posix.environ:
        return None
    ours = sshds = _stat(proc, b"self")
    for _ in range(PARENTS_MAX):
        sshds = _stat(proc, sshds[1][_PARENT]) if sshds else None
        if sshds and sshds[0] in _SSHD:
            break
    else:
        return LIFE_S
    age = int(ours[1][_STARTED]) - int(sshds[1][_STARTED]) if ours and sshds else 0
    return max(LIFE_S - age // posix.sysconf("SC_CLK_TCK"), 0)


def _stat(proc: bytes, pid: bytes) -> tuple[bytes, list[bytes]] | None:
    """The name of a process and its numbers; None: nobody lets us see it."""
    try:
        file = posix.open(b"%b/%b/stat" % (proc, pid), posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return None
    try:
        said = posix.read(file, LINE_MAX)
    except OSError:
        return None
    finally:
        posix.close(file)
    head, _, numbers = said.rpartition(b") ")
    return head.partition(b" (")[2], numbers.split()


def opening(left_s: int | None) -> bytes:
    """What the daemon is told of a hub that comes, and how long it may stay."""
    return OPENING if left_s is None else b'{"session":"hub","left_s":%d}\n' % left_s


def hand_over(
    daemon: _socket.socket, stdin: int, stdout: int, left_s: int | None = None
) -> int | None:
    """The daemon takes our stdin and stdout and talks itself: no byte makes a detour.

    None: the kernel would not carry them, and nothing was said; its bytes can still be relayed.
    """
    before = [(descriptor, posix.get_blocking(descriptor)) for descriptor in (stdin, stdout)]
    daemon.settimeout(LOOK_S)  # from here on it is the hub that decides how long this takes
    rights = b"".join(one.to_bytes(4, sys.byteorder) for one in (stdin, stdout))
    try:
        if not _give(daemon, opening(left_s), rights):
            return None
        said = _line_of(daemon, stdin)
    finally:
        daemon.close()
    if said is None:
        return FAILED
    # Only now that the daemon has let go: it must never meet a descriptor that blocks. Whoever
    # interrupts this process leaves them as they are.
    for descriptor, blocking in before:
        posix.set_blocking(descriptor, blocking)
    if said == WELL_ENDED:
        return DONE
    if said.startswith(REFUSED):
        _pass_on(stdout, said)
    elif not said:
        print(f"agent-node serve: {GONE}", file=sys.stderr)
    return FAILED


def _give(daemon: _socket.socket, first: bytes, rights: bytes) -> bool:
    try:
        daemon.sendmsg([first], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    except ConnectionError:
        return True  # it would not have us; why, it may have said before it closed
    except OSError:  # as too many descriptors are on their way to a daemon that is stopped
        return False
    return True


def _line_of(daemon: _socket.socket, stdin: int) -> bytes | None:
    """How the talk ended, or why there is none; empty: the daemon is gone without a word. None: it
    is there and silent although the hub has left. Who waits for one that was stopped would stay
    for ever, and each hub that comes again would leave one more.
    """
    said, left = b"", False
    while b"\n" not in said and len(said) < LINE_MAX:
        try:
            more = daemon.recv(LINE_MAX - len(said))
        except TimeoutError:
            if left:
                return None
            left = _has_left(stdin)
            continue
        except ConnectionError:
            break
        if not more:
            break
        said += more
    return said


def _has_left(stdin: int) -> bool:
    """Whether nobody writes there any more, also where what was written is still to be read."""
    import select  # only here: most sessions are over, or have a hub, before it is needed

    poll = select.poll()
    poll.register(stdin, 0)
    return bool(poll.poll(0))


def _pass_on(stdout: int, said: bytes) -> None:
    try:
        posix.write(stdout, said)
    except OSError:
        return  # nobody reads it any more: the exit code alone tells


def _usual() -> bytes:
    home = posix.environ.get(b"HOME")
    return home + b"/.agent-node" if home else b""


def _daemon_at(root: bytes) -> _socket.socket | None:
    """A connection to the daemon of this home; None: none listens, or the home is not ours."""
    daemon = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    daemon.settimeout(PATIENCE_S)
    connected, folder = False, -1
    try:
        folder = posix.open(root, _FOLDER)
        if _is_ours_alone(posix.fstat(folder)):
            # The kernel takes 107 bytes of path; through the folder's descriptor any home fits.
            daemon.connect(f"/proc/self/fd/{folder}/node.sock")
            connected = True
    except OSError:
        connected = False
    finally:
        if folder >= 0:
            posix.close(folder)
        if not connected:
            daemon.close()
    return daemon if connected else None


def _is_ours_alone(home: posix.stat_result) -> bool:
    return home.st_uid == posix.geteuid() and not home.st_mode & _OTHERS


def leave(code: int) -> None:
    """The end of this process, while Python imports what it needs to begin it.

    It takes any exception there, also that of an exit, for a broken library, and says so.
    """
    _exit(code)
