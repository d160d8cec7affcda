"""When the laws of a start on another program's files are asked."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments import StartLeft
from crashmq.models.laws.taking_over import (
    no_unit_of_others_is_cut,
    what_others_left_is_kept,
)


@asked(
    what_others_left_is_kept,
    on=StartLeft,
    needs=(Fact.FINDS_STORES, Fact.READS_WORKED),
    where=lambda at: at.takes_over,
)
def _ask_rec_21(at: StartLeft) -> Breaches:
    slots = at.known.setup.index_slots
    return what_others_left_is_kept.judge(at.found, at.look.image(), slots)


def _may_not_adopt(at: StartLeft) -> bool:
    known = at.known
    is_sound = not (known.is_degraded or known.setup.adopt)
    return is_sound and at.found.is_of_others


@asked(
    no_unit_of_others_is_cut,
    on=StartLeft,
    needs=(Fact.READS_WORKED,),
    where=_may_not_adopt,
)
def _ask_rec_22(at: StartLeft) -> Breaches:
    model = at.known.model
    deleted = [
        key
        for key in at.found.queue_at
        if model.dead_below(key) or model.is_unsettled(key)
    ]
    # A record is there still if only zeros behind it were cut off.
    return no_unit_of_others_is_cut.judge(at.at_full_size, at.look.image(), deleted)
