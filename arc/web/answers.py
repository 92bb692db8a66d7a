"""Says what came of a request: in the envelope of the commands, and safe in any browser."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from agent_node.clock import iso
from agent_node.envelope import Answer, Trouble, failure, success
from agent_node.text import safe_text
from arc.errors import ArcError
from arc.operations import Told

from .errors import status_of
from .surroundings import Now

# In JSON these stand in texts alone, so they may be written another way: what a task put into its
# subject is no markup even where somebody reads the answer as a page.
_MARKUP = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
JSON = "application/json"


def plain_json(line: str) -> bytes:
    """One line of JSON without a character that markup begins with."""
    return line.translate(_MARKUP).encode("ascii") + b"\n"


def told(schema: str, what: Told, clock: Now, *, status: int = 200) -> Response:
    """An answer, whole or in part, as `--json` prints it."""
    answer = Answer(what.data, "", what.exit, what.warnings, what.partial)
    line = success(f"arc.{schema}/1", iso(clock.now()), answer)
    return Response(plain_json(line), status, media_type=JSON)


def refused(
    schema: str, error: ArcError, clock: Now, headers: Mapping[str, str] | None = None
) -> Response:
    """An error, as `--json` prints it, with the status that HTTP has for it."""
    trouble = Trouble(error.code, safe_text(str(error), keep="\n"), error.hint, error.where)
    line = failure(f"arc.{schema}/1", iso(clock.now()), trouble)
    return Response(plain_json(line), status_of(error), dict(headers or {}), JSON)
