"""Holds the docs to the code: every module on the map, every error and refusal explained."""

from __future__ import annotations

import ast
import re

from agent_node import reports
from agent_node.cli.catalogue import COMMANDS
from agent_node.task import CHANGES, State
from arc.decisions import health
from arc.unseen import RULES
from tests.hub.cli.test_commands_page import EVERYWHERE
from tests.hub.cli.test_commands_page import there as commands
from tools import night, plot_priority
from tools.document import (
    error_classes,
    error_meanings,
    hub_codes,
    render_errors,
    render_map,
)
from tools.draw_states import render_states
from tools.rooms import ROOMS
from tools.rule_table import all_rules, render_rules
from tools.sources import PACKAGES, ROOT, sources

DOCS = ROOT / "docs"
MAKE_DOCS = "run `make docs`"


def test_every_module_stands_on_the_map_with_its_own_sentence() -> None:
    page = read("map.md")
    assert [line for line in render_map().splitlines() if line not in page] == [], MAKE_DOCS


def test_the_map_names_no_module_that_is_gone() -> None:
    there = {source.path for source in sources(*PACKAGES, "tools", "tests", "bench")}
    modules = set(re.findall(r"`((?:agent_node|arc|sensors)/[\w/]+\.py)`", read("map.md")))
    assert modules - there == set(), MAKE_DOCS


def test_every_folder_of_tests_has_one_row_on_the_map() -> None:
    folders = {f"tests/{file.parent.name}/" for file in (ROOT / "tests").glob("*/test_*.py")}
    rows = re.findall(r"`(tests/\w+/)`", read("map.md").partition("<!-- modules")[0])
    assert sorted(rows) == sorted({*folders, *rows})
    assert folders - {*rows} == set()


def test_every_module_has_one_room_on_the_map() -> None:
    rooms = {source.path: [room.name for room in ROOMS if room.has(source.path)]
             for source in sources(*PACKAGES)}
    assert {path: names for path, names in rooms.items() if len(names) != 1} == {}, (
        "name the module in one room of tools/rooms.py")


def test_every_change_of_state_is_drawn_once_and_no_other() -> None:
    page = read("states.md")
    assert render_states() in page, MAKE_DOCS
    drawn = re.findall(r"^    ([A-Z_]+) --> ([A-Z_]+)$", page, re.MULTILINE)
    for new, line in re.findall(r"^- `([A-Z_]+)` from (.*)$", page, re.MULTILINE):
        drawn += [(old, new) for old in re.findall(r"`([A-Z_]+)`", line)]
    table = [(str(old), str(new)) for old, allowed in CHANGES.items() for new in allowed]
    assert sorted(drawn) == sorted(table)


def test_the_picture_of_priority_is_drawn_from_the_functions_that_order_tasks() -> None:
    """Seen to fail with another length of the day: nothing held the picture before."""
    assert read("priority.svg") == plot_priority.picture(), MAKE_DOCS
    assert "priority.svg" in read("priority.md")


def test_every_state_is_explained() -> None:
    page = read("states.md")
    assert [state for state in State if f"| `{state}` |" not in page] == []


def test_every_error_is_explained_with_its_exit_code() -> None:
    page = read("errors.md")
    assert [line for line in render_errors().splitlines() if line not in page] == [], MAKE_DOCS


def test_every_error_says_more_than_its_name() -> None:
    assert [f"{error.path}: {error.code}" for error in error_classes()
            if len(error.sentence) < len(error.code) + 15] == []


def test_every_rule_of_a_decision_has_its_row_and_every_row_a_rule() -> None:
    page = read("rules.md")
    assert [line for line in render_rules().splitlines() if line not in page] == [], MAKE_DOCS
    assert sorted(re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE)) == sorted(all_rules())


def test_a_rule_names_every_place_that_may_say_it() -> None:
    """`arc why` names a rule wherever it kept a task; the page has to know of that place."""
    found = {name: sorted(rule.places) for name, rule in all_rules().items()}
    assert found["never_this_domain"] == ["draining", "retrying", "routing", "stealing"]
    assert found["fresh_report"] == ["draining", "health", "retrying", "routing", "stealing"]
    assert found["work_succeeds"] == ["draining", "health", "retrying", "routing", "stealing"]
    assert found["load_below_hard"] == ["routing"]


