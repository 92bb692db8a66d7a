"""Runs the tests: every tier that this machine can run, that of real SSH without root, too.

`python -m tools.all_tiers [ARGS…]` is `make test`. Without words, or for tests/ssh as a whole,
there are several runs of pytest side by side, summed up as one. Who names other tests, or options,
gets one run. Who is not root, but may have a user namespace, gets the container nodes in there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.batches import Batch, all_files, divide
from tools.laboratory import APART, may_run_apart
from tools.side_by_side import Ended, Job, run_side_by_side
from tools.sources import ROOT
from tools.tally import Tally, closing, read_tally, ruled, summed
from tools.tiers import MUST_RUN, tier_of

RUN = (sys.executable, "-m", "pytest", "-p", "tools.tiers")
NICE = ("nice", "-n", "5")
PATIENT, PROMPT = "patient", "prompt"
PROCESSORS = os.cpu_count() or 1
# What computes takes what the others leave, and those mostly wait: for containers, for daemons.
LANES = {PATIENT: PROCESSORS, PROMPT: max(PROCESSORS // 2, 2)}
FOLDER = "tests/ssh"
LIMIT_S = 40 * 60.0  # of one run of pytest; all of them together take less than half of it
UNREADABLE, INTERRUPTED = 2, 130


def runs(args: Sequence[str], *, apart: bool) -> list[list[str]]:
    """The commands to run one after the other; `apart`: container nodes need a user namespace."""
    named = [arg for arg in args if arg.startswith("tests")]
    inside = any(arg.startswith(FOLDER) for arg in named)
    if not apart or (named and not inside):
        return [[*RUN, *args]]
    if named:
        return [[*APART, *RUN, *args]]
    return [[*RUN, *args, f"--ignore={FOLDER}"], [*APART, *RUN, *args, FOLDER]]


def jobs(batches: Sequence[Batch], place: Path, *, apart: bool) -> list[Job]:
    """What to run side by side; each leaves its words and its tally in `place`."""
    return [Job(batch.name, command(batch, place, apart=apart), place / f"{batch.name}.txt",
                PATIENT if batch.is_patient else PROMPT) for batch in batches]  # fmt: skip


def command(batch: Batch, place: Path, *, apart: bool) -> tuple[str, ...]:
    """One run of pytest. It keeps no cache: several that write the same one lose each other's."""
    before = (*(NICE if batch.is_patient else ()), *(APART if apart and batch.is_ssh else ()))
    tally = ("--tally", str(place / f"{batch.name}.json"))
    return (*before, *RUN, "-p", "no:cacheprovider", *tally, *batch.files)


def found(ended: Ended) -> Tally:
    """What a run left behind; one that came to no end of its own counts as an error.

    pytest's 2 is an end of its own when files could not be imported, and a Ctrl-C otherwise.
    """
    tally = read_tally(ended.job.said.with_suffix(".json"))
    by_itself = ended.code in (0, 1) or (ended.code == UNREADABLE and tally
                                         and tally.outcomes["error"])  # fmt: skip
    if tally is not None and by_itself and not ended.late:
        return tally
    how = "took too long" if ended.late else f"exit code {ended.code}"
    trouble = Tally(troubles=[f"ERROR the run of pytest named {ended.job.name} - {how}"])
    trouble.outcomes["error"] = 1
    return summed([tally or Tally(), trouble])


def run_all(
    batches: Sequence[Batch], place: Path, *, apart: bool, must_run: frozenset[str] = frozenset()
) -> int:
    """Side by side, then what they said where something failed, then all of it in one closing."""
    began = time.monotonic()
    person = sys.stdout.isatty()

    def minute(running: Sequence[str], waiting: int) -> None:
        if person:
            print(f"{time.monotonic() - began:5.0f} s  running: {', '.join(running)};"
                  f" {waiting} to come", flush=True)  # fmt: skip

    ended = run_side_by_side(
        jobs(batches, place, apart=apart), lanes=LANES, limit_s=LIMIT_S,
        ended=lambda one: print(told(one), flush=True), minute=minute,
    )  # fmt: skip
    for one in ended:
        if one.code or one.late:
            print(ruled(one.job.name), one.job.said.read_text(errors="replace"), sep="\n")
    whole = summed(map(found, ended))
    whole.unlawful += [f"{tier}: this tier must run here, and nothing of it did"
                       for tier in sorted(must_run - whole.ran.keys())]  # fmt: skip
    print(*closing(whole, time.monotonic() - began), sep="\n", flush=True)
    return worst(ended, whole)


def worst(ended: Sequence[Ended], whole: Tally) -> int:
    """The exit code of all: the worst of any, and never 0 where something is wrong."""
    codes = [one.code if one.code >= 0 else 128 - one.code for one in ended]
    return max(*codes, int(bool(whole.troubles or whole.unlawful)))


def told(ended: Ended) -> str:
    """One line, when a run of pytest has ended."""
    tally = found(ended)
    word = "FAILED" if ended.code else "ok"
    counts = ", ".join(f"{number} {name}" for name, number in tally.outcomes.items())
    return (f"{word:7} {ended.job.name:12} {ended.took_s:4.0f} s ({tally.cpu_s:.0f} s of CPU):"
            f" {counts}")  # fmt: skip


def main() -> int:
    """All of them are run, whatever becomes of the first; the worst exit code counts."""
    apart, args = os.geteuid() != 0 and may_run_apart(), sys.argv[1:]
    if args not in ([], [FOLDER]):
        commands = runs(args, apart=apart)
        return max(subprocess.run(command, check=False).returncode for command in commands)
    with tempfile.TemporaryDirectory(prefix="arc-tests-") as place:
        try:
            batches = [one for one in divide(all_files(ROOT)) if one.is_ssh or not args]
            must_run = MUST_RUN & {tier_of(FOLDER + "/")} if args else MUST_RUN
            return run_all(batches, Path(place), apart=apart, must_run=must_run)
        except KeyboardInterrupt as error:
            print(f"make test: ended by {error}, and all that ran with it", file=sys.stderr)
            return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
