"""From a time to a queue offset, and looks at single messages."""

from __future__ import annotations

import pytest
from store_builder import EPOCH_MS, LOG_FILE_SIZE, RECORD_SIZE, StoreBuilder, log_file

from crashmq.engine.store.errors import StoreStopped
from crashmq.engine.store.time_search import BoundaryType, offset_by_time
from crashmq.models.files.record import decode_record

TIMES = (0, 16, 38, 39, 59, 59)
LOWER, UPPER = BoundaryType.LOWER, BoundaryType.UPPER


@pytest.mark.parametrize(
    ("at_ms", "lower", "upper"),
    [
        (5, 1, 0),
        (38, 2, 2),
        (43, 4, 3),
        (59, 4, 5),
        (159, 6, 5),
        (-5, 0, 0),
    ],
)
def test_times_are_found_as_rocketmq_finds_them(
    at_ms: int, lower: int, upper: int
) -> None:
    found = [offset_by_time(0, 6, at_ms, b, TIMES.__getitem__) for b in (LOWER, UPPER)]

    assert found == [lower, upper]


def test_an_unreadable_record_counts_as_stored_with_the_one_behind_it() -> None:
    times = (0, 10, -1, -1, 30, 40)

    found = [offset_by_time(0, 6, at, LOWER, times.__getitem__) for at in (10, 11, 31)]

    assert found == [1, 2, 5]


def test_unreadable_records_that_nothing_follows_count_as_stored_last() -> None:
    times = (10, 20, -1, -1)

    found = [offset_by_time(0, 4, at, LOWER, times.__getitem__) for at in (5, 20, 21)]
    last = [offset_by_time(0, 4, at, UPPER, times.__getitem__) for at in (5, 20, 21)]

    assert found == [0, 1, 2]
    assert last == [0, 1, 1]


def test_a_search_in_a_queue_begins_at_its_min_offset(store: StoreBuilder) -> None:
    store.put(25).kill().remove(log_file(0)).restart().reput()

    live = store.live

    assert live.get_offset_in_queue_by_time("T0", 0, 0) == 10
    assert live.get_offset_in_queue_by_time("T0", 0, 0, UPPER) == 10
    assert live.get_offset_in_queue_by_time("T0", 0, EPOCH_MS + 13) == 13
    assert live.get_offset_in_queue_by_time("T0", 0, EPOCH_MS * 2) == 25
    assert live.get_offset_in_queue_by_time("T9", 0, EPOCH_MS) == 0


def test_a_clock_set_back_stores_no_message_before_the_last(
    store: StoreBuilder,
) -> None:
    store.put(2)
    store.runtime.advance(-5000)
    store.put(2).reput().kill().restart()
    store.runtime.advance(-5000)
    store.put().reput()

    stamps = [record.store_timestamp for record in store.image().commit_log.records]
    assert stamps == [EPOCH_MS, *[EPOCH_MS + 1] * 4]


@pytest.mark.parametrize("back", [EPOCH_MS, EPOCH_MS + 5])
def test_a_clock_at_its_zero_or_before_still_stores_a_time(
    store: StoreBuilder, back: int
) -> None:
    store.runtime.advance(-back)
    store.put()

    assert store.image().commit_log.records[0].store_timestamp == 1


def test_the_time_of_a_message_is_told_where_there_is_one(store: StoreBuilder) -> None:
    live = store.live
    assert live.get_earliest_message_time() == -1

    store.put(3).reput()

    times = [live.get_message_store_timestamp("T0", 0, at) for at in (-1, 0, 2, 3)]
    assert times == [-1, EPOCH_MS, EPOCH_MS + 2, -1]
    assert live.get_message_store_timestamp("T9", 0, 0) == -1
    assert live.get_earliest_message_time() == EPOCH_MS


def test_a_look_returns_the_record_that_begins_there(store: StoreBuilder) -> None:
    store.put(PER_FILE + 1)

    seen = {at: store.live.look_message_by_offset(at) for at in LOOKED_AT}

    assert [at for at, record in seen.items() if record] == [0, 100, LOG_FILE_SIZE]
    assert decode_record(seen[LOG_FILE_SIZE] or b"").queue_offset == PER_FILE


def test_a_look_never_returns_a_damaged_record(store: StoreBuilder) -> None:
    store.put(2).scribble(log_file(), 95, b"?")

    assert store.live.look_message_by_offset(0) is None
    assert store.live.look_message_by_offset(100) is not None


def test_a_store_that_is_not_started_is_not_asked(store: StoreBuilder) -> None:
    with pytest.raises(StoreStopped):
        store.loaded().look_message_by_offset(0)


PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
LOOKED_AT = (-1, 0, 1, 99, 100, 1000, 1023, LOG_FILE_SIZE, LOG_FILE_SIZE + 100)
