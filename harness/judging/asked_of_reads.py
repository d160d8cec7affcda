"""When the laws of pulls, queries, lookups and searches are asked.

The log is judged by laws of its own, so these laws take the dispatched records in its
image as correct.
"""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.knowledge import DISPATCHED
from crashmq.models.knowledge.matching import fitting_records, is_indexed
from crashmq.models.knowledge.moments import (
    LookOver,
    Moment,
    PullAround,
    PullOver,
    PutAround,
    QueryAround,
    QueryOver,
    SearchAround,
    SearchOver,
)
from crashmq.models.laws.around import (
    pull_goes_around,
    put_spares_what_is_damaged,
    query_goes_around,
    search_goes_around,
)
from crashmq.models.laws.marks import served_is_confirmed
from crashmq.models.laws.querying import (
    queried_messages_are_right,
    query_finds_what_a_walk_finds,
)
from crashmq.models.laws.reading import (
    looked_up_message_is_right,
    pull_is_answered_right,
    pulled_messages_are_right,
    searched_time_is_found,
    told_times_are_right,
)
from crashmq.models.ops import Capability


def _log_end(at: Moment) -> int:
    """Where the log ends, with a BLANK."""
    stands = at.known.positions
    return at.known.model.end if stands is None else stands.max_phy_offset


@asked(
    pulled_messages_are_right,
    on=PullOver,
    needs=(Fact.WRITTEN_STAYS, Fact.TOPIC_STAYS, Fact.CONTENT_IS_KNOWN),
)
def _ask_rd_1(at: PullOver) -> Breaches:
    pull = at.pull
    gone_below = 0 if at.step.is_alone else at.known.model.may_expire
    return pulled_messages_are_right.judge(
        at.pulled,
        pull.queue_offset,
        at.queue,
        pull.tags,
        gone_below,
        as_bodies=Capability.STORES_AS_ROCKETMQ not in at.known.capabilities,
    )


def _serves_what_is_to_be_confirmed(at: PullOver) -> bool:
    stands = at.known.positions
    says = stands is not None and stands.confirm_offset >= 0
    return says and bool(at.pulled.messages and at.queue)


@asked(
    served_is_confirmed,
    on=PullOver,
    needs=(
        Fact.TELLS_POSITIONS,
        Fact.CONTENT_IS_KNOWN,
        Fact.WRITTEN_STAYS,
        Fact.TOPIC_STAYS,
    ),
    where=_serves_what_is_to_be_confirmed,
)
def _ask_fl_7(at: PullOver) -> Breaches:
    stands = at.known.positions
    assert stands is not None
    first = at.pull.queue_offset - at.queue[0].queue_offset
    served = at.queue[first : first + len(at.pulled.messages)]
    return served_is_confirmed.judge(
        at.pull.queue_offset, served, stands.confirm_offset
    )


_NO_FILES = 1 << 40


def _page(at: PullOver) -> int:
    """The number of units of a queue after which a pull must, or may, stop.

    RocketMQ's pulls end with a queue file. Another store may stop anywhere if it says
    so; then it must return all that matches up to there.
    """
    if Capability.STORES_AS_ROCKETMQ in at.known.capabilities:
        return at.known.setup.queue_file_units
    begin, end = at.pull.queue_offset, at.pulled.next_begin_offset
    queue = at.known.model.visible((at.pull.topic, at.pull.queue_id))
    return end if begin < end <= queue.max_offset else _NO_FILES


@asked(
    pull_is_answered_right,
    on=PullOver,
    needs=(
        Fact.WRITTEN_STAYS,
        Fact.TOPIC_STAYS,
        Fact.ALONE,
        Fact.QUEUE_IS_SETTLED,
        Fact.CONTENT_IS_KNOWN,
        Fact.READING_IS_KNOWN,
    ),
)
def _ask_rd_2(at: PullOver) -> Breaches:
    pull, setup = at.pull, at.known.setup
    return pull_is_answered_right.judge(
        at.pulled,
        pull.queue_offset,
        pull.max_msg_nums,
        at.known.model.visible((pull.topic, pull.queue_id)),
        _page(at),
        pull.tags,
        _log_end(at) - setup.in_memory_size,
    )


