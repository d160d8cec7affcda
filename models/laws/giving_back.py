"""Laws of messages that were given back: where each is put again, and for how long.

That it is put again at all, and once, is CON-10.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.history import Consumed, OneQueue
from crashmq.models.knowledge.consumption import Failed
from crashmq.models.laws.registry import law
from crashmq.models.messages import MessageToPut
from crashmq.models.verdict import Violation

FIRST_DELAY_LEVEL = 3
QUEUES = 1
"""So many queues has a topic of retries, and one of dead letters."""


class GivenBack(NamedTuple):
    """A message as its consumer had it.

    Attributes:
        topic: that it was put to at first.
        tries: how often it came back before.
        is_for_good: whoever gives it back has tried it as often as it wants to.
        levels: one of these it has to wait before it comes again.
    """

    queue: OneQueue
    unique_key: str
    topic: str
    tries: int
    is_for_good: bool
    levels: frozenset[int]

    @property
    def name(self) -> str:
        """Whose it is, and which."""
        one = self.queue
        where = f"{one.client} of {one.group} on {one.topic}/{one.queue_id}"
        return f"{where}, {self.unique_key}"

    @property
    def retry_topic(self) -> str:
        """Where it is tried again."""
        return f"%RETRY%{self.queue.group}"

    @property
    def dead_letters(self) -> str:
        """Where it lies once it is not."""
        return f"%DLQ%{self.queue.group}"


def _waits(copy: MessageToPut) -> bool:
    """Whether it waits first."""
    return copy.topic == SCHEDULE_TOPIC


def _of_its_group(
    given: GivenBack, copies: Sequence[MessageToPut]
) -> list[MessageToPut]:
    """Those that its group gets: others have another law."""
    topics = (given.retry_topic, given.dead_letters)
    return [copy for copy in copies if copy.destination[0] in topics]


@law(
    "RTY-1",
    "a message that was given back is put to a queue that its topic of retries, or of "
    "dead letters, has",
    catalogue="I12",
)
def given_back_where_somebody_looks(
    given: GivenBack, copies: Sequence[MessageToPut]
) -> Iterator[Violation]:
    """In any other queue nobody of the group ever finds it.

    Source: AbstractSendMessageProcessor#consumerSendMsgBack, its newTopic's queues.
    """
    for copy in _of_its_group(given, copies):
        topic, queue_id = copy.destination
        if queue_id >= QUEUES:
            seen = f"it is put to {topic}/{queue_id}"
            yield Violation(given.name, seen, f"to one of {QUEUES} queues")


@law(
    "RTY-2",
    "a message that was given back names the topic that it was put to at first, "
    "however often it came back",
    catalogue="I3",
)
def given_back_as_of_its_topic(
    given: GivenBack, copies: Sequence[MessageToPut]
) -> Iterator[Violation]:
    """Listeners are told that topic: they know no other.

    Source: consumerSendMsgBack, its RETRY_TOPIC; #resetRetryAndNamespace.
    """
    for copy in _of_its_group(given, copies):
        told = copy.properties.get("RETRY_TOPIC", "")
        if told != given.topic:
            seen = f"it is said to be of {told or 'no topic'}"
            yield Violation(given.name, seen, given.topic)


@law(
    "RTY-3",
    "a message that was given back waits one level longer each time, and is a dead "
    "letter once it was tried as often as its consumer wants",
    catalogue="I12 I13",
)
def given_back_for_its_tries(
    given: GivenBack, copies: Sequence[MessageToPut]
) -> Iterator[Violation]:
    """One that was given up by a sweep waits the first level again.

    Source: AbstractSendMessageProcessor#consumerSendMsgBack, #cleanExpiredMsg.
    """
    if given.is_for_good:
        expected = {given.dead_letters}
    else:
        levels = sorted(given.levels)
        expected = {f"{given.retry_topic} after level {level}" for level in levels}
    for copy in _of_its_group(given, copies):
        topic, _ = copy.destination
        seen = f"{topic} after level {copy.delay_level}" if _waits(copy) else topic
        if seen not in expected:
            told = f"after {given.tries} tries it is put to {seen}"
            yield Violation(given.name, told, f"to {' or '.join(sorted(expected))}")


TRIED_AGAIN_MS = 5_000
"""ConsumeMessageConcurrentlyService#submitConsumeRequestLater."""


@law(
    "RTY-4",
    "a message that its consumer failed, and could not give back, is given to it again "
    "with one try more, if it does not consume in order no sooner than after five "
    "seconds",
    catalogue="I12 I13",
)
def tried_again_in_its_time(
    given: Consumed, failed: Failed, at_ms: int, *, is_orderly: bool
) -> Iterator[Violation]:
    """``failed`` is how it was tried last, by the same consumer.

    A wait ends where the clock was set back behind its beginning.

    Source: ConsumeMessageConcurrentlyService#processConsumeResult, its msgBackFailed;
    ConsumeMessageOrderlyService#checkReconsumeTimes.
    """
    one = given.queue
    told = f"{one.client} of {one.group} on {one.topic}/{one.queue_id}"
    where = f"{told}, message {given.queue_offset}"
    if given.tries != failed.tries + 1:
        seen = f"its listener is told of {given.tries} tries"
        yield Violation(where, seen, f"{failed.tries + 1}")
    waited = at_ms - failed.at_ms
    if not is_orderly and 0 <= waited < TRIED_AGAIN_MS:
        seen = f"it is given again after {waited} ms"
        yield Violation(where, seen, f"{TRIED_AGAIN_MS} ms at least")
