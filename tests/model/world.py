"""Defines the world of the model: nodes, what hubs were told, the bounds, and what is a fault."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from tests.model.protocol import READY, Move, Node, Row
from tests.model.reown import Fenced, Reown

NAMES = "ABC"


class World(NamedTuple):
    """Everything there is: the nodes, and what the hubs have planned and been told."""

    nodes: tuple[Node, ...]
    moves: tuple[Move, ...] = ()
    starts: tuple[int, ...] = ()          # nodes that started the task and are not proven dead
    fenced: Fenced = frozenset()
    reowns: tuple[Reown, ...] = ()
    power_cuts: int = 0
    restores: int = 0


@dataclass(frozen=True)
class Scope:
    """The bounds of one search, and the one guard that is off."""

    nodes: int = 2
    transfers: int = 2
    forgetting: bool = False
    loses_power: tuple[int, ...] = ()
    is_restored: tuple[int, ...] = ()
    troubles: int = 1                     # power cuts, and restores, at most so many of each
    heard_before_hello: bool = True       # more than a node allows: old commands reach it first
    epoch_from_task: bool = False         # hold goes by the task that came, not by the plan
    reowns: int = 0
    off: str = ""
    alike: bool = True                    # nodes other than A differ in name alone
    recovering: bool = False

    def first(self) -> World:
        """The task is READY on A, where it was born; nobody else has heard of it."""
        empty = Node(None, ("",) * self.transfers, peers=(1,) * self.nodes)
        born = empty._replace(row=Row(READY, 0))
        return World((born, *[empty] * (self.nodes - 1)))

    def recovery(self) -> Scope:
        """No new trouble and no new plans: what is there has to be brought to an end."""
        return replace(self, recovering=True, forgetting=False, reowns=min(self.reowns, 1))


Step = tuple[str, World]


def may_start(node: Node, off: str) -> bool:
    """Only READY runs; between boot and hello only what was never moved in nor offered."""
    if node.row is None or node.row.state != READY or node.mode in ("off", "quarantined"):
        return False
    if node.mode == "active" or off == "wait_for_hello":
        return True
    return not node.row.touched


def broken(world: World, off: str) -> str | None:
    """What is wrong with this state; None when the promise holds in it."""
    if len(world.starts) > 1:
        return "started twice, and the first attempt is not proven dead"
    ready = sum(may_start(node, off) for node in world.nodes)
    if ready + len(world.starts) > 1:
        return "runnable in two places"
    return None


def crashed(world: World) -> World:
    """The same nodes, when every hub has lost every answer; backups play no part any more."""
    return world._replace(
        nodes=tuple(node._replace(backup=None) for node in world.nodes),
        moves=tuple(move._replace(answers=frozenset()) for move in world.moves),
        reowns=(), power_cuts=0, restores=0)


def put(world: World, n: int, node: Node) -> World:
    """The same world with one node replaced."""
    return world._replace(nodes=(*world.nodes[:n], node, *world.nodes[n + 1:]))


def without(starts: tuple[int, ...], n: int) -> tuple[int, ...]:
    """The starts that are not proven dead once those on node `n` are."""
    return tuple(m for m in starts if m != n)
