"""`arc explain`: every key, rule and code has a page, and every page is about one of them."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import arc.decisions
from agent_node.readiness import DEPENDENCY_FAILED, SKIPPED
from agent_node.retries import KINDS
from agent_node.task import State
from arc.config_keys import keys_of
from arc.config_sources import HAPPENINGS
from arc.errors import WrongUse
from arc.explaining import FOLDER, NODE_WORDS, all_pages, explain
from arc.explaining import sections as sections_in
from arc.unseen import RULES
from tests.test_docs import node_states, refusal_codes
from tools.document import error_classes, hub_codes
from tools.sources import sources

ROOT = Path(__file__).parents[2]


def pages(kind: str) -> set[str]:
    return {word for word, page in all_pages().items() if page.kind == kind}


def rule_names() -> set[str]:
    """What stands in a table `RULES` of any decision."""
    modules = [import_module(f"arc.decisions.{found.name}")
               for found in iter_modules(arc.decisions.__path__)]
    return {name for module in modules for name in getattr(module, "RULES", {})}


def words_of_the_hub() -> set[str]:
    """By which words a node counts as unseen, a move as kept or a doubt as left.

    Where they stand as literals: the words that say how something ended are none.
    """
    found = {rule for _, rule in RULES}
    for source in sources("arc"):
        if source.path in SPEAKERS:
            found |= {node.value for call in ast.walk(source.tree) if isinstance(call, ast.Call)
                      for node in [*call.args, *(one.value for one in call.keywords
                                                 if one.arg == "rule")]
                      if isinstance(node, ast.Constant) and isinstance(node.value, str)
                      and re.fullmatch("[a-z]+(_[a-z]+)+", node.value)
                      and ast.unparse(call.func).split(".")[-1] in MAKERS}
    return found - ENDS


SPEAKERS = {"arc/transfer.py", "arc/settling.py", "arc/fencing.py", "arc/reowning.py",
            "arc/looking.py", "arc/survey.py"}
MAKERS = {"end", "Outcome", "Reowning", "NodeUnseen", "refuse", "QueueUnseen"}
ENDS = {"needs_person", "in_doubt"}


def test_every_key_has_a_page_and_every_page_of_a_key_is_about_one() -> None:
    assert pages("key") == {key.name for key in keys_of()}


def test_every_rule_has_a_page_and_every_page_of_a_rule_is_about_one() -> None:
    assert pages("rule") == rule_names()


def test_every_code_has_a_page_and_every_page_of_a_code_is_about_one() -> None:
    """What is put together from the kind of a refusal stands nowhere as a whole word."""
    assert pages("error") == hub_codes() | {"ARC-CFG-TYPE", "ARC-CFG-VALUE"}


def test_every_word_by_which_something_was_not_seen_moved_or_settled_has_a_page() -> None:
    words = words_of_the_hub()
    assert words > {"host_key", "peer_unseen", "no_link", "not_all_answer"}
    assert sorted(words - set(all_pages())) == []


def test_every_word_of_a_node_has_a_page() -> None:
    told = {error.code for error in error_classes()}
    assert (told | refusal_codes()) - set(all_pages()) == set()


def words_behind(*makers: str) -> set[str]:
    """The words of refusals, rules and failures, also where a constant stands for them."""
    every = [source.tree for source in sources("agent_node", "arc", "sensors")
             if not source.path.startswith("arc/joining/there/")]  # fmt: skip
    constants = {(target.id, step.value.value) for tree in every for step in tree.body
                 if isinstance(step, ast.Assign) and isinstance(step.value, ast.Constant)
                 for target in step.targets
                 if isinstance(target, ast.Name) and isinstance(step.value.value, str)}
    calls = [node for tree in every for node in ast.walk(tree) if isinstance(node, ast.Call)]
    said = [one for call in calls for one in (
        *(call.args if called(call) in makers else ()),
        *(more.value for more in call.keywords if more.arg in {"rule", "error_kind"}))]
    found = {one.value for one in said if isinstance(one, ast.Constant)}
    found |= {value for one in said if isinstance(one, ast.Name)
              for name, value in constants if name == one.id}
    return {one for one in found if isinstance(one, str) and re.fullmatch("[a-z]+(_[a-z]+)*", one)}


def called(call: ast.Call) -> str:
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


def test_every_word_by_which_a_task_is_refused_kept_or_ended_has_a_page() -> None:
    """Seen to fail: nothing looked at failures, nor at a word that stands in a constant."""
    words = words_behind("Because", "Refused", "refuse", "_refused", "Objection")
    assert words > {"over_budget", "budget_exceeded", "may_do_this_work", "stalled"}
    words |= {*KINDS, *HAPPENINGS, DEPENDENCY_FAILED, SKIPPED, "interrupted"}
    assert sorted(word for word in words if not is_explained(word)) == []


def is_explained(word: str) -> bool:
    try:
        return bool(explain(word).text)
    except WrongUse:
        return False


def test_what_nodes_say_is_explained_as_in_the_page_for_the_night() -> None:
    """The package carries its own copy, since docs/ is not installed; both say the same."""
    night = (ROOT / "docs/at-3am.md").read_text().split("\n| error |", 1)[1]
    rows = {line for line in night.splitlines() if line.startswith("| `")}
    copied = {line for line in all_pages()[NODE_WORDS].text.splitlines()
              if line.startswith("| `")}
    assert copied ^ rows == set()


def test_a_page_stands_once_and_says_something() -> None:
    words = [word for file in FOLDER.glob("*.md") for word, _ in sections_in(file.read_text())]
    assert sorted(words) == sorted(set(words))
    assert [word for word, page in all_pages().items() if len(page.text) < 15] == []


def test_a_page_names_only_keys_that_exist() -> None:
    keys = {key.name for key in keys_of()}
    sections_of = {name.split(".")[0] for name in keys}
    named = {(word, key) for word, page in all_pages().items()
             for key in re.findall(r"`([a-z]+[./][a-z_]+)`", page.text)
             if re.split("[./]", key)[0] in sections_of and key != "fleet.yaml"}
    assert {(word, key) for word, key in named if key.replace("/", ".") not in keys} == set()


@pytest.mark.parametrize(("typed", "word"), [
    ("router.soft", "router.soft"), ("router/soft", "router.soft"), ("soft", "router.soft"),
    ("soft:", "router.soft"), ("arc-ssh-login", "ARC-SSH-LOGIN"), ("SSH-LOGIN", "ARC-SSH-LOGIN"),
    ("stopped", "stopped"), ("ready", "READY"), ("arc-stopped", "ARC-STOPPED"),
    ("may_be_given", "may_be_given"), ("fleet-health", "fleet-health"), ("unseen", "unseen"),
    ("exit-codes", "exit-codes"), ("disk_floor", "disk_floor"), (" policy ", "policy"),
    ("deadline", "deadline"), ("budget_usd", "budget_usd"), ("--max-cost", "max_cost"),
    ("max_cost_usd", "max_cost"), ("dead letter", "dead_letter"), ("no idle", "no_idle"),
    ("P5", "priority"),
])
def test_a_word_is_found_however_it_is_typed(typed: str, word: str) -> None:
    assert explain(typed).word == word


@pytest.mark.parametrize(("typed", "suggested"), [
    ("sotf", "router.soft"), ("every", "router.every"), ("ARC-SSH-HOSTKY", "ARC-SSH-HOSTKEY"),
])
def test_an_unknown_word_is_answered_with_a_known_one(typed: str, suggested: str) -> None:
    with pytest.raises(WrongUse, match=re.escape(suggested)):
        explain(typed)


def test_a_hostile_word_is_answered_and_not_obeyed() -> None:
    with pytest.raises(WrongUse) as caught:
        explain("\x1b[31m" + "x" * 10_000)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_every_sensor_has_a_page() -> None:
    for file in Path("sensors").glob("fleet_*.py"):
        assert explain(file.stem.replace("_", "-")).text


def test_every_state_of_a_task_and_of_a_node_has_a_page() -> None:
    """`arc status` and `arc nodes list` print these words."""
    assert ({str(state) for state in State} | node_states()) - set(all_pages()) == set()
