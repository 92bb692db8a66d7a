"""The commands by which a machine joins the fleet, is trusted anew, or leaves: `arc nodes add`."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_node.errors import NodeError
from agent_node.strict import JsonObject, JsonValue
from agent_node.text import safe_text
from arc.errors import ArcError, NotFound
from arc.operations import Told

from .answering import say
from .around import Around, here
from .options import DryRun, Node, words

if TYPE_CHECKING:
    from arc.joining.steps import Step, Steps
    from arc.joining.story import Here

KNOWS_S = 20.0
HELD_S = 60.0  # what moves just now comes to its end first
INDENT = 19  # of a step's text
Identity = Annotated[str, typer.Option("--identity", help="Your key file, not agent or usual.")]
Fingerprint = Annotated[str, typer.Option("--fingerprint", help="SHA256:… of its host key.")]


def register(nodes: typer.Typer) -> None:
    """Add them to `arc nodes`."""
    nodes.command("add")(add_node)
    nodes.command("trust")(trust_node)
    nodes.command("remove")(remove_node)


def add_node(  # noqa: PLR0913, PLR0917 - one option for each thing about a node
    target: Annotated[str, typer.Argument(metavar="USER@HOST[:PORT]")],
    name: Annotated[str, typer.Option("--name", help="How the fleet calls it.")],
    owns: Annotated[list[str] | None, typer.Option("--owns", help="Domains it is for.")] = None,
    also: Annotated[list[str] | None, typer.Option("--also", help="May take when idle.")] = None,
    never: Annotated[list[str] | None, typer.Option("--never", help="Never touches.")] = None,
    fingerprint: Fingerprint = "",
    source: Annotated[
        str, typer.Option("--from", help="Only from this address is the hub's key taken.")
    ] = "",
    run_as: Annotated[str, typer.Option("--run-as", help="The account that tasks run as.")] = "",
    run: Annotated[str, typer.Option("--run", help="The program that runs tasks, quoted.")] = "",
    slots: Annotated[
        int | None, typer.Option("--slots", help="Tasks at the same time; else 1.")
    ] = None,
    skill: Annotated[list[str] | None, typer.Option("--skill", help="What it can do.")] = None,
    home: Annotated[str, typer.Option("--home", help="Its folder; else ~/.agent-node.")] = "",
    identity: Identity = "",
    operator_key: Annotated[
        str, typer.Option("--operator-key", help="FILE.pub whose owner may sign upgrades.")
    ] = "",
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", help="Though another hub is let in there.")] = False,
) -> int:
    """Let a machine join, by your own login; again: mend what is not as it should be."""
    from arc.joining.story import join
    from arc.joining.wanted import Wanted, target_of

    user, host, port = target_of(target)
    wanted = Wanted(
        name=name, host=host, user=user, port=port, owns=_texts(owns), also=_texts(also),
        never=_texts(never), fingerprint=fingerprint, source=source, run_as=run_as, run=run,
        slots=slots, skills=_texts(skill), home=home, identity=_file(identity),
        operator_key=_file(operator_key), dry_run=dry_run, yes=yes,
    )  # fmt: skip
    around, steps = here(), _steps(dry_run=dry_run)
    this_end = _this_end(around)
    with _told_when_cut_off(around, steps):
        asyncio.run(join(wanted, this_end, steps))
    _let_the_hub_follow(around, steps, name, wanted=True)
    _note(around, steps, "node_joined", name, where=f"{user}@{host}:{port}",
          host_key=_pinned(this_end, name))  # fmt: skip
    return _told("nodes.add", around, steps, {"node": name, "where": f"{user}@{host}:{port}"})


def trust_node(name: Node, fingerprint: Fingerprint = "", dry_run: DryRun = False) -> int:
    """Accept a node's new host key, by the fingerprint that the machine itself shows."""
    from arc.joining.trusting import trust

    around, steps = here(), _steps(dry_run=dry_run)
    this_end = _this_end(around)
    with _told_when_cut_off(around, steps):
        asyncio.run(trust(name, fingerprint, this_end, steps))
    _note(around, steps, "node_trusted", name, host_key=_pinned(this_end, name))
    return _told("nodes.trust", around, steps, {"node": name})


def remove_node(
    name: Node,
    forget: Annotated[
        bool, typer.Option("--forget", help="Though it cannot be reached; takes --yes, a --reason.")
    ] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why, for --yes.")] = "",
    identity: Identity = "",
    yes: Annotated[
        bool, typer.Option("--yes", help="Though it has work; takes a --reason.")
    ] = False,
    dry_run: DryRun = False,
) -> int:
    """Take a node out of the fleet and the hub's key off its machine; what runs there runs on."""
    from arc.joining.removing import Leaving, Ways, leave

    around, steps = here(), _steps(dry_run=dry_run)
    leaving = Leaving(name, forget=forget, reason=reason, yes=yes, identity=_file(identity))
    with _told_when_cut_off(around, steps):
        leave(leaving, _this_end(around), steps, Ways(
            shown=lambda: _hub_says(around, "show", name),
            would_fence=lambda: _hub_says(around, "fence", name, dry_run=True),
            held=lambda: around.ask(around, "nodes.leave", {"node": name}, timeout_s=HELD_S),
            given_again=lambda: _hub_says(around, "resume", name),
        ))  # fmt: skip
    if _let_the_hub_follow(around, steps, name, wanted=False):
        with suppress(NotFound):  # nothing more to say of a node that is gone
            _hub_says(around, "resume", name)
    _note(around, steps, "node_removed", name, reason=reason)
    return _told("nodes.remove", around, steps, {"node": name})


