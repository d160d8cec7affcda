from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import accumulate

import pytest
from store_builder import StoreBuilder

from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.queue.consume_queue_ext import (
    ADDRESS_MAX,
    NO_ADDRESS,
    OFFSET_ADDED,
    UNIT_SIZE_MIN,
    ConsumeQueueExt,
    CqExtUnit,
    is_address,
)
from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.files.queue_ext import ExtUnit, ext_unit_at
from crashmq.models.files.store_image import read_store
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.queue_ext import (
    addresses_lead_to_their_records,
    files_beside_queues_are_filled,
)
from crashmq.models.ops import DiskFault

FILE_SIZE = 104  # four units of 25 bytes, and the four that are never used
FILE = "consumequeue_ext/T0/0/00000000000000000000"
BIT_MAP = b"\x01\x02\x03\x04\x05"


def unit(number: int) -> CqExtUnit:
    return CqExtUnit(number, 1000 + number, BIT_MAP)


def an_extension(mount: Mount | None = None) -> ConsumeQueueExt:
    ext = ConsumeQueueExt(mount or SimDisk().mount(), "T0", 0, FILE_SIZE)
    ext.load()
    return ext


def filled(mount: Mount, count: int = 10) -> list[int]:
    """The addresses of so many units."""
    ext = an_extension(mount)
    addresses = [ext.put(unit(number)) for number in range(count)]
    ext.close()
    return addresses


class Asked:
    """Takes all messages but those of tags code 7, and notes what it was told."""

    def __init__(self) -> None:
        self.seen: list[tuple[int | None, CqExtUnit | None]] = []

    def is_matched_by_consume_queue(
        self, tags_code: int | None, ext: CqExtUnit | None
    ) -> bool:
        self.seen.append((tags_code, ext))
        return tags_code != 7

    def is_matched_by_commit_log(
        self, record: bytes | None, properties: Mapping[str, str] | None
    ) -> bool:
        return record is not None or properties is not None


@pytest.fixture
def beside() -> StoreBuilder:
    return StoreBuilder().configured(
        enable_consume_queue_ext=True, mapped_file_size_consume_queue_ext=FILE_SIZE
    )


def put_and_reput(store: StoreBuilder, count: int = 6) -> StoreBuilder:
    def bit_map_of(request: DispatchRequest) -> bytes:
        return BIT_MAP[: request.consume_queue_offset % 6]

    store.live.calc_bit_map(bit_map_of)
    for number in range(count):
        store.put(properties={"TAGS": "odd" if number % 2 else "even"})
    return store.reput()


def broken(store: StoreBuilder) -> list[str]:
    image = store.image()
    judged = Judged(image, image.commit_log.max_phy_offset)
    return [
        str(breach) for breach in addresses_lead_to_their_records.violations(judged)
    ]


def test_a_bit_map_that_power_loss_may_have_torn_is_made_again(
    beside: StoreBuilder,
) -> None:
    put_and_reput(beside).flush().flush_queues()
    kept = beside.disk.files()[FILE]
    bit_map_at = 20 + 21 + 22 + 20  # of the fourth unit
    assert kept[bit_map_at : bit_map_at + 3] == BIT_MAP[:3]

    beside.kill().damage(FILE, bit_map_at, bytes(3))
    put_and_reput(beside.restart(), 0)

    assert beside.disk.files()[FILE] == kept


def test_an_address_is_below_every_hash_of_32_bits() -> None:
    assert not is_address(-(1 << 31))
    assert is_address(ADDRESS_MAX)
    assert is_address(-(1 << 63))
    assert not is_address(NO_ADDRESS)


def test_a_unit_lies_byte_for_byte_as_rocketmq_lays_it() -> None:
    disk = SimDisk()
    filled(disk.mount(), 1)

    data = disk.files()[FILE]

    assert data[:25] == struct.pack(">hqqh", 25, 0, 1000, 5) + BIT_MAP
    assert not any(data[25:])


def test_units_round_trip_by_negative_addresses() -> None:
    mount = SimDisk().mount()
    ext = an_extension(mount)

    addresses = [ext.put(unit(number)) for number in range(10)]

    assert all(address < 0 for address in addresses)
    assert addresses[3:5] == [75 - (1 << 63), 104 - (1 << 63)]
    assert [ext.get(address) for address in addresses] == [*map(unit, range(10))]


