"""fleet.yaml: read into settings, or every fault at once with its place; never a traceback."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc.config import BYTES_MAX, find_fleet, fleet_schema, parse_fleet, read_fleet, state_of
from arc.config_keys import Key, keys_of
from arc.config_settings import document_of
from arc.config_words import parse_amount
from arc.decisions.domains import Domain
from arc.decisions.limits import HealthLimits, RouteLimits, StealLimits
from arc.durations import BadWord, parse_duration, render_duration
from arc.errors import BadSettings, NoFleet
from arc.settings import FleetSettings, NodeEntry, SensorEntry

HERE = Path("/srv/fleet/fleet.yaml")
ROOT = Path(__file__).parents[2]
WHOLE = """\
version: 1
fleet: arc0
hub: {name: arc, state: .arc}
policy: arc0                       # or swift
router:    {every: 30m, soft: 12, hard: 20, batch: 10, keep: [], fallback: arc}
health:    {every: 5m, stale_after: 10m, running_over: 60m, disk_over: 80%,
            failing: 50% of 4 in 1h, streak: 5, clock_off: 30s}
rebalance: {every: 5m, on_idle: false, idle_min: 2m, busy_over: 5, steal_from: P5, anyone_from: P8,
            per_node: 3, per_cycle: 10}
domains:
  protocol: {skills: [stacks-js, clarity]}
  research: {skills: [arc-research], prefix: ["Research:"], words: [paper]}
nodes:
  - {name: spark, host: spark.lan, port: 22, user: agent, owns: [protocol], also: [research],
     never: []}
  - {name: arc, local: true, owns: []}
