"""Renders nodes: all of them, one whole, and what became of a word said to one."""

from __future__ import annotations

from collections.abc import Mapping

from agent_node.stood import stood_before
from agent_node.strict import JsonObject
from agent_node.text import counted, safe_text, size

from .columns import (
    age,
    inside,
    number,
    objects,
    of_node,
    rows,
    said,
    shorts,
    stated,
    unseen,
)
from .look import Look

PINNED_SHOWN = 20
# What it runs is looked for again by itself; its settings are read once.
CURE = ("install it on that machine; or mend run or cwd in its node.toml, then there "
        "agent-node stop, agent-node start")  # fmt: skip


def render_nodes(data: JsonObject, look: Look) -> str:
    """A line a node: how it is reached, how it is, and whose work it does."""
    nodes = objects(data, "nodes")
    if not nodes:
        return "no nodes yet: arc nodes add USER@HOST --name NAME"
    lines = [
        (said(one.get("node")), said(one.get("state")), said(one.get("where")),
         said(one.get("pending"), "?"), said(one.get("running"), "?"), age(one.get("age_s")),
         said(one.get("version")), said(one.get("owns")), said(one.get("also")),
         said(one.get("never")), said(one.get("host_key")),
         said(one.get("reason"), "") if one.get("seen") else unseen(one))
        for one in nodes
    ]  # fmt: skip
    head = ("NODE", "STATE", "WHERE", "WAITING", "RUNNING", "SEEN", "VERSION", "OWNS", "ALSO",
            "NEVER", "HOST KEY", "REASON")  # fmt: skip
    return rows(head, lines, look)


def render_node(data: JsonObject, look: Look) -> str:
    """Everything that is known of one node, and how old that is."""
    state = stated(data.get("state"), look)
    lines = [f"{said(data.get('node'))}  {state}  {said(data.get('where'))}"]
    if not data.get("seen"):
        why = of_node(data.get("node"), data.get("reason"))
        rule = "" if data.get("rule") == "suspended" else f"{said(data.get('rule'))}: "
        lines.append(f"  not seen       {rule}{why}")
        met = inside(data, "last_met")
        lines.append(f"  last met       {said(met.get('at'), 'never')}")
    lines += [f"  {name.replace('_', ' '):<14} {said(data.get(name))}"
              for name in ("owns", "also", "never", "reason", "host_key")
              if data.get(name) and (name != "reason" or data.get("seen"))]
    if data.get("seen"):
        lines += _seen(data)
    lines += [f"  agent {said(one.get('name'))}: {_does(one)}, "
              f"{said(one.get('running'))} of {said(one.get('slots'))} slots, skills "
              f"{said(one.get('skills'))}" + _held(one)
              for one in objects(data, "agents")]  # fmt: skip
    lines += [f"  alert {said(one.get('rule'))}: {said(one.get('because'))}"
              for one in objects(data, "alerts")]  # fmt: skip
    needs = data.get("needs_you")
    lines += [f"  needs you: {said(one)}" for one in needs] if isinstance(needs, list) else []
    return "\n".join(lines)


def _does(agent: JsonObject) -> str:
    """As `agent-node status` calls it there: no slot is free where there is no program."""
    return "missing" if agent.get("missing") else said(agent.get("state"))


def _held(agent: JsonObject) -> str:
    if agent.get("missing"):
        return f", held: {said(agent.get('missing'))}; {CURE}"
    return ", paused" if agent.get("paused") else ""


def _seen(data: JsonObject) -> list[str]:
    counts = ", ".join(f"{said(count)} {state}" for state, count in inside(data, "counts").items())
    disk = f"{size(int(number(data.get('disk_free_bytes'))))} free"
    if data.get("disk_total_bytes"):
        disk += f" of {size(int(number(data.get('disk_total_bytes'))))}"
    return [
        f"  seen           {age(data.get('age_s'))}, in {number(data.get('took_s')):.3f} s",
        f"  tasks          {counts or 'none'}",
        f"  slots          {said(data.get('free_slots'))} free of {said(data.get('slots'))}",
        f"  daemon         {said(data.get('dispatcher'))}",
        f"  clock          {number(data.get('clock_off_s')):+.1f} s against the hub",
        f"  disk           {disk}",
        f"  version        {said(data.get('version'))}",
        f"  incarnation    {said(data.get('incarnation'))}",
    ]


def at_rest(data: JsonObject) -> str:
    """What neither runs nor waits now, and is not over: `, 1 PENDING, 2 RETRYING`."""
    return "".join(f", {said(count)} {state}" for state, count in inside(data, "later").items())


def render_drain(data: JsonObject, look: Look) -> str:
    """How far a drain is, and which pinned tasks it leaves where they are, with the ways out."""
    name = said(data.get("node"))
    head = (f"{name} {said(data.get('state'))}: {said(data.get('running'))} running, "
            f"{said(data.get('pending'))} waiting{at_rest(data)}")  # fmt: skip
    many = int(number(data.get("pinned")))
    if not many:
        return head
    pinned = f"  no drain moves what is pinned: {counted(many, 'waiting task')}"
    stuck = objects(data, "waits_for")
    if data.get("waits_for") is None:
        return f"{head}\n{pinned}; which could not be read: arc tasks list --node {name}"
    listed = [f"    {said(one.get('uid'))}  P{said(one.get('priority'))}"
              for one in stuck[:PINNED_SHOWN]]  # fmt: skip
    if many > len(listed):
        listed.append(f"    … and {many - len(listed)} more: arc tasks list --node {name}")
    if stuck:
        ways = ways_out(said(stuck[0].get("uid")) if many == 1 else "UID")
        listed += ["  it ends by one of these for each:", *(f"    {way}" for way in ways)]
    return "\n".join([head, pinned, *listed])


