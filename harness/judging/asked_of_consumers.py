"""When the laws of consumers are asked: assignment, pulls, commits, periodic tasks."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments_of_consumers import (
    ConsumerCommitted,
    ConsumerIdle,
    ConsumerStopped,
    ConsumerTold,
    ElsewhereNeeded,
    ExpiredLeft,
    FailureSentBack,
    GivenBackAgain,
    GroupCaughtUp,
    GroupIdle,
    GroupIsAt,
    HeartbeatOver,
    LockAnswered,
    LockingConsumerStopped,
    LockNeeded,
    LocksRenewed,
    MembersChanged,
    MembersListed,
    MessageConsumed,
    MessageGivenUp,
    MessageSentBack,
    MessagesPulled,
    MoveTaken,
    NothingToDo,
    PullDue,
    PullGoesOn,
    PullMoved,
    PullsSuspended,
    PullTimed,
    QueueBegunAnew,
    QueueGivenBack,
    QueuePersisted,
    QueueRetaken,
    QueuesShared,
    QueuesTaken,
    RebalanceOver,
    ResetObeyed,
    TaskReported,
)
from crashmq.models.knowledge.pull_limits import limit_of
from crashmq.models.laws.client_tasks import (
    a_client_renews_what_runs_out,
    a_client_reports_its_rounds,
    a_consumer_begins_where_it_is_told,
    a_consumer_tells_what_it_subscribes,
    a_persist_round_commits_progress,
    a_rebalance_is_repeated_in_time,
    a_rebalance_round_takes_the_share,
    a_stop_waits_for_nothing_else,
    a_stopped_consumer_does_nothing,
)
from crashmq.models.laws.consumption import (
    a_beginning_is_told,
    a_consumer_goes_where_it_is_sent,
    a_free_lock_is_given,
    a_full_consumer_does_not_pull,
    a_pull_goes_on,
    a_queue_is_given_back_with_its_offset,
    a_stop_unlocks,
    an_idle_group_is_at_the_end,
    an_orderly_consumer_begins_locked,
    an_orderly_consumer_has_the_lock,
    an_orderly_consumer_is_given_the_next_message,
    each_queue_has_one_consumer,
    every_message_is_consumed,
    no_kept_offset_is_past_the_end,
    no_offset_passes_a_message,
    nobody_is_sent_past_the_end,
    nothing_is_consumed_twice,
    nothing_that_waits_is_forgotten,
    one_consumer_has_the_lock,
    only_what_was_pulled_is_consumed,
    what_a_consumer_tells_is_kept,
    what_was_given_back_is_put_again,
    who_must_go_elsewhere_is_sent_there,
)
from crashmq.models.laws.giving_up import (
    nothing_is_given_up_too_soon,
    nothing_is_sent_back_twice,
    only_what_failed_is_sent_back,
    what_has_expired_is_given_up,
)
from crashmq.models.laws.listening import (
    a_listener_in_order_has_one_batch,
    a_listener_is_shown_what_was_stored,
)
from crashmq.models.laws.membership import (
    members_are_told_of_each_other,
    who_has_left_is_no_member,
    who_is_heard_of_is_a_member,
    who_is_silent_is_no_member,
)
from crashmq.models.laws.pull_loop import (
    a_due_queue_is_pulled,
    a_suspended_consumer_does_not_pull,
    an_assigned_queue_is_kept,
    no_queue_is_pulled_too_soon,
)
from crashmq.models.laws.reading import pulled_messages_are_right
from crashmq.models.observations import Pulled


def _is_orderly(at: MessageConsumed) -> bool:
    return at.is_orderly


def _has_queue(at: MessageConsumed) -> bool:
    return at.share is not None


def _is_locking(at: MessageConsumed) -> bool:
    return at.known.consumption.is_locking(at.consumed.queue.client)


def _is_granted(at: LockAnswered) -> bool:
    return at.is_granted


def _is_refused(at: LockAnswered) -> bool:
    return not at.is_granted


def _has_one_copy(at: MessageConsumed) -> bool:
    """Whether a message cannot have been sent back by two consumers, or given up."""
    if at.share is None or at.unique_key in at.share.may_come_again:
        return False
    return at.unique_key not in at.known.consumption.owed.doubled


@asked(
    no_offset_passes_a_message,
    on=GroupIsAt,
    # By the ends of queues a broker tells whose offsets are of before a loss.
    needs=(Fact.UNDAMAGED_LOG, Fact.ENDS_ARE_OURS),
)
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
    max_span = at.known.setup.max_span
    limit = limit_of(at.known, at.step, at.queue.client)
    return a_full_consumer_does_not_pull.judge(
        at.queue, at.waiting, limit.most, at.span, max_span
    )


def _is_by_tags(at: MessagesPulled) -> bool:
    return at.wanted is not None and at.wanted[1] == "TAG"


@asked(
    pulled_messages_are_right,
    on=MessagesPulled,
    needs=(Fact.WRITTEN_STAYS, Fact.UNDAMAGED_LOG, Fact.ALONE),
    where=_is_by_tags,
)
def _ask_rd_1(at: MessagesPulled) -> Breaches:
    answer, key = at.answer, at.answer.queue[2:]
    queue = at.known.model.queues.get(key, [])
    pulled = Pulled("FOUND", answer.next_begin_offset, 0, 0, answer.messages)
    assert at.wanted is not None, at
    tags, _ = at.wanted
    return pulled_messages_are_right.judge(pulled, answer.queue_offset, queue, tags)


@asked(only_what_was_pulled_is_consumed, on=MessageConsumed, where=_has_queue)
def _ask_con_4(at: MessageConsumed) -> Breaches:
    given, share = at.consumed, at.share
    assert share is not None, given
    return only_what_was_pulled_is_consumed.judge(
        given.queue, given.queue_offset, at.unique_key, share
    )


@asked(nothing_is_consumed_twice, on=MessageConsumed, where=_has_one_copy)
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


@asked(a_listener_in_order_has_one_batch, on=MessageConsumed, where=_is_orderly)
def _ask_con_40(at: MessageConsumed) -> Breaches:
    given, judge = at.consumed, a_listener_in_order_has_one_batch.judge
    return judge(given.queue, given.queue_offset, given.besides)


@asked(what_was_given_back_is_put_again, on=MessageSentBack)
def _ask_con_10(at: MessageSentBack) -> Breaches:
    return what_was_given_back_is_put_again.judge(
        at.queue, at.unique_key, at.copies, at.times
    )


@asked(each_queue_has_one_consumer, on=QueuesShared)
def _ask_con_7(at: QueuesShared) -> Breaches:
    return each_queue_has_one_consumer.judge(at.group, at.queues, at.held)


@asked(
    every_message_is_consumed,
    on=GroupCaughtUp,
    needs=(
        *(Fact.UNDAMAGED_LOG, Fact.TOPIC_STANDS, Fact.MAY_CONSUME),
        Fact.VALUES_ARE_OURS,
    ),
)
def _ask_con_2(at: GroupCaughtUp) -> Breaches:
    return every_message_is_consumed.judge(at.key, at.left)


@asked(one_consumer_has_the_lock, on=LockAnswered, where=_is_granted)
def _ask_con_11(at: LockAnswered) -> Breaches:
    return one_consumer_has_the_lock.judge(at.queue, at.lock, at.at_ms)


@asked(
    a_free_lock_is_given,
    on=LockAnswered,
    where=_is_refused,
    needs=(Fact.LOCK_IS_SETTLED,),
)
def _ask_con_12(at: LockAnswered) -> Breaches:
    return a_free_lock_is_given.judge(at.queue, at.lock, at.at_ms)


@asked(
    an_orderly_consumer_has_the_lock,
    on=MessageConsumed,
    needs=(Fact.ALONE,),
    where=_is_locking,
)
def _ask_con_13(at: MessageConsumed) -> Breaches:
    given = at.consumed
    judge = an_orderly_consumer_has_the_lock.judge
    return judge(given.queue, given.queue_offset, at.lock_ms)


@asked(an_orderly_consumer_begins_locked, on=LockNeeded, needs=(Fact.ALONE,))
def _ask_con_14(at: LockNeeded) -> Breaches:
    return an_orderly_consumer_begins_locked.judge(at.queue, has_lock=at.has_lock)


@asked(a_stop_unlocks, on=LockingConsumerStopped)
def _ask_con_34(at: LockingConsumerStopped) -> Breaches:
    return a_stop_unlocks.judge(at.client, at.locked)


@asked(
    a_queue_is_given_back_with_its_offset,
    on=QueueGivenBack,
    needs=(Fact.DISK_WORKS, Fact.UNDAMAGED_LOG),
)
def _ask_con_15(at: QueueGivenBack) -> Breaches:
    judge = a_queue_is_given_back_with_its_offset.judge
    return judge(at.queue, at.told, at.worked_until)


@asked(a_beginning_is_told, on=QueueBegunAnew, needs=(Fact.DISK_WORKS,))
def _ask_con_16(at: QueueBegunAnew) -> Breaches:
    return a_beginning_is_told.judge(at.queue, at.told)


@asked(
    an_idle_group_is_at_the_end,
    on=GroupIdle,
    needs=(
        *(Fact.UNDAMAGED_LOG, Fact.TOPIC_STANDS, Fact.MAY_CONSUME),
        Fact.VALUES_ARE_OURS,
    ),
)
def _ask_con_17(at: GroupIdle) -> Breaches:
    return an_idle_group_is_at_the_end.judge(at.key, at.told, at.end)


def _is_there(at: ConsumerCommitted) -> bool:
    return at.offset <= at.end


@asked(
    what_a_consumer_tells_is_kept,
    on=ConsumerCommitted,
    needs=(Fact.ALONE,),
    where=_is_there,
)
def _ask_con_18(at: ConsumerCommitted) -> Breaches:
    return what_a_consumer_tells_is_kept.judge(at.queue, at.offset, at.kept)


@asked(nobody_is_sent_past_the_end, on=PullMoved, needs=(Fact.ALONE,))
def _ask_con_19(at: PullMoved) -> Breaches:
    return nobody_is_sent_past_the_end.judge(at.queue, at.to, at.end, at.possible)


@asked(who_must_go_elsewhere_is_sent_there, on=ElsewhereNeeded)
def _ask_con_42(at: ElsewhereNeeded) -> Breaches:
    judge = who_must_go_elsewhere_is_sent_there.judge
    return judge(at.queue, at.queue_offset, at.to, at.places)


@asked(a_consumer_goes_where_it_is_sent, on=MoveTaken)
def _ask_con_26(at: MoveTaken) -> Breaches:
    return a_consumer_goes_where_it_is_sent.judge(at.queue, at.told, at.to)


@asked(nothing_that_waits_is_forgotten, on=NothingToDo)
def _ask_con_20(at: NothingToDo) -> Breaches:
    judge = nothing_that_waits_is_forgotten.judge
    return judge(at.queue, at.waiting, at.put_off_ms, at.due_ms)


@asked(who_is_heard_of_is_a_member, on=MembersListed, needs=(Fact.ALONE,))
def _ask_mbr_1(at: MembersListed) -> Breaches:
    return who_is_heard_of_is_a_member.judge(at.group, at.members, at.silent_ms)


@asked(who_has_left_is_no_member, on=MembersListed, needs=(Fact.ALONE,))
def _ask_mbr_2(at: MembersListed) -> Breaches:
    return who_has_left_is_no_member.judge(at.group, at.members, at.left)


@asked(
    members_are_told_of_each_other,
    on=MembersChanged,
    needs=(Fact.VALUES_ARE_OURS,),
)
def _ask_mbr_4(at: MembersChanged) -> Breaches:
    judge, joins = members_are_told_of_each_other.judge, at.is_there
    return judge(at.group, at.client, at.others, at.told, joins=joins)


@asked(
    who_is_silent_is_no_member,
    on=MembersListed,
    needs=(Fact.ALONE,),
    where=lambda at: bool(at.expired),
)
def _ask_mbr_3(at: MembersListed) -> Breaches:
    return who_is_silent_is_no_member.judge(at.group, at.members, at.expired)


@asked(a_due_queue_is_pulled, on=PullDue)
def _ask_con_21(at: PullDue) -> Breaches:
    judge = a_due_queue_is_pulled.judge
    return judge(at.queue, at.due_ms, at.now_ms, is_sent=at.is_sent)


@asked(no_queue_is_pulled_too_soon, on=PullTimed)
def _ask_con_22(at: PullTimed) -> Breaches:
    return no_queue_is_pulled_too_soon.judge(at.queue, at.at_ms, at.least_ms)


@asked(an_assigned_queue_is_kept, on=QueueRetaken)
def _ask_con_33(at: QueueRetaken) -> Breaches:
    return an_assigned_queue_is_kept.judge(at.queue, at.idle_ms)


@asked(a_client_renews_what_runs_out, on=HeartbeatOver)
def _ask_con_23(at: HeartbeatOver) -> Breaches:
    missing = () if at.is_heard else (f"its heartbeat for {at.group}",)
    return a_client_renews_what_runs_out.judge(at.client, missing)


@asked(a_client_renews_what_runs_out, on=LocksRenewed)
def _ask_con_23_of_locks(at: LocksRenewed) -> Breaches:
    left_out = [queue for queue in at.held if queue not in at.asked]
    missing = [f"the lock of {topic}/{queue_id}" for topic, queue_id in left_out]
    return a_client_renews_what_runs_out.judge(at.client, missing)


@asked(a_persist_round_commits_progress, on=QueuePersisted, needs=(Fact.UNDAMAGED_LOG,))
def _ask_con_24(at: QueuePersisted) -> Breaches:
    judge = a_persist_round_commits_progress.judge
    return judge(at.queue, at.told, at.worked_until)


@asked(a_consumer_begins_where_it_is_told, on=ResetObeyed)
def _ask_con_31(at: ResetObeyed) -> Breaches:
    judge = a_consumer_begins_where_it_is_told.judge
    return judge(at.queue, at.told, at.sent)


@asked(a_rebalance_round_takes_the_share, on=QueuesTaken)
def _ask_con_25(at: QueuesTaken) -> Breaches:
    judge = a_rebalance_round_takes_the_share.judge
    return judge(at.client, at.held, at.share, at.refused)


@asked(a_rebalance_is_repeated_in_time, on=RebalanceOver)
def _ask_con_41(at: RebalanceOver) -> Breaches:
    judge = a_rebalance_is_repeated_in_time.judge
    return judge(at.client, at.after_ms, is_done=at.is_done)


@asked(what_has_expired_is_given_up, on=ExpiredLeft)
def _ask_con_27(at: ExpiredLeft) -> Breaches:
    judge = what_has_expired_is_given_up.judge
    return judge(at.queue, at.queue_offset, at.had_ms, at.given_up)


@asked(nothing_is_given_up_too_soon, on=MessageGivenUp)
def _ask_con_28(at: MessageGivenUp) -> Breaches:
    judge = nothing_is_given_up_too_soon.judge
    return judge(at.queue, at.queue_offset, at.had_ms)


@asked(nothing_is_sent_back_twice, on=GivenBackAgain)
def _ask_con_29(at: GivenBackAgain) -> Breaches:
    judge = nothing_is_sent_back_twice.judge
    return judge(at.queue, at.unique_key, again=at.again)


@asked(only_what_failed_is_sent_back, on=FailureSentBack)
def _ask_con_32(at: FailureSentBack) -> Breaches:
    judge = only_what_failed_is_sent_back.judge
    return judge(at.queue, at.queue_offset, at.results)


@asked(a_suspended_consumer_does_not_pull, on=PullsSuspended)
def _ask_con_30(at: PullsSuspended) -> Breaches:
    return a_suspended_consumer_does_not_pull.judge(at.client, at.pulled)


@asked(
    a_listener_is_shown_what_was_stored,
    on=MessageConsumed,
    needs=(Fact.UNDAMAGED_LOG,),
    where=lambda at: at.given is not None and at.consumed.shown is not None,
)
def _ask_con_35(at: MessageConsumed) -> Breaches:
    given = at.consumed
    assert given.shown is not None, given
    assert at.given is not None, given
    judge = a_listener_is_shown_what_was_stored.judge
    return judge(given.queue, given.shown, at.given, given.tries)


@asked(a_consumer_tells_what_it_subscribes, on=ConsumerTold)
def _ask_con_36(at: ConsumerTold) -> Breaches:
    judge = a_consumer_tells_what_it_subscribes.judge
    return judge(at.client, at.subscribed, at.told)


@asked(a_stop_waits_for_nothing_else, on=ConsumerStopped)
def _ask_con_37(at: ConsumerStopped) -> Breaches:
    return a_stop_waits_for_nothing_else.judge(at.client, at.took_ms)


@asked(a_client_reports_its_rounds, on=TaskReported)
def _ask_con_38(at: TaskReported) -> Breaches:
    judge = a_client_reports_its_rounds.judge
    return judge(at.client, at.task, at.work, at.seen, is_all=at.is_all)


@asked(a_stopped_consumer_does_nothing, on=ConsumerIdle)
def _ask_con_39(at: ConsumerIdle) -> Breaches:
    return a_stopped_consumer_does_nothing.judge(at.client, at.work)
