"""One sensible request for each word that changes a node's queue, and how its effect is seen."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from agent_node.moves import REOWN_STEP
from tests.chaos.word_needs import WAITS, WordNeeds, an_end, settled, taken

# Each makes what it needs by words that stand before it: those have met what they were to meet.
ORDER = (
    "hello", "add", "set", "cancel", "retry", "pause", "resume", "drain", "dead_review", "resolve",
    "set_budget", "escrow", "abort", "commit", "settled", "hold", "activate", "drop", "bar",
    "reown", "submit", "joined", "graph_cancel", "ended", "alive", "artifact_put", "spawn",
    "quarantine", "release",
)  # fmt: skip
TERM = 5
HELLO = {"fleet": "chaos", "hub": "double", "term": TERM, "instance": "01J0000000000000000000000A",
         "wire": [1, 1]}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """What is asked, what its answer says, and how anybody sees that it has happened."""

    asks: dict[str, Any]
    says: str
    happened: Callable[[], bool]
    event: tuple[str, str] | None = None  # told once: by this name, with this in it
    by_hub: bool = False
    fenced: Callable[[], bool] | None = None
    """What must not be possible any more once it has happened."""
    again: int = 0  # how often more it is told where it is said twice more
    then: Callable[[], object] | None = None  # so that the others find things as they need them


class WordCases(WordNeeds):
    """A node with work of every kind, and for each word a case of its own: `case("add")`."""

    def case(self, do: str) -> Case:
        """Everything that the word needs is there; the word itself was not said."""
        found: Case = getattr(self, f"_{do}")()
        return found

    # --- who is obeyed, and the node as a whole -------------------------------------------------

    def _hello(self) -> Case:
        mark = f"term {TERM} "
        return Case(
            HELLO, f'"term": {TERM}', lambda: self._count("hub_seen", mark) > 0,
            ("hub_seen", mark), by_hub=True, fenced=self._earlier_hub_is_refused,
        )  # fmt: skip

    def _earlier_hub_is_refused(self) -> bool:
        earlier = {**HELLO, "term": TERM - 1}
        return self._cells.refused_as_hub("hello", **earlier) == "old_term"

    def _pause(self) -> Case:
        return self._stand("pause", "paused")

    def _resume(self) -> Case:
        self._ask("pause", reason="so that it can be resumed")
        return self._stand("resume", "active")

    def _drain(self) -> Case:
        after = partial(self._ask, "resume", reason="it was drained")
        return replace(self._stand("drain", "draining"), then=after)

    def _stand(self, do: str, state: str) -> Case:
        reason = f"{do}, says a test"
        return Case({"reason": reason}, f'"state": "{state}"', lambda: self._stands(state),
                    ("state_changed", reason))  # fmt: skip

    def _set_budget(self) -> Case:
        def happened() -> bool:
            scopes = self._ask("budget")["scopes"]
            return any(one["scope"] == "fleet" and one["limit_usd"] == "900" for one in scopes)

        asks = {"scope": "fleet", "limit_usd": "900"}
        return Case(asks, '"limit_usd": "900"', happened, ("budget_set", '"limit_usd": "900"'))

    def _quarantine(self) -> Case:
        self._cells.let_go()
        reason = "quarantine, says a test"
        return Case({"reason": reason}, '"state": "quarantined"',
                    lambda: self._stands("quarantined"), ("node_quarantined", reason))  # fmt: skip

    def _release(self) -> Case:
        """Of the whole node, once a person has decided about each of its tasks."""
        if not self._stands("quarantined"):
            self._cells.let_go()
            self._ask("quarantine", reason="so that it can be released")
        waiting = [one["uid"] for one in self._ask("list", states=["READY", "PARKED"], limit=1000)
                   ["tasks"]]  # fmt: skip
        if waiting:
            self._ask("resolve", uids=waiting, **{"as": "ready"}, alone=True)
        reason = "release, says a test"
        return Case({"reason": reason, "alone": True}, '"state": "active"',
                    lambda: self._stands("active"), ("node_released", reason))  # fmt: skip

    # --- a person's word on tasks ---------------------------------------------------------------

    def _add(self) -> Case:
        uid = self._cells.new_uid()
        task = self._document(uid)
        self._cells.acked.append(uid)
        return Case({"tasks": [task]}, '"outcome": "exists"', lambda: self._state(uid) == "READY",
                    ("task_added", uid))  # fmt: skip

    def _set(self) -> Case:
        uids = self._tasks(2)
        return Case({"uids": uids, "fields": {"priority": 3}, "reason": "a test"},
                    '"outcome": "changed"',
                    lambda: {self._show(uid)["priority"] for uid in uids} == {3},
                    ("task_set", uids[0]))  # fmt: skip

    def _cancel(self) -> Case:
        """One that waits, and one whose program has to be stopped."""
        (waiting,), running = self._tasks(1), self._running()
        self._cells.acked.remove(waiting)
        self._cells.stopped += [running]
        return Case({"uids": [waiting, running], "reason": "a test"}, f'"uid": "{running}"',
                    lambda: self._state(waiting) == "CANCELLED",
                    ("task_cancelled", waiting))  # fmt: skip

    def _retry(self) -> Case:
        (uid,) = self._tasks(1)
        self._ask("cancel", uid=uid, reason="so that it can be retried")
        return Case({"uid": uid, "reason": "a test"}, '"outcome": "changed"',
                    lambda: self._state(uid) == "READY", ("task_retried", uid))  # fmt: skip

    def _dead_review(self) -> Case:
        uid = self._dead_letter()

        def happened() -> bool:
            return self._ask("show", uid=uid)["care"]["reviewed"] is not None

        return Case({"uid": uid, "reason": "a test"}, '"outcome": "changed"', happened,
                    ("task_reviewed", uid), again=2)  # fmt: skip

    def _resolve(self) -> Case:
        uid = self._dead_letter()
        return Case({"uid": uid, "as": "done", "reason": "a test"}, f'"uid": "{uid}"',
                    lambda: self._state(uid) == "COMPLETED", ("task_completed", uid))  # fmt: skip

    # --- the steps of a move, and whose a task is -----------------------------------------------

    def _escrow(self) -> Case:
        (uid,) = self._tasks(1)
        asks = self._escrow_of(uid)
        return Case(asks, '"outcome": "escrowed"', lambda: self._state(uid) == "ESCROW",
                    ("task_escrowed", uid), by_hub=True,
                    then=lambda: self._say("abort", **settled(asks)))  # fmt: skip

    def _abort(self) -> Case:
        uid, asks = self._set_aside()
        return Case(settled(asks), '"outcome": "aborted"', lambda: self._state(uid) == "READY",
                    ("task_given_back", uid), by_hub=True)  # fmt: skip

    def _commit(self) -> Case:
        uid, asks = self._set_aside()
        self._cells.acked.remove(uid)
        return Case(settled(asks), '"outcome": "committed"', lambda: self._moved(uid) is not None,
                    ("task_moved", uid), by_hub=True)  # fmt: skip

    def _settled(self) -> Case:
        uid, asks = self._given_away()

        def happened() -> bool:
            moved = self._moved(uid)
            return moved is not None and bool(moved["settled"])

        return Case(settled(asks), '"outcome": "settled"', happened, by_hub=True)

    def _hold(self) -> Case:
        uid, asks = self._offer()
        return Case(asks, '"outcome": "held"', lambda: self._state(uid) == "HELD",
                    ("task_held", uid), by_hub=True,
                    then=lambda: self._say("activate", **taken(asks)))  # fmt: skip

    def _activate(self) -> Case:
        uid, asks = self._offer()
        self._say("hold", **asks)
        return Case(taken(asks), '"outcome": "activated"', lambda: self._state(uid) == "READY",
                    ("task_arrived", uid), by_hub=True)  # fmt: skip

    def _drop(self) -> Case:
        uid, asks = self._offer()
        self._say("hold", **asks)
        self._cells.acked.remove(uid)
        return Case(taken(asks), '"outcome": "dropped"', lambda: self._state(uid) == "",
                    ("task_dropped", uid), by_hub=True)  # fmt: skip

    def _bar(self) -> Case:
        """Of a task that is said to live elsewhere: here it can neither be added nor held."""
        uid, epoch = self._cells.new_uid(), REOWN_STEP + 1

        def fenced() -> bool:
            (added,) = self._ask("add", tasks=[self._document(uid)])["results"]
            (held,) = self._say("hold", **self._offer_of(uid))["results"]
            rows = [(one["uid"], one["epoch"]) for one in self._cells.node.rows("tombstone")]
            return (uid, epoch) in rows and added["outcome"] == held["outcome"] == "refused"

        asks = {"uids": [{"uid": uid, "epoch": epoch}], "fenced": []}
        return Case(asks, '"outcome": "barred"', lambda: self._count("task_barred", uid) > 0,
                    ("task_barred", uid), by_hub=True, fenced=fenced)  # fmt: skip

    def _reown(self) -> Case:
        """Of a task that was given away: it is here again, at an epoch that the other never had."""
        uid, given = self._given_away()
        self._cells.acked.append(uid)
        epoch = REOWN_STEP + 7

        def fenced() -> bool:
            (barred,) = self._say("bar", uids=[{"uid": uid, "epoch": epoch + 1}])["results"]
            (late,) = self._say("commit", **settled(given))["results"]
            return barred["outcome"] == "refused" and late["outcome"] == "committed" and here()

        def here() -> bool:
            return self._state(uid) == "READY" and self._show(uid)["epoch"] == epoch

        asks = {"uids": [{"uid": uid, "epoch": epoch}], "fenced": [], "alone": True}
        return Case(asks, '"outcome": "reowned"', here, ("task_reowned", uid), by_hub=True,
                    fenced=fenced)  # fmt: skip

    # --- graphs, files, and what a task says of itself ------------------------------------------

    def _submit(self) -> Case:
        dag, graph = self._graph()
        return Case({"graph": graph, "by": "me"}, f'"dag": "{dag}"',
                    lambda: self._dag(dag) == "running", ("dag_submitted", dag))  # fmt: skip

    def _joined(self) -> Case:
        dag, graph = self._graph()
        self._ask("submit", graph=graph, by="me")
        uid, parent = self._cells.new_uid(), graph["tasks"]["a"]["uid"]

        def happened() -> bool:
            return any(one["uid"] == uid for one in self._ask("graph", dag=dag)["tasks"])

        return Case({"tasks": [{"uid": uid, "dag": dag, "parent": parent}]},
                    '"outcome": "known"', happened, by_hub=True)  # fmt: skip

    def _graph_cancel(self) -> Case:
        """A member of it waits, and another runs."""
        dag, graph = self._graph()
        runs = self._cells.new_uid()
        graph["tasks"]["c"] = {"uid": runs, "subject": "runs", "body": self._cells.body(WAITS)}
        self._ask("submit", graph=graph, by="me")
        self._cells.acked = self._cells.acked[:-2]
        self._cells.runs(runs)
        self._cells.stopped += [runs]
        return Case({"dag": dag, "reason": "a test"}, '"state": "cancelled"',
                    lambda: self._dag(dag) == "cancelled", ("dag_cancelled", dag))  # fmt: skip

    def _ended(self) -> Case:
        """Of a task elsewhere that one here waits for."""
        uid, waits = self._waits_for_another()
        return Case({"tasks": [an_end(uid, "COMPLETED")]}, '"outcome": "known"',
                    lambda: self._state(waits) == "READY", ("task_ready", waits),
                    by_hub=True)  # fmt: skip

    def _alive(self) -> Case:
        """Of one whose bad end was told, and cancelled who waited for it."""
        uid, waits = self._waits_for_another()
        self._say("ended", tasks=[an_end(uid, "FAILED")])
        return Case({"uids": [uid]}, '"outcome": "known"', lambda: self._state(waits) == "PENDING",
                    ("task_revived", waits), by_hub=True,
                    then=lambda: self._say("ended", tasks=[an_end(uid, "COMPLETED")]))  # fmt: skip

    def _artifact_put(self) -> Case:
        content = b"what another task left\n"
        sha256 = hashlib.sha256(content).hexdigest()
        (uid,) = self._tasks(1, context_refs=[f"artifact:{sha256}"])
        asks = {"sha256": sha256, "size": len(content), "offset": 0,
                "data": base64.b64encode(content).decode()}  # fmt: skip
        return Case(asks, '"done": true', lambda: self._state(uid) == "READY",
                    ("task_ready", uid), by_hub=True)  # fmt: skip

    def _spawn(self) -> Case:
        """Said by the program that runs through it all."""
        uid = self._cells.new_uid()
        self._cells.acked.append(uid)
        token = Path(self._cells.token).read_text().strip()
        asks = {"uid": self._cells.busy, "attempt": 1, "token": token, "task": self._document(uid)}
        return Case(asks, f'"uid": "{uid}"', lambda: self._state(uid) == "READY",
                    ("task_added", uid))  # fmt: skip
