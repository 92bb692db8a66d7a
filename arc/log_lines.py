"""Names every line that the hub's log may have, each with when it is written."""

from __future__ import annotations

from typing import Final

# docs/events.md is drawn from this table, and `arc log --event` takes its words. A sensor of
# somebody else's may write lines of its own, which are known once there is one.
LINES: Final[dict[str, str]] = {
    "alert_began": "the health of a node began to be in trouble by this rule",
    "alert_ended": "that trouble is over",
    "answer_came_late": "a node answered after its cycle, which had not waited for it",
    "answer_never_came": "it did not, and its time ran out",
    "awaited_file_is_nowhere": "a task waits for a file that no queue has",
    "awaited_task_is_nowhere": "a task waits for one that no queue has",
    "cancels_still_owed": "a node could still not be told to cancel tasks of a cancelled graph",
    "dag_budget_set": "a person said what a graph may spend from now on",
    "dag_cancelled": "a person cancelled a graph",
    "dag_failed": "a graph ended with a task of it that had ended badly",
    "dag_submitted": "a graph was taken into the hub's own queue",
    "dead_cancelled": "a person decided that nobody will do a dead letter any more",
    "dead_edited": "a person changed a dead letter and let it run again",
    "dead_retried": "a person let a dead letter run again",
    "dead_reviewed": "a person looked at a dead letter",
    "end_doubted": "an end was heard of a task that lives elsewhere or ended otherwise",
    "ends_unknown": "what had ended on a node that refused it for that could not be asked",
    "ends_untold": "a node could not be told which of the tasks that it gave or waits for ended",
    "fleet_paused": "a person paused the whole fleet",
    "fleet_resumed": "a person let it go on",
    "forgetting_waits": "the hub's clock may be wrong, so nothing is forgotten for its age",
    "history_not_believed": "a node told of its past what cannot be; those times are left out",
    "hub_started": "a hub began to run; `because`: where the one before it did not end by itself",
    "hub_stopped": "it ended by itself; `because`: where an error ended it",
    "inbox_disk_broken": "the disk under the hub's own queue failed, and the hub ended",
    "journal_disk_broken":
        "the disk under the hub's journal failed, and the hub ended; the next one says so",
    "node_draining": "a person drains a node",
    "node_fenced": "a person said that a machine is off",
    "node_joined": "a machine joined the fleet",
    "node_paused": "a person paused a node, or one agent of it",
    "node_removed": "a machine left the fleet",
    "node_replaced": "a node came back as another queue; its old one is not seen any more",
    "node_resumed": "a person let it take work again",
    "node_suspended": "a person suspended a node: it is not even asked",
    "node_trusted": "a machine's new host key was trusted",
    "node_unsuspended": "it is asked again",
    "node_upgrade_began": "a node is sent a new program",
    "node_upgrade_ended": "and with which outcome that ended",
    "notice_given_up": "a receiver of notices could not be told, and is not tried again",
    "notice_tested": "a person sent a receiver a test",
    "notice_told": "a receiver of notices was told",
    "output_damaged": "a node told an output that has another hash than when its task ended",
    "output_withheld": "a node asked for what a task left, and nothing it was given refers to it",
    "run_could_not_look": "a run of a sensor that could not see what it needs",
    "run_done": "a run of a sensor that did its work",
    "run_failed": "a run of a sensor that ended with an error",
    "run_skipped": "a run of a sensor that had nothing to do; only with `--all`, or by this word",
    "settings_followed": "the hub took over a change of fleet.yaml",
    "settings_refused": "fleet.yaml was changed to what cannot be obeyed",
    "task_cancelled": "a person cancelled a task, or told one that runs to stop",
    "task_dead_lettered": "the hub heard that no further attempt is made of a task",
    "task_in_doubt": "a move whose outcome is not known yet",
    "task_kept": "a move that did not come about: the task stayed",
    "task_moved": "a task was moved, by a sensor or by a person",
    "task_resolved": "a person said what became of a task",
    "task_retried": "a person let a task run again",
    "task_set": "a person changed fields of a task",
    "task_settled": "a person said that a task lives in one place, or a move in doubt was ended",
    "tasks_cancelled": "as `task_cancelled`, of more than fifty at once: only how many",
    "tasks_dead_lettered": "as `task_dead_lettered`, of more than fifty",
    "tasks_resolved": "as `task_resolved`, of more than fifty",
    "tasks_retried": "as `task_retried`, of more than fifty",
    "tasks_set": "as `task_set`, of more than fifty",
    "tasks_wait_in_a_circle": "tasks wait for one another in a circle",
    "word_in_doubt":
        "an order left for a node and no answer came: it may have happened; `asked` says which",
    "word_still_owed": "a node could still not be told what a person said to the whole fleet",
    "word_told_later": "it was told now",
    "work_added": "a schedule, a watched folder or a signed message brought work in",
}


def line_named(word: str) -> str:
    """The line's own name, also where it was typed as `Task.Cancelled`; a word that names none as
    it is.
    """
    alike = word.strip().lower().replace(".", "_").replace("-", "_")
    return alike if alike in LINES else word
