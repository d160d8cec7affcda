"""Appended: a message that a store appended, and what its record must hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from crashmq.models.files.store_image import Record
from crashmq.models.messages import MULTI_DISPATCH, MULTI_QUEUE_OFFSET, MessageToPut

_SAME_IN_THE_RECORD = (
    *("flag", "sys_flag", "born_timestamp", "born_host", "store_host"),
    *("reconsume_times", "prepared_transaction_offset"),
)


@dataclass(slots=True, unsafe_hash=True)  # what it is compared by never changes
class Appended:
    """A message that was appended to the log.

    Nothing ever changes in it but ``found``, so copies of a model share it. ``found``
    is a recovered record that was judged to hold the message; a later record equal to
    it needs no new judgement. ``stored_ms`` is a time at or before the record's store
    timestamp; 0 where no law needs it.

    Attributes:
        light_offsets: its queue offsets in the light queues that list it as well,
            joined by commas, as its record has them.
        listed_as: for a light queue's entry, the message as its own topic lists it.
        rivals: how many puts without an answer may have taken offsets before it in the
            same light queues.
    """

    message: MessageToPut
    phy_offset: int
    size: int
    queue_offset: int
    found: Record | None = field(default=None, compare=False)
    light_offsets: str = ""
    listed_as: Appended | None = None
    stored_ms: int = 0
    rivals: int = 0

    @property
    def end(self) -> int:
        """The phy_offset of the first byte after its record."""
        return self.phy_offset + self.size

    def in_light_queue(self, queue_offset: int) -> Appended:
        """The same message as a light queue (LMQ) lists it."""
        return Appended(
            self.message, self.phy_offset, self.size, queue_offset, listed_as=self
        )


def differs(record: Record, appended: Appended) -> str:
    """The first difference between a record and an appended message; "" if none."""
    appended = appended.listed_as or appended
    if record == appended.found:
        return ""
    message = appended.message
    if record.body != message.body:
        return f"its body is not that of {message.unique_key}"
    if (record.phy_offset, record.size) != (appended.phy_offset, appended.size):
        return f"it says it lies at {record.phy_offset} with {record.size} bytes"
    if record.queue_offset != appended.queue_offset:
        return f"its queue_offset is {record.queue_offset}"
    light_offsets = record.properties.get(MULTI_QUEUE_OFFSET, "")
    if light_offsets != appended.light_offsets and not (
        appended.rivals and _may_be_behind_rivals(light_offsets, appended)
    ):
        return f"its queue offsets in light queues are {light_offsets!r}"
    return differs_from_message(record, message)


def _may_be_behind_rivals(light_offsets: str, appended: Appended) -> bool:
    """Whether offsets in light queues are those of a message behind its rivals."""
    least = [int(offset) for offset in appended.light_offsets.split(",") if offset]
    found = [int(offset) for offset in light_offsets.split(",") if offset.isdecimal()]
    return len(found) == len(least) and all(
        first <= offset <= first + appended.rivals
        for first, offset in zip(least, found, strict=True)
    )


def differs_from_message(record: Record, message: MessageToPut) -> str:
    """The first difference between a record and a producer's message; "" if none."""
    if (record.topic, record.queue_id) != (message.topic, message.queue_id):
        return f"it is of {record.topic}/{record.queue_id}"
    if record.body != message.body:
        return f"its body is not that of {message.unique_key}"
    for name in _SAME_IN_THE_RECORD:
        if getattr(record, name) != getattr(message, name):
            return f"its {name} is {getattr(record, name)!r}"
    properties = record.properties
    if MULTI_DISPATCH in properties:
        properties.pop(MULTI_QUEUE_OFFSET, None)
    if properties != message.properties:
        return f"its properties are {properties}"
    if message.batch is not None:
        own = message.own_properties
        if record.properties_raw[: len(own)] != own:
            return f"its properties do not begin with its own in the batch, {own!r}"
    return ""
