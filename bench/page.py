"""Measures what the page of five hundred nodes asks for, and what its process costs meanwhile."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median

from agent_node.clock import iso
from tests.web.past_large import write_large

from .far_tasks import EVERY_S
from .hub_far import WORKING
from .hub_fleet import Far, far_side, hub_process, write_fleet
from .machine import load
from .measuring import Place, Row, timed
from .page_open import Served, open_pages, page_process
from .resting import cpu_s, tree_of

NODES = 500
# What a page that follows the fleet asks for; `moment` is the header of a page that looks back.
LIVE = ("lanes", "heat", "funnel", "feeds", "depth", "money", "sensors")
NOW = "the stream's first word"
LOOK = {"every": "15s"}
SETTLE_S = 8.0


def entries(far: Far) -> list[dict[str, object]]:
    """The nodes of a far side as fleet.yaml names them."""
    return [{"name": name, "host": "127.0.0.1", "port": port, "user": f"{WORKING}-{name}"}
            for name, port in far.ports.items()]  # fmt: skip


@contextmanager
def far_fleet(place: Place, count: int) -> Iterator[tuple[Path, Far]]:
    """So many nodes that work, a day of whose past the hub's journal holds already."""
    folder, state = place.folder / "hub", place.folder / "hub" / ".arc"
    state.mkdir(mode=0o700, parents=True)
    write_large(state, count, since=datetime.now(UTC) - timedelta(days=1))
    bare = [place.python, "-I", "-S", "-c", "pass"]
    with far_side(state, bare, named=[f"n{node:03d}" for node in range(count)]) as far:
        yield write_fleet(folder, entries(far), health=LOOK, rebalance=LOOK), far


def page_rows(place: Place) -> Iterator[Row]:
    """Each panel's data over HTTP, each time of another moment, so that nothing is kept; then the
    page's own process while three pages are open.
    """
    count, window_s = place.size(NODES, 20), place.size(20 if place.quick else 40, 2)
    with far_fleet(place, count) as (fleet, _), hub_process(fleet), page_process(fleet) as page:
        yield from _panels(place, page, count)
        yield from _cost(place, page, count, window_s)


@dataclass(frozen=True)
class Asked:
    """What was asked for: how long each took, how large it was, and what a live page cost."""

    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    size: dict[str, int] = field(default_factory=dict)
    cpu_s: list[float] = field(default_factory=list)

    def turn(self, page: Served, at: str) -> None:
        """Everything once, as of this moment."""
        before = cpu_s(page.pid)
        for name in LIVE:
            self.note(name, partial(page.panel, name, at=at))
        self.note(NOW, page.first_news)
        self.cpu_s.append(cpu_s(page.pid) - before)
        self.note("moment", partial(page.panel, "moment", at=at))

    def note(self, name: str, ask: Callable[[], bytes]) -> None:
        """One answer."""
        began = time.perf_counter()
        self.size[name] = len(ask())
        self.took[name].append(time.perf_counter() - began)


def _panels(place: Place, page: Served, count: int) -> Iterator[Row]:
    asked = Asked()
    for turn in range(place.rounds(9)):
        asked.turn(page, iso(datetime.now(UTC) - timedelta(seconds=turn)))
    size = asked.size
    middle = {name: median(some) for name, some in asked.took.items()}
    worst, whole = max((*LIVE, "moment"), key=lambda name: middle[name]), sum(size.values()) / 1e6
    live = sum(middle[name] for name in (*LIVE, NOW))
    yield Row(
        "page-panel-500", f"{count} nodes and a day: the slowest panel's data over HTTP ({worst})",
        middle[worst], None, "s", middle[worst], 1.0, load=load(),
        more={f"{name}, s": spent for name, spent in middle.items()},
    )  # fmt: skip
    yield Row(
        "page-panels-500", "the same, all that a live page asks for, one after the other, with the"
        " stream's first word", live, None, "s", live, 1.0, load=load(),
        more={"of a processor, s": median(asked.cpu_s)},
    )  # fmt: skip
    yield Row(
        "page-bytes-500", "data of a page load of the same: all panels and the stream's first word",
        whole, None, "MB", whole, 1.0, load=load(),
        more={f"{name}, kB": one / 1000 for name, one in size.items()},
    )  # fmt: skip


def _cost(place: Place, page: Served, count: int, window_s: int) -> Iterator[Row]:
    with open_pages(page) as pages:
        time.sleep(0.0 if place.tiny else SETTLE_S)
        before, got = cpu_s(page.pid), sum(one.received for one in pages)
        took = timed(lambda: time.sleep(window_s))
        share = 100 * (cpu_s(page.pid) - before) / took
        got = sum(one.received for one in pages) - got
        asked = sum(one.asked for one in pages)
        if tree_of(page.pid) != [page.pid]:
            raise RuntimeError("the page has children, which were not counted")
    yield Row(
        "page-cpu-500", f"the page's process, {len(pages)} pages open on {count} nodes,"
        f" each of which starts a task in {EVERY_S} s, a look each {LOOK['every']}",
        share, None, "% of a core", share, 5.0, load=load(),
        more={"kB a second and page": got / 1000 / took / len(pages), "window, s": took,
              "questions": float(asked)},
    )  # fmt: skip
