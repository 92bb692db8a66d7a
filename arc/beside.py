"""Keeps what nodes said when they were asked for more than their reports hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .decisions.nobodys_work import NobodysWork
from .graph_answers import GraphLine


@dataclass(frozen=True)
class Beside:
    """Of what dead letters died, which graphs run or failed, and what waits with the hub and is
    nobody's work: as the stores said it last.
    """

    named: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (node, sentence): fuller
    graphs: Mapping[str, tuple[GraphLine, ...]] = field(default_factory=dict)  # by store
    unread: frozenset[str] = frozenset()  # stores whose graphs could not be asked for
    nobodys: tuple[NobodysWork, ...] = ()  # of the first tasks of the hub's own queue

    def of_stores(self, wanted: frozenset[str]) -> Beside:
        """The same without graphs of other stores; who was never asked could not be read."""
        graphs = {name: some for name, some in self.graphs.items() if name in wanted}
        return replace(self, graphs=graphs, unread=wanted - graphs.keys())

    def with_graphs(self, store: str, said: tuple[GraphLine, ...] | None) -> Beside:
        """With what one store says now; None: it cannot be asked."""
        graphs = {name: some for name, some in self.graphs.items() if name != store}
        if said is None:
            return replace(self, graphs=graphs, unread=self.unread | {store})
        return replace(self, graphs={**graphs, store: said}, unread=self.unread - {store})
