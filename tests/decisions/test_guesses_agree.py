"""Hub and node guess alike: what a node offers as research is what the hub takes for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_node.guessing import ears_for, parse_domains
from agent_node.strict import JsonObject
from arc.decisions.domains import Domain, guessed
from tests.fleet_builders import domain_table

WORDS = st.sampled_from(["paper", "host", "Ops:", "a b", "c++", "É", "ß", "x"])
SOME = st.lists(WORDS, max_size=3).map(tuple)
SUBJECT = st.lists(
    st.sampled_from(["paper", "PAPER", "host", "ops:", "Ops: x", "a b", "c++", "é", "SS", "-"]),
    max_size=4,
).map(" ".join)


@given(prefix=st.tuples(SOME, SOME), words=st.tuples(SOME, SOME), subject=SUBJECT)
def test_the_same_table_and_subject_lead_to_the_same_guess(
    prefix: tuple[tuple[str, ...], ...], words: tuple[tuple[str, ...], ...], subject: str
) -> None:
    """The node's table stands in the order of the names; so must a draw in fleet.yaml."""
    domains = tuple(
        Domain(name, prefix=prefix[place], words=words[place])
        for place, name in enumerate(("alpha", "beta"))
    )
    table: JsonObject = domain_table(domains)
    del table["version"]

    assert ears_for(table).guess(subject) == guessed(subject, domains)
    assert parse_domains('{"version": "1"}') == {}
