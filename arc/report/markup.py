"""Builds HTML and SVG as a tree, so that no text in it can ever be taken for markup."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

from agent_node.text import safe_text

TEXT_MAX = 2000
DRAWN = "d"  # the attribute of a path: numbers of ours, as many as its picture takes
DOCTYPE = "<!DOCTYPE html>\n"

Child = Element | str | int | float | None


def tag(name: str, /, *children: Child, **attributes: str | float) -> Element:
    """An element. A trailing `_` of an attribute is dropped (`class_`), others become `-`."""
    made = Element(name, {key.rstrip("_").replace("_", "-"):
                          str(value) if key == DRAWN else _text(value)
                          for key, value in attributes.items()})  # fmt: skip
    fill(made, children)
    return made


def fill(into: Element, children: Iterable[Child]) -> None:
    """Put these after what is in it; None is nothing."""
    for child in children:
        if child is None:
            continue
        if isinstance(child, Element):
            into.append(child)
        elif len(into):
            into[-1].tail = (into[-1].tail or "") + _text(child)
        else:
            into.text = (into.text or "") + _text(child)


def _text(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return safe_text(str(value), TEXT_MAX, keep="\n")


def table(head: tuple[str, ...], rows: Iterable[tuple[Child, ...]], *, nothing: str) -> Element:
    """A table, or a sentence where it has no row."""
    lines = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows]
    if not lines:
        return tag("p", nothing, class_="nothing")
    return tag("table", tag("thead", tag("tr", *(tag("th", one, scope="col") for one in head))),
               tag("tbody", *lines))  # fmt: skip


def document(title: str, style: str, *body: Child) -> str:
    """A whole page as text; `style` is ours and stands in it as it is."""
    css = Element("style")
    css.text = style
    policy = tag("meta", http_equiv="Content-Security-Policy",
                 content="default-src 'none'; style-src 'unsafe-inline'")  # fmt: skip
    head = tag("head", tag("meta", charset="utf-8"), policy, tag("title", title),
               tag("meta", name="viewport", content="width=device-width"), css)  # fmt: skip
    page = tag("html", head, tag("body", *body), lang="en")
    return DOCTYPE + tostring(page, encoding="unicode", method="html") + "\n"
