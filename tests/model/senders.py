"""States who may send which command, when, and to whom it still matters when it arrives.

An answer, once given, is remembered for ever and may be acted upon at any time by any hub. That is
what lost, doubled and late messages, crashed hubs and several hubs come to: a command that was
ever allowed may arrive now, again or never.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import reown as own
from tests.model.protocol import (
    READY,
    Command,
    Move,
    Node,
    abort,
    activate,
    commit,
    drop,
    escrow,
    highest_epoch,
    hold,
    refuse,
    settle,
)
from tests.model.world import NAMES, Scope, Step, World, put

ENDED = frozenset(("activated", "dropped", "refused", "too_old"))

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
    if answer == "escrowed" and scope.epoch_from_task and after.row is not None:
        move = move._replace(epoch=after.row.epoch)
    answers = move.answers | told_by(answer, at_giver=at_giver, scope=scope)
    moves = (*world.moves[:x], move._replace(answers=answers), *world.moves[x + 1:])
    if after is node and moves == world.moves:
        return
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
