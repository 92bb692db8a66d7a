"""Faults that end nothing: cut one way, lossy, stopped, in another decade; all side by side.

Of each fault: the state shown, the one line, how soon it is noticed and over, and the books.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

from tests.chaos import program
from tests.chaos.checker import read_ledger
from tests.ssh.fleet import PROGRAM, SshFleet
from tests.ssh.heard import noticed, now, well_again
from tests.ssh.lab import Lab
from tests.ssh.test_faults import BACK_S, NOTICED_S, ends_clean, set_clock

NAMES = ("inward", "outward", "stopped", "lossy", "held", "ahead", "behind")
WRITTEN_S = 25.0  # a look that gives ten seconds to one may wait for another that gives ten, too
TEN_YEARS_S = 10 * 365 * 86_400
SILENT = "no sign of life|no answer|not answered|gave up after|has not answered"
WORKS = '    say("end")\n'
WAITS = f'    while not os.path.exists(f"{{folder}}/go"):\n        time.sleep(0.05)\n{WORKS}'


def test_faults_that_end_nothing_are_told_and_over_in_time(lab: Lab, tmp_path: Path) -> None:
    """With the real settings of a link. One way is enough: who hears us and cannot be heard is as
    silent as who does not hear us.
    """
    fleet = SshFleet(lab, tmp_path, NAMES)
    let_them_wait(fleet, "held")
    for name, off_s in (("ahead", TEN_YEARS_S), ("behind", -TEN_YEARS_S)):
        set_clock(fleet, name, off_s)
    fleet.up()
    fleet.until(lambda: all(fleet.shown(name)["seen"] for name in NAMES), "all are met")
    held = fleet.add(2, "--to", "held", pinned=True)
    fleet.until(lambda: {one.uid for one in read_ledger(lab.shared / "ledger")} >= {*held}, "begun")
    uids = fleet.add(14)
    lossy, began = fleet.add(4, "--to", "lossy", pinned=True), now()
    heal = strike(fleet, held[0])
    for name in ("inward", "outward", "stopped"):
        print(f"{name} noticed after {noticed(fleet, name, began, within_s=NOTICED_S):.1f} s")
    written = now() - began
    print(f"all three are written down after {written:.1f} s")
    assert written < WRITTEN_S
    told(fleet)
    one_is_stopped(fleet, held)
    fleet.until(lambda: fleet.done(lossy), "what was given over a lossy link is done")
    began = now()
    heal()
    for name in ("inward", "outward", "stopped", "lossy"):
        print(f"{name} is back after {well_again(fleet, name, began, within_s=BACK_S):.1f} s")
    begin_the_decade_anew(fleet)
    ends_clean(fleet, [*uids, *held, *lossy])
    assert {one.n for one in read_ledger(lab.shared / "ledger") if one.uid in held} == {1}


def let_them_wait(fleet: SshFleet, name: str) -> None:
    """What runs on this node goes on until it is told to end."""
    source = Path(program.__file__).read_text(encoding="utf-8")
    assert source.count(WORKS) == 1
    fleet.homes[name].node.write(PROGRAM, source.replace(WORKS, WAITS).encode())


def strike(fleet: SshFleet, uid: str) -> Callable[[], None]:
    """All at once; what takes it back."""
    inward, outward, _, lossy, held, *_ = (home.node for home in fleet.homes.values())
    daemon = fleet.homes["stopped"].daemon_pid()
    (task,) = [one.pid for one in read_ledger(fleet.lab.shared / "ledger")
               if one.uid == uid and one.word == "start"]  # fmt: skip
    inward.cut("in")
    outward.cut("out")
    os.kill(daemon, signal.SIGSTOP)
    held.exec(["kill", "-STOP", str(task)])
    lossy.slow(0.05, loss=0.3, jitter_s=0.02)

    def heal() -> None:
        inward.heal()
        outward.heal()
        os.kill(daemon, signal.SIGCONT)
        held.exec(["kill", "-CONT", str(task)])
        lossy.fast()

    return heal


def told(fleet: SshFleet) -> None:
    """Each in one line; a stopped task and another decade leave their nodes well."""
    shown = {str(node["node"]): node for node in fleet.data("status")["nodes"]}
    for name in ("inward", "outward", "stopped"):
        print(f"{name}: {shown[name]['state']}: {shown[name]['reason']}")
        assert not shown[name]["seen"]
        assert re.search(SILENT, str(shown[name]["reason"]))
        assert "\n" not in str(shown[name]["reason"])
    for name in ("held", "ahead", "behind"):
        print(f"{name}: {shown[name]['state']}")
        assert shown[name]["seen"], shown[name]
        assert shown[name]["dispatcher"] == "running"
    assert shown["held"]["state"] == "working"
    assert shown["lossy"]["seen"] or re.search(SILENT, str(shown["lossy"]["reason"]))
    for name in ("ahead", "behind"):
        assert "clock" in fleet.needs(name)
    text = fleet.arc("status")
    assert text.code == 3  # not everything could be seen
    assert "Traceback" not in text.out + text.err


def one_is_stopped(fleet: SshFleet, held: list[str]) -> None:
    """The other one ends beside it; the stopped one is RUNNING and nobody begins it again."""
    (fleet.lab.shared / "go").touch()
    fleet.until(lambda: fleet.done(held[1:]), "the other one is done")
    assert not fleet.done(held[:1])
    assert fleet.data("tasks", "show", held[0])["task"]["state"] == "RUNNING"


def begin_the_decade_anew(fleet: SshFleet) -> None:
    """The clocks are set right; nothing has become unseen for it, and nobody is needed any more."""
    for name in ("ahead", "behind"):
        set_clock(fleet, name, 0)
    took = fleet.until(lambda: not any("clock" in fleet.needs(name) and fleet.shown(name)["seen"]
                                       for name in ("ahead", "behind")),
                       "the clocks are right again", limit_s=BACK_S)  # fmt: skip
    print(f"clocks that are right again are seen after {took:.1f} s")
