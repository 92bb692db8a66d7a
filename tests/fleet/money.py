"""What a story's tasks cost and how often they fail, and whether the money was kept together."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from random import Random

from agent_node import commands as c
from agent_node.budget import DAG as OF_GRAPH
from agent_node.budget import FLEET, NODE, NOTHING, Money
from agent_node.budget_words import SetBudget
from arc.hub import INBOX
from tests.builders import uid
from tests.fleet.machines import Machine

MOST = ("0.4", "0.8", "1.2")  # what a task may cost; an attempt costs a quarter of that
BORN = uid(950)  # the task that a member of the graph makes while it runs
A_DAY = "2"  # more than the dearest task asks for, and less than all of them together
KINDS = ("crash", "timeout", "invalid_output")


class Costs:
    """The prices, the failures and the limits of one story: some have none of them.

    Its dice are its own, so that a story without money is what it was before there was any.
    """

    def __init__(self, seed: int, uids: list[str], *, plain: bool) -> None:
        dice = Random(f"money {seed}")
        self.dice = dice
        plain = plain or dice.random() < 0.75
        some = [] if plain else dice.sample((NODE, FLEET, OF_GRAPH), dice.randint(1, 3))
        self.scopes = frozenset(some)
        self.most = {one: Decimal(dice.choice(MOST)) for one in uids} if some else {}
        tries = (0,) if plain else (0, 0, 0, 1, 2)
        self.failing = {one: dice.choice(tries) for one in uids}  # times, before it goes well
        self.failed: Counter[str] = Counter()
        self.ended: set[str] = set()  # whose program has come to its last end
        self.paid: dict[str, Decimal] = {}  # by task
        self.paid_at: dict[str, Decimal] = {}  # by node
        self.given: set[str] = set()  # that the hub's own queue gave to a node, once or more often
        self.paid_of_fleet = NOTHING
        if some:
            self.most[BORN] = Decimal(dice.choice(MOST))
        self.early = NOTHING  # what a child may cost that began before its home heard of it

    @property
    def attempts_max(self) -> int:
        """How often programs start, at most: a look that finds money, a time or an end starts one.

        So whoever still waits after as many looks waits for ever.
        """
        return 1 + sum(1 + times for times in self.failing.values())

    def of(self, number: str) -> dict[str, str]:
        """The fields by which this task says what it may cost."""
        return {"max_cost_usd": str(self.most[number])} if number in self.most else {}

    def for_graph(self, members: list[str]) -> dict[str, str]:
        """Enough for a graph in the end, but not for all that it asks for at once."""
        if OF_GRAPH not in self.scopes:
            return {}
        real = sum((self.most[one] / 4 * (1 + self.failing.get(one, 0)) for one in members),
                   NOTHING)  # fmt: skip
        return {"budget_usd": str(real + max(map(Decimal, MOST)))}

    def born_elsewhere(self, number: str) -> None:
        """By no more than it may cost, the graph's home may find itself over the limit."""
        self.early = self.most.get(number, NOTHING)

    def begin(self, machines: dict[str, Machine]) -> None:
        """The limits of each node and of the fleet, before any work is there."""
        for name, machine in machines.items():
            if NODE in self.scopes and name != INBOX:
                machine.spend_within(Money(A_DAY))
        if FLEET in self.scopes:
            machines[INBOX].store.apply(SetBudget(FLEET, A_DAY))

    def starts(self, number: str, machines: dict[str, Machine]) -> None:
        """Whose money it is that this attempt spends."""
        query = ("SELECT 1 FROM transfer WHERE uid = ? AND side = 'giver'"
                 " AND outcome = 'committed'")  # fmt: skip
        if machines[INBOX].store._db.execute(query, (number,)).fetchone():
            self.given.add(number)

    def result(self, number: str) -> c.Result:
        """How its program ends this time, where nothing else makes it fail."""
        cost = self._cost(number)
        if self.failed[number] < self.failing.get(number, 0):
            kind = self.dice.choice(KINDS)
            return c.Result("failed", error_kind=kind, cost_usd=cost)
        return c.Result("completed", cost_usd=cost)

    def _cost(self, number: str) -> str | None:
        return str(self.most[number] / 4) if number in self.most else None

    def ends(self, number: str, node: str, said: c.Finished, cost_usd: str | None) -> bool:
        """What the store made of that end; True: it was the last one."""
        cost = Decimal(cost_usd or 0)
        self.paid[number] = self.paid.get(number, NOTHING) + cost
        self.paid_at[node] = self.paid_at.get(node, NOTHING) + cost
        self.paid_of_fleet += cost if number in self.given else NOTHING
        if said.state == "RETRYING":
            self.failed[number] += 1
            return False
        self.ended.add(number)
        return True

    def overspent(self, machine: Machine) -> list[str]:
        """Scopes in which more is spent and reserved than the limit, on any day."""
        if not self.scopes:
            return []
        limits = dict(machine.store._db.execute("SELECT scope, limit_usd FROM budget"))
        if NODE in self.scopes and machine.name != INBOX:
            limits[NODE] = A_DAY
        rows = _spending(machine) if limits else []
        return [
            f"{machine.name}: {scope} {day} has {spent} spent and {reserved} reserved"
            f" of {limits[scope]}"
            for scope, day, spent, reserved in rows
            if scope in limits and Decimal(spent) + Decimal(reserved)
            > Decimal(limits[scope]) + (self.early if scope.startswith(OF_GRAPH) else NOTHING)
        ]

    def waits(self, machines: dict[str, Machine]) -> float | None:
        """How long time has to pass before work gets on again; None: nothing is reserved."""
        query = "SELECT EXISTS (SELECT 1 FROM unaffordable), EXISTS (SELECT 1 FROM reservation)"
        found = [machine.store._db.execute(query).fetchone() for machine in machines.values()]
        if any(poor for poor, _ in found):
            return 86_400.0
        return 0.0 if any(reserved for _, reserved in found) else None

    def faults(self, machines: dict[str, Machine], home: str, members: list[str]) -> list[str]:
        """What is still reserved once everything has ended, and what was counted wrongly."""
        if not self.scopes:
            return []
        wrong = []
        for name, machine in machines.items():
            held = machine.store._db.execute("SELECT uid, scope, away FROM reservation").fetchall()
            wrong += [f"{name} still reserves {one}" for one in held]
            rows = _spending(machine)
            wrong += [f"{name} has {reserved} reserved of {scope} {day}"
                      for scope, day, _, reserved in rows if Decimal(reserved) != 0]  # fmt: skip
            here = sum((Decimal(spent) for scope, _, spent, _ in rows if scope == NODE), NOTHING)
            real = self.paid_at.get(name, NOTHING)
            wrong += [] if here == real else [f"{name} counts {here} where {real} was spent"]
        if OF_GRAPH in self.scopes:
            rows = _spending(machines[home])
            said = sum((Decimal(row[2]) for row in rows if row[0].startswith(OF_GRAPH)), NOTHING)
            real = sum((self.paid.get(one, NOTHING) for one in members), NOTHING)
            wrong += [] if said == real else [f"the graph counts {said} where {real} was spent"]
        if FLEET in self.scopes:
            rows = _spending(machines[INBOX])
            said = sum((Decimal(row[2]) for row in rows if row[0] == FLEET), NOTHING)
            real = self.paid_of_fleet
            wrong += [] if said == real else [f"the fleet counts {said} where {real} was spent"]
        return wrong


def _spending(machine: Machine) -> list[tuple[str, str, str, str]]:
    return machine.store._db.execute("SELECT scope, day, spent, reserved FROM spending").fetchall()