def test_a_file_that_has_no_room_is_closed_by_minus_one() -> None:
    disk = SimDisk()
    filled(disk.mount(), 5)

    assert disk.files()[FILE][100:102] == b"\xff\xff"


@pytest.mark.parametrize("address", [0, 1, 75, -1, 5 - (1 << 63), 4096 - (1 << 63)])
def test_what_is_no_address_of_a_unit_leads_to_nothing(address: int) -> None:
    mount = SimDisk().mount()
    filled(mount, 3)

    assert an_extension(mount).get(address) is None


@pytest.mark.parametrize("size", [81, 32_768])
def test_a_bit_map_that_no_file_holds_gets_no_address(size: int) -> None:
    ext = an_extension()

    assert ext.put(CqExtUnit(1, 2, bytes(size))) == NO_ADDRESS
    assert ext.mapped_files.files == []


def test_an_extension_goes_on_where_its_units_end() -> None:
    mount = SimDisk().mount()
    addresses = filled(mount, 6)

    ext = an_extension(mount)

    assert [ext.get(address) for address in addresses] == [*map(unit, range(6))]
    assert ext.put(unit(6)) == addresses[5] + 25


def test_units_after_the_addressed_one_are_cut() -> None:
    mount = SimDisk().mount()
    addresses = filled(mount)
    ext = an_extension(mount)

    ext.truncate_by_max_address(addresses[5])

    assert ext.get(addresses[5]) == unit(5)
    assert ext.get(addresses[6]) is None
    assert ext.mapped_files.max_offset == 104 + 50


def test_units_that_nothing_leads_to_go_unless_their_messages_have_expired() -> None:
    mount = SimDisk().mount()
    filled(mount, 3)
    kept = an_extension(mount)

    kept.truncate_by_max_address(NO_ADDRESS, keep=True)
    end = kept.mapped_files.max_offset
    kept.truncate_by_max_address(NO_ADDRESS)

    assert end == 75
    assert kept.mapped_files.files == []


def test_files_before_the_addressed_unit_are_removed() -> None:
    mount = SimDisk().mount()
    addresses = filled(mount)
    ext = an_extension(mount)

    assert ext.truncate_by_min_address(addresses[4]) == 1
    assert ext.truncate_by_min_address(1) == 0
    assert ext.get(addresses[3]) is None
    assert ext.get(addresses[4]) == unit(4)


def test_every_unit_of_a_queue_leads_to_what_its_filter_asks(
    beside: StoreBuilder,
) -> None:
    put_and_reput(beside)

    units, files = beside.queue(), beside.image().files

    found = [ext_unit_at(files, "T0/0", one.tags_code) for one in units]
    records = beside.image().commit_log.records
    assert found == [
        ExtUnit(record.tags_code, record.store_timestamp, BIT_MAP[: n % 6])
        for n, record in enumerate(records)
    ]
    assert beside.served() == [*range(6)]
    assert broken(beside) == []


def test_a_filter_reads_the_tags_code_behind_the_address(beside: StoreBuilder) -> None:
    put_and_reput(beside)
    queue = beside.live._consume_queues.find("T0", 0)
    assert queue is not None
    code = beside.queue()[1].tags_code

    asked = Asked()
    passed = [queue.passes(asked, one) for one in (code, 7, code + 1)]

    record = beside.image().commit_log.records[1]
    there = CqExtUnit(record.tags_code, record.store_timestamp, BIT_MAP[:1])
    assert asked.seen == [(record.tags_code, there), (7, None), (None, None)]
    assert passed == [True, False, True]


@pytest.mark.parametrize("at", range(0, 60, 2))
def test_damage_beside_a_queue_is_mended_by_the_next_start(
    beside: StoreBuilder, at: int
) -> None:
    put_and_reput(beside).stop()

    beside.damage(FILE, at, b"\x7b\x7b").restart().reput()

    assert broken(beside) == []
    assert beside.served() == [*range(6)]


@pytest.mark.parametrize("written", range(8, 20))
def test_a_torn_address_takes_nothing_from_the_units_before(
    beside: StoreBuilder, written: int
) -> None:
    """Its first byte alone leads to the oldest unit, which says the same here."""

    def put_in_one_millisecond() -> None:
        for _ in range(4):
            message = Message("T0", 0, b"0", properties={"TAGS": "odd"})
            beside.live.put_message(message)

    beside.runtime.run(put_in_one_millisecond)
    last = 3 * 20
    path = "consumequeue/T0/0/00000000000000000000"
    before = beside.reput().disk.files()
    beside.stop()
    beside.damage(path, last + written, bytes(20 - written))

    beside.restart().reput()

    assert broken(beside) == []
    assert beside.disk.files()[path] == before[path]
    assert beside.disk.files()[FILE] == before[FILE]


