"""Death at every named place, in the daemon, its zygote, its shims and in a `serve` by itself."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable

from tests.chaos.conftest import MakeFleet
from tests.chaos.fleet import Fleet
from tests.chaos.test_upgrade_crashes import KILLED_AT
from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import LOOK_S, is_ready
from tools.sources import sources

REACH_S = 20.0
STEPS = ("escrow", "hold", "commit", "activate", "settled", "abort", "drop")
EDGES = tuple(f"{step}.{side}" for step in STEPS for side in ("before", "after"))
# Failpoints of the daemon itself, with the pass at which it dies.
IN_THE_DAEMON = (
    "dispatch.after_claim:kill", "dispatch.before_spawn:kill:2", "dispatch.after_spawn:kill",
    "dispatch.before_result:kill:2", "report.before_rename:kill:2",
    "report.before_folder_sync:kill:2", "store.before_commit:kill:5",
    "generation.before_file:kill:3", "commit.before_move:kill",
    "add.before:kill", "add.after:kill", *(f"{edge}:kill" for edge in EDGES),
)  # fmt: skip
BESIDE_IT = (
    "zygote.before_fork:kill:4", "zygote.after_fork:kill:4", "shim.before_start:kill",
    "shim.after_start:kill", "shim.before_verdict:kill", "shim.after_verdict:kill",
)  # fmt: skip
WITHOUT_A_DAEMON = (*(f"{step}.after:kill" for step in STEPS), "commit.before_move:kill",
                    "store.before_commit:kill:4", "generation.before_file:kill:4")  # fmt: skip
FAULTS = (
    "store.before_commit:EIO:6", "generation.before_file:EIO:3", "report.before_rename:ENOSPC:2",
    "report.before_folder_sync:EIO:2", "dispatch.before_spawn:EIO", "shim.before_start:ENOSPC",
    "shim.before_verdict:ENOSPC", "zygote.before_fork:EIO:4", "hold.before:EIO",
    "commit.after:ENOSPC",
)  # fmt: skip
STOPS = (
    "dispatch.after_claim:stop", "store.before_commit:stop:6", "escrow.after:stop",
    "hold.before:stop", "shim.before_verdict:stop", "zygote.after_fork:stop:4",
)  # fmt: skip


def test_every_named_place_is_tried() -> None:
    """A failpoint that no campaign names would be a promise without a test."""
    named = {match for source in sources("agent_node")
             for match in re.findall(r'failpoint\(f?"([^"]+)"\)', source.text)}  # fmt: skip
    tried = {one.split(":")[0] for one in (*IN_THE_DAEMON, *BESIDE_IT, *WITHOUT_A_DAEMON)}
    tried |= {"migrate.before_commit", *KILLED_AT, "{request.do}.before", "{request.do}.after"}
    assert named <= tried, named - tried


def test_a_daemon_may_die_at_every_named_place(make_fleet: MakeFleet) -> None:
    fleet = make_fleet("in the daemon")
    fleet.add_waiting()
    fleet.start_surely("loom")
    fleet.start_hub()
    for failpoint in IN_THE_DAEMON:
        if failpoint.startswith("abort.before"):
            fleet.start_hub(gives_up=0.8)
        die_once(fleet, failpoint)
    must_be_clean(fleet)


def die_once(fleet: Fleet, failpoint: str) -> None:
    """Iris works and moves tasks until it dies where it is told to."""
    fleet.kill("iris")
    daemon = fleet.start("iris", failpoint)
    meanwhile(fleet, lambda: daemon.process.poll() is not None, failpoint)
    if "already_running" in daemon.said:
        die_once(fleet, failpoint)
    else:
        assert daemon.ended() == -signal.SIGKILL, (failpoint, daemon.said)


def meanwhile(fleet: Fleet, done: Callable[[], bool], what: str) -> None:
    """New work now and then, until this has happened."""
    end, looks = time.monotonic() + REACH_S, 0
    while not done():
        assert time.monotonic() < end, f"{what} was never reached: {fleet.done[-5:]}"
        if looks % 20 == 0:
            fleet.add(6, at="iris")
        looks += 1
        for daemon in fleet.daemons.values():
            daemon.drain()
        ear = fleet.daemons["iris"].process.stderr if "iris" in fleet.daemons else None
        is_ready(ear.fileno(), LOOK_S) if ear and not ear.closed else is_ready(fleet.rest, LOOK_S)


def must_be_clean(fleet: Fleet) -> None:
    fleet.heal()
    findings = fleet.end()
    assert findings.clean, (findings, fleet.done)


def test_a_zygote_or_a_shim_may_die_at_every_named_place(make_fleet: MakeFleet) -> None:
    fleet = make_fleet("beside it")
    fleet.start_surely("loom")
    fleet.start_hub()
    for failpoint in BESIDE_IT:
        fleet.kill("iris")
        fleet.start_surely("iris", failpoint)
        happened = _zygote_gone if failpoint.startswith("zygote") else _three_ended
        meanwhile(fleet, lambda happened=happened: happened(fleet), failpoint)  # type: ignore[misc]
    must_be_clean(fleet)


def _zygote_gone(fleet: Fleet) -> bool:
    return "zygote_gone" in fleet.daemons["iris"].said


def _three_ended(fleet: Fleet) -> bool:
    """Every shim of this daemon dies at that place, so each attempt that ended had met it."""
    wanted = {"task_interrupted", "task_completed", "task_parked"}
    after, ended = fleet.marks["iris"], 0
    with fleet.nodes["iris"].one_talk() as talk:
        while events := talk.ask("events", after_seq=after, limit=1000)["events"]:
            ended += sum(one["event"] in wanted for one in events)
            after = events[-1]["seq"]
    return ended >= 3


def test_a_serve_by_itself_may_die_at_every_named_place(make_fleet: MakeFleet) -> None:
    fleet = make_fleet("without a daemon")
    fleet.add_waiting()
    for failpoint in WITHOUT_A_DAEMON:
        before = fleet.log.read_text().count("serve_killed")
        fleet.start_hub(failpoint, gives_up=0.8 if failpoint[:4] in {"abor", "drop"} else 0.1)
        meanwhile(fleet, lambda before=before:  # type: ignore[misc]
                  fleet.log.read_text().count("serve_killed") > before, failpoint)  # fmt: skip
    must_be_clean(fleet)


def test_a_failing_disk_doubles_and_loses_nothing(make_fleet: MakeFleet) -> None:
    """Whether the daemon goes on or ends is the disk's matter; the next one finds all in order."""
    fleet = make_fleet("faults")
    fleet.add_waiting()
    fleet.start_surely("loom")
    fleet.start_hub()
    for failpoint in FAULTS:
        fleet.kill("iris")
        fleet.start_surely("iris", failpoint)
        fleet.add(4, at="iris")
        is_ready(fleet.rest, 0.4)
        fleet.daemons["iris"].drain()
    must_be_clean(fleet)


def test_who_stands_still_for_a_while_and_goes_on_does_no_harm(make_fleet: MakeFleet) -> None:
    fleet = make_fleet("stops")
    fleet.add_waiting()
    fleet.start_surely("loom")
    for failpoint in STOPS:
        fleet.kill("iris")
        fleet.start_hub()
        fleet.start_surely("iris", failpoint)
        meanwhile(fleet, lambda: bool(fleet.stopped()), failpoint)
        fleet.start_hub()
        is_ready(fleet.rest, 0.3)
        fleet.wake_stopped()
    must_be_clean(fleet)


def test_a_migration_that_was_cut_off_is_done_again(make_node: MakeNode) -> None:
    node = make_node()
    daemon = node.start(failpoint="migrate.before_commit:kill", ready=False)
    assert daemon.ended() == -signal.SIGKILL
    node.start()
    node.until(node.add("true"), "COMPLETED")
