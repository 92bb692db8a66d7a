"""`arc config check` and `arc doctor` hold domains.skills against what the nodes report."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
from typing import Any

import pytest

from arc.operations.config_seen import config_seen
from arc.text.columns import objects
from tests.hub.cli.desk import Desk, RealFleet
from tests.node.daemon.living import an_agent

FOUND = ["iris owns infra and reports none of its skills", "no node reports the skill 'ops'"]
NO_HUB = "no hub runs, so no node's skills and no tasks were looked at; arc doctor asks the nodes"
NOT_HEARD = "not heard lately, so domains.skills was not held against what nodes report: "


@pytest.fixture
def fleet(real: RealFleet) -> RealFleet:
    """infra is the work of both: iris lists `rust`, loom `deploy`, and none `ops`."""
    text = real.file.read_text()
    text = text.replace("nodes:", "domains: {infra: {skills: [deploy, ops]}}\nnodes:")
    text = text.replace(f"{real.iris.home}", f"{real.iris.home}, owns: [infra]")
    text = text.replace(f"{real.loom.home}", f"{real.loom.home}, also: [infra]")
    real.file.write_text(text)
    real.iris.daemons[0].stop()
    real.iris.configure(agents=an_agent("iris", skills=["rust"]))
    real.iris.start()
    real.loom.configure(agents=an_agent("loom", skills=["deploy"]))
    return real


def checked(fleet: RealFleet) -> tuple[int, list[str], list[str]]:
    ran = fleet.arc("config", "check", "--json")
    found = ran.data["findings"]
    return ran.code, sorted(one["message"] for one in found), ran.envelope["warnings"]


def doctored(fleet: RealFleet) -> list[dict[str, Any]]:
    checks = json.loads(fleet.arc("doctor", "--json").out)["data"]["checks"]
    return [one for one in checks if one["what"] in ("fleet.yaml", "skills", "signs")]


def test_skills_that_no_node_reports_are_found_by_the_doctor_and_beside_a_hub(
    fleet: RealFleet,
) -> None:
    """Seen to fail: nothing that a node reported was ever held against the file."""
    code, found, warned = checked(fleet)
    assert (code, found) == (0, [])
    assert warned == [NO_HUB]
    alone = doctored(fleet)
    assert [one["state"] for one in alone] == ["warn", "warn"]
    assert all(any(text in one["text"] for one in alone) for text in FOUND)
    fleet.up()
    assert fleet.arc("status").code == 0
    assert checked(fleet) == (6, FOUND, [])
    assert doctored(fleet) == alone
    text = fleet.arc("config", "check")
    assert text.code == 6
    assert "warning[ARC-CFG-NO-SKILL]: iris owns infra" in text.out


def test_of_a_silent_node_nothing_is_said_to_be_missing(fleet: RealFleet) -> None:
    fleet.up()
    shutil.move(fleet.loom.home, fleet.place / "away")
    fleet.arc("status")
    assert checked(fleet) == (6, FOUND[:1], [f"{NOT_HEARD}loom"])  # of iris that is known
    assert doctored(fleet)[-1] == {
        "what": "skills", "state": "ok", "hint": "", "mended": False,
        "text": "not known of loom: domains.skills was not held against what nodes report",
    }  # fmt: skip


def test_a_hub_that_does_not_answer_is_no_error_of_the_file(
    fleet: RealFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = fleet.up()
    monkeypatch.setattr("arc.cli.config_words.SEEN_S", 0.2)
    hub.send_signal(signal.SIGSTOP)
    code, found, (warned,) = checked(fleet)
    assert (code, found) == (0, [])
    assert "the hub could not be asked what its nodes say" in warned


STALE = ["none of the 103 tasks that the nodes know begins with 'zest-'",
         "none of the 103 tasks that the nodes know has the word 'gone'"]  # fmt: skip
UNREAD = "not read to the end, so no sign of a domain was held against the tasks there are: loom"


@pytest.fixture
def sounding(real: RealFleet) -> RealFleet:
    """Two of four signs fit a task; most tasks lie on iris, the last three at the hub."""
    signs = "prefix: [zest-, defi-], words: [paper, gone]"
    text = real.file.read_text().replace("nodes:", f"domains: {{research: {{{signs}}}}}\nnodes:")
    text = text.replace(f"{real.iris.home}", f"{real.iris.home}, owns: [research]")
    real.file.write_text(text)
    with real.iris.one_talk() as talk:
        talk.ask("add", tasks=[{"subject": f"defi-{n}", "needs": ["gpu"]} for n in range(100)])
    for subject in ("read the Paper", "begone", "no zest-"):
        assert real.arc("tasks", "add", subject, "--need", "gpu").code == 0
    return real


def test_signs_that_no_task_has_are_found_by_the_doctor_and_beside_a_hub(
    sounding: RealFleet,
) -> None:
    """Seen to fail: such a table went stale and nobody said so."""
    alone = [one["text"] for one in doctored(sounding)]
    assert all(any(text in one for one in alone) for text in STALE), alone
    sounding.up()
    code, found, warned = checked(sounding)
    assert (code, warned) == (6, [])
    assert [one for one in found if one.startswith("none of")] == STALE


def test_tasks_that_were_not_all_seen_make_no_sign_stale(sounding: RealFleet) -> None:
    """Fails when what one node does not tell is taken to be nothing."""
    sounding.up()
    shutil.move(sounding.loom.home, sounding.place / "away")
    sounding.arc("status")
    _, found, warned = checked(sounding)
    assert not any(one.startswith("none of") for one in found)
    assert warned == [UNREAD]
    (line,) = [one for one in doctored(sounding) if one["what"] == "signs"]
    assert line["text"].startswith("not read to the end: loom")


def test_what_a_node_said_long_ago_is_not_heard_lately(desk: Desk) -> None:
    """Fails when a report that the hub remembers counts however old it is."""
    assert desk.arc("status").code == 0
    heard = asyncio.run(config_seen(desk.hub, {})).data["nodes"]
    assert [one["node"] for one in objects({"nodes": heard}, "nodes")] == ["iris", "loom", "spark"]
    desk.minutes_pass(11)
    assert asyncio.run(config_seen(desk.hub, {})).data["nodes"] == []
