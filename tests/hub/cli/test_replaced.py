"""A node that comes back as another queue is told of, with what went with the old one."""

from __future__ import annotations

import asyncio
import shutil
from random import Random
from typing import Any

import pytest

from agent_node import commands as c
from agent_node.store.sqlite import open_store
from arc.journal_ends import TaskEnd
from arc.looking import look
from tests.builders import uid
from tests.hub.cli.desk import Desk


def sees(desk: Desk) -> None:
    """The hub looks at all nodes once."""
    asyncio.run(look(desk.hub))


def made_anew(desk: Desk, name: str = "loom") -> None:
    """Its home is moved away, and another one is made in its place."""
    machine = desk.nodes.machines[name]
    desk.minutes_pass(1)
    desk.nodes.switch_off(name)
    machine.place.rename(machine.place.with_name("away"))
    (machine.place / "tasks").mkdir(parents=True)
    store = open_store(machine.place, name=name, clock=machine.clock, rng=Random(7), machine="here")
    store.apply(c.SetAgents((c.AgentRow(name, 8, ()),)))
    store.close()
    desk.nodes.switch_on(name)


def brought_back(desk: Desk, name: str = "loom") -> None:
    machine = desk.nodes.machines[name]
    desk.nodes.switch_off(name)
    shutil.rmtree(machine.place)
    machine.place.with_name("away").rename(machine.place)
    desk.nodes.switch_on(name)


def needs(desk: Desk, name: str = "loom") -> list[tuple[str, str]]:
    found = desk.arc("status", "--json").data["needs_you"]
    return [(one["text"], one["try"]) for one in found
            if one["node"] == name and "another queue" in one["text"]]  # fmt: skip


def lines(desk: Desk) -> list[dict[str, Any]]:
    return [line.fields for line in desk.hub.journal.runs.lines() if line.event == "node_replaced"]


def moved_to_loom(desk: Desk, *numbers: int) -> None:
    desk.waits("iris", *numbers)
    for number in numbers:
        assert desk.arc("tasks", "move", uid(number), "--to", "loom").code == 0
    sees(desk)


def test_what_was_moved_to_a_queue_that_is_gone_needs_a_person(desk: Desk) -> None:
    """Seen to fail: everything was green, and the tasks were owned by nobody."""
    moved_to_loom(desk, 1, 2)
    desk.waits("loom", 3, pinned=True)
    sees(desk)
    made_anew(desk)
    ((text, command),) = needs(desk)
    assert "it is another queue than before, since 20" in text
    assert "(the old one had 3 tasks that were not over)" in text
    assert "2 tasks that were moved to the old one are owned by nobody who answers" in text
    assert command == "arc doubts list"
    assert [(one["moved"], one["back"]) for one in lines(desk)] == [(2, False)]
    listed, data = desk.both("doubts", "list")
    assert [one["uid"] for one in data["lost"]] == [uid(1), uid(2)]
    assert f"arc doubts settle {uid(1)} --yes" in listed.out
    assert len(lines(desk)) == 1, "written down once"


def test_it_stands_until_each_is_decided(desk: Desk) -> None:
    moved_to_loom(desk, 1, 2)
    made_anew(desk)
    assert len(needs(desk)) == 1
    desk.minutes_pass(8 * 24 * 60)
    assert "2 tasks" in needs(desk)[0][0], "nothing decides them but a person"
    assert desk.arc("doubts", "settle", uid(1), "--dry-run").code == 0
    assert "2 tasks" in needs(desk)[0][0]
    settled = desk.arc("doubts", "settle", uid(1), "--yes")
    assert settled.code == 0, settled
    assert desk.nodes.states(1) == {"iris": "READY"}
    assert "1 task that was moved" in needs(desk)[0][0]
    assert desk.arc("doubts", "settle", uid(2), "--yes").code == 0
    assert needs(desk) == []


def test_the_old_home_put_back_ends_it(desk: Desk) -> None:
    """Seen to fail without `is_back`: the tasks live, and the need stood for ever."""
    moved_to_loom(desk, 1)
    made_anew(desk)
    assert len(needs(desk)) == 1
    brought_back(desk)
    assert needs(desk) == []
    assert desk.both("doubts")[1]["lost"] == []
    assert [one["back"] for one in lines(desk)] == [False, True]


def test_what_was_moved_to_the_new_one_is_lost_when_the_old_one_is_put_back(desk: Desk) -> None:
    moved_to_loom(desk, 1)
    made_anew(desk)
    moved_to_loom(desk, 2)
    brought_back(desk)
    assert len(needs(desk)) == 1
    assert [one["uid"] for one in desk.both("doubts")[1]["lost"]] == [uid(2)]


