"""The command `arc simulate`: what other limits would come to, on a virtual clock."""

# ruff: noqa: FBT002, PLR0917 - typer's way to declare flags and options

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from .answering import say
from .around import Around, here

if TYPE_CHECKING:
    from collections.abc import Callable

    from arc.settings import FleetSettings
    from arc.simulate.wanted import Wanted

LINE_EVERY = timedelta(seconds=10)

Words = Annotated[list[str] | None, typer.Option(
    "--policy", help="none, arc0, swift, central; arc0:every=60s,idle_min=30s; again for more.")]
Nodes = Annotated[int | None, typer.Option("--nodes", help="A fleet of so many nodes alike.")]
Slots = Annotated[int | None, typer.Option("--slots", help="What each of them runs at once.")]
Load = Annotated[str, typer.Option("--load", help="Work that comes, of what all can do: .65.")]
Portable = Annotated[str, typer.Option("--portable", help="Of it, what any node may do: .6.")]
Durations = Annotated[str, typer.Option(
    "--durations", help="agents, const:60, exp:600, lognormal:60,1.1 or uniform:10,90.")]
Days = Annotated[str, typer.Option("--days", help="For how many days it comes.")]
AtHub = Annotated[str, typer.Option("--at-hub", help="Of it, what comes to the hub's own queue.")]
Backlog = Annotated[int | None, typer.Option(
    "--backlog", help="Instead: so many tasks wait already.")]
Share = Annotated[str, typer.Option("--share", help="Of the backlog, what waits on one node.")]
Told = Annotated[bool, typer.Option("--told", help="Tasks say how long they take, more or less.")]
Describe = Annotated[str, typer.Option("--describe", help="A fleet and its work, from YAML.")]
Trace = Annotated[str, typer.Option(
    "--trace", help="What came: JSON lines, or SWF (a slot a job, a user's on one node).")]
History = Annotated[str, typer.Option(
    "--from-history", help="What came to this very fleet, so far back: 7d.")]
Until = Annotated[str, typer.Option(
    "--until", help="Of --from-history: up to this moment, instead of now.")]
Seeds = Annotated[int | None, typer.Option("--seeds", help="How many times it is drawn: 12.")]
Seed = Annotated[int, typer.Option("--seed", help="The first seed; the same one, the same result.")]
Transfer = Annotated[str, typer.Option(
    "--transfer", help="How long a move takes: 5s, of history 1s.")]
Advise = Annotated[bool, typer.Option(
    "--advice/--no-advice", help="Whether to look for better limits, which takes more runs.")]


def register(app: typer.Typer) -> None:
    """Add it to the command line."""
    app.command()(simulate)


def simulate(  # noqa: PLR0913 - each is an option
    policy: Words = None, nodes: Nodes = None, slots: Slots = None, load: Load = "",
    portable: Portable = "", durations: Durations = "", days: Days = "", at_hub: AtHub = "",
    backlog: Backlog = None, share: Share = "", told: Told = False, describe: Describe = "",
    trace: Trace = "", from_history: History = "", until: Until = "",
    seeds: Seeds = None, seed: Seed = 1, transfer: Transfer = "", advice: Advise = True,
) -> int:  # fmt: skip
    """Policies side by side on the same work, by the hub's own planner; changes nothing.

    Without options it takes about half a minute; `--seeds 3 --no-advice` is much shorter.
    """
    from arc.simulate.wanted import Wanted

    wanted = Wanted(
        nodes=nodes, slots=slots, load=load, portable=portable, durations=durations, days=days,
        at_hub=at_hub, backlog=backlog, share=share, told=told, describe=describe, trace=trace,
        from_history=from_history, until=until, seeds=seeds, seed=seed,
    )  # fmt: skip
    return _simulate(wanted, policy or [], transfer, advise=advice)


def _simulate(wanted: Wanted, words: list[str], transfer: str, *, advise: bool) -> int:
    from arc.operations import Told
    from arc.simulate.command import run_simulation
    from arc.text.simulate import render_simulation

    around = here()
    told = run_simulation(wanted, words, transfer, advise=advise, fleet=_fleet(),
                          talk=around.talk if around.asks_people else _lines(around))  # fmt: skip
    return say("simulate", Told(told.data, warnings=told.warnings), render_simulation, around)


def _lines(around: Around) -> Callable[[str], None]:
    """How far it is where nobody looks on: a line on stderr each `LINE_EVERY`, and no other."""
    last = around.clock.now()

    def told(text: str) -> None:
        nonlocal last
        plain, now = text.replace("\x1b[K", "").strip(), around.clock.now()
        if plain and now - last >= LINE_EVERY:
            last = now
            around.talk(plain + "\n")

    return told


def _fleet() -> FleetSettings | None:
    """The fleet of these surroundings; None: there is no fleet.yaml. A broken one is an error."""
    from arc.config import read_fleet
    from arc.door import fleet_of
    from arc.errors import NoFleet

    around = here()
    try:
        return read_fleet(fleet_of(around.fleet, around.environ))
    except NoFleet:
        if around.fleet is not None:
            raise
        return None
