"""`arc init`: a folder becomes a fleet in one go, once, and only where it is safe."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

import pytest

from arc.config import fleet_schema, read_fleet
from arc.errors import CannotInit, StateBroken
from arc.settings import FleetSettings
from arc.setup import FLEET_YAML, fingerprint_of, init

MADE = (".arc", ".arc/.gitignore", ".arc/fleet.schema.json", ".arc/keys/hub_ed25519", "fleet.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "fleet"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


def test_a_new_folder_holds_all_that_a_fleet_needs(folder: Path) -> None:
    created = init(folder)
    assert created.made == MADE
    assert read_fleet(created.file).nodes == ()
    assert read_fleet(created.file).state == created.state
    assert json.loads((folder / ".arc/fleet.schema.json").read_text()) == fleet_schema()
    assert re.fullmatch(r"SHA256:[A-Za-z0-9+/]{43}", created.fingerprint)


def test_what_is_secret_is_for_its_owner_alone(folder: Path) -> None:
    os.umask(os.umask(0o022))
    created = init(folder)
    for path in (created.state, *created.state.rglob("*")):
        public = path.suffix == ".pub"
        assert public or stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert (created.state / ".gitignore").read_text() == "*\n"


def test_a_second_run_changes_nothing_and_says_so(folder: Path) -> None:
    first = init(folder)
    before = contents(folder)
    again = init(folder)
    assert again.made == ()
    assert (again.public_key, contents(folder)) == (first.public_key, before)


def test_what_is_there_is_kept_and_what_is_missing_is_made(folder: Path) -> None:
    folder.mkdir()
    (folder / "fleet.yaml").write_text("nodes: []\nhub: {state: elsewhere}\n")
    assert init(folder).made == ("elsewhere", "elsewhere/.gitignore",
                                 "elsewhere/fleet.schema.json", "elsewhere/keys/hub_ed25519")
    assert (folder / "fleet.yaml").read_text() == "nodes: []\nhub: {state: elsewhere}\n"
    assert not (folder / ".arc").exists()


def test_a_dry_run_names_everything_and_makes_nothing(folder: Path) -> None:
    assert init(folder, dry_run=True).made == MADE
    assert not folder.exists()


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_folder_that_everybody_may_write_is_refused(folder: Path, mode: int) -> None:
    """Seen to fail with `check_private` taken out of `init`."""
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(CannotInit, match="everybody may write here"):
        init(folder)
    assert list(folder.iterdir()) == []


def test_a_folder_inside_one_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    try:
        with pytest.raises(CannotInit, match="everybody may write here"):
            init(tmp_path / "fleet")
    finally:
        tmp_path.chmod(0o700)


def test_a_state_folder_that_others_can_reach_is_refused(folder: Path) -> None:
    (folder / ".arc").mkdir(parents=True)
    (folder / ".arc").chmod(0o755)
    with pytest.raises(StateBroken, match="others can reach it"):
        init(folder)


def test_a_file_in_the_way_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "fleet").write_text("")
    with pytest.raises(CannotInit, match="is not a folder"):
        init(tmp_path / "fleet")


def test_the_comments_of_a_new_file_say_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET_YAML)
    empty = read_fleet(path)
    assert empty == FleetSettings(
        fleet="arc0", hub="arc", file=path, state=tmp_path / ".arc", sensors=empty.sensors
    )
    said = [line[2:] for line in FLEET_YAML.splitlines() if re.match(r"# ([a-z]+:| {9,})", line)]
    path.write_text("nodes: []\n" + "\n".join(said[: said.index("domains:")]))
    assert read_fleet(path) == empty


def test_the_lines_of_nodes_in_a_new_file_can_be_taken_as_they_are(tmp_path: Path) -> None:
    """What `also`, `never` and a local node's `home` are, the file that `arc init` writes tells."""
    lines = re.findall(r"^#   (- \{name: .*?\})", FLEET_YAML, re.MULTILINE)
    domains = [line[2:] for line in FLEET_YAML.splitlines()
               if re.match(r"# (domains:|  (protocol|research): )", line)]  # fmt: skip
    path = tmp_path / "fleet.yaml"
    path.write_text("\n".join(["nodes:", *(f"  {line}" for line in lines), *domains]))
    spark, arc, loom = read_fleet(path).nodes
    assert (spark.owns, spark.also) == (("protocol",), ("research",))
    assert (arc.local, loom.home, loom.never) == (True, "/srv/loom", ("protocol",))
    for key in ("owns", "also", "never"):
        assert f"`{key}`" in FLEET_YAML.split("nodes: []")[0]


def test_the_fingerprint_is_what_ssh_keygen_shows() -> None:
    line = ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f x")
    assert fingerprint_of(line) == "SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA"
