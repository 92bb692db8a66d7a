"""Draws a node's time and its queue as small SVG pictures."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from arc.history_seen import NodeShares

from .markup import tag

WIDE, HIGH = 480.0, 18.0
# Of a bucket's height from its foot up, as they are stacked; what is stranded stands at the foot.
KINDS = ("stranded", "busy", "idle", "paused", "unknown")


def time_of(node: NodeShares) -> Element:
    """How the node's time went by: a column a bucket, what is stranded at the foot and loud."""
    many = max(len(node.busy), 1)
    step = WIDE / many
    drawing = _empty(f"{node.node}: its time, stranded {node.stranded_share:.1%}")
    for kind in KINDS:
        shares: tuple[float, ...] = getattr(node, kind)
        path = "".join(_column(n * step, step, _below(node, kind, n), share)
                       for n, share in enumerate(shares) if share > 0)  # fmt: skip
        if path:
            drawing.append(tag("path", d=path, class_=kind))
    return drawing


def _below(node: NodeShares, kind: str, n: int) -> float:
    before = KINDS[: KINDS.index(kind)]
    return sum(float(getattr(node, one)[n]) for one in before)


def _column(left: float, wide: float, below: float, share: float) -> str:
    foot = HIGH * (1 - below)
    return f"M{left:.1f} {foot:.1f}h{wide:.2f}v{-HIGH * share:.2f}h{-wide:.2f}z"


def queue_of(node: NodeShares, most: float) -> Element:
    """How many tasks waited; gaps where nothing is known. `most` is the top of all of them."""
    drawing = _empty(f"{node.node}: tasks that waited, {most:g} at the top")
    step, top = WIDE / max(len(node.depth), 1), max(most, 1.0)
    path, pen = "", "M"
    for n, depth in enumerate(node.depth):
        if depth is None:
            pen = "M"
            continue
        path += f"{pen}{n * step:.1f} {HIGH - (HIGH - 1) * min(depth / top, 1):.1f}h{step:.2f}"
        pen = "L"
    if path:
        drawing.append(tag("path", d=path, class_="queue"))
    return drawing


def _empty(says: str) -> Element:
    return tag("svg", tag("title", says), viewBox=f"0 0 {WIDE:g} {HIGH:g}", role="img",
               preserveAspectRatio="none", class_="strip")  # fmt: skip
