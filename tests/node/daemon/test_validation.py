"""An output that has to be judged counts once a validator has said so, whatever happens to it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from agent_node.attempts import create_folder
from agent_node.commands import Result, Validate
from agent_node.runs import Run
from agent_node.strict import decode_line
from agent_node.task import task_from
from agent_node.validating import Validating
from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import (
    Bell,
    Node,
    an_agent,
    carriers,
    is_gone,
    is_zombie,
    until,
)
from tools.tiers import AS_NOBODY, may_change_user

ONCE = {"max_attempts": 1}
STUB = """
class SchemaError(Exception):
    message = "no schema"

class exceptions:
    SchemaError = SchemaError

    @staticmethod
    def best_match(errors):
        return next(iter(errors), None)

class Fault:
    def __init__(self, message):
        self.message, self.absolute_path = message, ["here"]

class Kind:
    def __init__(self, schema):
        self.schema = schema

    @staticmethod
    def check_schema(schema):
        if schema.get("multipleOf") == "bananas":
            raise SchemaError

    def iter_errors(self, output):
        for name in self.schema.get("required", []):
            if name not in output:
                yield Fault(f"{name!r} is a required property")

class validators:
    @staticmethod
    def validator_for(schema):
        return Kind
"""


def answering(output: object, more: str = "") -> str:
    """A program that gives this output, and is glad."""
    answer = json.dumps({"output": output, "cost_usd": "0.10"})
    return f"cat > $AGENT_ANSWER <<'END'\n{answer}\nEND\n{more}\n"


def a_validator(script: str, *, more: str = "") -> str:
    """A `[validators.check]` table that runs this script."""
    return f"[validators.check]\nrun = {json.dumps(['sh', '-c', script])}\n{more}\n"


def by_command(kind: str = "test-pass", **more: object) -> dict[str, Any]:
    return {"validate": {"kind": kind, "validator": "check", **more}}


def with_validator(make_node: MakeNode, script: str, *, more: str = "") -> Node:
    node = make_node(agents=an_agent("iris", slots=2) + a_validator(script, more=more))
    node.start()
    return node


def dead(node: Node, uid: str) -> str:
    """Why its only attempt failed: always as `invalid_output`."""
    task = node.until(uid, "DEAD_LETTERED")
    (attempt,) = node.attempts(uid)
    assert attempt["error_kind"] == "invalid_output"
    assert attempt["cost_usd"] == "0.10"
    return str(task["failure_reason"])


@pytest.mark.parametrize(("output", "state"), [("ok: 7", "COMPLETED"), ("nok", "DEAD_LETTERED")])
def test_an_output_has_to_match_its_pattern(node: Node, output: str, state: str) -> None:
    node.start()
    rule = {"kind": "regex", "pattern": "^ok: [0-9]+$"}
    uid = node.add(answering(output), validate=rule, **ONCE)
    task = node.until(uid, state)
    events = [event["event"] for event in node.show(uid)["events"]]
    assert "task_validating" in events
    if state == "COMPLETED":
        assert (task["output"], task["cost_usd"]) == (output, "0.10")
    else:
        assert dead(node, uid) == "invalid_output: the output does not match '^ok: [0-9]+$'"


FORGER = """
import json, os, sys
folder, uid = os.path.dirname(os.environ["AGENT_ANSWER"]), os.environ["AGENT_TASK_UID"]
os.mkdir(folder + "/check-1")
verdict = {"schema": "verdict/1", **json.loads(sys.argv[1]), "uid": uid}
json.dump(verdict, open(folder + "/check-1/verdict.json", "w"))
"""


def test_a_program_that_forges_the_word_of_its_validator_is_judged_all_the_same(
    node: Node,
) -> None:
    """Its folder is its own working place. Fails where what lies there is taken for a check."""
    node.start()
    pattern = node.add(answering(1))
    node.until(pattern, "COMPLETED")
    verdict = (node.home / "tasks" / pattern / "1" / "verdict.json").read_text()
    forge = f"{sys.executable} -c {shlex.quote(FORGER)} {shlex.quote(verdict)}"
    rule = {"kind": "regex", "pattern": "^ok: [0-9]+$"}
    uid = node.add(answering("nok", forge), validate=rule, **ONCE)
    assert dead(node, uid) == "invalid_output: the output does not match '^ok: [0-9]+$'"


def test_a_pattern_that_backtracks_for_ever_ends_the_attempt_and_nothing_else(node: Node) -> None:
    """Fails without the limit on processor time: the validator runs until its deadline, and that
    lies beyond what is waited for here.
    """
    node.start()
    rule = {"kind": "regex", "pattern": "^(a+)+$", "timeout_s": 600}
    slow = node.add(answering("a" * 40 + "b"), validate=rule, **ONCE)
    node.until(node.add(answering(1)), "COMPLETED")
    node.until(slow, "DEAD_LETTERED", seconds=90.0)  # its 5 s are of a processor that others use
    assert "in time" in dead(node, slow)


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"kind": "prayer"}, "validate.kind"),
        ({"pattern": "x"}, "validate.kind"),
        ({"kind": "regex", "pattern": "("}, "validate.pattern"),
        ({"kind": "regex", "pattern": "x" * 1001}, "validate.pattern"),
        ({"kind": "regex", "pattern": "(" * 500 + ")" * 500}, "validate.pattern"),
        ({"kind": "regex"}, "validate.pattern"),
        ({"kind": "test-pass", "command": ["rm"]}, "validate.command"),
        ({"kind": "test-pass"}, "validate.validator"),
        ({"kind": "llm-judge", "validator": "../x"}, "validate.validator"),
        ({"kind": "json-schema", "schema": 7}, "validate.schema"),
        ({"kind": "json-schema", "schema": {"a": [{"$ref": "http://x/"}]}}, "validate.schema.$ref"),
        ({"kind": "none", "timeout_s": 0}, "validate.timeout_s"),
        ({"kind": "none", "timeout_s": True}, "validate.timeout_s"),
    ],
)
def test_a_rule_that_cannot_be_judged_by_is_refused_by_its_field(
    node: Node, rule: dict[str, Any], field: str
) -> None:
    node.start()
    with node.one_talk() as talk:
        (said,) = talk.ask("add", tasks=[{"subject": "x", "validate": rule}])["results"]
    assert said["outcome"] == "refused"
    assert field in said["because"]["text"]


def test_a_command_judges_where_the_program_worked(make_node: MakeNode) -> None:
    """Exit 0 passes, and the output is on its stdin."""
    node = with_validator(make_node, 'test "$(cat)" = made && test "$(cat result)" = well')
    good = node.add(answering("made", "echo well > result"), **by_command(), **ONCE)
    bad = node.add(answering("made", "echo ill > result"), **by_command(), **ONCE)
    assert node.until(good, "COMPLETED")["output"] == "made"
    assert dead(node, bad) == "invalid_output: exit 1: exit 1"


def test_the_reason_of_a_failed_test_is_its_last_line(make_node: MakeNode) -> None:
    node = with_validator(make_node, "echo first; echo 2 failed, 3 passed; exit 2")
    uid = node.add(answering(1), **by_command(), **ONCE)
    assert dead(node, uid) == "invalid_output: exit 2: 2 failed, 3 passed"


def test_a_failed_validation_is_tried_again_like_every_failure(make_node: MakeNode) -> None:
    node = with_validator(make_node, 'test "$(cat)" = 2')
    uid = node.add(answering("$AGENT_TASK_ATTEMPT").replace("'END'", "END"),
                   **by_command(), retry={"strategy": "immediate"})  # fmt: skip
    assert node.until(uid, "COMPLETED")["failures"] == 1


def test_a_judge_says_why(make_node: MakeNode) -> None:
    script = """grep -q '"subject": *"work"' && echo '{"pass": false, "reason": "too short"}'"""
    node = with_validator(make_node, script, more='stdin = "json"')
    uid = node.add(answering("hm"), **by_command("llm-judge"), **ONCE)
    assert dead(node, uid) == "invalid_output: too short"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo good", "no JSON object"),
        ("echo '{\"pass\": 1}'", "does not say"),
        ("exit 1", "exited 1"),
        ("kill -9 $$", "killed"),
    ],
)
def test_a_broken_judge_is_not_the_tasks_fault(
    make_node: MakeNode, script: str, said: str
) -> None:
    """Three tries, then a person decides, with the output at hand; the program ran once."""
    node = with_validator(make_node, script)
    uid = node.add(answering("the work"), **by_command("llm-judge"), **ONCE)
    task = node.until(uid, "PARKED")
    assert said in task["failure_reason"]
    assert (task["output"], task["cost_usd"]) == ("the work", "0.10")
    assert len(node.attempts(uid)) == 1
    assert [(node.folder(uid) / f"check-{n}").is_dir() for n in (1, 2, 3, 4)] == [
        True, True, True, False,
    ]  # fmt: skip
    node.cli("resolve", uid, "--as", "done", "--reason", "read it")
    assert node.until(uid, "COMPLETED")["output"] == "the work"


def test_a_judge_that_prints_without_end_is_cut_and_heard(make_node: MakeNode) -> None:
    """Megabytes by the hundred cost the node 16 KiB; its first line is its word."""
    node = with_validator(make_node, "echo '{\"pass\": true}'; head -c 300000000 /dev/zero")
    uid = node.add(answering(1), **by_command("llm-judge"), **ONCE)
    node.until(uid, "COMPLETED")
    assert (node.folder(uid) / "check-1" / "stdout.log").stat().st_size < 32 * 1024


def test_a_test_that_hangs_is_ended_with_all_that_it_started(make_node: MakeNode) -> None:
    node = with_validator(make_node, "sleep 600 & sleep 600", more="max_s = 1")
    uid = node.add(answering(1), **by_command(), **ONCE)
    assert "did not end in time" in dead(node, uid)
    assert carriers(f"AGENT_TASK_UID={uid}".encode()) == []


def test_a_judge_that_hangs_is_ended_and_tried_again(make_node: MakeNode) -> None:
    """It is the judge that is broken: three times, then a person decides. Seen to fail where a
    judge that ran out of time is taken for one that says no.
    """
    node = with_validator(make_node, "sleep 600 & sleep 600")
    uid = node.add(answering("the work"), **by_command("llm-judge", timeout_s=0.2), **ONCE)
    task = node.until(uid, "PARKED")
    assert "did not end in time" in task["failure_reason"]
    assert task["output"] == "the work"
    assert len(node.attempts(uid)) == 1
    assert (node.folder(uid) / "check-3").is_dir()
    assert carriers(f"AGENT_TASK_UID={uid}".encode()) == []


def test_a_schema_is_judged_where_its_package_lies(make_node: MakeNode, tmp_path: Path) -> None:
    extras = tmp_path / "extras"
    (extras / "jsonschema").mkdir(parents=True)
    (extras / "jsonschema" / "__init__.py").write_text(STUB)
    node = make_node(extras_path=str(extras))
    node.start()
    rule = {"kind": "json-schema", "schema": {"required": ["a"]}}
    good = node.add(answering({"a": 1}), validate=rule, **ONCE)
    bad = node.add(answering({"b": 1}), validate=rule, **ONCE)
    no_rule = {"kind": "json-schema", "schema": {"multipleOf": "bananas"}}  # seen by it alone
    none = node.add(answering({"a": 1}), validate=no_rule, **ONCE)
    node.until(good, "COMPLETED")
    assert dead(node, bad) == "invalid_output: here: 'a' is a required property"
    assert "no schema" in node.until(none, "PARKED")["failure_reason"]
    assert node.status_file()["capabilities"] == ["json-schema"]


@pytest.mark.parametrize(
    ("rule", "missing"),
    [
        ({"kind": "json-schema", "schema": {}}, "json-schema"),
        ({"kind": "test-pass", "validator": "check"}, "validator:check"),
    ],
)
def test_a_node_that_cannot_judge_a_task_does_not_run_it(
    node: Node, rule: dict[str, Any], missing: str
) -> None:
    """Fails when the rule is no need of the task: it runs, and nobody can judge it."""
    node.start()
    uid = node.add("true", validate=rule)
    node.until(node.add("true"), "COMPLETED")
    assert node.show(uid)["task"]["state"] == "READY"
    said = node.cli("status")["data"]["needs_you"]
    assert said == [f"1 READY, but no agent here has: {missing}"]


def test_a_validator_killed_with_its_shim_is_started_again(
    make_node: MakeNode, bell: Bell, gate: Bell
) -> None:
    node = with_validator(make_node, f"echo $$ > {bell.path}; read x < {gate.path}; exit 0")
    uid = node.add(answering("good"), **by_command(), **ONCE)
    bell.hear()
    shim = json.loads((node.folder(uid) / "check-1" / "shim.json").read_text())["pid"]
    os.kill(shim, signal.SIGKILL)
    bell.hear()
    assert node.show(uid)["task"]["state"] == "VALIDATING"
    gate.ring(1)
    assert node.until(uid, "COMPLETED")["output"] == "good"
    assert len(node.attempts(uid)) == 1


@pytest.mark.parametrize("meanwhile", ["the validator goes on", "the validator ends"])
def test_after_a_crash_the_daemon_validates_and_never_runs_the_program_again(
    make_node: MakeNode, bell: Bell, gate: Bell, meanwhile: str
) -> None:
    """Fails when a new daemon starts a second validator beside the one that lives."""
    node = make_node(agents=an_agent("iris", slots=2) + a_validator(
        f"echo judging > {bell.path}; read x < {gate.path}"
    ))  # fmt: skip
    daemon = node.start()
    uid = node.add(answering("good", f"echo working > {bell.path}"), **by_command(), **ONCE)
    assert [bell.hear(), bell.hear()] == ["working", "judging"]
    until(lambda: node.show(uid)["task"]["state"] == "VALIDATING", "the state")
    daemon.kill()
    if meanwhile == "the validator ends":
        gate.ring(1)
        until((node.folder(uid) / "check-1" / "verdict.json").exists, "a verdict")
    node.start()
    if meanwhile == "the validator goes on":
        gate.ring(1)
    assert node.until(uid, "COMPLETED")["output"] == "good"
    assert bell.next(0.2) is None
    assert not (node.folder(uid) / "check-2").exists()


def test_who_cancels_a_task_ends_its_validator(make_node: MakeNode, bell: Bell) -> None:
    node = with_validator(make_node, f"echo judging > {bell.path}; sleep 600")
    uid = node.add(answering("good"), **by_command(), **ONCE)
    bell.hear()
    node.cli("cancel", uid, "--reason", "no more")
    node.until(uid, "CANCELLED")
    assert carriers(f"AGENT_TASK_UID={uid}".encode()) == []


def test_what_an_attempt_cost_counts_when_its_validator_is_stopped(
    make_node: MakeNode, bell: Bell
) -> None:
    """Seen to fail: its program had ended well, and its cost went with what was not judged."""
    node = with_validator(make_node, f"echo judging > {bell.path}; sleep 600")
    says = "echo '{\"output\": 1, \"cost_usd\": \"0.25\"}' > $AGENT_ANSWER"
    uid = node.add(says, **by_command(), **ONCE)
    bell.hear()
    node.cli("cancel", uid, "--reason", "no more")
    node.until(uid, "CANCELLED")
    assert node.show(uid)["attempts"][0]["cost_usd"] == "0.25"


@pytest.fixture
def as_nobody(make_node: MakeNode) -> Node:
    """A node whose agent runs as another user, with a validator that says as whom it runs."""
    if not may_change_user():
        pytest.skip("needs other-user: root, setpriv, and a Python that others can start")
    agent = an_agent("iris", slots=2, more=f"prefix = {json.dumps(AS_NOBODY)}")
    node = make_node(agents=agent + a_validator('id -u; test "$(cat)" = made'))
    node.start()
    return node


@pytest.mark.parametrize(("output", "state"), [("made", "COMPLETED"), ("ill", "DEAD_LETTERED")])
def test_a_validator_runs_as_whoever_ran_the_program(
    as_nobody: Node, output: str, state: str
) -> None:
    """Fails when the node's own user judges what another user's program made."""
    uid = as_nobody.add(answering(output), **by_command(), **ONCE)
    as_nobody.until(uid, state)
    said = (as_nobody.folder(uid) / "check-1" / "stdout.log").read_text()
    assert said == "65534\n"


def test_a_pattern_is_judged_as_whoever_ran_the_program(as_nobody: Node) -> None:
    rule = {"kind": "regex", "pattern": "^made$"}
    good = as_nobody.add(answering("made"), validate=rule, **ONCE)
    bad = as_nobody.add(answering("ill"), validate=rule, **ONCE)
    as_nobody.until(good, "COMPLETED")
    assert "does not match" in dead(as_nobody, bad)


@pytest.mark.parametrize("word", ["\\\\ud800", "\\\\u0000"])
def test_a_reason_that_nothing_can_hold_is_a_reason_all_the_same(
    make_node: MakeNode, word: str
) -> None:
    """Judges repeat what they read. Fails where it is taken as it came: it cannot be written down,
    the daemon ends of it, and so does every one that is started after it.
    """
    node = with_validator(make_node, f"printf '{{\"pass\": false, \"reason\": \"a{word}b\"}}\\n'")
    uid = node.add(answering("nok"), **by_command("llm-judge"), **ONCE)
    assert dead(node, uid) == "invalid_output: a?b"
    with node.one_talk() as talk:
        decode_line(json.dumps(talk.ask("events", limit=1000)).encode())


def test_what_a_test_prints_can_be_told_to_a_hub(make_node: MakeNode) -> None:
    """Fails where a NUL goes on the wire: no line with one is read."""
    node = with_validator(make_node, "printf 'a\\0b'; exit 1")
    uid = node.add(answering("nok"), **by_command(), **ONCE)
    assert dead(node, uid) == "invalid_output: exit 1: a?b"


STOPPED = {
    ("cancel", 0): ("COMPLETED", "completed", "precious"),
    ("drain", 0): ("COMPLETED", "completed", "precious"),
    ("cancel", 1): ("CANCELLED", "failed", None),
    ("drain", 1): ("RETRYING", "failed", None),
}


@pytest.mark.parametrize(("word", "code"), STOPPED)
def test_a_validator_that_ended_before_it_could_be_stopped_is_heard(
    make_node: MakeNode, bell: Bell, gate: Bell, word: str, code: int
) -> None:
    """Fails where its own end counts as the program's: the task is COMPLETED without its output
    and its cost, or has crashed.
    """
    node = with_validator(
        make_node, f"echo $$ > {bell.path}; read x < {gate.path}; exit {code}"
    )
    uid = node.add(answering("precious"), **by_command(), max_attempts=2)
    validator = int(bell.hear())
    record = node.folder(uid) / "check-1" / "shim.json"
    shim = int(json.loads(record.read_text())["pid"])
    os.kill(shim, signal.SIGSTOP)
    gate.ring()
    until(lambda: is_gone(validator, 0) or is_zombie(validator), "its end")
    with node.one_talk() as talk:
        if word == "cancel":
            talk.ask("cancel", uid=uid, reason="no more", by="human:ada")
        else:
            talk.ask("drain", reason="night", by="human:ada", deadline_s=0, then="requeue")
    with suppress(ProcessLookupError):  # whoever asks it to stop wakes it as well
        os.kill(shim, signal.SIGCONT)
    state, outcome, output = STOPPED[word, code]
    task = node.until(uid, state)
    (attempt,) = node.attempts(uid)
    assert (attempt["outcome"], attempt["cost_usd"], task["output"]) == (outcome, "0.10", output)
    if outcome == "failed":
        assert attempt["error_kind"] == "invalid_output"


class Crashed(BaseException):
    """The daemon dies at this place."""


def test_a_daemon_that_dies_before_the_first_check_leaves_none_that_was_forged(
    tmp_path: Path,
) -> None:
    """What a program left in the place of a validator is out of the way before the queue says that
    validators may have begun. Fails the other way round: the next daemon takes it for one.
    """
    folder = create_folder(str(tmp_path), "01J0000000000000000000000A", 1)
    forged = Path(folder.path) / "check-1"
    forged.mkdir()

    class Store:
        def read(self, query: object) -> bool:
            return False

        def apply(self, command: object) -> None:
            assert isinstance(command, Validate)
            assert not forged.exists()
            raise Crashed

    run = Run(folder.uid, 1, "iris", "t", "b", folder, judged=task_from(
        {"uid": folder.uid, "subject": "x", "validate": {"kind": "regex", "pattern": "x"}}))
    nothing: Any = None
    validating = Validating(
        cast("Any", Store()), home=nothing, settings=nothing, starters=nothing, later=nothing,
        look=nothing, record=nothing, flush=lambda: None,
    )  # fmt: skip
    with pytest.raises(Crashed):
        validating.judge(run, Result("completed", output="x"))
