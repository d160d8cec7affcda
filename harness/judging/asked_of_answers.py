"""When the laws of puts, deletions and raised errors are asked."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, Checks, asked, asked_together
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments import (
    AfterFailedFlush,
    CheckedReads,
    DeletionOver,
    DeletionRefused,
    OpOver,
    PutOver,
    PutsOrdered,
    PutsOver,
    StatisticsSeen,
)
from crashmq.models.knowledge.start_over import reads_in_a_window
from crashmq.models.laws.deletion import a_full_disk_takes_no_put, no_put_fills_the_disk
from crashmq.models.laws.marks import acknowledged_is_flushed
from crashmq.models.laws.putting import (
    batch_is_put_as_one,
    gave_up,
    no_put_after_a_failed_flush,
    put_is_refused_for_a_reason,
    put_is_told_its_id,
    put_takes_the_next_place,
    puts_lie_in_the_order_they_were_made,
    who_waits_is_answered,
)
from crashmq.models.laws.reading import pulled_messages_prove_themselves
from crashmq.models.laws.run import nothing_is_held, nothing_unnamed_is_raised
from crashmq.models.laws.statistics import statistics_count_what_was_put
from crashmq.models.laws.topic_deletion import (
    deletion_ends_where_the_log_did,
    deletion_is_refused_with_reason,
)
from crashmq.models.observations import Pulled, Put, Stopped


@asked(nothing_unnamed_is_raised, on=OpOver)
def _ask_run_1(at: OpOver) -> Breaches:
    setup, step = at.known.setup, at.step
    # What no start has read may turn out to be unreadable later.
    is_unread = step.is_unreadable and reads_in_a_window(setup)
    may_raise = step.fails_calls or at.known.promises.errors_come_late or is_unread
    return nothing_unnamed_is_raised.judge(
        step.raised, may_raise, setup.disk_capacity > 0
    )


@asked(
    nothing_is_held,
    on=OpOver,
    needs=(Fact.TELLS_WHAT_IT_HOLDS,),
    # A crash ends the process, and with it all that it holds.
    where=lambda at: bool(at.step.starts) and at.step.crash is None,
)
def _ask_run_2_at_op_over(at: OpOver) -> Breaches:
    not_started = Stopped(clean=False, left_open=at.step.still_held)
    return nothing_is_held.judge(not_started)


@asked_together(
    (pulled_messages_prove_themselves,),
    on=CheckedReads,
    needs=(Fact.STORES_AS_ROCKETMQ,),
)
def _ask_rd_9(at: CheckedReads, checks: Checks) -> None:
    for _, answer in at.step.reads:
        if isinstance(answer, Pulled):
            pulled_messages_prove_themselves.hold(checks, answer)


@asked(
    who_waits_is_answered,
    on=PutsOver,
    needs=(Fact.HAS_CLOCK, Fact.LIVES, Fact.NOT_STOPPING),
)
def _ask_put_7(at: PutsOver) -> Breaches:
    waited_ms, stalled_ms = at.step.longest_wait_ms, at.step.stalled_ms
    return who_waits_is_answered.judge(waited_ms, stalled_ms)


@asked_together(
    (batch_is_put_as_one,),
    on=PutsOver,
    needs=(Fact.STORES_AS_ROCKETMQ, Fact.PUTS_BATCHES),
)
def _ask_put_3(at: PutsOver, checks: Checks) -> None:
    step, known = at.step, at.known
    may_refuse = known.may_refuse_puts(step) or known.expiry.is_tight(step.world)
    for messages, answer in step.batches:
        if answer.status != "UNKNOWN_ERROR":
            excused = may_refuse or _has_another_reason(answer, at)
            batch_is_put_as_one.hold(
                checks, messages, answer, known.setup, may_refuse=excused
            )


def _has_another_reason(answer: Put, at: PutsOver | PutOver) -> bool:
    """Whether a put may be unacknowledged for a reason other than the disk.

    A store that stops refuses puts; those it accepted before are synced and answered.
    """
    stops = at.step.is_stopping and answer.status != "FLUSH_DISK_TIMEOUT"
    return stops or gave_up(answer, at.step.stalled_ms)


@asked(deletion_ends_where_the_log_did, on=DeletionOver)
def _ask_del_10(at: DeletionOver) -> Breaches:
    return deletion_ends_where_the_log_did.judge(
        at.dead_below, at.lowest, at.highest, had_messages=at.had_messages
    )


@asked(
    deletion_is_refused_with_reason,
    on=DeletionRefused,
    needs=(
        *(Fact.LIVES, Fact.NOT_STOPPING, Fact.DISK_WORKED, Fact.DISK_WORKS),
        Fact.HAD_ROOM,
    ),
)
def _ask_del_16(at: DeletionRefused) -> Breaches:
    return deletion_is_refused_with_reason.judge(at.why)


@asked(put_takes_the_next_place, on=PutOver, needs=(Fact.CONTENT_IS_KNOWN,))
def _ask_put_1(at: PutOver) -> Breaches:
    return put_takes_the_next_place.judge(
        at.answer,
        at.known.model.end,
        at.place,
        at.next_queue_offset,
        at.size,
        at.unseen,
    )


@asked(
    put_is_told_its_id,
    on=PutOver,
    needs=(Fact.STORES_AS_ROCKETMQ,),
    where=lambda at: at.message.batch is None,
)
def _ask_put_5(at: PutOver) -> Breaches:
    return put_is_told_its_id.judge(at.message, at.answer)


@asked(
    put_is_refused_for_a_reason,
    on=PutOver,
    needs=(Fact.STORES_AS_ROCKETMQ,),
    where=lambda at: at.message.batch is None,
)
def _ask_put_2(at: PutOver) -> Breaches:
    sizes = (at.size, at.known.model.properties_size(at.message))
    return put_is_refused_for_a_reason.judge(
        at.message,
        at.answer,
        at.known.setup,
        sizes,
        may_refuse=at.may_refuse or _has_another_reason(at.answer, at),
    )


# It is its cleaner that decides when it is full.
FILLED = (Fact.STORES_AS_ROCKETMQ, Fact.HAS_ROOM, Fact.TURNS_SERVICES)


@asked(
    a_full_disk_takes_no_put,
    on=PutOver,
    needs=(*FILLED, Fact.ALONE),
    where=lambda at: at.known.expiry.must_be_full,
)
def _ask_del_6(at: PutOver) -> Breaches:
    return a_full_disk_takes_no_put.judge(at.answer)


def _made_a_file(at: PutOver) -> bool:
    grown = at.step.world.used - at.known.expiry.used
    return at.step.world.total > 0 and grown >= at.known.setup.log_file_size


@asked(
    no_put_fills_the_disk,
    on=PutOver,
    needs=(*FILLED, Fact.ALONE, Fact.KNEW_POSITIONS),
    where=_made_a_file,
)
def _ask_del_12(at: PutOver) -> Breaches:
    stood, world = at.known.positions, at.step.world
    assert stood is not None
    size = at.known.setup.log_file_size
    return no_put_fills_the_disk.judge(
        at.answer, stood.max_phy_offset, size, world.used, world.total
    )


def _knows_its_flush(at: PutOver) -> bool:
    """Whether the flushed position at the put's answer is known."""
    step = at.step
    lives = step.crash is None and not step.is_stopping
    return at.waits_for_sync and (at.answer.flushed_where >= 0 or lives)


@asked(
    acknowledged_is_flushed,
    on=PutOver,
    needs=(Fact.TELLS_POSITIONS,),
    where=_knows_its_flush,
)
def _ask_fl_2(at: PutOver) -> Breaches:
    return acknowledged_is_flushed.judge(at.answer, at.now)


@asked(puts_lie_in_the_order_they_were_made, on=PutsOrdered)
def _ask_put_4(at: PutsOrdered) -> Breaches:
    return puts_lie_in_the_order_they_were_made.judge(at.spans)


@asked_together(
    (no_put_after_a_failed_flush,),
    on=AfterFailedFlush,
    where=lambda at: "flush_commit_log" in at.failed and not at.step.starts,
)
def _ask_put_8(at: AfterFailedFlush, checks: Checks) -> None:
    for _, answer in at.step.puts:
        if answer is not None:
            no_put_after_a_failed_flush.hold(checks, answer)


@asked(statistics_count_what_was_put, on=StatisticsSeen, needs=(Fact.ANSWERS_ALL,))
def _ask_st_1(at: StatisticsSeen) -> Breaches:
    model = at.known.model
    return statistics_count_what_was_put.judge(
        at.seen, model.put_by_topic, model.puts, model.put_times_ms
    )