def test_whatever_an_operator_may_meet_at_night_has_a_line() -> None:
    page = read("at-3am.md")
    codes = {error.code for error in error_classes()} | refusal_codes()
    codes |= {code for code in hub_codes() if not code.startswith("ARC-CFG-")}  # one row for all
    codes |= {rule for _, rule in RULES} | {"suspended", "not_asked"}
    assert sorted(code for code in codes if f"`{code}`" not in page) == []


def test_at_night_every_state_and_every_trouble_has_a_row_and_every_row_is_about_one() -> None:
    """Seen to fail: node states and rules of health had no row, most task states none."""
    page = read("at-3am.md")
    wanted = {
        night.TASK_STATES: {str(state) for state in State}, night.NODE_STATES: node_states(),
        night.HEALTH: {*health.RULES, "node_answers"},
        night.HUB_CODES: {code for code in hub_codes() if not code.startswith("ARC-CFG-")},
    }  # fmt: skip
    for heading, words in wanted.items():
        assert sorted(night.words_under(page, heading)) == sorted(words), heading
    assert {"stale", "stalled", "unseen", "drained", "working"} < node_states()


def node_states() -> set[str]:
    """Every word by which a page or a line calls a node, from whoever makes such a word."""
    status = next(source.tree for source in sources("arc/operations")
                  if source.path == "arc/operations/status.py")  # fmt: skip
    makers = [node for node in status.body if isinstance(node, ast.FunctionDef)
              and node.name in {"state_of", "unseen_line"}]  # fmt: skip
    assert len(makers) == 2
    steps = [step for maker in makers for step in ast.walk(maker)]
    said = [one for step in steps for one in (
        (step.value,) if isinstance(step, ast.Return)
        else (step.body, step.orelse) if isinstance(step, ast.IfExp) else ())]  # fmt: skip
    words = {one.value for one in said if isinstance(one, ast.Constant)}
    return {*reports.STATES, *health.STATE_OF.values(),
            *(word for word in words if isinstance(word, str) and word)}  # fmt: skip


def test_at_night_every_word_is_told_as_where_it_is_explained() -> None:
    page = read("at-3am.md")
    assert night.with_meanings(page, error_meanings()) == page, MAKE_DOCS
    cells = [cell.strip() for line in page.splitlines() if line.startswith("| ")
             for cell in line.strip("| ").split(" | ")[1:2]]  # fmt: skip
    assert len(cells) > 200
    told = [line for heading in night.TABLES for line in below(page, heading)]
    assert [line for line in told if line.count(" | ") != 2 or " |  | " in line] == []


def below(page: str, heading: str) -> list[str]:
    """The rows under a heading."""
    section = re.split("^## ", page.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]
    return [line for line in section.splitlines() if night.is_row(line)]


def test_at_night_a_trouble_is_quoted_in_the_words_it_is_told_in() -> None:
    """Nobody finds a row by words that no command prints."""
    said = "\n".join(node.value for source in sources("arc", "agent_node")
                     for node in ast.walk(source.tree)
                     if isinstance(node, ast.Constant) and isinstance(node.value, str))  # fmt: skip
    rows = below(read("at-3am.md"), night.HEALTH)
    quoted = [words for row in rows for words in re.findall("`([^`]+)`", row.split(" | ")[0])]
    pieces = {piece.strip() for words in quoted for piece in words.split("…")} - {""}
    pieces -= {*night.words_under(read("at-3am.md"), night.HEALTH)}
    assert sorted(piece for piece in pieces if piece not in said) == []
    assert len(pieces) > 20


def test_at_night_a_command_takes_the_options_it_is_typed_with() -> None:
    typed = [words.split() for words in re.findall("`((?:arc|agent-node) [^`]+)`",
                                                   read("at-3am.md"))]  # fmt: skip
    of_hub = [words for words in typed if words[0] == "arc"]
    known = commands()
    for words in of_hub:
        name = next((" ".join(words[:n]) for n in (3, 2) if " ".join(words[:n]) in known), "")
        options = {word for word in words[2:] if word.startswith("-") and word != "--"}
        assert name == "" or options <= known[name] | EVERYWHERE, words
    assert {words[1] for words in typed if words[0] == "agent-node"} - {*COMMANDS, "help"} == set()
    assert len(of_hub) > 80


