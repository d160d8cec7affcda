"""What a start reads of the log, and what makes it read more."""

from __future__ import annotations

import pytest
from store_builder import (
    LOG_FILE_SIZE,
    QUEUE_FILE_SIZE,
    RECORD_SIZE,
    StoreBuilder,
    log_file,
    queue_file,
)

from crashmq.engine.host.probe import recording
from crashmq.engine.store.errors import StoreCorrupted
from crashmq.models.ops import DiskFault

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
FIRST_RECORDS = 8 + RECORD_SIZE  # the length of a record, then the record
FILES = 5


@pytest.fixture
def old_store(store: StoreBuilder) -> StoreBuilder:
    """Five files, all durable and dispatched, to be started with a small window."""
    store.configured(start_window=0)
    return store.put(FILES * PER_FILE - 2).make_all_durable().kill()


def scanned(store: StoreBuilder) -> int:
    return store.live.commit_log.scanned_bytes


def test_a_start_reads_the_last_file_and_the_first_record_of_each_other(
    old_store: StoreBuilder,
) -> None:
    old_store.restart()

    assert scanned(old_store) == LOG_FILE_SIZE + (FILES - 1) * FIRST_RECORDS
    assert old_store.served() == list(range(FILES * PER_FILE - 2))


@pytest.mark.parametrize(
    ("window", "files"), [(1, 1), (1024, 2), (2048, 3), (1 << 30, 5)]
)
def test_a_window_makes_a_start_read_that_much_of_the_end(
    old_store: StoreBuilder, window: int, files: int
) -> None:
    old_store.configured(start_window=window).restart()

    unread = FILES - files
    assert scanned(old_store) == files * LOG_FILE_SIZE + unread * FIRST_RECORDS


def test_a_start_reads_all_that_may_not_be_in_the_queues(
    old_store: StoreBuilder,
) -> None:
    old_store.put(3 * PER_FILE).flush().write_checkpoint().kill().restart()

    assert scanned(old_store) == 4 * LOG_FILE_SIZE + 4 * FIRST_RECORDS


def test_without_a_mark_a_start_reads_all(old_store: StoreBuilder) -> None:
    old_store.remove("checkpoint").restart()

    assert scanned(old_store) == FILES * LOG_FILE_SIZE


@pytest.mark.parametrize("base", [0, QUEUE_FILE_SIZE, 4 * QUEUE_FILE_SIZE])
def test_a_queue_that_lost_a_file_makes_a_start_read_all_and_is_mended(
    old_store: StoreBuilder, base: int
) -> None:
    old_store.remove(queue_file(base=base))

    with recording() as probes:
        old_store.restart().reput()

    assert probes["start_up.read.again"] == 1
    assert old_store.served() == list(range(FILES * PER_FILE - 2))


def test_a_queue_with_no_record_in_the_window_is_left_alone(
    store: StoreBuilder,
) -> None:
    store.configured(start_window=0).put(3, topic="T1").put(4 * PER_FILE)
    store.make_all_durable().kill().restart()

    assert store.served("T1") == [0, 1, 2]
    assert store.put(topic="T1").results[-1].queue_offset == 3


def test_units_behind_the_logs_end_are_cut_from_a_queue_without_a_record_in_the_window(
    store: StoreBuilder,
) -> None:
    store.configured(start_window=0).put(3, topic="T1").put(4 * PER_FILE)
    store.make_all_durable().put(topic="T1").reput().flush_queues().lose_power()

    store.restart()

    assert store.served("T1") == [0, 1, 2]
    assert store.put(topic="T1").results[-1].queue_offset == 3


@pytest.mark.parametrize("size", [0, 8, 500])
def test_an_old_file_cut_short_is_refused(old_store: StoreBuilder, size: int) -> None:
    path = log_file(LOG_FILE_SIZE)
    old_store.disk.replace_file(path, old_store.disk.files()[path][:size])

    with pytest.raises(StoreCorrupted, match="a file cut short"):
        old_store.restart()