@pytest.mark.parametrize("length", [0, 1, 19, 20, 50, 103])
def test_a_short_file_beside_a_queue_is_mended_by_the_next_start(
    beside: StoreBuilder, length: int
) -> None:
    put_and_reput(beside).stop()
    beside.disk.replace_file(FILE, beside.disk.files()[FILE][:length])

    beside.restart().reput()

    assert broken(beside) == []
    assert beside.served() == [*range(6)]


def test_a_removed_extension_is_made_again(beside: StoreBuilder) -> None:
    put_and_reput(beside).stop()
    for path in [*beside.disk.files()]:
        if path.startswith("consumequeue_ext/"):
            beside.remove(path)

    beside.restart().reput()

    assert broken(beside) == []
    assert all(is_address(one.tags_code) for one in beside.queue())


def test_dispatching_again_what_is_listed_puts_nothing_beside_the_queue(
    beside: StoreBuilder,
) -> None:
    put_and_reput(beside)
    before = beside.disk.files()

    beside.live.reput.reput_from_offset = 0
    beside.reput()

    assert beside.disk.files() == before


def test_an_extension_switched_off_leaves_plain_tags_codes(
    beside: StoreBuilder,
) -> None:
    put_and_reput(beside).stop()

    beside.configured(enable_consume_queue_ext=False).restart().reput()

    records = beside.image().commit_log.records
    assert [one.tags_code for one in beside.queue()] == [r.tags_code for r in records]


def test_what_lies_beside_a_queue_is_durable_before_the_queue_is(
    beside: StoreBuilder,
) -> None:
    put_and_reput(beside).make_all_durable().lose_power()

    assert beside.served() == [*range(6)]
    assert broken(beside) == []


def test_an_address_that_leads_elsewhere_breaks_the_law(beside: StoreBuilder) -> None:
    put_and_reput(beside)

    beside.scribble(FILE, 2, b"\x7b")

    assert len(broken(beside)) == 1


def test_a_file_without_room_for_one_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one unit of 20 bytes"):
        StoreConfig(mapped_file_size_consume_queue_ext=23)


@pytest.mark.parametrize(("size", "breaches"), [(30, 1), (31, 0)])
def test_a_file_beside_a_queue_must_be_left_only_once_a_unit_does_not_fit(
    beside: StoreBuilder, size: int, breaches: int
) -> None:
    put_and_reput(beside, 3)
    ext = {path: bytes(data) for path, data in beside.disk.files().items()}
    two = struct.pack(">hqqh", 35, 0, 0, 15) + bytes(15)
    closed = (two + two + b"\xff\xff").ljust(FILE_SIZE, b"\0")  # 70 of 100 in use
    after = struct.pack(">hqqh", size, 0, 0, size - 20).ljust(FILE_SIZE, b"\0")
    files = {**ext, FILE: closed, FILE[:-3] + "104": after}

    found = files_beside_queues_are_filled.violations(Judged(read_store(files)))

    assert len(found) == breaches


@pytest.mark.parametrize("dispatched", [0, 10])
@pytest.mark.parametrize("times", [1, 3])
def test_a_unit_that_could_not_be_appended_leaves_nothing_beside_its_queue(
    beside: StoreBuilder, dispatched: int, times: int
) -> None:
    """The queue's next file cannot be made; what lies beside follows without a gap."""
    beside.configured(mapped_file_size_consume_queue_ext=4096)
    put_and_reput(beside, dispatched).put(2)
    for _ in range(times):
        beside.disk.fail(DiskFault("create", "EIO", 1, "consumequeue/"))
        with pytest.raises(OSError, match="was made to fail"):
            beside.reput()

    beside.reput()

    sizes = [UNIT_SIZE_MIN + number % 6 for number in range(dispatched + 1)]
    addresses = [OFFSET_ADDED, *(OFFSET_ADDED + end for end in accumulate(sizes))]
    assert [unit.tags_code for unit in beside.queue()] == addresses
    assert broken(beside) == []
