from __future__ import annotations

import struct

import pytest

from crashmq.engine.host.disk import File
from crashmq.engine.store.index.index_file import IndexFile, file_size
from crashmq.engine.store.index.index_keys import index_key_hash, keys_of
from crashmq.engine.store.message.message import java_string_hash, properties_to_bytes
from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.ops import DiskFault

# Two messages of the store reference, section 18.3, and the bytes RocketMQ makes.
STORED_AT, STORED_LATER = 1_700_000_000_123, 1_700_000_007_999
FIRST, SECOND = 0x40000100, 0x400002A4
GOLDEN = bytes.fromhex(
    "0000018bcfe5687b 0000018bcfe5873f 0000000040000100 00000000400002a4"
    "00000002 00000004 00000000 00000000 00000003 00000000 00000001 00000000"
    "00000000 00000000 00000000 00000000" + "00" * 20 + "4021c8ac 0000000040000100"
    "00000000 00000000 0029e2c8 0000000040000100 00000000 00000000"
    "0029e2c8 00000000400002a4 00000007 00000002"
)


def a_mount() -> Mount:
    mount = SimDisk().mount()
    mount.make_dir("index")
    return mount


def an_index_file(
    mount: Mount | None = None, slot_num: int = 10, index_num: int = 20
) -> IndexFile:
    return IndexFile(
        mount or a_mount(), "index/20231114221320123", slot_num, index_num, create=True
    )


def hit_by(file: IndexFile, key_hash: int) -> list[int]:
    """Where the records lie that a hash leads to, the newest first."""
    return [e.phy_offset for e in file.chain(file.newest(key_hash), key_hash)]


def contents(mount: Mount, slot_num: int = 10, index_num: int = 20) -> File:
    size = file_size(slot_num, index_num)
    return mount.open("index/20231114221320123", size, create=False, mapped=True)


def test_keys_are_put_byte_for_byte_as_rocketmq_puts_them() -> None:
    mount = a_mount()
    file = an_index_file(mount)
    k1 = index_key_hash("TopicTest", "K1")

    file.put_key(index_key_hash("TopicTest", "0A000001"), FIRST, STORED_AT)
    file.put_key(k1, FIRST, STORED_AT)
    file.put_key(k1, SECOND, STORED_LATER)

    data = contents(mount).read_at(0, 480)
    assert data[: len(GOLDEN)] == GOLDEN
    assert not any(data[len(GOLDEN) :])
    assert hit_by(file, k1) == [SECOND, FIRST]


@pytest.mark.parametrize(
    ("topic", "key", "expected"),
    [
        ("TopicTest", "0A000001", 1075955884),
        ("TopicTest", "K1", 2745032),
        ("TopicTest", "K9", 0x29E2D0),
        ("T0", "\N{GRINNING FACE}", 80_812_266),
    ],
)
def test_a_key_hashes_as_java_hashes_its_text(
    topic: str, key: str, expected: int
) -> None:
    assert index_key_hash(topic, key) == expected


def test_the_one_hash_without_an_absolute_value_counts_as_0() -> None:
    key = key_of_least_hash()

    assert java_string_hash(f"#{key}") == -(1 << 31)
    assert index_key_hash("", key) == 0


def key_of_least_hash() -> str:
    """A key for the topic "" whose text has the hash -2**31."""
    rest = (0x80000000 - ord("#") * 31**7) % (1 << 32)
    units = []
    for power in range(6, 0, -1):
        unit = min(rest // 31**power, 0xD7FF)
        units.append(unit)
        rest -= unit * 31**power
    return "".join(map(chr, [*units, rest]))


def test_keys_are_the_unique_key_and_each_word_of_keys() -> None:
    properties = properties_to_bytes(
        {"KEYS": " two  words two ", "UNIQ_KEY": "id", "TAGS": "KEY"}
    )

    assert keys_of(properties) == ["id", "two", "words", "two"]
    assert keys_of(b"TAGS\x01KEYS\x02") == []


def test_a_file_takes_one_key_fewer_than_it_has_entries() -> None:
    file = an_index_file(index_num=400)

    assert all(file.put_key(n, n, STORED_AT) for n in range(399))
    assert not file.put_key(399, 399, STORED_AT)
    assert hit_by(file, 7) == [7]


def test_the_slot_counter_counts_slots_and_not_keys() -> None:
    file = an_index_file()

    for _ in range(3):
        file.put_key(5, FIRST, STORED_AT)

    assert file.header.hash_slot_count == 1
    assert file.header.index_count == 4


def test_the_first_entry_counts_its_seconds_from_its_own_time() -> None:
    file = an_index_file()

    file.put_key(5, FIRST, STORED_LATER)

    assert file.entry(1).seconds == 0
    assert file.header.begin_timestamp == STORED_LATER


def test_a_clock_set_back_and_far_ahead_is_cut_off_to_what_fits() -> None:
    file = an_index_file()
    for stored_at in (STORED_AT, STORED_AT - 5000, STORED_AT + (1 << 45)):
        file.put_key(5, FIRST, stored_at)

    early, late = file.entry(2), file.entry(3)

    assert (early.seconds, late.seconds) == (0, 0x7FFFFFFF)
    assert file.may_hold(early, 0, STORED_AT - 4000)
    assert file.may_hold(late, STORED_AT + (1 << 44), 1 << 62)


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [(7000, 7999, True), (7999, 8000, True), (8000, 9000, False), (0, 6999, False)],
)
def test_an_entry_is_passed_over_only_where_its_second_is_out_of_range(
    begin: int, end: int, expected: bool
) -> None:
    file = an_index_file()
    file.put_key(5, FIRST, STORED_AT)
    file.put_key(5, SECOND, STORED_LATER)

    seen = file.may_hold(file.entry(2), STORED_AT + begin, STORED_AT + end)

    assert seen == expected


@pytest.mark.parametrize("link", [2, 3, 19, -1, 0x7FFFFFFF])
def test_a_link_that_does_not_lead_back_ends_its_chain(link: int) -> None:
    mount = a_mount()
    file = an_index_file(mount)
    for n in range(3):
        file.put_key(5, n, STORED_AT)

    contents(mount).write_at(40 + 40 + 20 * 2 + 16, struct.pack(">i", link))

    assert hit_by(file, 5) == [2, 1]


@pytest.mark.parametrize("failing_write", [1, 2, 3])
def test_a_put_that_failed_half_way_hides_nothing_and_is_made_again(
    failing_write: int,
) -> None:
    disk = SimDisk()
    mount = disk.mount()
    mount.make_dir("index")
    file = an_index_file(mount)
    file.put_key(5, FIRST, STORED_AT)
    disk.at_action(failing_write, 0, lambda: disk.fail(DiskFault("write", "EIO")))

    with pytest.raises(OSError, match="write"):
        file.put_key(5, SECOND, STORED_AT)
    before = hit_by(file, 5)
    disk.heal()
    disk.end_watch()
    file.put_key(5, SECOND, STORED_AT)

    assert before == [FIRST]
    assert hit_by(file, 5) == [SECOND, FIRST]
    assert file.header.hash_slot_count == 1