def _hub_says(around: Around, verb: str, name: str, **more: JsonValue) -> Told:
    """One question about a node, or one word about it, to the hub."""
    return around.ask(around, f"nodes.{verb}", {"node": name, **more}, timeout_s=KNOWS_S)


@contextmanager
def _told_when_cut_off(around: Around, steps: Steps) -> Iterator[None]:
    """Ctrl-C, and a fault of ours, leave behind what was done; it is said. Errors of steps say so
    themselves.
    """
    try:
        yield
    finally:
        error = sys.exception()
        if error is not None and not isinstance(error, ArcError | NodeError):
            step = f"cut off at: {steps.under_way.name}; " if steps.under_way else ""
            around.talk(f"{step}{safe_text(steps.so_far())}\n")


def _note(around: Around, steps: Steps, event: str, name: str, **facts: str) -> None:
    """A line in the hub's log, where anything was changed; without one that is a warning."""
    if steps.dry_run or not any(one.changed for one in steps.done):
        return
    said: JsonObject = {"event": event, "node": name,
                        **{fact: text for fact, text in facts.items() if text}}  # fmt: skip
    try:
        around.ask(around, "nodes.noted", said, timeout_s=KNOWS_S)
    except ArcError as error:
        steps.warnings.append(f"arc log has no line of it: {error}")


def _texts(given: list[str] | None) -> tuple[str, ...]:
    return tuple(map(str, words(given)))


def _file(text: str) -> Path | None:
    return Path(text).expanduser().absolute() if text else None


def _steps(*, dry_run: bool) -> Steps:
    """People see each step as it ends; machines get all of them in the one line."""
    from arc.joining.steps import Steps

    around = here()

    def tell(step: Step) -> None:
        if not around.as_json:
            around.say(step_line(step, around.width))

    if dry_run:
        around.talk("dry run: nothing is changed, there or here\n")
    return Steps(tell, dry_run=dry_run)


def step_line(step: Step, width: int | None) -> str:
    """A step as people see it, folded between words; what has no gap stays whole.

    `width` None: no terminal reads along, so a step is one line.
    """
    import textwrap

    text = f"{safe_text(step.text)}  {step.took_s:.2f} s"
    if width is None:
        return f"  {step.name:<16} {text}\n"
    lines = textwrap.wrap(text, max(width - INDENT - 1, 20), break_long_words=False,
                          break_on_hyphens=False) or [""]  # fmt: skip
    return f"  {step.name:<16} " + f"\n{' ' * INDENT}".join(lines) + "\n"


def _this_end(around: Around) -> Here:
    from arc.config import read_fleet
    from arc.door import fleet_of
    from arc.joining.story import Here

    settings = read_fleet(fleet_of(around.fleet, around.environ))
    return Here(settings, around.environ, lambda question: _asked(around, question))


def _pinned(this_end: Here, name: str) -> str:
    key = this_end.pins.pinned(name)
    return key.fingerprint if key is not None else ""


def _asked(around: Around, question: str) -> str | None:
    """What a person at the keyboard answers; None: nobody sits there."""
    if not around.asks_people:
        return None
    around.talk(safe_text(question, keep="\n"))
    return around.stdin.readline(1000).decode("utf-8", "replace")


def _let_the_hub_follow(around: Around, steps: Steps, name: str, *, wanted: bool) -> bool:
    from arc.door import ask, fleet_of
    from arc.joining.fleet_file import follow

    def knows() -> bool | None:
        try:
            fleet = fleet_of(around.fleet, around.environ)
            told = ask(fleet, "nodes.list", {}, by=around.by, timeout_s=KNOWS_S)
        except ArcError:
            return not wanted  # it could not answer: whether it follows is not known yet
        listed = told.data.get("nodes") if told else None
        known = listed if isinstance(listed, list) else []
        names = [one.get("node") for one in known if isinstance(one, dict)]
        return None if told is None else name in names

    return follow(steps, name, knows, wanted=wanted)


def _told(schema: str, around: Around, steps: Steps, facts: JsonObject) -> int:
    from arc.text.joining import render_joined

    hints: list[JsonValue] = [*steps.hints]
    changed: list[JsonValue] = [one.changed for one in steps.done if one.changed]
    data: JsonObject = {**facts, "steps": steps.as_json(), "changed": changed, "hints": hints,
                        "dry_run": steps.dry_run}  # fmt: skip
    return say(schema, Told(data, warnings=tuple(steps.warnings)), render_joined, around)
