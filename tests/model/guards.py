"""Names every guard of the protocol, and which of them the promise cannot do without."""

from __future__ import annotations

MOVING = {
    "commit_only_on_escrow": "commit moves only the row that this very transfer put in escrow",
    "activate_only_on_held": "activate wakes only the row that this very transfer holds",
    "activate_after_commit": "activate is sent only after the giver answered `committed`",
    "commit_after_hold": "commit is sent only after the taker answered `held`",
    "no_drop_by_a_clock": "a taker gives up what it holds only on proof of the abort",
    "escrow_names_its_epoch": "escrow takes the row only at the epoch that the plan named",
    "held_gives_way_to_newer": "a HELD is replaced only by a hold of a higher epoch",
    "unseen_abort_recorded": "an abort that overtook its escrow is remembered",
    "xfer_floor": "what is at or below the newest forgotten transfer is `too_old`",
}
REOWNING = {
    "bar_recorded": "a bar is a tombstone, not a question",
    "bar_keeps_the_copy": "a row that gives way to a bar stays as a kept copy",
    "reown_recorded": "a won re-own is remembered when the moves after it are forgotten",
    "disk_evidence": "an attempt's folder speaks where the database does not",
    "other_incarnation": "a command meant for an earlier incarnation changes nothing",
    "later_incarnation_refuses": "who knows of a later incarnation refuses a re-own that does not",
}
RESTORED = {
    "quarantine_on_restore": "a node on an older database runs nothing by itself",
    "new_incarnation_on_restore": "a node on an older database has a new name",
    "hearsay_outlives_restore": "what a node heard of others lies beside its database",
}
FENCED = {
    "wait_for_hello": "after a boot a task that was moved in waits for the hub",
    "wait_covers_the_offered": "after a boot so does a task that was ever offered",
    "hello_tells_the_fence": "whoever greets a node after its boot knows whether it was fenced",
    "fence_names_the_boot": "what started after the boot is not covered by a person's word",
    "new_incarnation_on_fence": "a fenced node comes back with a new name",
}
NEEDED = MOVING | REOWNING | RESTORED | FENCED

# Defence in depth: taking one of these away breaks nothing within the bounds of the searches.
SPARE = {
    "abort_raises_epoch": "a task taken back is at a new epoch",
    "refusals_recorded": "a refused hold stays refused",
    "unseen_drop_recorded": "a drop that overtook its hold is remembered",
}
# Spare while tasks only move; needed as soon as a bar, which is a tombstone, must hold.
SPARE_WITHOUT_REOWNING = {
    "hold_checks_tombstones": "a hold must be newer than every tombstone here",
}
