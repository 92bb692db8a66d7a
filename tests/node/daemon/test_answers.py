"""What a program writes to its answer file is believed within bounds, and can break nothing."""

from __future__ import annotations

import json
import os
import signal
from datetime import timedelta

import pytest

from agent_node.clock import SystemClock, iso
from agent_node.graph_orders import _end
from agent_node.requests import Fields
from agent_node.strict import decode_line
from agent_node.task import task_from
from arc.asking import read_shown
from arc.custody import left_by
from tests.node.daemon.living import Bell, Node, until

AT_ONCE = {"strategy": "immediate"}


def answering(text: str) -> str:
    return f"cat > \"$AGENT_ANSWER\" <<'END'\n{text}\nEND\n"


def test_a_good_answer_is_kept_with_its_cost(node: Node) -> None:
    node.start()
    said = '{"output": {"lines": 3}, "cost_usd": "0.12", "tokens": {"input": 9, "output": 4},'
    uid = node.add(answering(said + ' "artifacts": ["a.txt"]}'))
    task = node.until(uid, "COMPLETED")
    assert (task["output"], task["cost_usd"]) == ({"lines": 3}, "0.12")
    assert task["tokens"] == {"input": 9, "output": 4}
    assert [entry["name"] for entry in task["artifacts"]] == ["a.txt"]


@pytest.mark.parametrize("word", ["cancel", "drain", "kill the shim"])
def test_what_a_program_said_that_it_cost_counts_when_it_is_stopped(
    node: Node, bell: Bell, gate: Bell, word: str
) -> None:
    """Seen to fail: only an end of its own, or its timeout, cost anything."""
    node.start()
    says = answering('{"cost_usd": "0.12"}')
    uid = node.add(f"{says}echo on > {bell.path}; read x < {gate.path}")
    bell.hear()
    if word == "kill the shim":
        node.cli("pause", "--reason", "once is enough")
        os.kill(node.shim(uid), signal.SIGKILL)
    elif word == "cancel":
        node.cli("cancel", uid, "--reason", "no more")
    else:
        node.cli("drain", "--deadline-s", "0", "--then", "requeue")
    node.until(uid, "CANCELLED" if word == "cancel" else "READY")
    (last,) = node.show(uid)["attempts"]
    assert last["cost_usd"] == "0.12"
    (spent,) = [one["spent_usd"] for one in node.cli("budget")["data"]["scopes"]]
    assert spent == "0.12"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (answering("{"), "not JSON"),
        (answering("hello"), 'a JSON object belongs there, such as {"output": "a text"}'),
        (answering('{"output": 1, "output": 2}'), "twice"),
        (answering('{"cost_usd": 0.12}'), "cost_usd"),
        (answering('{"output": NaN}'), "NaN"),
        (answering('{"output": ' + "[" * 9 + "]" * 9 + "}"), "output: nested deeper than 8"),
        (answering('{"output": 1, "more": ' + "[" * 8 + "]" * 8 + "}"), "extra: nested deeper"),
        (answering('{"tokens": {"' + "x" * 65 + '": 1}}'), "tokens/xxx"),
        ('ln -s /etc/passwd "$AGENT_ANSWER"', "link"),
        ('mkfifo "$AGENT_ANSWER"', "not a plain file"),
        ('mkdir "$AGENT_ANSWER"', "not a plain file"),
        ('head -c 300000 /dev/zero | tr "\\0" " " > "$AGENT_ANSWER"', "bytes"),
        ('truncate -s 50G "$AGENT_ANSWER"', "bytes"),
    ],
)
def test_a_bad_answer_fails_the_attempt_and_says_why(node: Node, script: str, why: str) -> None:
    node.start()
    uid = node.add(script, max_attempts=1)
    reason = node.until(uid, "DEAD_LETTERED")["failure_reason"]
    assert reason.startswith("invalid_output: answer.json")
    assert why in reason


def test_a_bad_answer_of_a_failed_program_leaves_its_own_failure(node: Node) -> None:
    node.start()
    uid = node.add(answering("{") + "exit 9", max_attempts=1)
    assert node.until(uid, "DEAD_LETTERED")["failure_reason"].startswith("crash: exit 9")


def test_an_error_that_the_program_names_decides_even_with_exit_0(node: Node) -> None:
    node.start()
    uid = node.add(answering('{"error": {"kind": "auth_failure", "message": "no key"}}'))
    task = node.until(uid, "DEAD_LETTERED")
    assert task["failure_reason"] == "auth_failure: no key"
    assert len(node.attempts(uid)) == 1, "it is never retried"


def test_a_rate_limit_waits_as_long_as_it_says_and_costs_no_try(node: Node) -> None:
    node.start()
    hence = iso(SystemClock().now() + timedelta(hours=5))
    limit = json.dumps({"error": {"kind": "rate_limit", "retry_at": hence}})
    uid = node.add(answering(limit), max_attempts=1)
    task = node.until(uid, "RETRYING")
    assert task["retry_at"] == hence
    assert task["failures"] == 0


