"""Which test holds each threat down, or why none does yet; docs/security.md tells it to people."""

from __future__ import annotations

from dataclasses import dataclass

from tests.held import tests_of


@dataclass(frozen=True)
class Threat:
    """One row: what somebody tries, and the tests by `folder/file::name`, or why there is none."""

    number: int
    what: str
    tests: tuple[str, ...] = ()
    not_here: str = ""  # why what it concerns does not exist here, or is not tested

    @property
    def name(self) -> str:
        return f"T{self.number}"


THREATS = (
    Threat(1, "a hub in wrong hands brings code to every node", tests_of("""
        threats/test_hub_compromise.py
          test_no_word_of_a_hub_touches_anything_but_the_nodes_own_files
          test_there_are_no_words_but_those_of_the_list
        node/upgrading/test_forged.py
          test_a_forged_program_is_refused_by_name_and_nothing_is_written
          test_a_hub_that_was_replaced_brings_no_code
        ssh/test_upgrading.py
          test_the_hubs_own_key_brings_no_code""")),
    Threat(2, "the hub's key is stolen", tests_of("""
        hub/links/test_ssh.py
          test_a_stolen_key_opens_nothing_but_the_one_program
        ssh/test_joining.py
          test_a_key_that_gets_more_is_taken_out_again
        ssh/test_links.py
          test_a_key_taken_away_counts_until_its_connection_retires
          test_a_connection_that_a_thief_holds_open_is_worth_nothing_for_long
          test_a_key_kept_to_another_address_is_one_of_the_reasons_named
        hub/links/test_lifetime.py
          test_ten_minutes_are_the_most
        node/wire/test_old_sessions.py
          test_a_daemon_ends_a_session_that_is_held_open
          test_a_connection_that_has_had_its_time_gets_no_session
        ssh/test_rotating.py
          test_the_steps_for_a_new_key_work_as_they_stand
          test_whoever_is_logged_in_with_a_stolen_key_is_put_out_at_once
        ssh/test_sshd_profile.py
          test_the_profile_of_the_page_leaves_a_key_without_limits_nothing_but_the_node
          test_the_profile_of_the_page_refuses_openssh_itself
        threats/test_hub_compromise.py
          test_what_the_stolen_key_asks_for_in_its_ssh_command_is_ignored
        threats/test_our_files.py
          test_a_key_that_others_may_read_is_not_used""")),
    Threat(3, "a node lies to draw work in, to dump it or to destroy it", tests_of("""
        threats/test_lying_nodes.py
          test_a_lying_node_ruins_no_work_but_its_own_and_what_it_was_given
          test_a_report_that_cannot_be_true_is_named_with_its_node
          test_an_answer_that_cannot_be_true_is_named_with_its_move
          test_what_a_node_says_it_holds_and_does_not_is_kept_at_its_giver_for_a_person
        threats/test_lying_graphs.py
          test_nobody_ends_a_task_that_another_node_has
          test_no_child_is_born_into_a_graph_by_a_node_that_never_ran_its_parent
          test_a_cancelled_graph_takes_no_task_of_another_node_with_it
        threats/test_lying_ends.py
          test_a_node_is_not_told_what_a_task_left_that_nothing_given_to_it_refers_to
          test_a_task_that_a_node_wrote_itself_ties_it_to_nothing
          test_a_lie_about_an_end_keeps_no_task_of_the_hub_from_being_started
          test_births_that_nobody_believes_push_no_others_out
          test_two_ends_of_a_task_that_nobody_moved_are_left_to_a_person
        hub/test_survey.py
          test_a_lying_report_is_unreadable_and_stops_no_other_node
        hub/test_transfer.py
          test_a_lie_in_the_answer_to_escrow_goes_no_further""")),
    Threat(4, "a node takes work and only says that it is done", tests_of("""
        threats/test_lying_nodes.py
          test_a_lying_node_ruins_no_work_but_its_own_and_what_it_was_given
        hub/test_fencing.py
          test_what_had_moved_to_a_dead_machine_is_ready_at_its_giver
        decisions/test_health.py
          test_a_node_that_fails_fast_is_failing""")),
    Threat(5, "oversized, deep, ambiguous or trickling JSON", tests_of("""
        node/test_strict.py
          test_what_is_not_strict_json_is_one_clear_error
          test_ten_thousand_mutated_lines_are_values_or_clear_errors
          test_a_hostile_line_does_not_cost_more_memory_than_its_size_warrants
        node/wire/test_bad_requests.py
          test_ten_thousand_mutilated_lines_get_ten_thousand_clear_answers
        hub/links/test_talk.py
          test_what_is_no_answer_ends_the_talk_and_says_what_changed
          test_silence_before_the_greeting_has_a_limit
        node/daemon/test_answers.py
          test_whatever_answer_is_taken_can_be_told_to_a_hub
        node/daemon/test_validation.py
          test_a_reason_that_nothing_can_hold_is_a_reason_all_the_same""")),
    Threat(6, "a uid, a name or a path of somebody's becomes a path of ours", tests_of("""
        node/wire/test_bad_requests.py
          test_a_bad_field_is_named_and_the_talk_goes_on
        node/processes/test_files.py
          test_strange_names_are_no_attempts_and_never_become_paths
        threats/test_hub_compromise.py
          test_no_word_of_a_hub_touches_anything_but_the_nodes_own_files""")),
    Threat(7, "what is printed drives the operator's terminal, or forges a line", tests_of("""
        threats/test_terminal.py
          test_no_command_lets_anything_but_its_own_lines_happen_to_a_terminal
          test_no_node_command_lets_anything_but_its_own_lines_happen_to_a_terminal
          test_every_command_is_shown_here_or_says_why_not
          test_a_command_that_prints_our_own_words_shows_nothing_that_others_said
          test_what_a_machine_says_while_it_joins_cannot_drive_the_terminal
          test_what_a_login_prints_while_it_joins_cannot_drive_the_terminal
          test_why_an_upgrade_failed_cannot_drive_the_terminal
          test_no_random_text_drives_the_terminal
          test_the_emulator_sees_what_unshielded_text_would_do
        hub/test_config.py
          test_what_the_file_holds_cannot_drive_the_terminal""")),
    Threat(8, "scripts in a page of ours", tests_of("""
        web/test_api.py
          test_no_text_of_a_task_is_markup_in_any_answer
          test_what_is_asked_for_in_an_error_is_no_markup_either
        web/test_guards.py
          test_every_answer_has_every_header_also_an_error
        web/test_report.py
          test_a_hundred_scripts_in_every_field_are_text_of_the_report""")),
    Threat(9, "a field becomes part of a shell line", tests_of("""
        threats/test_injection.py
          test_no_field_of_a_task_reaches_a_shell_or_an_argv
          test_no_field_of_an_imported_task_reaches_a_shell_or_an_argv
          test_what_stands_in_place_of_a_name_is_refused_or_waits_in_one_piece
          test_no_word_of_a_command_reaches_a_shell
          test_no_value_of_fleet_yaml_reaches_a_shell
        test_layers.py
          test_nothing_is_started_through_a_shell
        hub/joining/test_words.py
          test_no_path_that_a_shell_would_read_gets_into_a_key_line""")),
    Threat(10, "a prompt becomes an option of the program", tests_of("""
        threats/test_injection.py
          test_a_prompt_that_looks_like_an_option_is_a_prompt
        node/daemon/test_dispatching.py
          test_the_task_stands_on_stdin_and_never_in_the_arguments""")),
    Threat(11, "what a repository carries runs as the node", tests_of("""
        ssh/test_two_users.py
          test_sixteen_forbidden_deeds_are_refused_to_a_task_and_possible_to_the_owner
        node/daemon/test_dispatching.py
          test_a_program_sees_who_it_is_and_nothing_of_the_daemon""")),
    Threat(12, "a task writes the queue, the report or authorized_keys", tests_of("""
        ssh/test_two_users.py
          test_sixteen_forbidden_deeds_are_refused_to_a_task_and_possible_to_the_owner
          test_a_wrong_token_and_that_of_another_attempt_are_refused_by_name
        node/daemon/test_answers.py
          test_a_verdict_that_the_program_forges_changes_nothing
        threats/test_operators.py
          test_a_task_whose_row_was_changed_behind_our_back_does_not_run""")),
    Threat(13, "YAML that expands, names objects or is no file", tests_of("""
        hub/test_config.py
          test_a_huge_or_folded_file_is_refused_in_a_short_message
          test_any_text_is_read_or_refused_and_never_a_traceback
          test_a_pipe_in_the_files_place_is_an_error_and_keeps_nobody_waiting""")),
    Threat(14, "links, FIFOs and second names in the place of our files", tests_of("""
        threats/test_our_files.py
          test_the_hub_meets_nothing_but_plain_files_of_its_own
          test_a_node_meets_nothing_but_plain_files_of_its_own
          test_the_schema_that_doctor_mends_is_not_written_through_a_link
        node/wire/test_report.py
          test_no_link_is_followed_and_nobody_elses_file_is_written
        node/processes/test_files.py
          test_an_answer_that_is_no_plain_file_is_not_touched
        ssh/test_joining.py
          test_keys_behind_a_link_are_left_alone""")),
    Threat(15, "a database with triggers, or a damaged one", tests_of("""
        node/store/test_migrations.py
          test_a_trigger_or_view_of_somebody_else_is_named_and_refused
        node/daemon/test_trouble.py
          test_a_damaged_database_is_refused_as_it_lies
        threats/test_operators.py
          test_a_damaged_queue_is_one_clear_error""")),
    Threat(16, "another host key, or one of another type", tests_of("""
        ssh/test_links.py
          test_a_changed_host_key_is_shown_beside_the_pinned_one
          test_a_host_key_of_another_type_is_told_from_a_changed_one
        ssh/test_joining.py
          test_a_new_host_key_is_trusted_only_by_its_fingerprint
        decisions/test_health.py
          test_another_host_key_alarms_at_once""")),
    Threat(17, "somebody in the middle at the first contact", tests_of("""
        ssh/test_links.py
          test_an_unknown_host_is_sent_nothing
        ssh/test_joining.py
          test_anything_but_the_fingerprint_is_refused
          test_without_a_terminal_and_a_fingerprint_nobody_is_trusted
          test_the_whole_line_of_ssh_keygen_may_be_pasted_at_a_terminal""")),
    Threat(18, "a node reaches back through the hub's own connection", tests_of("""
        threats/test_reaching_back.py
          test_a_server_that_opens_channels_towards_the_hub_gets_none
        hub/links/test_ssh.py
          test_nothing_of_the_operators_own_ssh_is_used""")),
    Threat(19, "weaker algorithms, or messages cut out of the key exchange", tests_of("""
        ssh/test_links.py
          test_a_real_sshd_agrees_to_our_algorithms_alone
          test_an_sshd_that_speaks_nothing_of_ours_is_told_so
        hub/links/test_lifetime.py
          test_who_takes_no_part_in_strict_key_exchange_is_asked_nothing
        hub/links/test_ssh.py
          test_only_modern_algorithms_are_agreed_upon""")),
    Threat(20, "an older version of our own wire or program is forced on somebody", tests_of("""
        node/wire/test_handlers.py
          test_the_newest_version_that_both_speak_is_agreed
        hub/links/test_talk.py
          test_a_greeting_that_cannot_be_believed_is_unreadable
        node/upgrading/test_upgrading.py
          test_an_older_program_is_taken_only_with_a_word_for_it
        node/upgrading/test_forged.py
          test_a_statement_that_was_here_cannot_come_back_after_a_later_one""")),
    Threat(21, "a word of a move arrives twice, or very late", tests_of("""
        fleet/test_fleet_in_memory.py
          test_no_task_is_started_twice_lost_or_stuck
        node/store/contract_repeats.py
          test_a_repeat_gives_the_recorded_outcome_and_changes_nothing
        node/store/contract_forget.py
          test_a_late_hold_of_a_forgotten_move_is_too_old
        model/test_protocol.py
          test_no_task_is_lost_or_runnable_twice""")),
    Threat(22, "forged or repeated webhooks", tests_of("""
        web/test_webhooks.py
          test_what_is_not_genuine_or_makes_no_task_makes_none
          test_the_signature_is_that_of_this_body_and_this_time
          test_the_same_message_again_is_a_replay_and_says_what_became_of_it
          test_a_hub_that_dies_before_it_wrote_the_message_down_adds_nothing_twice
          test_too_many_are_told_when_to_come_again_and_a_forger_keeps_nobody_out
          test_the_secret_stands_in_no_log_no_journal_and_no_answer""")),
    Threat(23, "a web page talks to a port of ours", tests_of("""
        hub/test_reception.py
          test_the_socket_is_for_its_owner_and_any_path_fits
        threats/test_reaching_back.py
          test_a_hub_and_a_node_listen_on_no_network
        web/test_guards.py
          test_every_mix_of_host_origin_site_method_and_place_gets_through_only_where_it_may
          test_the_whole_page_turns_away_what_its_guards_turn_away_and_changes_nothing
          test_the_token_is_wanted_for_data_and_never_in_the_address
          test_a_body_is_counted_while_it_comes_whatever_it_says_of_its_length
        web/test_web_sockets.py
          test_who_asks_for_a_web_socket_is_answered_as_anybody_else
          test_the_application_says_nothing_to_a_web_socket_that_a_server_lets_through
        web/test_serving.py
          test_a_socket_is_for_its_owner_and_takes_the_place_of_a_dead_one_alone
          test_where_others_reach_the_page_it_wants_a_token_and_says_how_to_make_one
        web/test_acting.py
          test_a_page_that_only_reads_says_how_it_is_made_to_act
          test_nothing_is_done_whose_plan_nobody_has_seen
          test_over_loopback_another_user_of_this_machine_may_look_and_not_act
          test_who_asks_and_leaves_at_once_is_not_taken_for_root
        web/test_live.py
          test_a_browser_that_stops_reading_is_let_go_and_costs_little_until_then
          test_who_connects_and_asks_nothing_is_let_go""")),
    Threat(24, "secrets in argv, logs, status or the journal", tests_of("""
        threats/test_secrets.py
          test_secrets_of_a_task_stand_only_where_tasks_are_kept
          test_the_journal_of_the_hub_holds_no_words_of_a_task
          test_no_environment_of_the_node_reaches_a_task_or_a_file
          test_the_private_key_is_in_its_own_file_alone""")),
    Threat(25, "folders and files that others may read or write", tests_of("""
        threats/test_our_files.py
          test_a_hub_does_not_start_in_a_folder_that_others_may_write
          test_all_that_a_hub_makes_is_for_its_owner_alone
        node/test_home.py
          test_a_home_others_can_reach_is_refused_with_the_exact_fix
        node/daemon/test_report_file.py
          test_all_that_a_daemon_makes_is_for_its_owner_alone
        hub/cli/test_doctor.py
          test_files_that_others_may_read_are_found_and_mended""")),
    Threat(26, "output, lines, forks or peers without end", tests_of("""
        hub/links/test_pipes.py
          test_a_child_that_prints_forever_is_cut_off
        hub/links/test_talk.py
          test_nothing_that_a_node_prints_grows_our_memory
          test_a_node_that_does_not_read_is_not_sent_more
        hub/test_reception.py
          test_a_line_without_an_end_is_not_held_for_ever
        node/wire/test_serve.py
          test_an_endless_line_is_answered_in_flat_memory_and_ends_the_talk
        node/wire/test_door.py
          test_a_daemon_that_drips_without_end_is_given_up_in_bounded_memory
        node/daemon/test_findings_outside.py
          test_more_peers_than_descriptors_do_not_end_the_daemon
        node/daemon/test_answers.py
          test_endless_output_is_cut_in_the_middle_and_counted
          test_a_task_that_failed_with_many_words_can_still_be_shown_and_moved
        node/store/test_graphs_order_and_money.py
          test_what_runs_makes_no_more_work_below_the_floor_of_free_disk
        node/processes/test_hostile_trees.py
          test_who_forks_and_exits_without_end_is_caught
        node/daemon/test_trouble.py
          test_below_the_floor_of_free_space_nothing_is_claimed_and_all_else_works
        ssh/test_faults.py
          test_hostile_nodes_hold_nobody_up_and_fill_no_memory
        hub/links/test_flooding.py
          test_a_server_that_floods_beside_its_sessions_is_cut_and_the_others_are_asked
          test_a_session_that_lied_takes_its_connection_with_it""")),
    Threat(27, "one bad node holds up all the others", tests_of("""
        hub/test_survey.py
          test_a_silent_node_delays_nobody_beyond_its_own_deadline
        sensors/test_cycles.py
          test_one_silent_node_delays_a_run_by_its_deadline_alone
        ssh/test_faults.py
          test_a_hostile_node_costs_the_cycle_of_the_others_a_tenth_at_most
          test_hostile_nodes_hold_nobody_up_and_fill_no_memory""")),
    Threat(28, "clocks that are off, jump or stand", tests_of("""
        hub/test_survey.py
          test_a_clock_that_is_off_is_measured_and_believed_in_nothing
        decisions/test_stealing.py
          test_fault_the_hubs_clock_was_held_against_the_nodes_stamp
        hub/test_schedule.py
          test_a_wall_clock_set_back_does_not_keep_sensors_waiting
        node/store/contract_giver.py
          test_a_wall_clock_that_jumps_ends_no_lease
        node/store/test_order.py
          test_a_retry_waits_no_longer_for_a_clock_that_is_put_back
        decisions/test_watching.py
          test_a_clock_that_was_years_ahead_silences_no_rule""")),
    Threat(29, "two hubs, or an old one that comes back", tests_of("""
        hub/test_lease.py
          test_a_held_lease_names_the_process_that_holds_it
          test_a_folder_that_lies_beside_its_copy_is_another_hub
        node/store/contract_senders.py
          test_a_hub_of_an_older_term_changes_nothing
          test_a_second_hub_of_the_same_term_changes_nothing""")),
    Threat(30, "a package that we lean on turns bad", tests_of("""
        packaging/test_requirements.py
          test_every_pin_is_exact_and_hashed
          test_a_pinned_file_names_no_index_and_no_folder
        test_layers.py
          test_the_node_imports_the_standard_library_and_itself_alone"""),
        not_here="known faults of the pinned versions are not asked for: that needs a registry"),
    Threat(31, "a prompt that was read somewhere makes work with more rights", tests_of("""
        node/daemon/test_inside.py
          test_a_task_may_queue_another
        node/wire/test_handlers.py
          test_a_running_task_beats_tells_and_spawns_with_its_token
          test_a_hub_does_not_speak_for_a_running_task
          test_a_new_task_brings_no_life_of_its_own"""),
        not_here="tasks have a source and an origin, and no levels of trust"),
    Threat(32, "an operator's slip: the wrong node, or everything at once", tests_of("""
        threats/test_operators.py
          test_a_paused_node_hands_out_nothing_however_often_it_is_asked
        hub/cli/test_tasks.py
          test_several_at_once_take_a_word
        hub/cli/test_nodes.py
          test_a_fence_takes_a_persons_word_that_the_machine_is_off
          test_the_last_node_that_takes_work_drains_only_with_a_word""")),
)
