"""Nothing gets past the guards of the page that its own browser tab, or its owner, did not send."""

from __future__ import annotations

import itertools
import random
import re
from typing import Any

import pytest
from starlette.datastructures import Headers

from arc.web.guards import GUARDS, SAID_WITH_EVERYTHING, Knock, objection
from arc.web.surroundings import WebSettings
from tests.web.stage import HOST, Stage, answer_in, called

OWN_HOSTS = ("127.0.0.1:8420", "localhost:8420", "LOCALHOST:9999", "[::1]:8420", "127.0.0.1")
OTHER_HOSTS = ("evil.com", "evil.com:8420", "127.0.0.1.nip.io:8420", "localhost.evil.com", "",
               "127.0.0.1:8420@evil.com", "127.0.0.1:x", "0.0.0.0:8420", "127.0.0.2:8420")
OTHER_ORIGINS = ("null", "http://evil.com", "https://evil.com:8420", "http://localhost:1",
                 "http://127.0.0.1.nip.io:8420", "file://", "")
SITES = (None, "same-origin", "none", "same-site", "cross-site", "odd")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
PLACES = ("/", "/static/page.css", "/api/v1/status", "/api/v1/panels/lanes", "/live", "/metrics",
          "/act/pause", "/webhooks/ci", "/nowhere")
KINDS = (None, "application/json", "text/plain", "application/x-www-form-urlencoded",
         "multipart/form-data; boundary=x", "application/json; charset=utf-8")


def a_knock(path: str, method: str = "GET", **headers: str | None) -> Knock:
    given = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
    where, _, query = path.partition("?")
    raw = [(name.encode(), value.encode("latin-1")) for name, value in given.items()
           if value is not None]  # fmt: skip
    settings = WebSettings(fleet=None, state=None)  # type: ignore[arg-type]
    return Knock(method, where, query, Headers(raw=raw), settings)


def is_let_through(path: str, method: str, host: str, origin: str | None, site: str | None,
                   kind: str | None) -> bool:  # fmt: skip
    """What has to be true, said once more and another way."""
    own = host in OWN_HOSTS
    same = origin is None or origin in (f"http://{host}", f"https://{host}")
    if method in ("GET", "HEAD"):
        return own and same and site in (None, "same-origin", "none")
    json = kind is not None and kind.startswith("application/json")
    there = path.startswith(("/act/", "/webhooks/"))
    return own and same and method == "POST" and there and json and site in (None, "same-origin")


def test_every_mix_of_host_origin_site_method_and_place_gets_through_only_where_it_may() -> None:
    """With any one of the guards taken away, some mix gets through that must not."""
    mixes = itertools.product(PLACES, METHODS, (*OWN_HOSTS, *OTHER_HOSTS),
                              (None, "own", *OTHER_ORIGINS), SITES, KINDS)  # fmt: skip
    let_through = 0
    for path, method, host, said, site, kind in mixes:
        origin = f"http://{host}" if said == "own" else said
        found = objection(a_knock(path, method, host=host, origin=origin, sec_fetch_site=site,
                                  content_type=kind))  # fmt: skip
        wanted = is_let_through(path, method, host, origin, site, kind)
        assert (found is None) == wanted, (path, method, host, origin, site, kind, found)
        let_through += wanted
    assert let_through > 1000


@pytest.mark.parametrize("guard", [one.__name__ for one in GUARDS])
def test_no_guard_is_there_for_nothing(guard: str) -> None:
    knocks = {
        "no_more_than_a_few_headers": a_knock("/", **{f"x{n}": "y" for n in range(70)}),
        "asked_by_a_name_of_its_own": a_knock("/", host="evil.com"),
        "reads_or_changes": a_knock("/api/v1/status", "PUT", content_type="application/json"),
        "not_sent_by_another_page": a_knock("/live", sec_fetch_site="cross-site"),
        "of_the_same_origin": a_knock("/live", origin="null"),
        "no_secret_in_the_address": a_knock("/api/v1/status?token=x"),
        "says_json": a_knock("/act/pause", "POST", content_type="text/plain"),
        "not_too_long": a_knock("/act/pause", "POST", content_type="application/json",
                                content_length="99999"),
    }  # fmt: skip
    if guard == "shows_the_token":
        knock = a_knock("/api/v1/status")
        settings = WebSettings(fleet=None, state=None, token=b"t")  # type: ignore[arg-type]
        knock = Knock(knock.method, knock.path, knock.query, knock.headers, settings)
    else:
        knock = knocks[guard]
    said = [one.__name__ for one in GUARDS if one(knock) is not None]
    assert said == [guard]


def test_a_link_of_another_page_may_lead_here_and_none_may_read_from_here() -> None:
    led = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert objection(a_knock("/", **led)) is None
    assert objection(a_knock("/api/v1/status", **led)) is not None
    assert objection(a_knock("/", sec_fetch_site="cross-site", sec_fetch_mode="cors")) is not None


