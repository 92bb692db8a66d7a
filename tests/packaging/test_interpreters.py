"""The interpreters of a machine are found by what answers, wherever pyenv keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.interpreters import find_interpreter, find_interpreters

ANSWERS = "#!/bin/sh\necho 3.12\n"
REFUSES = "#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n"


def a_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o700)
    return path


def test_one_of_pyenv_is_found_by_its_shims_where_home_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when pyenv is looked for in HOME alone: the shim that is on PATH refuses."""
    shim = a_program(tmp_path / "pyenv" / "shims" / "python3.12", REFUSES)
    real = a_program(tmp_path / "pyenv" / "versions" / "3.12.1" / "bin" / "python3.12", ANSWERS)
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("PATH", f"{shim.parent}:/usr/bin:/bin")
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    assert find_interpreter("3.12") == real


def test_a_shim_that_refuses_is_no_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = a_program(tmp_path / "bin" / "python3.12", REFUSES)
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("PATH", str(shim.parent))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    assert find_interpreter("3.12") is None


def test_every_one_that_answers_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the first of a version stands for all of them, or a link to one is another."""
    refuses = a_program(tmp_path / "pyenv" / "shims" / "python3.12", REFUSES)
    first = a_program(tmp_path / "bin" / "python3.12", ANSWERS)
    again = tmp_path / "sbin" / "python3.12"
    again.parent.mkdir()
    again.symlink_to(first)
    inside = [a_program(tmp_path / "pyenv" / "versions" / name / "bin" / "python3.12", ANSWERS)
              for name in ("3.12.1", "3.12.4")]  # fmt: skip
    folders = [refuses.parent, first.parent, again.parent]
    monkeypatch.setenv("PATH", ":".join([*map(str, folders), "/usr/bin", "/bin"]))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    found = [*find_interpreters("3.12")]
    assert [one for one in found if tmp_path in one.parents] == [first, *inside]
