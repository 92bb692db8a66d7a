"""States what may happen around the nodes: who may send what, when, and every kind of trouble.

An answer, once given, is remembered for ever and may be acted upon at any time by any hub. That is
what lost, doubled and late messages, crashed hubs and several hubs come to: a command that was
ever allowed may arrive now, again or never.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from tests.model import reown as own
from tests.model.protocol import (
    ESCROW,
    HELD,
    READY,
    STARTED,
    Command,
    Move,
    Node,
    Row,
    abort,
    activate,
    commit,
    drop,
    escrow,
    forget,
    highest_epoch,
    hold,
    may_forget,
    raise_floor,
    refuse,
    settle,
)

NAMES = "ABC"
ENDED = frozenset(("activated", "dropped", "refused", "too_old"))


class World(NamedTuple):
    """Everything there is: the nodes, and what the hubs have planned and been told."""

    nodes: tuple[Node, ...]
    moves: tuple[Move, ...] = ()
    starts: tuple[int, ...] = ()          # nodes that started the task and are not proven dead
    fenced: own.Fenced = frozenset()
    reowns: tuple[own.Reown, ...] = ()
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
    heard_before_hello: bool = True       # more than the node allows: old commands reach it first
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
# command, function, at the giver?, what some hub must have been told before it may be sent
SENT: tuple[tuple[str, Command, bool, str], ...] = (
    ("escrow", escrow, True, ""),
    ("hold", hold, False, "escrowed"),
    ("refuse", refuse, False, "escrowed"),
    ("commit", commit, True, "held"),
    ("activate", activate, False, "committed"),
    ("abort", abort, True, ""),
    ("drop", drop, False, "aborted"),
)
SENT_TOO_EARLY = {"commit_after_hold": ("commit", "escrowed"),
                  "activate_after_commit": ("activate", "held")}


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


def plans(world: World, scope: Scope) -> Iterator[Step]:
    """A hub saw a READY task and plans to move it; the plan may be carried out much later."""
    x = len(world.moves)
    if x == scope.transfers:
        return
    for n, node in enumerate(world.nodes):
        if node.row is None or node.row.state != READY or node.mode in ("off", "quarantined"):
            continue
        for taker, other in enumerate(world.nodes):
            if taker == n or (x == 0 and scope.alike and taker > 1):
                continue
            move = Move(n, taker, node.row.epoch, node.incarnation, other.incarnation)
            text = f"plan x{x + 1}: {NAMES[n]} to {NAMES[taker]} at epoch {move.epoch}"
            yield text, world._replace(moves=(*world.moves, move))


def arrivals(world: World, x: int, scope: Scope) -> Iterator[Step]:
    """Every command of this transfer that somebody may have sent by now."""
    move = world.moves[x]
    for name, command, at_giver, needs in SENT:
        told = needs
        if scope.off in SENT_TOO_EARLY and SENT_TOO_EARLY[scope.off][0] == name:
            told = SENT_TOO_EARLY[scope.off][1]
        if told and told not in move.answers:
            continue
        yield from arrive(world, x, name, command, at_giver=at_giver, scope=scope)
    if scope.forgetting and "ended" in move.answers and move.answers & {"committed", "aborted"}:
        yield from arrive(world, x, "settled", settle, at_giver=True, scope=scope)


def arrive(world: World, x: int, name: str, command: Command, *, at_giver: bool, scope: Scope
           ) -> Iterator[Step]:
    """One command reaches its node, and its answer may be known to every hub from now on."""
    move = world.moves[x]
    n = move.giver if at_giver else move.taker
    node = world.nodes[n]
    meant = move.giver_incarnation if at_giver else move.taker_incarnation
    if not listens(node, meant, scope):
        return
    after, answer = command(node, x, world.moves, scope.off)
    if answer in ("escrowed", "held"):
        after = hear_of(after, move, at_giver=at_giver)
    answers = move.answers | told_by(answer, at_giver=at_giver, scope=scope)
    if after is node and answers == move.answers:
        return
    moves = (*world.moves[:x], move._replace(answers=answers), *world.moves[x + 1:])
    yield (f"{name} x{x + 1} at {NAMES[n]}: {answer}",
           put(world, n, after)._replace(moves=moves))


def listens(node: Node, meant: int, scope: Scope) -> bool:
    """A node that is off hears nothing, a quarantined one nothing of transfers, a renamed one
    nothing that was meant for its earlier self.
    """
    if node.mode in ("off", "quarantined"):
        return False
    if node.mode == "waiting" and not scope.heard_before_hello:
        return False
    return node.incarnation == meant or scope.off == "other_incarnation"


def hear_of(node: Node, move: Move, *, at_giver: bool) -> Node:
    """A transfer tells each end the other end's incarnation."""
    peer, heard = ((move.taker, move.taker_incarnation) if at_giver
                   else (move.giver, move.giver_incarnation))
    if node.peers[peer] >= heard:
        return node
    return node._replace(peers=(*node.peers[:peer], heard, *node.peers[peer + 1:]))