"""


def read(text: str) -> FleetSettings:
    return parse_fleet(text, HERE)


def faults(text: str) -> list[str]:
    """`LINE:COLUMN CODE` of every fault, and the message holds a line with a caret for each."""
    with pytest.raises(BadSettings) as caught:
        read(text)
    message = str(caught.value)
    assert message.isprintable() or set(re.findall(r"[^ -~…\n]", message)) == set()
    assert caught.value.where == caught.value.problems[0]["where"]
    return [f"{one.get('line')}:{one.get('column')} {str(one['code']).removeprefix('ARC-CFG-')}"
            for one in caught.value.problems]


def said(text: str) -> str:
    with pytest.raises(BadSettings) as caught:
        read(text)
    return str(caught.value)


def test_the_whole_file_says_what_the_contract_says() -> None:
    assert read(WHOLE) == FleetSettings(
        fleet="arc0", hub="arc", file=HERE, state=HERE.parent / ".arc",
        nodes=(NodeEntry("spark", "spark.lan", 22, "agent", owns=("protocol",), also=("research",)),
               NodeEntry("arc", local=True)),
        domains=(Domain("protocol", ("stacks-js", "clarity")),
                 Domain("research", ("arc-research",), ("Research:",), ("paper",))),
        route=RouteLimits(fallback="arc"),
        sensors={"fleet-router": SensorEntry(1800), "fleet-health": SensorEntry(300),
                 "fleet-rebalance": SensorEntry(300)},
    )  # fmt: skip


def test_what_is_not_said_is_the_seeds_own_number() -> None:
    settings = read("nodes: []")
    assert (settings.steal, settings.route, settings.health) == (
        StealLimits(), RouteLimits(), HealthLimits())  # fmt: skip
    assert settings == dataclasses.replace(
        read(WHOLE), nodes=(), domains=(), route=RouteLimits())  # fmt: skip


def test_policy_swift_has_defaults_of_its_own_and_what_is_said_wins() -> None:
    swift = read("policy: swift\nnodes: []")
    assert (swift.steal.policy, swift.route.policy) == ("swift", "swift")
    assert (swift.steal.idle_min_s, swift.steal.hops_max, swift.steal.busy_over) == (0, 2, 0)
    assert swift.sensors["fleet-rebalance"].every_s == 60
    said = read("policy: swift\nrebalance: {every: 5m, idle_min: 2m, hops: 1}\n"
                "router: {every: 30m}\nnodes: []")  # fmt: skip
    assert (said.steal.idle_min_s, said.steal.hops_max) == (120, 1)
    assert [said.sensors[name].every_s for name in ("fleet-rebalance", "fleet-router")] == [
        300, 1800]  # fmt: skip


def test_stealing_and_routing_believe_reports_as_long_as_health_does() -> None:
    settings = read("health: {stale_after: 7m}\nnodes: []")
    assert {settings.steal.stale_after_s, settings.route.stale_after_s,
            settings.health.stale_after_s} == {420.0}  # fmt: skip


OTHER_VALUES = {
    "router.soft": "3", "router.hard": "30", "router.batch": "1", "router.keep": "[P1, 2]",
    "router.fallback": "x", "router.fallback_after": "5",
    "health.stale_after": "9m", "health.running_over": "2h", "health.stalled_after": "1h",
    "health.disk_over": "50%", "health.failing": "25% of 8 in 2h", "health.streak": "9",
    "health.clock_off": "1m", "rebalance.idle_min": "3m", "rebalance.busy_over": "1",
    "rebalance.steal_from": "P2", "rebalance.anyone_from": "10", "rebalance.per_node": "1",
    "rebalance.per_cycle": "2", "rebalance.hops": "7", "rebalance.transfer": "1s",
    "rebalance.gain_min": "1s", "rebalance.task_takes": "1s", "rebalance.ask_again": "1s",
}  # fmt: skip


def test_every_limit_that_decisions_obey_can_be_set() -> None:
    changed: set[tuple[str, str]] = set()
    for key, value in OTHER_VALUES.items():
        section, name = key.split(".")
        settings = read(f"policy: swift\n{section}: {{{name}: {value}}}\nnodes: []")
        default = read("policy: swift\nnodes: []")
        before = changed.copy()
        for part in ("steal", "route", "health"):
            was, now = (dataclasses.asdict(getattr(one, part)) for one in (default, settings))
            changed |= {(part, field) for field in was if was[field] != now[field]}
        assert changed - before, key
    everything = {(part, field.name) for part, kind in
                  (("steal", StealLimits), ("route", RouteLimits), ("health", HealthLimits))
                  for field in dataclasses.fields(kind)}  # fmt: skip
    assert everything - changed == {("steal", "policy"), ("route", "policy")}


def test_sensors_of_others_and_sensors_turned_off() -> None:
    settings = read("sensors: {disk-usage: {every: 1h, enabled: false}}\n"
                    "router: {enabled: false}\nnodes: []")  # fmt: skip
    assert settings.sensors["disk-usage"] == SensorEntry(3600, enabled=False)
    assert [name for name, one in settings.sensors.items() if not one.enabled] == [
        "fleet-router", "disk-usage"]  # fmt: skip


def test_paths_start_at_the_file_and_at_the_users_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    settings = read("hub: {state: ~/hub}\nssh_config: ssh/config\n"
                    "nodes: [{name: a, local: true, home: ../a}]")  # fmt: skip
    assert settings.state == Path("/home/ada/hub")
    assert settings.ssh_config == Path("/srv/fleet/ssh/config")
    assert settings.nodes[0].home == "/srv/a"


def test_yaml_1_2_leaves_words_and_times_alone() -> None:
    settings = read("nodes: [{name: 'no', host: on, user: y}]\ndomains: {off: {words: ['22:30']}}")
    assert (settings.nodes[0].name, settings.nodes[0].host) == ("no", "on")


def test_a_section_whose_lines_are_all_comments_says_nothing() -> None:
    assert read("router:\n  # soft: 1\ndomains:\nfleet: ~\nnodes: []") == read("nodes: []")


# The bounds on aliases and loops were taken out once, and these cases failed.
@pytest.mark.parametrize(("text", "found"), [
    ("nodes:\n  - name: iris\n    host: x\n    prot: 22\n", ["4:5 UNKNOWN"]),
    ("nodez: []\n", ["1:1 UNKNOWN", "1:1 MISSING"]),
    ("nodes: []\nrouter: {soft: 9, hrd: 3}\n", ["2:19 UNKNOWN"]),
    ("fleet: x\n", ["1:1 MISSING"]),
    ("fleet: x\nnodes:\n  # - {name: a, host: b}\n", ["2:1 MISSING"]),
    ("nodes: []\nnodes: []\n", ["2:1 TWICE"]),
    ("nodes: [{name: a, host: x}, {name: a, host: y}]", ["1:36 TWICE"]),
    ("nodes: [{name: inbox, host: x}]", ["1:16 VALUE"]),
    ("nodes: [{name: a}]", ["1:9 MISSING"]),
    ("nodes: [{host: a}]", ["1:9 MISSING"]),
    ("nodes: [{name: a, local: true, host: x, port: 5}]", ["1:32 CONFLICT", "1:41 CONFLICT"]),
    ("nodes: [{name: a, host: x, home: /x}]", ["1:28 CONFLICT"]),
    ("nodes: [{name: a, host: x, owns: [b]}]", ["1:35 DOMAIN"]),
    ("nodes: [{name: a, host: x, owns: [b], never: [b]}]\ndomains: {b: {words: [c]}}",
     ["1:47 CONFLICT"]),
    ("nodes: []\ndomains: {version: {words: [c]}}", ["2:11 VALUE"]),
    ("nodes: []\ndomains: {Bad: {words: [c]}}", ["2:11 VALUE"]),
    ("nodes: []\nrouter: {soft: 21}", ["2:16 CONFLICT"]),
    ("nodes: []\nrouter: {hard: 2}", ["2:16 CONFLICT"]),
    ("nodes: []\nsensors: {fleet-health: {every: 1m}}", ["2:11 CONFLICT"]),
    ("nodes: []\nrouter: {every: 300}", ["2:17 VALUE"]),
    ("nodes: []\nrouter: {every: 0s}", ["2:17 VALUE"]),
    ("nodes: []\nrouter: {enabled: yes}", ["2:19 VALUE"]),
    ("nodes: []\nrouter: {keep: [P11]}", ["2:17 VALUE"]),
    ("nodes: []\nrouter: {keep: P1}", ["2:16 TYPE"]),
    ("nodes: []\nrouter: 5", ["2:9 TYPE"]),
    ("nodes: []\nhealth: {disk_over: 0.8}", ["2:21 VALUE"]),
    ("nodes: []\nhealth: {failing: 50% of 0 in 1h}", ["2:19 VALUE"]),
    ("nodes: []\npolicy: fast", ["2:9 VALUE"]),
    ("nodes: []\nversion: 2", ["2:10 VALUE"]),
    ("nodes: []\nfleet: Arc_0", ["2:8 VALUE"]),
    ("- 1", ["1:1 TYPE"]), ("x", ["1:1 TYPE"]), ("", ["1:1 TYPE"]), ("# only words", ["1:1 TYPE"]),
    ("nodes: [", ["1:9 SYNTAX"]), ("\tnodes: []", ["1:1 SYNTAX"]), ("a: b: c", ["1:5 SYNTAX"]),
    ("nodes: []\nfleet: \0", ["2:8 SYNTAX"]), ("nodes: []\n---\nnodes: []", ["2:1 SYNTAX"]),
    ("nodes: *x", ["1:8 SYNTAX"]), ("nodes: &a [*a]", ["1:8 LARGE"]),
    ("nodes: [&a x" + ", *a" * 21 + "]", ["1:95 LARGE"]), ("a: " + "[" * 5000, ["1:15 SYNTAX"]),
    ("nodes: !!python/object/apply:os.system [x]", ["1:8 TYPE", "1:41 TYPE"]),
    ("nodes: []\n? {a: b}\n: 1", ["2:3 TYPE"]),
])
def test_a_fault_is_named_with_its_place(text: str, found: list[str]) -> None:
    assert sorted(faults(text)) == sorted(found)


def test_all_faults_are_told_at_once_in_the_order_of_the_file_each_with_a_caret() -> None:
    text = ("router: {every: 30, sotf: 3}\n"
            "nodes:\n  - {name: iris, prot: 22, host: dev@iris.lan}\n")
    assert said(text) == f"""\
