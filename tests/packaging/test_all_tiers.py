"""Holds how make test runs everything: several runs of pytest side by side, told as one."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import all_tiers
from tools.batches import BEGINNINGS, PATIENT, Batch, all_files, divide
from tools.laboratory import APART
from tools.side_by_side import Ended, Job, run_side_by_side
from tools.sources import ROOT
from tools.tally import Tally, closing, read_tally, summed, write_tally

GENEROUS_S = 60.0
PASSES = "def test_{name}():\n    pass\n"
FAILS = "def test_b():\n    print('the forge is cold')\n    assert 1 == 2\n"
DIES = "import os, signal\n\ndef test_c():\n    os.kill(os.getpid(), signal.SIGKILL)\n"


MEETS = """
import pathlib, time
mine, other = map(pathlib.Path, {!r})
mine.touch()
while not other.exists():
    time.sleep(0.01)
print('met')
"""


def python(name: str, script: str, place: Path) -> Job:
    return Job(name, (sys.executable, "-c", script), place / f"{name}.txt")


def nothing(*_: object) -> None:
    """Hears of it and says nothing."""


# --- The division ---------------------------------------------------------------------------------


@given(st.sets(st.sampled_from(all_files(ROOT)) | st.just("tests/new/test_new.py")))
def test_every_file_is_in_exactly_one_batch(files: set[str]) -> None:
    batches = divide(files)
    assert sorted(file for batch in batches for file in batch.files) == sorted(files)
    assert all(batch.files for batch in batches)


def test_no_line_of_the_division_is_without_files() -> None:
    """A file that was renamed leaves its line behind, and its batch is no longer what it was."""
    files = all_files(ROOT)
    for start in (start for starts in BEGINNINGS.values() for start in starts):
        assert any(file.startswith(start) for file in files), start


def test_container_nodes_share_no_run_with_anything_else() -> None:
    """Without root they run in a namespace where other tests would find themselves to be root."""
    for batch in divide(all_files(ROOT)):
        assert len({file.startswith("tests/ssh/") for file in batch.files}) == 1, batch.name


def test_a_new_file_goes_where_the_longest_beginning_stands() -> None:
    beginnings = {"forge": ("t/a/",), "loom": ("t/a/test_x",), "rest": ("t/",)}
    assert divide(["t/a/test_y.py", "t/b/test.py", "t/a/test_x1.py"], beginnings) == [
        Batch("forge", ("t/a/test_y.py",)), Batch("loom", ("t/a/test_x1.py",)),
        Batch("rest", ("t/b/test.py",)),
    ]  # fmt: skip


def test_what_only_computes_stands_back_for_what_has_a_time_to_keep(tmp_path: Path) -> None:
    assert set(BEGINNINGS) > PATIENT
    hub, chaos = all_tiers.jobs([Batch("hub", ("a",)), Batch("chaos", ("b",))], tmp_path,
                                apart=False)  # fmt: skip
    assert hub.argv[:3] == ("nice", "-n", "5")
    assert (hub.lane, chaos.lane) == ("patient", "prompt")
    assert chaos.argv[0] == sys.executable


def test_who_is_not_root_runs_the_batches_of_container_nodes_apart(tmp_path: Path) -> None:
    batches = [Batch("ssh", ("tests/ssh/test_lab.py",)), Batch("loom", ("tests/test_docs.py",))]
    ssh, rest = all_tiers.jobs(batches, tmp_path, apart=True)
    assert ssh.argv[: len(APART)] == APART
    assert rest.argv[0] == sys.executable
    assert all_tiers.jobs(batches, tmp_path, apart=False)[0].argv[0] == sys.executable


def test_who_names_tests_or_options_gets_one_run_of_pytest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the tier of real SSH, which is named as a whole, is divided as in a run of everything."""
    heard: list[object] = []

    def run(argv: list[str], *, check: bool) -> subprocess.CompletedProcess[bytes]:
        heard.append(argv)
        return subprocess.CompletedProcess(argv, 3)

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setattr(all_tiers, "run_all", lambda batches, *_, **__: len(batches))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    for words in (["tests/node"], ["-x"], ["tests/ssh/test_lab.py"], ["tests/ssh", "-k", "x"]):
        monkeypatch.setattr("sys.argv", ["all_tiers", *words])
        assert all_tiers.main() == 3
        assert heard.pop() == [*all_tiers.RUN, *words]
    everything = divide(all_files(ROOT))
    for words, batches in (([], everything), (["tests/ssh"], [b for b in everything if b.is_ssh])):
        monkeypatch.setattr("sys.argv", ["all_tiers", *words])
        assert all_tiers.main() == len(batches) > 1
    assert heard == []


