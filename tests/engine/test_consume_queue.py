"""One queue: its units byte for byte, the order check, and where its units end."""

from __future__ import annotations

import pytest

from crashmq.engine.host.probe import recording
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.logfile.mapped_file import file_name
from crashmq.engine.store.message.message import tags_code
from crashmq.engine.store.queue.consume_queue import ConsumeQueue
from crashmq.engine.store.queue.cq_unit import decode_units, encode_unit, is_pre_blank
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.ops import DiskFault

UNIT = 20
FILE_SIZE = 5 * UNIT
PRE_BLANK = bytes.fromhex("0000000000000000 7fffffff 0000000000000000")


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk()


def new_queue(disk: SimDisk) -> ConsumeQueue:
    return ConsumeQueue(disk.mount(), "T0", 3, FILE_SIZE)


def path(base: int) -> str:
    return f"consumequeue/T0/3/{file_name(base)}"


def request(queue_offset: int, phy_offset: int = -1) -> DispatchRequest:
    """The record of a queue offset: 100 bytes, by default at 1000 times its number."""
    where = 1000 * queue_offset if phy_offset < 0 else phy_offset
    return DispatchRequest(True, 100, "T0", 3, where, 7, 0, queue_offset)


def unit(queue_offset: int, phy_offset: int = -1) -> bytes:
    wanted = request(queue_offset, phy_offset)
    return encode_unit(wanted.commit_log_offset, wanted.msg_size, wanted.tags_code)


def put(queue: ConsumeQueue, *queue_offsets: int) -> ConsumeQueue:
    for queue_offset in queue_offsets:
        queue.put_message_position_info(request(queue_offset))
    return queue


def recovered(disk: SimDisk, files: dict[int, bytes]) -> ConsumeQueue:
    """A queue loaded from files by base, each padded with zeros to its size."""
    disk.load(
        {path(base): data.ljust(FILE_SIZE, b"\0") for base, data in files.items()}
    )
    queue = new_queue(disk)
    queue.load()
    queue.recover()
    return queue


def units_in(disk: SimDisk, base: int = 0) -> list[int]:
    """Phy offsets in a file, -1 for a pre-blank, up to the zeros."""
    data = disk.files()[path(base)]
    found = list(decode_units(data))
    return [-1 if size == 0x7FFFFFFF else phy for phy, size, _ in found if size]


@pytest.mark.parametrize(
    ("tags", "tail"),
    [
        ("TagA", "00 00 00 00 00 27 a8 07"),
        ("payment", "ff ff ff ff d1 1c 32 06"),
        ("polygenelubricants", "ff ff ff ff 80 00 00 00"),
        ("", "00 00 00 00 00 00 00 00"),
    ],
)
def test_a_unit_is_rocketmqs_byte_for_byte(tags: str, tail: str) -> None:
    wanted = bytes.fromhex("00 00 00 00 40 00 01 00 00 00 00 8d" + tail)

    assert encode_unit(0x40000100, 141, tags_code(tags)) == wanted
    assert list(decode_units(wanted)) == [(0x40000100, 141, tags_code(tags))]


@pytest.mark.parametrize(("phy_offset", "size"), [(-1, 100), (0, 0), (0, -1)])
def test_a_unit_that_would_end_the_queue_is_refused(phy_offset: int, size: int) -> None:
    with pytest.raises(ValueError, match="cannot index a message"):
        encode_unit(phy_offset, size, 0)


def test_a_first_unit_at_seven_has_seven_pre_blanks_before_it(disk: SimDisk) -> None:
    queue = ConsumeQueue(disk.mount(), "T0", 3, 200)

    put(queue, 7)

    assert disk.files()[path(0)] == (PRE_BLANK * 7 + unit(7)).ljust(200, b"\0")
    assert is_pre_blank(PRE_BLANK)
    assert (queue.min_offset, queue.max_offset) == (7, 8)


def test_the_same_record_again_changes_nothing(disk: SimDisk) -> None:
    queue = put(new_queue(disk), 0, 1)
    before = disk.files()

    with recording() as hits:
        put(queue, 0, 1)

    assert disk.files() == before
    assert hits == {"consume_queue.put.built": 2}


def test_without_space_for_a_file_nothing_is_appended(disk: SimDisk) -> None:
    queue = put(new_queue(disk), 0, 1, 2, 3, 4)
    disk.fail(DiskFault("create", "ENOSPC"))

    with pytest.raises(OSError, match="create"):
        put(queue, 5)
    assert queue.max_offset == 5

    disk.heal()
    assert put(queue, 5).max_offset == 6


def test_a_failed_write_of_a_unit_is_done_again_at_its_place(disk: SimDisk) -> None:
    queue = put(new_queue(disk), 0)
    disk.fail(DiskFault("write", "EIO"))
    with pytest.raises(OSError, match="write"):
        put(queue, 1)
    disk.heal()

    put(queue, 1)

    assert units_in(disk) == [0, 1000]


