"""Every byte of the log below the mark is known again, whatever a record covers."""

from __future__ import annotations

from zlib import crc32

import pytest
from store_builder import LOG_FILE_SIZE, RECORD_SIZE, StoreBuilder, log_file

from crashmq.engine.store.errors import StoreCorrupted
from crashmq.engine.store.store_checkpoint import SUMS_MAX, StoreCheckpoint
from crashmq.models.laws.checkpoint import changed_files

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE


def sums(store: StoreBuilder) -> tuple[int, ...]:
    mark = store.image().checkpoint.mark
    assert mark is not None
    return mark.sums


def test_the_mark_has_the_sum_of_each_file_up_to_what_is_durable(
    store: StoreBuilder,
) -> None:
    store.put(PER_FILE + 2).make_all_durable().put().write_checkpoint()

    files = store.disk.files()
    last = files[log_file(LOG_FILE_SIZE)][: 2 * RECORD_SIZE]
    assert sums(store) == (crc32(files[log_file()]), crc32(last))


def test_sums_go_on_over_flushes_rolls_and_restarts(store: StoreBuilder) -> None:
    for _ in range(7):
        store.put(4).make_all_durable().kill().restart()
    store.put(3).make_all_durable().stop()

    assert len(sums(store)) == 4
    assert changed_files(store.image()) == []


def test_a_mark_keeps_as_many_sums_as_its_sector_holds(store: StoreBuilder) -> None:
    store.put((SUMS_MAX + 3) * PER_FILE).make_all_durable()

    assert len(sums(store)) == SUMS_MAX
    assert changed_files(store.image()) == []


@pytest.mark.slow
@pytest.mark.parametrize("byte", range(RECORD_SIZE))
def test_no_byte_of_a_record_can_change_unseen(store: StoreBuilder, byte: int) -> None:
    store.put(PER_FILE + 2).make_all_durable().kill()
    at = RECORD_SIZE + byte
    old = store.disk.files()[log_file()][at]
    store.damage(log_file(), at, bytes((old ^ 1,)))

    with pytest.raises(StoreCorrupted, match=log_file()):
        store.restart()


@pytest.mark.parametrize("at", [0, 999, 1000, 1008, 1023])
def test_not_even_a_byte_behind_the_filler_can(store: StoreBuilder, at: int) -> None:
    store.put(PER_FILE + 2).make_all_durable().kill().damage(log_file(), at, b"\x7e")

    with pytest.raises(StoreCorrupted, match=log_file()):
        store.restart()


def test_files_before_the_window_keep_their_sums(store: StoreBuilder) -> None:
    store.configured(start_window=0).put(3 * PER_FILE + 2).make_all_durable()
    before = sums(store)
    store.kill().restart().put().make_all_durable()

    assert sums(store)[:3] == before[:3]
    assert changed_files(store.image()) == []


def test_a_log_taken_as_it_is_gets_new_sums(store: StoreBuilder) -> None:
    store.put(PER_FILE + 2).make_all_durable().kill()
    store.damage(log_file(), 16, b"\x01").remove("checkpoint").restart()

    assert changed_files(store.image()) == []
    assert len(sums(store)) == 2


def test_sums_outlive_a_round_that_could_not_read(store: StoreBuilder) -> None:
    store.put(3).flush().fail("read")
    with pytest.raises(OSError, match="read"):
        store.write_checkpoint()

    store.write_checkpoint()

    assert sums(store) == (crc32(store.disk.files()[log_file()][:300]),)


@pytest.mark.parametrize("byte", range(4 + 3 * 8))
def test_a_rotten_slot_gives_no_sums_of_its_own(store: StoreBuilder, byte: int) -> None:
    store.put(3).make_all_durable().put(3).make_all_durable().kill()
    newest = store.image().checkpoint.mark
    assert newest is not None
    rotten = store.disk.files()["checkpoint"][newest.position + byte] ^ 0x40
    store.damage("checkpoint", newest.position + byte, bytes((rotten,)))

    checkpoint = StoreCheckpoint(store.mount)
    checkpoint.load()

    assert checkpoint.mark is not None
    assert checkpoint.mark.durable_offset < newest.durable_offset
    assert store.restart().served() == list(range(6))
