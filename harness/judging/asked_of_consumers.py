"""What is asked of consumers: what they are given, work off, tell and share out."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments_of_consumers import (
    GroupCaughtUp,
    MessageConsumed,
    OffsetKeptThen,
    OffsetTold,
    PullGoesOn,
    QueuesShared,
)
from crashmq.models.laws.consumption import (
    a_consumer_is_given_what_was_appended,
    a_full_consumer_does_not_pull,
    a_pull_goes_on,
    an_orderly_consumer_is_given_the_next_message,
    each_queue_has_one_consumer,
    every_message_is_consumed,
    no_kept_offset_is_past_the_end,
    no_offset_passes_a_message,
    nothing_is_consumed_twice,
)


def _is_orderly(at: MessageConsumed) -> bool:
    return at.is_orderly


@asked(no_offset_passes_a_message, on=OffsetTold, needs=(Fact.UNDAMAGED_LOG,))
def _ask_con_1(at: OffsetTold) -> Breaches:
    return no_offset_passes_a_message.judge(at.key, at.offset, at.passed)


@asked(no_kept_offset_is_past_the_end, on=OffsetKeptThen)
def _ask_con_9(at: OffsetKeptThen) -> Breaches:
    return no_kept_offset_is_past_the_end.judge(at.key, at.kept, at.end)


@asked(a_pull_goes_on, on=PullGoesOn)
def _ask_con_3(at: PullGoesOn) -> Breaches:
    return a_pull_goes_on.judge(at.queue, at.queue_offset, at.expected)


@asked(a_full_consumer_does_not_pull, on=PullGoesOn)
def _ask_con_8(at: PullGoesOn) -> Breaches:
    threshold = at.known.setup.pull_threshold
    return a_full_consumer_does_not_pull.judge(at.queue, at.waiting, threshold)


@asked(a_consumer_is_given_what_was_appended, on=MessageConsumed, needs=(Fact.ALONE,))
def _ask_con_4(at: MessageConsumed) -> Breaches:
    given = at.consumed
    return a_consumer_is_given_what_was_appended.judge(
        given.queue, given.queue_offset, given.record, at.appended
    )


@asked(nothing_is_consumed_twice, on=MessageConsumed)
def _ask_con_6(at: MessageConsumed) -> Breaches:
    given = at.consumed
    return nothing_is_consumed_twice.judge(
        given.queue, given.queue_offset, is_again=at.is_again
    )


@asked(
    an_orderly_consumer_is_given_the_next_message,
    on=MessageConsumed,
    where=_is_orderly,
)
def _ask_con_5(at: MessageConsumed) -> Breaches:
    given = at.consumed
    return an_orderly_consumer_is_given_the_next_message.judge(
        given.queue, given.queue_offset, at.passed
    )


@asked(each_queue_has_one_consumer, on=QueuesShared)
def _ask_con_7(at: QueuesShared) -> Breaches:
    return each_queue_has_one_consumer.judge(at.group, at.queues, at.held)


@asked(every_message_is_consumed, on=GroupCaughtUp, needs=(Fact.UNDAMAGED_LOG,))
def _ask_con_2(at: GroupCaughtUp) -> Breaches:
    return every_message_is_consumed.judge(at.key, at.left)
