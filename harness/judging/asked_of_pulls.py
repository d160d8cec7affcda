"""When the laws of pulls through a broker, of held pulls and of dispatch are asked."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.expressions import is_readable
from crashmq.models.files.record import RETRY_PREFIX, SCHEDULE_TOPIC
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.group_configs import changes_of_group
from crashmq.models.knowledge.moments import Moment
from crashmq.models.knowledge.moments_of_consumers import ConsumerAnswered
from crashmq.models.knowledge.moments_of_pulls import (
    DispatchSeen,
    OffsetBehindPull,
    PullAnswered,
    PullAsleep,
    PullKept,
    PullsLeft,
    PullsLookedAt,
)
from crashmq.models.knowledge.walk_reads import behind_gaps
from crashmq.models.laws.dispatching import (
    dispatched_is_replicated,
    queues_come_before_the_index,
)
from crashmq.models.laws.filtering import refused_for_its_expression
from crashmq.models.laws.long_polling import (
    a_look_answers_all_that_is_due,
    a_pull_commits_once,
    a_pull_makes_progress,
    a_stop_answers_all,
    answered_by_its_code,
    answered_once,
    may_ask_for,
    name_of_pull,
    no_wakeup_is_lost,
    refused_for_its_topic,
    refused_for_permission,
    woken_for_a_reason,
)
from crashmq.models.laws.reading import (
    names_no_tag,
    pull_is_answered_right,
    pulled_messages_are_right,
)
from crashmq.models.observations import (
    CODES_OF_READS,
    BrokerCode,
)
from crashmq.models.ops import PullThroughBroker, ServiceName

_REFUSALS = ("TOPIC_NOT_EXIST", "INVALID_PARAMETER", "NO_PERMISSION")
"""What a pull is refused with before its expression is looked at."""
SURE = (Fact.WRITTEN_STAYS, Fact.UNDAMAGED_LOG, Fact.READABLE)


@asked(answered_once, on=PullAnswered)
def _ask_lp_1(at: PullAnswered) -> Breaches:
    return answered_once.judge(at.pull, at.answer, is_open=at.open is not None)


@asked(a_stop_answers_all, on=PullsLeft)
def _ask_lp_2(at: PullsLeft) -> Breaches:
    return a_stop_answers_all.judge(at.left)


def _is_settled(at: Moment, topic: str) -> bool:
    """Whether the content of a topic is known, since no op deletes it."""
    deleted = [op.topic for op, _ in at.step.deletions]
    unsure = [key for key in at.known.model.may_be_deleted if key[0] == topic]
    return topic not in deleted and not unsure


def _sleeps_for_certain(at: PullAsleep) -> bool:
    setup, topic = at.known.setup, at.pull.op.topic
    is_woken_by_tags = setup.long_polling and not setup.filters_retries_of(topic)
    return is_woken_by_tags and _is_settled(at, topic)


@asked(
    no_wakeup_is_lost,
    on=PullAsleep,
    needs=(Fact.WRITTEN_STAYS, Fact.UNDAMAGED_LOG),
    where=_sleeps_for_certain,
)
def _ask_lp_3(at: PullAsleep) -> Breaches:
    return no_wakeup_is_lost.judge(at.pull.op, at.behind)


def _is_woken(at: PullAnswered) -> bool:
    return at.is_woken and at.open is not None and _is_settled(at, at.pull.topic)


_HOLD: ServiceName = "pull_request_hold"


def _may_wake(at: PullAnswered) -> bool:
    """Whether a check, or a message that a pull may ask for, may have woken it."""
    step, known, pull = at.step, at.known, at.pull
    asked_beside = [
        one
        for one in step.acts
        if isinstance(one, PullThroughBroker) and one.topic == pull.topic
    ]
    is_looked_at = _HOLD in step.services or bool(asked_beside)
    is_same_log = not (step.starts or known.promises.reverts or known.is_degraded)
    is_by_others = known.setup.filters_retries_of(pull.topic)
    may_be_gone = "clean_commit_log" in step.services or pull.topic == SCHEDULE_TOPIC
    if is_looked_at or is_by_others or may_be_gone or not is_same_log:
        return True
    listed = known.model.queues.get((pull.topic, pull.queue_id), [])
    behind = [one for one in listed if one.queue_offset >= pull.queue_offset]
    is_answered = not known.model.in_flight
    return any(may_ask_for(pull, one) for one in behind) or not is_answered


@asked(woken_for_a_reason, on=PullAnswered, where=_is_woken)
def _ask_lp_4(at: PullAnswered) -> Breaches:
    assert at.open is not None
    step, known = at.step, at.known
    fails = step.fails_calls or step.is_unreadable or known.disk_failed
    return woken_for_a_reason.judge(
        at.pull,
        at.answer,
        at.answered_ms - at.open.asked_ms,
        0 if step.is_stopping else at.known.setup.patience_ms,
        may_fail=fails or step.is_stopping,
        may_wake=_may_wake(at),
    )


@asked(
    a_look_answers_all_that_is_due,
    on=PullsLookedAt,
    needs=(Fact.WRITTEN_STAYS, Fact.UNDAMAGED_LOG),
)
def _ask_lp_5(at: PullsLookedAt) -> Breaches:
    held = [pair for pair in at.held if _is_settled(at, pair[0].op.topic)]
    patience_ms = at.known.setup.patience_ms
    return a_look_answers_all_that_is_due.judge(held, at.now_ms, patience_ms)


@asked(a_pull_commits_once, on=OffsetBehindPull)
def _ask_lp_6(at: OffsetBehindPull) -> Breaches:
    return a_pull_commits_once.judge(at.key, at.kept, at.possible, at.told)


def _comes_by_itself(at: PullAnswered | PullKept) -> bool:
    is_first = isinstance(at, PullKept) or not at.is_woken
    return is_first and at.pull.queue_id >= 0 and at.reset_to != -1


def _is_filterable(at: PullAnswered | PullKept) -> bool:
    """Whether the broker filters by the expression of a pull, and can."""
    if at.known.setup.filters_retries_of(at.pull.topic):
        return False  # but by others, as FLT-6 says
    if at.pull.expression_type == "TAG":
        return not names_no_tag(at.pull.tags)
    return at.known.setup.filters and is_readable(at.pull.tags)


def _is_plain(at: PullAnswered) -> bool:
    is_refused = at.answer.code in _REFUSALS or not _is_filterable(at)
    return not is_refused and _comes_by_itself(at) and _is_settled(at, at.pull.topic)


ALONE = (*SURE, Fact.ALONE, Fact.DISK_WORKED, Fact.QUEUE_IS_SETTLED)


@asked(answered_by_its_code, on=PullAnswered, needs=ALONE, where=_is_plain)
def _ask_lp_7(at: PullAnswered) -> Breaches:
    return answered_by_its_code.judge(at.pull, at.answer, at.queue, at.reset_to)


def _is_kept_plainly(at: PullKept) -> bool:
    return (
        _is_filterable(at) and _comes_by_itself(at) and _is_settled(at, at.pull.topic)
    )


@asked(answered_by_its_code, on=PullKept, needs=ALONE, where=_is_kept_plainly)
def _ask_lp_7_held(at: PullKept) -> Breaches:
    return answered_by_its_code.judge(at.pull, None, at.queue, at.reset_to)


def _meets_a_reset(at: PullAnswered | PullKept) -> bool:
    """Whether a pull must get a reset, though a call to the disk has failed before."""
    step = at.step
    has_it = at.reset_to is not None and at.reset_to >= 0
    fails = step.fails_calls or step.is_unreadable
    return at.known.disk_failed and has_it and not fails and _is_filterable(at)


def _gets_the_reset(at: PullAnswered) -> bool:
    is_refused = at.answer.code in (*_REFUSALS, "SYSTEM_ERROR")
    return _comes_by_itself(at) and not is_refused and _meets_a_reset(at)


@asked(
    answered_by_its_code, on=PullAnswered, needs=(Fact.ALONE,), where=_gets_the_reset
)
def _ask_lp_7_of_a_reset(at: PullAnswered) -> Breaches:
    return answered_by_its_code.judge(at.pull, at.answer, at.queue, at.reset_to)


@asked(answered_by_its_code, on=PullKept, needs=(Fact.ALONE,), where=_meets_a_reset)
def _ask_lp_7_of_a_reset_held(at: PullKept) -> Breaches:
    return answered_by_its_code.judge(at.pull, None, at.queue, at.reset_to)


def _knows_topics(at: PullAnswered | PullKept) -> bool:
    deletions = [op for op, _ in at.step.deletions if op.topic == at.pull.topic]
    return not at.known.progress.topics.is_doubtful and not deletions


def _ask_of_topic(at: PullAnswered | PullKept, code: BrokerCode | None) -> Breaches:
    progress, topic = at.known.progress, at.pull.topic
    topics, unretried = progress.topics, progress.groups.unretried
    is_retried = topic.removeprefix(RETRY_PREFIX) not in unretried
    return refused_for_its_topic.judge(
        at.pull,
        code,
        topics.read_queues(topic),
        must_know=topics.must_know(topic) and is_retried,
        may_know=topics.may_know(topic),
    )


OF_TOPICS = (Fact.WRITTEN_STAYS, Fact.TOPIC_IS_SETTLED)


@asked(refused_for_its_topic, on=PullAnswered, needs=OF_TOPICS, where=_knows_topics)
def _ask_lp_9(at: PullAnswered) -> Breaches:
    return _ask_of_topic(at, at.answer.code)


@asked(refused_for_its_topic, on=PullKept, needs=OF_TOPICS, where=_knows_topics)
def _ask_lp_9_held(at: PullKept) -> Breaches:
    return _ask_of_topic(at, None)


def _gets_to_its_expression(at: PullAnswered) -> bool:
    return at.answer.code not in _REFUSALS


def _ask_of_expression(
    at: PullAnswered | PullKept, code: BrokerCode | None
) -> Breaches:
    step, known = at.step, at.known
    may_fail = step.fails_calls or step.is_unreadable or known.disk_failed
    return refused_for_its_expression.judge(
        at.pull,
        code,
        filters=known.setup.filters,
        may_fail=may_fail or step.is_stopping,
    )


@asked(refused_for_its_expression, on=PullAnswered, where=_gets_to_its_expression)
def _ask_flt_7(at: PullAnswered) -> Breaches:
    return _ask_of_expression(at, at.answer.code)


@asked(refused_for_its_expression, on=PullKept)
def _ask_flt_7_held(at: PullKept) -> Breaches:
    return _ask_of_expression(at, None)


def _is_configured(at: PullAnswered | PullKept | ConsumerAnswered) -> bool:
    """Whether it is known how the group was configured when it was answered."""
    group = at.queue.group if isinstance(at, ConsumerAnswered) else at.pull.group
    step = at.step
    is_changed = changes_of_group(group, step) or step.changes
    return not (is_changed or step.starts or step.crash is not None)


def _ask_of_group(at: PullAnswered | PullKept, code: BrokerCode | None) -> Breaches:
    progress, setup = at.known.progress, at.known.setup
    return refused_for_permission.judge(
        name_of_pull(at.pull),
        code,
        progress.groups.possible(at.pull.group),
        broadcasts=False,
        is_barred=not setup.lets_read
        or (at.pull.is_lite and not setup.takes_lite_pulls),
        is_open=not progress.topics.is_doubtful,
    )


@asked(refused_for_permission, on=PullAnswered, where=_is_configured)
def _ask_lp_10(at: PullAnswered) -> Breaches:
    return _ask_of_group(at, at.answer.code)


@asked(refused_for_permission, on=PullKept, where=_is_configured)
def _ask_lp_10_held(at: PullKept) -> Breaches:
    return _ask_of_group(at, None)


@asked(refused_for_permission, on=ConsumerAnswered, where=_is_configured)
def _ask_lp_10_of_consumers(at: ConsumerAnswered) -> Breaches:
    client, group, topic, queue_id = at.queue
    progress, setup = at.known.progress, at.known.setup
    return refused_for_permission.judge(
        f"pull of {client} in {group} on {topic}/{queue_id}",
        at.code,
        progress.groups.possible(group),
        # Of a pull that carries its subscription a broker does not ask who sends it.
        broadcasts=False if setup.posts_subscription else at.broadcasts,
        is_barred=not setup.lets_read,
        is_open=not progress.topics.is_doubtful,
    )


def _was_read(at: PullAnswered) -> bool:
    is_read = at.answer.code in CODES_OF_READS and at.reset_to is None
    return is_read and at.step.crash is None


@asked(a_pull_makes_progress, on=PullAnswered, where=_was_read)
def _ask_lp_8(at: PullAnswered) -> Breaches:
    end = max(at.answer.max_offset, at.queue.max_offset)
    return a_pull_makes_progress.judge(at.pull, at.answer, end)


def _has_messages(at: PullAnswered) -> bool:
    is_same_log = not at.step.starts and at.step.crash is None
    is_settled = _is_settled(at, at.pull.topic)
    # Else FLT-1 or FLT-6 asks.
    is_by_tags = at.pull.expression_type == "TAG" and _is_filterable(at)
    return bool(at.answer.messages) and is_same_log and is_settled and is_by_tags


@asked(
    pulled_messages_are_right,
    on=PullAnswered,
    needs=(Fact.WRITTEN_STAYS, Fact.UNDAMAGED_LOG, Fact.TOPIC_STAYS),
    where=_has_messages,
)
def _ask_rd_1(at: PullAnswered) -> Breaches:
    pull, model = at.pull, at.known.model
    queue = behind_gaps(model.queues.get((pull.topic, pull.queue_id), []))
    gone_below = 0 if at.step.is_alone else model.may_expire
    return pulled_messages_are_right.judge(
        at.answer.as_pulled, pull.queue_offset, queue, pull.tags, gone_below
    )


def _has_found(at: PullAnswered) -> bool:
    found = at.answer.code in ("SUCCESS", "PULL_RETRY_IMMEDIATELY")
    is_by_tags = at.pull.expression_type == "TAG"  # else FLT-3 asks
    return found and _is_plain(at) and at.reset_to is None and is_by_tags


@asked(
    pull_is_answered_right,
    on=PullAnswered,
    needs=(*ALONE, Fact.TOPIC_STAYS),
    where=_has_found,
)
def _ask_rd_2(at: PullAnswered) -> Breaches:
    pull, setup, stands = at.pull, at.known.setup, at.known.positions
    end = at.known.model.end if stands is None else stands.max_phy_offset
    return pull_is_answered_right.judge(
        at.answer.as_pulled,
        pull.queue_offset,
        pull.max_msg_nums,
        at.queue,
        setup.queue_file_units,
        pull.tags,
        end - setup.in_memory_size,
    )


def _indexes(at: DispatchSeen) -> bool:
    return at.known.setup.has_index


@asked(
    queues_come_before_the_index,
    on=DispatchSeen,
    needs=(Fact.WRITTEN_STAYS, Fact.UNDAMAGED_LOG, Fact.UNTOUCHED),
    where=_indexes,
)
def _ask_dsp_1(at: DispatchSeen) -> Breaches:
    newest, _ = at.known.model.indexed
    slots = at.known.setup.index_slots
    return queues_come_before_the_index.judge(at.look.image(), slots, newest)


@asked(
    dispatched_is_replicated,
    on=DispatchSeen,
    needs=(Fact.IS_REPLICATED, Fact.WRITTEN_STAYS, Fact.UNDAMAGED_LOG, Fact.UNTOUCHED),
    where=lambda at: at.known.setup.duplicates,
)
def _ask_dsp_2(at: DispatchSeen) -> Breaches:
    _, replicated = at.known.rounds.replicated
    return dispatched_is_replicated.judge(at.look.image(), at.now, replicated)
