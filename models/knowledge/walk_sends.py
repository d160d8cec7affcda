"""The walk through messages that producers send through the broker."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.files.config_files import TOPICS_PATH, config_pair
from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.history import SendAnswered
from crashmq.models.knowledge.moments import At, Moment
from crashmq.models.knowledge.moments_of_consumers import MessageSent
from crashmq.models.knowledge.topics import NOT_SENT_TO, OF_ITS_OWN
from crashmq.models.knowledge.walk_topics import saw_topics_needed

OF_GROUPS = "%"
"""So begin the topics that belong to groups."""


def saw_send(at: At, event: SendAnswered, at_ms: int) -> Iterator[Moment]:
    """Yield the moments of a message that a producer sent; none beside other ops."""
    if not at.step.is_alone:
        return
    topic = event.message.topic
    group = topic.removeprefix(RETRY_PREFIX)
    is_of_group = topic.startswith(RETRY_PREFIX)
    if is_of_group and not group:
        return  # no group has this topic, so the broker refuses the message
    unique_key = event.message.unique_key
    copies = [put for put, _ in at.step.puts if put.unique_key == unique_key]
    is_dead = _is_dead(at, event, group, at_ms) if is_of_group else None
    queues, is_taken = _queues(at, topic), _is_taken(at, event, is_dead)
    yield MessageSent(*at, event, copies, is_dead, queues, is_taken)
    if is_of_group:
        yield from saw_topics_needed(at, group)


def _is_dead(at: At, event: SendAnswered, group: str, at_ms: int) -> bool | None:
    """Whether a message for a retry topic has to be a dead letter; None: unknown.

    Source: SendMessageProcessor#handleRetryAndDLQ.
    """
    op, times = event.op, event.message.reconsume_times
    most = frozenset({op.max_reconsume_times})
    if op.max_reconsume_times < 0:
        most = at.known.progress.groups.retries_of(group)
    is_tried_out = {times > one for one in most}
    begun_ms = at.step.entries[0].at_ms
    is_locked = at.known.consumption.locks.are_held(group, begun_ms, at_ms)
    if is_tried_out == {True} or is_locked:
        return True
    return False if is_tried_out == {False} and is_locked is False else None


def _is_taken(at: At, event: SendAnswered, is_dead: bool | None) -> bool | None:
    """Whether a broker has to pass a message to its store; None: unknown.

    Source: AbstractSendMessageProcessor#msgCheck, TopicValidator.
    """
    topic, queue_id = event.message.topic, event.message.queue_id
    topics = at.known.progress.topics
    if topic in NOT_SENT_TO:
        return False
    if not _is_known(at):
        return None
    if topic.startswith(RETRY_PREFIX):
        return _is_taken_for_retries(at, event, is_dead)
    if topic not in topics.shapes:
        queues = topics.queue_nums(topic)
        return None if queues is None else queue_id < queues
    told = {
        one.is_writeable and queue_id < max(one.read_queues, one.write_queues)
        for one in topics.shapes_of(topic)
    }
    return told.pop() if len(told) == 1 else None


def _is_taken_for_retries(
    at: At, event: SendAnswered, is_dead: bool | None
) -> bool | None:
    """As ``_is_taken``; of a group without retry queues only dead letters are.

    Source: SendMessageProcessor#handleRetryAndDLQ. Differs: RocketMQ makes the retry
    topic with one queue, whatever its group is configured to have.
    """
    topic, queue_id = event.message.topic, event.message.queue_id
    row = config_pair(at.look.files(), TOPICS_PATH).rows.get(topic)
    has_retries = at.known.progress.groups.has_retries(topic.removeprefix(RETRY_PREFIX))
    if not has_retries:
        return is_dead if has_retries is False else None
    return queue_id < int(row["writeQueueNums"]) if isinstance(row, dict) else None


def _queues(at: At, topic: str) -> int | None:
    """How many queues the broker's file says that a topic has; -1: it is not there."""
    # What it has from its first start on need not be in its file yet.
    has_its_own = topic.startswith(OF_GROUPS) or topic in {*NOT_SENT_TO, *OF_ITS_OWN}
    is_changed = topic in at.known.progress.topics.changed
    if has_its_own or is_changed or not _is_known(at):
        return None
    row = config_pair(at.look.files(), TOPICS_PATH).rows.get(topic)
    if not isinstance(row, dict):
        return -1
    read, written = (row.get(f"{one}QueueNums", -1) for one in ("read", "write"))
    return int(written) if read == written else -1


def _is_known(at: At) -> bool:
    """Whether the broker alone has changed its topics, and could write them."""
    is_ours = not (at.known.progress.topics.is_doubtful or at.known.setup.begins_with)
    return is_ours and not at.step.fails_calls
