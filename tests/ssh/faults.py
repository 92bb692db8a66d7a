"""Which test holds each fault of the catalogue over a real sshd, or why none, and which then."""

from __future__ import annotations

from dataclasses import dataclass

from tests.held import tests_of


@dataclass(frozen=True)
class Row:
    """One fault: the tests over sshd, those without, and what is not tried over sshd, and why."""

    what: str
    tests: tuple[str, ...]
    not_here: str = ""

    @property
    def over_sshd(self) -> tuple[str, ...]:
        """Those in which a real sshd stands between hub and node."""
        return tuple(test for test in self.tests if test.startswith("tests/ssh/"))


SAME = "no byte of it crosses the link: behind sshd it is the same"

FAULTS = (
    Row("hub killed at any point of a cycle", tests_of("""
        ssh/test_faults.py
          test_a_hub_that_dies_is_lost_or_doubled_costs_no_task
        chaos/test_crash_points.py
          test_each_place_of_the_hub_meets_each_action"""),
        "each of its places: a thousand fleets, by pipes"),
    Row("the hub's disk is lost", tests_of("""
        ssh/test_faults.py
          test_a_hub_that_dies_is_lost_or_doubled_costs_no_task""")),
    Row("the hub is started twice", tests_of("""
        ssh/test_faults.py
          test_a_hub_that_dies_is_lost_or_doubled_costs_no_task
        hub/test_lease.py
          test_a_held_lease_names_the_process_that_holds_it""")),
    Row("two hubs on two machines", tests_of("""
        ssh/test_faults.py
          test_a_hub_that_dies_is_lost_or_doubled_costs_no_task
        node/store/contract_senders.py
          test_a_hub_of_an_older_term_changes_nothing
          test_a_second_hub_of_the_same_term_changes_nothing""")),
    Row("node killed between any two steps", tests_of("""
        ssh/test_chaos.py
          test_a_short_chaos_loses_and_doubles_nothing
        chaos/test_crash_points.py
          test_each_place_of_a_node_meets_each_action"""),
        f"each of its places: {SAME}"),
    Row("daemon killed, its tasks live", tests_of("""
        ssh/test_faults.py
          test_machines_that_fail_settle_their_work_by_themselves
        node/daemon/test_kill_nine.py
          test_a_daemon_killed_with_programs_running_is_followed_by_one_that_takes_them_over
          test_shim_and_daemon_killed_together_leave_no_program_behind""")),
    Row("a task, or the daemon, is stopped and goes on", tests_of("""
        ssh/test_faults_silent.py
          test_faults_that_end_nothing_are_told_and_over_in_time
        node/processes/test_hostile_trees.py
          test_a_stopped_program_hears_term_too
        node/daemon/test_kill_nine.py
          test_what_ended_while_no_daemon_was_there_is_accepted_exactly_once"""),
        "past the lease of a move, which ends by itself: `tests/node/store/`"),
    Row("reboot, power cut", tests_of("""
        ssh/test_faults.py
          test_machines_that_fail_settle_their_work_by_themselves
        node/daemon/test_findings.py
          test_a_started_attempt_is_interrupted_by_a_power_cut""")),
    Row("disk full", tests_of("""
        ssh/test_faults.py
          test_machines_that_fail_settle_their_work_by_themselves
        node/daemon/test_trouble.py
          test_below_the_floor_of_free_space_nothing_is_claimed_and_all_else_works
          test_on_a_full_disk_what_runs_ends_and_its_result_waits_for_room""")),
    Row("disk fails to read or to sync", tests_of("""
        chaos/test_crash_points.py
          test_each_place_of_a_node_meets_each_action
        node/cli/test_running.py
          test_a_disk_that_fails_anywhere_is_no_fault_of_ours"""),
        f"each call that it makes is struck: {SAME}"),
    Row("the queue's database is busy", tests_of("""
        node/daemon/test_readers.py
          test_readers_that_come_and_go_disturb_nothing"""), SAME),
    Row("the queue's database is damaged", tests_of("""
        ssh/test_faults_doors.py
          test_a_queue_that_is_damaged_is_named_and_the_others_work_on
        node/daemon/test_trouble.py
          test_a_damaged_database_is_refused_as_it_lies""")),
    Row("a task's row rots", tests_of("""
        node/store/contract_finish.py
          test_a_task_whose_hash_is_wrong_never_runs_and_says_so
          test_a_damaged_task_does_not_travel"""), SAME),
    Row("an SQLite with a known fault", tests_of("""
        node/cli/test_setup.py
          test_the_wal_reset_fault_is_known_by_version"""), f"needs another SQLite: {SAME}"),
    Row("a report that is missing, empty, cut, old or somebody else's", tests_of("""
        hub/test_survey.py
          test_a_lying_report_is_unreadable_and_stops_no_other_node
          test_a_report_under_another_incarnation_than_was_met_is_unreadable
        threats/test_lying_nodes.py
          test_a_report_that_cannot_be_true_is_named_with_its_node
        decisions/test_health.py
          test_of_a_stale_report_nothing_is_believed"""),
        "sshd carries bytes, whatever they say"),
    Row("a link cut both ways or one way, a connection half open", tests_of("""
        ssh/test_links.py
          test_with_its_real_settings_a_cut_link_is_noticed_within_fifteen_seconds
        ssh/test_faults.py
          test_nodes_that_cannot_be_reached_are_told_apart_and_come_back
        ssh/test_faults_silent.py
          test_faults_that_end_nothing_are_told_and_over_in_time
        ssh/test_lab.py
          test_a_cable_that_is_cut_one_way_carries_the_other""")),
    Row("a link that is slow, loses, resets; an answer lost, late or twice", tests_of("""
        ssh/test_faults_silent.py
          test_faults_that_end_nothing_are_told_and_over_in_time
        ssh/test_faults_doors.py
          test_connections_that_are_reset_while_tasks_move_cost_no_task
        ssh/test_links.py
          test_a_slow_and_lossy_link_is_slow_and_nothing_else
        fleet/test_fleet_in_memory.py
          test_no_task_is_started_twice_lost_or_stuck"""),
        "an answer lost, late or twice: the fleet in memory, as TCP does not do that to a session"),
    Row("sshd restarted, key revoked, host key changed, MaxStartups", tests_of("""
        ssh/test_faults.py
          test_nodes_that_cannot_be_reached_are_told_apart_and_come_back
          test_machines_that_fail_settle_their_work_by_themselves
        ssh/test_faults_doors.py
          test_every_door_that_an_sshd_shuts_is_named_and_found_open_again""")),
    Row("a name that does not resolve, or slowly", tests_of("""
        ssh/test_faults_doors.py
          test_a_name_that_is_long_looked_up_holds_nobody_up""")),
    Row("a clock that is ten years off either way, is put back, or stands", tests_of("""
        ssh/test_faults_silent.py
          test_faults_that_end_nothing_are_told_and_over_in_time
        ssh/test_faults.py
          test_machines_that_fail_settle_their_work_by_themselves
        node/store/contract_giver.py
          test_a_wall_clock_that_jumps_ends_no_lease
        node/store/test_order.py
          test_a_clock_that_is_put_back_makes_nobody_wait_for_it
        hub/test_schedule.py
          test_a_wall_clock_set_back_does_not_keep_sensors_waiting"""),
        "put back or standing while programs run: container nodes share their kernel's clock"),
    Row("a subject of ten megabytes", tests_of("""
        node/cli/test_adding.py
          test_a_subject_of_ten_megabytes_is_one_short_error"""),
        "refused before it is sent, and by the node's own door"),
    Row("very many tasks", tests_of("""
        hub/test_transfer.py
          test_a_batch_moves_whole_in_five_requests_however_many_tasks
        decisions/test_stealing.py
          test_five_hundred_foreign_tasks_do_not_hide_the_one_that_may_move"""),
        "how long they take is measured (`make bench`, docs/performance.md)"),
    Row("text that is no text, or turns the eye", tests_of("""
        node/test_strict.py
          test_what_is_not_strict_json_is_one_clear_error
        threats/test_terminal.py
          test_no_command_lets_anything_but_its_own_lines_happen_to_a_terminal"""),
        "sshd carries bytes, whatever they say"),
    Row("one uid twice, with the same content or another", tests_of("""
        node/store/contract_add.py
          test_a_key_used_twice_with_the_same_content_exists_as_the_first
          test_one_uid_with_other_content_is_a_conflict"""), SAME),
    Row("a task that does not end, forks, daemonises, prints for ever", tests_of("""
        node/processes/test_hostile_trees.py
          test_a_hundred_hostile_trees_leave_nobody_behind
          test_who_forks_and_exits_without_end_is_caught
        node/daemon/test_answers.py
          test_endless_output_is_cut_in_the_middle_and_counted"""), SAME),
    Row("an upgrade, and death at any step of it", tests_of("""
        ssh/test_upgrading.py
          test_a_fleet_that_works_is_upgraded_canary_first_and_its_tasks_do_not_notice
          test_a_node_of_the_next_wire_version_gives_and_takes_under_this_hub
          test_a_broken_program_stops_at_the_canary_which_goes_back
        chaos/test_upgrade_crashes.py
          test_death_at_any_step_leaves_one_whole_program_and_a_daemon_that_starts
        node/wire/test_handlers.py
          test_the_newest_version_that_both_speak_is_agreed"""),
        f"each of its steps: {SAME}"),
    Row("a board in git that is pushed to by many", (), "there is no such board"),
    Row("a PostgreSQL that fails over", (), "queues are SQLite alone"),
)
