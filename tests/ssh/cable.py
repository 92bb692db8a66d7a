"""A slow, lossy cable in user space: frames go from one TAP device to another and wait between.

Run as a program: cable.py NODE-NETWORK NAME-HERE NAME-THERE LATENCY JITTER LOSS. It is started
in the network of this side, and goes into the other one for its second end.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import itertools
import os
import random
import select
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
SET_INTERFACE = 0x400454CA  # TUNSETIFF
TAP_WITHOUT_HEADER = 0x1002  # IFF_TAP | IFF_NO_PI
FRAME_MAX = 65_600


def main(
    network: str, here: str, there: str, latency_s: float, jitter_s: float, loss: float
) -> None:
    """Carry frames until killed; the devices vanish with this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    target = os.open(network, os.O_RDONLY)
    near = _tap(here)
    if libc.setns(target, CLONE_NEWNET):
        sys.exit(f"setns: {os.strerror(ctypes.get_errno())}")
    ends = (near, _tap(there))
    print("ready", flush=True)
    waiting: list[tuple[float, int, int, bytes]] = []
    order = itertools.count()
    while True:
        limit = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for end in select.select(ends, [], [], limit)[0]:
            frame = os.read(end, FRAME_MAX)
            if random.random() >= loss:
                due = time.monotonic() + latency_s + random.random() * jitter_s
                other = ends[1] if end == ends[0] else ends[0]
                heapq.heappush(waiting, (due, next(order), other, frame))
        _deliver(waiting)


def _deliver(waiting: list[tuple[float, int, int, bytes]]) -> None:
    while waiting and waiting[0][0] <= time.monotonic():
        _, _, end, frame = heapq.heappop(waiting)
        try:
            os.write(end, frame)
        except OSError:
            continue  # that device is down: the frame is lost, as on any cable


def _tap(name: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, SET_INTERFACE, struct.pack("16sH14x", name.encode(), TAP_WITHOUT_HEADER))
    return device


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(float, sys.argv[4:7]))  # type: ignore[arg-type]
