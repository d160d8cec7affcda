"""Two readers, written apart, say the same of every record and of every damaged one."""

from __future__ import annotations

import random

import pytest

from crashmq.engine.store.message.message import Host, Message
from crashmq.engine.store.message.message_codec import check_message
from crashmq.engine.store.message.message_encoder import encode_message
from crashmq.models.files.record import as_listed
from crashmq.models.files.store_image import BadRecord, Record, decode_record

PHY_OFFSET = 0x40000100
FOREVER = 1 << 30  # bytes left in the file
TOPICS = (
    *("t", "TopicTest", "%RETRY%" + "t" * 53, "SCHEDULE_TOPIC_XXXX"),
    *("t" * 127, "t" * 128, "t" * 255),
)
PROPERTIES = {
    "TAGS": ("TagA", "payment", "polygenelubricants", "已付款💰", ""),
    "KEYS": ("K1 K2", "0" * 40, ""),
    "UNIQ_KEY": ("0A000001",),
    "DELAY": ("3", "0", "18", "19", "x", "-1"),
    "INNER_MULTI_DISPATCH": ("%LMQ%a,%LMQ%b", "foo,%LMQ%a", "%LMQ%,%LMQ%a", "%LMQ%a"),
    "INNER_MULTI_QUEUE_OFFSET": ("3,4", ",4", "x,9", "", "1"),
    "买家": ("x", "TAGS"),
    "xTAGS": ("TagB", "TAGS"),
}


def random_message(rng: random.Random) -> Message:
    names = rng.sample(list(PROPERTIES), rng.randrange(len(PROPERTIES) + 1))
    return Message(
        topic=rng.choice(TOPICS),
        queue_id=rng.randrange(1 << 31),
        body=rng.randbytes(rng.choice([0, 1, 2, 100, 511, 512, 513])),
        properties={name: rng.choice(PROPERTIES[name]) for name in names},
        born_timestamp=rng.randrange(-(1 << 63), 1 << 63),
        flag=rng.randrange(-(1 << 31), 1 << 31),
        sys_flag=rng.randrange(1 << 11),
        reconsume_times=rng.randrange(1 << 31),
        prepared_transaction_offset=rng.randrange(1 << 63),
        born_host=Host(rng.randbytes(rng.choice([4, 16])), rng.randrange(1 << 16)),
        store_host=Host(rng.randbytes(rng.choice([4, 16])), rng.randrange(1 << 16)),
    )


def random_record(rng: random.Random) -> tuple[Message, bytes]:
    message = random_message(rng)
    encoded = encode_message(message, 4096, prop_crc=rng.random() < 0.5)
    return message, encoded.placed(
        rng.randrange(1 << 40), PHY_OFFSET, rng.randrange(1 << 41)
    )


def decoded(record: bytes) -> Record | None:
    try:
        return decode_record(record)
    except BadRecord:
        return None


def agree_on(message: Message, record: bytes) -> None:
    ours = check_message(record, 0, PHY_OFFSET, FOREVER, check_crc=True, prop_crc=True)
    theirs = decode_record(record)
    assert ours.success, (message, ours)
    assert (ours.msg_size, ours.topic, ours.queue_id, ours.commit_log_offset) == (
        *(theirs.size, theirs.topic, theirs.queue_id, theirs.phy_offset),
    )
    assert (ours.tags_code, ours.store_timestamp) == (
        *(theirs.tags_code, theirs.store_timestamp),
    )
    assert (ours.consume_queue_offset, ours.sys_flag) == (
        *(theirs.queue_offset, theirs.sys_flag),
    )
    assert ours.properties == theirs.properties_raw
    if theirs.is_indexed:
        assert ours.light_places == theirs.light_places
        for light in ours.in_light_queues():
            listed = as_listed(theirs, light.topic)
            assert listed.queue_offset == light.consume_queue_offset
    assert theirs.body == message.body
    assert theirs.flag == message.flag
    assert theirs.born_timestamp == message.born_timestamp
    assert theirs.reconsume_times == message.reconsume_times
    assert theirs.prepared_transaction_offset == message.prepared_transaction_offset
    assert theirs.born_host == raw_host(message.born_host)
    assert theirs.store_host == raw_host(message.store_host)
    kept = {name: value for name, value in message.properties.items() if value}
    assert theirs.properties == kept


def raw_host(host: Host) -> bytes:
    return host.ip + host.port.to_bytes(4, "big")


def test_both_readers_read_every_field_of_random_records() -> None:
    rng = random.Random(1)
    for _ in range(3000):
        agree_on(*random_record(rng))


def test_both_readers_reject_the_same_damage() -> None:
    rng = random.Random(2)
    whole = 0
    for _ in range(3000):
        _, record = random_record(rng)
        at, bit = rng.randrange(len(record)), 1 << rng.randrange(8)
        damaged = record[:at] + bytes((record[at] ^ bit,)) + record[at + 1 :]
        ours = check_message(
            damaged, 0, PHY_OFFSET, FOREVER, check_crc=True, prop_crc=True
        )
        theirs = decoded(damaged)
        agrees = theirs is not None and theirs.phy_offset == PHY_OFFSET
        assert ours.success is agrees, (damaged.hex(), at)
        whole += agrees
    # Half of the records have no CRC over header, topic and properties.
    assert 150 < whole < 1500


@pytest.mark.parametrize("prop_crc", [False, True])
def test_both_readers_say_the_same_wherever_a_record_is_torn(prop_crc: bool) -> None:
    lights = {"INNER_MULTI_DISPATCH": "%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": "7"}
    for properties in ({"TAGS": "TagA"}, lights):
        encoded = encode_message(
            Message("T0", 0, b"body", properties), 4096, prop_crc=prop_crc
        )
        record = encoded.placed(7, PHY_OFFSET, 9)
        for cut in range(len(record)):
            torn = record[:cut].ljust(len(record), b"\0")
            ours = check_message(
                torn, 0, PHY_OFFSET, FOREVER, check_crc=True, prop_crc=True
            )
            assert ours.success is (decoded(torn) is not None), cut
            # Of light queues with a CRC only the CRC itself may be missing.
            assert not ours.success or cut >= len(record) - 20


def test_under_a_property_crc_no_flipped_bit_passes() -> None:
    message = random_message(random.Random(3))
    encoded = encode_message(message, 4096, prop_crc=True)
    record = encoded.placed(7, PHY_OFFSET, 9)
    for at in range(len(record) - 20):  # the digits are told apart from no property
        for bit in range(8):
            changed = bytes((record[at] ^ 1 << bit,))
            damaged = record[:at] + changed + record[at + 1 :]
            request = check_message(
                damaged, 0, PHY_OFFSET, FOREVER, check_crc=True, prop_crc=True
            )
            assert not request.success, (at, bit)


@pytest.mark.slow
def test_both_readers_agree_on_very_many_random_records(deep: bool) -> None:
    rng = random.Random(4)
    for _ in range(1_000_000 if deep else 40_000):
        agree_on(*random_record(rng))
