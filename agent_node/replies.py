"""Answers one line of the wire at a time; whatever comes in, one line goes back."""

from __future__ import annotations

from . import __version__
from .artifact_orders import answer_artifact, answer_artifact_put, answer_artifacts_missing
from .attempt_words import answer_heartbeat, answer_progress, answer_spawn
from .budget_orders import answer_budget, answer_set_budget
from .clock import Clock
from .config import NodeSettings
from .desk import Desk, Host, Session
from .errors import DiskBroken, NodeError, Refused, is_of_the_disk
from .graph_orders import (
    answer_alive,
    answer_awaits,
    answer_ended,
    answer_graph,
    answer_graph_cancel,
    answer_graphs,
    answer_joined,
    answer_submit,
)
from .home import Home
from .inquiries import (
    answer_candidates,
    answer_dead,
    answer_doubts,
    answer_events,
    answer_list,
    answer_log,
    answer_moved,
    answer_show,
    answer_status,
    answer_subscribe,
    answer_tiers,
)
from .log import log
from .moves import Abort, Commit, Drop, Settled
from .orders import (
    answer_add,
    answer_cancel,
    answer_dead_review,
    answer_drain,
    answer_pause,
    answer_quarantine,
    answer_release,
    answer_resolve,
    answer_resume,
    answer_retry,
    answer_set,
)
from .queries import Facts
from .requests import NotARequest, Request, read_request
from .stand_in import refuse_unless_answered
from .store import Store
from .strict import JsonObject
from .transfers import (
    Handler,
    answer_activate,
    answer_bar,
    answer_escrow,
    answer_hello,
    answer_hold,
    answer_reown,
    settling,
)
from .wire import Id, Written, error_line, greeting_line, result_line, trouble_line


def answer_upgrade(desk: Desk, session: Session, request: Request) -> JsonObject:
    """A new program for this home; what checks it is loaded when one comes."""
    from .upgrading import answer_upgrade as answer

    return answer(desk, session, request)


# Words that only look.
ASKS: dict[str, Handler] = {
    "status": answer_status,
    "list": answer_list,
    "show": answer_show,
    "log": answer_log,
    "candidates": answer_candidates,
    "doubts": answer_doubts,
    "moved": answer_moved,
    "budget": answer_budget,
    "tiers": answer_tiers,
    "dead": answer_dead,
    "events": answer_events,
    "graphs": answer_graphs,
    "graph": answer_graph,
    "awaits": answer_awaits,
    "artifact": answer_artifact,
    "artifacts_missing": answer_artifacts_missing,
}
# Words that change the queue, each by one transaction of the desk (`artifact_put` by its last piece
# alone; on trial each command of a word has its own): `{word}.before` and `{word}.after` are
# places to crash at.
CHANGES: dict[str, Handler] = {
    "hello": answer_hello,
    "add": answer_add,
    "escrow": answer_escrow,
    "hold": answer_hold,
    "commit": settling(Commit),
    "abort": settling(Abort),
    "settled": settling(Settled),
    "activate": answer_activate,
    "drop": settling(Drop),
    "bar": answer_bar,
    "reown": answer_reown,
    "quarantine": answer_quarantine,
    "pause": answer_pause,
    "resume": answer_resume,
    "drain": answer_drain,
    "set": answer_set,
    "cancel": answer_cancel,
    "retry": answer_retry,
    "resolve": answer_resolve,
    "release": answer_release,
    "set_budget": answer_set_budget,
    "dead_review": answer_dead_review,
    "submit": answer_submit,
    "graph_cancel": answer_graph_cancel,
    "ended": answer_ended,
    "alive": answer_alive,
    "joined": answer_joined,
    "artifact_put": answer_artifact_put,
    "spawn": answer_spawn,
}
# Words that change something else: the talk, the program, and that an attempt lives.
OTHERS: dict[str, Handler] = {
    "subscribe": answer_subscribe,
    "upgrade": answer_upgrade,
    "heartbeat": answer_heartbeat,
    "progress": answer_progress,
}
HANDLERS: dict[str, Handler] = {**ASKS, **CHANGES, **OTHERS}


# What changes something that no rollback takes back; asking reads `dry_run` and ignores it.
WITHOUT_TRIAL = frozenset({"hello", "subscribe"})
# What a task of another user may ask, at the socket of its attempt.
TASK_WORDS = frozenset({"heartbeat", "progress", "spawn"})


class Answers:
    """A node's voice: the same for a hub and for the owner, with a daemon and without."""

    def __init__(
        self, store: Store, *, home: Home, settings: NodeSettings, clock: Clock, host: Host,
        fault: str = "",
    ) -> None:  # fmt: skip
        self.desk = Desk(store, home, settings, clock, host, fault)

    def greeting(self) -> bytes:
        """The first line that a hub reads."""
        return greeting_line(self.desk.store.read(Facts()), __version__)

    def answer(self, session: Session, line: bytes) -> bytes:
        """One line for one line, whatever is in it; `session.over` when the talk has to end."""
        try:
            request = read_request(line)
        except NotARequest as error:
            session.over = True
            return trouble_line(None, error)
        try:
            return result_line(request.id, self._result(session, request))
        except NodeError as error:
            return trouble_line(request.id, error)
        except Exception as error:  # noqa: BLE001 - one request ends, the node stays up
            return _failed(request.id, request.do, error)

    def _result(self, session: Session, request: Request) -> JsonObject | Written:
        handler = HANDLERS.get(request.do)
        if handler is None:
            known = ", ".join(sorted(HANDLERS))
            raise Refused("unknown_request", f"there is no such request; there are: {known}")
        if session.kind == "task" and request.do not in TASK_WORDS:
            words = ", ".join(sorted(TASK_WORDS))
            raise Refused("local_only", f"a task may say {words} of itself, and nothing else")
        refuse_unless_answered(request.do, self.desk.fault)
        if request.dry_run and request.do in WITHOUT_TRIAL:
            raise Refused("not_supported", f"{request.do} has no dry run")
        return handler(self.desk, session, request)


def too_long(limit: int) -> bytes:
    """What is said, at the end of the talk, to a peer whose line has no end."""
    return error_line(None, "bad_input", f"a line of more than {limit} bytes; the talk is over")


def _failed(asked: Id, do: str, error: Exception) -> bytes:
    """The disk said no, or a fault of ours: where that happened goes to our own log, never to the
    peer.
    """
    if is_of_the_disk(error):
        text = f"{do}: the disk failed: {error.strerror}; it may have happened, so ask again"
        log("disk_trouble", do=do, because=str(error))
        return trouble_line(asked, DiskBroken(text))
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"
    kind = type(error).__name__
    log("request_failed", do=do, because=kind, place=place)  # the node itself goes on
    return error_line(asked, "fault", f"{kind} while answering; a fault of this node, see its log")