async def test_the_whole_page_turns_away_what_its_guards_turn_away_and_changes_nothing(
    stage: Stage,
) -> None:
    """With the guards left out of the application, this fails."""
    stage.open(actions=True)
    dice = random.Random(6)
    every = [*itertools.product(PLACES, METHODS, (*OWN_HOSTS, *OTHER_HOSTS),
                                (None, *OTHER_ORIGINS), SITES, KINDS)]  # fmt: skip
    for path, method, host, origin, site, kind in dice.sample(every, 400):
        if is_let_through(path, method, host, origin, site, kind):
            continue
        headers = {"origin": origin, "sec-fetch-site": site, "content-type": kind}
        said = await stage.ask(path, method, host=host, headers={
            name: value for name, value in headers.items() if value is not None})
        assert 400 <= said.status < 500, (path, method, host, origin, site, kind)
    assert stage.door.asked == []


@pytest.mark.parametrize("path", ["/", "/api/v1/status", "/api/v1/nothing", "/act/pause", "/nope",
                                  "/static/none.js", "/metrics"])
async def test_every_answer_has_every_header_also_an_error(stage: Stage, path: str) -> None:
    said = await stage.ask(path)
    for name, value in SAID_WITH_EVERYTHING.items():
        assert said.headers[name.lower()] == value
    assert "set-cookie" not in said.headers
    assert "access-control-allow-origin" not in said.headers
    assert "unsafe" not in said.headers["content-security-policy"]


async def test_a_browser_is_told_to_load_nothing_of_others_and_to_be_in_no_frame(
    stage: Stage,
) -> None:
    """Word by word, for the table alone says whatever it says. Seen to fail with each one wider."""
    headers = (await stage.ask("/")).headers
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    own = ("script-src", "style-src", "img-src", "font-src", "connect-src")
    nothing = ("default-src", "form-action", "base-uri", "frame-ancestors")
    assert policy == {**dict.fromkeys(own, "'self'"), **dict.fromkeys(nothing, "'none'")}
    assert headers["x-content-type-options"] == "nosniff"
    assert (await stage.ask("/api/v1/status")).headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["permissions-policy"] == "camera=(), geolocation=(), microphone=()"


async def test_a_fault_of_ours_has_the_headers_too_and_tells_no_more_than_its_place(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*_: object, **__: object) -> None:
        raise KeyError("secret words of a task")

    monkeypatch.setattr(stage.door, "ask", breaks)
    sent: list[dict[str, Any]] = []
    with pytest.raises(KeyError):  # the server logs it
        await called(stage.page.app, "GET", "/api/v1/status", {"host": HOST}, b"", sent=sent)
    said = answer_in(sent)
    assert (said.status, said.code) == (500, "ARC-FAULT")
    assert {name: said.headers[name.lower()] for name in SAID_WITH_EVERYTHING} == {
        **SAID_WITH_EVERYTHING}  # fmt: skip
    assert said.headers["cache-control"] == "no-store"
    assert "set-cookie" not in said.headers
    place = r"a fault of ours: KeyError in web/test_guards\.py:\d+ breaks"
    assert re.fullmatch(place, said.said["error"]["message"])
    assert b"secret" not in said.body
    assert b"Traceback" not in said.body


async def test_the_token_is_wanted_for_data_and_never_in_the_address(stage: Stage) -> None:
    """With `shows_the_token` out of the table, this fails."""
    stage.open(token=b"right")
    for shown in (None, "Bearer wrong", "Bearer ", "Basic right", "right", "Bearer rightx"):
        said = await stage.ask("/api/v1/now", headers={"authorization": shown} if shown else {})
        assert (said.status, said.headers["www-authenticate"]) == (401, "Bearer")
    assert (await stage.ask("/")).status == 200
    assert (await stage.ask("/api/v1/now?token=right")).status == 400
    assert (await stage.ask("/live?access_token=right")).status == 400
    assert (await stage.ask("/metrics")).status == 401
    right = {"authorization": "Bearer right"}
    assert (await stage.ask("/api/v1/now", headers=right)).status == 200
    assert b"right" not in (await stage.ask("/api/v1/now", headers=right)).body


async def test_a_body_is_counted_while_it_comes_whatever_it_says_of_its_length(
    stage: Stage,
) -> None:
    """With the count taken away, this body is read whole."""
    stage.open(actions=True, token=b"t")
    headers = {"authorization": "Bearer t", "content-type": "application/json"}
    said = await stage.ask("/act/pause", "POST", headers=headers, body=b"x" * 40_000, chunks=20)
    assert said.status == 413
    headers["content-length"] = "-5"
    assert (await stage.ask("/act/pause", "POST", headers=headers)).status == 413


@pytest.mark.parametrize(("settings", "host", "status"), [
    ({"host": "0.0.0.0"}, "arc.lan:8420", 421),
    ({"host": "0.0.0.0"}, "127.0.0.1:8420", 421),
    ({"host": "0.0.0.0"}, "0.0.0.0:8420", 421),
    ({"host": "::"}, "[::]:8420", 421),
    ({"host": "0.0.0.0", "names": ("arc.lan",)}, "ARC.lan:1", 200),
    ({"host": "192.168.1.5"}, "192.168.1.5:8420", 200),
    ({"host": "::1"}, "[::1]:8420", 200),
    ({"names": ("arc.lan",)}, "localhost", 200),
])
async def test_the_names_of_the_page_are_those_it_listens_on_and_those_it_was_given(
    stage: Stage, settings: dict[str, object], host: str, status: int
) -> None:
    stage.open(**settings)
    assert (await stage.ask("/", host=host)).status == status
