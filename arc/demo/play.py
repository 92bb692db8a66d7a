"""Plays the demo: a hub of its own, real nodes, real tasks, and a check that trusts none."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from pathlib import Path

from .evidence import Ledger
from .fleet import NAMES
from .nodes import DemoNodes, end_nodes
from .picture import Picture
from .result import DemoFailed, Result, Wish
from .sight import Sight
from .signalling import Ending, OwnSignals
from .story import Story
from .trying import what_was_kept


def play(wish: Wish, picture: Picture, ending: Ending) -> Result:
    """The whole demo; when it returns, or raises, nothing that it started is left.

    Its folder is gone too, unless `wish.keep`.
    """
    began = time.monotonic()
    folder = _scratch()
    nodes = DemoNodes(folder, NAMES)
    sight = Sight(folder, wish.policy, Ledger(nodes.evidence))
    story = Story(wish, picture, ending, nodes, began, sight)
    try:
        try:
            nodes.set_up()
            nodes.start()
            with asyncio.Runner(loop_factory=OwnSignals) as runner:
                runner.run(story.run())
        finally:
            try:
                picture.close()
            finally:
                story.killed = end_nodes(nodes.every.values())
        return story.result()
    finally:
        if wish.keep:
            for line in what_was_kept(sight, nodes.every, arc=wish.arc):
                picture.tell(line)
        else:
            shutil.rmtree(folder)


def _scratch() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="arc-demo-"))
    except OSError as error:
        raise DemoFailed(f"no scratch folder can be made: {error}", hint="set TMPDIR") from error
