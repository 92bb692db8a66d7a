"""Holds the one shell line that runs on a joining machine, and packs the program that follows it.

Both are constants of this version: whatever differs between two machines goes in as JSON later.
"""

from __future__ import annotations

import json
from pathlib import Path

from .there.talking import MARK

NO_PYTHON = "no-python"
# Sources in the order in which they lean on each other.
MODULES = ("words", "files", "keyline", "looking", "placing", "inquiring",
           "launcher", "starting", "talking")
_LOAD = """\
import json, sys, types
package = types.ModuleType("there")
package.__path__ = []
sys.modules["there"] = package
for name, text in json.loads(SOURCES):
    module = types.ModuleType("there." + name)
    module.__package__ = "there"
    sys.modules["there." + name] = module
    setattr(package, name, module)
    exec(compile(text, "<arc joining: " + name + ">", "exec"), module.__dict__)
sys.modules["there.talking"].main()
"""
# No quote of either kind, no dollar and no backslash may stand in these two: they stand inside.
_IS_NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 11))"
_READ = ("import sys; i = sys.stdin.buffer; "
         "exec(compile(i.read(int(i.readline(9))), sys.argv[1], sys.argv[2]))")  # fmt: skip

# One line for every login shell: inside single quotes neither sh, bash, zsh, fish nor csh looks.
SHELL_LINE = (
    "exec /bin/sh -c '"
    "for v in python3.13 python3.12 python3.11 python3; do "
    'for p in "$v" "/usr/local/bin/$v" "$HOME"/.pyenv/versions/*/bin/"$v" /opt/*/bin/"$v"; do '
    f'"$p" -I -S -c "{_IS_NEW_ENOUGH}" </dev/null >/dev/null 2>&1 && '
    f'exec "$p" -I -S -c "{_READ}" arc-joining exec; '
    "done; done; "
    f'echo; echo "{MARK.decode()}{NO_PYTHON} $(python3 --version 2>&1)"; exit 3\''
)


def program() -> bytes:
    """The program as it follows the shell line: its length in a line, then itself."""
    folder = Path(__file__).with_name("there")
    sources = [[name, (folder / f"{name}.py").read_text(encoding="utf-8")] for name in MODULES]
    text = f"SOURCES = {json.dumps(sources)!r}\n{_LOAD}".encode()
    return b"%d\n%b" % (len(text), text)
