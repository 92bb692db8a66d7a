"""A node that lies ruins its own tasks at most: twenty ways to draw work in, dump or destroy it.

The fleet is the product: real stores, the hub's own survey, planner, transfer and settling; only
what one node answers is changed on its way to the hub.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_node import commands as c
from agent_node.strict import JsonObject, JsonValue
from arc.decisions.limits import StealLimits
from arc.errors import NodeSilent, OutcomeUnknown
from arc.links import READS, EventHeard, Met, Told
from arc.operations.doubts import doubts_list, doubts_settle
from arc.operations.status import status
from tests.builders import a_task, uid, xfer
from tests.hub_builders import NAMES
from tests.sensors_stage import Scene

LIAR = "loom"
HONEST = tuple(name for name in NAMES if name != LIAR)
WORK = {"forge": 9, "iris": 12, "spark": 0, LIAR: 6}
CYCLES = 6
IDLE = {"idle": True, "idle_since": "2026-03-01T00:00:00.000Z", "pending_count": 0,
        "running_count": 0, "free_slots": 8}  # fmt: skip
Lie = Callable[[str, JsonObject, JsonObject], JsonObject]


def says(**fields: Any) -> Lie:
    """A report in which these fields are lies, and all other answers are true."""
    return lambda do, asked, result: {**result, **fields} if do == "status" else result


def answers(word: str, change: Callable[[JsonObject, JsonObject], JsonObject]) -> Lie:
    """Every answer to this word is changed: what was asked and the true result go in."""
    return lambda do, asked, result: change(asked, result) if do == word else result


def idle_too(lie: Lie) -> Lie:
    """The same lie by a node that also calls itself idle, so that work is offered to it."""
    idle = says(**IDLE)
    return lambda do, asked, result: lie(do, asked, idle(do, asked, result))


def each(**fields: Any) -> Callable[[JsonObject, JsonObject], JsonObject]:
    """Every result of a batch says this."""

    def change(asked: JsonObject, result: JsonObject) -> JsonObject:
        some = result["results"]
        assert isinstance(some, list)
        return {"results": [{**one, **fields} for one in some if isinstance(one, dict)]}

    return change


def claims_all(asked: JsonObject, result: JsonObject) -> JsonObject:
    """`escrowed` with tasks of its own making for whatever was asked."""
    moves = asked["moves"]
    assert isinstance(moves, list)
    return {"results": [
        {"xfer": one["xfer"], "outcome": "escrowed", "sha256": "0" * 64,
         "task": {"uid": one["uid"], "epoch": 99, "subject": "rm -rf /", "state": "READY"}}
        for one in moves if isinstance(one, dict)]}  # fmt: skip


def holds_nothing(asked: JsonObject, result: JsonObject) -> JsonObject:
    """`held` for whatever was sent; its queue never hears of it."""
    moves = asked["moves"]
    assert isinstance(moves, list)
    return {"results": [{"xfer": one["xfer"], "outcome": "held"}
                        for one in moves if isinstance(one, dict)]}  # fmt: skip


def offers_others_tasks(asked: JsonObject, result: JsonObject) -> JsonObject:
    """Its queue is full of tasks that wait on other nodes."""
    tasks: list[JsonValue] = [
        {"uid": uid(number), "epoch": 1, "subject": "mine", "priority": 10, "state": "READY"}
        for number in range(1, 13)]  # fmt: skip
    return {"tasks": tasks, "next": None, "kept": {}, "eligible": 12, "total": 12}


def doubts_about_others(do: str, asked: JsonObject, result: JsonObject) -> JsonObject:
    """It says that moves of the others' tasks are half done, so that the hub ends them its way."""
    doubts: list[JsonValue] = [
        {"xfer": xfer(900 + number), "uid": uid(number), "epoch": 1, "side": side,
         "state": state, "peer": "iris", "age_s": 999.0}
        for number, (side, state) in enumerate(
                  [("taker", "HELD"), ("giver", "ESCROW"), ("giver", "MOVED"),
                   ("giver", "ABORTED")] * 3, 101)]
    if do == "status":
        return {**result, "doubts": doubts, "idle": False, "idle_since": None}
    return {"doubts": doubts} if do == "doubts" else result


