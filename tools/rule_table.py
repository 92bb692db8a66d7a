"""Draws every rule by which work moves or stays as one table, from the rules themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules

import arc.decisions
from arc.config_keys import Key, keys_of
from arc.decisions import node_rules, receiving, rules
from arc.explaining import Page, all_pages
from tools.sources import sources

# In whose table a rule stands says where it is asked; the order is the order on the page.
PLACES = {
    "rules": "stealing", "routing": "routing", "draining": "draining",
    "retrying": "retrying", "health": "health",
    "reckoning": "every plan",
}  # fmt: skip
# Who names a rule outside of any table, and for whom.
SPEAKERS = {
    "receiving": ("routing", "draining", "retrying"),
    "failing": ("routing", "draining", "retrying"),
    "draining": ("draining",), "retrying": ("retrying",),
}  # fmt: skip
ARC0 = (*rules.STEAL_RULES, *node_rules.IDLE_RULES, *node_rules.BUSY_RULES)
SWIFT = (*rules.SWIFT_RULES, *node_rules.THIEF_RULES, *node_rules.VICTIM_RULES)
HEAD = ("| rule | asked in | why it exists | what moves its limit |", "|---|---|---|---|")
# A key that is named without its section; of any other word it is not certain which is meant.
BARE = {key.name.split(".")[-1]: key for key in keys_of() if key.name.startswith("nodes.")}


@dataclass
class Rule:
    """One rule, however many tables it stands in; `why` is its own first paragraph."""

    name: str
    why: str
    places: set[str] = field(default_factory=set)


def all_rules() -> dict[str, Rule]:
    """Every rule of every table `RULES` of the decisions, by name."""
    found: dict[str, Rule] = {}
    for module, (name, rule) in sorted(_entries(), key=lambda entry: _place(entry[0])):
        why = rule if isinstance(rule, str) else (rule.__doc__ or "")
        known = found.setdefault(name, Rule(name, " ".join(why.split("\n\n")[0].split())))
        known.places.add(PLACES[module])
    for name, places in _said_outside_of_tables():
        found[name].places.update(places)
    return found


def _said_outside_of_tables() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Routes and drains ask the node for themselves, and put their refusals together in place."""
    yield from ((rule.__name__, SPEAKERS["receiving"]) for rule in receiving.NODE_RULES)
    for source in sources("arc/decisions"):
        places = SPEAKERS.get(source.path.split("/")[-1].removesuffix(".py"), ())
        for call in ast.walk(source.tree):
            if places and isinstance(call, ast.Call) and ast.unparse(call.func) == "Objection":
                word = call.args[0]
                if isinstance(word, ast.Constant) and isinstance(word.value, str):
                    yield word.value, places


def _entries() -> Iterator[tuple[str, tuple[str, str | Callable[..., object]]]]:
    for module in iter_modules(arc.decisions.__path__):
        table = getattr(import_module(f"arc.decisions.{module.name}"), "RULES", {})
        yield from ((module.name, entry) for entry in table.items())


def _place(module: str) -> int:
    return [*PLACES].index(module)


def render_rules() -> str:
    """One line a rule: its name, where it is asked, why it exists, and what moves its limit."""
    lines = [
        f"| `{rule.name}` | {_asked_in(rule)} | {rule.why} | {_limits(all_pages()[rule.name])} |"
        for rule in all_rules().values()
    ]
    return "\n".join([*HEAD, *lines])


def _asked_in(rule: Rule) -> str:
    """The places; stealing by one policy alone says by which."""
    old, new = (any(one.__name__ == rule.name for one in table) for table in (ARC0, SWIFT))
    policy = "" if old == new else " (`arc0`)" if old else " (`swift`)"
    return ", ".join(f"{place}{policy if place == 'stealing' else ''}"
                     for place in PLACES.values() if place in rule.places)  # fmt: skip


def _limits(page: Page) -> str:
    """The keys of fleet.yaml that the rule's page names, each with its default."""
    keys = {key.name: key for key in keys_of()}
    named = (keys.get(word.replace("/", ".")) or BARE.get(word)
             for word in re.findall(r"`([a-z_]+(?:[./][a-z_]+)?)`", page.text))  # fmt: skip
    return ", ".join(dict.fromkeys(map(_told, filter(None, named)))) or "\N{EN DASH}"


def _told(key: Key) -> str:
    default = "" if key.default in (None, (), "") else f" ({_written(key.default)})"
    return f"`{key.name}`{default}"


def _written(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)
