"""Lets one node work through a queue, live, kills its daemon on the way, and checks the outcome."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

if not __package__:  # started by its path, Python looks for modules beside this file alone
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tools.demonstration.evidence import end_all
from tools.demonstration.node import DemoFailed, DemoNode
from tools.demonstration.picture import Picture
from tools.demonstration.story import Story

INTERRUPTED = 130


def main(words: list[str]) -> int:
    """0 when the node did all it promises, 1 when it did not; then its folder is kept."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the node's home, and say where")
    keep = bool(parser.parse_args(words).keep)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="arc-demo-"))
    picture = Picture(sys.stdout, os.environ)
    code = play(Story(DemoNode(folder), picture), picture)
    if keep or code == 1:
        look = f"AGENT_NODE_HOME={folder / 'home'} {folder / 'agent-node.pyz'} list"
        picture.tell(f"  kept; look at it with: {look}")
    else:
        shutil.rmtree(folder)
    return code


def play(story: Story, picture: Picture) -> int:
    """The story from beginning to end; whatever happens, nothing that it started is left."""
    try:
        troubles = story.run()
    except DemoFailed as error:
        troubles = [str(error)]
    except KeyboardInterrupt:
        picture.tell("demo: stopped; what it had started was ended")
        return INTERRUPTED
    finally:
        story.node.hang_up()
        end_all(story.node.home)
    for trouble in troubles:
        print(f"demo: {trouble}", file=sys.stderr)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