LIES: dict[str, Lie] = {
    "always idle, to draw work in": says(**IDLE),
    "idle for ever with a thousand slots": says(**IDLE, slots=1000),
    "999999 waiting, to dump work": says(pending_count=999_999, movable_count=999_999),
    "counts below nothing": says(pending_count=-5),
    "counts that are no numbers": says(pending_count=float("nan")),
    "counts that are true": says(pending_count=True, running_count=True),
    "counts beyond a double": says(pending_count=10**400),
    "clock of the year 9999": says(written_at="9999-12-31T23:59:59.999Z"),
    "idle since tomorrow": says(**{**IDLE, "idle_since": "2031-01-01T00:00:00.000Z"}),
    "the name of another node": says(node="iris"),
    "capable of everything": says(**IDLE, capabilities=["everything"] * 999, skills=["x"] * 9999),
    "doubts about the tasks of others": doubts_about_others,
    "offers the tasks of others": answers("candidates", offers_others_tasks),
    "hands out tasks it never had": answers("escrow", claims_all),
    "never lets go of what was committed": answers("commit", each(outcome="unknown")),
    "says held and holds nothing": idle_too(answers("hold", holds_nothing)),
    "refuses after it took": idle_too(answers("hold", each(outcome="refused", because={
        "rule": "queue_full", "text": "\x1b[2Jno"}))),
    "says activated and is not": idle_too(answers("activate", each(outcome="activated"))),
    "calls every abort committed": answers("abort", each(outcome="committed")),
    "garbage for every word of a move": lambda do, asked, result: (
        {"results": "x" * 9} if do in {"escrow", "hold", "commit", "abort", "activate"}
        else result),
    "answers for moves that nobody asked for": idle_too(answers("hold", lambda asked, result: {
        "results": [{"xfer": xfer(777), "outcome": "held"}]})),
    "another life in every answer": says(incarnation="01ZZZZZZZZZZZZZZZZZZZZZZZZ"),
}  # fmt: skip
# What an honest story never asks for: the lie waits for a doubt that does not come.
NEVER_ASKED = {"calls every abort committed"}
KEPT_BACK = {"says held and holds nothing": "hold"}  # the word that its queue never hears
GIVING = {"hands out tasks it never had", "never lets go of what was committed",
          "garbage for every word of a move"}  # lies that only who has most can tell
SWALLOWS = {"swallows what it is given", "never answers a word of a move"}


class LyingLink:
    """The liar's link: its true answers, changed; or no answer at all.

    The word `kept_back` never comes to its queue; what is answered to it is the lie alone.
    """

    def __init__(self, link: Any, lie: Lie, *, mute: bool = False, kept_back: str = "") -> None:
        self._link, self._lie, self._mute, self._kept_back = link, lie, mute, kept_back
        self.name: str = link.name
        self.lies = 0

    @property
    def requests(self) -> int:
        return int(self._link.requests)

    @property
    def met(self) -> Met | None:
        met: Met | None = self._link.met
        return met

    async def ask(
        self, do: str, fields: JsonObject | None = None, *, timeout_s: float | None = None
    ) -> JsonObject:
        if do == self._kept_back:
            self.lies += 1
            return self._lie(do, fields or {}, {})
        result: JsonObject = await self._link.ask(do, fields, timeout_s=timeout_s)
        if self._mute and do not in READS:
            self.lies += 1
            raise OutcomeUnknown(self.name, do, "no answer in time")
        if self._mute and do == "doubts":
            raise NodeSilent(self.name, "no answer")
        said = self._lie(do, fields or {}, result)
        self.lies += said != result
        return said

    def put(self, do: str, told: Told, *, timeout_s: float) -> bool:
        return False

    async def meet(self, *, anew: bool = False) -> Met:
        met: Met = await self._link.meet(anew=anew)
        return met

    async def listen(self, heard: EventHeard) -> None:
        await self._link.listen(heard)

    async def close(self) -> None:
        await self._link.close()


