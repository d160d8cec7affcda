"""Laws of messages that consumers send back: where each is put again, and when.

That it is put again at all, and exactly once, is CON-10. The same of messages that
producers send.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import NamedTuple

from crashmq.models.files.message_delay_level import DelayLevels
from crashmq.models.files.record import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    Record,
    message_id,
)
from crashmq.models.history import Consumed, OneQueue
from crashmq.models.knowledge.consumption import Failed
from crashmq.models.laws.registry import law
from crashmq.models.messages import MULTI_QUEUE_OFFSET, MessageToPut
from crashmq.models.verdict import Violation

FIRST_DELAY_LEVEL = 3
NEVER = -1
_OF_A_RECORD = frozenset(
    {"DELAY", "REAL_TOPIC", "REAL_QID", "WAIT", MULTI_QUEUE_OFFSET}
)
"""Properties that each record of a message gets anew, or never has twice."""
DEAD_LETTER_QUEUES = 1
"""So many queues has a topic of dead letters. Source: DLQ_NUMS_PER_GROUP."""


class GivenBack(NamedTuple):
    """A message that a consumer sent back.

    Attributes:
        topic: its original topic.
        tries: how often it had been sent back before.
        levels: the delay levels, one of which it must wait for before it comes
            again; ``NEVER``: it becomes a dead letter.
    """

    queue: OneQueue
    unique_key: str
    topic: str
    tries: int
    levels: frozenset[int]

    @property
    def name(self) -> str:
        """The group, client, queue and message, for a violation."""
        return f"{self.queue.name}, {self.unique_key}"

    @property
    def retry_topic(self) -> str:
        """The group's retry topic."""
        return f"{RETRY_PREFIX}{self.queue.group}"

    @property
    def dead_letters(self) -> str:
        """The group's dead-letter topic."""
        return f"{DLQ_PREFIX}{self.queue.group}"


def _waits(copy: MessageToPut) -> bool:
    """Whether the copy is put to the topic of delayed messages first."""
    return copy.topic == SCHEDULE_TOPIC


def _of_its_group(
    given: GivenBack, copies: Sequence[MessageToPut]
) -> list[MessageToPut]:
    """The copies in the group's own topics; copies elsewhere are CON-10's business."""
    topics = (given.retry_topic, given.dead_letters)
    return [copy for copy in copies if copy.destination[0] in topics]


@law(
    "RTY-1",
    "a message that was sent back is stored in a queue that exists in its group's "
    "retry or dead-letter topic",
    catalogue="I12",
)
def given_back_where_somebody_looks(
    given: GivenBack, copies: Sequence[MessageToPut], retry_queues: int
) -> Iterator[Violation]:
    """No consumer of the group would ever find it in any other queue.

    ``retry_queues``: how many queues the group's retry topic has.

    Source: AbstractSendMessageProcessor#consumerSendMsgBack, its newTopic's queues.
    """
    for copy in _of_its_group(given, copies):
        topic, queue_id = copy.destination
        is_dead = topic == given.dead_letters
        queues = DEAD_LETTER_QUEUES if is_dead else retry_queues
        if queue_id >= queues:
            seen = f"it is put to {topic}/{queue_id}"
            yield Violation(given.name, seen, f"to one of {queues} queues")


@law(
    "RTY-2",
    "a message that was sent back keeps the name of its original topic, however often "
    "it is sent back",
    catalogue="I3",
)
def given_back_as_of_its_topic(
    given: GivenBack, copies: Sequence[MessageToPut]
) -> Iterator[Violation]:
    """Listeners are shown that topic: they know no other.

    Source: consumerSendMsgBack, its RETRY_TOPIC; #resetRetryAndNamespace.
    """
    for copy in _of_its_group(given, copies):
        told = copy.properties.get("RETRY_TOPIC", "")
        if told != given.topic:
            seen = f"its RETRY_TOPIC is {told or 'missing'}"
            yield Violation(given.name, seen, given.topic)


