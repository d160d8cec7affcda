from __future__ import annotations

import struct

import pytest
from written_store import HOST, MAGIC_V2, record_bytes

from crashmq.models.files.store_image import BadRecord, decode_record, tags_code

# The worked example of the store reference, section 18.1.
EXAMPLE = bytes.fromhex(
    "0000008ddaa320a777d18982000000030000000000000000000000070000000040000100"
    "000000000000018bcfe568000a0000010000d4310000018bcfe5687bc0a84d0500002a9f"
    "0000000000000000000000000000000548656c6c6f09546f706963546573740024"
    "4b455953014b3102554e49515f4b455901304130303030303102544147530154616741"
    "02"
)


def test_the_worked_example_of_the_format_decodes_field_by_field() -> None:
    record = decode_record(EXAMPLE)

    assert (record.phy_offset, record.size) == (0x40000100, 141)
    assert (record.topic, record.queue_id, record.queue_offset) == ("TopicTest", 3, 7)
    assert (record.body, record.body_crc) == (b"Hello", 0x77D18982)
    assert record.born_timestamp == 1700000000000
    assert record.store_timestamp == 1700000000123
    assert record.tags_code == 2598919
    assert record.properties == {"KEYS": "K1", "UNIQ_KEY": "0A000001", "TAGS": "TagA"}
    assert record.transaction_type == "none"


@pytest.mark.parametrize(
    ("tags", "code"),
    [
        ("", 0),
        ("TagA", 2598919),
        ("payment", -786681338),
        ("polygenelubricants", -(2**31)),
    ],
)
def test_tags_hash_as_java_strings_do(tags: str, code: int) -> None:
    assert tags_code(tags) == code


def test_tags_outside_the_basic_plane_hash_by_utf_16_units() -> None:
    assert tags_code("\U0001f4b0") == 31 * 0xD83D + 0xDCB0


def test_long_topics_and_ipv6_hosts_decode() -> None:
    data = record_bytes(0, topic="T" * 200, magic=MAGIC_V2, sys_flag=0x30)

    record = decode_record(data)

    assert record.topic == "T" * 200
    assert record.born_host == record.store_host == bytes(12) + HOST


@pytest.mark.parametrize(
    ("at", "data", "kind"),
    [
        (0, struct.pack(">i", 12), "size"),
        (0, struct.pack(">i", 142), "size"),
        (4, b"\0", "magic"),
        (84, struct.pack(">i", 6), "lengths"),
        (84, struct.pack(">i", -1), "lengths"),
        (93, b"\xff", "lengths"),
        (103, b"\xff\xff", "lengths"),
        (88, b"h", "crc"),
        (8, b"\xf7", "crc"),
        (56, bytes(8), "store_timestamp"),
    ],
)
def test_a_record_that_is_not_whole_is_refused_with_its_kind(
    at: int, data: bytes, kind: str
) -> None:
    with pytest.raises(BadRecord) as refused:
        decode_record(EXAMPLE[:at] + data + EXAMPLE[at + len(data) :])
    assert refused.value.kind == kind


def test_a_record_cut_short_is_refused() -> None:
    for size in range(len(EXAMPLE)):
        with pytest.raises(BadRecord):
            decode_record(EXAMPLE[:size])
