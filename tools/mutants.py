"""Takes the product's guards away, one at a time, and demands that a named test then fails."""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

if not __package__:  # started by its path, Python looks for modules beside this file alone
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tools.mutant_table import PAGE, Mutant, changed, objection, read_mutants, write_table
from tools.sources import ROOT

LIMIT_S = 180.0  # of one mutant's tests; a test that never ends has not failed
BASELINE_LIMIT_S = 900.0
END_S = 15.0  # for the tests of a run that took too long to clean up after themselves
ROOM = 1024**3  # bytes that must be free in memory before copies of the tree lie there
# These say that the mutant does not run, not that a test missed the guard.
NO_MUTANT = ("ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "NameError")
_times = count(1_000_000_000)


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant; `by` is the test that failed, or why none counts as failed."""

    mutant: Mutant
    killed: bool
    by: str
    took_s: float


def main(words: Sequence[str]) -> int:
    """0 when every chosen mutant is killed; 1 when one survives or cannot be tried."""
    given = _arguments(words)
    mutants = [one for one in read_mutants() if not given.only or one.name in given.only]
    unknown = set(given.only) - {one.name for one in mutants}
    if unknown:
        print(f"mutants: no such mutant: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    if given.list:
        print("\n".join(one.name for one in mutants))
        return 0
    if given.table:
        write_table(PAGE)
        return 0
    return _try_all(mutants, jobs=given.jobs)


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--only", metavar="NAME", nargs="+", default=[], help="try these alone")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--table", action="store_true", help="write docs/reliability.md's table")
    parser.add_argument("--jobs", type=int, default=max((os.cpu_count() or 1) // 2, 1),
                        help="how many are tried at the same time")  # fmt: skip
    return parser.parse_args(words)


def _try_all(mutants: Sequence[Mutant], *, jobs: int) -> int:
    misfits = [said for said in map(objection, mutants) if said]
    if misfits:
        print("\n".join(misfits), file=sys.stderr)
        return 1
    with trees(jobs) as free:
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        tree = free.get()
        ran = _run_tests(tree, tests, limit_s=BASELINE_LIMIT_S)
        free.put(tree)
        if ran.code != 0:
            print(f"{ran.said}\nmutants: fails without any mutant: {ran.first}", file=sys.stderr)
            return 1
        print(f"mutants: {len(mutants)} to try; their {len(tests)} tests pass without them",
              flush=True)  # fmt: skip
        with ThreadPoolExecutor(jobs) as pool:
            verdicts = [_told(one) for one in pool.map(lambda one: try_in(free, one), mutants)]
    survivors = [one.mutant.name for one in verdicts if not one.killed]
    print(f"mutants: {len(verdicts) - len(survivors)} killed, {len(survivors)} survived",
          *survivors)  # fmt: skip
    return 1 if survivors else 0


def _told(verdict: Verdict) -> Verdict:
    word = "killed  " if verdict.killed else "SURVIVED"
    by = verdict.by[:200]
    print(f"  {word} {verdict.took_s:6.1f} s  {verdict.mutant.name}: {by}", flush=True)
    return verdict


@contextmanager
def trees(number: int) -> Iterator[queue.Queue[Path]]:
    """Copies of the tree as it lies here, in memory where there is room; gone afterwards."""
    shm = "/dev/shm"
    roomy = os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > ROOM * number
    free: queue.Queue[Path] = queue.Queue()
    with tempfile.TemporaryDirectory(prefix="arc-mutants-", dir=shm if roomy else None) as place:
        for n in range(number):
            free.put(_copy_of_the_tree(Path(place) / f"tree-{n}"))
        yield free


def _copy_of_the_tree(target: Path) -> Path:
    """What git tracks and what it does not ignore: no .venv, no caches."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():  # one that was removed and not yet committed is listed, too
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def try_in(free: queue.Queue[Path], mutant: Mutant) -> Verdict:
    """Apply this mutant to a copy, run its tests, and take it back."""
    tree, began = free.get(), time.monotonic()
    try:
        with _applied(tree, mutant):
            ran = _run_tests(tree, mutant.tests, limit_s=LIMIT_S)
    finally:
        free.put(tree)
    return Verdict(mutant, ran.is_a_failure, ran.first, time.monotonic() - began)


@contextmanager
def _applied(tree: Path, mutant: Mutant) -> Iterator[None]:
    new = changed(tree, mutant)
    whole = {name: (tree / name).read_text(encoding="utf-8") for name in new}
    try:
        for name, text in new.items():
            _write(tree / name, text)
        yield
    finally:
        for name, text in whole.items():
            _write(tree / name, text)


def _write(path: Path, text: str) -> None:
    """With a time of its own: compiled code is known by the second and the size of its source."""
    path.write_text(text, encoding="utf-8")
    moment = next(_times)
    os.utime(path, (moment, moment))


@dataclass(frozen=True)
class Ran:
    """How a run of tests ended: pytest's exit code, its words, and the first that failed."""

    code: int
    said: str
    first: str

    @property
    def is_a_failure(self) -> bool:
        """Whether a test ran and missed the guard; not an import that fails, or a time limit."""
        return self.code == 1 and not any(f" - {word}" in self.first for word in NO_MUTANT)


def _run_tests(tree: Path, tests: Sequence[str], *, limit_s: float) -> Ran:
    # A guard that is missed leaves programs behind, which no test of a whole node would.
    contained = [sys.executable, str(ROOT / "tools" / "contained.py"), sys.executable]
    command = [*contained, "-m", "pytest", "-x", "-q", "--color=no", "--tb=short",
               "-p", "no:cacheprovider", f"--basetemp={tree}.tmp", *tests]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=tree, env={**os.environ, "COLUMNS": "300"}, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=limit_s)
    except BaseException as error:
        said = _end(process)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return Ran(-1, said, f"not over within {limit_s:g} s")
    lines = sorted(re.findall(r"^(?:FAILED|ERROR) .*$", said, re.MULTILINE), reverse=True)
    return Ran(process.returncode, said, lines[0] if lines else said.rstrip().split("\n")[-1])


def _end(process: subprocess.Popen[str]) -> str:
    """Let pytest clean up what its tests have started; then end it."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        return process.communicate(timeout=END_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
