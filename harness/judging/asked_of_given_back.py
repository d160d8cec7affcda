"""When the laws of messages sent back, and of their groups' topics, are asked."""

from __future__ import annotations

from crashmq.harness.judging.asked_of_config_files import OF_TURNS
from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.files.config_files import (
    GROUPS_PATH,
    TOPICS_PATH,
    config_pair,
)
from crashmq.models.files.record import DLQ_PREFIX, RETRY_PREFIX
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.group_configs import changes_of_group
from crashmq.models.knowledge.knowledge import CONFIG
from crashmq.models.knowledge.moments_of_consumers import (
    BackRefused,
    ChangeAnswered,
    GroupConfigsSeen,
    MessageConsumed,
    MessageSent,
    MessageSentBack,
    TableTurned,
    TopicsChanged,
    TopicsNeeded,
)
from crashmq.models.knowledge.walk_expired import again_of
from crashmq.models.laws.giving_back import (
    FIRST_DELAY_LEVEL,
    NEVER,
    GivenBack,
    given_back_as_it_was,
    given_back_as_of_its_topic,
    given_back_for_its_tries,
    given_back_to_the_store,
    given_back_where_somebody_looks,
    sent_once_and_as_it_was,
    sent_to_its_retries_or_dead_letters,
    tried_again_in_its_time,
)
from crashmq.models.laws.group_topics import (
    a_group_is_as_it_was_configured,
    a_legal_change_is_confirmed,
    a_retry_topic_is_made_for_its_group,
    a_topic_has_the_queues_asked_for,
    a_topic_is_as_it_was_changed,
    a_topic_is_written_before_it_is_used,
    no_group_comes_of_itself,
    sent_to_a_queue_of_its_topic,
    the_version_counts_changes,
)
from crashmq.models.ops import (
    RETRIED,
    AskBroker,
    ChangeTopic,
    DeleteGroup,
    EndConsumer,
    StartConsumer,
    TurnConsumer,
)

BY_DEFAULT = 16
"""DefaultMQPushConsumerImpl#getMaxReconsumeTimes, of a consumer that sets nothing."""


def _given(at: MessageSentBack) -> GivenBack:
    given, known = at.given, at.known.consumption
    tries, one = given.reconsume_times, known.owner_of(at.queue)
    # One that consumes in order tries by itself, and then no more.
    is_for_good = tries >= _most_tries(one) or (one is not None and one.is_orderly)
    return GivenBack(
        at.queue,
        at.unique_key,
        given.properties.get("RETRY_TOPIC", given.topic),
        tries,
        frozenset({NEVER}) if is_for_good else _levels(at, FIRST_DELAY_LEVEL + tries),
    )


def _most_tries(op: StartConsumer | None) -> int:
    most = RETRIED if op is None else op.max_reconsume_times
    return BY_DEFAULT if most < 0 else most


def _levels(at: MessageSentBack, level: int) -> frozenset[int]:
    """The delay levels it may have; a sweep, whose level differs, is not recorded.

    A broker with fewer levels lets it wait for the last one.
    """
    level_of = at.known.setup.delay_levels.level_of
    told = [again or level for again in again_of(at.step, at.queue.client)]
    levels = {NEVER if one < 0 else level_of(one) for one in told}
    turns = [one for one in at.step.acts if isinstance(one, TurnConsumer)]
    if any(one.task == "clean" for one in turns):
        levels.add(level_of(FIRST_DELAY_LEVEL))
    return frozenset(levels or {level_of(level)})


@asked(given_back_where_somebody_looks, on=MessageSentBack)
def _ask_rty_1(at: MessageSentBack) -> Breaches:
    judge = given_back_where_somebody_looks.judge
    return judge(_given(at), at.copies, _retry_queues(at))


def _retry_queues(at: MessageSentBack) -> int:
    """How many queues the broker's file says that the group's retry topic has."""
    most = at.known.setup.retry_queues
    if most == 1:
        return 1
    rows = config_pair(at.look.files(), TOPICS_PATH).rows
    row = rows.get(f"{RETRY_PREFIX}{at.queue.group}")
    return int(row["writeQueueNums"]) if isinstance(row, dict) else most


