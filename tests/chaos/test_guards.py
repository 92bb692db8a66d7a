"""Guards of the hub double itself: it must not do what the protocol forbids a hub to do."""

from __future__ import annotations

from random import Random

from tests.chaos.hub import HubDouble, Side, new_ulid
from tests.node.daemon.conftest import MakeNode


def test_an_escrow_that_nobody_holds_is_called_off(make_node: MakeNode) -> None:
    """Fails when a hub that finds an escrow commits it without having heard `held`."""
    homes = [make_node(name) for name in ("iris", "loom")]
    dice = Random("guards")
    uid = new_ulid(dice)
    iris = Side(homes[0].home, homes[0].env)
    iris.ask("add", tasks=[{"uid": uid, "subject": "stays", "body": "true"}])
    iris.close()
    hub = HubDouble([node.home for node in homes], homes[0].env, dice, gives_up=1.0)
    hub.open()
    while not hub.settle():
        hub.move()
    hub.close()
    iris = Side(homes[0].home, homes[0].env)
    state = iris.ask("show", uid=uid)["task"]["state"]
    iris.close()
    assert (state, hub.stranded) == ("READY", [])