def test_another_record_of_a_taken_place_is_dropped(disk: SimDisk) -> None:
    queue = put(new_queue(disk), 0, 1)

    with recording() as hits:
        queue.put_message_position_info(request(1, phy_offset=9000))

    assert units_in(disk) == [0, 1000]
    assert hits == {"consume_queue.put.built": 1}


def test_a_unit_ahead_of_the_end_lies_at_its_own_place(disk: SimDisk) -> None:
    put(put(new_queue(disk), 0), 3)

    assert units_in(disk) == [0, -1, -1, 3000]


def test_the_order_check_holds_for_queue_offset_zero(disk: SimDisk) -> None:
    queue = put(new_queue(disk), 0, 1)

    queue.put_message_position_info(request(0, phy_offset=9000))

    assert units_in(disk) == [0, 1000]
    assert queue.max_offset == 2


def test_rocketmqs_sequence_of_zero_zero_one_nine_leaves_each_at_its_place(
    disk: SimDisk,
) -> None:
    queue = ConsumeQueue(disk.mount(), "T0", 3, 200)
    for phy_offset, queue_offset in enumerate((0, 0, 1, 9)):
        queue.put_message_position_info(request(queue_offset, phy_offset * 100))

    assert units_in(disk) == [0, 200, -1, -1, -1, -1, -1, -1, -1, 300]


def test_a_full_file_is_followed_by_the_next(disk: SimDisk) -> None:
    put(new_queue(disk), *range(7))

    assert units_in(disk, 0) == [0, 1000, 2000, 3000, 4000]
    assert units_in(disk, FILE_SIZE) == [5000, 6000]


@pytest.mark.parametrize(
    ("first", "base", "blanks"), [(5, 100, 0), (7, 100, 2), (14, 200, 4)]
)
def test_a_first_unit_lies_in_the_file_that_covers_it(
    disk: SimDisk, first: int, base: int, blanks: int
) -> None:
    queue = put(new_queue(disk), first)

    assert list(disk.files()) == [path(base)]
    assert units_in(disk, base) == [-1] * blanks + [1000 * first]
    assert queue.min_offset == first


def test_a_unit_files_ahead_blanks_every_file_between(disk: SimDisk) -> None:
    put(put(new_queue(disk), 3), 11)

    assert units_in(disk, 0) == [-1, -1, -1, 3000, -1]
    assert units_in(disk, 100) == [-1] * 5
    assert units_in(disk, 200) == [-1, 11000]


def test_units_are_read_within_one_file(disk: SimDisk) -> None:
    queue = put(new_queue(disk), *range(7))

    assert queue.units_from(3, 10) == unit(3) + unit(4)
    assert queue.units_from(5, 1) == unit(5)
    assert queue.units_from(7, 1) == b""
    assert queue.unit_at(99) == b""


@pytest.mark.parametrize(("queue_offset", "first"), [(0, 5), (4, 5), (5, 10)])
def test_the_next_file_begins_at_the_next_multiple(
    disk: SimDisk, queue_offset: int, first: int
) -> None:
    assert new_queue(disk).roll_next_file(queue_offset) == first


@pytest.mark.parametrize(
    ("files", "max_offset"),
    [
        ({}, 0),
        ({0: b""}, 0),
        ({0: unit(0) + unit(1)}, 2),
        ({0: unit(0) + bytes(20) + unit(2)}, 1),
        ({0: unit(0) + b"\xff" * 20}, 1),  # a negative phy_offset
        ({0: b"".join(map(unit, range(5)))}, 5),
        ({0: b"".join(map(unit, range(5))), 100: unit(5)}, 6),
        ({0: b"".join(map(unit, range(5))), 100: b""}, 5),
        ({100: unit(5) + unit(6)}, 7),
        ({0: PRE_BLANK * 2 + unit(2)}, 3),
    ],
    ids=[
        "no file",
        "an empty file",
        "part of a file",
        "zeros between units",
        "no unit",
        "a full file",
        "two files",
        "an empty second file",
        "a first file that is not at zero",
        "a pre-blank",
    ],
)
def test_recovery_finds_the_end_of_the_units(
    disk: SimDisk, files: dict[int, bytes], max_offset: int
) -> None:
    queue = recovered(disk, files)

    queue.truncate_dirty_units(99)

    assert queue.max_offset == max_offset


def test_recovery_changes_nothing(disk: SimDisk) -> None:
    recovered(disk, {0: unit(0) + bytes(20) + unit(2)})

    assert disk.actions == 0


