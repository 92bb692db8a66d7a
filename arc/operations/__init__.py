"""Everything that may be asked of a hub, each by one name; the same with a hub running or not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject

if TYPE_CHECKING:
    from arc.hub import Hub


@dataclass(frozen=True)
class Told:
    """What came of one operation, as plain JSON: the CLI makes text of it, `--json` prints it."""

    data: JsonObject
    exit: int = 0
    partial: tuple[JsonObject, ...] = ()
    warnings: tuple[str, ...] = ()


Operation = Callable[["Hub", JsonObject], Awaitable[Told]]

# name: module of this package; the function there has the operation's name with `_` for `.`
OPERATIONS: dict[str, str] = {}


def operation(name: str) -> Operation:
    """The function behind a name; its module is loaded when it is first asked for."""
    module = import_module(f"{__name__}.{OPERATIONS[name]}")
    found: Operation = getattr(module, name.replace(".", "_"))
    return found