# --- Side by side ---------------------------------------------------------------------------------


def test_jobs_begin_in_their_order_and_so_many_run_at_a_time(tmp_path: Path) -> None:
    """Two that wait for each other end only when both run; the third begins after one of them."""
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    jobs = [python("iris", MEETS.format((here, there)), tmp_path),
            python("loom", MEETS.format((there, here)), tmp_path),
            python("quill", "raise SystemExit(7)", tmp_path)]  # fmt: skip
    heard: list[Ended] = []
    ended = run_side_by_side(jobs, lanes={"": 2}, limit_s=GENEROUS_S, ended=heard.append,
                             minute=nothing)  # fmt: skip
    assert ended == heard
    assert {one.job.name: one.code for one in ended} == {"iris": 0, "loom": 0, "quill": 7}
    assert ended[-1].job.name == "quill"
    assert jobs[0].said.read_text() == "met\n"


def test_a_job_waits_for_a_lane_of_its_own_kind(tmp_path: Path) -> None:
    """The second waits for the first, though the third, behind it, runs meanwhile."""
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    jobs = [
        replace(python("iris", MEETS.format((here, there)), tmp_path), lane="forge"),
        replace(python("loom", "", tmp_path), lane="forge"),
        replace(python("quill", MEETS.format((there, here)), tmp_path), lane="spark"),
    ]
    ended = run_side_by_side(jobs, lanes={"forge": 1, "spark": 1}, limit_s=GENEROUS_S,
                             ended=nothing, minute=nothing)  # fmt: skip
    assert ended[-1].job.name == "loom"
    assert [one.code for one in ended] == [0, 0, 0]


def test_a_job_whose_time_is_up_is_ended_and_called_late(tmp_path: Path) -> None:
    """Without `late` the loop waits for ten minutes."""
    job = python("iris", "import time; time.sleep(600)", tmp_path)
    (ended,) = run_side_by_side([job], lanes={"": 1}, limit_s=0.5, ended=nothing, minute=nothing)
    assert ended.late
    assert ended.code != 0
    assert "it ran for over 0.5 s" in job.said.read_text()


WAITS = """
import sys
from pathlib import Path
from tools.side_by_side import Job, run_side_by_side
place = Path(sys.argv[1])
script = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
jobs = [Job(name, (sys.executable, "-c", script), place / name) for name in ("iris", "loom")]
print("ready", flush=True)
try:
    run_side_by_side(jobs, lanes={"": 2}, limit_s=600, ended=print, minute=print)
except KeyboardInterrupt as error:
    print(error)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_that_run(tmp_path: Path, number: signal.Signals) -> None:
    """Without `_end_all` in the loop's `finally` both stay."""
    run = subprocess.Popen([sys.executable, "-c", WAITS, str(tmp_path)], cwd=ROOT,
                           stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert run.stdout is not None
    assert run.stdout.readline() == "ready\n"
    until(lambda: all((tmp_path / name).exists() and (tmp_path / name).read_text().endswith("\n")
                      for name in ("iris", "loom")))  # fmt: skip
    pids = [int((tmp_path / name).read_text()) for name in ("iris", "loom")]
    run.send_signal(number)
    said, _ = run.communicate(timeout=GENEROUS_S)
    assert said.strip() == number.name
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + GENEROUS_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)  # between two looks at what tells nobody when it changes


# --- One closing ----------------------------------------------------------------------------------


def test_tallies_add_up_and_survive_their_file(tmp_path: Path) -> None:
    one = Tally(outcomes=Counter(passed=2, failed=1), ran={"node": Counter(passed=2, failed=1)},
                cannot=Counter({"needs forge: none": 1}), unlawful=["x: y"],
                troubles=["FAILED a::b - c"], cpu_s=1.5)  # fmt: skip
    other = Tally(outcomes=Counter(passed=3), ran={"node": Counter(passed=1)},
                  deselected=Counter(node=4))  # fmt: skip
    file = tmp_path / "one.json"
    write_tally(one, file)
    assert read_tally(file) == one
    whole = summed([one, other])
    assert whole.outcomes == Counter(passed=5, failed=1)
    assert whole.lines() == [
        "ran     node         3 passed, 1 failed",
        "cannot  needs forge: none (tests: 1)",
        "not now node         4 deselected by markers; make soak runs the long ones",
        "FAILED  x: y",
    ]


