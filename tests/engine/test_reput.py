"""The replay: every branch of a round, and what stops it."""

from __future__ import annotations

import pytest
from store_builder import (
    LOG_FILE_SIZE,
    RECORD_SIZE,
    SYNC,
    StoreBuilder,
    log_file,
    queue_file,
)

from crashmq.engine.host.probe import recording
from crashmq.engine.store.results import GetMessageStatus
from crashmq.models.ops import FaultCall

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
MIB = 1 << 20


def position(store: StoreBuilder) -> int:
    return store.live.reput.reput_from_offset


def test_a_round_dispatches_all_there_is(store: StoreBuilder) -> None:
    store.put(3)

    assert store.turn("reput") == 300

    assert position(store) == 300
    assert store.live.reput.behind == 0
    assert store.served() == [0, 1, 2]


def test_a_round_without_news_is_idle(store: StoreBuilder) -> None:
    store.put(3).reput()

    with recording() as hits:
        assert store.turn("reput") == 0

    assert hits == {"reput.idle": 1}


def test_a_round_over_an_empty_log_is_idle(store: StoreBuilder) -> None:
    assert store.turn("reput") == 0


def test_a_message_is_not_served_before_it_is_dispatched(store: StoreBuilder) -> None:
    store.put(3).reput().put()

    assert store.served() == [0, 1, 2]
    assert store.live.reput.behind == RECORD_SIZE


def test_a_filler_leads_to_the_next_file(store: StoreBuilder) -> None:
    store.put(2 * PER_FILE + 1)

    assert store.turn("reput") == 2 * LOG_FILE_SIZE + RECORD_SIZE

    assert store.served() == list(range(2 * PER_FILE + 1))


def test_a_filler_at_the_logs_end_is_passed(store: StoreBuilder) -> None:
    store.put(PER_FILE).fail("create", "ENOSPC").put()
    store.disk.heal()

    store.reput()

    assert position(store) == LOG_FILE_SIZE
    assert store.put().reput().served() == [*range(PER_FILE), PER_FILE + 1]


def test_records_deleted_before_their_dispatch_are_skipped(
    store: StoreBuilder,
) -> None:
    store.put(PER_FILE + 2)
    store.live.commit_log.mapped_files.files.pop(0).destroy()

    with recording() as hits:
        assert store.turn("reput") == 2 * RECORD_SIZE

    assert hits["reput.below_min"] == 1
    assert store.served() == [PER_FILE, PER_FILE + 1]


def test_where_the_log_has_no_bytes_the_replay_waits(store: StoreBuilder) -> None:
    store.put(PER_FILE).reput().put(PER_FILE + 1)
    files = store.live.commit_log.mapped_files.files
    assert position(store) == PER_FILE * RECORD_SIZE
    files.pop(1).destroy()

    with recording() as hits:
        store.reput()

    assert hits["reput.no_data"] == 1
    assert position(store) == LOG_FILE_SIZE


def test_records_that_cross_what_is_read_at_once_are_dispatched(
    store: StoreBuilder,
) -> None:
    store.configured(mapped_file_size_commit_log=10 * MIB, max_message_size=MIB)
    store.put(9, body_size=MIB - 100)

    with recording() as hits:
        store.reput()

    assert hits["reput.beyond_window"] > 0
    assert [unit.queue_offset for unit in store.queue()] == list(range(9))


@pytest.mark.parametrize(
    ("at", "data", "probe"),
    [
        (95, b"\x01", "reput.half"),
        (4, b"\x33", "reput.illegal"),
        (0, bytes(8), "reput.illegal"),
    ],
    ids=["half a message", "another magic", "zeros"],
)
def test_what_is_no_record_stops_the_replay_where_it_is(
    store: StoreBuilder, at: int, data: bytes, probe: str
) -> None:
    store.put(4).scribble(log_file(), RECORD_SIZE + at, data)

    with recording() as hits:
        store.reput().reput()

    assert hits[probe] == 2
    assert position(store) == store.live.reput.stopped_at == RECORD_SIZE
    assert store.served() == [0]


def test_a_healed_record_lets_the_replay_go_on(store: StoreBuilder) -> None:
    store.put(3).scribble(log_file(), RECORD_SIZE + 4, b"\x33").reput()
    assert store.served() == [0]

    store.scribble(log_file(), RECORD_SIZE + 4, b"\xda").reput()

    assert store.served() == [0, 1, 2]


@pytest.mark.parametrize("call", ["write", "create", "sync"])
def test_a_dispatcher_that_fails_is_asked_again_for_the_same_record(
    store: StoreBuilder, call: FaultCall
) -> None:
    store.put(3).fail(call)

    with recording() as hits, pytest.raises(OSError, match=call):
        store.reput()
    store.disk.heal()

    assert hits["reput.failed"] == 1
    assert position(store) == 0
    assert store.reput().served() == [0, 1, 2]


def test_a_failure_in_the_middle_keeps_what_was_dispatched(store: StoreBuilder) -> None:
    store.put(PER_FILE + 1)
    # Three directories, a file and ten units go before the queue's second file.
    store.fail_at(3 * 2 + 2 + PER_FILE, "create")

    with pytest.raises(OSError, match="create"):
        store.reput()
    store.disk.heal()

    assert position(store) == LOG_FILE_SIZE
    assert store.reput().served() == list(range(PER_FILE + 1))


def test_under_sync_flush_nothing_is_dispatched_before_it_is_flushed(
    store: StoreBuilder,
) -> None:
    store.configured(flush_disk_type=SYNC)
    store.put(10, properties={"WAIT": "false"}).reput()

    log = store.live.commit_log
    assert (log.flushed_where, log.max_offset) == (0, store.results[-1].end_offset)
    assert position(store) == 0
    assert store.pull().status is GetMessageStatus.NO_MATCHED_LOGIC_QUEUE


def test_under_sync_flush_the_replay_goes_as_far_as_the_flush(
    store: StoreBuilder,
) -> None:
    store.configured(flush_disk_type=SYNC).put(2)
    store.put(properties={"WAIT": "false"}).reput()
    assert store.served() == [0, 1]

    store.flush().reput()

    assert store.served() == [0, 1, 2]


def test_under_async_flush_the_replay_does_not_wait(store: StoreBuilder) -> None:
    store.put(10).reput()

    assert store.live.commit_log.flushed_where == 0
    assert store.served() == list(range(10))


def test_a_replay_from_the_start_lists_nothing_twice(store: StoreBuilder) -> None:
    store.put(PER_FILE + 3).reput()
    before = store.disk.files()[queue_file()]
    store.live.reput.reput_from_offset = 0

    store.reput()

    assert store.disk.files()[queue_file()] == before
    assert store.served() == list(range(PER_FILE + 3))