@law(
    "RTY-3",
    "a message that was sent back waits one delay level longer each time, or for the "
    "level that the listener names, and goes to the dead-letter topic after its "
    "consumer's maxReconsumeTimes or if the listener says so",
    catalogue="I12 I13",
)
def given_back_for_its_tries(
    given: GivenBack, copies: Sequence[MessageToPut]
) -> Iterator[Violation]:
    """A message that timed out in its listener waits for the first level again.

    Source: AbstractSendMessageProcessor#consumerSendMsgBack, #cleanExpiredMsg.
    """
    expected = {
        f"{given.retry_topic} after level {level}" if level > 0 else given.dead_letters
        for level in sorted(given.levels)
    }
    for copy in _of_its_group(given, copies):
        topic, _ = copy.destination
        seen = f"{topic} after level {copy.delay_level}" if _waits(copy) else topic
        if seen not in expected:
            told = f"after {given.tries} tries it is put to {seen}"
            yield Violation(given.name, told, f"to {' or '.join(sorted(expected))}")


@law(
    "RTY-4",
    "a message that failed and could not be sent back is given to the same consumer "
    "again with one more reconsume time, and not before its wait is over: 5 s, or the "
    "pause of a queue that is consumed in order",
    catalogue="I12 I13",
)
def tried_again_in_its_time(
    given: Consumed, failed: Failed, at_ms: int
) -> Iterator[Violation]:
    """``failed`` is the last failed attempt of the same consumer.

    A wait ends where the clock was set back behind its beginning.

    Source: ConsumeMessageConcurrentlyService#processConsumeResult, its msgBackFailed;
    ConsumeMessageOrderlyService#checkReconsumeTimes, #submitConsumeRequestLater.
    """
    where = f"{given.queue.name}, message {given.queue_offset}"
    if given.tries != failed.tries + 1:
        seen = f"it has reconsumeTimes {given.tries}"
        yield Violation(where, seen, f"{failed.tries + 1}")
    waited = at_ms - failed.at_ms
    if 0 <= waited < failed.waits_ms:
        seen = f"it is given again after {waited} ms"
        yield Violation(where, seen, f"{failed.waits_ms} ms at least")


@law(
    "RTY-5",
    "a message sent to a group's retry topic is stored in its dead-letter topic if it "
    "has more reconsume times than allowed or a client of the group holds a queue "
    "lock, else in the retry topic",
    catalogue="I12 I13",
)
def sent_to_its_retries_or_dead_letters(
    sent: MessageToPut, copies: Sequence[MessageToPut], *, is_dead: bool
) -> Iterator[Violation]:
    """``copies`` are what the broker has passed to the store for ``sent``.

    Source: SendMessageProcessor#handleRetryAndDLQ.
    """
    expected = _dead_letters_of(sent), 0
    if not is_dead:
        expected = sent.topic, sent.queue_id
    for copy in copies:
        if copy.destination != expected:
            told = f"after {sent.reconsume_times} tries it is put to {_place(copy)}"
            yield Violation(sent.unique_key, told, f"to {expected[0]}/{expected[1]}")


@law(
    "RTY-6",
    "a message that a producer sends is stored once, and as it was sent; as a dead "
    "letter it has no delay level",
    catalogue="I3 I12",
)
def sent_once_and_as_it_was(
    sent: MessageToPut, copies: Sequence[MessageToPut], levels: DelayLevels | None
) -> Iterator[Violation]:
    """A broker with delay ``levels`` stores a delayed message in its level's queue.

    Source: SendMessageProcessor#sendMessage, #handleRetryAndDLQ.
    """
    if len(copies) != 1:
        told = " and ".join(map(_place, copies)) or "nowhere"
        yield Violation(sent.unique_key, f"it is put {told}", "once")
    for copy in copies:
        expected = sent if levels is None else sent.scheduled(levels)
        letters = _dead_letters_of(sent)
        if sent.topic.startswith(RETRY_PREFIX) and copy.topic == letters:
            expected = replace(sent, topic=letters, queue_id=0, delay_level=0)
        if copy != expected:
            seen = f"it is put as {_unlike(copy, expected)}"
            yield Violation(sent.unique_key, seen, f"as {_unlike(expected, copy)}")


