"""Says how many slots the nodes of fleet.yaml have: as many as each said when it was heard last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from agent_node.text import counted
from arc.errors import NoHistory
from arc.history import History

from .wanted import SLOTS_MAX, Wanted, slots_of

if TYPE_CHECKING:
    from arc.settings import FleetSettings

ASSUMED = 1
NAMED_MAX = 3


@dataclass(frozen=True)
class SlotsKnown:
    """Slots by node, of whom they are only assumed, and where the others are from."""

    of: dict[str, int]
    assumed: tuple[str, ...]
    source: str  # typed | heard

    @property
    def sentence(self) -> str:
        """How many, and who says so."""
        each = set(self.of.values())
        many = (f"{counted(next(iter(each)), 'slot')} each" if len(each) == 1
                else f"{counted(sum(self.of.values()), 'slot')} in all")  # fmt: skip
        if self.source == "typed":
            return many
        if len(self.assumed) == len(self.of):
            return f"{many}, assumed: none was ever heard"
        if not self.assumed:
            return f"{many} as last heard"
        named = ", ".join(self.assumed[:NAMED_MAX])
        others = len(self.assumed) - NAMED_MAX
        named += f" and {others} more" * (others > 0)
        return f"{many} as last heard, {counted(ASSUMED, 'slot')} assumed of {named}, never heard"

    @property
    def facts(self) -> JsonObject:
        """The same for programs; `slots` is None where nodes differ."""
        each = set(self.of.values())
        return {"slots": next(iter(each)) if len(each) == 1 else None,
                "slots_of": {**self.of}, "slots_from": self.source,
                "slots_assumed": [*self.assumed]}  # fmt: skip


def slots_known(wanted: Wanted, fleet: FleetSettings) -> SlotsKnown:
    """What `--slots` says of all of them; without it each node's own word."""
    names = [node.name for node in fleet.nodes]
    if wanted.slots is not None:
        return SlotsKnown(dict.fromkeys(names, slots_of(wanted)), (), "typed")
    heard = _heard(fleet)
    return SlotsKnown({name: min(heard.get(name, ASSUMED), SLOTS_MAX) for name in names},
                      tuple(name for name in names if name not in heard), "heard")  # fmt: skip


def _heard(fleet: FleetSettings) -> dict[str, int]:
    """Nothing where no hub has looked yet: a fleet may be simulated before there is one."""
    try:
        return History(fleet.state).slots()
    except NoHistory:
        return {}
