"""Holds one connected peer: what it sent, what it is owed, and when the talk is over."""

from __future__ import annotations

from .attempt_words import ATTEMPT_MAX
from .desk import FOR_ALL, Session, SessionKind
from .errors import BadInput
from .handover import LIFE_S
from .lines import Lines
from .replies import Answers, too_long
from .requests import Fields, read_frame
from .strict import LINE_MAX
from .wire import event_line, trouble_line

OWED_HIGH = 1024 * 1024  # owed more than this, a peer has to read before it is answered further
TERM_MAX = 2**53
LEFT_MAX = 2**31  # seconds; the sessions of a later program may live longer than ours do


class Conversation:
    """Bytes in, bytes out, both bounded. It knows no sockets: its owner reads and writes.

    The first line says who talks: `{"session":"hub"}` is greeted, `{"session":"owner"}` is not.
    A hub that talked to this node before without a daemon names the term it had said.
    """

    def __init__(
        self,
        answers: Answers,
        session: Session | None = None,
        kinds: tuple[SessionKind, ...] = FOR_ALL,
    ) -> None:
        self._answers, self._kinds = answers, kinds
        self._lines = Lines()
        self._heard_all = False
        self.session = session
        self.owed = bytearray()
        self.cut = False
        self._news = 0  # bytes of news since nothing was owed
        self.retired = False

    def feed(self, data: bytes) -> None:
        """Take what came; no bytes: the peer has said all it will say."""
        if not data:
            self._heard_all = True
        elif not (self._is_over or self.retired):
            self._lines.add(data)

    def turn(self) -> bool:
        """Answer one line, where one waits and the peer reads; whether there may be another."""
        if self._is_over or len(self.owed) > OWED_HIGH:
            return False
        if self._lines.too_long:
            self._refuse(too_long(LINE_MAX))
            return False
        if not self._lines.waiting:
            return False
        self._answer(self._lines.take())
        return not self._is_over

    def push(self, event: str, seq: int, at: str) -> None:
        """Send news, if the peer wants it; one that does not read any more is cut.

        An answer that is long, and on its way, is no sign of that: news alone counts.
        """
        if self.session is None or event not in self.session.wants or self._is_over:
            return
        if self.retired:
            return
        line = event_line(event, seq, at)
        self._news = len(line) + (self._news if self.owed else 0)
        if self._news > OWED_HIGH:
            self.cut = True
        else:
            self.owed += line

    def retire(self) -> None:
        """Hear no more: what came is still answered, and then the talk is over."""
        self.retired = self._heard_all = True

    def sent(self, count: int) -> None:
        """So many bytes of what is owed have left."""
        del self.owed[:count]

    @property
    def reads(self) -> bool:
        """Whether more may be taken in now."""
        busy = self._lines.waiting or len(self.owed) > OWED_HIGH
        return not self._heard_all and not self._is_over and not busy

    @property
    def may_turn(self) -> bool:
        """Whether a whole line waits to be answered and may be."""
        return self._lines.waiting and not self._is_over and len(self.owed) <= OWED_HIGH

    @property
    def finished(self) -> bool:
        """Nothing is owed and nothing more will come; `cut` ends it at once."""
        said_all = self._heard_all and not self._lines.waiting
        return self.cut or (not self.owed and (self._is_over or said_all))

    @property
    def well_ended(self) -> bool:
        """Whether the peer got all that it asked for."""
        return self.finished and not (self.cut or self.retired or self._is_over)

    @property
    def _is_over(self) -> bool:
        return self.session is not None and self.session.over

    def _answer(self, line: bytes) -> None:
        if self.session is not None:
            self.owed += self._answers.answer(self.session, line)
        else:
            self._open(line)
        if self._is_over:
            self._lines.clear()

    def _open(self, line: bytes) -> None:
        try:
            self.session, greets = read_opening(line, self._kinds)
        except BadInput as error:
            self._refuse(trouble_line(None, error))
            return
        if greets:
            self.owed += self._answers.greeting()

    def _refuse(self, line: bytes) -> None:
        if self.session is None:
            self.session = Session("owner")
        self.session.over = True
        self.owed += line
        self._lines.clear()


def read_opening(
    line: bytes, kinds: tuple[SessionKind, ...] = FOR_ALL
) -> tuple[Session, bool]:
    """Who talks, by the first line, and whether it waits for a greeting."""
    said = Fields(read_frame(line))
    kind = said.word("session", *kinds)
    if kind == "task":
        attempt = said.ulid("uid"), said.whole("attempt", 1, ATTEMPT_MAX)
        return Session(kind, attempt=attempt), False
    session = Session(
        kind,
        term=said.whole("term", 0, TERM_MAX) if said.has("term") else 0,
        hub=said.maybe_node("hub"),
        instance=said.ulid("instance") if said.has("instance") else None,
        left_s=min(said.whole("left_s", 0, LEFT_MAX), LIFE_S) if said.has("left_s") else None,
    )
    return session, kind == "hub" and not said.flag("greeted")