def give_the_most(scene: Scene) -> None:
    """Nobody has more waiting than the liar, so that it is asked first."""
    scene.fleet.machines[LIAR].store.apply(c.Add(tuple(a_task(n) for n in range(900, 930))))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Nodes with work of their own; whatever may move, may move to anybody."""
    limits = StealLimits(idle_min_s=0.0, busy_over=1, steal_from=1, anyone_from=1)
    made = Scene(tmp_path, steal=limits)
    for name, count in WORK.items():
        made.has(name, count)
        if count:
            made.works(name)
    yield made
    made.close()


def rows(scene: Scene, name: str) -> dict[str, str]:
    store = scene.fleet.machines[name].store
    return dict(store._db.execute("SELECT uid, state FROM task").fetchall())


def keeps_copy(scene: Scene, name: str, uid: str) -> bool:
    """Whether it has the whole task of which it let go, until its taker is known to have it."""
    db = scene.fleet.machines[name].store._db
    kept = db.execute("SELECT spec FROM tombstone WHERE uid = ? AND settled_at IS NULL", (uid,))
    found = kept.fetchone()
    return found is not None and bool(found[0])


def live(scene: Scene) -> Counter[str]:
    """How many honest nodes (and the hub) have a row of each task that runs or may run."""
    found: Counter[str] = Counter()
    for name in HONEST:
        found.update(number for number, state in rows(scene, name).items() if state != "MOVED")
    return found


@pytest.mark.parametrize("lie", [*LIES, *SWALLOWS])
def test_a_lying_node_ruins_no_work_but_its_own_and_what_it_was_given(
    scene: Scene, lie: str
) -> None:
    """Tasks of honest nodes are on exactly one node, or were given to the liar by a whole move."""
    if lie in GIVING:
        give_the_most(scene)
    before = {name: set(rows(scene, name)) for name in NAMES}
    change = LIES.get(lie, says(**IDLE))
    link = LyingLink(scene.hub.links[LIAR], change, mute=lie == "never answers a word of a move",
                     kept_back=KEPT_BACK.get(lie, ""))  # fmt: skip
    scene.hub.links[LIAR] = link
    reports = []
    for _ in range(CYCLES):
        if lie == "swallows what it is given":
            swallow(scene)
        reports += [scene.run(one) for one in ("fleet-rebalance", "fleet-router", "fleet-health")]
        scene.passes(300)
    assert [one.summary for one in reports if one.outcome == "failed"] == []
    assert link.lies or lie in NEVER_ASKED, "the lie was never told"

    mine = set().union(*(before[name] for name in HONEST))
    copies, at_liar = live(scene), set(rows(scene, LIAR))
    given = {one.uid for report in reports for one in report.moves if one.idle == LIAR}
    assert [number for number in mine if copies[number] > 1] == [], "twice"
    lost = {number for number in mine if not copies[number]} - given
    assert lost == set(), "lost without ever being given to the liar"
    doubled = [number for number in mine
               if copies[number] and rows(scene, LIAR).get(number) == "READY"]
    assert doubled == [], "waits on the liar, and on another node as well"
    per_cycle = Counter(index // 3 for index, report in enumerate(reports)
                        for one in report.moves if one.idle == LIAR)
    assert max(per_cycle.values(), default=0) <= 2 * 3, "no more than its share in one cycle"
    assert at_liar - before[LIAR] <= given
    assert all(scene.asks(name, "status")["node"] == name for name in HONEST)


def swallow(scene: Scene) -> None:
    """The liar ends whatever it has at once, and says that it is done."""
    store, machine = scene.fleet.machines[LIAR].store, scene.fleet.machines[LIAR]
    while isinstance(got := store.apply(c.Claim(LIAR)), c.Claimed):
        store.apply(c.Started(got.task.uid, got.n, 1, 1, machine.clock.boot_id()))
        store.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))


REPORTS = ("counts below nothing", "counts that are no numbers", "counts that are true",
           "counts beyond a double", "the name of another node", "another life in every answer",
           )  # fmt: skip
ANSWERS = ("hands out tasks it never had", "garbage for every word of a move",
           "answers for moves that nobody asked for", "refuses after it took")  # fmt: skip


@pytest.mark.parametrize("lie", REPORTS)
def test_a_report_that_cannot_be_true_is_named_with_its_node(scene: Scene, lie: str) -> None:
    scene.hub.links[LIAR] = LyingLink(scene.hub.links[LIAR], LIES[lie])
    report = scene.run("fleet-rebalance")
    assert f"not seen ({LIAR})" in report.summary
    said = json.dumps(report.details)
    assert "unreadable" in said
    assert "ARC-" in said


def test_who_is_idle_since_tomorrow_has_been_idle_for_no_time(tmp_path: Path) -> None:
    """A clock that was put back says so as well: all else is believed, and it draws no work."""
    scene = Scene(tmp_path, steal=StealLimits(busy_over=1, steal_from=1, anyone_from=1))
    with closing(scene):
        scene.has("iris", WORK["iris"])
        scene.works("iris")
        scene.hub.links[LIAR] = LyingLink(scene.hub.links[LIAR], LIES["idle since tomorrow"])
        report = scene.run("fleet-rebalance")
        assert "not seen" not in report.summary
        assert [one for one in report.moves if one.idle == LIAR] == []
        scene.hub.links[LIAR] = LyingLink(scene.hub.links[LIAR], says(**IDLE))
        assert [one for one in scene.run("fleet-rebalance").moves if one.idle == LIAR]


@pytest.mark.parametrize("lie", ANSWERS)
def test_an_answer_that_cannot_be_true_is_named_with_its_move(scene: Scene, lie: str) -> None:
    if lie in GIVING:
        give_the_most(scene)
    scene.hub.links[LIAR] = LyingLink(scene.hub.links[LIAR], LIES[lie])
    moves = [one for _ in range(3) for one in scene.run("fleet-rebalance").moves]
    against = [one for one in moves if LIAR in (one.busy, one.idle) and one.outcome != "moved"]
    assert against, moves
    assert [one for one in against if not (one.rule or one.because)] == []
    assert not any("\x1b" in one.because for one in against)


def test_what_a_node_says_it_holds_and_does_not_is_kept_at_its_giver_for_a_person(
    scene: Scene,
) -> None:
    """Its giver let go of it by the liar's word, and nobody else was told to run it.

    Guards: with `hub.undecided` never set, nothing of it stands under NEEDS YOU; with what was
    said before forgotten in `_undecided`, nothing does while the liar is away.
    """
    lie = "says held and holds nothing"
    mine = {name: set(rows(scene, name)) for name in HONEST}
    scene.hub.links[LIAR] = LyingLink(scene.hub.links[LIAR], LIES[lie], kept_back="hold")
    given = [one for one in scene.run("fleet-rebalance").moves if one.idle == LIAR]
    assert {one.outcome for one in given} == {"in_doubt"}
    assert needs_of(scene) == [], "the next cycle may end it"
    for one in given:
        assert one.uid in mine[one.busy], "of its own giver"
        assert keeps_copy(scene, one.busy, one.uid), "its giver's own"
        assert [name for name in NAMES if one.uid in rows(scene, name)] == []

    scene.passes(300)
    assert f"{len(given)} doubts for a person" in scene.run("fleet-rebalance").summary
    listed = {str(one["uid"]) for one in objects(scene.tells(doubts_list).data["doubts"])}
    assert {one.uid for one in given} <= listed
    (said,) = needs_of(scene)
    assert said["node"] == "iris"
    first, text = min(one.uid for one in given), str(said["text"])
    assert text.startswith(
        f"{len(given)} moves to {LIAR} cannot be ended without you ({first}, …): "
        f"{LIAR} answers activate with unknown")  # fmt: skip
    scene.off(LIAR)
    scene.run("fleet-rebalance")
    assert needs_of(scene) == [said], "it still waits for a person while its taker is away"
    scene.fleet.machines[LIAR].off = False
    again = scene.tells(doubts_settle, tasks=[one.uid for one in given], yes=True)
    assert again.exit == 0, again.data
    assert {rows(scene, one.busy)[one.uid] for one in given} == {"READY"}
    assert needs_of(scene) == [], "a person has decided"


def needs_of(scene: Scene) -> list[JsonObject]:
    """What waits for a person by the words of `arc status`, of moves that are not over."""
    return [one for one in objects(scene.tells(status).data["needs_you"])
            if one["try"] == "arc doubts list"]  # fmt: skip


def objects(found: JsonValue) -> list[JsonObject]:
    assert isinstance(found, list)
    return [one for one in found if isinstance(one, dict)]


def test_there_are_twenty_ways_and_more() -> None:
    assert len(LIES) + len(SWALLOWS) >= 20
