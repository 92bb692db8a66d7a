"""Answers the requests by which tasks move between two queues, and by which a hub is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from . import __version__, moves
from .clock import iso
from .commands import Because
from .desk import Desk, Session
from .errors import BadInput, NodeError, Refused
from .fields import text
from .orders import merged
from .ownership import evidence_of, living
from .priority import WEIGHT_MAX
from .queries import Facts
from .requests import Fields, Request
from .strict import JsonObject
from .task import task_from
from .wire import OLDEST_WIRE, WIRE, Written, reowned_out, told_out, transferred_out

MOVES_MAX = 1000
TARGETS_MAX = 10_000
FENCED_MAX = 1000
TERM_MAX = 2**53
EPOCH_MAX = 2**62
LEASE_S = 60.0
LEASE_MAX_S = 86_400  # nobody means more; what is meant is then put between our bounds

Settling = TypeVar("Settling", moves.Commit, moves.Abort, moves.Settled, moves.Drop)


class WireVersion(NodeError):
    """There is no version of the wire that both sides speak; nothing was agreed."""

    code = "wire_version"


def answer_hello(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Who the hub is from here on. A lower term than one seen before is known, and refused."""
    asked = request.fields
    wire = _agreed_wire(asked)
    hello = moves.Hello(
        fleet=asked.node("fleet"),
        hub=asked.node("hub"),
        term=asked.whole("term", 0, TERM_MAX),
        boot_id=desk.clock.boot_id(),
        domains=asked.mapping("domains") if asked.has("domains") else None,
        fenced=asked.flag("fenced"),
        incarnation=asked.maybe_text("incarnation"),
        instance=asked.ulid("instance") if asked.has("instance") else None,
    )
    try:
        desk.greet(request, hello)
    except Refused:
        _be(session, hello)  # so all that it says from here on is refused, too
        raise
    _be(session, hello)  # only now: nobody is obeyed with a term that is not on the disk
    facts = desk.store.read(Facts())
    return {
        "wire": wire,
        "node": facts.name,
        "incarnation": facts.incarnation,
        "generation": facts.generation,
        "term": facts.term,
        "state": facts.state,
        "waits_for_hub": facts.waits_for_hub,
        "version": __version__,
        "at": iso(desk.clock.now()),
    }


def _be(session: Session, hello: moves.Hello) -> None:
    session.term, session.hub, session.instance = hello.term, hello.hub, hello.instance


def _agreed_wire(asked: Fields) -> int:
    """The newest version that both speak."""
    if not asked.has("wire"):
        return WIRE
    said = asked.entries("wire", 2)
    lowest, highest = (said[0], said[-1]) if said else (None, None)
    if type(lowest) is not int or type(highest) is not int:
        raise BadInput("should be the lowest and the highest version, as [1, 1]", "wire")
    agreed = min(highest, WIRE)
    if agreed < max(lowest, OLDEST_WIRE):
        raise WireVersion(f"you speak {lowest} to {highest}, this node {OLDEST_WIRE} to {WIRE}")
    return agreed


def answer_escrow(desk: Desk, session: Session, request: Request) -> JsonObject | Written:
    """These tasks are set aside for another node; each comes whole, with its hash."""
    asked, bounds = request.fields, desk.settings
    lease_s, peer = asked.seconds("lease_s", LEASE_MAX_S) or LEASE_S, _peer_of(asked)
    command = moves.Escrow(
        to=asked.node("to"),
        why=_why(asked),
        lease_s=min(max(lease_s, bounds.lease_min_s), bounds.lease_max_s),
        moves=tuple(_move(entry, peer) for entry in asked.objects("moves", MOVES_MAX)),
        sender=session.sender(request),
        even_if_pinned=asked.flag("even_if_pinned"),
        terse=asked.flag("terse"),
    )
    # The store sets aside no more than one line holds, and refuses the rest as `batch_full`.
    results = desk.apply(request, command)
    if command.terse:
        return told_out(results)
    return {"results": [transferred_out(moved) for moved in results]}


def _why(asked: Fields) -> moves.Why:
    return asked.word("why", "stolen", "routed", "drained", "moved", "retried")


def _move(entry: Fields, peer: str | None) -> moves.Move:
    return moves.Move(
        entry.ulid("xfer"), entry.ulid("uid"), entry.whole("epoch", 1, EPOCH_MAX),
        _peer_of(entry, peer),
    )  # fmt: skip


def _peer_of(entry: Fields, otherwise: str | None = None) -> str | None:
    """The incarnation of the other side: said by the move itself, or once for all of them."""
    said = entry.maybe_text("peer_incarnation")
    return otherwise if said is None else said


