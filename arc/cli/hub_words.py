"""Runs the hub in this process, a line for each run of a sensor."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.envelope import Answer, Exit, Trouble, success
from agent_node.strict import JsonObject
from agent_node.text import counted, safe_text
from arc.errors import OtherHub

from .around import Around, OutputFailed, ReaderLeft

if TYPE_CHECKING:
    from arc.hub import Hub
    from arc.schedule import RunTold
    from arc.sensor import SensorReport
    from arc.settings import FleetSettings


class SignalLoop(asyncio.SelectorEventLoop):
    """Remembers which signals came: Ctrl-C ends the hub as SIGTERM does, with another exit code."""

    def __init__(self) -> None:
        super().__init__()
        self.came: list[int] = []

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: object) -> None:
        """As every loop does, with the signal noted first."""

        def noted() -> None:
            self.came.append(sig)
            callback(*args)

        super().add_signal_handler(sig, noted)


def run_the_hub(around: Around, *, once: bool, take_over: bool, web: bool = False) -> int:
    """Until a signal comes; with `once` until every sensor has run. Ctrl-C gives 130."""
    from arc.config import read_fleet
    from arc.door import fleet_of

    settings = read_fleet(fleet_of(around.fleet, around.environ))
    loop = SignalLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        code = runner.run(_run(settings, around, once=once, take_over=take_over, web=web))
    return Exit.INTERRUPTED if signal.SIGINT in loop.came else code


def check_alone(around: Around) -> None:
    """Return where `run_the_hub` could be the hub; `OtherHub` where one runs. Nothing is taken."""
    from arc.config import read_fleet
    from arc.door import fleet_of, listens
    from arc.lease import held_by_another

    state = read_fleet(fleet_of(around.fleet, around.environ)).state
    if listens(state):
        raise held_by_another(state)


async def _run(
    settings: FleetSettings, around: Around, *, once: bool, take_over: bool, web: bool
) -> int:
    from agent_node.rubbish import seldom
    from arc.running import run_hub

    hub = await _built(settings, take_over=take_over)
    stop = asyncio.Event()
    voice = Voice(around, hub, stop)
    count = counted(len(settings.nodes), "node")
    voice.say(f"hub {settings.hub} of {settings.fleet}: {count}, policy {settings.policy}, "
              f"term {hub.lease.term}, {settings.file}")  # fmt: skip
    async with _page_beside(hub, voice, wanted=web and not once):
        with seldom():
            runs = await run_hub(hub, once=once, stop=stop, heard=voice.tell, say=voice.say)
    if voice.unheard is not None:
        raise voice.unheard
    return _end_of(runs, around)


def _end_of(runs: Sequence[RunTold], around: Around) -> Exit:
    """How all runs of `--once` came out: 0 is all well, 1 none of it; who failed is named."""
    failed = [told.report.sensor for told in runs if told.report.exit_code == Exit.FAILED]
    if failed:
        around.warn(f"{len(failed)} of {counted(len(runs), 'run')} failed: {', '.join(failed)}; "
                    "again: arc sensors run NAME")  # fmt: skip
    if failed and len(failed) == len(runs):
        return Exit.FAILED
    return Exit.PARTIAL if any(told.report.exit_code for told in runs) else Exit.DONE


@asynccontextmanager
async def _page_beside(hub: Hub, voice: Voice, *, wanted: bool) -> AsyncIterator[None]:
    """While this lasts, the page runs too, if it is wanted; what becomes of it disturbs nobody."""
    if not wanted:
        yield
        return
    from arc.web.child import PageBeside

    page = asyncio.create_task(PageBeside(hub, voice.say).keep(), name="page")
    try:
        yield
    finally:
        page.cancel()
        await asyncio.gather(page, return_exceptions=True)


async def _built(settings: FleetSettings, *, take_over: bool) -> Hub:
    """The hub. A command that takes its place for a moment is waited for; another hub is not."""
    from arc.door import AGAIN_S, STARTING_S
    from arc.hub import build_hub

    for _ in range(int(STARTING_S / AGAIN_S)):
        try:
            return build_hub(settings, take_over=take_over)
        except OtherHub:
            if (settings.state / "hub.sock").exists():
                raise
            await asyncio.sleep(AGAIN_S)
    return build_hub(settings, take_over=take_over)


@dataclass
class Voice:
    """What the hub says while it runs. When nobody can hear it any more, it is stopped in order."""

    around: Around
    hub: Hub
    stop: asyncio.Event
    unheard: Exception | None = None

    def say(self, text: str) -> None:
        """What a person should read; on stderr where machines read stdout."""
        stamp = iso(self.hub.clock.now())[11:19]
        lines = "".join(f"{stamp} {safe_text(line)}\n" for line in text.splitlines())
        if self.around.as_json:
            self.around.talk(lines)
        else:
            self._write(lines)

    def tell(self, told: RunTold) -> None:
        """One line a run, one more for each move; for machines one object a run."""
        if self.around.as_json:
            from arc.operations.sensing import unread_by

            answer = Answer(_data(told), "", told.report.exit_code,
                            partial=unread_by(self.hub, told.report),
                            trouble=_trouble(told.report))  # fmt: skip
            self._write(success("arc.up/1", self.around.stamp(), answer) + "\n")
            return
        report, at = told.report, iso(told.began)[11:19]
        lines = [f"{at} {report.sensor:<16} {safe_text(report.summary)}  ({report.took_s:.2f} s)"]
        lines += [f"{'':<9}{one.outcome:<8} {one.uid[-6:].lower()}  {one.busy} -> {one.idle}  "
                  f"{safe_text(one.because)}" for one in report.moves]  # fmt: skip
        self._write("\n".join(lines) + "\n")

    def _write(self, text: str) -> None:
        if self.unheard is None:
            try:
                self.around.say(text)
            except (ReaderLeft, OutputFailed) as error:
                self.unheard = error
                self.stop.set()


def _trouble(report: SensorReport) -> Trouble | None:
    """Why a run failed, and whose; None: it did not."""
    if report.exit_code != Exit.FAILED:
        return None
    error = report.details.get("error")
    hint = str(error.get("hint") or "") if isinstance(error, dict) else ""
    return Trouble(report.code or "ARC-FAILED", f"{report.sensor}: {report.summary}", hint)


def _data(told: RunTold) -> JsonObject:
    report = told.report
    return {
        "run": told.number, "sensor": report.sensor, "at": iso(told.began),
        "because": told.because, "outcome": report.outcome, "summary": report.summary,
        "took_s": round(report.took_s, 3), "requests": report.requests,
        "moves": [
            {"uid": one.uid, "from": one.busy, "to": one.idle, "outcome": one.outcome,
             "because": one.because}
            for one in report.moves
        ],
    }  # fmt: skip