def test_a_rate_limit_without_a_time_is_a_failure_like_another(node: Node) -> None:
    node.start()
    uid = node.add(answering('{"error": {"kind": "rate_limit"}}'), max_attempts=2, retry=AT_ONCE)
    node.until(uid, "DEAD_LETTERED")
    assert [one["error_kind"] for one in node.attempts(uid)] == ["rate_limit", "rate_limit"]


def test_endless_output_is_cut_in_the_middle_and_counted(node: Node) -> None:
    node.configure(output_cap="64KiB")
    node.start()
    uid = node.add("echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last")
    node.until(uid, "COMPLETED")
    kept = (node.folder(uid) / "stdout.log").read_bytes()
    assert kept.startswith(b"first\n")
    assert kept.endswith(b"last\n")
    assert len(kept) < 70_000


def test_a_verdict_that_the_program_forges_changes_nothing(node: Node) -> None:
    """The folder is the program's own working place; its exit code is still what counts."""
    node.start()
    forged = '{"schema":"verdict/1","kind":"exited","exit_code":0}'
    uid = node.add(f"echo '{forged}' > verdict.json; exit 5", max_attempts=1)
    assert node.until(uid, "DEAD_LETTERED")["failure_reason"].startswith("crash: exit 5")


LARGEST = {
    "output": ["x" * 60_000, [[[[[[["deep"]]]]]]]],
    "cost_usd": "999999999999.999999999",
    "tokens": {f"{place:02}" + "\U0001f600" * 62: 2**53 for place in range(16)},
    "artifacts": ["\U0001f600" * 200],
}
FAILED = {"error": {"kind": "\u0001" * 64, "message": "\u0001" * 2000}, **LARGEST}


@pytest.mark.parametrize("answer", [LARGEST, FAILED])
def test_whatever_answer_is_taken_can_be_told_to_a_hub(
    node: Node, answer: dict[str, object]
) -> None:
    """An output that no line of the wire can hold makes a hub deaf to all else that ends here.

    Fails where nesting is bounded as for a line of its own, and where the names of tokens are not.
    """
    node.start()
    said = json.dumps(answer, ensure_ascii=False)
    uid = node.add(answering(said), max_attempts=1)
    node.until(uid, "COMPLETED", "DEAD_LETTERED")
    with node.one_talk() as talk:
        for do, asked in (("show", {"uid": uid}), ("events", {"limit": 1000}), ("dead", {})):
            told = {"id": 1, "ok": True, "result": talk.ask(do, **asked)}
            decode_line(json.dumps(told).encode())
    shown = read_shown("iris", uid, node.show(uid))
    ended = Fields({**left_by(shown.task), "uid": uid, "state": shown.task.state, "node": "iris",
                    "at": "2026-03-10T03:45:02.000Z"})  # fmt: skip
    assert _end(ended).uid == uid, "whoever waits for it can be told"


def test_a_task_that_failed_with_many_words_can_still_be_shown_and_moved(node: Node) -> None:
    """What it said of a hundred failures is more than a task may bring along.

    Fails where every attempt is told whole: its hub can neither read it nor move it, for ever.
    """
    node.start()
    words = {"error": {"kind": "crash", "message": "\u0001" * 2000}}
    again = {"strategy": "immediate"}
    uid = node.add(answering(json.dumps(words)), max_attempts=100, retry=again)
    until(lambda: node.cli("list", "--state", "DEAD_LETTERED")["data"]["tasks"], "its end", 60.0)
    shown = node.show(uid)
    assert len(json.dumps(shown)) < 4 * 1024 * 1024
    read = read_shown("iris", uid, shown)
    assert [one["n"] for one in read.attempts] == [*range(1, 101)], "none of them is left out"
    assert read.attempts[-1]["message"] == "\u0001" * 2000
    assert read.attempts[0]["message"] == "\u0001" * 64
    assert task_from(shown["task"]).uid == uid, "a node that it comes to takes its history"


def test_a_late_result_is_kept_as_a_file_and_refused(node: Node, bell: Bell, gate: Bell) -> None:
    """The hub says that this node was declared dead while its program works: the task may live
    elsewhere by now. Fails where the result is taken, and where its files go with it.
    """
    node.configure(grace_s=60)
    daemon = node.start()
    with node.one_talk() as talk:
        life = talk.ask("status")["incarnation"]
    wait = f"trap '' TERM; echo on > {bell.path}; read x < {gate.path}\n"
    uid = node.add(wait + answering('{"output": "late"}') + "echo printed")
    bell.hear()
    node.until(uid, "RUNNING")
    hello = {"fleet": "arc0", "hub": "arc", "term": 1, "wire": [1, 1], "incarnation": life}
    with node.one_talk() as talk:
        talk.ask("hello", **hello, fenced=True)
    node.until(uid, "PARKED")
    gate.ring()
    daemon.hear("result_refused")
    task = node.show(uid)["task"]
    assert (task["state"], task.get("output")) == ("PARKED", None)
    folder = node.folder(uid)
    assert json.loads((folder / "answer.json").read_text()) == {"output": "late"}
    assert (folder / "stdout.log").read_text() == "printed\n"
    assert json.loads((folder / "verdict.json").read_text())["kind"] == "stopped"
    daemon.stop()
    node.start()
    assert json.loads((folder / "answer.json").read_text()) == {"output": "late"}
