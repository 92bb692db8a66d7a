"""Holds what `arc --help` says of each command, so that the help need not load any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# In the order of the help: commands, then groups of them. A test compares each line with its
# command, which says it first.
SUMMARIES = {
    "status": "What needs you, every node with the age of what is known, stranded time, last "
        "moves.",
    "why": "Rule by rule why a task is where it is, and what would change that.",
    "plan": "What a rebalance and the router would do now, and every refusal with its rule.",
    "init": "A fleet.yaml with everything explained, a key pair, and the hub's own folder.",
    "up": "Run the hub: its sensors on time, its links kept open.",
    "pause": "The whole fleet: nothing new starts or moves; what runs goes on.",
    "resume": "The whole fleet works and moves again.",
    "log": "What happened, oldest first: the newest lines, or all since a moment.",
    "doctor": "Everything that could go wrong: this machine, the hub's folder, each node.",
    "explain": "What an error code, a rule or a key of fleet.yaml means; without a word: all "
        "there are.",
    "unit": "Print a systemd user unit that keeps the hub of this fleet.yaml running.",
    "metrics": "Everything that is counted, as Prometheus reads it; exit 3 where a node was not "
        "seen.",
    "budget": "What may be spent and what was, for the fleet, each node and each graph.",
    "demo": "Five real nodes on this machine over real SSH, a hub that moves work between "
        "them, live.",
    "simulate": "Policies side by side on the same work, by the hub's own planner; changes "
        "nothing.",
    "web": "The page of this fleet, until Ctrl-C; it asks the hub that runs, and may outlive it.",
    "report": "What happened, in one HTML file that needs nothing else: no script, no network.",
    "tasks": "Tasks, wherever in the fleet they are.",
    "doubts": "Transfers that are not over.",
    "dag": "Graphs: tasks that wait for one another.",
    "nodes": "The machines of the fleet.",
    "sensors": "The hub's scheduled work.",
    "skills": "The sensors, each by words of its own.",
    "config": "fleet.yaml: checked, shown, and its schema for editors.",
    "schedules": "Where work comes from by itself.",
    "dead": "Dead letters: failed for good, until a person decides.",
    "notify": "Who is told of what needs a person.",
    "webhooks": "Work that signed messages ask for.",
}
ASKS_FOR_HELP = ("-h", "--help")
COMPLETES = "_ARC_COMPLETE"  # what a shell sets that asks for the words which may follow


def is_asked_for(words: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether the names and summaries of the commands are all that these words need."""
    return (not words or words[0] in ASKS_FOR_HELP) and COMPLETES not in environ