def ways_out(uid: str) -> tuple[str, str, str]:
    """What a person may do about a task that is pinned to a node which is to be empty."""
    return (f"arc tasks move {uid} --to NODE --yes", f"arc tasks set {uid} pinned=false",
            f"arc tasks cancel {uid}")  # fmt: skip


def render_fenced(data: JsonObject, look: Look) -> str:
    """What was owned again where, and what was not."""
    if data.get("refused"):
        return f"nothing was done: {said(data.get('refused'))}"
    tasks = objects(data, "tasks")
    would = "would be" if data.get("dry_run") else "is"
    owned = reowned(tasks, shorts(tasks), dry_run=bool(data.get("dry_run")))
    head = (f"{said(data.get('node'))} {would} fenced; {counted(len(tasks), 'task')} "
            "had been moved there")  # fmt: skip
    return "\n".join([head, *(f"  {line}" for line in owned), *_may_repeat(data)])


def _may_repeat(data: JsonObject) -> list[str]:
    """What stays ended, and what the hub cannot know to have ended, which therefore runs again."""
    before = int(number(data.get("ended_before")))
    stays = [f"{counted(before, 'task')} more had ended there, as the givers know: that stays so"]
    return [*(stays if before else []), *_unheard(data)]


def _unheard(data: JsonObject) -> list[str]:
    if not any(one.get("outcome") == "reowned" for one in objects(data, "tasks")):
        return []
    since = f"after {said(data.get('heard_at'))}" if data.get("heard_at") else "at any time"
    runs = "would run" if data.get("dry_run") else "runs"
    return [f"what ended there {since}, the hub has not heard of: of the reowned it {runs} again"]


def reowned(
    tasks: list[JsonObject], short: Mapping[str, str], *, dry_run: bool
) -> list[str]:  # fmt: skip
    """What became of each task that was to be owned again, and where; or would become of it."""
    return [f"{_owned(one, dry_run=dry_run)} {short[str(one['uid'])]} "
            f"{said(one.get('node'), '')} {said(one.get('because'), '')}".rstrip()
            for one in tasks]  # fmt: skip


def _owned(one: JsonObject, *, dry_run: bool) -> str:
    """What lives or has ended does so anyway."""
    outcome = said(one.get("outcome"))
    would = dry_run and outcome in ("reowned", "barred", "refused")
    return f"would be {outcome}" if would else outcome


def render_log_piece(data: JsonObject, look: Look) -> str:
    """What the program wrote, with what could drive a terminal made visible."""
    return safe_text(str(data.get("text") or ""), keep="\n\t")


def render_fleet(data: JsonObject, look: Look) -> str:
    """Each node's state after a word to all of them, and what had been said before."""
    nodes = objects(data, "nodes")
    dry_run = bool(data.get("dry_run"))
    mark = " (dry run: nothing was changed)" if dry_run else ""
    told = "would be told" if dry_run else "told"
    heard = sum(1 for one in nodes if not one.get("kept"))
    head = f"{counted(heard, 'node')} {told}{mark}"
    before = stood_before(data, dry_run=dry_run)
    lines = [f"the fleet: {before}"] if before else []
    pauses = data.get("state") == "paused"
    lines += [_kept_line(one, pauses=pauses) if one.get("kept") else
              _fleet_line(one, inside(data, "was"), dry_run=dry_run) for one in nodes]
    missed = data.get("later")
    later = [f"  {said(name)} could not be told now; the hub tells it once it is back"
             for name in (missed if isinstance(missed, list) else [])]  # fmt: skip
    return "\n".join([head, *lines, *later])


def _kept_line(one: JsonObject, *, pauses: bool) -> str:
    """A node with a word of its own, that no word for the fleet takes back; and how that ends."""
    name, state = said(one.get("node")), said(one.get("state"))
    why = f": {said(one.get('reason'))}" if one.get("reason") else ""
    how = {"paused": "was paused already", "draining": "drains already"}.get(state, f"is {state}")
    if pauses:
        return f"  {name} {how}{why}; that stays, also after arc resume"
    return f"  {name} stays {state}{why}; that was said to it alone: arc nodes resume {name}"


def _fleet_line(one: JsonObject, fleet_was: JsonObject, *, dry_run: bool) -> str:
    """A node's state, and what it had been told other than all of them."""
    verb = "would be" if dry_run else "is"
    was = inside(one, "was")
    own = any(was.get(key) != fleet_was.get(key) for key in ("state", "reason", "by"))
    before = stood_before(one, dry_run=dry_run) if own else ""
    return f"  {said(one.get('node'))} {verb} {said(one.get('state'))}" + (
        f"; {before}" if before else "")
