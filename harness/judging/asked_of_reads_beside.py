"""When the laws of reads that overlap other ops are asked.

The bounds of each answer follow from what was known when it was asked and when it was
answered, whatever else the step did, even if it ended in a crash.
"""

from __future__ import annotations

from bisect import bisect_left

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.appended import Appended, differs, differs_from_message
from crashmq.models.files.store_image import Record
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments import (
    FilteredPullBounded,
    LookBeside,
    PullBeside,
    PullSeenBefore,
    QueryBeside,
    SearchBeside,
)
from crashmq.models.knowledge.reference import ReferenceModel
from crashmq.models.laws.between import (
    filtered_pull_sees_a_moment,
    lookup_sees_a_moment,
    pull_sees_a_moment,
    query_misses_nothing,
    query_returns_what_was_put,
    reads_never_go_back,
    search_sees_a_moment,
)
from crashmq.models.laws.querying import queried_messages_are_right

SURE = (Fact.WRITTEN_STAYS,)


@asked(pull_sees_a_moment, on=PullBeside, needs=SURE)
def _ask_rd_5(at: PullBeside) -> Breaches:
    return pull_sees_a_moment.judge(
        at.pulled, at.pull, at.queues, at.known.setup.queue_file_units
    )


@asked(filtered_pull_sees_a_moment, on=FilteredPullBounded, needs=SURE)
def _ask_rd_14(at: FilteredPullBounded) -> Breaches:
    return filtered_pull_sees_a_moment.judge(
        at.pulled, at.pull, at.queues, at.known.setup.queue_file_units
    )


@asked(reads_never_go_back, on=PullSeenBefore, needs=SURE)
def _ask_rd_13(at: PullSeenBefore) -> Breaches:
    return reads_never_go_back.judge(at.pulled, at.pull, at.seen)


@asked(lookup_sees_a_moment, on=LookBeside, needs=SURE)
def _ask_rd_11(at: LookBeside) -> Breaches:
    appended = _appended_at(at.model, at.look_up.phy_offset)
    return lookup_sees_a_moment.judge(
        at.looked, at.look_up, appended, at.log, at.rivals
    )


@asked(search_sees_a_moment, on=SearchBeside, needs=SURE)
def _ask_rd_12(at: SearchBeside) -> Breaches:
    timestamp = at.look.epoch_ms + at.search.at_ms
    return search_sees_a_moment.judge(
        at.searched, timestamp, at.search.boundary, at.met, at.firsts
    )


@asked(query_misses_nothing, on=QueryBeside, needs=(*SURE, Fact.TOPIC_STAYS))
def _ask_ix_11(at: QueryBeside) -> Breaches:
    return query_misses_nothing.judge(at.queried, at.query.max_num, at.sure)


@asked(query_returns_what_was_put, on=QueryBeside, needs=SURE)
def _ask_ix_12(at: QueryBeside) -> Breaches:
    def was_put(record: Record) -> bool:
        appended = _appended_at(at.model, record.phy_offset)
        if appended is not None:
            return not differs(record, appended)
        return any(not differs_from_message(record, one) for one in at.rivals)

    return query_returns_what_was_put.judge(at.queried, at.query.max_num, was_put)


# Of a step that goes on it is asked with the log as it is after it.
@asked(
    queried_messages_are_right,
    on=QueryBeside,
    needs=SURE,
    where=lambda at: at.step.crash is not None,
)
def _ask_ix_1(at: QueryBeside) -> Breaches:
    query = at.query
    return queried_messages_are_right.judge(
        at.queried, query.topic, query.key, at.times, {}
    )


def _appended_at(model: ReferenceModel, phy_offset: int) -> Appended | None:
    """The message that was appended there, even if it has expired since."""
    messages = model.messages
    n = bisect_left(messages, phy_offset, key=_begin_of)
    is_begin = n < len(messages) and messages[n].phy_offset == phy_offset
    return messages[n] if is_begin else None


def _begin_of(appended: Appended) -> int:
    return appended.phy_offset
