"""Commands through a running hub's socket and without one: the same answers, but for their age."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub.cli.desk import Ran, RealFleet

OFF = "health: {enabled: false}\nsensors: {fleet-graphs: {enabled: false}}\n"
READS = (
    "status", "why {waits}", "why --node iris", "plan", "tasks list", "tasks show {done}",
    "doubts list", "dead list", "nodes list", "nodes logs iris {done}", "schedules list",
    "notify list", "sensors list", "sensors history", "skills run --name fleet-health -- status",
    "log --event run_done", "doctor", "config check",
)  # fmt: skip
WORDS = (
    "pause --reason lunch", "resume", "nodes pause iris --reason lunch", "nodes resume iris",
    "tasks add {how} --to loom --key {how}", "tasks add {how} --to loom --key {how}",
    "tasks add {how} --to loom --key {how} --body other", "tasks show nosuchtask",
)  # fmt: skip
MOMENTS = frozenset({  # what grows by itself, when a node was asked, when the router runs next
    "as_of", "idle_s", "age_s", "ago_s", "oldest_ready_s", "oldest_report_s", "waits_s", "took_s",
    "clock_off_s", "disk_free_bytes", "written_at", "read_at", "last_met", "last_open",
    "after", "router",
})  # fmt: skip
NO_HUB = "no hub runs: nothing moves by itself until `arc up` runs; "


def settled(said: Any) -> Any:
    """An answer without what time changes, and without whether a hub runs."""
    if isinstance(said, dict):
        hub = "term" in said
        return {key: settled(value) for key, value in said.items()
                if key not in MOMENTS and key != "hub_running" and not (hub and key == "running")
                and said.get("what") != "lease"}  # fmt: skip
    if isinstance(said, list):
        return [settled(one) for one in said if not _says_that_no_hub_runs(one)]
    if isinstance(said, str):
        said = re.sub(r"\b01[0-9A-Z]{24}\b", "UID", said.removeprefix(NO_HUB))
        said = re.sub(r"\b(alone|beside)\b", "HOW", said)
        return re.sub(r"idle for [\dsmh ]+|clock [+-]\d\.\ds?", "SO LONG", said)
    return said


def _says_that_no_hub_runs(one: Any) -> bool:
    """The entry of NEEDS YOU that is there without a hub alone."""
    return isinstance(one, dict) and str(one.get("text", "")).startswith(NO_HUB)


def typed(real: RealFleet, command: str, **names: str) -> Ran:
    words = command.format(**names).split()
    before = words.index("--") if "--" in words else len(words)
    return real.arc(*words[:before], "--json", *words[before:])


Both = dict[tuple[str, int], tuple[Ran, Ran]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Every command alone, then the same beside a hub that runs; no sensor runs by itself."""
    real = RealFleet(tmp_path_factory.mktemp("both"))
    try:
        text = real.file.read_text().replace("rebalance: {", "rebalance: {idle_min: 1h, ")
        real.file.write_text(OFF + text)
        names = {"done": real.arc("tasks", "add", "work", "--to", "iris", "--json")}
        names["waits"] = real.arc("tasks", "add", "later", "--to", "loom", "--json")
        uids = {name: ran.data["results"][0]["uid"] for name, ran in names.items()}
        real.iris.until(uids["done"], "COMPLETED")
        assert real.arc("sensors", "run", "health").code == 0
        words = [typed(real, one, how="alone") for one in WORDS]
        alone = [typed(real, one, **uids) for one in READS]
        real.up()
        beside = [typed(real, one, **uids) for one in READS]
        beside += [typed(real, one, how="beside") for one in WORDS]
        pairs = zip([*alone, *words], beside, strict=True)
        yield dict(zip(EVERY, pairs, strict=True))
    finally:
        real.close()


EVERY = [(command, at) for at, command in enumerate((*READS, *WORDS))]


@pytest.mark.parametrize("command", EVERY, ids=[f"{at}-{command}" for command, at in EVERY])
def test_a_command_says_the_same_with_a_hub_running_and_without(
    both: Both, command: tuple[str, int]
) -> None:
    alone, beside = both[command]
    assert settled(alone.envelope) == settled(beside.envelope)
    assert (alone.code, settled(alone.err)) == (beside.code, settled(beside.err))


def test_what_was_compared_was_said_without_a_hub_and_with_one(both: Both) -> None:
    alone, beside = both["status", 0]
    assert (alone.data["hub"]["running"], beside.data["hub"]["running"]) == (False, True)
    codes = {command: ran.code for (command, _), (ran, _) in both.items()}
    assert {code for command, code in codes.items() if command in READS} == {0, 6}
    added = [ran.data["results"][0]["outcome"] for (command, _), (_, ran) in both.items()
             if command.startswith("tasks add")]  # fmt: skip
    assert added == ["added", "exists", "refused"]
