"""The node's loop: take a task, run it, record how it ended, and wait until woken."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Sequence

from .baggage import Baggage
from .clock import Clock
from .commands import Claim, Claimed, Command, Finish, Finished, Result, Started
from .config import AgentSettings, NodeSettings
from .endings import as_stalled, look_at_end, unproved
from .errands import Errands
from .errors import DiskTrouble, NodeError
from .evidence import Alive, Leftovers
from .executors import executor_of
from .failpoints import failpoint
from .floor import AGAIN_S, Floor
from .given import is_to_judge, with_inputs
from .home import Home
from .log import log
from .missing import Programs
from .other_evidence import Unseen
from .other_user import OtherUser, find_other_user
from .processes import Identity, open_pidfd
from .runs import Run, Runs
from .shims import Shims
from .spare_folder import Folders
from .starters import Starters
from .stopping import Stopping
from .store.sqlite import SqliteStore
from .strays import end_leftovers
from .validating import Validating
from .validation import is_judged
from .wardens import Wardens

_LOOKS_MAX = 200  # at leftovers that do not go, or evidence that cannot be read
_LOOK_EVERY_S = 1.0  # at an attempt whose shim has not reported


class Dispatcher:
    """Fills every agent's slots, closes each attempt once; `later` is the loop's own timer."""

    def __init__(
        self,
        store: SqliteStore,
        *,
        home: Home,
        settings: NodeSettings,
        clock: Clock,
        selector: selectors.BaseSelector,
        starters: Starters,
        later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self.store, self.runs, self.folders = store, Runs(), Folders(str(home.tasks))
        self.claiming, self.news = True, list[str]()
        self._home, self._settings, self._clock = home, settings, clock
        self._floor = Floor(home, store.live, settings, later)
        self.programs = Programs(settings, store.live, clock)
        self._starters, self._later = starters, later
        starters.on_restarted = self._starter_came_back
        self._started: list[Command[object]] = []
        self._dry: set[str] = set()  # agents for whom nothing was READY when last asked
        self.before_start: Callable[[], None] = lambda: None  # told of a claim before it runs
        self._wardens = Wardens(errands := Errands(selector, later), self.runs, starters, later)
        self._wardens.tidy_daily(agent.run_as for agent in settings.agents)
        self._stopping = Stopping(self.runs, self._wardens, later, settings.grace_s)
        self.shims = Shims(
            self.runs, selector=selector, starters=starters, stopping=self._stopping,
            wardens=self._wardens, began=self._began, close=self._close,
        )  # fmt: skip
        self._baggage = Baggage(
            store, self.runs, home=home, settings=settings, later=later, record=self._record,
            freed=self._ask_again, errands=errands)  # fmt: skip
        self._validating = Validating(
            store, home=home, settings=settings, starters=starters, later=later, look=self.look,
            record=self._record, flush=self.flush_started,
        )  # fmt: skip

    def work_may_have_come(self) -> None:
        """Something changed in the queue: every agent asks again."""
        self._dry.clear()

    def fill(self) -> None:
        """Claim for every free slot, until nothing is there for it."""
        for agent in self._claimants():
            while agent.name not in self._dry and self.runs.of(agent.name) < agent.slots:
                self._take(agent, self.store.apply(Claim(agent.name)))

    def with_free_slots(self, *, at_most: int) -> list[AgentSettings]:
        """Each agent as often as it has free slots; nobody while nothing may be claimed."""
        agents = self._claimants()
        return [one for one in agents for _ in range(self.runs.of(one.name), one.slots)][:at_most]

    def _claimants(self) -> Sequence[AgentSettings]:
        """The agents whose free slots may be filled; nobody while nothing may be claimed."""
        low = not self._may_claim() or self._floor.is_low(self.fill)
        return () if low else self.programs.there()

    def _may_claim(self) -> bool:
        return self.claiming and self._starters.are_up

    def _take(self, agent: AgentSettings, claimed: object) -> None:
        if isinstance(claimed, Claimed):
            self.begin(agent, claimed)
        else:
            self._dry.add(agent.name)

    def begin(self, agent: AgentSettings, claimed: Claimed) -> None:
        """From here on the attempt has a folder, a lock and a place in `runs`, or it has ended."""
        failpoint("dispatch.after_claim")
        task, n, boot_id = claimed.task, claimed.n, self._clock.boot_id()
        try:
            claimed = with_inputs(self.store, claimed)
            folder = self.folders.create(task.uid, n)
        except (OSError, NodeError) as error:
            self._could_not_begin(task.uid, n, agent.name, error)
            return
        run = Run(task.uid, n, agent.name, claimed.token, boot_id, folder)
        run.user = self.user_of(agent.name)
        run.max_s = task.max_s if task.max_s is not None else agent.max_s
        run.judged = task if is_judged(task.validate) else None
        self.runs.add(run)
        self._baggage.give(run, agent, claimed, lambda ready: self._start(run, agent, ready))

    def _start(self, run: Run, agent: AgentSettings, claimed: Claimed) -> None:
        """Hand it to a shim; what becomes of it is followed by evidence."""
        try:
            job = executor_of(agent).prepare(claimed, agent, run.folder, home=self._home,
                                             settings=self._settings)  # fmt: skip
            run.model = job.env.get("AGENT_TASK_MODEL", "")
            self.before_start()
            failpoint("dispatch.before_spawn")
            self._starters.hand_over(agent, job, run.folder)
            self._later(_LOOK_EVERY_S, lambda: self.look(run))  # a shim may die unheard
        except (OSError, NodeError) as error:
            log("attempt_not_started", task=run.uid, attempt=run.n, because=str(error))
            self._dry.add(agent.name)  # whatever it is, it may be so for the next task, too
            self._later(AGAIN_S, self._ask_again)
            self._look_again(run)
        failpoint("dispatch.after_spawn")

    def _could_not_begin(self, uid: str, n: int, agent: str, error: Exception) -> None:
        """No folder, so nothing ran: the task waits again, and costs nothing."""
        log("attempt_not_started", task=uid, attempt=n, because=str(error))
        self._dry.add(agent)
        self._later(AGAIN_S, self._ask_again)
        ours = isinstance(error, NodeError)
        end = Result("unproved" if ours else "requeued", message=str(error))
        self._baggage.insist([Finish(uid, n, end)], lambda: None)

    def _ask_again(self) -> None:
        self.work_may_have_come()
        self.fill()

    def _starter_came_back(self) -> None:
        """What its predecessor had been given and never reported is judged by evidence."""
        for run in self.runs:
            if run.pidfd is None:
                self._look_again(run)
        self._ask_again()

    def _began(self, run: Run, shim: Identity) -> None:
        run.started = True
        if run.judging is None:
            self.programs.started(run.agent)
            self._started.append(Started(run.uid, run.n, *shim, run.model))
            self.news.append("task_started")

    def stop(self, run: Run, why: str, *, requeue: bool = False) -> None:
        """Ask the attempt to end; its result is recorded when it has."""
        self._stopping.stop(run, why, requeue=requeue)

    def flush_started(self) -> None:
        """Write down starts that no other transaction took along."""
        if self._started:
            self.store.together(self._started)
            self._started = []

    @property
    def owes_starts(self) -> bool:
        """Whether some start has not been written down yet."""
        return bool(self._started)

    def _close(self, run: Run) -> None:
        """Record how it ended; what is not over, or cannot be read, is looked at again."""
        try:
            end = look_at_end(run)
        except (OSError, NodeError) as error:  # of this one task, which must not stop the others
            log("evidence_unreadable", task=run.uid, attempt=run.n, because=str(error))
            self._look_again(run)
            return
        if isinstance(end, Result):
            self._ended(run, end)
        else:
            self._pursue(run, end)

    def _ended(self, run: Run, end: Result) -> None:
        """What ended well may have to be judged first; its slot stays taken until then."""
        end = self.programs.excused(run, end)
        result = self._validating.judge(run, end) if is_to_judge(self.store, run) else end
        if result is not None:
            self._baggage.take(run, as_stalled(run, result))

    def _pursue(self, run: Run, evidence: Alive | Leftovers | Unseen) -> None:
        """Not over yet: follow the shim, or end what it left behind, and look again."""
        if isinstance(evidence, Unseen):
            if not self._wardens.look_later(run, self._close):
                self._record(run, unproved(run, evidence.why))
        elif isinstance(evidence, Alive):
            self._follow(run, evidence)
        else:
            log("leftovers_killed", task=run.uid, attempt=run.n, because=evidence.how)
            end_leftovers(evidence)
            self._look_again(run)

    def _follow(self, run: Run, found: Alive) -> None:
        """Until its shim has signed in, it may have been stopped on its way, and is woken."""
        run.signed_in = found.signed_in
        if found.shim is not None and run.pidfd is None:
            pidfd = open_pidfd(found.shim)
            if pidfd is not None:
                self.shims.watch(run, found.shim, pidfd)
        if run.pidfd is None or not run.signed_in:
            self._wardens.wake(run, self.look)

    def _look_again(self, run: Run) -> None:
        run.looks += 1
        if run.looks > _LOOKS_MAX:
            self._record(run, unproved(run, "it neither ended nor could be ended"))
            return
        self._later(min(0.01 * run.looks, 0.2), lambda: self.look(run))

    def look(self, run: Run) -> None:
        """See how an attempt stands that nothing else will tell us about."""
        followed = run.pidfd is not None and run.signed_in
        if self.runs.find(run.uid, run.n) is run and not followed:
            self._close(run)

    def _record(self, run: Run, result: Result) -> None:
        """One transaction ends this attempt and claims the next for the slot it leaves."""
        if self.runs.find(run.uid, run.n) is not run:
            return  # it was recorded while this waited for the disk
        then = self._next_claim(run)
        commands: list[Command[object]] = [*self._started, Finish(run.uid, run.n, result, then)]
        try:
            *_, finished = self.store.together(commands)
        except DiskTrouble as error:
            log("result_waits", task=run.uid, attempt=run.n, because=str(error))
            self._later(1.0, lambda: self._record(run, result))
            return
        self._started = []
        self.shims.recorded(run)
        self.runs.remove(run)
        self.store.live.stalled.pop(run.uid, None)
        self.news.append("task_finished")
        if isinstance(finished, Finished):
            self._recorded(run, finished)

    def _next_claim(self, run: Run) -> str | None:
        agent = self.programs.of(run.agent)
        others = self.runs.of(run.agent) - 1
        free = agent is not None and others < agent.slots and run.agent not in self._dry
        return run.agent if self._may_claim() and free and not self._floor.was_low else None

    def user_of(self, agent: str) -> OtherUser | None:
        """Whom this agent's tasks run as; None: the node's own user, or nobody knows any more."""
        found = self._settings.agent(agent)
        return find_other_user(found.run_as) if found and found.run_as else None

    def _recorded(self, run: Run, finished: Finished) -> None:
        event = "attempt_ended" if finished.accepted else "result_refused"
        why = finished.because.text if finished.because else finished.state
        log(event, task=run.uid, attempt=run.n, because=why)
        agent = self._settings.agent(run.agent)
        if agent is not None and finished.next is not None:
            self._take(agent, finished.next)
