"""The command `arc nodes upgrade`: sign here, then one node after the other, canary first."""

# ruff: noqa: FBT002, PLR0913, PLR0917 - its options are the arguments of a typer command

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_node.strict import JsonObject
from agent_node.text import safe_text
from arc.errors import ArcError, NeedsWord, WrongUse
from arc.operations import Told

from .answering import say
from .around import Around, here
from .options import DryRun, Yes

if TYPE_CHECKING:
    from arc.upgrade_package import Program, Signed

PLAN_S = 60.0
NODE_S = 900.0
STEADY_S, CANARY_STEADY_S = 1.0, 5.0
GOOD = ("upgraded", "already")
PARTIAL = 3


@dataclass(frozen=True)
class Wish:
    """What was typed, as far as it is about the signature."""

    key: Path | None
    statement: Path | None
    signature: Path | None
    allow_older: bool
    one_way: bool


def register(nodes: typer.Typer) -> None:
    """Add it to `arc nodes`."""
    nodes.command("upgrade")(upgrade_nodes)


def upgrade_nodes(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME…")] = None,
    everybody: Annotated[bool, typer.Option("--all", help="Every node of the fleet.")] = False,
    canary: Annotated[str, typer.Option("--canary", help="The one that goes first.")] = "",
    file: Annotated[str, typer.Option("--file", help="This agent-node.pyz, not ours.")] = "",
    key: Annotated[str, typer.Option("--key", help="Your key, or FILE.pub of your agent's.")] = "",
    statement: Annotated[
        str, typer.Option("--statement", help="What is signed; written where it is not there.")
    ] = "",
    signature: Annotated[str, typer.Option("--signature", help="Made elsewhere.")] = "",
    allow_older: Annotated[
        bool, typer.Option("--allow-older", help="Though it is older than what runs.")
    ] = False,
    one_way: Annotated[
        bool, typer.Option("--one-way", help="Though the old one cannot read its database.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> int:
    """Give nodes another program, signed by you; a node that does not answer goes back."""
    from arc.upgrade_package import own_program, program_in

    around = here()
    wish = Wish(_file(key), _file(statement), _file(signature), allow_older, one_way)
    path = _file(file)
    program = own_program() if path is None else program_in(path)
    if wish.statement is not None and wish.signature is None:
        return _write_statement(around, program, wish, wish.statement, dry_run=dry_run)
    order = _order(around, names or [], canary, everybody=everybody)
    planned = [_one(around, name, program, None, 0.0) for name in order]
    if dry_run:
        return _tell(around, program, planned, dry_run=True)
    todo = [str(one["node"]) for one in planned if one["outcome"] == "would"]
    _check_canary(canary, planned)
    if not todo:
        return _tell(around, program, planned)
    _ask_person(around, program, todo, yes=yes)
    signed = _signed(around, program, wish)
    return _tell(around, program, _carried_out(around, planned, program, signed))


def _order(
    around: Around, names: Sequence[str], canary: str, *, everybody: bool
) -> list[str]:  # fmt: skip
    """The nodes in the order of their turn, each once."""
    if everybody and names:
        raise WrongUse("upgrade: name nodes, or say --all")
    if everybody:
        from arc.config import read_fleet
        from arc.door import fleet_of

        settings = read_fleet(fleet_of(around.fleet, around.environ))
        names = [node.name for node in settings.nodes]
    wanted = list(dict.fromkeys([canary, *names] if canary else names))
    if not wanted:
        raise WrongUse("upgrade: which nodes? name them, or say --all")
    return wanted


def _carried_out(
    around: Around, planned: Sequence[JsonObject], program: Program, signed: Signed
) -> list[JsonObject]:
    """One after the other; the first that fails is the last that is touched."""
    done: list[JsonObject] = []
    failed = False
    steady_s = CANARY_STEADY_S
    for one in planned:
        if one["outcome"] != "would":
            done.append(one)
            continue
        if failed:
            done.append({**one, "outcome": "not_begun"})
            continue
        name = str(one["node"])
        around.talk(f"{name}: {_said(one.get('was'))} -> {program.version} …\n")
        ended = _one(around, name, program, signed, steady_s)
        done.append({**ended, "was": ended.get("was") or one.get("was")})
        failed, steady_s = ended["outcome"] not in GOOD, STEADY_S
    return done


def _one(
    around: Around, name: str, program: Program, signed: Signed | None, steady_s: float
) -> JsonObject:
    """What came of one node; without a signature, what would be done."""
    args: JsonObject = {"node": name, "version": program.version, "sha256": program.sha256}
    if signed is not None:
        args |= {
            "file": base64.b64encode(program.content).decode(), "steady_s": steady_s,
            "statement": signed.statement.decode(), "signature": signed.signature.decode(),
        }  # fmt: skip
    limit_s = PLAN_S if signed is None else NODE_S
    try:
        return around.ask(around, "nodes.upgrade", args, timeout_s=limit_s).data
    except ArcError as error:
        if error.exit_code != PARTIAL and signed is None:
            raise  # no such node, no hub: the whole command makes no sense
        outcome = "unseen" if signed is None else "failed"
        return {"node": name, "outcome": outcome, "because": str(error), "code": error.code}


def _check_canary(canary: str, planned: Sequence[JsonObject]) -> None:
    first = planned[0]
    if canary and first["outcome"] in ("unseen", "by_hand"):
        raise NeedsWord(
            f"the canary {canary} cannot go first: {_said(first.get('because'))}; nothing was"
            " changed", hint="name another one with --canary",
        )  # fmt: skip


def _ask_person(around: Around, program: Program, todo: Sequence[str], *, yes: bool) -> None:
    what = f"{program.version} ({program.sha256[:12]}) on {', '.join(todo)}, in this order"
    if yes:
        return
    if not around.asks_people:
        raise NeedsWord(f"it would put {what}", hint="--yes does it without asking")
    around.talk(f"put {what}? [y/N] ")
    if around.stdin.readline(100).strip().lower() not in (b"y", b"yes"):
        raise NeedsWord("not confirmed; nothing was changed")


def _signed(around: Around, program: Program, wish: Wish) -> Signed:
    from arc.upgrade_package import operator_key, sign, signed_elsewhere, statement_for

    if wish.signature is not None:
        if wish.statement is None:
            raise WrongUse("upgrade: --signature needs the --statement that it signs")
        return signed_elsewhere(program, wish.statement, wish.signature)
    key = operator_key(wish.key, around.environ)
    raw = statement_for(
        program, around.stamp(), allow_older=wish.allow_older, one_way=wish.one_way
    )  # fmt: skip
    around.talk(f"signing with {key}\n")
    return sign(raw, key)


def _write_statement(
    around: Around, program: Program, wish: Wish, path: Path, *, dry_run: bool
) -> int:
    """For signing on another machine: what is to be signed goes into a file, once."""
    from agent_node.signing import NAMESPACE
    from arc.upgrade_package import statement_for

    if path.exists():
        raise WrongUse(
            f"{path} is there already; with its signature: --signature {path}.sig",
            hint=f"sign it with: ssh-keygen -Y sign -n {NAMESPACE} -f KEY {path}",
        )
    raw = statement_for(
        program, around.stamp(), allow_older=wish.allow_older, one_way=wish.one_way
    )  # fmt: skip
    if not dry_run:
        path.write_bytes(raw)
    data: JsonObject = {
        "version": program.version, "program": program.sha256, "statement": str(path),
        "sign": f"ssh-keygen -Y sign -n {NAMESPACE} -f KEY {path}", "dry_run": dry_run,
    }  # fmt: skip
    from arc.text.upgrading import render_statement_file

    return say("nodes.upgrade", Told(data), render_statement_file, around)


def _tell(
    around: Around, program: Program, nodes: Sequence[JsonObject], *, dry_run: bool = False
) -> int:
    from arc.text.upgrading import render_upgrade

    data: JsonObject = {"version": program.version, "program": program.sha256,
                        "nodes": [*nodes], "dry_run": dry_run}  # fmt: skip
    told = Told(data, _exit(nodes), _left(nodes))
    return say("nodes.upgrade", told, render_upgrade, around, names_unread=True)


def _left(nodes: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
    """Of an answer in part, each node that has it not, and why."""
    from arc.text.upgrading import means

    if _exit(nodes) != PARTIAL:
        return ()
    return tuple(
        {"node": one["node"], "error": {
            "code": one.get("code") or ("ARC-REFUSED" if one["outcome"] == "refused" else
                                        "ARC-FAILED"),
            "message": one.get("because") or means(str(one["outcome"]))}}
        for one in nodes if one["outcome"] not in (*GOOD, "would")
    )  # fmt: skip


def _exit(nodes: Sequence[JsonObject]) -> int:
    """0: every node has it (or would); 1: none could take it; 3: some have it and some do not."""
    good = [one["outcome"] in (*GOOD, "would") for one in nodes]
    if all(good):
        return 0
    unseen = any(one["outcome"] in ("unseen", "by_hand") for one in nodes)
    return PARTIAL if any(good) or unseen else 1


def _file(text: str) -> Path | None:
    return Path(text).expanduser().absolute() if text else None


def _said(value: object) -> str:
    return safe_text(str(value or "?"), 500)