4 errors in {HERE}
{HERE}:1:17: error[ARC-CFG-VALUE]: router.every should be a length of time with its unit; \
did you mean 30s?
     1 | router: {{every: 30, sotf: 3}}
       |                 ^^
{HERE}:1:21: error[ARC-CFG-UNKNOWN]: router.sotf is not a setting; did you mean 'soft'?
     1 | router: {{every: 30, sotf: 3}}
       |                     ^^^^
{HERE}:3:18: error[ARC-CFG-UNKNOWN]: nodes[0].prot is not a setting; did you mean 'port'?
     3 |   - {{name: iris, prot: 22, host: dev@iris.lan}}
       |                  ^^^^
{HERE}:3:34: error[ARC-CFG-VALUE]: nodes[0].host should be the machine alone; \
write host: iris.lan and user: dev
     3 |   - {{name: iris, prot: 22, host: dev@iris.lan}}
       |                                  ^^^^^^^^^^^^"""


@pytest.mark.parametrize(("text", "hint"), [
    ("nodes: []\nidle_min: 2m", "did you mean 'rebalance.idle_min'?"),
    ("nodes: [{name: a, host: 'x:22'}]", "write host: x and port: 22"),
    ("nodes: []\nhealth: {disk_over: 80}", "did you mean 80%?"),
    ("nodes: []\nhealth: {disk_over: 0.8}", "did you mean 80%?"),
    ("nodes: [{name: a, host: x, owns: [reserch]}]\ndomains: {research: {words: [a]}}",
     "did you mean 'research'?"),
    ("fleet: x", "write nodes: [] if there are none"),
])
def test_a_fault_says_what_was_probably_meant(text: str, hint: str) -> None:
    assert hint in said(text)


def test_what_the_file_holds_cannot_drive_the_terminal() -> None:
    message = said('nodes: []\n"\\e[31mred\\u202e": "\\a"\n')
    assert "\x1b" not in message
    assert "\\x1b[31mred\\u202e is not a setting" in message


@pytest.mark.parametrize("text", [
    "nodes:\n" + "".join(f"- {{nmae: n{n}, host: x}}\n" for n in range(2000)),
    "".join(f"k{n}: 1\n" for n in range(5000)),
    "a: &a [1,2,3,4,5,6,7,8,9]\n" + "".join(
        f"{new}: &{new} [{','.join(['*' + old] * 9)}]\n"
        for old, new in zip("abcdefg", "bcdefgh", strict=True)),
    "nodes: '" + "x" * 900_000 + "'",
    "nodes: [" + "[]," * 60_000 + "]",
])
def test_a_huge_or_folded_file_is_refused_in_a_short_message(text: str) -> None:
    assert len(said(text)) < 15_000


@given(st.one_of(st.text(max_size=60),
                 st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")),
                 st.text(alphabet="nodes: []{}-&*!|>'\"%@`#?,\n\t~abc0", max_size=60)))
def test_any_text_is_read_or_refused_and_never_a_traceback(text: str) -> None:
    for start in ("", "nodes: []\nfleet: ", "nodes:\n- "):
        try:
            found: object = read(start + text)
        except BadSettings as error:
            found = error.problems
        assert found


@pytest.mark.parametrize(("raw", "code"), [
    (b"nodes: []\nfleet: \xff\xfe", "SYNTAX"), (b"#" * (BYTES_MAX + 1), "LARGE"),
    (b"\x00" * 100, "SYNTAX"), ("nodes: []".encode("utf-16"), "SYNTAX"),
])
def test_any_bytes_are_read_or_refused(tmp_path: Path, raw: bytes, code: str) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_bytes(raw)
    with pytest.raises(BadSettings) as caught:
        read_fleet(path)
    assert [one["code"] for one in caught.value.problems] == [f"ARC-CFG-{code}"]


def test_a_mark_of_utf_8_at_the_start_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_bytes(b"\xef\xbb\xbfnodes: []\r\n")
    assert read_fleet(path).nodes == ()


def test_a_folder_in_place_of_the_file_and_a_missing_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NoFleet):
        read_fleet(tmp_path / "fleet.yaml")
    with pytest.raises(BadSettings) as caught:
        read_fleet(tmp_path)
    assert caught.value.problems[0]["code"] == "ARC-CFG-FILE"


@given(st.integers(0, 10**8))
def test_a_length_of_time_reads_back_as_it_was_written(seconds: int) -> None:
    assert parse_duration(render_duration(seconds)) == seconds


@pytest.mark.parametrize("word", [
    "5", "m", "", "5 m", "-5m", "5m5h", "1.5h", "5M", "5m ", "٣m", "5m\n", None, True, 5.0, [], -1,
])
def test_what_is_no_length_of_time_is_refused(word: object) -> None:
    with pytest.raises(BadWord):
        parse_duration(word)


def test_the_settings_in_effect_read_back_as_the_same_settings(tmp_path: Path) -> None:
    for text in (WHOLE, "nodes: []", "policy: swift\nnodes: []\nsensors: {x: {every: 2m}}"):
        path = tmp_path / "fleet.yaml"
        path.write_text(text)
        settings = read_fleet(path)
        path.write_text(json.dumps(document_of(settings)))
        assert read_fleet(path) == settings


def test_the_state_folder_is_found_without_checking_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    for text, state in (("nodes: []", ".arc"), ("hub: {state: x/y}\nwrong: 1", "x/y"),
                        ("hub: 5", ".arc"), ("hub: {state: 5}", ".arc")):
        path.write_text(text)
        assert state_of(path) == tmp_path / state


def test_finding_the_file_and_its_state_loads_none_of_the_slow_packages(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("nodes: []")
    code = ("import sys; from pathlib import Path; from arc.config import find_fleet, state_of\n"
            "state_of(find_fleet(Path.cwd(), {}))\n"
            "print(sorted({'pydantic', 'asyncssh', 'apscheduler', 'sqlite_utils', 'rich'}"
            " & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True,
                          text=True, check=True, timeout=60, env={"PYTHONPATH": str(ROOT)})
    assert done.stdout.strip() == "[]"


def test_the_file_is_looked_for_where_the_page_says(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    home = tmp_path / "home"
    places = {
        "home": home / ".config/arc/fleet.yaml", "above": tmp_path / "fleet.yaml",
        "here": deep / "fleet.yaml", "environ": tmp_path / "e.yaml", "named": deep / "n.yaml",
    }
    environ = {"HOME": str(home)}
    with pytest.raises(NoFleet, match=re.escape(str(places["home"]))):
        find_fleet(deep, environ)
    for name in ("home", "above", "here"):
        places[name].parent.mkdir(parents=True, exist_ok=True)
        places[name].write_text("nodes: []")
        assert find_fleet(deep, environ) == places[name]
    environ["ARC_FLEET"] = str(places["environ"])
    with pytest.raises(NoFleet, match=r"e\.yaml: is not there; \$ARC_FLEET names it") as left:
        find_fleet(deep, environ)
    assert "unset ARC_FLEET" in left.value.hint
    with pytest.raises(NoFleet, match=r"n\.yaml: is not there; --fleet names it") as named:
        find_fleet(deep, environ, "n.yaml")
    assert "unset ARC_FLEET" not in named.value.hint
    places["environ"].write_text("nodes: []")
    assert find_fleet(deep, environ) == places["environ"]
    places["named"].write_text("nodes: []")
    assert find_fleet(deep, environ, "n.yaml") == places["named"]


def test_a_file_that_others_can_change_is_not_used_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail with `_not_ours` always answering that the file is ours."""
    path = tmp_path / "fleet.yaml"
    path.write_text("nodes: []")
    path.chmod(0o666)
    with pytest.raises(NoFleet, match="may be written by everybody"):
        find_fleet(tmp_path, {"HOME": str(tmp_path)})
    assert find_fleet(tmp_path, {}, path) == path
    path.chmod(0o644)
    there = os.stat(path)
    monkeypatch.setattr("arc.config.os.geteuid", lambda: there.st_uid + 1)
    if there.st_uid:
        with pytest.raises(NoFleet, match="belongs to user"):
            find_fleet(tmp_path, {"HOME": str(tmp_path)})


