"""Builds small scenes by hand: nodes with one slot, tasks that anyone of the fleet may run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from arc.decisions.domains import Domain, Role
from arc.simulate.engine import Run, jobs_in_order
from arc.simulate.ledger import Ended
from arc.simulate.policies import Policy, parse_policy
from arc.simulate.scene import Job, Kind, Place, Scene

SHARED = Kind(domain="shared")


def a_place(name: str, slots: int = 1, **fields: Any) -> Place:
    """A node that owns `own-NAME` and also does `shared`, unless the test says more."""
    fields.setdefault("role", Role((f"own-{name}",), ("shared",)))
    return Place(name, slots, **fields)


def a_job(number: int, home: str, takes_s: float, *, at_s: float = 0.0, **fields: Any) -> Job:
    """A task of P8 that anyone may run, unless the test says more."""
    given = {"kind": SHARED, "priority": 8, **fields}
    return Job(number, round(at_s * 1000), home, round(takes_s * 1000), **given)


def a_scene(*parts: Place | Job, **fields: Any) -> Scene:
    """These nodes and tasks, with the domains that the nodes' roles name."""
    places = tuple(one for one in parts if isinstance(one, Place))
    names = dict.fromkeys(name for one in places for name in (*one.role.owns, *one.role.also))
    jobs = jobs_in_order([one for one in parts if isinstance(one, Job)])
    return Scene(places, jobs, tuple(map(Domain, names)), **fields)


def run(scene: Scene, word: str, *, transfer_s: float = 5.0, **how: bool) -> Ended:
    """What the scene comes to by this policy."""
    policy: Policy = replace(parse_policy(word), transfer_s=transfer_s)
    return Run(scene, policy, **how).to_the_end()


def starts_s(ended: Ended) -> dict[int, tuple[str, float]]:
    """By number: where each task started, and when."""
    return {int(uid[-6:]): (node, ms / 1000) for uid, (node, ms) in ended.starts.items()}
