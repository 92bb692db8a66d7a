"""Holds the fences of the code: who imports whom, how large things grow, what is banned."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import TypeVar

import pytest

from tools.sources import PACKAGES, Source, sources

MODULE_LINES_MAX = 300
BODY_LINES_MAX = 40
POSITIONAL_MAX = 4
BY_NAME = ("arc/simulate/", "arc/history")
COLUMNS_MAX = 100
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "base"}

# Only the files named here may import the module named at the left. A folder ends with a slash.
IMPORTED_ONLY_BY: dict[str, dict[str, str]] = {
    "sqlite3": {
        "agent_node/store/": "SQL lives in the store",
        "agent_node/doctor.py": "looks at a queue.db, read-only, when no store may be opened",
        "arc/journal.py": "the errors of its own database",
        "arc/history_file.py": "reads the journal beside the hub, in another process",
        "arc/operations/doctor.py": "asks which version this machine has",
    },
    "asyncssh": {"arc/links/ssh.py": "the one SSH client", "arc/demo/sshd.py": "the demo's",
                 "arc/keys.py": "makes the hub's key pair",
                 "arc/joining/login.py": "the operator's own login",
                 "arc/joining/restricted.py": "tries what the hub's key must not be able to"},
    "apscheduler": {"arc/schedule.py": "the one place that keeps time"},
    "sqlite_utils": {"arc/journal.py": "the hub's own tables",
                     "arc/journal_tables.py": "and the steps that made them"},
    "pydantic": {"arc/config_model.py": "what fleet.yaml may say",
                 "arc/config_kinds.py": "of what kinds its values are",
                 "arc/config_sources.py": "its part on where work comes from",
                 "arc/config.py": "its errors",
                 "arc/web/": "its models"},
    **{name: {"arc/web/": "the page, a process of its own"} for name in (
        "starlette", "uvicorn", "sse_starlette", "jinja2", "prometheus_client")},
    "sensors": {"arc/hub.py": "the one edge that points up", "sensors/": "itself"},
}
# What is pure imports nothing that looks outside.
OUTSIDE = {"asyncio", "os", "time", "random", "logging", "sqlite3", "socket", "subprocess"}
PURE = ("arc/decisions/", "agent_node/task.py", "agent_node/moves.py", "agent_node/spec.py",
        "agent_node/fields.py", "agent_node/strict.py", "agent_node/retries.py")
# Who may not know whom, inside a package: by the start of the path, and of the imported name.
KNOWS_NOT: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (PURE, ("agent_node.store", "agent_node.cli", "agent_node.home", "agent_node.config"),
     "the contract stands on nothing"),
    (("agent_node/store/",), ("agent_node.cli", "agent_node.serve", "agent_node.daemon",
                              "agent_node.dispatch", "agent_node.shim", "agent_node.zygote"),
     "a store keeps tasks and runs nothing"),
    (tuple(f"agent_node/{name}" for name in ("shim", "zygote", "processes", "evidence", "killing",
                                             "output", "attempts", "cgroups", "traces",
                                             "executors/")),
     ("agent_node.store", "agent_node.serve", "agent_node.cli"),
     "what runs a task knows nothing of the queue"),
    (("agent_node/cli/", "agent_node/doctor.py"), ("agent_node.store",),
     "commands speak to the node through its door, as the hub does"),
)
# `except Exception` stands in these places alone; each logs, and names what it kept alive.
BROAD_EXCEPTS: dict[str, str] = {
    "agent_node/replies.py": "around one request: it ends, the node stays up",
    "agent_node/cli/running.py": "the top of the command line: one line instead of a traceback",
    "arc/cli/running.py": "the top of the command line: one line instead of a traceback",
    "arc/schedule.py": "around a sensor: its run ends, the others and the hub go on",
    "arc/operations/skills.py": "around another package's answer: it ends, the hub goes on",
    "arc/reception.py": "around one operation: it ends, the hub goes on",
    "sensors/__init__.py": "around loading another package's sensor: ours run on",
}
BANNED_CALLS = {
    "os.system": "starts a shell; give an argv list to subprocess",
    "os.popen": "starts a shell; give an argv list to subprocess",
    "subprocess.getoutput": "starts a shell and hides its exit code",
    "subprocess.getstatusoutput": "starts a shell",
    "datetime.now": "take `now` as an argument, or a Clock at the edge",
    "datetime.utcnow": "a time without a zone",
    "eval": "runs what somebody sent",
    "exec": "runs what somebody sent",
    "pickle.loads": "runs what somebody sent",
}
CALLS_ALLOWED: dict[tuple[str, str], str] = {
    ("agent_node/clock.py", "datetime.now"): "the clock itself",
    ("agent_node/cli/running.py", "datetime.now"): "stamps answers; the edge of a command",
    ("arc/cli/running.py", "datetime.now"): "stamps answers; the edge of a command",
}
# A body beyond the limit, or a line, or a module: named here with its reason, or made smaller.
LARGE_BODIES: dict[str, str] = {}
LARGE_MODULES: dict[str, str] = {}

Node = TypeVar("Node", bound=ast.AST)
PRODUCT = sources(*PACKAGES)
EVERYTHING = sources(*PACKAGES, "tools", "tests", "bench")


def test_the_node_imports_the_standard_library_and_itself_alone() -> None:
    known = sys.stdlib_module_names | {"agent_node"}
    none_of([f"{source.path}: {name}" for source in PRODUCT
             if source.path.startswith("agent_node/")
             for name in imported(source) if top(name) not in known])


def test_a_module_with_one_home_is_imported_there_alone() -> None:
    none_of([f"{source.path}: {name}" for source in PRODUCT
             for name in imported(source) if not may_import(source.path, top(name))])


def test_what_is_pure_imports_nothing_that_looks_outside() -> None:
    none_of([f"{source.path}: {name}" for source in PRODUCT if source.path.startswith(PURE)
             for name in imported(source) if top(name) in OUTSIDE])


def test_a_layer_does_not_know_what_stands_above_it() -> None:
    none_of([f"{source.path}: {name}: {why}" for source in PRODUCT
             for files, names, why in KNOWS_NOT if source.path.startswith(files)
             for name in imported(source)
             if f"{name}.".startswith(tuple(f"{above}." for above in names))])


def test_a_module_stays_small_enough_to_read_at_one_go() -> None:
    sizes = {source.path: len(source.text.splitlines()) for source in PRODUCT}
    assert {path: lines for path, lines in sizes.items()
            if lines > MODULE_LINES_MAX and path not in LARGE_MODULES} == {}


def test_a_body_fits_on_a_screen() -> None:
    sizes = {f"{source.path}:{function.name}": body_lines(function)
             for source in PRODUCT for function in functions(source)}
    assert {name: lines for name, lines in sizes.items()
            if lines > BODY_LINES_MAX and name not in LARGE_BODIES} == {}


def test_what_takes_many_arguments_is_given_them_by_name() -> None:
    """So far in these modules alone: elsewhere a few take more, and no new ones should."""
    none_of([f"{source.path}:{function.lineno}: {function.name}" for source in PRODUCT
             if source.path.startswith(BY_NAME) for function in functions(source)
             if len(positional(function)) > POSITIONAL_MAX])


def test_a_module_is_named_for_what_it_holds() -> None:
    none_of([source.path for source in PRODUCT
             if not DRAWERS.isdisjoint(re.split(r"[/.]", source.path))])


def test_a_module_says_in_one_sentence_what_it_is_for() -> None:
    none_of([f"{source.path}: {source.sentence!r}" for source in EVERYTHING
             if not re.fullmatch(r"\S.{15,}[.!?]", source.sentence)])


def test_a_broad_except_stands_only_where_the_list_says() -> None:
    broad = [(source, handler) for source in PRODUCT
             for handler in walk(source, ast.ExceptHandler) if is_broad(handler)]
    none_of([f"{source.path}:{handler.lineno}" for source, handler in broad
             if source.path not in BROAD_EXCEPTS and not raises_again(handler)])
    none_of([f"{source.path}:{handler.lineno}" for source, handler in broad
             if all(isinstance(step, ast.Pass) for step in handler.body)])


def test_nothing_is_started_through_a_shell() -> None:
    none_of([f"{source.path}:{call.lineno}" for source in EVERYTHING
             for call in walk(source, ast.Call)
             for keyword in call.keywords if keyword.arg == "shell"])


def test_a_banned_call_stands_only_where_the_list_says() -> None:
    none_of([f"{source.path}:{call.lineno}: {name}: {why}" for source in PRODUCT
             for call in walk(source, ast.Call) for name, why in BANNED_CALLS.items()
             if is_call_of(call, name) and (source.path, name) not in CALLS_ALLOWED])


def test_a_line_fits_beside_another_file() -> None:
    none_of([f"{source.path}:{n}" for source in EVERYTHING
             for n, line in enumerate(source.text.splitlines(), 1) if len(line) > COLUMNS_MAX])


def test_an_exception_that_nobody_needs_any_more_is_struck_from_its_list() -> None:
    there = {source.path for source in PRODUCT}
    named = {*BROAD_EXCEPTS, *LARGE_MODULES, *(path for path, _ in CALLS_ALLOWED),
             *(name.split(":")[0] for name in LARGE_BODIES)}
    assert named - there == set()


@pytest.mark.parametrize(("text", "names"), [
    ("import os.path, json", {"os.path", "json"}),
    ("from agent_node import task", {"agent_node.task"}),
    ("def f():\n    from sqlite3 import connect", {"sqlite3.connect"}),
    ("from .store import Store", {"x.store.Store"}),
    ("from . import store, task", {"x.store", "x.task"}),
])
def test_the_fence_sees_imports_wherever_they_stand(text: str, names: set[str]) -> None:
    assert set(imported(Source("x/y.py", text, ast.parse(text)))) == names


@pytest.mark.parametrize(("text", "broad"), [
    ("except ValueError: f()", False),
    ("except (OSError, Exception): f()", True),
    ("except: f()", True),
    ("except builtins.BaseException as error: f()", True),
])
def test_the_fence_knows_a_broad_except_in_every_dress(text: str, broad: bool) -> None:
    tree = ast.parse(f"try:\n    f()\n{text}")
    handlers = walk(Source("x/y.py", text, tree), ast.ExceptHandler)
    assert [is_broad(handler) for handler in handlers] == [broad]


def none_of(found: list[str]) -> None:
    """Passes on nothing found, and names everything otherwise, one line each."""
    assert not found, "\n".join(["", *found])


def imported(source: Source) -> Iterator[str]:
    """Everything a file imports, at its top or inside a function, by its full dotted name."""
    package = source.path.split("/")[:-1]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def top(name: str) -> str:
    """The package that a dotted name starts with."""
    return name.partition(".")[0]


def may_import(path: str, name: str) -> bool:
    """Whether a module with one home may be imported by this file."""
    homes = IMPORTED_ONLY_BY.get(name)
    return homes is None or path.startswith(tuple(homes))


def walk(source: Source, kind: type[Node]) -> Iterator[Node]:
    """Every node of one kind in a file."""
    return (node for node in ast.walk(source.tree) if isinstance(node, kind))


def functions(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of a file."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def positional(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """What it may be given without a name, but for its own object."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return [name for name in names if name not in ("self", "cls")]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the first statement after the docstring to the end."""
    first = function.body[1 if ast.get_docstring(function) and len(function.body) > 1 else 0]
    return (function.end_lineno or first.lineno) - first.lineno + 1


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Catches everything, by its type or by naming none."""
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(kind).split(".")[-1] in {"Exception", "BaseException"}
               for kind in caught)


def raises_again(handler: ast.ExceptHandler) -> bool:
    """A handler that cleans up and raises the same again hides nothing."""
    return isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None


def is_call_of(call: ast.Call, name: str) -> bool:
    """`datetime.datetime.now(UTC)` is one of `datetime.now`; `retry.exec()` is none of `exec`."""
    said = ast.unparse(call.func)
    return said == name or ("." in name and said.endswith(f".{name}"))
