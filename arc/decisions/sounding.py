"""Finds the beginnings and words of a table that no subject has; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agent_node.guessing import ears_for

from .domains import Domain

Signs = Mapping[str, Sequence[str]]  # beginnings under `prefix`, whole words under `words`
KINDS = ("prefix", "words")
ENOUGH = 100  # tasks; of fewer nothing is concluded from what none of them begins with
AT_ONCE = 1000  # subjects; a search among them is over before anybody misses the processor


@dataclass(frozen=True)
class Sounds:
    """What was looked through, and the signs that nothing in it has."""

    tasks: int = 0
    missing: Signs = field(default_factory=dict)


def signs_of(domains: Iterable[Domain]) -> dict[str, list[str]]:
    """All beginnings and words by which a subject may belong somewhere, each once."""
    listed = [*domains]
    return {
        "prefix": [*dict.fromkeys(sign for one in listed for sign in one.prefix)],
        "words": [*dict.fromkeys(sign for one in listed for sign in one.words)],
    }


def sounds_of(signs: Signs, subjects: Sequence[str]) -> Sounds:
    """Which of them no subject has; nothing where there are too few subjects to say so."""
    if len(subjects) < ENOUGH:
        return Sounds(len(subjects))
    pieces = ["\n".join(("", *subjects[at : at + AT_ONCE])).casefold()
              for at in range(0, len(subjects), AT_ONCE)]  # fmt: skip
    missing = {kind: [*_missing(kind, signs.get(kind, ()), pieces)] for kind in KINDS}
    return Sounds(len(subjects), missing)


def _missing(kind: str, signs: Sequence[str], pieces: Sequence[str]) -> Iterator[str]:
    """Heard as a router hears them, but of many subjects at once, a line each: of half a million
    one by one a person would not wait for the end.
    """
    for sign in signs:
        ears = ears_for({"it": {kind: [sign]}})
        starts = [f"\n{start}" for start in ears.starts]
        if not any(ears.words.search(piece) if ears.words else any(map(piece.__contains__, starts))
                   for piece in pieces):  # fmt: skip
            yield sign