def test_units_behind_a_missing_file_do_not_count(disk: SimDisk) -> None:
    full = b"".join(map(unit, range(5)))
    queue = recovered(disk, {0: full, 200: unit(10)})

    queue.truncate_dirty_units(99)

    assert queue.max_offset == 5
    assert path(200) not in disk.files()


@pytest.mark.parametrize(
    ("asked", "agrees"),
    [
        (request(0), True),
        (request(6), True),
        (request(1, phy_offset=1001), False),
        (request(1)._replace(msg_size=99), False),
        (request(1)._replace(tags_code=8), False),
        (request(7), False),  # behind the end
    ],
)
def test_a_unit_agrees_with_its_record_in_all_three_fields(
    disk: SimDisk, asked: DispatchRequest, agrees: bool
) -> None:
    full = b"".join(map(unit, range(5)))
    queue = recovered(disk, {0: full, 100: unit(5) + unit(6)})

    assert queue.agrees_with(asked) is agrees


def test_a_unit_behind_zeros_agrees_with_no_record(disk: SimDisk) -> None:
    queue = recovered(disk, {0: unit(0) + bytes(20) + unit(2)})

    assert queue.agrees_with(request(0))
    assert not queue.agrees_with(request(2))


def test_units_not_known_durable_are_written_again_and_flushed(disk: SimDisk) -> None:
    queue = recovered(disk, {0: b"".join(map(unit, range(5))), 100: unit(5)})
    queue.truncate_dirty_units(6)
    before = disk.actions

    queue.set_flushed(5)

    assert disk.actions == before + 1
    assert queue.mapped_files.flushed_where == 5 * UNIT
    assert queue.flush(0)
    assert not queue.flush(0)


def test_units_behind_the_cut_are_erased(disk: SimDisk) -> None:
    queue = recovered(disk, {0: b"".join(map(unit, range(5))), 100: unit(5)})

    queue.truncate_dirty_units(2)

    assert queue.max_offset == 2
    assert disk.files() == {path(0): (unit(0) + unit(1)).ljust(FILE_SIZE, b"\0")}


def test_stale_units_behind_zeros_are_erased(disk: SimDisk) -> None:
    queue = recovered(disk, {0: unit(0) + bytes(20) + unit(2)})

    queue.truncate_dirty_units(1)

    assert disk.files() == {path(0): unit(0).ljust(FILE_SIZE, b"\0")}


def test_a_cut_below_the_first_file_leaves_no_file(disk: SimDisk) -> None:
    queue = recovered(disk, {100: unit(5) + unit(6)})

    queue.truncate_dirty_units(4)

    assert disk.files() == {}
    assert (queue.min_offset, queue.max_offset) == (0, 0)


def test_after_a_cut_across_files_new_units_are_flushed(disk: SimDisk) -> None:
    queue = recovered(disk, {0: b"".join(map(unit, range(5))), 100: unit(5)})
    queue.set_flushed(6)
    queue.truncate_dirty_units(2)
    queue.set_flushed(2)

    put(queue, 2)

    assert queue.flush(0)
    assert disk.durable_files()[path(0)][40:60] == unit(2)


@pytest.mark.parametrize(
    ("files", "log_min_offset", "min_offset"),
    [
        ({0: unit(0) + unit(1)}, 0, 0),
        ({0: unit(0) + unit(1)}, 1000, 1),
        ({0: unit(0) + unit(1)}, 500, 1),
        ({0: unit(0) + unit(1)}, 9000, 2),  # every record has expired
        ({0: PRE_BLANK * 3 + unit(3)}, 0, 3),
        ({0: PRE_BLANK * 3}, 0, 3),
        ({100: unit(5) + unit(6)}, 6000, 6),
        ({}, 0, 0),
    ],
)
def test_a_queue_begins_at_the_first_record_the_log_has(
    disk: SimDisk, files: dict[int, bytes], log_min_offset: int, min_offset: int
) -> None:
    queue = recovered(disk, files)
    queue.truncate_dirty_units(99)

    queue.correct_min_offset(log_min_offset)
    assert queue.min_offset == min_offset

    queue.correct_min_offset(log_min_offset)
    assert queue.min_offset == min_offset


@pytest.mark.parametrize(
    ("files", "phy_offset", "queue_offset"),
    [
        ({0: unit(0) + unit(1) + unit(2)}, 1000, 1),
        ({0: unit(0) + unit(1) + unit(2)}, 1500, 2),
        ({0: unit(0) + unit(1) + unit(2)}, 9000, 3),
        ({0: PRE_BLANK * 2 + unit(2)}, 0, 2),
        ({100: unit(5) + unit(6)}, 0, 5),
    ],
)
def test_the_first_unit_past_an_offset_is_found(
    disk: SimDisk, files: dict[int, bytes], phy_offset: int, queue_offset: int
) -> None:
    queue = recovered(disk, files)

    assert queue.first_unit_at_or_past(phy_offset) == queue_offset