def test_the_schema_knows_every_key_and_no_other() -> None:
    schema = fleet_schema()
    assert schema["additionalProperties"] is False
    text = json.dumps(schema)
    assert [key.name for key in keys_of() if f'"{key.name.split(".")[-1]}"' not in text] == []
    assert text.count('"additionalProperties": false') == 17
    assert '"default": "30m"' in text


def rendered(key: Key) -> str:
    if key.needed:
        return "needed"
    if key.default is None or key.default == {}:
        return "\N{EN DASH}"
    if isinstance(key.default, bool):
        return f"`{str(key.default).lower()}`"
    return f"`{key.default}`" if key.default != () else "`[]`"


def test_the_page_on_the_file_has_every_key_with_its_default_and_no_other() -> None:
    page = (ROOT / "docs/fleet-yaml.md").read_text()
    rows = set(re.findall(r"^\| `([^`]+)` \| (.*?) \| (.*) \|$", page, re.MULTILINE))
    assert rows == {(key.name, rendered(key), key.sentence) for key in keys_of()}


def test_five_hundred_nodes_are_read_in_a_bearable_time() -> None:
    text = "domains: {d: {words: [w]}}\nnodes:\n" + "".join(
        f"- {{name: n{n}, host: h{n}, user: agent, owns: [d]}}\n" for n in range(500))
    assert len(read(text).nodes) == 500


