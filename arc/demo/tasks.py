"""Holds the demo's tasks: whose work each is, how urgent, and where it waits at the beginning."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from agent_node.strict import JsonObject

COUNT, COUNT_MAX = 40, 5000
LATER = "later"  # comes into the hub's queue when the first task was moved

# Where it waits, priority, skill (- without one), seconds of work, subject.
TABLE = """
    iris   7 -             0.6 tidy the reading list
    iris   9 -             0.5 mark the inbox read
    iris   2 arc-research  0.6 review the peer report
    iris   8 -             0.5 refresh the status page
    iris   6 github-ci     0.5 repair the flaky pipeline
    iris   9 -             0.5 prune the old branches
    iris   1 arc-research  0.7 answer the reviewers
    iris  10 -             0.4 archive last month's notes
    spark  3 clarity       0.6 audit the token contract
    inbox  2 clarity       0.5 fix the swap contract
    later  5 github-issues 0.5 sort the new issues
    iris   5 arc-research  0.6 summarise the SIP thread
    iris   8 -             0.5 rotate the log files
    iris   3 arc-research  0.6 compare three papers
    later  4 deploy        0.6 roll out the new images
    iris   8 -             0.4 count the open tickets
    spark  4 stacks-js     0.6 update the client library
    inbox  4 -             0.5 Research: what others measured
    iris   6 arc-research  0.6 collect the quotations
    later  8 -             0.4 label the screenshots
    iris  10 -             0.4 sort the screenshots
    iris   4 arc-research  0.6 draft the weekly digest
    later  6 webhooks      0.5 replay the lost webhooks
    spark  5 stacks-js     0.5 trace the nonce fault
    iris   9 -             0.5 check the spelling of the wiki
    iris   2 arc-research  0.6 verify the figures
    later  3 -             0.5 CI: the nightly build is red
    later  9 -             0.4 refresh the badges
    iris   7 arc-research  0.6 index the archive
    inbox  5 stacks-js     0.5 mirror the examples
    spark  6 clarity       0.5 format the contracts
    later  8 -             0.4 empty the trash
    later  5 github-ci     0.5 cache the dependencies
    spark  9 -             0.4 clean the scratch folder
    later  6 -             0.5 think about the logo
    inbox  6 -             0.5 Research: a glossary
    later 10 -             0.4 archive the chat
    spark  7 clarity       0.5 tidy the test vectors
    later  7 github-issues 0.5 close the stale issues
    later  9 -             0.4 resize the pictures
"""
_ROWS = tuple(line for line in TABLE.splitlines() if line.strip())


@dataclass(frozen=True)
class DemoTask:
    """One task as it is added, and where: a node, `inbox` (at once) or `later`."""

    uid: str
    place: str
    subject: str
    priority: int
    skill: str
    seconds: float

    def as_json(self) -> JsonObject:
        """The task as an operator would add it."""
        return {
            "uid": self.uid, "subject": self.subject, "priority": self.priority,
            "skills": [self.skill] if self.skill else [], "expected_s": self.seconds,
            "body": json.dumps({"seconds": self.seconds}), "origin": "human:demo",
        }  # fmt: skip


def demo_tasks(count: int, *, pace: float, mint: Callable[[], str]) -> tuple[DemoTask, ...]:
    """So many tasks, the table over and over. Many are shorter each, so that all of them together
    take about as long as forty; `pace` makes every one longer.
    """
    pace = max(pace * min(1.0, COUNT / count), 0.02)
    return tuple(_task(number, pace, mint()) for number in range(count))


def _task(number: int, pace: float, uid: str) -> DemoTask:
    place, priority, skill, seconds, subject = _ROWS[number % len(_ROWS)].split(maxsplit=4)
    turn = number // len(_ROWS)
    return DemoTask(
        uid, place, f"{subject} ({turn + 1})" if turn else subject, int(priority),
        "" if skill == "-" else skill, round(float(seconds) * pace, 3),
    )  # fmt: skip
