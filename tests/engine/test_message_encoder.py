"""What RocketMQ 5.3.0 writes with its options, byte for byte, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crashmq.engine.store.message.message import (
    Host,
    Message,
    delivery_time,
    message_id,
)
from crashmq.engine.store.message.message_codec import check_message
from crashmq.engine.store.message.message_encoder import (
    MessageRejected,
    check_light_queues,
    check_reserved,
    encode_message,
)
from crashmq.engine.store.results import PutMessageStatus

PHY_OFFSET = 0x40000100
STORED_AT = 1_700_000_000_123
SAMPLE = Message(
    topic="TopicTest",
    queue_id=3,
    body=b"Hello",
    properties={"KEYS": "K1", "UNIQ_KEY": "0A000001", "TAGS": "TagA"},
    born_timestamp=1_700_000_000_000,
    born_host=Host(bytes((10, 0, 0, 1)), 54321),
    store_host=Host(bytes((192, 168, 77, 5)), 10911),
)


def placed(message: Message, *, prop_crc: bool = False) -> bytes:
    encoded = encode_message(message, 4096, prop_crc=prop_crc)
    return encoded.placed(7, PHY_OFFSET, STORED_AT)


def test_a_property_crc_is_rocketmqs_byte_for_byte() -> None:
    plain, record = placed(SAMPLE), placed(SAMPLE, prop_crc=True)

    assert (len(plain), len(record)) == (141, 161)
    assert record[:4].hex() == "000000a1"
    assert record[0x67:0x69].hex() == "0038"
    assert record[141:] == b"__CRC32#\x015105669830\x02"
    assert record[4:0x67] == plain[4:0x67]


@pytest.mark.parametrize("at", [4 + 8, 16, 20, 40, 48, 60, 66, 72, 0x5E, 0x6A])
def test_a_property_crc_covers_what_no_other_does(at: int) -> None:
    record = bytearray(placed(SAMPLE, prop_crc=True))
    record[at] ^= 1

    request = check_message(
        bytes(record), 0, PHY_OFFSET, 4096, check_crc=True, prop_crc=True
    )

    assert not request.success


def test_a_record_without_its_crc_is_told_by_its_bodys() -> None:
    record = placed(SAMPLE)

    request = check_message(record, 0, PHY_OFFSET, 4096, check_crc=True, prop_crc=True)

    assert request.success


def test_the_crc_of_another_record_is_not_carried_along() -> None:
    again = replace(SAMPLE, properties={**SAMPLE.properties, "__CRC32#": "5105669830"})

    assert placed(again) == placed(SAMPLE)
    assert placed(again, prop_crc=True) == placed(SAMPLE, prop_crc=True)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (SAMPLE.store_host, "C0A84D0500002A9F0000000040000100"),
        (
            Host(bytes.fromhex("20010db8000000000000000000000001"), 10911),
            "20010DB800000000000000000000000100002A9F0000000040000100",
        ),
    ],
)
def test_an_id_says_who_stores_a_message_and_where(host: Host, expected: str) -> None:
    assert message_id(host, PHY_OFFSET) == expected


@pytest.mark.parametrize(
    ("level", "delay_ms"), [(1, 1000), (3, 10_000), (18, 7_200_000), (99, 7_200_000)]
)
def test_a_unit_of_the_schedule_topic_says_when_to_deliver(
    level: int, delay_ms: int
) -> None:
    message = replace(
        SAMPLE, topic="SCHEDULE_TOPIC_XXXX", properties={"DELAY": str(level)}
    )

    request = check_message(placed(message), 0, PHY_OFFSET, 4096, check_crc=True)

    assert request.tags_code == delivery_time(level, STORED_AT) == STORED_AT + delay_ms


@pytest.mark.parametrize(
    "fields",
    [
        {"queue_id": -1},
        {"flag": 1 << 31},
        {"sys_flag": 0x800},
        {"reconsume_times": -1},
        {"born_timestamp": 1 << 63},
        {"prepared_transaction_offset": -1},
    ],
)
def test_a_number_out_of_its_range_is_refused(fields: dict[str, int]) -> None:
    with pytest.raises(MessageRejected, match=next(iter(fields))) as caught:
        placed(replace(SAMPLE, **fields))  # type: ignore[arg-type]

    assert caught.value.status is PutMessageStatus.MESSAGE_ILLEGAL


def test_a_property_crc_counts_to_the_properties_limit() -> None:
    properties = {"a": "x" * (32767 - 3 - 19)}
    message = replace(SAMPLE, properties=properties)

    assert placed(message)
    with pytest.raises(MessageRejected) as caught:
        placed(message, prop_crc=True)
    assert caught.value.status is PutMessageStatus.PROPERTIES_SIZE_EXCEEDED


@pytest.mark.parametrize(
    "message",
    [
        replace(SAMPLE, sys_flag=0x80),
        replace(SAMPLE, properties={"INNER_NUM": "2"}),
        replace(SAMPLE, properties={"INNER_MULTI_QUEUE_OFFSET": "3"}),
        replace(SAMPLE, topic="SCHEDULE_TOPIC_XXXX", properties={"DELAY": "soon"}),
    ],
)
def test_what_only_the_store_may_write_is_refused(message: Message) -> None:
    with pytest.raises(MessageRejected):
        check_reserved(message)


@pytest.mark.parametrize(
    "names", [("foo", "%LMQ%a"), ("%LMQ%",), ("%LMQ%a/b",), ("%LMQ%a", "%LMQ%a"), ("",)]
)
def test_a_list_of_light_queues_names_light_queues_each_once(
    names: tuple[str, ...],
) -> None:
    check_light_queues("T0", ("%LMQ%a", "%LMQ%b"))
    with pytest.raises(MessageRejected):
        check_light_queues("T0", names)
    with pytest.raises(MessageRejected, match="twice"):
        check_light_queues("%LMQ%a", ("%LMQ%a",))
