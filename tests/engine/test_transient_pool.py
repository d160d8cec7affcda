"""Write buffers: what waits in them, when it can be read, what a crash takes."""

from __future__ import annotations

import pytest
from store_builder import LOG_FILE_SIZE, RECORD_SIZE, SYNC, StoreBuilder, log_file

from crashmq.engine.host.probe import recording
from crashmq.engine.store.logfile.mapped_file import MappedFile, file_name
from crashmq.engine.store.logfile.transient_store_pool import TransientStorePool
from crashmq.engine.store.results import PutMessageStatus
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.ops import DiskFault

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
PAGE = 4096
PATH = f"f/{file_name(0)}"


@pytest.fixture
def pooled(store: StoreBuilder) -> StoreBuilder:
    return store.configured(
        transient_store_pool_enable=True, transient_store_pool_size=2
    )


def buffered(disk: SimDisk, size: int = 4 * PAGE) -> tuple[MappedFile, SimDisk]:
    mount = disk.mount()
    mount.make_dir("f")
    pool = TransientStorePool(1, size)
    return MappedFile(mount, PATH, size, create=True, pool=pool), disk


def positions(file: MappedFile) -> tuple[int, int, int]:
    return file.flushed, file.committed, file.wrote


def test_a_pool_lends_each_buffer_once_and_gets_it_back() -> None:
    pool = TransientStorePool(2, 64)
    first, second = pool.borrow_buffer(), pool.borrow_buffer()

    assert first is not None
    assert second is not None
    assert pool.borrow_buffer() is None
    pool.return_buffer(first)
    assert pool.available == 1
    assert pool.borrow_buffer() is first


def test_an_append_to_a_buffer_changes_no_byte_of_the_file() -> None:
    file, disk = buffered(SimDisk())

    file.append_message(b"abc")

    assert positions(file) == (0, 0, 3)
    assert disk.files()[PATH] == bytes(4 * PAGE)


def test_a_commit_takes_the_buffer_to_the_file() -> None:
    file, disk = buffered(SimDisk())
    file.append_message(b"abc")

    assert file.commit(0) == 3

    assert positions(file) == (0, 3, 3)
    assert disk.files()[PATH].startswith(b"abc\0")


@pytest.mark.parametrize(
    ("written", "least_pages", "committed"),
    [(PAGE - 1, 1, 0), (PAGE, 1, PAGE), (2 * PAGE, 3, 0), (4 * PAGE, 9, 4 * PAGE)],
)
def test_a_commit_waits_for_enough_pages_or_a_full_file(
    written: int, least_pages: int, committed: int
) -> None:
    file, _ = buffered(SimDisk())
    file.append_message(b"x" * written)

    assert file.commit(least_pages) == committed


def test_a_failed_commit_moves_nothing_and_the_next_one_writes_it_all() -> None:
    file, disk = buffered(SimDisk())
    file.append_message(b"abc")
    disk.fail(DiskFault("write", "EIO"))

    with pytest.raises(OSError, match="write"):
        file.commit(0)

    assert positions(file) == (0, 0, 3)
    disk.heal()
    assert file.commit(0) == 3
    assert disk.files()[PATH].startswith(b"abc")


def test_a_flush_covers_what_is_committed_and_no_more() -> None:
    file, _ = buffered(SimDisk())
    file.append_message(b"abc")
    file.store_timestamp = 1
    file.commit(0)
    file.append_message(b"def")
    file.store_timestamp = 2

    assert file.flush(0) == 3
    assert file.flushed_timestamp == 1


def test_a_full_file_gives_its_buffer_back_and_a_filler_leaves_no_old_bytes() -> None:
    disk = SimDisk()
    mount = disk.mount()
    mount.make_dir("f")
    pool = TransientStorePool(1, PAGE)
    used = pool.borrow_buffer()
    assert used is not None
    used[:] = b"!" * PAGE
    pool.return_buffer(used)
    file = MappedFile(mount, PATH, PAGE, create=True, pool=pool)
    file.append_declared(b"filler!!", PAGE)

    file.commit(0)

    assert (file.has_buffer, pool.available) == (False, 1)
    assert disk.files()[PATH] == b"filler!!".ljust(PAGE, b"\0")


def test_a_file_that_cannot_be_made_gives_its_buffer_back() -> None:
    disk = SimDisk()
    mount = disk.mount()
    mount.make_dir("f")
    pool = TransientStorePool(1, PAGE)
    disk.fail(DiskFault("create", "ENOSPC"))

    with pytest.raises(OSError, match="create"):
        MappedFile(mount, PATH, PAGE, create=True, pool=pool)

    assert pool.available == 1


def test_what_is_not_committed_is_not_served(pooled: StoreBuilder) -> None:
    pooled.put(count=2).reput()
    assert pooled.served() == []

    pooled.turn("commit")

    assert pooled.reput().served() == [0, 1]


def test_a_kill_takes_what_was_not_committed(pooled: StoreBuilder) -> None:
    pooled.put(count=2)
    pooled.turn("commit")
    pooled.put()

    pooled.kill().restart()

    assert pooled.reput().served() == [0, 1]


def test_an_orderly_stop_commits_and_flushes_everything(pooled: StoreBuilder) -> None:
    pooled.put(count=PER_FILE + 3)
    pooled.turn("commit")
    pooled.reput().put(count=2)

    pooled.stop()
    pooled.lose_power()

    assert pooled.restart().reput().served() == list(range(PER_FILE + 5))


def test_a_sync_put_is_acknowledged_without_the_commit_service(
    pooled: StoreBuilder,
) -> None:
    pooled.configured(flush_disk_type=SYNC).put()

    assert pooled.results[0].status is PutMessageStatus.PUT_OK
    assert pooled.lose_power().restart().reput().served() == [0]


def test_an_exhausted_pool_costs_speed_and_no_message(pooled: StoreBuilder) -> None:
    pooled.configured(transient_store_pool_size=1)
    with recording() as hits:
        pooled.put(count=2 * PER_FILE)

    assert hits["transient_store_pool.exhausted"] > 0
    pooled.turn("commit")
    assert pooled.reput().served() == list(range(2 * PER_FILE))
    assert pooled.stop()


def test_a_file_without_a_buffer_is_written_behind_committed_bytes_alone(
    pooled: StoreBuilder,
) -> None:
    pooled.configured(transient_store_pool_size=1).put(count=PER_FILE)
    assert pooled.disk.files()[log_file()] == bytes(LOG_FILE_SIZE)

    pooled.put()

    log = pooled.live.commit_log
    assert log.committed_where == log.max_offset
    assert pooled.kill().restart().reput().served() == list(range(PER_FILE + 1))


def test_a_failed_commit_is_tried_again(pooled: StoreBuilder) -> None:
    pooled.put().fail("write")
    with pytest.raises(OSError, match="write"):
        pooled.turn("commit")
    pooled.disk.heal()

    pooled.runtime.advance(1000)
    assert pooled.turn("commit") == 1

    assert pooled.reput().served() == [0]


def test_a_put_that_finds_neither_a_buffer_nor_a_disk_is_refused(
    pooled: StoreBuilder,
) -> None:
    pooled.configured(transient_store_pool_size=1).put(count=PER_FILE).fail("write")

    pooled.put()

    refused = PutMessageStatus.CREATE_MAPPED_FILE_FAILED
    assert pooled.results[-1].status is refused
    pooled.disk.heal()
    assert pooled.put().results[-1].status is PutMessageStatus.PUT_OK
