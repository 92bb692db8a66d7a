"""What the cases of the words lean on: work of every kind, and what is seen of it from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_node.spec import hash_of, spec_of
from agent_node.task import task_from

if TYPE_CHECKING:
    from tests.chaos.word_cells import WordCells

PEER = "loom"
WRITES = 'echo "$AGENT_TASK_UID" >> {ledger}'
WAITS = 'echo "$AGENT_TASK_UID" >> {ledger}; read x < {gate}'


class WordNeeds:
    """A node of these cells, as a person and as the hub that it obeys."""

    def __init__(self, cells: WordCells) -> None:
        self._cells = cells

    def _ask(self, do: str, **fields: Any) -> dict[str, Any]:
        return self._cells.talk(by_hub=False).ask(do, **fields)

    def _say(self, do: str, **fields: Any) -> dict[str, Any]:
        return self._cells.talk(by_hub=True).ask(do, **fields)

    def _stands(self, state: str) -> bool:
        """A node on which nothing runs that is told to drain is drained at once."""
        said = str(self._ask("status")["state"])
        return state == ("draining" if said == "drained" else said)

    def _show(self, uid: str) -> dict[str, Any]:
        task: dict[str, Any] = self._ask("show", uid=uid)["task"]
        return task

    def _state(self, uid: str) -> str:
        return self._cells.state(uid)

    def _dag(self, dag: str) -> str:
        known = [one for one in self._ask("graphs", limit=1000)["dags"] if one["id"] == dag]
        return str(known[0]["state"]) if known else ""

    def _moved(self, uid: str) -> dict[str, Any] | None:
        found: list[dict[str, Any]] = self._ask("moved", limit=1000)["moved"]
        return next((one for one in found if one["uid"] == uid), None)

    def _count(self, event: str, mark: str) -> int:
        return self._cells.count(event, mark)

    def _document(self, uid: str, **fields: Any) -> dict[str, Any]:
        """It waits until the end: nobody here can do it yet."""
        return {"uid": uid, "subject": "write it down", "body": self._cells.body(WRITES),
                "needs": ["later"], **fields}  # fmt: skip

    def _tasks(self, count: int, **fields: Any) -> list[str]:
        uids = [self._cells.new_uid() for _ in range(count)]
        documents = [self._document(uid, **fields) for uid in uids]
        results = self._ask("add", tasks=documents)["results"]
        assert {one["outcome"] for one in results} == {"added"}, results
        self._cells.acked += uids
        return uids

    def _running(self) -> str:
        uid = self._cells.new_uid()
        body = self._cells.body(WAITS)
        self._ask("add", tasks=[{"uid": uid, "subject": "runs", "body": body}])
        self._cells.runs(uid)
        return uid

    def _dead_letter(self) -> str:
        uid = self._cells.new_uid()
        self._ask("add", tasks=[{"uid": uid, "subject": "fails", "body": "exit 1",
                                 "max_attempts": 1}])  # fmt: skip
        self._cells.node.until(uid, "DEAD_LETTERED")
        return uid

    def _escrow_of(self, uid: str) -> dict[str, Any]:
        move = {"xfer": self._cells.new_uid(), "uid": uid, "epoch": 1}
        return {"to": PEER, "why": "moved", "lease_s": 900, "moves": [move]}

    def _set_aside(self) -> tuple[str, dict[str, Any]]:
        (uid,) = self._tasks(1)
        asks = self._escrow_of(uid)
        assert self._say("escrow", **asks)["results"][0]["outcome"] == "escrowed"
        return uid, asks

    def _given_away(self) -> tuple[str, dict[str, Any]]:
        uid, asks = self._set_aside()
        assert self._say("commit", **settled(asks))["results"][0]["outcome"] == "committed"
        self._cells.acked.remove(uid)
        return uid, asks

    def _offer(self) -> tuple[str, dict[str, Any]]:
        uid = self._cells.new_uid()
        self._cells.acked.append(uid)
        return uid, self._offer_of(uid)

    def _offer_of(self, uid: str) -> dict[str, Any]:
        document = {**self._document(uid), "epoch": 4, "created_at": None}
        sha256 = hash_of(spec_of(task_from(document)))
        move = {"xfer": self._cells.new_uid(), "task": document, "sha256": sha256}
        return {"from": PEER, "why": "moved", "moves": [move]}

    def _graph(self) -> tuple[str, dict[str, Any]]:
        dag, first, second = (self._cells.new_uid() for _ in range(3))
        self._cells.acked += [first, second]
        tasks = {"a": self._document(first), "b": {**self._document(second), "after": ["a"]}}
        return dag, {"id": dag, "title": "two", "tasks": tasks}

    def _waits_for_another(self) -> tuple[str, str]:
        """A task elsewhere, which only a hub can know of, and one here that waits for it."""
        self._cells.talk(by_hub=True)
        uid = self._cells.new_uid()
        (waits,) = self._tasks(1, depends_on=[{"uid": uid}])
        assert self._state(waits) == "PENDING"
        return uid, waits


def settled(escrow: dict[str, Any]) -> dict[str, Any]:
    (move,) = escrow["moves"]
    return {"moves": [{"xfer": move["xfer"], "uid": move["uid"], "peer": PEER}]}


def taken(hold: dict[str, Any]) -> dict[str, Any]:
    (move,) = hold["moves"]
    return {"moves": [{"xfer": move["xfer"], "uid": move["task"]["uid"], "peer": PEER}]}


def an_end(uid: str, state: str) -> dict[str, Any]:
    return {"uid": uid, "state": state, "node": PEER, "at": "2026-03-10T03:40:00.000Z"}