def test_an_old_file_that_is_missing_is_refused(old_store: StoreBuilder) -> None:
    old_store.remove(log_file(LOG_FILE_SIZE))

    with pytest.raises(StoreCorrupted, match="offset 1024: a missing file"):
        old_store.restart()


@pytest.mark.parametrize("at", [0, 4, 30, 95])
def test_an_old_file_with_a_damaged_first_record_is_refused(
    old_store: StoreBuilder, at: int
) -> None:
    old_store.damage(log_file(LOG_FILE_SIZE), at, b"\x33")

    with pytest.raises(StoreCorrupted, match=r"byte 0 \(offset 1024\)"):
        old_store.restart()


@pytest.mark.parametrize("field", range(0, 40, 8))
def test_no_time_of_the_checkpoint_is_believed(store: StoreBuilder, field: int) -> None:
    store.put(5).make_all_durable().put(5).kill()
    for rot in (b"\x00" * 8, b"\x7f" + b"\xff" * 7, b"\x80" + b"\x00" * 7):
        store.damage("checkpoint", field, rot).restart()
        found = store.image()
        newest = found.newest_store_timestamp
        store.make_all_durable().kill()

        assert found.checkpoint.physic_msg_timestamp == newest
        assert found.checkpoint.logics_msg_timestamp <= newest
        assert 0 <= found.checkpoint.index_msg_timestamp <= newest
        assert -1 <= found.checkpoint.master_flushed_offset <= 1000
        assert -1 <= found.checkpoint.confirm_phy_offset <= 1000
        assert store.restart().served() == list(range(10))
        store.kill()


@pytest.mark.parametrize("has_mark", [False, True])
@pytest.mark.parametrize("known", [0, 1, 2])
@pytest.mark.parametrize(("byte", "bit"), [(4, 1), (0, 1), (0, 0x80)])
def test_a_queue_offset_that_the_log_has_no_room_for_refuses_a_start(
    store: StoreBuilder, has_mark: bool, known: int, byte: int, bit: int
) -> None:
    """``known`` records of the queue were put and dispatched before the mark."""
    store.put(known).reput().make_all_durable().stop()
    if not has_mark:
        store.disk.replace_file("checkpoint", None)
    store.restart().put(3 - known).kill()
    log = bytearray(store.disk.files()[log_file()])
    queue_offset = 2 * RECORD_SIZE + 20
    log[queue_offset + byte] ^= bit
    store.disk.replace_file(log_file(), bytes(log))

    with pytest.raises(StoreCorrupted, match=rf"byte {2 * RECORD_SIZE} .* room for"):
        store.restart()

    store.kill()
    log[queue_offset + byte] ^= bit
    store.disk.replace_file(log_file(), bytes(log))
    assert store.restart().reput().served() == [0, 1, 2]


def marked_dispatched(store: StoreBuilder) -> int:
    mark = store.image().checkpoint.mark
    assert mark is not None
    return mark.dispatched_offset


@pytest.mark.parametrize("times", [9, 14])
def test_the_mark_vouches_for_no_unit_that_a_start_cut_before_it_failed(
    store: StoreBuilder, times: int
) -> None:
    """Reads of the queues fail for a while: what is cut may have been there."""
    store.put().put(queue_id=1).make_all_durable()
    assert store.stop()
    assert marked_dispatched(store) == 2 * RECORD_SIZE
    assert store.mount.file_size("checkpoint") == 4096
    store.disk.fail(DiskFault("read", "EIO", times, "consumequeue"))

    with pytest.raises(OSError, match="was made to fail"):
        store.restart()

    assert store.queue() == ()
    assert marked_dispatched(store) == 0
    store.disk.healed()
    assert store.kill().restart().reput().served() == [0]
    assert store.served(queue_id=1) == [1]
