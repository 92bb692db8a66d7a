"""Gathers what the disk says about attempts, and lets ownership be taken back only with it."""

from __future__ import annotations

from collections.abc import Iterable

from . import moves
from .attempts import AttemptFolder, attempt_folder, attempt_numbers
from .commands import Because, Sender
from .desk import Desk
from .errors import Refused
from .home import holder_of
from .other_user import find_other_user
from .queries import OpenAttempt, OpenAttempts, ShowTask
from .requests import REASON_MAX, Request
from .strict import JsonObject
from .wire import because_out, brief


def need_alone(request: Request, what: str) -> None:
    """Return only with a person's word that no other copy lives: no other node is asked here."""
    if not request.fields.flag("alone"):
        raise Refused(
            "needs_alone",
            f"{what} on this node alone needs --alone: your word that no other node has it;"
            " the hub asks them all: arc tasks resolve",
        )


def take_back(desk: Desk, request: Request, uids: list[str], sender: Sender) -> JsonObject:
    """READY again, each at an epoch above all that was; refused where a program may still live."""
    need_alone(request, "taking a task back")
    results: dict[str, JsonObject] = {}
    targets: list[moves.Target] = []
    for uid in uids:
        shown = desk.store.read(ShowTask(uid))
        if shown is None:
            text = f"{desk.settings.name} never had this task"
            results[uid] = _result(moves.Reowned(uid, "refused", Because("unknown_task", text)))
        else:
            targets.append(moves.Target(uid, shown.task.epoch + moves.REOWN_STEP))
    if targets:
        here = [target.uid for target in targets]
        command = moves.Reown(
            targets=tuple(targets),
            evidence=evidence_of(desk, here),
            living=living(desk, here),
            alone=True,
            sender=sender,
        )
        for owned in desk.apply(request, command):
            results[owned.uid] = _result(owned) | _task_of(desk, owned.uid)
    return {"results": [results[uid] for uid in uids]}


def _result(owned: moves.Reowned) -> JsonObject:
    return {"uid": owned.uid, "outcome": owned.outcome, **because_out(owned.because)}


def _task_of(desk: Desk, uid: str) -> JsonObject:
    shown = desk.store.read(ShowTask(uid))
    return {"task": brief(shown.task)} if shown else {}


def release_node(desk: Desk, request: Request, sender: Sender) -> None:
    """End the quarantine of the whole node."""
    need_alone(request, "ending the quarantine")
    reason = request.fields.text_or("reason", "", REASON_MAX)
    desk.apply(request, moves.Release(reason, sender))


def evidence_of(desk: Desk, uids: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The numbers of the attempts that left a folder, by uid; only of those that left one."""
    found = ((uid, attempt_numbers(str(desk.home.tasks), uid)) for uid in uids)
    return {uid: numbers for uid, numbers in found if numbers}


def living(desk: Desk, uids: Iterable[str]) -> frozenset[str]:
    """Those of which an attempt is not proven dead: running, left over, or not to be known."""
    last = {(one.uid, one.n): one for one in desk.store.read(OpenAttempts(parked=True))}
    found = evidence_of(desk, uids)
    return frozenset(
        uid
        for uid, numbers in found.items()
        if any(_may_live(desk, uid, n, last.get((uid, n))) for n in numbers)
    )


def _may_live(desk: Desk, uid: str, n: int, known: OpenAttempt | None) -> bool:
    """A token that the database does not know stands in the shim's own record, if it started."""
    from .evidence import Dead, judge_attempt, read_shim_record
    from .processes import Identity

    folder = attempt_folder(str(desk.home.tasks), uid, n)
    record = read_shim_record(folder)
    token = known.token if known else record.token if record else "never started"
    shim = None
    if known is not None and known.pid is not None and known.start_ticks is not None:
        shim = Identity(known.pid, known.start_ticks, known.boot_id)
    boot = known.boot_id if known else None
    if isinstance(judge_attempt(folder, token, claimed_boot=boot, shim=shim), Dead):
        return False
    return not _is_dead_to_its_user(desk, folder, token)


def _is_dead_to_its_user(desk: Desk, folder: AttemptFolder, token: str) -> bool:
    """Another user's processes are seen by that user alone; it is asked here and now, bounded."""
    from .evidence import Dead, owner_of
    from .other_evidence import judge_other, looking, sight_of

    names = {agent.run_as for agent in desk.settings.agents if agent.run_as is not None}
    users = [user for user in map(find_other_user, sorted(names))
             if user.uid == owner_of(folder.shim_json)]  # fmt: skip
    if not users:
        return False
    user = users[0]
    from .errands import ask_now

    shims = [one.pid for one in desk.store.read(OpenAttempts()) if one.pid is not None]
    asked = looking(folder, token, user.uid, shims=shims, daemon=holder_of(desk.home))
    return isinstance(judge_other(folder, sight=sight_of(ask_now(user, asked))), Dead)
