"""Runs a node that answers and dispatches nothing, until its stdin ends: a daemon for tests."""

from __future__ import annotations

import selectors
import sys
from pathlib import Path

from agent_node.clock import SystemClock
from agent_node.config import read_settings
from agent_node.desk import NoDaemon, Session
from agent_node.home import Home, HomeLock, listen
from agent_node.listener import Doorway
from agent_node.replies import Answers
from agent_node.store.sqlite import open_store


class LittleHost(NoDaemon):
    """Says that it dispatches, so that copies are taken in."""

    dispatching = True

    def subscribe(self, session: Session, events: frozenset[str]) -> None:
        return


def main(place: str) -> None:
    """Listen in this home; `up` on stdout says that it does."""
    home, clock = Home(Path(place)), SystemClock()
    lock = HomeLock.try_take(home)
    assert lock is not None
    settings = read_settings(home.config)
    store = open_store(home.root, name=settings.name, clock=clock)
    store.live.dispatching = True
    selector = selectors.DefaultSelector()
    answers = Answers(store, home=home, settings=settings, clock=clock, host=LittleHost(home))
    doorway = Doorway(listen(home, lock), answers, selector)
    selector.register(sys.stdin, selectors.EVENT_READ)
    print("up", flush=True)
    while True:
        for key, mask in selector.select():
            if key.data is None:
                doorway.close()
                store.close()
                lock.release()
                return
            key.data(mask)


if __name__ == "__main__":
    main(sys.argv[1])
