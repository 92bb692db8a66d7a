"""The command `demo`: a whole fleet on this machine, to look at and to break."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent_node.envelope import Exit
from arc.errors import WrongUse
from arc.operations import Told

from .around import Around, OutputFailed, ReaderLeft, here
from .web_words import check_installed

if TYPE_CHECKING:
    from arc.demo.result import Result, Wish
    from arc.demo.signalling import Ending


def register(app: typer.Typer) -> None:
    """Add it to the command line."""
    app.command()(demo)


def demo(
    tasks: Annotated[int, typer.Option("--tasks", metavar="N", help="How many tasks.")] = 40,
    policy: Annotated[str, typer.Option("--policy", help="arc0 or swift.")] = "arc0",
    once: Annotated[bool, typer.Option("--once", help="To the end, a summary, exit.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave its folder, and say where.")] = False,
    web: Annotated[bool, typer.Option("--web", help="With the page, to look at.")] = False,
) -> int:
    """Five real nodes on this machine over real SSH, a hub that moves work between them, live.

    No root, no sshd, nothing leaves 127.0.0.1, nothing is left behind; Ctrl-C ends it.
    """
    from arc.demo.fleet import POLICIES
    from arc.demo.result import Wish
    from arc.demo.tasks import COUNT_MAX
    from arc.demo.trying import arc_command

    if not 1 <= tasks <= COUNT_MAX:
        raise WrongUse(f"demo: --tasks goes from 1 to {COUNT_MAX}")
    if policy not in POLICIES:
        raise WrongUse(f"demo: --policy is one of {', '.join(POLICIES)}")
    if here().as_json and not once:
        raise WrongUse("demo: --json tells how it ended, so it needs --once")
    if web:
        check_installed()
    wish = Wish(tasks=tasks, policy=policy, once=once, keep=keep, web=web,
                arc=arc_command(sys.argv[0]))  # fmt: skip
    return _played(here(), wish)


def _played(around: Around, wish: Wish) -> int:
    from arc.demo.picture import picture_on
    from arc.demo.play import play
    from arc.demo.signalling import Ending

    ending = Ending()
    voice = _Voice(around, ending)
    live = around.width is not None and not around.as_json
    with ending.by_signals():
        picture = picture_on(around.stdout, voice.say, live=live, colour=around.colour)
        result = play(wish, picture, ending)
        if voice.trouble is not None:
            raise voice.trouble
        return _told(around, result)


class _Voice:
    """Says lines as they come. A reader that leaves ends the demo, in order."""

    def __init__(self, around: Around, ending: Ending) -> None:
        self._around, self._ending = around, ending
        self.trouble: ReaderLeft | OutputFailed | None = None

    def say(self, text: str) -> None:
        """To stdout or, where that waits for JSON, to stderr."""
        if self._around.as_json:
            self._around.talk(text)
            return
        try:
            self._around.say(text)
        except (ReaderLeft, OutputFailed) as error:
            self.trouble = error
            self._ending.tell()


def _told(around: Around, result: Result) -> int:
    """The summary. Ctrl-C is how the demo is left: 130, as everywhere, unless something broke."""
    from .answering import say

    ended = Exit.DONE if result.ended else Exit.INTERRUPTED
    told = Told(result.as_json(), exit=ended if result.is_well else Exit.FAILED)
    code = say("demo", told, lambda data, look: result.text(), around)
    if result.ended:
        around.talk("it ended by itself, as --once says; without it and on a terminal the demo "
                    "stays, so that you can look around and break a node\n")
    return code
