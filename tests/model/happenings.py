"""States everything that may happen: commands arriving, nodes acting alone, and trouble."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import reown as own
from tests.model.protocol import (
    ESCROW,
    HELD,
    STARTED,
    Node,
    abort,
    drop,
    forget,
    may_forget,
    raise_floor,
)
from tests.model.senders import arrivals, plans, reown_steps
from tests.model.world import NAMES, Scope, Step, World, may_start, put, without


def steps(world: World, scope: Scope) -> Iterator[Step]:
    """Everything that may happen next."""
    if not scope.recovering:
        yield from plans(world, scope)
        yield from troubles(world, scope)
    for x in range(len(world.moves)):
        yield from arrivals(world, x, scope)
    for n, node in enumerate(world.nodes):
        yield from own_steps(world, n, node, scope)
    if scope.reowns:
        yield from reown_steps(world, scope)


def own_steps(world: World, n: int, node: Node, scope: Scope) -> Iterator[Step]:
    """What a node does by itself: run, end a lease, come up, say hello, forget."""
    at, row = NAMES[n], node.row
    if row is not None and may_start(node, scope.off):
        running = node._replace(row=row._replace(state=STARTED), attempt=node.boot)
        yield f"{at} starts the task", put(world, n, running)._replace(
            starts=(*world.starts, n))
    if row is not None and node.mode in ("active", "waiting"):
        if row.state == ESCROW:
            after, _ = abort(node, row.xfer, world.moves, scope.off)
            yield f"{at}: the lease of x{row.xfer + 1} ends", put(world, n, after)
        if row.state == HELD and scope.off == "no_drop_by_a_clock":
            after, _ = drop(node, row.xfer, world.moves, scope.off)
            yield f"{at}: drops x{row.xfer + 1} by its clock", put(world, n, after)
    if node.mode == "quarantined" and (row is None or row.state == STARTED):
        yield f"{at}: nothing is left to decide, quarantine ends", put(
            world, n, node._replace(mode="active"))
    if node.mode in ("off", "waiting"):
        yield from coming_back(world, n, node, scope)
    if scope.forgetting:
        yield from forgettings(world, n, node, scope)


def forgettings(world: World, n: int, node: Node, scope: Scope) -> Iterator[Step]:
    """Old records age out; so do those of other tasks, which raises the floor just the same."""
    for x in range(len(world.moves)):
        if may_forget(node, x, ended=bool(world.starts)):
            yield f"{NAMES[n]} forgets x{x + 1}", put(world, n, forget(node, x, scope.off))
    newest = len(world.moves) - 1
    if node.floor < newest and scope.off != "xfer_floor":
        yield (f"{NAMES[n]} forgets another task's transfer",
               put(world, n, raise_floor(node, newest, scope.off)))


def troubles(world: World, scope: Scope) -> Iterator[Step]:
    """Power fails; a database is copied, and later put back."""
    for n, node in enumerate(world.nodes):
        at = NAMES[n]
        if n in scope.loses_power and world.power_cuts < scope.troubles and node.mode == "active":
            off = put(world, n, node._replace(mode="off"))
            yield f"{at} loses power", off._replace(power_cuts=world.power_cuts + 1)
        if n in scope.is_restored and world.restores < scope.troubles and node.mode == "active":
            if node.backup is None:
                yield f"{at} is backed up", put(world, n, own.back_up(node))
            else:
                back = put(world, n, own.restore(node, scope.off))
                yield f"{at} is restored", back._replace(restores=world.restores + 1)


def coming_back(world: World, n: int, node: Node, scope: Scope) -> Iterator[Step]:
    """A node that is off may be fenced by a person, and may boot; the hub then greets it."""
    at, fenced = NAMES[n], node.incarnation in fenced_names(world, n)
    if node.mode == "off":
        if not fenced:
            name = (n, (node.incarnation, node.boot))
            yield f"a person fences {at}", world._replace(
                fenced=world.fenced | {name}, starts=without(world.starts, n))
        yield f"{at} boots", put(world, n, own.boot(node, interrupted=False))
        if node.row is not None and node.row.state == STARTED:
            proven = world._replace(starts=without(world.starts, n))
            yield f"{at} boots; the attempt is dead", put(
                proven, n, own.boot(node, interrupted=True))
    elif fenced and scope.off != "hello_tells_the_fence":
        new_name = scope.off != "new_incarnation_on_fence"
        yield f"hello to {at}: you were fenced", put(
            world, n, own.quarantine(node, new_name=new_name))
    else:
        yield f"hello to {at}", put(world, n, node._replace(mode="active"))


def fenced_names(world: World, n: int) -> set[int]:
    """The incarnations of this node that were declared off."""
    return {name[0] for m, name in world.fenced if m == n}