def test_a_pipe_in_the_files_place_is_an_error_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Seen to hang with the file opened as any other: a hub that ran answered nobody any more."""
    os.mkfifo(tmp_path / "fleet.yaml")
    with pytest.raises(BadSettings, match="no plain file"):
        read_fleet(tmp_path / "fleet.yaml")


# --- Where work comes from, and whom to tell -----------------------------------------------------

WORK = """\
domains: {d: {words: [w]}}
schedules:
  night: {cron: "30 2 * * *", zone: Europe/Berlin, task: {subject: audit, priority: 3}}
  week: {cron: 0 9 * * MON, catch_up: none, graph: {title: t, tasks: {a: {subject: x}}}}
watch_files:
  orders: {path: "drop/*.json", task: {subject: take it}}
budget: {per_day: "12.50", urgent_overdraft: true, assume_usd: "0.50"}
watch:
  papers: {when: "failing: 40% of 5 in 1d", domain: d, task: {subject: why}}
notify:
  pager: {on: [parked], command: [/bin/page, ops]}
  chat: {webhook: {url: "https://example.org/x", secret_file: s}, at_most: 1h}
  ada: {email: {to: ada@example.org, from: arc@example.org}}
nodes: [{name: iris, host: iris.lan, owns: [d]}]
"""


def test_where_work_comes_from_reads_and_reads_back_the_same() -> None:
    settings = read(WORK)
    night, week = settings.schedules
    assert (night.cron, night.zone, night.catch_up, night.task) == (
        "30 2 * * *", "Europe/Berlin", True, {"subject": "audit", "priority": 3})
    assert (week.catch_up, week.task) == (False, None)
    assert settings.watch_files[0].path == str(HERE.parent / "drop/*.json")
    assert settings.watch[0].when == "failing 40% of 5 in 1d"
    pager, chat, ada = settings.notify
    assert (pager.on, pager.command) == (("parked",), ("/bin/page", "ops"))
    assert (len(chat.on), chat.secret_file, chat.at_most_s) == (7, HERE.parent / "s", 3600)
    assert (ada.mail_to, ada.mail_from, ada.mail_port) == (
        "ada@example.org", "arc@example.org", 25)
    assert (settings.budget_per_day, settings.urgent_overdraft) == ("12.50", True)
    assert settings.assume_usd == "0.50"
    assert read(json.dumps(document_of(settings))) == settings


@pytest.mark.parametrize(("line", "fault"), [
    ("schedules: {x: {cron: 61 * * * *, task: {subject: s}}}", "1:23 VALUE"),
    ("schedules: {x: {cron: 0 0 30 2 *, task: {subject: s}}}", "1:23 VALUE"),
    ("schedules: {x: {cron: 0 9 * * *, zone: Berlin, task: {subject: s}}}", "1:40 VALUE"),
    ("schedules: {x: {cron: 0 9 * * *}}", "1:13 CONFLICT"),
    ("schedules: {x: {cron: 0 9 * * *, task: {subject: s}, graph: {tasks: {a: {}}}}}",
     "1:13 CONFLICT"),
    ("schedules: {x: {cron: 0 9 * * *, task: {subject: s, priority: 11}}}", "1:63 VALUE"),
    ("schedules: {x: {cron: 0 9 * * *, task: {subjekt: s}}}", "1:41 UNKNOWN"),
    ("schedules: {x: {cron: 0 9 * * *, task: {priority: 3}}}", "1:34 MISSING"),
    ("schedules: {x: {cron: 0 9 * * *, task: {subject: s, key: k}}}", "1:53 UNKNOWN"),
    ("schedules: {x: {cron: 0 9 * * *, catch_up: all, task: {subject: s}}}", "1:44 VALUE"),
    ("schedules: {x: {cron: 0 9 * * *, graph: {tasks: {}}}}", "1:34 MISSING"),
    ("schedules: {x: {task: {subject: s}}}", "1:16 MISSING"),
    ("watch_files: {x: {task: {subject: s}}}", "1:18 MISSING"),
    ("watch: {x: {when: often, task: {subject: s}}}", "1:19 VALUE"),
    ("watch: {x: {when: failing 1% of 1 in 1h, domain: z, task: {subject: s}}}", "1:50 DOMAIN"),
    ("watch: {x: {when: failing 1% of 1 in 1h, node: z, task: {subject: s}}}", "1:48 VALUE"),
    *((f"budget: {{per_day: {wrong}}}", "1:19 VALUE") for wrong in
      ("1e5", "1.5e3", ".5", "5.", "0x1", "0o7", "1_0", "1_0.5", "+5", "true", "0.1234567891",
       "1:30", ".inf")),
    ("budget: {per_day: -1}", "1:19 VALUE"),
    *((f"budget: {{assume_usd: {wrong}}}", "1:22 VALUE") for wrong in ("-1", "1e5", ".5", "1_0")),
    *((f"watch_files: {{x: {{path: p, task: {{subject: s, max_cost_usd: {wrong}}}}}}}",
       "1:61 VALUE") for wrong in ("1e5", ".5", "1_0", "-1", "true")),
    ("budget: {per_day: NaN}", "1:19 VALUE"),
    ("notify: {x: {on: [parked]}}", "1:10 CONFLICT"),
    ("notify: {x: {on: [birthday], command: [a]}}", "1:19 VALUE"),
    ("notify: {x: {command: [a], email: {to: a@b.c, from: a@b.c}}}", "1:10 CONFLICT"),
    ("notify: {x: {command: []}}", "1:23 VALUE"),
    ("webhooks: {a: {secret_file: s, task: {subject: s}},\n"  # noqa: ISC004 - one file
     "  b: {secret_file: ./s, task: {subject: s}}}", "2:7 CONFLICT"),
    ("notify: {n: {webhook: {url: 'https://a.b/c', secret_file: s}}}\n"  # noqa: ISC004 - one file
     "webhooks: {a: {secret_file: s, task: {subject: s}}}", "2:16 CONFLICT"),
    ("notify: {x: {command: page}}", "1:23 VALUE"),
    ("notify: {x: {webhook: {url: 'ftp://a/b'}}}", "1:29 VALUE"),
    ("notify: {x: {webhook: {url: 'https://u:p@a/b'}}}", "1:29 VALUE"),
    ("notify: {x: {email: {to: 'a b', from: a@b.c}}}", "1:26 VALUE"),
])  # fmt: skip
def test_each_fault_of_them_is_named_with_its_place(line: str, fault: str) -> None:
    assert faults(f"{line}\nnodes: []\n") == [fault]


@pytest.mark.parametrize("line", ["budget: {per_day: %s}", "budget:\n  per_day: %s  # a day",
                                  "budget: {per_day: '%s'}", "budget: {per_day: &a %s}",
                                  "budget: {per_day: !!float %s}"])
@pytest.mark.parametrize("amount", ["0.45", "5", "12.50", "0.1", "999999999999.123456789"])
def test_an_amount_is_taken_as_it_is_written_and_never_as_a_number(line: str, amount: str) -> None:
    """Seen to fail: `per_day: 0.45` was refused, and everything went on without a limit. As a
    number the last of them would be another amount.
    """
    assert read(f"{line % amount}\nnodes: []\n").budget_per_day == amount


TASK = "{subject: s, max_cost_usd: %s}"


@pytest.mark.parametrize("line", [
    "budget: {assume_usd: %s}", "budget: {per_day: &a %s, assume_usd: *a}",
    *(f"{entry}, task: {TASK}}}}}" for entry in (
        "schedules: {x: {cron: 0 9 * * *", "watch_files: {x: {path: p",
        "watch: {x: {when: failing 1%% of 1 in 1h", "webhooks: {x: {secret_file: p")),
    *(f"schedules: {{x: {{cron: 0 9 * * *, graph: {{title: t, {more}}}}}}}" for more in (
        f"tasks: {{a: {TASK}}}", f"tasks: [{TASK}]", "budget_usd: %s, tasks: {a: {subject: s}}",
        f"tasks: {{a: {{}}}}, then: {{tasks: {{a: {TASK}}}}}")),
])  # fmt: skip
@pytest.mark.parametrize("amount", ["1.50", "0.50", "5", "999999999999.123456789"])
def test_every_amount_of_the_file_goes_the_same_way(line: str, amount: str) -> None:
    """Seen to fail: `budget: {per_day: 1.50, assume_usd: 0.50}` was refused for its second amount
    alone, and a task of a schedule for its `max_cost_usd`.
    """
    bare, quoted = (read(f"{line % one}\nnodes: []\n") for one in (amount, f"'{amount}'"))
    assert bare == quoted
    assert f'"{amount}"' in json.dumps(document_of(bare))


def test_an_amount_that_is_written_otherwise_is_told_how_it_may_be() -> None:
    for wrong, meant in ((".5", '"0.5"'), ("1e5", '"100000"'), ("1_0", '"10"'), ("0x1", ""),
                         ("1e999999999", "")):
        with pytest.raises(ValueError, match="should be an amount in USD") as caught:
            parse_amount(wrong)
        assert str(caught.value).partition("did you mean ")[2].removesuffix("?") == meant


def test_a_name_stands_once_in_all_three_places_that_work_comes_from() -> None:
    text = ("schedules: {x: {cron: 0 9 * * *, task: {subject: s}}}\n"
            "watch_files: {x: {path: p, task: {subject: s}}}\nnodes: []\n")
    assert faults(text) == ["2:15 TWICE"]
