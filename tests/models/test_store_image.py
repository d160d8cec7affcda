from __future__ import annotations

import struct

import pytest
from damaged_store import FILES, damaged, damages
from hypothesis import given, settings
from hypothesis import strategies as st
from written_store import (
    FIRST_MS,
    MAGIC_BLANK,
    WrittenStore,
    log_path,
    patched,
    queue_path,
    slot_bytes,
    unit_bytes,
    without,
)

from crashmq.models.files.log import LogStop
from crashmq.models.files.message_delay_level import parse_delay_levels
from crashmq.models.files.store_image import (
    StoreImage,
    decode_record,
    read_store,
)


def stop_of(files: dict[str, bytes]) -> LogStop:
    return read_store(files).commit_log.stop


def test_the_chain_runs_over_fillers_to_space_never_written() -> None:
    store = WrittenStore().fill(40)

    log = read_store(store.files()).commit_log

    assert [(r.phy_offset, r.size) for r in log.records] == store.records
    assert len(log.files) == 3
    assert log.stop.kind == "zeros"
    assert (log.min_phy_offset, log.max_phy_offset) == (0, len(store.log))
    assert log.breaks == ()


def test_names_tell_the_size_of_files_that_were_cut_alike() -> None:
    files = WrittenStore().fill(40).files()
    for base in (0, 8192):
        files[log_path(base)] = files[log_path(base)][:100]

    log = read_store(files).commit_log

    assert [len(file.data) for file in log.files] == [100, 4096, 100]
    assert log.file_size == 4096


def test_a_last_file_closed_by_its_filler_ends_the_chain_at_its_end() -> None:
    files = without(WrittenStore().fill(40).files(), log_path(8192))

    assert stop_of(files) == LogStop(
        "end", log_path(4096), 4096, 8192, "the last file ends"
    )


def test_no_log_file_is_an_empty_chain() -> None:
    log = read_store({"lock": b"lock"}).commit_log

    assert (log.records, log.stop.kind, log.max_phy_offset) == ((), "end", 0)


@pytest.mark.parametrize(
    ("at", "data", "kind"),
    [
        (0, struct.pack(">i", 90), "size"),
        (0, struct.pack(">i", 5000), "size"),
        (0, struct.pack(">i", 300), "lengths"),
        (0, bytes(8), "zeros"),
        (4, b"\x55", "magic"),
        (28, struct.pack(">q", 5), "phy_offset"),
        (95, b"\xff", "crc"),
        (-1, b"\0", "properties"),
        (0, struct.pack(">iI", 9, MAGIC_BLANK), "filler"),
    ],
)
def test_the_stop_names_what_is_wrong_and_where(
    at: int, data: bytes, kind: str
) -> None:
    store = WrittenStore().fill(10)
    phy_offset = store.records[7][0]

    place = phy_offset + at % store.records[7][1]

    stop = stop_of(patched(store.files(), log_path(0), place, data))

    assert (stop.kind, stop.path) == (kind, log_path(0))
    assert stop.position == stop.phy_offset == phy_offset
    assert stop.where == f"{log_path(0)} byte {phy_offset} (phy_offset {phy_offset})"


def test_a_missing_file_stops_the_chain_and_the_rest_is_found_beyond() -> None:
    store = WrittenStore().fill(60)
    behind = [record for record in store.records if record[0] >= 8192]

    log = read_store(without(store.files(), log_path(4096))).commit_log

    assert (log.stop.kind, log.stop.phy_offset) == ("missing_file", 4096)
    assert [(r.phy_offset, r.size) for r in log.records_beyond] == behind


def test_records_behind_each_break_are_found_by_resynchronising() -> None:
    store = WrittenStore().fill(40)
    files = store.files()
    for number in (5, 9, 30):
        base = store.records[number][0] // 4096 * 4096
        at = store.records[number][0] - base + 95
        files = patched(files, log_path(base), at, b"\xff")

    log = read_store(files).commit_log

    assert len(log.records) == 5
    assert len(log.records_beyond) == 40 - 5 - 3
    broken = [store.records[number][0] for number in (5, 9, 30)]
    assert [stop.phy_offset for stop in log.breaks] == broken


def test_a_ghost_at_another_offset_is_no_record_beyond() -> None:
    store = WrittenStore().fill(3)
    end = len(store.log)
    ghost = store.files()[log_path(0)][: store.records[0][1]]

    log = read_store(patched(store.files(), log_path(0), end + 64, ghost)).commit_log

    assert log.stop.phy_offset == end
    assert log.records_beyond == ()
    assert len(log.breaks) == 1


def test_a_queue_runs_over_its_files_to_the_first_unit_never_written() -> None:
    image = read_store(WrittenStore().fill(50).files())

    queue = image.queue_at["T0", 1]

    assert [unit.queue_offset for unit in queue.units] == [*range(25)]
    assert len(queue.files) == 3
    assert queue.end == 25
    assert [*queue.strays()] == []


def test_units_behind_a_hole_are_strays() -> None:
    files = WrittenStore().fill(50).files()

    hole = patched(files, queue_path(), 60, bytes(20))
    queue = read_store(hole).queue_at["T0", 0]

    assert queue.end == 3
    assert [unit.queue_offset for unit in queue.strays()] == [*range(4, 25)]


def test_units_behind_a_missing_queue_file_are_strays() -> None:
    files = without(WrittenStore().fill(50).files(), queue_path(base=200))

    queue = read_store(files).queue_at["T0", 0]

    assert queue.end == 10
    assert [unit.queue_offset for unit in queue.strays()] == [*range(20, 25)]