def test_without_any_moved_task_it_is_told_for_a_week(desk: Desk) -> None:
    sees(desk)
    made_anew(desk)
    ((text, _),) = needs(desk)
    assert text.endswith("only in the old one is not seen any more; bring its old home back")
    desk.minutes_pass(8 * 24 * 60)
    assert needs(desk) == []


def test_a_task_that_was_heard_to_have_ended_there_is_not_lost(desk: Desk) -> None:
    moved_to_loom(desk, 1, 2)
    store = desk.nodes.machines["loom"].store
    claimed = store.apply(c.Claim("loom"))
    assert isinstance(claimed, c.Claimed)
    store.apply(c.Started(claimed.task.uid, claimed.n, 4242, 99, desk.clock.boot_id()))
    store.apply(c.Finish(claimed.task.uid, claimed.n, c.Result("completed")))
    assert desk.arc("sensors", "run", "fleet-health").code == 0
    made_anew(desk)
    assert "1 task that was moved" in needs(desk)[0][0]


@pytest.mark.parametrize("why", ["first", "quarantined", "fenced", "removed"])
def test_nobody_is_told_of_what_tells_itself_or_what_a_person_did(desk: Desk, why: str) -> None:
    if why != "first":
        moved_to_loom(desk, 1)
    life = desk.nodes.machines["loom"].incarnation()
    if why == "fenced":
        desk.hub.journal.words.fence("loom", life, by="human:ada", reason="off")
    if why == "removed":
        desk.hub.journal.runs.log("node_removed", node="loom")
    if why == "quarantined":
        met = desk.nodes.link("loom").met
        assert met is not None
        restored(desk)
    else:
        made_anew(desk)
    sees(desk)
    assert (needs(desk), lines(desk)) == ([], [])


def restored(desk: Desk) -> None:
    """An older copy of its home is put back; the node notices that by itself."""
    machine = desk.nodes.machines["loom"]
    desk.nodes.switch_off("loom")
    (machine.place / "generation").unlink()
    desk.nodes.switch_on("loom")
    assert desk.arc("nodes", "show", "loom", "--json").data["state"] == "quarantined"


def test_a_task_that_nobody_has_is_not_said_to_be_with_another_node(desk: Desk) -> None:
    """Seen to fail: WAIT, another node has it now, exit 0."""
    moved_to_loom(desk, 1)
    made_anew(desk)
    text, data = desk.both("why", uid(1))
    assert (text.code, data["verdict"]) == (3, "ESCALATE")
    assert "it was moved to loom, which is another queue since" in text.out
    assert f"arc doubts settle {uid(1)} --yes" in text.out
    assert "another node has it now" not in text.out
    shown = desk.arc("tasks", "show", uid(1))
    assert (shown.code, "another queue since" in shown.err) == (3, True)


def test_a_taker_that_does_not_know_the_task_is_told_from_one_that_is_another(desk: Desk) -> None:
    moved_to_loom(desk, 1)
    desk.nodes.machines["loom"].store._db.execute("DELETE FROM task WHERE uid = ?", (uid(1),))
    text, _ = desk.both("why", uid(1))
    assert text.code == 3
    assert "moved to loom, which answers and does not have it" in text.out


def test_a_task_whose_taker_does_not_answer_or_whose_end_was_heard_is_not_denied(
    desk: Desk,
) -> None:
    moved_to_loom(desk, 1, 2)
    desk.nodes.switch_off("loom")
    assert "does not have it" not in desk.arc("why", uid(1)).out
    desk.nodes.switch_on("loom")
    made_anew(desk)
    desk.hub.journal.ends.note([TaskEnd("loom", uid(1), "COMPLETED", desk.clock.now())])
    text = desk.arc("why", uid(1))
    assert (text.code, "another queue since" in text.out) == (0, False)
    assert desk.arc("tasks", "show", uid(1)).code == 0


def bad(desk: Desk, *words: str) -> list[tuple[str, str, str]]:
    found = desk.arc("doctor", *words, "--json")
    said = [(one["what"], one["text"], one["hint"]) for one in found.data["checks"]
            if one["state"] == "bad"]  # fmt: skip
    assert not said or found.code == 6
    return said


def test_the_doctor_finds_a_queue_that_was_replaced(desk: Desk) -> None:
    """Seen to fail: `loom: ok: answers`, and no finding, while tasks were owned by nobody. Also
    where nobody but the doctor has looked since.
    """
    moved_to_loom(desk, 1)
    assert bad(desk, "--node", "loom") == []
    made_anew(desk)
    ((node, text, hint),) = bad(desk, "--node", "loom")
    assert (node, hint) == ("loom", "arc doubts list")
    assert "1 task that was moved to the old one is owned by nobody who answers" in text
    assert (node, text, hint) in bad(desk)
    assert bad(desk, "--node", "iris") == []
    assert len(lines(desk)) == 1, "written down once"

    brought_back(desk)
    assert bad(desk, "--node", "loom") == []
