"""The page's own files are sent small to a browser that can unpack them, and whole to any other."""

from __future__ import annotations

import gzip
from pathlib import Path

import arc.web
from tests.web.stage import Stage

STATIC = Path(arc.web.__file__).parent / "static"
PACKED = {"accept-encoding": "gzip, deflate, br"}
WEIGHT_MAX = 150_000  # of the page and all its files, however late one of them is brought


async def test_who_takes_gzip_is_sent_the_same_file_in_less(stage: Stage) -> None:
    answer = await stage.ask("/static/page.css", headers=PACKED)

    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(answer.body) == (STATIC / "page.css").read_bytes()
    assert len(answer.body) == int(answer.headers["content-length"])


async def test_who_takes_no_gzip_is_sent_it_as_it_lies(stage: Stage) -> None:
    answer = await stage.ask("/static/page.css")

    assert "content-encoding" not in answer.headers
    assert answer.body == (STATIC / "page.css").read_bytes()


async def test_a_file_that_the_browser_has_is_not_sent_again(stage: Stage) -> None:
    tag = (await stage.ask("/static/page.css", headers=PACKED)).headers["etag"]

    again = await stage.ask("/static/page.css", headers={**PACKED, "if-none-match": tag})

    assert (again.status, again.body) == (304, b"")


async def test_data_is_never_packed(stage: Stage) -> None:
    """What a stranger may put beside a secret must not tell by its length what the secret is."""
    answer = await stage.ask("/api/v1/status", headers=PACKED)

    assert "content-encoding" not in answer.headers
    assert answer.said["ok"] is True


async def test_the_page_and_all_its_files_weigh_little(stage: Stage) -> None:
    """Sent as they lie they would be 185 kB, and this fails."""
    files = [f"/static/{one.relative_to(STATIC)}" for one in STATIC.rglob("*")
             if one.suffix in {".js", ".css", ".svg"}]  # fmt: skip
    sent = [await stage.ask(path, headers=PACKED) for path in ("/", *files)]

    assert {one.status for one in sent} == {200}
    assert sum(len(one.body) for one in sent) <= WEIGHT_MAX
