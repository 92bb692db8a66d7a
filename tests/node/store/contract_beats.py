"""What a store promises about heartbeats: told at once, and written now and then."""

from __future__ import annotations

from agent_node import commands as c
from agent_node import queries as q
from tests.builders import NodeAtHand, a_task, uid
from tests.node.store.contract import Contract


def beats(node: NodeAtHand, n: int = 1, progress: str | None = None) -> bool:
    return node.say(c.Beat(uid(), n, progress))


def told(node: NodeAtHand) -> tuple[object, str | None]:
    """When it last gave a sign of life, and how far it is, by whoever asks."""
    task = node.task(uid())
    assert task.claim is not None
    (listed,) = node.ask(q.ListTasks(states=(task.state,))).tasks
    assert (listed.claim, listed.progress) == (task.claim, task.progress)
    return task.claim["heartbeat_at"], task.progress


def written(node: NodeAtHand) -> tuple[object, str | None]:
    """The same, by what a restarted daemon would find."""
    node.reopen()
    return told(node)


class Beats(Contract):
    def test_a_minute_of_heartbeats_costs_one_write(self, node: NodeAtHand) -> None:
        """Fails when each beat is a durable transaction of its own."""
        node.running(a_task())
        beats(node)
        before = node.dump()
        for second in range(1, 60):
            node.clock.advance(1)
            assert beats(node)
            assert told(node)[0] == f"2026-03-10T03:45:{second:02}.000Z"
        assert node.dump() == before
        node.clock.advance(1)
        beats(node)
        assert written(node)[0] == "2026-03-10T03:46:00.000Z"

    def test_a_word_on_progress_is_told_at_once_and_written_soon(self, node: NodeAtHand) -> None:
        node.running(a_task())
        beats(node, progress="10% reading")
        node.clock.advance(1)
        beats(node, progress="20% reading")
        assert told(node)[1] == "20% reading"
        node.clock.advance(5)
        beats(node)
        assert written(node)[1] == "20% reading"

    def test_the_last_word_goes_with_the_result_and_is_kept_over_retries(
        self, node: NodeAtHand
    ) -> None:
        """Fails when what was only in memory is let go of at the end."""
        got = node.running(a_task())
        beats(node, progress="10% reading")
        beats(node, progress="90% writing")
        node.finish(got, "failed", error_kind="crash")
        node.reopen()
        assert node.task(uid()).progress == "90% writing"
        node.wake(after=60)
        node.running()
        assert node.task(uid()).progress == "90% writing"
        beats(node, n=2)
        assert told(node)[1] == "90% writing"

    def test_another_attempt_begins_its_own_count(self, node: NodeAtHand) -> None:
        got = node.running(a_task())
        beats(node)
        node.finish(got, "interrupted")
        node.running()
        assert beats(node, n=1) is False
        assert beats(node, n=2) is True

    def test_an_agent_was_last_heard_of_when_any_of_its_tasks_was(self, node: NodeAtHand) -> None:
        node.running(a_task())
        beats(node)
        node.clock.advance(7)
        beats(node)
        (agent,) = node.facts().agents
        assert agent.last_heartbeat == "2026-03-10T03:45:07.000Z"

    def test_without_a_daemon_a_beat_is_written_at_once(self, node: NodeAtHand) -> None:
        """Fails when it is kept in a memory that ends with the request."""
        node.running(a_task())
        node.dispatches(running=False)
        for text in ("1%", "2%"):
            beats(node, progress=text)
            node.clock.advance(1)
        node.close()
        node.open()
        assert told(node) == ("2026-03-10T03:45:01.000Z", "2%")
