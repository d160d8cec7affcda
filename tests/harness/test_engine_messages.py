"""The bodies of batches whose lengths do not add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashmq.engine.store.message.message_batch import (
    InnerMessage,
    decode_batch,
    encode_batch,
)
from crashmq.engine.store.message.message_encoder import MessageRejected
from crashmq.harness.subjects.engine_messages import flawed
from crashmq.models.messages import MessageToPut, adds_up, batch_for
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


WRONG: tuple[BatchLength, ...] = ("message", "body", "properties")


@pytest.mark.parametrize("off_by", [-1, -22, -(1 << 32), 1, 2, 22, 300, 1 << 32])
@pytest.mark.parametrize("which", WRONG)
def test_a_wrong_length_is_refused(which: BatchLength, off_by: int) -> None:
    body, messages = batch(PutBatch("T0", 0, (3, 5), wrong=which, off_by=off_by))
    told = flawed(body, messages)

    changed = [at for at, byte in enumerate(body) if told[at] != byte]
    last = len(body) - HEAD - 5 - 2 - len(messages[-1].own_properties)
    begin = {"message": last, "body": last + 16, "properties": last + HEAD + 5}[which]
    assert changed
    assert begin <= min(changed) <= max(changed) < begin + 4
    assert not adds_up(messages)
    with pytest.raises(MessageRejected):
        decode_batch(told)


@given(
    st.sampled_from(WRONG),
    st.integers(-400, 400),
    st.lists(st.integers(0, 300), min_size=1),
)
def test_the_model_knows_which_lengths_add_up(
    which: BatchLength, off_by: int, sizes: list[int]
) -> None:
    op = PutBatch("T0", 0, tuple(sizes), wrong=which, off_by=off_by, properties="a=b")
    body, messages = batch(op)
    told = flawed(body, messages)

    if adds_up(messages):
        assert len(decode_batch(told)) == len(sizes)
    else:
        with pytest.raises(MessageRejected):
            decode_batch(told)
