"""Divides the files of tests among several runs of pytest; each file is in exactly one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS, SSH = "tests", "tests/ssh/"
# A file goes where the longest beginning of its path stands; a new one needs no line here. The
# batches begin in this order, the long ones first.
BEGINNINGS: dict[str, tuple[str, ...]] = {
    "chaos": ("tests/chaos/",),
    "ssh-faults": (SSH,),
    "ssh-users": ("tests/ssh/test_two_users", "tests/ssh/test_joining"),
    "daemons": ("tests/node/daemon/", "tests/node/processes/", "tests/node/upgrading/"),
    "ssh-links": ("tests/ssh/test_links", "tests/ssh/test_lab", "tests/ssh/test_faults_doors",
                  "tests/ssh/test_upgrading"),
    "fleet": ("tests/fleet/",),
    "page": ("tests/browser/", "tests/web/"),
    "rest": ("tests/",),
    "node": ("tests/node/",),
    "hub": ("tests/hub/",),
}
# These compute and wait for nobody: they leave the processors to whoever has a time to keep.
PATIENT = frozenset({"fleet", "hub", "rest", "node"})


@dataclass(frozen=True)
class Batch:
    """Files that one run of pytest takes, one after the other."""

    name: str
    files: tuple[str, ...]

    @property
    def is_patient(self) -> bool:
        """True when nothing in it measures how soon something happens."""
        return self.name in PATIENT

    @property
    def is_ssh(self) -> bool:
        """True when it starts container nodes; then nothing else is in it."""
        return self.files[0].startswith(SSH)


def divide(
    files: Iterable[str], beginnings: Mapping[str, Sequence[str]] = BEGINNINGS
) -> list[Batch]:
    """Every file once, sorted within its batch; batches in the table's order, none empty."""
    by_length = sorted(
        ((start, name) for name, starts in beginnings.items() for start in starts),
        key=lambda pair: -len(pair[0]),
    )
    divided: dict[str, list[str]] = {name: [] for name in beginnings}
    for file in sorted(files):
        divided[next(name for start, name in by_length if file.startswith(start))].append(file)
    return [Batch(name, tuple(mine)) for name, mine in divided.items() if mine]


def all_files(root: Path) -> list[str]:
    """The files that pytest would collect from, as paths below the root."""
    found = (root / TESTS).rglob("test_*.py")
    return sorted(str(path.relative_to(root)) for path in found)
