"""Gives out the fleet's metrics at `/metrics`, under the very names that `arc metrics` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.responses import Response
from starlette.routing import Route

from agent_node.strict import JsonObject
from arc.text.columns import inside, number, objects, said

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from .app import Web

LOOK_S = 60.0
TOTAL = "_total"  # the library adds it to counters itself


class Told(Collector):
    """What the hub told of its metrics, as the library wants to have it."""

    def __init__(self, data: JsonObject) -> None:
        self._data = data

    def collect(self) -> Iterator[Metric]:
        """Every family, in the hub's order."""
        for family in objects(self._data, "families"):
            name, kind = said(family.get("name")), said(family.get("kind"))
            short = name.removesuffix(TOTAL) if kind == "counter" else name
            metric = Metric(short, said(family.get("help")), kind)
            for one in objects(family, "samples"):
                labels = {label: said(value) for label, value in inside(one, "labels").items()}
                metric.add_sample(said(one.get("name")), labels, number(one.get("value")))
            yield metric


def metric_routes(web: Web) -> list[BaseRoute]:
    """`/metrics`; every node is asked, and one that is not seen has no gauges."""

    async def metrics(_: Request) -> Response:
        found = await web.door.ask("metrics", {}, by="web", timeout_s=LOOK_S)
        text = generate_latest(Told(found.data))
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return [Route("/metrics", metrics)]
