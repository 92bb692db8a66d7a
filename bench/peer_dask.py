"""Steals by Dask, as it is shipped and tuned: many tasks on one of five, and one behind another."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from statistics import median
from typing import Any

from .peer_rounds import NOT_INSTALLED, PeerRounds, answer_rounds, is_there

# Where stealing is looked for every 10 ms instead of every 100 (which grow to 1 s).
TUNED = {"distributed.scheduler.work-stealing-interval": "10ms"}
QUIET = {"distributed.worker.daemon": True, "distributed.logging.distributed": "error"}
FIRST_S, LIMIT_S = 0.15, 60.0


def dask(what: str, unit: str, rounds: int, **told: float) -> dict[str, float | str]:
    """The middle of its rounds as it is shipped and as it is tuned, or that it is not installed."""
    if not is_there("distributed"):
        return {"dask": NOT_INSTALLED}
    found: dict[str, float | str] = {}
    for name, tuned in (("as shipped", False), ("looking every 10 ms", True)):
        with PeerRounds("peer_dask", {"what": what, "tuned": tuned, **told}) as peer:
            took = [peer.round() for _ in range(rounds)]
        found[f"Dask {name}, {unit}"] = median(took)
    return found


def nap(seconds: float, number: int) -> tuple[float, float]:
    """When it began and when it ended; `number` makes each call another."""
    began = time.time()
    time.sleep(seconds)
    return began, time.time()


class Cluster:
    """So many workers of one thread each, every one a process."""

    def __init__(self, workers: int) -> None:
        module: Any = import_module("distributed")
        self._cluster = module.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None,
            host="127.0.0.1",
        )  # fmt: skip
        self.client = module.Client(self._cluster)
        self.client.wait_for_workers(workers, timeout=LIMIT_S)
        self.names = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
        self._number = 0

    def give(self, seconds: float, to: str, *, free: bool) -> Any:
        """A nap for this worker; a free one may be stolen."""
        self._number += 1
        return self.client.submit(nap, seconds, self._number, workers=[to], pure=False,
                                  allow_other_workers=free)  # fmt: skip

    def spread(self, tasks: int, seconds: float) -> float:
        """All on one worker: seconds until the last has ended."""
        began = time.time()
        futures = [self.give(seconds, self.names[0], free=True) for _ in range(tasks)]
        return max(float(ended) for _, ended in self.client.gather(futures)) - began

    def steal(self, busy_s: float) -> float:
        """Milliseconds from the end of a worker's task until one that waited elsewhere began."""
        busy, idle = self.names[:2]
        others = [self.give(busy_s, name, free=False) for name in self.names if name != idle]
        first = self.give(FIRST_S, idle, free=False)
        waiting = self.give(0.0, busy, free=True)
        (_, ended), (began, _) = self.client.gather([first, waiting])
        self.client.gather(others)
        return 1000 * (float(began) - float(ended))

    def close(self) -> None:
        self.client.close()
        self._cluster.close()


def main(told: str) -> None:
    """Rounds of `spread` in seconds, or of `steal` in milliseconds."""
    asked = json.loads(told)
    config: Any = import_module("dask.config")
    config.set({**QUIET, **(TUNED if asked["tuned"] else {})})
    cluster = Cluster(asked["workers"])
    try:
        cluster.client.gather([cluster.give(0.05, name, free=False) for name in cluster.names])
        if asked["what"] == "spread":
            answer_rounds(lambda: cluster.spread(asked["tasks"], asked["seconds"]))
        else:
            answer_rounds(lambda: cluster.steal(asked["busy_s"]))
    finally:
        cluster.close()


if __name__ == "__main__":
    main(sys.argv[1])
