"""The API answers as the commands do, describes itself truly, and never lets a text be markup."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.core.transport import Response
from schemathesis.specs.openapi import checks

from agent_node import commands as c
from arc.errors import WaitedTooLong
from arc.web.questions import LOG, QUESTIONS, Question
from tests.builders import a_task, uid
from tests.web.stage import HOST, Answer, Stage

SCRIPTS = [
    pattern.format(f"alert({n})") for n, pattern in enumerate([
        "<script>{}</script>", "<SCRIPT SRC=//evil.com/{}></SCRIPT>", "<img src=x onerror={}>",
        "<svg/onload={}>", "'\"><script>{}</script>", "</script><script>{}</script>",
        "</title><svg onload={}>", "javascript:{}", "<a href=javascript:{}>x</a>",
        "<iframe srcdoc='<script>{}</script>'>", "<body onload={}>", "<math><mi xlink:href=x>{}",
        "<details open ontoggle={}>", "&lt;script&gt;{}&lt;/script&gt;", "&#60;script&#62;{}",
        "{{{{ {} }}}}", "{{% raw %}}{}", "${{{}}}", "<!--{}--><script>", "]]><script>{}</script>",
        "\u2028<script>{}</script>", "\u202e<script>{}</script>", "<scr\x00ipt>{}</script>",
        "%3Cscript%3E{}%3C/script%3E", "+ADw-script+AD4-{}",
    ] * 4)
]  # fmt: skip


async def asked(stage: Stage, path: str) -> Answer:
    return await stage.ask(f"/api/v1/{path}")


def a_path(question: Question) -> str:
    given = {"task": uid(1), "node": "iris", "run": "1", "dag": uid(1), "name": "x"}
    return re.sub(r"\{(\w+)\}", lambda found: given[found[1]], question.path)


@pytest.mark.parametrize("question", [*QUESTIONS, LOG], ids=lambda one: one.path)
async def test_every_question_is_answered_in_the_envelope_of_the_commands(
    stage: Stage, question: Question
) -> None:
    stage.desk.nodes.add("iris", 1)
    said = await asked(stage, a_path(question))
    assert said.headers["content-type"] == "application/json"
    assert said.headers["cache-control"] == "no-store"
    envelope = said.said
    assert envelope["schema"].startswith("arc.")
    if question.path in ("sensors/{run}", "tasks/{task}/log"):  # nothing ran yet
        assert said.status in (404, 409, 500), envelope
        assert envelope["ok"] is False
    else:
        assert (said.status, envelope["ok"]) == (200, True), envelope
        assert set(envelope) == {"schema", "ok", "as_of", "data", "partial", "warnings"}
    assert stage.door.changes == []


@pytest.mark.parametrize(("path", "status", "code"), [
    ("tasks?limit=0", 400, "ARC-USAGE"), ("tasks?limit=x", 400, "ARC-USAGE"),
    ("tasks?limit=9&limit=9", 400, "ARC-USAGE"), ("tasks?nothing=1", 400, "ARC-USAGE"),
    ("tasks?state=READY,NONE", 400, "ARC-USAGE"), ("tasks?after=iris", 400, "ARC-USAGE"),
    ("tasks?node=nobody", 404, "ARC-NOT-FOUND"), ("tasks/01ZZ", 404, "ARC-NOT-FOUND"),
    ("nodes/NoName!", 400, "ARC-USAGE"), ("why/none.such", 400, "ARC-USAGE"),
    ("sensors/999", 404, "ARC-NOT-FOUND"), ("sensors/x", 400, "ARC-USAGE"),
    ("log?since=yesterday", 400, "ARC-USAGE"), ("panels/none", 404, "ARC-NOT-FOUND"),
    ("panels/lanes?spam=1h", 400, "ARC-USAGE"), ("panels/lanes?span=1h&span=2h", 400, "ARC-USAGE"),
    ("panels/lanes?at=0001-01-01T00:00:00%2B14:00", 400, "ARC-USAGE"),
    ("panels/lanes?at=9999-12-31T23:59:59-14:00", 400, "ARC-USAGE"),
    ("tasks?priority=11", 400, "ARC-USAGE"), ("log?all=yes", 400, "ARC-USAGE"),
])
async def test_a_question_that_makes_no_sense_is_refused_by_the_name_of_what_is_wrong(
    stage: Stage, path: str, status: int, code: str
) -> None:
    said = await asked(stage, path)
    assert (said.status, said.code) == (status, code), said.body
    assert said.said["ok"] is False


async def test_an_address_that_is_none_is_answered_with_where_they_all_stand(stage: Stage) -> None:
    """Seen to fail: a bare "Not Found" to who had typed /api."""
    said = await asked(stage, "nothing/of/the/kind")
    assert (said.status, said.code) == (404, "ARC-WEB-REFUSED")
    assert "/api/openapi.json" in said.said["error"]["hint"]


async def test_a_hub_that_is_away_is_said_and_so_is_one_that_takes_too_long(stage: Stage) -> None:
    stage.door.hub_leaves()
    said = await asked(stage, "status")
    assert (said.status, said.code, said.headers["retry-after"]) == (503, "ARC-NO-HUB", "2")
    stage.door.away = WaitedTooLong("no answer after 60 s")
    assert (await asked(stage, "status")).status == 504


async def test_what_a_silent_node_has_is_partial_and_not_empty(stage: Stage) -> None:
    stage.desk.nodes.machines["iris"].off = True
    said = await asked(stage, "tasks")
    assert (said.status, said.said["partial"][0]["node"]) == (200, "iris")


async def test_pages_of_tasks_give_every_task_once_in_order(stage: Stage) -> None:
    for name in ("iris", "loom", "spark"):
        first = {"iris": 1, "loom": 2000, "spark": 4000}[name]
        store = stage.desk.nodes.machines[name].store
        store.apply(c.Add(tuple(a_task(first + n) for n in range(700))))
    found: list[tuple[str, str]] = []
    after, pages = "", 0
    while True:
        said = (await asked(stage, f"tasks?limit=300{f'&after={after}' if after else ''}")).data
        found += [(one["node"], one["uid"]) for one in said["tasks"]]
        pages += 1
        assert said["more"] is (said["next"] is not None)
        if said["next"] is None:
            break
        after = said["next"]
    assert pages == 7
    assert len(found) == len(set(found)) == 2100
    assert [node for node, _ in found] == sorted(node for node, _ in found)


@pytest.mark.parametrize("field", ["subject", "body", "skills", "tags", "domain", "source", "ref"])
async def test_no_text_of_a_task_is_markup_in_any_answer(stage: Stage, field: str) -> None:
    """A hundred scripts in every field. Without the escapes of `plain_json`, this fails."""
    many = field in ("skills", "tags")
    texts = ["".join(char for char in text if char.isprintable()) for text in SCRIPTS]
    texts = [f"{text[:58]}{n}" if many else text for n, text in enumerate(texts)]
    if field in ("domain", "source"):
        texts = [f"x{n}" for n in range(len(texts))]  # these hold names; others are refused
    tasks = tuple(a_task(n, **{field: [text] if many else text}) for n, text in enumerate(texts, 1))
    said = stage.desk.nodes.machines["iris"].store.apply(c.Add(tasks))
    assert {one.outcome for one in said} == {"added"}
    for path in ("tasks?limit=1000", f"tasks/{uid(1)}", f"why/{uid(2)}", "plan", "status", "now"):
        answer = await asked(stage, path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not set(b"<>&") & set(answer.body), path
        json.loads(answer.body)
    listed = (await asked(stage, "tasks?limit=1000")).data["tasks"]
    assert len(listed) == len(texts)
    if field == "subject":
        assert [one["subject"] for one in listed] == texts


async def test_what_is_asked_for_in_an_error_is_no_markup_either(stage: Stage) -> None:
    for path in ("/api/v1/panels/<script>", "/api/v1/tasks?<script>=1", "/<script>", "/act/<x>"):
        said = await stage.ask(path)
        assert said.status >= 400
        assert b"<" not in said.body


def test_every_path_of_the_document_answers_as_the_document_says(stage: Stage) -> None:
    """Questions that fit and those that do not, made by schemathesis from the document alone."""
    stage.desk.nodes.add("iris", 1, 2, 3)
    schema = schemathesis.openapi.from_dict(
        json.loads(asyncio.run(stage.ask("/api/openapi.json")).body))
    many = 0
    for found in schema.get_all_operations():
        operation = found.ok()  # type: ignore[union-attr]
        many += 1
        for mode in GenerationMode:
            if mode.is_negative and not any(True for _ in operation.iter_parameters()):
                continue
            _answers(stage, operation, mode)
    assert many > len(QUESTIONS)


def _answers(stage: Stage, operation: Any, mode: GenerationMode) -> None:
    @settings(max_examples=6, deadline=None, database=None, derandomize=True,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def answers(case: Any) -> None:
        kwargs = case.as_transport_kwargs(base_url=f"http://{HOST}")
        request = requests.Request(**{
            name: kwargs[name] for name in ("method", "url", "headers", "params", "cookies")
            if kwargs.get(name) is not None}).prepare()  # fmt: skip
        path = (request.url or "").removeprefix(f"http://{HOST}")
        said = asyncio.run(stage.ask(path or "/"))
        assert said.status != 500 or said.code != "ARC-FAULT", said.body
        case.validate_response(
            Response(said.status, {name: [value] for name, value in said.headers.items()},
                     said.body, request, 0.01, verify=False),
            checks=[checks.status_code_conformance, checks.content_type_conformance,
                    checks.response_schema_conformance],
        )  # fmt: skip

    answers()
