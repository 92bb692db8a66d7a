"""The whole promise of a link: every way to reach a node passes these cases unchanged.

A way's test class names this one as its base and fills in `reach`: a link to a fresh node, and how
to reach that same node again as another hub. `name` is the node's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from agent_node.clock import SystemClock
from agent_node.strict import LINE_MAX, JsonObject
from agent_node.ulid import is_ulid
from arc.errors import NodeRefused, NodeUnreachable, OtherHub
from arc.links import Link
from arc.survey import survey
from tests.sensors_stage import within

NOBODY = "01TASK00000000000000000009"
STRANGE = 'quote " \\ $(reboot) `x` \u2028 \x1b[2J émoji \U0001f600 \t\n end'
Reach = Callable[..., Link]


class LinkContract:
    """Fill in `reaching`; the rest is the promise."""

    name = "iris"

    def reaching(self, place: Path) -> AbstractAsyncContextManager[Reach]:
        """A node in this place; inside, each call gives a new link to it, of the given term."""
        raise NotImplementedError

    @pytest.fixture
    async def reach(self, tmp_path: Path) -> AsyncIterator[Reach]:
        async with self.reaching(tmp_path) as reach:
            yield reach

    @pytest.fixture
    async def link(self, reach: Reach) -> AsyncIterator[Link]:
        link = reach()
        yield link
        await link.close()

    async def test_meeting_says_who_is_there(self, link: Link) -> None:
        before, met = link.met, await link.meet()
        assert before is None
        assert link.met is met
        assert (met.node, met.term, met.wire, met.old_term) == (self.name, 1, 1, "")
        assert is_ulid(met.incarnation)
        assert met.generation >= 1
        assert abs(met.clock_off_s) < 5

    async def test_the_first_question_opens_the_session_by_itself(self, link: Link) -> None:
        assert (await link.ask("status"))["node"] == self.name
        assert link.met is not None
        assert link.requests == 2  # the hello counts: it costs as much

    async def test_what_was_added_is_shown_character_for_character(self, link: Link) -> None:
        task: JsonObject = {"subject": 'a "quoted" $(subject)', "body": STRANGE}
        results = (await link.ask("add", {"tasks": [task]}))["results"]
        assert isinstance(results, list)
        assert isinstance(results[0], dict)
        assert results[0]["outcome"] == "added"
        shown = (await link.ask("show", {"uid": results[0]["uid"]}))["task"]
        assert isinstance(shown, dict)
        assert (shown["subject"], shown["body"]) == (task["subject"], STRANGE)

    async def test_a_refusal_names_the_rule_and_the_talk_goes_on(self, link: Link) -> None:
        with pytest.raises(NodeRefused) as refused:
            await link.ask("show", {"uid": NOBODY})
        assert refused.value.rule == "not_found"
        assert self.name in str(refused.value)
        assert (await link.ask("doubts")) == {"doubts": []}

    async def test_an_unknown_request_is_a_refusal_and_no_end(self, link: Link) -> None:
        with pytest.raises(NodeRefused) as refused:
            await link.ask("dance")
        assert refused.value.rule == "unknown_request"
        assert (await link.ask("status"))["node"] == self.name

    async def test_many_at_once_get_each_its_own_answer(self, link: Link) -> None:
        keys = [f"key-{n}" for n in range(40)]
        said = await asyncio.gather(
            *(link.ask("add", {"tasks": [{"subject": key, "key": key}]}) for key in keys)
        )
        uids = [said_of(one)["uid"] for one in said]
        again = await asyncio.gather(*(link.ask("show", {"uid": uid}) for uid in uids))
        assert [within(shown, "task", "key") for shown in again] == keys

    async def test_a_line_that_no_node_takes_does_not_leave(self, link: Link) -> None:
        with pytest.raises(NodeRefused) as refused:
            await link.ask("set", {"reason": "x" * LINE_MAX})
        assert refused.value.rule == "line_too_long"
        assert (await link.ask("status"))["node"] == self.name

    async def test_a_large_body_comes_back_whole(self, link: Link) -> None:
        body = "line of text\n" * 20_000
        said = await link.ask("add", {"tasks": [{"subject": "large", "body": body}]})
        shown = (await link.ask("show", {"uid": said_of(said)["uid"]}))["task"]
        assert isinstance(shown, dict)
        assert shown["body"] == body

    async def test_a_dry_run_changes_nothing(self, link: Link) -> None:
        await link.ask("add", {"tasks": [{"subject": "a trial"}], "dry_run": True})
        assert (await link.ask("list"))["tasks"] == []

    async def test_a_hub_with_an_older_term_may_read_and_change_nothing(self, reach: Reach) -> None:
        """Without the check of `met.old_term` the node itself refuses, after one more request."""
        newer = reach(term=5)
        await newer.meet()
        await newer.close()
        older = reach(term=4)
        met = await older.meet()
        assert "5" in met.old_term
        assert (await older.ask("status"))["node"] == self.name
        sent = older.requests
        with pytest.raises(OtherHub):
            await older.ask("add", {"tasks": [{"subject": "mine"}]})
        assert older.requests == sent
        assert (await older.ask("list"))["tasks"] == []
        await older.close()

    async def test_whom_we_mean_is_checked_by_the_node(self, link: Link) -> None:
        with pytest.raises(NodeRefused) as refused:
            await link.ask("add", {"tasks": [{"subject": "x"}], "incarnation": NOBODY})
        assert refused.value.rule == "other_incarnation"

    async def test_a_node_that_became_another_one_is_met_anew(self, link: Link) -> None:
        """Seen to fail when the survey closed the link to open it again: closed is for ever."""
        before = await link.meet()
        await link.ask("quarantine", {"reason": "looks odd", "incarnation": before.incarnation})
        view = await survey({self.name: link}, roles={}, clock=SystemClock())
        (seen,) = view.seen
        assert (seen.report.state, link.met) == ("quarantined", await link.meet())
        assert seen.report.incarnation != before.incarnation

    async def test_listening_to_a_node_without_news_is_fine(self, link: Link) -> None:
        await link.listen(lambda node, event: None)
        assert (await link.ask("status"))["node"] == self.name

    async def test_a_closed_link_says_so_and_closes_twice(self, link: Link) -> None:
        await link.meet()
        await link.close()
        await link.close()
        assert link.met is None
        with pytest.raises(NodeUnreachable, match="closed"):
            await link.ask("status")

    async def test_a_link_that_was_never_used_closes(self, reach: Reach) -> None:
        await reach().close()


def said_of(result: JsonObject) -> JsonObject:
    """The one result of an `add` of one task."""
    results = result["results"]
    assert isinstance(results, list)
    assert isinstance(results[0], dict)
    return results[0]
