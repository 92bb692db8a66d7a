"""`arc up` and commands beside it, on real homes: through the socket, and without a hub."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from tests.hub.cli.desk import RealFleet
from tests.node.daemon.living import PATIENCE_S


def test_commands_say_the_same_with_a_hub_running_and_without(real: RealFleet) -> None:
    alone = real.arc("status", "--json").data
    assert alone["hub"]["running"] is False
    added = real.arc("tasks", "add", "work", "--to", "iris", "--json")
    task = added.data["results"][0]["uid"]
    real.iris.until(task, "COMPLETED")
    before = real.arc("tasks", "show", task, "--json").data
    hub = real.up()
    assert real.arc("status", "--json").data["hub"]["running"] is True
    assert real.arc("tasks", "show", task, "--json").data == before
    assert real.arc("tasks", "show", "ZZZZ").code == 5
    assert real.arc("nodes", "logs", "iris", task).code == 0
    hub.send_signal(signal.SIGTERM)
    out, err = hub.communicate(timeout=PATIENCE_S)
    assert (hub.returncode, err) == (0, "")
    assert out.splitlines()[0].split(maxsplit=1)[1] == (
        f"hub arc of arc0: 2 nodes, policy arc0, term 1, {real.file}")


def test_a_dry_run_starts_no_hub_and_shows_the_plan(real: RealFleet) -> None:
    plans = real.arc("up", "--dry-run").out, real.arc("plan").out
    first, then = (re.sub(r"idle for \d+s", "idle for so long", plan) for plan in plans)
    assert first == then
    assert "idle for so long" in first  # which grows between the two
    assert real.arc("status", "--json").data["hub"]["running"] is False


def test_a_dry_run_beside_a_hub_is_refused_as_the_real_one_is(real: RealFleet) -> None:
    """It showed a plan and ended with 0."""
    hub = real.up()
    dry, second = real.arc("up", "--dry-run"), real.arc("up")
    assert (dry.code, dry.err) == (8, second.err)
    assert f"process {hub.pid} " in dry.err
    assert real.arc("up", "--dry-run", "--take-over", "--json").code == 8
    assert hub.poll() is None


def test_a_second_hub_is_refused_with_the_first_ones_pid(real: RealFleet) -> None:
    hub = real.up()
    second = real.arc("up", "--json")
    assert second.code == 8
    assert second.envelope["error"]["code"] == "ARC-OTHER-HUB"
    assert f"process {hub.pid} " in second.envelope["error"]["message"]
    assert hub.poll() is None


def test_ctrl_c_ends_a_hub_in_order_with_130(real: RealFleet) -> None:
    hub = real.up()
    hub.send_signal(signal.SIGINT)
    _, err = hub.communicate(timeout=PATIENCE_S)
    assert (hub.returncode, err) == (130, "")
    assert real.arc("status").code == 0


def test_each_sensor_runs_once_and_a_line_tells_of_it(real: RealFleet) -> None:
    up = real.start("up", "--once", "--json")
    out, err = up.communicate(timeout=PATIENCE_S)
    assert up.returncode == 0, err
    assert [json.loads(line)["data"]["sensor"] for line in out.splitlines()] == [
        "fleet-health", "fleet-graphs"]  # fmt: skip
    assert "hub arc of arc0" in err


def test_a_hub_whose_words_nobody_reads_any_more_ends_in_order(real: RealFleet) -> None:
    up = real.start("up")
    assert up.stdout is not None
    up.stdout.readline()
    up.stdout.close()
    assert up.wait(timeout=PATIENCE_S) in {141, None}
    up.stdout = None


def test_a_node_without_a_daemon_is_read_all_the_same(real: RealFleet) -> None:
    nodes = {one["node"]: one for one in real.arc("status", "--json").data["nodes"]}
    assert nodes["loom"]["seen"] is True
    assert nodes["loom"]["state"] == "stopped"
    assert nodes["iris"]["state"] == "idle"
    assert real.arc("tasks", "add", "work", "--to", "loom").code == 0
    why = real.arc("why", "--node", "loom")
    assert "NO  dispatcher_runs: its daemon does not run" in why.out


def test_a_broken_fleet_yaml_stops_no_hub_and_every_command_without_one(real: RealFleet) -> None:
    good = real.file.read_text()
    real.file.write_text(good + "nodez: 1\n")
    text = real.arc("status")
    assert text.code == 2
    assert "did you mean 'nodes'?" in text.err
    assert real.arc("up").code == 2
    real.file.write_text(good)
    assert real.arc("status").code == 0


def test_a_fleet_that_is_not_there_is_exit_2_with_what_to_do_first(real: RealFleet) -> None:
    real.file.unlink()
    text = real.arc("status")
    assert text.code == 2
    assert text.err.startswith("error[ARC-NO-FLEET]: ")


def test_a_run_that_could_not_see_a_node_names_it_in_its_line(real: RealFleet) -> None:
    """It ended with 3 and an empty `partial`."""
    text = real.file.read_text()
    real.file.write_text(f"{text}  - {{name: gone, local: true, home: {real.place / 'gone'}}}\n")
    up = real.start("up", "--once", "--json")
    out, err = up.communicate(timeout=PATIENCE_S)
    assert up.returncode == 3, err
    for line in map(json.loads, out.splitlines()):
        assert [one["node"] for one in line["partial"]] == ["gone"], line["data"]["sensor"]
        assert all(line["partial"][0]["error"][name] for name in ("code", "message"))


def a_package(place: Path) -> Path:
    """What pip would leave of a package whose sensor looks at a disk that is full."""
    info = place / "packages" / "sick-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sick\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[arc.sensors]\nsick = sick:Sick\n")
    (info.parent / "sick.py").write_text(
        "from arc.errors import StateBroken\n\n\n"
        "class Sick:\n"
        '    name, every_s, verbs = "sick", 60.0, {"status": "how it is"}\n\n'
        "    async def run(self, hub, now):\n"
        '        raise StateBroken("the disk is full", hint="make room")\n'
    )
    return info.parent


def test_a_run_that_failed_is_told_so_by_its_line_its_name_and_the_exit_code(
    real: RealFleet
) -> None:
    """Its line said `ok`, and nothing named it. One of several is 3, for the others are done."""
    packages = a_package(real.place)
    up = real.start("up", "--once", "--json", packages=packages)
    out, err = up.communicate(timeout=PATIENCE_S)
    lines = [*map(json.loads, out.splitlines())]
    assert [(line["data"]["sensor"], line["ok"]) for line in lines] == [
        ("fleet-health", True), ("fleet-graphs", True), ("sick", False)]  # fmt: skip
    assert lines[2]["error"] == {"code": "ARC-STATE", "hint": "make room",
                                 "message": "sick: failed: the disk is full"}  # fmt: skip
    assert not any("error" in line for line in lines[:2])
    named = "warning: 1 of 3 runs failed: sick; again: arc sensors run NAME"
    assert (up.returncode, err.splitlines()[-1]) == (3, named)
    text = real.start("up", "--once", packages=packages)
    out, err = text.communicate(timeout=PATIENCE_S)
    assert "sick             failed: the disk is full" in out.splitlines()[-1]
    assert (text.returncode, err.splitlines()) == (3, [named])


def test_where_every_run_failed_nothing_is_done_in_part(real: RealFleet) -> None:
    off = "health: {enabled: false}\nsensors: {fleet-graphs: {enabled: false}}\n"
    real.file.write_text(f"{off}{real.file.read_text()}")
    up = real.start("up", "--once", packages=a_package(real.place))
    _, err = up.communicate(timeout=PATIENCE_S)
    assert (up.returncode, "1 of 1 run failed: sick" in err) == (1, True)
