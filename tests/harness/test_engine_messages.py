"""The bodies of batches whose lengths do not add up."""

from __future__ import annotations

import pytest

from crashmq.engine.store.message.message_batch import (
    InnerMessage,
    decode_batch,
    encode_batch,
)
from crashmq.engine.store.message.message_encoder import MessageRejected
from crashmq.harness.subjects.engine_messages import flawed
from crashmq.models.messages import MessageToPut, batch_for
from crashmq.models.ops import BatchLength, PutBatch

HEAD = 20


def batch(op: PutBatch) -> tuple[bytes, list[MessageToPut]]:
    messages = batch_for(op, 0, 0, 0)
    inner = [
        InnerMessage(one.body, {}, one.flag, one.own_properties) for one in messages
    ]
    return encode_batch(inner), messages


def test_a_batch_that_adds_up_stays_as_it_is() -> None:
    body, messages = batch(PutBatch("T0", 0, (3, 5)))

    assert flawed(body, messages) == body


@pytest.mark.parametrize(
    ("which", "says"),
    [
        *(("message", -1), ("message", -(1 << 31)), ("body", -22)),
        *(("body", -(1 << 31)), ("properties", -1), ("properties", -(1 << 31))),
        ("body", 7),  # as a hunt may change it
    ],
)
def test_a_length_below_0_is_refused(which: BatchLength, says: int) -> None:
    body, messages = batch(PutBatch("T0", 0, (3, 5), negative=which, says=says))
    told = flawed(body, messages)

    changed = [at for at, byte in enumerate(body) if told[at] != byte]
    last = len(body) - HEAD - 5 - 2 - len(messages[-1].own_properties)
    begin = {"message": last, "body": last + 16, "properties": last + HEAD + 5}[which]
    assert changed
    assert begin <= min(changed) <= max(changed) < begin + 4
    with pytest.raises(MessageRejected):
        decode_batch(told)