@law(
    "RTY-7",
    "when a consumer sends a message back, the broker passes it to its store, unless "
    "it does not know the consumer's group or that has no retry queue; then it refuses "
    "the message",
    catalogue="I12",
)
def given_back_to_the_store(
    queue: OneQueue, code: str, *, is_put: bool, has_retries: bool
) -> Iterator[Violation]:
    """The store may refuse it, or not answer in time.

    The consumer hands the message over with its bytes, so the log need not hold it any
    more; else this is asked while the log holds it. ``has_retries``: whether its group
    has a retry queue.

    Source: AbstractSendMessageProcessor#consumerSendMsgBack. Differs: RocketMQ confirms
    what it does not store for a group without a retry queue.
    """
    is_unknown = code == "SUBSCRIPTION_GROUP_NOT_EXIST"
    if has_retries and not is_put and not is_unknown:
        yield Violation(queue.name, f"it is refused with {code}", "it is put")
    if not has_retries and (is_put or code == "SUCCESS"):
        yield Violation(queue.name, f"it is put: {code}", "a refusal: no retry queue")


@law(
    "RTY-8",
    "a message that was sent back is stored as its consumer had it, but for where it "
    "goes, how long it waits and how often it was tried, and it names the record that "
    "was consumed first",
    catalogue="I3",
)
def given_back_as_it_was(
    given: GivenBack, had: Record, copies: Sequence[MessageToPut]
) -> Iterator[Violation]:
    """``had`` is the message as its consumer had it.

    Source: AbstractSendMessageProcessor#consumerSendMsgBack, its msgInner and
    ORIGIN_MESSAGE_ID; MessageDecoder#createMessageId.
    """
    kept = _kept(had.properties)
    kept.setdefault("RETRY_TOPIC", had.topic)
    kept.setdefault("ORIGIN_MESSAGE_ID", message_id(had.store_host, had.phy_offset))
    expected = _fields_kept(had)
    for copy in _of_its_group(given, copies):
        for name, value in _fields_kept(copy).items():
            if value != expected[name]:
                told = f"its copy has {name} {value}"
                yield Violation(given.name, told, expected[name])
        found = _kept(copy.properties)
        for name in sorted({*found, *kept}):
            if found.get(name) != kept.get(name):
                told = f"its copy has {name} {found.get(name, 'missing')}"
                yield Violation(given.name, told, kept.get(name, "no such property"))


def _fields_kept(message: Record | MessageToPut) -> dict[str, str]:
    """The fields that a message keeps when it is sent back, as text."""
    return {
        "body": bytes(message.body).hex(),
        "flag": f"{message.flag}",
        "sysFlag": f"{message.sys_flag}",
        "bornTimestamp": f"{message.born_timestamp}",
        "bornHost": message.born_host.hex(),
    }


def _kept(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that a message keeps when it is sent back, without empty ones."""
    return {
        name: value
        for name, value in properties.items()
        if value and name not in _OF_A_RECORD
    }


def _dead_letters_of(sent: MessageToPut) -> str:
    """The dead-letter topic beside the retry topic of a message."""
    return f"{DLQ_PREFIX}{sent.topic.removeprefix(RETRY_PREFIX)}"


def _place(copy: MessageToPut) -> str:
    topic, queue_id = copy.destination
    return f"{topic}/{queue_id}"


def _unlike(one: MessageToPut, other: MessageToPut) -> str:
    """The fields of a message in which it differs from the other."""
    names = [field.name for field in fields(one) if field.compare]
    told = [(name, getattr(one, name)) for name in names]
    return ", ".join(
        [f"{name} {value!r}" for name, value in told if value != getattr(other, name)]
    )
