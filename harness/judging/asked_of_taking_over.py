"""When the laws of a start on another program's files are asked."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments import StartLeft
from crashmq.models.laws.taking_over import what_others_left_is_kept


@asked(
    what_others_left_is_kept,
    on=StartLeft,
    needs=(Fact.FINDS_STORES, Fact.READS_WORKED),
    where=lambda at: at.takes_over,
)
def _ask_rec_21(at: StartLeft) -> Breaches:
    slots = at.known.setup.index_slots
    return what_others_left_is_kept.judge(at.found, at.look.image(), slots)
