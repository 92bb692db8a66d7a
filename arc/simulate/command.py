"""Carries out `arc simulate`: the scenes of all seeds, every policy on each, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from agent_node.text import safe_text
from arc.errors import WrongUse

from .advice import Advice, advise, beginnings, mean_wait_s
from .comparing import Compared, compare
from .policies import POLICIES_MAX, Policy, parse_policy, parse_transfer
from .scene import Scene
from .telling import told
from .wanted import Source, Wanted, all_scenes, source_of

if TYPE_CHECKING:
    from arc.settings import FleetSettings

ADVICE_SEEDS = 4  # of the first scenes
TRANSFER, TRANSFER_NEAR = "5s", "1s"  # how long a move takes: in general, and in a fleet we know
FULL = 0.98  # of the slots' time
USUAL = ("none", "arc0", "swift", "central")
Talk = Callable[[str], None]


@dataclass(frozen=True)
class Simulated:
    """The answer as plain JSON, and what may have been meant otherwise."""

    data: JsonObject
    warnings: tuple[str, ...] = ()


def run_simulation(
    wanted: Wanted, words: Sequence[str], transfer: str, *, advise: bool,
    fleet: FleetSettings | None, talk: Talk | None = None,
) -> Simulated:  # fmt: skip
    """Everything that was asked for; `talk` hears how far it is."""
    source = source_of(wanted, fleet)
    usual = TRANSFER_NEAR if source.facts["kind"] == "history" else TRANSFER
    policies = policies_of(words, source.fleet, transfer or usual)
    scenes = all_scenes(source, wanted.seed)
    if not any(scene.jobs for scene in scenes):
        raise WrongUse(f"simulate: no task comes at all: {source.sentence}")
    figures = compare(policies, scenes, told=_progress(talk, len(scenes)))
    found = _advice(policies, scenes, figures, source=source, talk=talk) if advise else None
    return Simulated(
        told(source, scenes, figures, found, seed=wanted.seed),
        (*source.warnings, *_doubts(figures)),
    )


def policies_of(
    words: Sequence[str], fleet: FleetSettings | None, transfer: str
) -> tuple[Policy, ...]:
    """The policies that were named, each once, or the usual four."""
    if len(words) > POLICIES_MAX:
        raise WrongUse(f"--policy: {len(words)} of them; at most {POLICIES_MAX} at a time")
    transfer_s = parse_transfer(transfer)
    named = [replace(parse_policy(word, fleet), transfer_s=transfer_s) for word in words or USUAL]
    names = [one.name for one in named]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise WrongUse(f"--policy: {safe_text(twice, 80)} is named twice")
    return tuple(named)


def _progress(talk: Talk | None, seeds: int) -> Callable[[str, int], None]:
    def told(policy: str, done: int) -> None:
        if talk is not None:
            wiped = "\r\x1b[K" if done == seeds else ""
            talk(f"\r{safe_text(policy, 40)}: {done} of {seeds}\x1b[K{wiped}")

    return told


def _searching(talk: Talk | None) -> Callable[[int], None]:
    def told(runs: int) -> None:
        if talk is not None:
            talk(f"\rlooking for better limits: {runs} runs\x1b[K")

    return told


def _advice(
    policies: Sequence[Policy], scenes: Sequence[Scene], figures: Sequence[Compared], *,
    source: Source, talk: Talk | None,
) -> Advice | None:  # fmt: skip
    """About the fleet's own policy, else the first that was named; None: none has any limits."""
    able = [one for one in policies if one.steals]
    if not able:
        return None
    mine = source.fleet.policy if source.fleet else able[0].steal.policy
    about = next((one for one in able if one.steal.policy == mine), able[0])
    few, first = beginnings(scenes[:ADVICE_SEEDS], about)
    found = replace(advise(about, few, heard=_searching(talk)), first=first)
    if talk is not None:
        talk("\r\x1b[K")
    best = min((one for one in figures if one.policy in able), key=_of)
    if best.policy == about:
        return found
    after = found.changes[-1].wait_after.mean if found.changes else mean_wait_s(about, few)
    instead = mean_wait_s(best.policy, few)
    if instead < 0.97 * after:  # as a change has to
        because = f"mean wait {instead:.0f} s, against {after:.0f} s with the limits above"
        return replace(found, better_policy=best.policy.name, because=because)
    return found


def _of(one: Compared) -> float:
    return one.wait_s["all"].mean if "all" in one.wait_s else float("inf")


def _doubts(figures: Sequence[Compared]) -> list[str]:
    """What makes figures say less than they seem to."""
    said = [
        f"{one.policy.name}: {one.never_started} tasks never start: no node that has them can run "
        "them, and nothing moves them"
        for one in figures if one.never_started
    ]  # fmt: skip
    said += [f"{one.policy.name}: {one.policy.steal.policy} does not look at "
             f"{', '.join(one.policy.passed_over)}" for one in figures
             if one.policy.passed_over]  # fmt: skip
    if any(one.utilisation and one.utilisation.mean > FULL for one in figures):
        said.append("the fleet is full nearly all of the time: waits grow with the length of the "
                    "simulation, and say little")  # fmt: skip
    return said