def test_a_page_or_a_hint_names_no_command_that_does_not_exist() -> None:
    """Whoever is stuck types what stands there; what only will exist stands in the README."""
    names = {" ".join(name.split()[:3]) for name in commands()}
    groups = {name.split()[1] for name in names if len(name.split()) > 2}
    firsts = {name.split()[1] for name in names}
    pages = [*DOCS.rglob("*.md"), *(ROOT / "arc" / "explanations").glob("*.md")]
    texts = {page.name: page.read_text(encoding="utf-8") for page in pages}
    texts |= {source.path: source.text for source in sources("arc", "sensors")}
    named = {(place, first, second) for place, text in texts.items()
             for first, second in re.findall(r"(?:`|[:;,] |then |^)arc ([a-z]+)(?: ([a-z]+))?",
                                             text, re.MULTILINE)}  # fmt: skip
    wrong = {(place, first, second) for place, first, second in named
             if first in firsts and first in groups and second
             and f"arc {first} {second}" not in names}  # fmt: skip
    wrong |= {(place, first, "") for place, text in texts.items()
              for first in re.findall(r"`arc ([a-z]+)\b", text) if first not in firsts}
    assert sorted(wrong) == []
    assert len(named) > 100


def test_a_test_that_a_page_names_is_there() -> None:
    there = {node.name for source in sources("tests") for node in ast.walk(source.tree)
             if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}  # fmt: skip
    assert [f"{page.name}: {name}" for page in DOCS.rglob("*.md")
            for name in re.findall(r"`(test_\w+)`", page.read_text()) if name not in there] == []


def test_every_fault_that_has_a_test_stands_in_the_list_of_faults() -> None:
    faults = {node.name for source in sources("tests") for node in ast.walk(source.tree)
              if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
              and node.name.startswith("test_fault_")}  # fmt: skip
    page = read("reliability.md")
    assert sorted(name for name in faults if f"`{name}`" not in page) == []
    assert len(faults) > 20


def test_every_row_of_the_faults_names_tests_of_them() -> None:
    """A test that also holds something else is not found again by whoever looks for the fault."""
    table = read("reliability.md").split("### The faults that it learned from")[1].split("\n## ")[0]
    found = [line.split("|") for line in table.splitlines() if line.startswith("| ")][1:]
    named = {row[1].strip(): re.findall(r"`(\w+)`", row[3]) for row in found}
    assert [fault for fault, names in named.items()
            if not names or not all(name.startswith("test_fault_") for name in names)] == []
    assert len(named) > 20


def test_a_module_that_a_page_names_is_there() -> None:
    there = {path for source in sources(*PACKAGES, "tools", "tests", "bench")
             for path in tails(source.path)}
    assert [f"{page.name}: {name}" for page in DOCS.rglob("*.md")
            for name in re.findall(r"`([\w/]+\.py)`", page.read_text()) if name not in there] == []


def test_a_link_between_pages_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    assert [f"{page.name}: {target}" for page in pages
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
            if not (page.parent / target).exists()] == []


def tails(path: str) -> list[str]:
    """A path as it may be named: whole, or without its first folders."""
    parts = path.split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]


def read(name: str) -> str:
    """A page of docs/, whose absence is a failure and not an empty page."""
    return (DOCS / name).read_text(encoding="utf-8")


# Who makes a refusal, and at which place its word stands.
REFUSERS = {"Refused": 0, "Because": 0, "_refused": 1, "refuse": 1}


def refusal_codes() -> set[str]:
    """The words that the node's code gives to its refusals as literals."""
    calls = [node for source in sources("agent_node") for node in ast.walk(source.tree)
             if isinstance(node, ast.Call)]
    return {word for call in calls if (word := refusal_code(call)) is not None}


def refusal_code(call: ast.Call) -> str | None:
    """The word of one refusal; None: it is none, or its word is not written there."""
    place = REFUSERS.get(ast.unparse(call.func).split(".")[-1])
    if place is None or len(call.args) <= place:
        return None
    word = call.args[place]
    return word.value if isinstance(word, ast.Constant) and isinstance(word.value, str) else None
