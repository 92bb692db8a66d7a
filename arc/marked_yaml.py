"""Reads YAML into plain values and remembers where in the text each key and value stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from .findings import Place

DEPTH_MAX = 12
ALIASES_MAX = 20
NODES_MAX = 50_000
INTEGER_DIGITS_MAX = 18


@dataclass(frozen=True)
class YamlLimits:
    """How much a text may unfold into, and what texts of its kind are called."""

    kind: str = "settings are"
    depth: int = DEPTH_MAX
    aliases: int = ALIASES_MAX
    nodes: int = NODES_MAX


SETTINGS = YamlLimits()

Loc = tuple[str | int, ...]
Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]


@dataclass(frozen=True)
class Span:
    """A stretch of the text, from its first character to behind its last; comments excluded."""

    start: int
    end: int
    flow: bool = True  # written in one piece: a scalar, `[…]` or `{…}`


@dataclass(frozen=True)
class Trouble:
    """Something that makes a text no YAML of ours, and where."""

    code: str
    text: str
    at: Span


class NotYaml(ValueError):
    """The text could not be read to its end, so nothing is known of what it says."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.text)
        self.trouble = trouble


@dataclass
class Marked:
    """What a text says as plain values, with the place of every key and value by its path."""

    text: str
    data: Plain = None
    keys: dict[Loc, Span] = field(default_factory=dict)
    values: dict[Loc, Span] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)  # it could be read on behind these

    def span(self, loc: Loc, *, key: bool = False) -> Span:
        """Where this path stands; else the nearest part of it that stands anywhere."""
        if key and loc in self.keys:
            return self.keys[loc]
        while loc and loc not in self.values:
            loc = loc[:-1]
        found = self.values.get(loc, Span(0, 0))
        # A key with nothing behind it: what YAML calls its value lies anywhere after it.
        return self.keys.get(loc, found) if found.start == found.end else found

    def place(self, span: Span) -> Place:
        """The line and column of a stretch, of which only the first line counts."""
        before = self.text[: span.start]
        line = before.count("\n") + 1
        first = before.rfind("\n") + 1
        stop = self.text.find("\n", span.start)
        stop = len(self.text) if stop < 0 else stop
        width = max(1, min(span.end, stop) - span.start)
        source = self.text[first:stop].rstrip("\r")
        return Place(line, span.start - first + 1, width, source)


def read_marked(text: str, limits: YamlLimits = SETTINGS) -> Marked:
    """The values of one YAML 1.2 document, or `NotYaml`.

    Keys that stand twice and tags of other languages are troubles beside the values. Time and
    memory stay bounded whatever the text is: in depth, in nodes, and in aliases, which a few lines
    could otherwise unfold into millions of values.
    """
    marked = Marked(text)
    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = limits.depth
    yaml.Composer = _bounded(limits)
    try:
        top = yaml.compose(text)
        marked.data = _Reading(marked, limits).value(top, ()) if top is not None else None
    except ReaderError as error:
        at = Span(error.position, error.position + 1)
        bad = f"holds U+{ord(text[at.start]):04X}, which YAML forbids"
        raise NotYaml(Trouble("ARC-CFG-SYNTAX", bad, at)) from error
    except ReusedAnchorWarning as error:  # only where warnings are made errors
        raise NotYaml(Trouble("ARC-CFG-SYNTAX", "an anchor stands twice", Span(0, 0))) from error
    except MarkedYAMLError as error:
        raise NotYaml(_syntax(error, limits)) from error
    except (YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, NotYaml):
            raise
        raise NotYaml(Trouble("ARC-CFG-SYNTAX", "is not YAML", Span(0, 0))) from error
    return marked


def _syntax(error: MarkedYAMLError, limits: YamlLimits) -> Trouble:
    said = ", ".join(str(part) for part in (error.context, error.problem) if part)
    if isinstance(error, MaxDepthExceededError):
        said = f"nested deeper than {limits.depth}"
    mark = error.problem_mark or error.context_mark
    start = mark.index if mark is not None else 0
    return Trouble("ARC-CFG-SYNTAX", f"is not YAML: {said or 'it ends too early'}",
                   Span(start, start + 1))  # fmt: skip


class BoundedComposer(Composer):
    """Composes like its parent, and stops at documents that are larger than they may be."""

    limits = SETTINGS
    composed = 0
    aliases = 0

    def compose_node(self, parent: object, index: object) -> object:
        """One node; `NotYaml` when there were too many."""
        event = self.parser.peek_event()
        start = event.start_mark.index
        self.composed += 1
        self.aliases += isinstance(event, AliasEvent)
        limits = self.limits
        if self.composed > limits.nodes:
            raise NotYaml(_large(f"holds more than {limits.nodes} values", start, limits))
        if self.aliases > limits.aliases:
            raise NotYaml(_large(f"holds more than {limits.aliases} aliases", start, limits))
        self.warn_double_anchors = False  # a later one simply counts from there on, as YAML says
        return super().compose_node(parent, index)


