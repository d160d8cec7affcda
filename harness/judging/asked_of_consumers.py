"""What is asked of consumers: what they are given, work off, tell and share out."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments_of_consumers import (
    GroupCaughtUp,
    GroupIsAt,
    MessageConsumed,
    MessageSentBack,
    MessagesPulled,
    PullGoesOn,
    QueuesShared,
)
from crashmq.models.laws.consumption import (
    a_full_consumer_does_not_pull,
    a_pull_goes_on,
    an_orderly_consumer_is_given_the_next_message,
    each_queue_has_one_consumer,
    every_message_is_consumed,
    no_kept_offset_is_past_the_end,
    no_offset_passes_a_message,
    nothing_is_consumed_twice,
    only_what_was_pulled_is_consumed,
    what_was_given_back_is_put_again,
)
from crashmq.models.laws.reading import pulled_messages_are_right
from crashmq.models.observations import Pulled


def _is_orderly(at: MessageConsumed) -> bool:
    return at.is_orderly


def _has_queue(at: MessageConsumed) -> bool:
    return at.share is not None


@asked(no_offset_passes_a_message, on=GroupIsAt, needs=(Fact.UNDAMAGED_LOG,))
def _ask_con_1(at: GroupIsAt) -> Breaches:
    return no_offset_passes_a_message.judge(at.key, at.offset, at.passed)


@asked(no_kept_offset_is_past_the_end, on=GroupIsAt, needs=(Fact.ALONE,))
def _ask_con_9(at: GroupIsAt) -> Breaches:
    return no_kept_offset_is_past_the_end.judge(at.key, at.offset, at.end)


@asked(a_pull_goes_on, on=PullGoesOn)
def _ask_con_3(at: PullGoesOn) -> Breaches:
    return a_pull_goes_on.judge(at.queue, at.queue_offset, at.expected)


@asked(a_full_consumer_does_not_pull, on=PullGoesOn)
def _ask_con_8(at: PullGoesOn) -> Breaches:
    threshold = at.known.setup.pull_threshold
    return a_full_consumer_does_not_pull.judge(at.queue, at.waiting, threshold)


@asked(
    pulled_messages_are_right,
    on=MessagesPulled,
    needs=(Fact.WRITTEN_STAYS, Fact.UNDAMAGED_LOG, Fact.ALONE),
)
def _ask_rd_1(at: MessagesPulled) -> Breaches:
    answer, key = at.answer, at.answer.queue[2:]
    queue = at.known.model.queues.get(key, [])
    pulled = Pulled("FOUND", answer.next_begin_offset, 0, 0, answer.messages)
    return pulled_messages_are_right.judge(pulled, answer.queue_offset, queue)


@asked(only_what_was_pulled_is_consumed, on=MessageConsumed, where=_has_queue)
def _ask_con_4(at: MessageConsumed) -> Breaches:
    given, share = at.consumed, at.share
    assert share is not None, given
    return only_what_was_pulled_is_consumed.judge(
        given.queue, given.queue_offset, at.unique_key, share
    )


@asked(nothing_is_consumed_twice, on=MessageConsumed, where=_has_queue)
def _ask_con_6(at: MessageConsumed) -> Breaches:
    given, share = at.consumed, at.share
    assert share is not None, given
    return nothing_is_consumed_twice.judge(
        given.queue, given.queue_offset, at.unique_key, share
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


@asked(what_was_given_back_is_put_again, on=MessageSentBack)
def _ask_con_10(at: MessageSentBack) -> Breaches:
    return what_was_given_back_is_put_again.judge(
        at.queue, at.unique_key, at.copies, at.times
    )


@asked(each_queue_has_one_consumer, on=QueuesShared)
def _ask_con_7(at: QueuesShared) -> Breaches:
    return each_queue_has_one_consumer.judge(at.group, at.queues, at.held)


@asked(every_message_is_consumed, on=GroupCaughtUp, needs=(Fact.UNDAMAGED_LOG,))
def _ask_con_2(at: GroupCaughtUp) -> Breaches:
    return every_message_is_consumed.judge(at.key, at.left)
