"""Runs the bench: `python -m bench [--only ROW] [--quick] [--no-fail] [--json FILE]`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from agent_node.packing import build_zipapp

from .machine import describe, load, spread_folders, wait_for_quiet
from .measuring import Place, Row
from .table import line_of, render, render_machine, write_json

ROOT = Path(__file__).resolve().parent.parent
# In this order: what needs a quiet machine first, and the long rest last.
MODULES = {
    "claim": "claiming",
    "add": "adding",
    "move": "moving",
    "version": "starting",
    "true": "running",
    "sleep": "running",
    "latency": "latency",
    "idle": "resting",
}


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write; 1 when a row misses its goal."""
    options = _parser().parse_args(words)
    base = options.dir or ROOT / "build"
    base.mkdir(parents=True, exist_ok=True)
    spread_folders(base)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=base))
    try:
        told = describe(folder)
        print(render_machine(told), file=sys.stderr, flush=True)
        rows = list(_measured(options, folder))
    finally:
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
    return parser


def _measured(options: argparse.Namespace, folder: Path) -> Iterator[Row]:
    zipapp = folder / "agent-node.pyz"
    build_zipapp(zipapp)
    # The interpreter itself: a venv's own python would look for its pyvenv.cfg first.
    python = str(Path(sys.executable).resolve())
    for name in options.only or MODULES:
        place = Place(folder / name, zipapp, python, quick=options.quick, tiny=options.tiny)
        place.folder.mkdir()
        wait_for_quiet(0.0 if options.tiny else 60.0)
        for row in _rows_of(name)(place):
            print(line_of(row), file=sys.stderr, flush=True)
            yield row


def _rows_of(name: str) -> Callable[[Place], Iterator[Row]]:
    module = import_module(f".{MODULES[name]}", __package__)
    rows: Callable[[Place], Iterator[Row]] = getattr(module, f"{name}_rows", None) or module.rows
    return rows


if __name__ == "__main__":
    sys.exit(main())
