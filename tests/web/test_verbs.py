"""What the page offers for a state is what the node does from it; a plan reads as its command."""

from __future__ import annotations

import json
import os
import re

import pytest

from agent_node.task import CHANGES, State
from arc.text.look import Look
from arc.text.tasks import render_moved
from arc.web.verbs import VERBS, offered
from tests.builders import uid
from tests.web.stage import Answer, Stage
from tests.web.test_acting import act, acts, known

__all__ = ["acts"]
TASK_VERBS = [name for name, one in VERBS.items() if one.about == "tasks"]
MORE: dict[str, dict[str, object]] = {"move": {"to": "loom"}, "resolve": {"as": "done"}}


def is_in(stage: Stage, state: State) -> str:
    """A task of iris that is in this state, however it came there."""
    stage.desk.waits("iris", 1)
    store = stage.desk.nodes.machines["iris"].store
    attempt = 1 if state in {State.CLAIMED, State.RUNNING, State.VALIDATING} else 0
    store._db.execute("UPDATE task SET state = ?, attempt = ? WHERE uid = ?",
                      (state.value, attempt, uid(1)))  # fmt: skip
    return uid(1)


async def done(stage: Stage, verb: str, **body: object) -> Answer:
    plan = await act(stage, verb, dry_run=True, **body)
    if plan.status != 200:
        return plan
    return await act(stage, verb, plan=plan.data["plan_hash"], **body)


def did(said: Answer, state: State) -> bool:
    """Whether something became of it: refused, or as it was before, is nothing."""
    if said.status != 200:
        return False
    (one,) = said.data["result"]["results"]
    if one["outcome"] == "moved":
        return True
    return bool(
        one["outcome"] == "stopping" or (one["outcome"] == "changed" and one["state"] != state))


@pytest.mark.parametrize("verb", TASK_VERBS)
@pytest.mark.parametrize("state", [*State])
async def test_a_verb_is_offered_in_exactly_the_states_from_which_the_node_does_it(
    acts: Stage, verb: str, state: State
) -> None:
    """Fails where the page keeps a list of its own: it offered `retry` of what is parked and `move`
    of what runs, which are refused, and no way out for dead letters.
    """
    task = is_in(acts, state)
    said = await done(acts, verb, uid=task, **MORE.get(verb, {}))
    assert (state in VERBS[verb].states) == did(said, state), said.body


@pytest.mark.parametrize("state", [State.PARKED, State.DEAD_LETTERED])
@pytest.mark.parametrize("outcome", ["done", "failed", "cancelled"])
async def test_a_task_is_resolved_as_what_it_may_become_and_nothing_else_is_offered(
    acts: Stage, state: State, outcome: str
) -> None:
    """A dead letter failed already: it is resolved as done or cancelled."""
    said = offered()["as"]
    assert isinstance(said, dict)
    of_state = said[state]
    assert isinstance(of_state, list)
    answer = await done(acts, "resolve", uid=is_in(acts, state), **{"as": outcome})
    assert (outcome in of_state) == did(answer, state), answer.body


@pytest.mark.parametrize(("word", "state"), [
    ("pause", "paused"), ("drain", "drained"), ("suspend", "suspended"), ("", "idle"),
])  # fmt: skip
async def test_each_verb_that_a_node_is_offered_has_a_plan(
    acts: Stage, word: str, state: str
) -> None:
    if word:
        await known(acts, f"nodes.{word}", node="iris", reason="x")
    said = offered()["node"]
    assert isinstance(said, dict)
    verbs = said[state]
    assert isinstance(verbs, list)
    assert verbs
    for verb in verbs:
        plan = await act(acts, str(verb), node="iris", dry_run=True, yes=True)
        assert plan.data["says"][0].startswith("iris would be "), verb


async def test_the_whole_fleet_is_paused_and_resumed_by_the_operations_of_the_commands(
    acts: Stage,
) -> None:
    """Who cannot be told now stands in the plan, and hears it later."""
    acts.desk.nodes.machines["loom"].off = True
    plan = (await act(acts, "pause-fleet", dry_run=True)).data
    assert plan["says"][0] == "2 nodes would be told (dry run: nothing was changed)"
    assert any(line.startswith("loom could not be asked: ") for line in plan["says"])
    assert acts.desk.hub.journal.words.fleet_paused() is None
    said = await act(acts, "pause-fleet", plan=plan["plan_hash"])
    assert "  iris is paused" in said.data["says"]
    assert "  loom could not be told now; the hub tells it once it is back" in said.data["says"]
    line = next(one for one in (await known(acts, "log"))["lines"]
                if one["event"] == "fleet_paused")  # fmt: skip
    assert line["fields"] == {"by": f"web[uid {os.getuid()}]:ada", "reason": "to see"}
    resumed = await done(acts, "resume-fleet")
    assert "  iris is active" in resumed.data["says"]
    assert acts.desk.hub.journal.words.fleet_paused() is None


async def test_a_plan_says_what_the_command_would_print(acts: Stage) -> None:
    """Fails where the page shows the plan as JSON."""
    (one,) = acts.desk.waits("iris", 1, subject="tidy \x1b[31mup")
    said = (await act(acts, "move", uid=one, to="loom", dry_run=True)).data["says"]
    planned = await known(acts, "tasks.move", tasks=[one], to="loom", dry_run=True)
    assert said == render_moved(planned, Look()).splitlines()
    assert said == ['would move 0001 "tidy \\x1b[31mup" iris -> loom']
    said = (await act(acts, "cancel", uid=one, dry_run=True)).data["says"]
    assert said == [
        "0001  would be cancelled  then CANCELLED on iris (dry run: nothing was changed)"]


async def test_the_page_itself_names_no_fleet_and_no_file(stage: Stage) -> None:
    """It is given to who shows no token; until the stream's first word its title is what it is."""
    page = (await stage.ask("/")).body.decode()
    assert "<title>arc</title>" in page
    assert stage.settings.fleet.name not in page


async def test_the_page_is_given_the_table_and_its_scripts_hold_no_state_of_a_task(
    stage: Stage,
) -> None:
    page = (await stage.ask("/")).body.decode()
    (raw,) = re.findall(r'data-offered="([^"]*)"', page)
    assert json.loads(raw.replace("&#34;", '"')) == offered()
    script = (await stage.ask("/static/js/acting.js")).body.decode()
    assert [state for state in CHANGES if f'"{state.value}"' in script] == []


def test_every_change_by_hand_of_the_table_is_offered_by_some_verb() -> None:
    """A state from which a person may lead a task on, and that no verb names, is a dead end."""
    said = offered()["task"]
    assert isinstance(said, dict)
    in_transfer_or_over = {State.ESCROW, State.HELD, State.MOVED, State.COMPLETED}
    assert {*said} == {state.value for state in State if state not in in_transfer_or_over}
