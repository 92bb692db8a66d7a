"""Renders metrics as Prometheus reads them."""

from __future__ import annotations

from agent_node.strict import JsonObject

from .columns import inside, number, objects, said
from .look import Look

_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def render_metrics(data: JsonObject, look: Look) -> str:
    """The text format: for each family its help, its kind, and a line a sample."""
    lines: list[str] = []
    for family in objects(data, "families"):
        name = said(family.get("name"))
        lines += [f"# HELP {name} {said(family.get('help'))}",
                  f"# TYPE {name} {said(family.get('kind'))}"]  # fmt: skip
        lines += [_line(sample) for sample in objects(family, "samples")]
    return "\n".join(lines)


def _line(sample: JsonObject) -> str:
    labels = ",".join(
        f'{name}="{said(value).translate(_ESCAPED)}"'
        for name, value in inside(sample, "labels").items()
    )
    value = number(sample.get("value"))
    text = f"{value:.0f}" if value == int(value) and abs(value) < 10**15 else repr(value)
    place = f"{{{labels}}}" if labels else ""
    return f"{said(sample.get('name'))}{place} {text}"