def test_pre_blank_and_expired_units_are_not_live() -> None:
    store = WrittenStore().fill(60)
    files = without(store.files(), log_path(0))
    blank = unit_bytes(0, 0x7FFFFFFF)
    image = read_store(patched(files, queue_path(), 0, blank))

    (queue, live), _ = image.live_units

    assert queue.units[0].is_pre_blank
    assert live[0].phy_offset == min(p for p, _ in store.records[::2] if p >= 4096)
    assert live[-1].queue_offset == 29


def test_the_checkpoint_decodes_and_the_higher_slot_counts() -> None:
    data = struct.pack(">5q", 1, 2, 3, 4, 5).ljust(512, b"\0")
    data += slot_bytes(8, 10, 20).ljust(512, b"\0") + slot_bytes(9, 11, 21)

    checkpoint = read_store({"checkpoint": data}).checkpoint

    assert checkpoint[:5] == (1, 2, 3, 4, 5)
    assert checkpoint.mark == (9, 11, 21, 4096, 200, 1024, 0, (), 0, 0)


def test_a_torn_slot_leaves_the_older_mark() -> None:
    torn = slot_bytes(9, 11, 21)[:-1] + b"\0"
    data = bytes(512) + slot_bytes(8, 10, 20).ljust(512, b"\0") + torn

    checkpoint = read_store({"checkpoint": data}).checkpoint

    assert checkpoint.mark == (8, 10, 20, 4096, 200, 512, 0, (), 0, 0)
    assert checkpoint.torn_slots == (1024,)


def test_a_short_checkpoint_counts_as_far_as_it_goes() -> None:
    checkpoint = read_store({"checkpoint": struct.pack(">qi", 5, 1)}).checkpoint

    assert checkpoint[:3] == (5, 1 << 32, 0)
    assert (checkpoint.mark, checkpoint.size) == (None, 12)


def test_paths_are_told_apart() -> None:
    image = read_store(
        dict.fromkeys(
            (
                "abort",
                "abort.bak",
                "config/topics.json",
                "index/20260101000000000",
                "core.7",
                "commitlog/x",
                "commitlog/99999999999999999999",
                "consumequeue/T0/0/x",
                "consumequeue/T0/07/00000000000000000000",
                "consumequeue/T0/00000000000000000000",
            ),
            b"",
        )
    )

    assert image.abort
    assert not image.has_checkpoint
    assert image.commit_log.odd_paths == (
        "commitlog/99999999999999999999",
        "commitlog/x",
    )
    assert image.odd_queue_paths == ("consumequeue/T0/0/x",)
    assert image.foreign == (
        "consumequeue/T0/00000000000000000000",
        "consumequeue/T0/07/00000000000000000000",
        "core.7",
    )


def test_unchanged_files_give_the_previous_image() -> None:
    files = WrittenStore().fill(20).files()
    first = read_store(files)

    assert read_store({**files}, first) is first


def test_what_previous_knows_is_not_decoded_again() -> None:
    store = WrittenStore().fill(40)
    first = read_store(store.files())

    second = read_store(store.put().files(), first)

    assert second.commit_log.files[0] is first.commit_log.files[0]
    assert second.commit_log.records[38] is first.commit_log.records[38]
    assert second == read_store(store.files())


def test_views_of_mapped_files_decode_like_bytes() -> None:
    files = WrittenStore().fill(40).files()
    views = {path: memoryview(data) for path, data in files.items()}
    image = read_store(views)

    assert image.commit_log == read_store(files).commit_log
    assert image.consume_queues == read_store(files).consume_queues
    assert read_store(views, image) is not image


def test_a_view_that_changed_below_is_decoded_again() -> None:
    files = {
        path: bytearray(data) for path, data in WrittenStore().fill(4).files().items()
    }
    views = {path: memoryview(data) for path, data in files.items()}
    before = read_store(views)
    files[log_path(0)][95] ^= 0xFF

    assert len(before.commit_log.records) == 4
    assert read_store(views, before).commit_log.records == ()


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.lists(damages(), min_size=1, max_size=4))
def test_no_bytes_make_the_reader_raise(
    done: list[tuple[str, int, bytes, int]],
) -> None:
    files = damaged(done)
    image = read_store(files)

    assert read_store(files, read_store(FILES)) == image
    for record in (*image.commit_log.records, *image.commit_log.records_beyond):
        path = log_path(record.phy_offset // 4096 * 4096)
        at = record.phy_offset % 4096
        assert decode_record(files[path][at : at + record.size]) == record
    assert_parts_agree(image)


def assert_parts_agree(image: StoreImage) -> None:
    log = image.commit_log
    assert sum(record.size for record in log.records) <= log.max_phy_offset
    assert all(stop.phy_offset >= log.max_phy_offset for stop in log.breaks)
    for queue, live in image.live_units:
        assert not live or live[-1].queue_offset == queue.end - 1
        assert all(unit.queue_offset >= queue.end for unit in queue.strays())


def test_times_are_milliseconds() -> None:
    image = read_store(WrittenStore().fill(3).files())

    assert image.newest_store_timestamp == FIRST_MS + 2


def test_a_delayed_message_is_due_by_the_levels_of_its_broker() -> None:
    store = WrittenStore()
    for level in (b"1", b"2", b"9"):
        store.put("SCHEDULE_TOPIC_XXXX", properties=b"DELAY\x01" + level + b"\x02")
    few = parse_delay_levels("3s 1h")

    image = read_store(store.files())
    again = read_store(store.files(), image, few)

    assert due_after(image) == [1000, 5000, 300_000]
    assert due_after(again) == [3000, 3_600_000, 3_600_000]
    assert read_store(store.files(), again, few) is again
    assert due_after(read_store(store.files(), again)) == due_after(image)


def due_after(image: StoreImage) -> list[int]:
    records = image.commit_log.records
    return [record.tags_code - record.store_timestamp for record in records]
