"""Lists tasks page by page, narrowed by what they are, and says how many there are in all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..narrowing import ANY
from ..queries import Listed, ListTasks
from ..task import State, Task
from .beats import as_beaten
from .dead import cares_of
from .reading import kept_whole
from .rows import WITHOUT_BODY, task_of, with_history
from .transaction import Transaction
from .turns import orders_of

Condition = tuple[str, list[object]]


def list_tasks(tx: Transaction, query: ListTasks) -> Listed:
    """One page without bodies, by seq."""
    where, values = _joined([*_conditions(query), ("seq > ?", [query.after])])
    rows = tx.db.execute(
        f"SELECT {WITHOUT_BODY} FROM task WHERE {where} ORDER BY seq LIMIT ?",
        (*values, query.limit + 1),
    ).fetchall()
    tasks = tuple(
        as_beaten(tx, with_history(tx, task_of(row))) for row in rows[: query.limit]
    )
    uids = [task.uid for task in tasks]
    care, order = cares_of(tx, uids), orders_of(tx, uids)
    if len(rows) > query.limit:
        return Listed(tasks, tasks[-1].seq, care, order, _total(tx, query))
    total = _total(tx, query, all_of_them=None if query.after else len(tasks))
    moved = _moved(tx, query, query.limit - len(tasks))
    return Listed((*tasks, *moved), None, care, order, total)


def _conditions(query: ListTasks) -> Iterator[Condition]:
    if query.states:
        yield f"state IN ({', '.join('?' * len(query.states))})", [*query.states]
    yield from _narrowing(query)


def _narrowing(query: ListTasks) -> Iterator[Condition]:
    """By an end of the uid, and by what the tasks are."""
    if query.match is not None:
        yield "(uid GLOB ? OR uid GLOB ?)", [f"{query.match}*", f"*{query.match}"]
    narrowed = query.narrowed
    for column in ("domain", "priority", "source"):
        if (value := getattr(narrowed, column)) is not None:
            yield f"{column} = ?", [value]
    if narrowed.skill is not None:
        yield "EXISTS (SELECT 1 FROM json_each(skills) WHERE value = ?)", [narrowed.skill]
    if narrowed.parent is not None:
        yield "json_extract(spec, '$.parent') = ?", [narrowed.parent]
    yield from map(_word, narrowed.subject)


def _word(word: str) -> Condition:
    """LIKE knows capitals from A to Z alone; others are looked for as they are commonly written."""
    forms = sorted({word, word.lower(), word.upper(), word.capitalize()})
    plain = [form.replace("!", "!!").replace("%", "!%").replace("_", "!_") for form in forms]
    like = " OR ".join(["subject LIKE ? ESCAPE '!'"] * len(plain))
    return f"({like})", [f"%{form}%" for form in plain]


def _joined(conditions: list[Condition]) -> Condition:
    return (" AND ".join(text for text, _ in conditions) or "true",
            [value for _, values in conditions for value in values])  # fmt: skip


def _total(
    tx: Transaction, query: ListTasks, *, all_of_them: int | None = None
) -> int | None:
    """Of all pages; a queue of 100,000 is not read twice where the first page has all of them.

    What left is not counted, for its copies say only when read what they were.
    """
    if not query.count or query.match is not None or State.MOVED in query.states:
        return None
    if all_of_them is not None:
        return all_of_them
    if query.narrowed == ANY and query.states:
        return sum(tx.count(state) for state in set(query.states))  # these are kept
    where, values = _joined([*_conditions(query)])
    (total,) = tx.db.execute(f"SELECT count(*) FROM task WHERE {where}", values).fetchone()
    return int(total)


# What a list is narrowed by, as it stands in the copies: each of them says all of this.
_KEPT = """
SELECT uid FROM (
  SELECT uid, spec, json_extract(spec, '$.subject') AS subject,
         json_extract(life, '$.domain') AS domain, json_extract(life, '$.priority') AS priority,
         json_extract(life, '$.source') AS source, json_extract(life, '$.skills') AS skills
    FROM tombstone m
   WHERE spec IS NOT NULL AND NOT EXISTS (SELECT 1 FROM task t WHERE t.uid = m.uid))
"""


def _moved(tx: Transaction, query: ListTasks, room: int) -> tuple[Task, ...]:
    """Tasks that left, from the copies that were kept: where they are asked for, or looked for. As
    many as there is room for are read, of those that fit.
    """
    wanted = State.MOVED in query.states or (query.match is not None and not query.states)
    if not wanted or room <= 0:
        return ()
    where, values = _joined([*_narrowing(query)])
    found = tx.db.execute(f"{_KEPT} WHERE {where} ORDER BY uid LIMIT ?", (*values, room)).fetchall()
    return tuple(replace(kept_whole(tx, uid), body="") for (uid,) in found)
