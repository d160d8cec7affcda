"""Batches: their bodies byte for byte, and records that stand or fall together."""

from __future__ import annotations

import pytest
from store_builder import LOG_FILE_SIZE, StoreBuilder

from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message.message_batch import (
    InnerMessage,
    decode_batch,
    encode_batch,
)
from crashmq.engine.store.message.message_encoder import MessageRejected
from crashmq.engine.store.results import PutMessageResult, PutMessageStatus

WIRE = bytes.fromhex(
    "00000022 00000000 00000000 00000000 00000002 4230 000a 54414753015461674102"
)
ILLEGAL = PutMessageStatus.MESSAGE_ILLEGAL


def inner(count: int, body_size: int = 7) -> list[InnerMessage]:
    return [InnerMessage(b"%0*d" % (body_size, n), {}) for n in range(count)]


def send(store: StoreBuilder, body: bytes, **fields: object) -> PutMessageResult:
    batch = Message("T0", 0, body, **fields)  # type: ignore[arg-type]
    live = store.live
    return store.runtime.run(lambda: live.put_messages(batch))


def test_a_body_is_rocketmqs_byte_for_byte() -> None:
    message = InnerMessage(b"B0", {"TAGS": "TagA"})

    assert encode_batch([message]) == WIRE
    read = message._replace(raw=b"TAGS\x01TagA\x02")
    assert decode_batch(WIRE * 2) == [read] * 2


@pytest.mark.parametrize(
    "body",
    [
        WIRE[:-1],
        WIRE + b"\0",
        WIRE[:3] + b"\x21" + WIRE[4:],
        WIRE[:16] + b"\x7f" + WIRE[17:],
        WIRE[:16] + b"\xff" + WIRE[17:],
        bytes(len(WIRE)),
        WIRE[:23] + b"\xff" + WIRE[24:],
    ],
)
def test_a_body_whose_parts_do_not_add_up_is_refused(body: bytes) -> None:
    with pytest.raises(MessageRejected, match="batch") as caught:
        decode_batch(body)

    assert caught.value.status is ILLEGAL


def test_each_message_is_a_record_of_its_own(store: StoreBuilder) -> None:
    result = send(
        store, encode_batch(inner(3)), properties={"CLUSTER": "c"}, born_timestamp=9
    )

    records = store.image().commit_log.records
    assert [record.queue_offset for record in records] == [0, 1, 2]
    assert [bytes(r.body) for r in records] == [b"0000000", b"0000001", b"0000002"]
    assert [record.properties for record in records] == [{"CLUSTER": "c"}] * 3
    assert result.status is PutMessageStatus.PUT_OK
    assert (result.queue_offset, result.size) == (0, sum(r.size for r in records))
    assert result.phy_offsets == tuple(record.phy_offset for record in records)
    assert [int(i[-16:], 16) for i in result.message_ids] == [*result.phy_offsets]


def test_the_queue_goes_on_behind_a_batch(store: StoreBuilder) -> None:
    store.put(2)
    assert send(store, encode_batch(inner(3))).queue_offset == 2

    store.put().reput()

    assert [unit.queue_offset for unit in store.queue()] == [0, 1, 2, 3, 4, 5]


def test_a_batch_that_does_not_fit_rolls_whole(store: StoreBuilder) -> None:
    store.put(8)

    result = send(store, encode_batch(inner(3)))

    assert result.phy_offset == LOG_FILE_SIZE
    assert len(store.image().commit_log.files[0].records) == 8


def test_a_batch_larger_than_a_file_changes_nothing(store: StoreBuilder) -> None:
    store.put()
    before = dict(store.disk.files())

    assert send(store, encode_batch(inner(11))).status is ILLEGAL
    assert dict(store.disk.files()) == before
    assert store.put().results[-1].queue_offset == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"sys_flag": 0x4},
        {"properties": {"DELAY": "3"}},
        {"body": b""},
        {"body": encode_batch([InnerMessage(bytes(1000), {})])},
        {"body": encode_batch([InnerMessage(b"", {"INNER_NUM": "1"})])},
        {"body": encode_batch([InnerMessage(b"", {"INNER_MULTI_DISPATCH": "%LMQ%a"})])},
    ],
)
def test_what_no_batch_may_be_is_refused(
    store: StoreBuilder, fields: dict[str, object]
) -> None:
    store.configured(max_message_size=1000, enable_multi_dispatch=True)
    given = {"body": encode_batch(inner(2)), **fields}

    assert send(store, **given).status is ILLEGAL  # type: ignore[arg-type]


def test_a_property_too_long_for_its_length_is_refused() -> None:
    with pytest.raises(MessageRejected) as caught:
        encode_batch([InnerMessage(b"", {"a": "x" * 32766})])

    assert caught.value.status is PutMessageStatus.PROPERTIES_SIZE_EXCEEDED
