"""Holds answers whose JSON is written already against the same answers as documents."""

from __future__ import annotations

import json

import pytest

from agent_node.commands import Because
from agent_node.moves import Transferred
from agent_node.strict import LINE_MAX
from agent_node.task import to_wire
from agent_node.wire import Id, Written, result_line, told_out, transferred_out
from tests.builders import a_task, xfer


@pytest.mark.parametrize("asked", [None, 7, 'a "quoted" é'])
def test_a_written_result_is_the_line_that_its_document_is(asked: Id) -> None:
    """Fails when the id is put into the line as it came."""
    document = {"results": [{"xfer": xfer(), "outcome": "refused"}]}
    written = Written(json.dumps(document, separators=(",", ":")))
    assert result_line(asked, written) == result_line(asked, document)  # type: ignore[arg-type]


def test_a_written_result_that_no_line_holds_is_batch_full() -> None:
    line = result_line(1, Written(json.dumps("x" * LINE_MAX)))
    assert json.loads(line)["error"]["code"] == "batch_full"


def test_what_was_told_stands_where_the_task_would() -> None:
    """Fails when a refusal among them loses its reason."""
    task, no = a_task(body="a\nb"), Because("pinned", 'it is "pinned"')
    refused = Transferred(xfer(2), "refused", no)
    told = Transferred(xfer(1), "escrowed", None, None, "0" * 64, json.dumps(to_wire(task)))
    whole = told._replace(task=task, told=None)
    assert json.loads(told_out([told, refused]).text) == {
        "results": [transferred_out(whole), transferred_out(refused)]
    }