@asked(given_back_as_of_its_topic, on=MessageSentBack)
def _ask_rty_2(at: MessageSentBack) -> Breaches:
    return given_back_as_of_its_topic.judge(_given(at), at.copies)


@asked(given_back_for_its_tries, on=MessageSentBack)
def _ask_rty_3(at: MessageSentBack) -> Breaches:
    return given_back_for_its_tries.judge(_given(at), at.copies)


@asked(
    given_back_as_it_was,
    on=MessageSentBack,
    where=lambda at: at.times == 1,  # else it may have come twice, as two records
)
def _ask_rty_8(at: MessageSentBack) -> Breaches:
    return given_back_as_it_was.judge(_given(at), at.given, at.copies)


@asked(given_back_as_it_was, on=BackRefused, where=lambda at: len(at.copies) == 1)
def _ask_rty_8_of_refused(at: BackRefused) -> Breaches:
    topic = at.given.properties.get("RETRY_TOPIC", at.given.topic)
    unique_key, tries = (
        at.given.properties.get("UNIQ_KEY", ""),
        at.given.reconsume_times,
    )
    given = GivenBack(at.queue, unique_key, topic, tries, frozenset())
    return given_back_as_it_was.judge(given, at.given, at.copies)


def _has_retries(at: BackRefused | MessageSentBack) -> bool | None:
    """Whether the group has a retry queue, throughout the step; None: unknown."""
    group, groups = at.queue.group, at.known.progress.groups
    if group in groups.unretried and changes_of_group(group, at.step):
        return None
    return groups.has_retries(group)


def _knows_retries(at: BackRefused | MessageSentBack) -> bool:
    return _has_retries(at) is not None


def _brings_its_record(at: BackRefused) -> bool:
    return at.known.setup.sends_records and _knows_retries(at)


def _is_in_the_log(at: BackRefused) -> bool:
    """Whether the broker can read in its log what it was sent the phy_offset of."""
    known, step = at.known, at.step
    gone_below = max(known.model.may_expire, known.expirable_in(step))
    may_fail = step.fails_calls or step.is_unreadable or known.disk_failed
    is_there = at.given.phy_offset >= gone_below and not may_fail
    return not known.setup.sends_records and is_there and _knows_retries(at)


@asked(
    given_back_to_the_store,
    on=BackRefused,
    needs=(Fact.WRITTEN_STAYS, Fact.UNDAMAGED_LOG, Fact.READABLE),
    where=_is_in_the_log,
)
def _ask_rty_7_by_offset(at: BackRefused) -> Breaches:
    return _ask_rty_7(at)


@asked(given_back_to_the_store, on=BackRefused, where=_brings_its_record)
def _ask_rty_7(at: BackRefused) -> Breaches:
    judge, has_retries = given_back_to_the_store.judge, _has_retries(at) is True
    return judge(at.queue, at.code, is_put=at.is_put, has_retries=has_retries)


@asked(given_back_to_the_store, on=MessageSentBack, where=_knows_retries)
def _ask_rty_7_of_confirmed(at: MessageSentBack) -> Breaches:
    judge, has_retries = given_back_to_the_store.judge, _has_retries(at) is True
    return judge(at.queue, "SUCCESS", is_put=True, has_retries=has_retries)


@asked(
    tried_again_in_its_time,
    on=MessageConsumed,
    needs=(Fact.WRITTEN_STAYS,),  # else several read alike, as zeros
    where=lambda at: at.failed is not None,
)
def _ask_rty_4(at: MessageConsumed) -> Breaches:
    assert at.failed is not None, at
    return tried_again_in_its_time.judge(at.consumed, at.failed, at.at_ms)


@asked(
    sent_to_its_retries_or_dead_letters,
    on=MessageSent,
    where=lambda at: at.is_dead is not None,
)
def _ask_rty_5(at: MessageSent) -> Breaches:
    assert at.is_dead is not None, at
    judge = sent_to_its_retries_or_dead_letters.judge
    return judge(at.sent.message, at.copies, is_dead=at.is_dead)


