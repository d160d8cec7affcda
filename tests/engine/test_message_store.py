"""A store from load to shutdown: what it answers, what it refuses, what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from store_builder import (
    EPOCH_MS,
    LOG_FILE_SIZE,
    RECORD_SIZE,
    StoreBuilder,
    log_file,
    queue_file,
)

from crashmq.engine.host.real_disk import RealDisk
from crashmq.engine.store.config import FlushDiskType
from crashmq.engine.store.errors import StoreCorrupted, StoreLocked, StoreStopped
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.results import GetMessageStatus, PutMessageStatus
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.files.store_image import read_store

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
Status = GetMessageStatus


def test_a_store_must_be_loaded_before_it_is_started(store: StoreBuilder) -> None:
    with pytest.raises(StoreStopped, match=r"load\(\) the store"):
        MessageStore(store.config, store.mount, store.runtime).start()


def test_a_store_that_is_not_started_takes_and_gives_nothing(
    store: StoreBuilder,
) -> None:
    loaded = store.loaded()

    status = loaded.put_message(Message("T0", 0, b"")).status
    assert status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    with pytest.raises(StoreStopped, match="not started"):
        loaded.get_message("T0", 0, 0, 1)
    assert not loaded.shutdown()


def test_a_stopped_store_takes_and_gives_nothing(store: StoreBuilder) -> None:
    live = store.put().reput().live
    assert live.shutdown()

    status = live.put_message(Message("T0", 0, b"")).status
    assert status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    with pytest.raises(StoreStopped, match="not started"):
        live.get_message("T0", 0, 0, 1)


CALLS: dict[str, Callable[[MessageStore], object]] = {
    "get_message": lambda one: one.get_message("T0", 0, 0, 1),
    "look_message_by_offset": lambda one: one.look_message_by_offset(0),
    "get_offset_in_queue_by_time": lambda one: one.get_offset_in_queue_by_time(
        "T0", 0, 0
    ),
    "get_message_store_timestamp": lambda one: one.get_message_store_timestamp(
        "T0", 0, 0
    ),
    "get_earliest_message_time": lambda one: one.get_earliest_message_time(),
    "query_message": lambda one: one.query_message("T0", "Aa", 1, 0, 1 << 60),
    "delete_topics": lambda one: one.delete_topics(("T0",)),
    "clean_unused_topic": lambda one: one.clean_unused_topic(()),
    "delete_queue": lambda one: one.delete_queue("T0", 0),
    "load": lambda one: one.load(),
    "start": lambda one: one.start(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_stopped_store_refuses_every_call_and_changes_nothing(
    store: StoreBuilder, name: str
) -> None:
    live = store.put().reput().live
    assert live.shutdown()
    left = store.disk.files()

    with pytest.raises(StoreStopped):
        CALLS[name](live)

    assert store.disk.files() == left


def test_a_stopped_store_takes_no_batch_does_no_work_and_tells_what_it_did(
    store: StoreBuilder,
) -> None:
    live = store.put().reput().live
    live.shutdown()

    status = live.put_messages(Message("T0", 0, b"")).status
    assert status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert [service.run_once() for service in live.services] == [0] * len(live.services)
    assert sum(live.stats.put_time_distribution) == 1
    assert live.damaged_ranges == ()


def test_a_stop_of_a_stopped_store_is_answered_like_the_first(
    store: StoreBuilder,
) -> None:
    live = store.put().reput().live
    before = live.shutdown()

    assert before
    assert live.shutdown() is before


def test_a_directory_belongs_to_one_store(store: StoreBuilder) -> None:
    store.put()

    with pytest.raises(StoreLocked, match="held by another store"):
        store.loaded()

    assert store.put().reput().served() == [0, 1]


def test_a_stopped_store_leaves_its_directory_to_the_next(store: StoreBuilder) -> None:
    store.put().live.shutdown()

    assert store.loaded()


def test_a_refused_load_leaves_its_directory_to_the_next(store: StoreBuilder) -> None:
    store.put(3).make_all_durable().kill().damage(log_file(), 4, b"\x33")

    for _ in range(2):
        with pytest.raises(StoreCorrupted, match="durable up to 300"):
            store.loaded()


def test_a_load_that_cannot_read_leaves_its_directory_to_the_next(
    store: StoreBuilder,
) -> None:
    store.put(3).make_all_durable().kill().fail("read")

    with pytest.raises(StoreCorrupted, match="read was made to fail"):
        store.loaded()

    store.disk.heal()
    assert store.restart().served() == [0, 1, 2]


@pytest.mark.parametrize("at_action", range(1, 12))
def test_a_start_that_fails_leaves_its_directory_to_the_next(
    store: StoreBuilder, at_action: int
) -> None:
    store.put(PER_FILE + 5).reput().kill()
    loaded = store.loaded()
    store.fail_at(at_action, "write", "sync")
    with pytest.raises(OSError, match="was made to fail"):
        loaded.start()
    assert not loaded.is_started
    store.disk.heal()

    assert store.restart().reput().served() == list(range(PER_FILE + 5))


def test_a_clean_shutdown_leaves_nothing_to_mend(store: StoreBuilder) -> None:
    store.put(3).reput()

    assert store.stop()

    assert "abort" not in store.disk.files()
    assert store.loaded().last_exit_ok


def test_a_clean_shutdown_makes_everything_durable(store: StoreBuilder) -> None:
    store.put(PER_FILE + 3).put(topic="T1").reput().stop()

    assert store.disk.durable_files() == store.disk.files()


def test_the_checkpoint_of_a_clean_shutdown_is_rocketmqs(store: StoreBuilder) -> None:
    store.put(3).reput().stop()

    stored_at = (EPOCH_MS + 2).to_bytes(8, "big")
    assert store.disk.files()["checkpoint"][:40] == stored_at * 2 + bytes(24)


def test_a_start_after_a_clean_shutdown_writes_nothing_but_abort(
    store: StoreBuilder,
) -> None:
    store.put(3).reput().stop()

    trace = store.traced(store.restart)

    assert {action.partition(":")[2] for action in trace} == {"abort", ""}


def test_a_shutdown_with_dispatch_behind_is_not_clean(store: StoreBuilder) -> None:
    store.put(3).reput().put(2)

    assert not store.stop()

    assert "abort" in store.disk.files()
    assert store.restart().reput().served() == [0, 1, 2, 3, 4]


def test_a_shutdown_waits_for_a_replay_that_is_turned(store: StoreBuilder) -> None:
    store.put(3)
    store.runtime.serve((store.live.reput,))

    assert store.stop()

    assert store.restart().served() == [0, 1, 2]


def test_a_shutdown_waits_for_dispatch_no_longer_than_told(
    store: StoreBuilder,
) -> None:
    store.configured(shutdown_dispatch_timeout=3000).put()
    before = store.runtime.now_ms()

    store.stop()

    assert store.runtime.now_ms() - before == 3000


@pytest.mark.parametrize("at_action", range(1, 10))
def test_a_shutdown_whose_sync_fails_is_not_clean(
    store: StoreBuilder, at_action: int
) -> None:
    store.put(3).reput()
    store.fail_at(at_action, "sync")
    clean = store.stop()
    failed = store.disk.heal() > 0

    assert clean is not failed
    assert store.restart().served() == [0, 1, 2]


def test_an_empty_store_starts_and_stops_cleanly(store: StoreBuilder) -> None:
    assert store.restart().stop()
    assert store.restart().live.last_exit_ok


def test_a_killed_store_is_not_taken_for_a_clean_one(store: StoreBuilder) -> None:
    store.put(3).make_all_durable().kill()

    assert not store.loaded().last_exit_ok


def test_a_log_longer_than_its_mark_is_no_clean_exit(store: StoreBuilder) -> None:
    store.put(3).make_all_durable().put(2).kill().remove("abort")

    assert not store.loaded().last_exit_ok
    store.kill().restart().lose_power()
    assert store.restart().reput().served() == [0, 1, 2, 3, 4]


def test_the_abort_file_holds_the_process_id(store: StoreBuilder) -> None:
    store.configured(process_id=4711).put()

    assert store.disk.durable_files()["abort"] == b"4711"


def test_a_start_lowers_what_the_checkpoint_claims_beyond_the_log(
    store: StoreBuilder,
) -> None:
    store.put(3).make_all_durable().kill()
    store.damage("checkpoint", 0, (EPOCH_MS * 2).to_bytes(8, "big") * 5)

    store.restart()

    checkpoint = store.image().checkpoint
    assert checkpoint.physic_msg_timestamp == EPOCH_MS + 2
    assert checkpoint.logics_msg_timestamp == EPOCH_MS + 2
    assert checkpoint.master_flushed_offset == 3 * RECORD_SIZE
    assert checkpoint.confirm_phy_offset == 3 * RECORD_SIZE


def test_a_start_lowers_the_logics_timestamp_to_the_first_unit_that_is_wrong(
    store: StoreBuilder,
) -> None:
    store.put(3).make_all_durable().kill().damage(queue_file(), 20, bytes(40))

    store.restart()

    assert store.image().checkpoint.logics_msg_timestamp == EPOCH_MS + 1


@pytest.mark.parametrize("flush_disk_type", list(FlushDiskType))
def test_a_store_lives_on_the_real_disk_as_well(
    store: StoreBuilder, tmp_path: Path, flush_disk_type: FlushDiskType
) -> None:
    config = store.configured(flush_disk_type=flush_disk_type).config
    for life in range(3):
        runtime = SimRuntime(EPOCH_MS + life)
        real = MessageStore(config, RealDisk(tmp_path), runtime)
        real.load()
        real.start()
        runtime.serve(real.services)
        assert real.last_exit_ok
        for number in range(15):
            result = real.put_message(Message("T0", 0, b"%07d" % number))
            assert result.status is PutMessageStatus.PUT_OK
            assert result.queue_offset == 15 * life + number
        assert real.shutdown()
    image = read_store({path: (tmp_path / path).read_bytes() for path in PATHS})
    assert [unit.queue_offset for unit in image.queue_at["T0", 0].units] == [*range(45)]
    assert len(image.commit_log.records) == 45


PATHS = [
    "checkpoint",
    *(log_file(base * LOG_FILE_SIZE) for base in range(5)),
    *(queue_file(base=base * 200) for base in range(5)),
]
