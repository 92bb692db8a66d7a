"""Lets a request through to the page or turns it away: a table of guards, each with its reason."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders

from .answers import refused
from .errors import TurnedAway
from .surroundings import Now, WebSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS_MAX = 64
HEADER_BYTES_MAX = 16 * 1024
QUERY_MAX = 4096
READING = frozenset({"GET", "HEAD"})
CHANGING = ("/act/", "/webhooks/")  # the only places where something may be changed
BODY_MAX: Mapping[str, int] = {"/act/": 16 * 1024, "/webhooks/": 256 * 1024}
OPEN = ("/static/", "/webhooks/")  # without a token: no data in it, or a proof of its own
OPEN_PAGES = frozenset({"/", "/favicon.ico"})
IN_A_QUERY = frozenset({"token", "access_token", "bearer", "authorization"})
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
SAID_WITH_EVERYTHING: Mapping[str, str] = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True, slots=True)
class Knock:
    """A request as the guards look at it; its body is still to come."""

    method: str
    path: str
    query: str
    headers: Headers
    settings: WebSettings

    @property
    def changes(self) -> bool:
        """Whether it wants to change something: by its method, whatever its path."""
        return self.method not in READING


Guard = Callable[[Knock], TurnedAway | None]


def no_more_than_a_few_headers(knock: Knock) -> TurnedAway | None:
    """What is read before anything is known of the sender stays small."""
    raw = knock.headers.raw
    size = sum(len(name) + len(value) for name, value in raw)
    if len(raw) <= HEADERS_MAX and size <= HEADER_BYTES_MAX and len(knock.query) <= QUERY_MAX:
        return None
    return TurnedAway(431, "more or longer headers than this page reads")


def asked_by_a_name_of_its_own(knock: Knock) -> TurnedAway | None:
    """A page of somebody else whose name was made to lead here (DNS rebinding) asks by its name."""
    asked = knock.headers.getlist("host")
    if len(asked) == 1 and _name_of(asked[0]) in names_of(knock.settings):
        return None
    return TurnedAway(421, "this page does not answer to that name",
                      hint="web.names in fleet.yaml lists more names")  # fmt: skip


def reads_or_changes(knock: Knock) -> TurnedAway | None:
    """Only a POST changes anything, and only in the places that are for it."""
    if not knock.changes or (knock.method == "POST" and knock.path.startswith(CHANGING)):
        return None
    return TurnedAway(405, "only GET and HEAD here")


def not_sent_by_another_page(knock: Knock) -> TurnedAway | None:
    """A browser says which page sends a request, and no other page may send one of these.

    To be led here by a link of another page is fine; to be read by it is not.
    """
    site = knock.headers.get("sec-fetch-site", "same-origin")
    led_here = (not knock.changes and knock.path in OPEN_PAGES
                and knock.headers.get("sec-fetch-mode") == "navigate")  # fmt: skip
    if site not in ("same-origin", "none") and not led_here:
        return TurnedAway(403, "sent by a page of another site")
    if site == "none" and knock.changes:
        return TurnedAway(403, "a change has to be sent by the page itself")
    return None


def of_the_same_origin(knock: Knock) -> TurnedAway | None:
    """The Origin that a browser adds is this page's own; `null` is nobody's."""
    origins = knock.headers.getlist("origin")
    host = knock.headers.get("host", "")
    if all(one.lower() in (f"http://{host}".lower(), f"https://{host}".lower()) for one in origins):
        return None
    return TurnedAway(403, "sent by a page of another origin")


def no_secret_in_the_address(knock: Knock) -> TurnedAway | None:
    """An address ends up in histories and logs, so a token in it would be read by others."""
    names = {name.lower() for name, _ in parse_qsl(knock.query, keep_blank_values=True)}
    if names.isdisjoint(IN_A_QUERY):
        return None
    return TurnedAway(400, "a token belongs into the header Authorization, never into the address",
                      hint="that one has been seen; another: arc web --make-token")  # fmt: skip


def shows_the_token(knock: Knock) -> TurnedAway | None:
    """Where others can reach the page, whoever wants data or a change shows the token."""
    token = knock.settings.token
    if token is None or knock.path in OPEN_PAGES or knock.path.startswith(OPEN):
        return None
    kind, _, shown = knock.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), token):
        return None
    return TurnedAway(401, "this page wants a bearer token in the header Authorization")


def says_json(knock: Knock) -> TurnedAway | None:
    """A form or a plain text, which any page may send without asking, is no order."""
    kind = knock.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not knock.changes or kind == "application/json":
        return None
    return TurnedAway(415, "a change is asked for with Content-Type: application/json")


def not_too_long(knock: Knock) -> TurnedAway | None:
    """What it says of its own length is within the limit; the body is counted all the same."""
    length = knock.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and len(length) < 20 and (  # noqa: PLR2004 - digits
            int(length) <= body_max(knock.path)):  # fmt: skip
        return None
    return TurnedAway(413, f"a body here takes {body_max(knock.path)} bytes at most")


GUARDS: tuple[Guard, ...] = (
    no_more_than_a_few_headers, asked_by_a_name_of_its_own, reads_or_changes,
    not_sent_by_another_page, of_the_same_origin, no_secret_in_the_address, shows_the_token,
    says_json, not_too_long,
)  # fmt: skip


def objection(knock: Knock) -> TurnedAway | None:
    """What the first guard holds against it, in the order of the table; None: let it through."""
    return next((said for guard in GUARDS if (said := guard(knock)) is not None), None)


def body_max(path: str) -> int:
    """How many bytes a request to this place may carry."""
    return next((most for place, most in BODY_MAX.items() if path.startswith(place)), 0)


def names_of(settings: WebSettings) -> frozenset[str]:
    """Under which names the page may be asked for; its port does not matter (`ssh -L`)."""
    own = {settings.host} if settings.unix is None else set()
    bound = {f"[{one}]" if ":" in one else one for one in own} - {"0.0.0.0", "[::]"}  # noqa: S104
    near = LOOPBACK_NAMES if settings.is_near else frozenset()
    return frozenset({one.lower() for one in (*bound, *settings.names)}) | near


def is_asked_nearby(host: str) -> bool:
    """Whether this `Host` is a name that means this machine to whoever uses it."""
    return _name_of(host) in LOOPBACK_NAMES


def _name_of(host: str) -> str:
    """The name without its port; "" for anything that is no name."""
    name, colon, port = host.lower().rpartition(":")
    if not colon or host.endswith("]"):
        return host.lower()
    return name if port.isascii() and port.isdigit() else ""


class Guards:
    """Around the whole page: nothing gets in past the guards, nothing out without its headers."""

    def __init__(self, app: ASGIApp, settings: WebSettings, clock: Now) -> None:
        self.app = app
        self._settings, self._clock = settings, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Of what comes by HTTP; nothing else is answered here."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return
        knock = Knock(scope["method"], scope["path"], scope["query_string"].decode("latin-1"),
                      Headers(scope=scope), self._settings)  # fmt: skip
        said = objection(knock)
        out = _with_headers(send)
        if said is None:
            await self.app(scope, _counted(receive, body_max(knock.path)), out)
            return
        headers = {"WWW-Authenticate": "Bearer"} if said.status == 401 else {}  # noqa: PLR2004
        answer = refused("web", said, self._clock, {**headers, "Connection": "close"})
        await answer(scope, receive, out)


def _counted(receive: Receive, most: int) -> Receive:
    """The body, piece by piece, up to the limit; beyond it `TurnedAway`."""
    so_far = 0

    async def read() -> Message:
        nonlocal so_far
        message = await receive()
        so_far += len(message.get("body", b""))
        if so_far > most:
            raise TurnedAway(413, f"a body here takes {most} bytes at most")
        return message

    return read


def _with_headers(send: Send) -> Send:
    async def out(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SAID_WITH_EVERYTHING.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return out
