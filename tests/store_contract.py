"""The whole promise of a task store: every backend passes these cases unchanged.

A backend's test class names this one as its base and fills in four methods: how its store is
opened, how somebody else reads all its tables, and how a test damages it. With a fifth it may say
what it would never find again by itself.
"""

from __future__ import annotations

from tests.node.store.contract_add import TakesWork
from tests.node.store.contract_beats import Beats
from tests.node.store.contract_candidates import Chooses
from tests.node.store.contract_care import Cares
from tests.node.store.contract_changes import KeepsToTheTable
from tests.node.store.contract_claim import Claims
from tests.node.store.contract_finish import Finishes
from tests.node.store.contract_forget import Forgets
from tests.node.store.contract_giver import Gives
from tests.node.store.contract_graphs import (
    CancelsGraphs,
    ForgetsGraphs,
    GivesInputs,
    HearsOfEndsElsewhere,
    KeepsGraphs,
    KeepsGraphsThroughAFence,
    PutsBack,
    TakesEndsBack,
)
from tests.node.store.contract_quarantine import Quarantines
from tests.node.store.contract_reown import Reowns
from tests.node.store.contract_repeats import Repeats
from tests.node.store.contract_retry import Retries
from tests.node.store.contract_senders import KnowsSenders
from tests.node.store.contract_taker import Takes
from tests.node.store.contract_words import Obeys


class StoreContract(
    TakesWork,
    Claims,
    Finishes,
    Retries,
    Cares,
    Beats,
    Obeys,
    Chooses,
    KeepsToTheTable,
    Gives,
    Takes,
    Repeats,
    KnowsSenders,
    Quarantines,
    Reowns,
    Forgets,
    KeepsGraphs,
    KeepsGraphsThroughAFence,
    TakesEndsBack,
    CancelsGraphs,
    HearsOfEndsElsewhere,
    GivesInputs,
    PutsBack,
    ForgetsGraphs,
):
    """Every promise in one class."""