def answer_hold(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Copies are kept that do not run yet. What cannot be read is refused alone."""
    asked = request.fields
    offers: list[moves.Offer] = []
    unread: dict[int, moves.Unread] = {}
    peer = _peer_of(asked)
    for place, entry in enumerate(asked.objects("moves", MOVES_MAX)):
        xfer = entry.ulid("xfer")
        try:
            offers.append(_offer(entry, peer, xfer))
        except BadInput as error:
            because = Because("bad_task", str(error)[:500])
            unread[place] = moves.Unread(xfer, _uid_of(entry), because, peer)
    command = moves.Hold(
        giver=asked.node("from"),
        why=_why(asked),
        offers=tuple(offers),
        sender=session.sender(request),
        even_if_stopped=asked.flag("even_if_stopped"),
        unread=tuple(unread.values()),
    )
    results = desk.apply(request, command) if offers or unread else ()
    bad = dict(zip(unread, results[len(offers):], strict=True))
    return {"results": [transferred_out(moved) for moved in merged(bad, results[:len(offers)])]}


def _uid_of(entry: Fields) -> str:
    """Of which task an offer is that cannot be read; empty where it does not say so."""
    try:
        return entry.inside("task").ulid("uid")
    except BadInput:
        return ""


def _offer(entry: Fields, peer: str | None, xfer: str) -> moves.Offer:
    document = entry.inside("task").values
    if document.get("epoch") is None:
        raise BadInput("missing; a task that moves says its epoch", "epoch")
    task = task_from(document)
    sha256, weight = str(entry.take("sha256", text(64))), entry.points("weight", WEIGHT_MAX)
    return moves.Offer(xfer, task, sha256, _peer_of(entry, peer), weight)


Handler = Callable[[Desk, Session, Request], JsonObject | Written]


def settling(kind: type[Settling]) -> Handler:
    """The handler of commit, abort, settled or drop."""

    def answer(desk: Desk, session: Session, request: Request) -> JsonObject:
        command: Settling = kind(_settles(request), session.sender(request))
        results = desk.apply(request, command)
        return {"results": [transferred_out(moved) for moved in results]}

    return answer


def answer_activate(desk: Desk, session: Session, request: Request) -> JsonObject:
    """The copies that are held for these transfers wait here from now on.

    Where nothing waited, whoever is free claims in the same transaction. Where something did,
    nobody here may run that, and who asks is not kept waiting for what is likely the same again.
    """
    command = moves.Activate(_settles(request), session.sender(request))
    if desk.store.has_ready:
        results = desk.apply(request, command)
    else:
        results = desk.take_in(request, command, len(command.moves))
    return {"results": [transferred_out(moved) for moved in results]}


def _settles(request: Request) -> tuple[moves.Settle, ...]:
    peer = _peer_of(request.fields)
    return tuple(_settle(entry, peer) for entry in request.fields.objects("moves", MOVES_MAX))


def _settle(entry: Fields, peer: str | None) -> moves.Settle:
    return moves.Settle(
        entry.ulid("xfer"), entry.ulid("uid"), entry.node("peer"), _peer_of(entry, peer),
        entry.maybe_text("ended"),
    )  # fmt: skip


def answer_bar(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Tombstones for tasks that are to live elsewhere; what lies on the disk speaks against it."""
    targets, fenced = _targets(request), _incarnations(request, "fenced")
    evidence = evidence_of(desk, [target.uid for target in targets])
    nodes = _incarnations(request, "nodes")
    command = moves.Bar(targets, fenced, nodes, evidence, session.sender(request))
    return {"results": [reowned_out(owned) for owned in desk.apply(request, command)]}


def answer_reown(desk: Desk, session: Session, request: Request) -> JsonObject:
    """This node becomes the one owner, unless one of its own attempts may still live.

    `alone`: a person has named these tasks, so one that is PARKED here runs again.
    """
    targets, fenced = _targets(request), _incarnations(request, "fenced")
    uids = [target.uid for target in targets]
    command = moves.Reown(
        targets=targets,
        fenced=fenced,
        nodes=_incarnations(request, "nodes"),
        evidence=evidence_of(desk, uids),
        living=living(desk, uids),
        alone=request.fields.has("alone") and request.fields.flag("alone"),
        sender=session.sender(request),
    )
    return {"results": [reowned_out(owned) for owned in desk.apply(request, command)]}


def _targets(request: Request) -> tuple[moves.Target, ...]:
    return tuple(
        moves.Target(entry.ulid("uid"), entry.whole("epoch", 1, EPOCH_MAX))
        for entry in request.fields.objects("uids", TARGETS_MAX)
    )


def _incarnations(request: Request, name: str) -> tuple[moves.Fenced, ...]:
    if not request.fields.has(name):
        return ()
    entries = request.fields.objects(name, FENCED_MAX)
    return tuple(
        moves.Fenced(entry.node("node"), entry.ulid("incarnation")) for entry in entries
    )
