"""Holds a talk with a node that was met, and what is known of the node as long as it lasts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent_node.strict import JsonObject
from arc.errors import OtherHub

from . import Met
from .answers import changes
from .talk import Talk


@dataclass(eq=False)
class Session:
    """One talk, what the node answered to its hello, and whether its news is heard."""

    name: str
    talk: Talk
    met: Met
    since: float
    hears: bool = False

    def check(self, do: str, fields: JsonObject) -> None:
        """Return where this may be asked; `OtherHub`: the node obeys another hub, as it said."""
        if self.met.old_term and changes(do, fields):
            raise OtherHub(f"{self.name}: {self.met.old_term}; {do} was not sent", where=self.name)

    async def ask(self, do: str, fields: JsonObject, timeout_s: float) -> JsonObject:
        """The result of one request. Another hub may have come since the hello: a node that refuses
        a change for that is known by it from then on.
        """
        try:
            return await self.talk.ask(do, fields, timeout_s)
        except OtherHub as error:
            because = str(error).removeprefix(f"{self.name}: ")
            self.met = replace(self.met, old_term=because)
            raise