def _bounded(limits: YamlLimits) -> type[BoundedComposer]:
    """A composer with these limits; whoever composes makes one, and gives it nothing."""

    class Bounded(BoundedComposer):
        pass

    Bounded.limits = limits
    return Bounded


def _large(what: str, start: int, limits: YamlLimits) -> Trouble:
    return Trouble("ARC-CFG-LARGE", f"{what}; no {limits.kind} that large", Span(start, start + 1))


class _Reading:
    """One walk from composed nodes to values; it knows what it is inside of, for `*loops`."""

    def __init__(self, marked: Marked, limits: YamlLimits) -> None:
        self.marked, self.limits = marked, limits
        self.open: set[int] = set()
        self.left = limits.nodes

    def value(self, node: Node, loc: Loc) -> Plain:
        """The plain value of a node, noting its place and those below it."""
        self.left -= 1
        if id(node) in self.open or self.left < 0:
            raise NotYaml(_large("an alias stands for more than it may, or for itself",
                                 node.start_mark.index, self.limits))  # fmt: skip
        self.open.add(id(node))
        read = self._scalar(node) if isinstance(node, ScalarNode) else self._inside(node, loc)
        self.open.discard(id(node))
        self.marked.values[loc] = self._span(node)
        return read

    def _inside(self, node: Node, loc: Loc) -> Plain:
        if str(node.tag) not in _COLLECTIONS:
            self._trouble("ARC-CFG-TYPE", f"the tag {node.tag} means nothing here", node)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*loc, n)) for n, item in enumerate(node.value)]
        found: dict[str, Plain] = {}
        for key, value in node.value if isinstance(node, MappingNode) else ():
            name = self._key(key, found)
            if name is None:
                continue
            self.marked.keys[(*loc, name)] = self._span(key)
            found[name] = self.value(value, (*loc, name))
        return found

    def _key(self, key: Node, found: dict[str, Plain]) -> str | None:
        if not isinstance(key, ScalarNode) or str(key.tag) not in SCALARS:
            self._trouble("ARC-CFG-TYPE", "a key should be a single word", key)
            return None
        name = str(key.value)
        if name in found:
            self._trouble("ARC-CFG-TWICE", f"{name} stands here twice", key)
            return None
        return name

    def _scalar(self, node: ScalarNode) -> Plain:
        read = SCALARS.get(str(node.tag))
        if read is None:
            self._trouble("ARC-CFG-TYPE", f"the tag {node.tag} means nothing here", node)
            return str(node.value)
        return read(str(node.value))

    def _trouble(self, code: str, text: str, node: Node) -> None:
        self.marked.troubles.append(Trouble(code, text, self._span(node)))

    def _span(self, node: Node) -> Span:
        start, end = node.start_mark.index, node.end_mark.index
        flow = not isinstance(node, CollectionNode) or bool(node.flow_style)
        if not flow:  # the mark of a block lies behind the comments that follow it
            end = self._last_of(node, start)
        return Span(start, max(start, len(self.marked.text[start:end].rstrip()) + start), flow)

    def _last_of(self, node: Node, start: int) -> int:
        items = [pair for both in node.value for pair in
                 (both if isinstance(node, MappingNode) else (both,))]  # fmt: skip
        return max((self._span(item).end for item in items), default=start)


def _whole(text: str) -> Plain:
    """A number, where it is one that a setting could mean; else the text as it stands."""
    if len(text) > INTEGER_DIGITS_MAX:
        return text
    try:
        return int(text.replace("_", ""), 0 if text.lstrip("+-")[:2] in {"0x", "0o"} else 10)
    except ValueError:
        return text


def _fraction(text: str) -> Plain:
    try:
        return float(text)
    except ValueError:
        return text


_TAG = "tag:yaml.org,2002:"
_COLLECTIONS = {f"{_TAG}map", f"{_TAG}seq"}
SCALARS: dict[str, Callable[[str], Plain]] = {
    f"{_TAG}str": str,
    f"{_TAG}timestamp": str,
    f"{_TAG}int": _whole,
    f"{_TAG}float": _fraction,
    f"{_TAG}bool": lambda text: text.lower() in {"true", "yes", "on"},
    f"{_TAG}null": lambda _: None,
}
