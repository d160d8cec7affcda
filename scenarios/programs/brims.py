"""Messages that are just as large as may be, or a byte off.

A size that is drawn hardly ever meets a limit. So a message that a program puts anyway
gets one more part: as many bytes as its limit leaves, one less or one more. Limits are
those of a topic's name, a light queue's, the properties, and a record in a log file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from crashmq.models.messages import (
    FILLER_SIZE_MIN,
    PROPERTIES_SIZE_MAX,
    TOPIC_SIZE_MAX,
    TOPIC_SIZE_MAX_V1,
    batch_for,
    message_for,
    properties_size_of,
)
from crashmq.models.ops import PutBatch, PutMessage
from crashmq.models.program import Setup
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.space import often

OFF: Final = often((0, 3), (1, 2), (-1, 1))
"""By how many bytes a size is past its limit."""
OF_A_PUT: Final = often(("record", 3), ("properties", 3), ("topic", 2), ("light", 1))
OF_A_BATCH: Final = often(("record", 2), ("properties", 2))
_LIGHT_PREFIX: Final = "%LMQ%"
_FRAME: Final = 22
"""Lengths, flag, magic and CRC of a message in a batch's body."""


def payload_of(op: PutMessage | PutBatch) -> int:
    """The bytes that a put has for ``max_message_size``: its body, or its batch's."""
    if isinstance(op, PutMessage):
        return op.body_size
    messages = batch_for(op, 0, 0, 0)
    return sum([len(one.body) + len(one.own_properties) + _FRAME for one in messages])


def at_a_limit(
    op: PutMessage | PutBatch, setup: Setup, chance: Chance, *, keeps_queue: bool
) -> PutMessage | PutBatch:
    """The put with one part at its limit; not the topic if ``keeps_queue``."""
    off = chance.pick(OFF)
    if isinstance(op, PutBatch):
        if chance.pick(OF_A_BATCH) == "record" and op.body_sizes:
            return _batch_of_a_file(op, setup, off)
        return replace(op, keys=_keys_up_to_the_limit(op, setup, off))
    kind = chance.pick(OF_A_PUT)
    if kind == "topic" and not keeps_queue:
        size = chance.pick((TOPIC_SIZE_MAX_V1, TOPIC_SIZE_MAX)) + off
        return replace(op, topic="t" * size)
    if kind == "light" and setup.multi_dispatch and not keeps_queue:
        name = _LIGHT_PREFIX + "t" * (TOPIC_SIZE_MAX + off - len(_LIGHT_PREFIX))
        return replace(op, multi_dispatch=name)
    if kind == "properties":
        return replace(op, keys=_keys_up_to_the_limit(op, setup, off))
    message = message_for(op, 0, 0, 0)
    added = message.prop_crc_size if setup.prop_crc else 0
    room = setup.log_file_size - FILLER_SIZE_MIN - added
    without_body = message.record_size - len(message.body)
    return replace(op, body_size=max(0, room - without_body + off))


def _keys_up_to_the_limit(op: PutMessage | PutBatch, setup: Setup, off: int) -> str:
    """Keys that bring the properties of each message to the most they may take."""
    bare = replace(op, keys="")
    if isinstance(bare, PutMessage):
        message = message_for(bare, 0, 0, 0)
    else:
        messages = batch_for(bare, 0, 0, 0)
        if not messages:
            return op.keys
        message = messages[0]
    added = message.prop_crc_size if setup.prop_crc else 0
    taken = message.properties_size + added + properties_size_of({"KEYS": ""})
    return "x" * (PROPERTIES_SIZE_MAX - taken + off)


def _batch_of_a_file(op: PutBatch, setup: Setup, off: int) -> PutBatch:
    """The batch whose records fill a log file to its last byte, by its last message."""
    messages = batch_for(op, 0, 0, 0, prop_crc=setup.prop_crc)
    place = messages[-1].batch
    size = place.total if place is not None else 0
    last = op.body_sizes[-1] + setup.log_file_size - FILLER_SIZE_MIN - size + off
    return replace(op, body_sizes=(*op.body_sizes[:-1], max(0, last)))
