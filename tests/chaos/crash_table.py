"""The one table of all crash points: each named place, who passes there, and what drives it there.

`test_every_failpoint_stands_in_the_table` holds it against the code, both ways.
"""

from __future__ import annotations

from typing import NamedTuple

from agent_node.replies import CHANGES

ACTIONS = ("kill", "EIO", "ENOSPC", "stop")
STEPS = ("escrow", "hold", "commit", "activate", "settled", "abort", "drop")
SIDES = ("before", "after")
DISK = ("EIO", "ENOSPC")
TYPED = ("set", "cancel", "retry", "submit", "graph_cancel")  # at the hub, of its own queue
FILES = ("lease", "fences", "hostkeys", "inbox", "key", "public_key", "init")


class NodePoint(NamedTuple):
    """A place that a node passes by itself while it works, takes and gives tasks."""

    name: str
    nth: int = 1  # the pass at which it happens: the first ones are those of the start


class HubPoint(NamedTuple):
    """A place that the hub passes in this scenario of `hub_cells`."""

    name: str
    scenario: str
    nth: int = 1


NODE = (
    NodePoint("dispatch.after_claim"), NodePoint("dispatch.before_spawn", 2),
    NodePoint("dispatch.after_spawn"), NodePoint("dispatch.before_result", 2),
    NodePoint("report.before_rename", 2), NodePoint("report.before_folder_sync", 2),
    NodePoint("store.before_commit", 5), NodePoint("generation.before_file", 3),
    NodePoint("commit.before_move"), NodePoint("add.before"), NodePoint("add.after"),
    *(NodePoint(f"{step}.{side}") for step in STEPS for side in SIDES),
    NodePoint("zygote.before_fork", 4), NodePoint("zygote.after_fork", 4),
    NodePoint("shim.before_entry"), NodePoint("shim.before_start"), NodePoint("shim.after_start"),
    NodePoint("shim.before_verdict"), NodePoint("shim.after_verdict"),
    NodePoint("shim.before_over"), NodePoint("shim.before_next"),
)  # fmt: skip
HUB = (
    *(HubPoint(f"hub.{step}.{side}", "move") for step in STEPS[:5] for side in SIDES),
    *(HubPoint(f"hub.{step}.{side}", "settle") for step in STEPS[5:] for side in SIDES),
    HubPoint("journal.before_commit", "say"), HubPoint("journal.after_commit", "say"),
    HubPoint("journal.before_commit", "cycle", 2),
    HubPoint("lease.before_rename", "take_over"), HubPoint("lease.after_rename", "take_over"),
    HubPoint("fences.before_rename", "fence"), HubPoint("fences.after_rename", "fence"),
    HubPoint("fleet_yaml.before_rename", "edit"), HubPoint("fleet_yaml.after_rename", "edit"),
    HubPoint("hostkeys.before_rename", "pin"), HubPoint("hostkeys.after_rename", "pin"),
    HubPoint("init.before_rename", "init", 3), HubPoint("init.after_rename", "init", 3),
    HubPoint("key.before_rename", "init"), HubPoint("key.after_rename", "init"),
    HubPoint("public_key.before_rename", "init"), HubPoint("public_key.after_rename", "init"),
    HubPoint("inbox.before_rename", "first_add"), HubPoint("inbox.after_rename", "first_add", 2),
    HubPoint("store.before_commit", "add", 2), HubPoint("generation.before_file", "add"),
    HubPoint("add.before", "add"), HubPoint("add.after", "add"),
)  # fmt: skip
# Words to its own queue, each of which a node meets, too: these cells are of the soak alone.
OWN_QUEUE = (
    *(HubPoint(f"{do}.{side}", do) for do in TYPED for side in SIDES),
    HubPoint("hello.before", "add"), HubPoint("hello.after", "add"),
)  # fmt: skip


class Campaign(NamedTuple):
    """Places with tests of their own, which `make test` runs; together these strike each of the
    places by each action.
    """

    places: tuple[str, ...]
    module: str
    tests: tuple[str, ...]


WORDS = Campaign(
    tuple(f"{do}.{side}" for do in CHANGES for side in SIDES),
    "tests.chaos.test_crash_words",
    ("test_a_word_that_met_a_fault_and_is_said_again_takes_effect_once",),
)
UPGRADE = Campaign(
    ("upgrade.before_program", "program.before_sync", "program.before_rename",
     "upgrade.before_record", "upgrade.before_start", "upgrade.before_exec", "upgrade.in_trial",
     "program.before_link", "program.after_link", "upgrade.after_signal",
     "upgrade.before_outcome", "upgrade.after_back", "upgrade.after_end"),
    "tests.chaos.test_upgrade_crashes",
    ("test_death_at_any_step_leaves_one_whole_program_and_a_daemon_that_starts",
     "test_an_upgrade_that_meets_a_fault_at_each_step_goes_through_in_the_end",
     "test_a_daemon_that_was_ended_on_the_way_back_runs_again_when_the_upgrade_is_over"),
)  # fmt: skip
FILES_LEFT = Campaign(
    ("artifact.before_write", "artifact.before_sync", "artifact.before_rename",
     "artifact.after_rename", "artifact.before_result"),
    "tests.node.daemon.test_artifacts",
    ("test_a_daemon_that_dies_over_a_file_takes_it_again",
     "test_a_disk_that_fails_over_a_file_costs_the_file_alone",
     "test_a_daemon_that_stands_still_over_a_file_keeps_it_when_it_goes_on"),
)  # fmt: skip
TOLD = Campaign(
    ("outbox.before_telling", "outbox.after_telling"),
    "tests.chaos.test_graph_kills",
    ("test_whatever_happens_as_an_end_is_told_its_child_begins_once",),
)
NEWBORN = Campaign(
    ("migrate.before_commit",),
    "tests.chaos.test_crash_points",
    ("test_a_new_home_survives_every_fault_of_its_first_start",),
)
REST = Campaign(
    ("report.before_denial", "report.before_deny", "spare.before_inner", "spare.before_rename"),
    "tests.chaos.test_crash_points",
    ("test_a_node_at_rest_survives_every_fault_of_what_it_keeps_ready",),
)
ELSEWHERE = (WORDS, UPGRADE, FILES_LEFT, TOLD, NEWBORN, REST)
# What stands for several names in the code.
MANY = {
    "{request.do}": tuple(CHANGES),
    "hub.{do}": tuple(f"hub.{step}" for step in STEPS),
    "{point}": (*FILES, "fleet_yaml"),
}


def in_the_table() -> set[str]:
    """Every name that some case tries."""
    own = {place for campaign in ELSEWHERE for place in campaign.places}
    return {point.name for point in NODE} | {point.name for point in HUB} | own


def spelled_out(written: str) -> set[str]:
    """The names that one `failpoint(…)` in the code may mean."""
    for word, names in MANY.items():
        if word in written:
            return {written.replace(word, name) for name in names}
    return {written}
