"""LogWriter: turns a producer's message into the records that the log appends.

A message becomes one record, a batch becomes several that are appended all or not at
all, and a message for light queues (LMQ) becomes one record that names its offset in
each of them. The CommitLog does the append.

Source: CommitLog#asyncPutMessage, #asyncPutMessages, MultiDispatch, RocketMQ 5.3.
Differs: a message that does not fit a record is refused before it takes a queue_offset,
and so is one whose list of light queues has a name that is none: RocketMQ appends such
a record, and then dispatch of the whole store stops there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from crashmq.engine.host.probe import probe
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.message.message import (
    PROPERTY_MULTI_DISPATCH,
    PROPERTY_MULTI_QUEUE_OFFSET,
    Message,
)
from crashmq.engine.store.message.message_batch import expand_batch
from crashmq.engine.store.message.message_encoder import (
    EncodedMessage,
    MessageRejected,
    check_light_queues,
    check_reserved,
    encode_message,
)
from crashmq.engine.store.queue.consume_queue_store import ConsumeQueueStore
from crashmq.engine.store.results import PutMessageResult, PutMessageStatus

BATCHED = probe("commit_log.put.batch", "a batch was appended, each message a record")
LIGHT = probe("commit_log.put.light", "a message got queue offsets in light queues")
REJECTED = probe(
    "commit_log.put.rejected", "a message that no record can hold was refused"
)


class Append(Protocol):
    """The CommitLog's append of records that share topic, queue and hosts."""

    def __call__(
        self,
        message: Message,
        encode: Callable[[], list[EncodedMessage]],
        light_queues: tuple[str, ...] = (),
        /,
    ) -> PutMessageResult:
        """Append what ``encode`` returns; it is called while no other put appends."""


class LogWriter:
    """Encodes messages and passes them to the log's ``append``.

    Attributes:
        appends_prop_crc: each record ends with a CRC over all of it.
    """

    def __init__(self, config: StoreConfig, consume_queues: ConsumeQueueStore) -> None:
        self._config = config
        self._consume_queues = consume_queues
        self.appends_prop_crc = config.enabled_append_prop_crc

    def put_message(
        self, message: Message, append: Append, *, is_accepted: bool = False
    ) -> PutMessageResult:
        """Append one message, or return why it is refused.

        ``is_accepted``: the store has taken it before, so its body may be larger than
        ``max_message_size`` is by now.
        """
        size_max = self._config.max_message_size
        if is_accepted:
            size_max = max(size_max, len(message.body))
        try:
            check_reserved(message)
            if self._config.enable_multi_dispatch and message.light_queues:
                return self._put_listed_twice(message, size_max, append)
            encoded = [self._encode(message, size_max)]
        except MessageRejected as rejected:
            REJECTED.hit()
            return PutMessageResult(rejected.status)
        return append(message, lambda: encoded)

    def put_messages(self, batch: Message, append: Append) -> PutMessageResult:
        """Append the messages that a batch's body holds: all of them, or none."""
        try:
            messages = expand_batch(batch, self._config.max_message_size)
            for message in messages:
                check_reserved(message)
                if self._config.enable_multi_dispatch and message.light_queues:
                    why = f"a message of a batch has {PROPERTY_MULTI_DISPATCH}."
                    raise MessageRejected(PutMessageStatus.MESSAGE_ILLEGAL, why)
            size_max = self._config.max_message_size
            encoded = [self._encode(message, size_max) for message in messages]
        except MessageRejected as rejected:
            REJECTED.hit()
            return PutMessageResult(rejected.status)
        BATCHED.hit()
        return append(messages[0], lambda: encoded)

    def _put_listed_twice(
        self, message: Message, size_max: int, append: Append
    ) -> PutMessageResult:
        """Append a message for light queues: its record names its offset in each.

        Source: MultiDispatch#wrapMultiDispatch.
        """
        lights = message.light_queues
        check_light_queues(message.topic, lights)

        def encode() -> list[EncodedMessage]:
            next_offset = self._consume_queues.next_queue_offset
            places = ",".join([str(next_offset(name, 0)) for name in lights])
            properties = {**message.properties, PROPERTY_MULTI_QUEUE_OFFSET: places}
            LIGHT.hit()
            return [self._encode(replace(message, properties=properties), size_max)]

        return append(message, encode, lights)

    def _encode(self, message: Message, size_max: int) -> EncodedMessage:
        return encode_message(message, size_max, prop_crc=self.appends_prop_crc)
