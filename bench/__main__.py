"""Runs the bench: `python -m bench [--only ROW] [--quick] [--no-fail] [--json FILE]`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from agent_node.packing import build_zipapp

from .machine import describe, load, spread_folders, wait_for_quiet
from .measuring import Place, Row
from .table import SCHEMA, line_of, render, render_machine, row_from, write_json

ROOT = Path(__file__).resolve().parent.parent
# In this order: what needs a quiet machine first, and the long rest last.
MODULES = {
    "claim": "claiming",
    "effective": "effective",
    "add": "adding",
    "graph": "graphs",
    "move": "moving",
    "version": "starting",
    "true": "running",
    "sleep": "running",
    "latency": "latency",
    "plan": "hub_planning",
    "cli": "hub_starting",
    "demo": "hub_starting",
    "status": "hub_reaching",
    "empty": "hub_reaching",
    "contact": "hub_contact",
    "rebalance": "hub_cycle",
    "steal": "hub_swift",
    "spread": "hub_swift",
    "inbox": "hub_swift",
    "page": "page",
    "paint": "page_paint",
    "beside": "page_beside",
    "tasks": "page_beside",
    "policy": "simulating",
    "simulate": "simulating",
    "idle": "resting",
    "rest": "hub_resting",
}


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write; 1 when a row misses its goal."""
    options = _parser().parse_args(words)
    # What starts here starts as it does where it is installed: its modules are compiled once.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    base = options.dir or ROOT / "build"
    base.mkdir(parents=True, exist_ok=True)
    spread_folders(base)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=base))
    try:
        told = describe(folder)
        names = options.only or list(MODULES)
        rows = list(_one(names[0], options, folder) if len(names) == 1
                    else _each(names, options, folder))  # fmt: skip
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    told["load_after"] = load()
    write_json(options.json, rows, told)
    print(f"{render(rows)}\n{render_machine(told)}\n  written to {options.json}")
    return 0 if options.no_fail or all(row.met for row in rows) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("--only", action="append", choices=list(MODULES), help="one kind of row; repeatable")
    add("--quick", action="store_true", help="a third of the rounds, half the idle time")
    add("--tiny", action="store_true", help="only whether it works: the figures mean nothing")
    add("--no-fail", action="store_true", help="exit 0 also when a row misses its goal")
    add("--json", type=Path, default=Path("bench.json"), help="where to write (bench.json)")
    add("--dir", type=Path, help="where to work: a folder on a real disk (build/)")
    add("--keep", action="store_true", help="leave behind what was measured in")
    return parser


def _each(names: Sequence[str], options: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Every kind in a process of its own: a million tasks of one must not weigh on the next.

    Nothing is deleted before the end, because deleting is what the next one would pay for.
    """
    for name in names:
        part = folder / f"{name}.json"
        words = ["--only", name, "--json", str(part), "--dir", str(folder), "--no-fail", "--keep"]
        words += [f"--{flag}" for flag in ("quick", "tiny") if getattr(options, flag)]
        subprocess.run(
            [sys.executable, "-m", __package__, *words],
            cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        document = json.loads(part.read_bytes())
        if document["schema"] != SCHEMA:
            raise RuntimeError(f"{part}: {document['schema']}")
        yield from map(row_from, document["rows"])


def _one(name: str, options: argparse.Namespace, folder: Path) -> Iterator[Row]:
    zipapp = folder / "agent-node.pyz"
    build_zipapp(zipapp)
    # The interpreter itself: a venv's own python would look for its pyvenv.cfg first.
    python = str(Path(sys.executable).resolve())
    place = Place(folder / name, zipapp, python, quick=options.quick, tiny=options.tiny)
    place.folder.mkdir()
    if not options.tiny:
        os.sync()  # what was written before is not written while we measure
        wait_for_quiet()
    for row in _rows_of(name)(place):
        print(line_of(row), file=sys.stderr, flush=True)
        yield row


def _rows_of(name: str) -> Callable[[Place], Iterator[Row]]:
    module = import_module(f".{MODULES[name]}", __package__)
    rows: Callable[[Place], Iterator[Row]] = getattr(module, f"{name}_rows")
    return rows


if __name__ == "__main__":
    sys.exit(main())