def _times(at: QueryOver) -> tuple[int, int]:
    epoch_ms = at.look.epoch_ms
    return epoch_ms + at.query.begin_ms, epoch_ms + at.query.end_ms


@asked(queried_messages_are_right, on=QueryOver, needs=(Fact.WRITTEN_STAYS,))
def _ask_ix_1(at: QueryOver) -> Breaches:
    record_at = at.look.image().commit_log.record_at
    query = at.query
    return queried_messages_are_right.judge(
        at.queried, query.topic, query.key, _times(at), record_at
    )


@asked(
    query_finds_what_a_walk_finds,
    on=QueryOver,
    needs=(Fact.WRITTEN_STAYS, Fact.ALONE, Fact.QUEUE_IS_SETTLED),
)
def _ask_ix_2(at: QueryOver) -> Breaches:
    known, query, log = at.known, at.query, at.look.image().commit_log
    model, reput = known.model, known.model.reput_from_offset
    fitting = fitting_records(log, log.records, query, _times(at))
    sure = [r for r in fitting if is_indexed(r, query.key, model, reput)]
    possible = sure
    if not known.works(DISPATCHED) or known.setup.disk_capacity > 0:
        # A record may be half dispatched: indexed by some of its keys.
        possible = [r for r in fitting if r in sure or r.phy_offset == reput]
    return query_finds_what_a_walk_finds.judge(
        at.queried,
        query.max_num,
        [record.phy_offset for record in sure],
        [record.phy_offset for record in possible],
    )


@asked(looked_up_message_is_right, on=LookOver, needs=(Fact.WRITTEN_STAYS, Fact.ALONE))
def _ask_rd_3(at: LookOver) -> Breaches:
    return looked_up_message_is_right.judge(
        at.looked, at.look_up.phy_offset, at.messages
    )


SURE_SEARCH = (Fact.WRITTEN_STAYS, Fact.ALONE, Fact.QUEUE_IS_SETTLED)


@asked(searched_time_is_found, on=SearchOver, needs=SURE_SEARCH)
def _ask_rd_4(at: SearchOver) -> Breaches:
    timestamp = at.look.epoch_ms + at.search.at_ms
    return searched_time_is_found.judge(
        at.searched, timestamp, at.search.boundary, at.first, at.times
    )


@asked(
    told_times_are_right,
    on=SearchOver,
    needs=SURE_SEARCH,
    where=lambda at: not at.known.model.buffers_appends,
)
def _ask_rd_8(at: SearchOver) -> Breaches:
    records = at.look.image().commit_log.records
    earliest = records[0].store_timestamp if records else -1
    return told_times_are_right.judge(at.searched, at.first, at.times, earliest)


@asked(pull_goes_around, on=PullAround, needs=(Fact.WRITTEN_STAYS,))
def _ask_rd_6(at: PullAround) -> Breaches:
    model, is_alone = at.known.model, at.step.is_alone
    queue = model.queues.get((at.pull.topic, at.pull.queue_id), [])
    reput = model.reput_from_offset if is_alone else -1
    gone_below = model.log_min if is_alone else model.may_expire
    return pull_goes_around.judge(at.pull, at.pulled, queue, reput, gone_below)


@asked(put_spares_what_is_damaged, on=PutAround, needs=(Fact.WRITTEN_STAYS,))
def _ask_put_6(at: PutAround) -> Breaches:
    return put_spares_what_is_damaged.judge(at.answer, at.known.tampering.degraded)


# The disk may have failed between two listings of one record, or been full.
SURE_AROUND = (Fact.WRITTEN_STAYS, Fact.ALONE, Fact.DISK_WORKED)


def _has_room(at: SearchAround | QueryAround) -> bool:
    return not at.known.setup.disk_capacity


@asked(search_goes_around, on=SearchAround, needs=SURE_AROUND, where=_has_room)
def _ask_rd_10(at: SearchAround) -> Breaches:
    return search_goes_around.judge(
        at.searched,
        at.look.epoch_ms + at.search.at_ms,
        at.search.boundary,
        at.times,
        at.ready,
        at.earliest,
    )


@asked(query_goes_around, on=QueryAround, needs=SURE_AROUND, where=_has_room)
def _ask_ix_10(at: QueryAround) -> Breaches:
    return query_goes_around.judge(at.queried, at.query.max_num, at.indexed)