def test_the_last_line_is_in_the_form_of_pytest() -> None:
    counts = Counter(passed=6195, failed=2, deselected=90, error=1)
    lines = closing(Tally(outcomes=counts, troubles=["FAILED a::b - c"]), 1263.471)
    assert lines[-1] == (
        "===== 2 failed, 6195 passed, 90 deselected, 1 error in 1263.47s (0:21:03) ======"
    )
    assert lines[-2] == "FAILED a::b - c"
    assert closing(Tally(), 0.5)[-1].strip("= ") == "no tests ran in 0.50s"


@pytest.mark.parametrize("text", ["", "{", None])
def test_a_run_that_left_no_whole_tally_is_an_error(tmp_path: Path, text: str | None) -> None:
    said = tmp_path / "iris.txt"
    if text is not None:
        said.with_suffix(".json").write_text(text)
    tally = all_tiers.found(Ended(Job("iris", (), said), code=0, took_s=1.0))
    assert tally.outcomes == Counter(error=1)
    assert "iris" in tally.troubles[0]


@pytest.mark.parametrize(("code", "late"), [(3, False), (-9, False), (1, True)])
def test_a_run_that_came_to_no_end_of_its_own_is_an_error_whatever_it_left(
    tmp_path: Path, code: int, *, late: bool
) -> None:
    said = tmp_path / "iris.txt"
    write_tally(Tally(outcomes=Counter(passed=2)), said.with_suffix(".json"))
    tally = all_tiers.found(Ended(Job("iris", (), said), code=code, took_s=1.0, late=late))
    assert tally.outcomes == Counter(passed=2, error=1)


# --- Whole runs of small tests --------------------------------------------------------------------


def whole_run(
    place: Path, capsys: pytest.CaptureFixture[str], *must_run: str, **tests: str
) -> tuple[int, list[str]]:
    """Its exit code and its lines, each test file being a batch of its own."""
    batches = []
    for name, text in tests.items():
        file = place / f"test_{name}.py"
        file.write_text(text)
        batches.append(Batch(name, ("-c", "/dev/null", "--rootdir", str(place), str(file))))
    code = all_tiers.run_all(batches, place, apart=False, must_run=frozenset(must_run))
    return code, capsys.readouterr().out.splitlines()


def test_runs_that_pass_are_one_line_each_and_one_closing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = whole_run(tmp_path, capsys, iris=PASSES.format(name="a"),
                            loom=PASSES.format(name="b") + PASSES.format(name="c"))  # fmt: skip
    assert code == 0
    assert lines[-1].strip("= ").startswith("3 passed in ")
    assert lines[-2] == "ran     fences       3 passed"
    assert sorted(line.split()[1] for line in lines[:2]) == ["iris", "loom"]
    assert len(lines) == 5


def test_a_run_that_fails_is_printed_whole_and_fails_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = whole_run(tmp_path, capsys, iris=PASSES.format(name="a"), loom=FAILS)
    assert code == 1
    assert "the forge is cold" in lines
    assert lines[-1].strip("= ").startswith("1 failed, 1 passed in ")
    assert lines[-2] == "FAILED test_loom.py::test_b - assert 1 == 2"


def test_a_run_that_dies_is_an_error_and_fails_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pytest that is killed says nothing of the tests it did not come to."""
    code, lines = whole_run(tmp_path, capsys, iris=PASSES.format(name="a"), loom=DIES)
    assert code == 128 + signal.SIGKILL
    assert lines[-1].strip("= ").startswith("1 passed, 1 error in ")
    assert lines[-2] == "ERROR the run of pytest named loom - exit code -9"


def test_a_file_that_cannot_be_imported_is_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = whole_run(tmp_path, capsys, iris=PASSES.format(name="a"), loom="import nowhere\n")
    assert code == 2
    assert lines[-1].strip("= ").startswith("1 passed, 1 error in ")


def test_a_tier_that_must_run_and_has_no_tests_fails_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = whole_run(tmp_path, capsys, "ssh", iris=PASSES.format(name="a"))
    assert code == 1
    assert "FAILED  ssh: this tier must run here, and nothing of it did" in lines