@asked(sent_once_and_as_it_was, on=MessageSent, where=lambda at: at.is_taken is True)
def _ask_rty_6(at: MessageSent) -> Breaches:
    setup = at.known.setup
    levels = setup.delay_levels if setup.delivers_delayed else None
    return sent_once_and_as_it_was.judge(at.sent.message, at.copies, levels)


@asked(
    a_topic_has_the_queues_asked_for,
    on=MessageSent,
    where=lambda at: at.queues is not None,
)
def _ask_top_3(at: MessageSent) -> Breaches:
    assert at.queues is not None, at
    return a_topic_has_the_queues_asked_for.judge(at.sent.message.topic, at.queues)


@asked(
    sent_to_a_queue_of_its_topic,
    on=MessageSent,
    where=lambda at: at.is_taken is False,
)
def _ask_top_4(at: MessageSent) -> Breaches:
    judge = sent_to_a_queue_of_its_topic.judge
    return judge(at.sent.message, len(at.copies))


@asked(a_topic_is_as_it_was_changed, on=TopicsChanged)
def _ask_top_5(at: TopicsChanged) -> Breaches:
    return a_topic_is_as_it_was_changed.judge(at.rows, at.possible)


@asked(
    a_legal_change_is_confirmed,
    on=ChangeAnswered,
    needs=(Fact.DISK_WORKED, Fact.NOTHING_RAISED),
)
def _ask_top_6(at: ChangeAnswered) -> Breaches:
    return a_legal_change_is_confirmed.judge(at.change, is_done=at.is_done)


def _puts_of(at: TopicsNeeded) -> frozenset[str]:
    """The group's topics to which messages were put in the step."""
    names = [message.real_topic or message.topic for message, _ in at.step.puts]
    its = (f"{RETRY_PREFIX}{at.group}", f"{DLQ_PREFIX}{at.group}")
    return frozenset(name for name in names if name in its)


@asked(a_topic_is_written_before_it_is_used, on=TopicsNeeded)
def _ask_top_1(at: TopicsNeeded) -> Breaches:
    return a_topic_is_written_before_it_is_used.judge(
        at.group, at.written, _puts_of(at)
    )


def _is_known(at: TopicsNeeded) -> bool:
    return at.before is not None


@asked(the_version_counts_changes, on=TopicsNeeded, where=_is_known)
def _ask_top_2(at: TopicsNeeded) -> Breaches:
    assert at.before is not None, at
    return the_version_counts_changes.judge(at.written, at.before)


def _retry_topics(at: TableTurned) -> dict[str, frozenset[int]]:
    """Retry topics, and what the numbers of their queues may have been in the step."""
    groups, found = at.known.progress.groups, dict[str, frozenset[int]]()
    for topic, _ in at.turn.now.rows:
        group = topic.removeprefix(RETRY_PREFIX)
        is_steady = at.step.is_alone or not changes_of_group(group, at.step)
        possible = groups.possible(group)
        if group != topic and is_steady and possible:
            found[topic] = frozenset([one.retry_queue_nums for one in possible])
    return found


@asked(
    a_retry_topic_is_made_for_its_group,
    on=TableTurned,
    needs=OF_TURNS,
    where=lambda at: at.turn.path == TOPICS_PATH and bool(_retry_topics(at)),
)
def _ask_top_7(at: TableTurned) -> Breaches:
    return a_retry_topic_is_made_for_its_group.judge(at.turn, _retry_topics(at))


@asked(a_group_is_as_it_was_configured, on=GroupConfigsSeen)
def _ask_grp_1(at: GroupConfigsSeen) -> Breaches:
    return a_group_is_as_it_was_configured.judge(at.rows, at.possible)


def _uses_no_group(at: TableTurned) -> bool:
    step = at.step
    uses_none = isinstance(step.op, EndConsumer | DeleteGroup | AskBroker | ChangeTopic)
    # Else the file may have lacked a group that could not be deleted.
    was_whole = at.known.works(CONFIG)
    return uses_none and step.is_alone and was_whole and at.turn.path == GROUPS_PATH


@asked(no_group_comes_of_itself, on=TableTurned, where=_uses_no_group)
def _ask_grp_2(at: TableTurned) -> Breaches:
    return no_group_comes_of_itself.judge(at.turn)
