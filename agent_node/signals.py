"""Turns Unix signals into turns of the loop, so that nothing happens in the middle of anything."""

from __future__ import annotations

import os
import selectors
import signal
from collections.abc import Callable, Mapping

Heard = Callable[[str], None]


class Signals:
    """From now on each of these signals calls its function from the loop, by name."""

    def __init__(
        self, selector: selectors.BaseSelector, heard: Mapping[signal.Signals, Heard]
    ) -> None:
        self._heard = heard
        near, far = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._pipe = near
        signal.set_wakeup_fd(far, warn_on_full_buffer=False)
        for number in heard:
            signal.signal(number, lambda *_: None)
        selector.register(near, selectors.EVENT_READ, lambda _: self._read())

    def _read(self) -> None:
        for number in os.read(self._pipe, 4096):
            named = signal.Signals(number)
            if named in self._heard:
                self._heard[named](named.name)