def told_by(answer: str, *, at_giver: bool, scope: Scope) -> frozenset[str]:
    """The part of an answer that some later command depends on."""
    if at_giver:
        return frozenset({answer} & {"escrowed", "committed", "aborted"})
    if scope.forgetting and answer in ENDED:
        return frozenset({"ended"})
    return frozenset({answer} & {"held"})


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


def may_start(node: Node, off: str) -> bool:
    """Only READY runs; between boot and hello only what was never moved in nor offered."""
    if node.row is None or node.row.state != READY or node.mode in ("off", "quarantined"):
        return False
    if node.mode == "active" or off == "wait_for_hello":
        return True
    return not node.row.touched


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


def reown_steps(world: World, scope: Scope) -> Iterator[Step]:
    """A hub names a re-own by what it sees, bars all others, then tells the winner."""
    now = tuple(node.incarnation for node in world.nodes)
    if len(world.reowns) < scope.reowns and (world.fenced or max(now) > 1):
        stale = {(*now[:n], name[0], *now[n + 1:]) for n, name in world.fenced}
        named = max(len(world.reowns), max(highest_epoch(node, world.moves)
                                           for node in world.nodes) // own.EPOCH_STEP)
        for view in sorted({now} if scope.recovering else {now} | stale):
            plan = own.Reown(own.EPOCH_STEP * (named + 1), view,
                             frozenset(n for n, name in world.fenced if view[n] == name[0]))
            yield (f"name a re-own at epoch {plan.epoch}, seeing incarnations {view}",
                   world._replace(reowns=(*world.reowns, plan)))
    for k, plan in enumerate(world.reowns):
        for n, node in enumerate(world.nodes):
            meant = node.incarnation == plan.view[n] or scope.off == "other_incarnation"
            if node.mode != "off" and meant:
                yield from reown_arrivals(world, k, n, scope)


def reown_arrivals(world: World, k: int, n: int, scope: Scope) -> Iterator[Step]:
    """A bar reaches a node, or the winner is told, all others being barred or fenced."""
    plan, node = world.reowns[k], world.nodes[n]
    after, answer = own.bar(node, n, plan, world.moves, fenced=world.fenced, off=scope.off)
    barred = plan.barred | {n} if answer == "barred" else plan.barred
    if after is not node or barred != plan.barred:
        told = (*world.reowns[:k], plan._replace(barred=barred), *world.reowns[k + 1:])
        yield (f"bar at {NAMES[n]}, epoch {plan.epoch}: {answer}",
               put(world, n, after)._replace(reowns=told))
    others = frozenset(range(len(world.nodes))) - {n}
    if others <= plan.barred | plan.excluded:
        after, answer = own.reown(node, n, plan, world.moves, fenced=world.fenced, off=scope.off)
        if after is not node:
            yield f"re-own at {NAMES[n]}, epoch {plan.epoch}: {answer}", put(world, n, after)


def put(world: World, n: int, node: Node) -> World:
    """The same world with one node replaced."""
    return world._replace(nodes=(*world.nodes[:n], node, *world.nodes[n + 1:]))


def without(starts: tuple[int, ...], n: int) -> tuple[int, ...]:
    """The starts that are not proven dead once those on node `n` are."""
    return tuple(m for m in starts if m != n)


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
