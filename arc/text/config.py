"""Renders settings, what a new fleet was made of, and the pages that explain words."""

from __future__ import annotations

from agent_node.strict import JsonObject, JsonValue
from agent_node.text import safe_text
from arc.editing import render_value

from .columns import number, objects, rows, said
from .look import Look


def render_config(data: JsonObject, look: Look) -> str:
    """The settings as a fleet.yaml that means the same, one section a line."""
    lines: list[str] = []
    for key, value in data.items():
        if key == "nodes" and isinstance(value, list) and value:
            lines += ["nodes:", *(f"  - {_flat(one)}" for one in value)]
        elif key == "domains" and isinstance(value, dict) and value:
            lines += ["domains:", *(f"  {name}: {_flat(one)}" for name, one in value.items())]
        else:
            lines.append(f"{key}: {_flat(value)}")
    return "\n".join(lines)


def _flat(value: JsonValue) -> str:
    return safe_text(render_value(value))


def render_init(data: JsonObject, look: Look) -> str:
    """What was made, the key that nodes have to let in, and what to do next."""
    made = data.get("made")
    names = [str(one) for one in made] if isinstance(made, list) else []
    word = "would create" if data.get("dry_run") else "created"
    lines = [f"{word:<8} {said(name)}" for name in names]
    if not names:
        lines.append(f"{said(data.get('file'))}: is there already, with all that belongs to it; "
                     "nothing was changed")  # fmt: skip
    if data.get("fingerprint"):
        lines.append(f"hub key  {said(data.get('fingerprint'))}")
    if not data.get("dry_run"):
        lines.append("next: arc nodes add USER@HOST --name NAME for each machine, then: arc up")
    return "\n".join(lines)


def render_page(data: JsonObject, look: Look) -> str:
    """One page, or the words that there are pages on, by their kind."""
    if "text" in data:
        return f"{said(data.get('word'))}\n\n{safe_text(str(data.get('text')), keep=chr(10))}"
    by_kind: dict[str, list[str]] = {}
    for one in objects(data, "pages"):
        by_kind.setdefault(str(one.get("kind")), []).append(said(one.get("word")))
    parts = [f"{_KINDS.get(kind, kind)}\n  " + "\n  ".join(words)
             for kind, words in by_kind.items()]  # fmt: skip
    return "\n".join([*parts, "arc explain WORD shows its page"])


_KINDS = {"key": "keys of fleet.yaml", "rule": "rules", "error": "errors",
          "node": "what nodes answer", "topic": "more"}  # fmt: skip


def render_doctor(data: JsonObject, look: Look) -> str:
    """Every check with its outcome, and what would mend it."""
    lines: list[tuple[str, str, str]] = []
    for one in objects(data, "checks"):
        state = "mended" if one.get("mended") else said(one.get("state"))
        lines.append((said(one.get("what")), state, said(one.get("text"))))
        if one.get("hint"):
            lines.append(("", "", f"hint: {said(one.get('hint'))}"))
    findings = int(number(data.get("findings")))
    count = "no findings" if not findings else f"{findings} finding{'s' * (findings != 1)}"
    return f"{rows(('WHAT', 'STATE', 'FOUND'), lines, look)}\n{count}"


def render_edited(data: JsonObject, look: Look) -> str:
    """What one edit does to fleet.yaml, as `diff -u` shows it."""
    node, diff = said(data.get("node")), str(data.get("diff") or "")
    if not data.get("changed"):
        return f"{node}: fleet.yaml says that already"
    word = "would change" if data.get("dry_run") else "changed"
    more = "" if data.get("dry_run") else "; a hub that runs follows within seconds"
    shown = safe_text(diff.rstrip("\n"), keep="\n")
    return f"{node}: {word} in fleet.yaml{more}\n{shown}"
