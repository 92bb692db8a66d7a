"""Builds the zipapp from the installed package, the same bytes every time."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import marshal
import os
import zipfile
from pathlib import Path

from agent_node.errors import NodeError

MAIN = b"""\
import sys

if sys.version_info < (3, 11):
    sys.exit("agent-node: needs Python 3.11 or newer, this is %d.%d" % sys.version_info[:2])

import fcntl
import os

# What the link leads to may change while this process runs: it goes on reading its own file, which
# stays for as long as this lock is held.
sys.path[0] = os.path.realpath(sys.path[0])
program = os.open(sys.path[0], os.O_RDONLY | os.O_CLOEXEC)
fcntl.flock(program, fcntl.LOCK_SH)

from agent_node.cli import main

sys.exit(main())
"""
# Before the `__main__` of a zip Python imports `runpy`, and for it some twenty modules of its
# library, which cost as much again as Python itself. The first that is not built in is `importlib`,
# and it is looked for in the zip. Where it is not, some day, `cli.main` hands over a little later.
FIRST = b"""\
import sys

if sys.argv[1:] == ["serve", "--stdio"]:
    import handover  # alone, and before the link is followed: this file is not read another time

    code = handover.at_once()
    if code is not None:
        handover.leave(code)

# From here on the name means what it always means, for us as for whoever imports our modules.
del sys.modules[__name__]
path, ours = sys.path[:], __spec__.loader
sys.path[:] = [place for place in path if sys.path_importer_cache.get(place) is not ours]
try:
    import importlib
finally:
    sys.path[:] = path
"""
FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # the earliest date a zip can hold; any fixed one would do
UNCHECKED_HASH = (1).to_bytes(4, "little")  # PEP 552: take the bytecode as it is
# Version 2 has no reference flags, which would depend on what else the building process holds.
MARSHAL_VERSION = 2


class PackingRefused(NodeError):
    """There are no source files to pack from; nothing was written."""

    code = "packing_refused"
    hint = "build it where agent_node is installed as files, not from a zipapp"


def build_zipapp(target: Path, interpreter: str = "/usr/bin/env python3") -> str:
    """Writes `target` in one step, executable, and answers its sha256 in hex.

    The same sources and the same minor version of Python give the same bytes anywhere. Every
    module goes in as source, and as bytecode of the Python that builds, stored, not deflated:
    a node with that Python starts without compiling, any other from 3.11 on compiles.
    """
    content = f"#!{interpreter}\n".encode() + zipped(archive_members(Path(__file__).parent))
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.chmod(0o755)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    return hashlib.sha256(content).hexdigest()


def archive_members(package: Path) -> dict[str, bytes]:
    """What the zipapp holds, by name: the start, every module and its bytecode, nothing else."""
    sources = sorted(package.rglob("*.py"))
    if not sources:
        raise PackingRefused(f"agent-node: could not build a zipapp: no source files in {package}")
    members = {"__main__.py": MAIN, "importlib/__init__.py": FIRST,
               "handover.py": (package / "handover.py").read_bytes()}  # fmt: skip
    for source in sources:
        members[f"{package.name}/{source.relative_to(package).as_posix()}"] = source.read_bytes()
    return members | {f"{name}c": bytecode(text, name) for name, text in members.items()}


def bytecode(source: bytes, name: str) -> bytes:
    """A .pyc that Python trusts without looking at dates, which a copied file does not keep."""
    code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    source_hash = importlib.util.source_hash(source)
    body = marshal.dumps(code, MARSHAL_VERSION)
    return importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + source_hash + body


def zipped(members: dict[str, bytes]) -> bytes:
    """The members as a zip in order of their names, with fixed dates, modes and system."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            entry = zipfile.ZipInfo(name, FIRST_DAY)
            entry.create_system = 3  # Unix, also where it is built elsewhere
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, members[name])
    return buffer.getvalue()
