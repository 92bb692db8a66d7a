"""The work of the demo: thirty tasks, what each does, and how each has to end."""

from __future__ import annotations

import json
from dataclasses import dataclass

# priority, need, seconds of work, subject; then what is special about it.
TABLE = """
    1 ops   1.0 restart the mail relay
    1 code  1.2 fix the login that fails on Mondays
    2 ops  30.0 rebuild the search index                  cancelled
    2 code  1.6 review the change to the parser           steps=4
    2 code  1.0 find what leaks memory                    spawns=2
    3 ops   0.7 renew the certificates
    3 code  1.0 mirror the release                        fails=1
    3 code 60.0 crawl a site that never ends              child=1 max_s=2
    4 ops   0.8 rotate the logs
    4 code  0.9 translate the manual
    4 ops   1.2 copy last night's backup                  fails=2
    4 code  0.7 format the examples
    5 code  1.4 measure the new cache
    5 ops   1.3 compress the old reports
    5 code  0.6 answer the survey
    5 code  0.3 import a file that is broken              fails=9
    5 ops   0.9 check the disks
    5 code  1.1 draft the release notes
    6 ops   1.5 warm the caches
    6 code  1.2 sort the bug reports                      fails=1
    6 code  0.8 count the downloads
    6 ops   1.0 update the mirrors
    7 code  1.4 read three papers                         steps=3
    7 code  0.9 tidy the test data
    7 ops   0.6 prune the images
    8 code  1.0 draw the architecture
    8 ops   0.8 label the boxes
    9 code  0.7 spell-check the site
    9 ops   0.5 water the plants
   10 code  0.4 archive the chat
"""
RETRY = {"strategy": "fixed", "initial_s": 0.3, "jitter": 0}


@dataclass(frozen=True)
class Planned:
    """One task as it is added, and the state in which it has to end."""

    document: dict[str, object]
    ends: str
    spawns: int

    @property
    def subject(self) -> str:
        """What people call it."""
        return str(self.document["subject"])


def planned_tasks() -> list[Planned]:
    """The table as tasks; each has a key, so that adding them twice adds them once."""
    lines = [line for line in TABLE.splitlines() if line.strip()]
    return [planned(number, line) for number, line in enumerate(lines, start=1)]


def planned(number: int, line: str) -> Planned:
    """One line of the table."""
    priority, need, seconds, rest = line.split(maxsplit=3)
    subject, _, special = rest.partition("  ")
    said = dict(word.split("=") for word in special.split() if "=" in word)
    work = {name: int(value) for name, value in said.items() if name != "max_s"}
    document: dict[str, object] = {
        "subject": subject, "priority": int(priority), "needs": [need], "retry": RETRY,
        "key": f"demo-{number}", "body": json.dumps({"seconds": float(seconds), **work}),
    }
    if "max_s" in said:
        document |= {"max_s": float(said["max_s"]), "max_attempts": 1}
    return Planned(document, ends_as(special, work.get("fails", 0)), work.get("spawns", 0))


def ends_as(special: str, fails: int) -> str:
    """Three tries are the rule; who fails more often, or runs too long, is given up."""
    if "cancelled" in special:
        return "CANCELLED"
    return "DEAD_LETTERED" if fails > 2 or "max_s" in special else "COMPLETED"  # noqa: PLR2004
