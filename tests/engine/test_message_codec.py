"""Records byte for byte, and what a check of bytes can say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crashmq.engine.store.dispatch import FILLER
from crashmq.engine.store.message import message_codec
from crashmq.engine.store.message.message import (
    Host,
    Message,
    java_string_hash,
    properties_to_bytes,
)
from crashmq.engine.store.message.message_codec import check_message, encode_filler
from crashmq.engine.store.message.message_encoder import MessageRejected, encode_message
from crashmq.engine.store.results import PutMessageStatus

PHY_OFFSET = 0x40000100
QUEUE_OFFSET = 7
STORED_AT = 1_700_000_000_123
BODY_MAX = 4096
FOREVER = 1 << 30  # bytes left in the file

# What RocketMQ 5.3.0 writes for SAMPLE.
SAMPLE = Message(
    topic="TopicTest",
    queue_id=3,
    body=b"Hello",
    properties={"KEYS": "K1", "UNIQ_KEY": "0A000001", "TAGS": "TagA"},
    born_timestamp=1_700_000_000_000,
    born_host=Host(bytes((10, 0, 0, 1)), 54321),
    store_host=Host(bytes((192, 168, 77, 5)), 10911),
)
SAMPLE_RECORD = bytes.fromhex(
    "0000008d daa320a7 77d18982 00000003 00000000 0000000000000007 0000000040000100"
    "00000000 0000018bcfe56800 0a000001 0000d431 0000018bcfe5687b c0a84d05 00002a9f"
    "00000000 0000000000000000 00000005 48656c6c6f 09 546f70696354657374 0024"
    "4b455953014b3102 554e49515f4b4559013041303030303031 02 544147530154616741 02"
)
BORN_V6 = Host(bytes.fromhex("20010db8000000000000000000000001"), 54321)


def placed(message: Message) -> bytes:
    encoded = encode_message(message, BODY_MAX)
    return encoded.placed(QUEUE_OFFSET, PHY_OFFSET, STORED_AT)


def plain(**fields: object) -> Message:
    message = Message("T0", 0, b"0000000")
    return replace(message, **fields)  # type: ignore[arg-type]


def with_bytes(record: bytes, at: int, data: bytes) -> bytes:
    return record[:at] + data + record[at + len(data) :]


def rejected(message: Message) -> PutMessageStatus:
    with pytest.raises(MessageRejected) as caught:
        encode_message(message, BODY_MAX)
    return caught.value.status


def test_a_record_is_rocketmqs_byte_for_byte() -> None:
    assert placed(SAMPLE) == SAMPLE_RECORD


def test_a_checked_record_says_what_it_holds() -> None:
    request = check_message(SAMPLE_RECORD, 0, PHY_OFFSET, 141, check_crc=True)

    assert request.success
    assert request.msg_size == 141
    assert (request.topic, request.queue_id) == ("TopicTest", 3)
    assert request.commit_log_offset == PHY_OFFSET
    assert request.consume_queue_offset == QUEUE_OFFSET
    assert request.store_timestamp == STORED_AT
    assert request.tags_code == 0x27A807
    assert request.has_unit


def test_an_ipv6_born_host_takes_twelve_bytes_more() -> None:
    record = placed(replace(SAMPLE, born_host=BORN_V6))

    assert len(record) == 153
    assert record[0x24:0x28].hex() == "00000010"
    assert record[0x30:0x44].hex() == "20010db80000000000000000000000010000d431"
    assert record[0x44:] == SAMPLE_RECORD[0x38:]


def test_an_ipv6_store_host_takes_twelve_bytes_more() -> None:
    record = placed(replace(SAMPLE, store_host=BORN_V6))

    assert record[0x24:0x28].hex() == "00000020"
    assert record[0x38:0x40] == SAMPLE_RECORD[0x38:0x40]
    assert record[0x40:0x54].hex() == "20010db80000000000000000000000010000d431"


def test_a_flag_of_ipv6_follows_the_address_and_not_the_caller() -> None:
    record = placed(replace(SAMPLE, sys_flag=0x31))

    assert record[0x24:0x28].hex() == "00000001"
    assert check_message(record, 0, PHY_OFFSET, 141, check_crc=True).success


def test_rocketmqs_v2_record_with_an_ipv6_born_host_is_read() -> None:
    v1 = placed(replace(SAMPLE, born_host=BORN_V6))
    head = bytes.fromhex("0000009a daa320ab")
    record = head + v1[8:0x69] + bytes.fromhex("0009") + v1[0x6A:]

    request = check_message(record, 0, PHY_OFFSET, FOREVER, check_crc=True)

    assert (request.success, request.msg_size) == (True, 154)
    assert (request.topic, request.tags_code) == ("TopicTest", 0x27A807)
    assert request.store_timestamp == STORED_AT


@pytest.mark.parametrize(
    ("topic", "head"),
    [
        ("t" * 127, "daa320a7 7f"),
        ("t" * 128, "daa320ab 0080"),
        ("t" * 255, "daa320ab 00ff"),
    ],
)
def test_the_version_follows_the_topics_bytes(topic: str, head: str) -> None:
    record = placed(plain(topic=topic, body=b""))
    magic, topic_size = (bytes.fromhex(part) for part in head.split())

    assert record[4:8] == magic
    assert record[88 : 88 + len(topic_size)] == topic_size
    request = check_message(record, 0, PHY_OFFSET, FOREVER, check_crc=True)
    assert request.topic == topic


def test_a_filler_says_the_bytes_left_and_its_magic() -> None:
    assert encode_filler(100).hex() == "00000064cbd43194"


def test_a_filler_is_known_by_the_bytes_left() -> None:
    filler = encode_filler(100)

    assert check_message(filler, 0, PHY_OFFSET, 100, check_crc=True) is FILLER
    for left in (99, 101):
        request = check_message(filler, 0, PHY_OFFSET, left, check_crc=True)
        assert request is message_codec.BAD_FILLER


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("TagA", 2598919),
        ("payment", -786681338),
        ("polygenelubricants", -(2**31)),
        ("\U0001f4b0", 31 * 0xD83D + 0xDCB0),  # one character, two units
    ],
)
def test_a_java_hash_runs_over_utf16_units(text: str, code: int) -> None:
    assert java_string_hash(text) == code


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (plain(topic=""), PutMessageStatus.MESSAGE_ILLEGAL),
        (plain(topic="t" * 256), PutMessageStatus.MESSAGE_ILLEGAL),
        (plain(body=bytes(BODY_MAX + 1)), PutMessageStatus.MESSAGE_ILLEGAL),
        (plain(properties={"a": "\0"}), PutMessageStatus.MESSAGE_ILLEGAL),
        (
            plain(properties={"a": "x" * 32765}),
            PutMessageStatus.PROPERTIES_SIZE_EXCEEDED,
        ),
    ],
)
def test_what_no_record_holds_is_rejected(
    message: Message, status: PutMessageStatus
) -> None:
    assert rejected(message) is status


def test_the_largest_parts_fit() -> None:
    message = plain(
        topic="t" * 255, body=bytes(BODY_MAX), properties={"a": "x" * 32764}
    )

    assert len(properties_to_bytes(message.properties)) == 32767
    assert len(placed(message)) == 92 + 255 + BODY_MAX + 32767


SMALL = placed(plain())  # 100 bytes: 88 of header, body at 88, topic length at 95
TAGGED = placed(plain(properties={"TAGS": "TagA"}))


@pytest.mark.parametrize(
    ("record", "flaw", "why"),
    [
        (bytes(100), "BAD_MAGIC", "zeros"),
        (SMALL[:7], "TOO_SHORT", "too few bytes for a length and a magic"),
        (SMALL[:99], "BAD_SIZE", "the record goes on behind the data"),
        (with_bytes(SMALL, 4, b"\xda\xa3\x20\xa8"), "BAD_MAGIC", "another magic"),
        (with_bytes(SMALL, 0, (90).to_bytes(4, "big")), "BAD_SIZE", "too short"),
        (with_bytes(SMALL, 0, b"\xff\xff\xff\xff"), "BAD_SIZE", "a negative length"),
        (with_bytes(SMALL, 0, b"\x7f\xff\xff\xff"), "BAD_SIZE", "near 2 GiB"),
        (with_bytes(SMALL, 36, b"\0\0\0\x30"), "BAD_SIZE", "no room for IPv6"),
        (with_bytes(SMALL, 84, b"\xff\xff\xff\xff"), "BAD_BODY", "a negative body"),
        (with_bytes(SMALL, 84, b"\0\0\0\x0c"), "BAD_BODY", "a body beyond the end"),
        (with_bytes(SMALL, 28, bytes(8)), "BAD_OFFSET", "the record of another offset"),
        (with_bytes(SMALL, 56, bytes(8)), "BAD_TIME", "its times lost with 64 bytes"),
        (with_bytes(SMALL, 90, b"x"), "BAD_BODY_CRC", "a body that its CRC denies"),
        (with_bytes(SMALL, 95, b"\x80"), "BAD_TOPIC", "a negative length of the topic"),
        (with_bytes(SMALL, 96, b"\0"), "BAD_TOPIC", "a topic lost with its sector"),
        (with_bytes(TAGGED, 104, b"\0"), "BAD_PROPERTIES", "a property lost"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_what_is_no_record_says_why_not(record: bytes, flaw: str, why: str) -> None:
    request = check_message(record, 0, PHY_OFFSET, FOREVER, check_crc=True)

    assert request is getattr(message_codec, flaw), why
    assert (request.success, request.msg_size) == (False, -1)


def test_a_record_longer_than_the_rest_of_its_file_is_illegal() -> None:
    request = check_message(SMALL, 0, PHY_OFFSET, 99, check_crc=True)

    assert request is message_codec.BAD_SIZE


@pytest.mark.parametrize(
    ("at", "data"),
    [
        (95, b"\0"),  # no topic
        (95, b"\x01"),  # a shorter topic
        (95, b"\x7f"),  # a topic beyond the end
        (98, b"\0\x01"),  # properties beyond the end
    ],
)
def test_lengths_that_do_not_add_up_are_half_a_message(at: int, data: bytes) -> None:
    record = with_bytes(SMALL, at, data)

    request = check_message(record, 0, PHY_OFFSET, FOREVER, check_crc=True)

    assert (request.success, request.msg_size) == (False, 100)


@pytest.mark.parametrize("body_size", [b"\xff\xff\xff\xff", b"\0\0\0\x0c"])
def test_a_body_beyond_its_record_is_illegal_without_the_crc_too(
    body_size: bytes,
) -> None:
    record = with_bytes(SMALL, 84, body_size)

    request = check_message(record, 0, PHY_OFFSET, FOREVER, check_crc=False)

    assert request is message_codec.BAD_BODY


def test_without_the_crc_a_changed_body_passes() -> None:
    record = with_bytes(SMALL, 90, b"x")

    assert check_message(record, 0, PHY_OFFSET, FOREVER, check_crc=False).success


def test_a_record_is_read_where_it_lies_in_the_data() -> None:
    data = b"before" + SMALL + b"behind"

    request = check_message(data, 6, PHY_OFFSET, FOREVER, check_crc=True)

    assert (request.success, request.msg_size) == (True, 100)


@pytest.mark.parametrize(
    ("sys_flag", "has_unit"),
    [(0x0, True), (0x4, False), (0x8, True), (0xC, False), (0x1, True)],
)
def test_queues_list_plain_and_committed_messages(
    sys_flag: int, has_unit: bool
) -> None:
    record = placed(plain(sys_flag=sys_flag))

    request = check_message(record, 0, PHY_OFFSET, FOREVER, check_crc=True)

    assert request.has_unit is has_unit
