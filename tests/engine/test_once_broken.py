"""What this engine once got wrong, each found by a test before a user could."""

from __future__ import annotations

import pytest
from store_builder import StoreBuilder, log_file, queue_file

from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.errors import StoreForeign
from crashmq.engine.store.message.message import (
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
    Message,
)
from crashmq.engine.store.queue.consume_queue import ConsumeQueue
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.ops import DiskFault, Survivors


@pytest.mark.parametrize("flag", [TRANSACTION_PREPARED, TRANSACTION_ROLLBACK])
def test_a_record_without_a_unit_takes_no_queue_offset(
    store: StoreBuilder, flag: int
) -> None:
    store.put().put(sys_flag=flag).put().reput()

    assert [result.queue_offset for result in store.results] == [0, 0, 1]
    assert store.served() == [0, 2]


def test_a_record_erased_in_a_start_that_failed_does_not_come_back(
    store: StoreBuilder,
) -> None:
    store.configured(mapped_file_size_commit_log=1 << 16)
    store.put(body_size=4003).make_all_durable()
    store.put(2, body_size=4003).lose_power(Survivors("all"))
    lost = store.results[1]
    store.damage(log_file(), lost.phy_offset, bytes(lost.size))
    loaded = store.loaded()
    store.fail_at(3, "sync")
    with pytest.raises(OSError, match="made to fail"):
        loaded.start()
    store.disk.heal()
    store.kill()

    store.restart().put(body_size=4003).flush().lose_power()
    store.restart()

    assert store.live.commit_log.max_offset == store.results[-1].end_offset


def test_a_lost_sector_of_the_topic_is_no_whole_record(store: StoreBuilder) -> None:
    body = b"b" * (512 - 88 - 1 - 3)  # the topic crosses byte 512, no properties follow
    store.send(Message("TopicTest", 0, body))
    store.kill().damage(log_file(), 512, bytes(512))

    store.restart().reput()

    assert store.live.commit_log.max_offset == 0


def test_a_queue_may_appear_while_the_queues_are_flushed(store: StoreBuilder) -> None:
    store.put().reput().put(topic="T1")

    def replay() -> None:
        store.runtime.spawn(store.live.reput.run_once)

    store.disk.at_action(1, 0, replay)

    store.flush_queues()

    assert store.served("T1") == [1]


@pytest.mark.parametrize("topic", [".", "..", "a/../b", "a/b", "a\0b", ""])
def test_a_topic_that_is_no_directory_name_is_refused(
    store: StoreBuilder, topic: str
) -> None:
    store.send(Message(topic, 0, b"body"))

    assert store.results[0].status.value == "MESSAGE_ILLEGAL"


def test_a_short_number_for_a_name_is_no_log_file(store: StoreBuilder) -> None:
    store.put().reput().stop()
    store.disk.replace_file("commitlog/0", b"")

    assert store.restart().live.commit_log.max_offset == 100


def test_without_a_mark_a_short_number_for_a_name_is_refused(
    store: StoreBuilder,
) -> None:
    store.put().reput().stop()
    store.disk.replace_file("commitlog/0", b"")
    store.remove("checkpoint")

    with pytest.raises(StoreForeign, match="not its 20 digits"):
        store.restart()


def test_a_short_number_for_a_name_is_no_queue_file(store: StoreBuilder) -> None:
    store.put().reput().stop()
    store.disk.replace_file("consumequeue/T0/0/0", b"")

    assert store.restart().reput().served() == [0]


def test_a_padded_number_for_a_name_is_no_queue(store: StoreBuilder) -> None:
    store.put().reput().stop()
    store.disk.replace_file("consumequeue/T0/00/x", b"")

    assert store.restart().put().reput().served() == [0, 1]


def test_a_record_larger_than_a_read_is_dispatched(store: StoreBuilder) -> None:
    store.configured(mapped_file_size_commit_log=16 << 20, max_message_size=6 << 20)
    store.put(body_size=5 << 20).kill().configured(max_message_size=1 << 20)

    assert store.restart().reput().live.reput.behind == 0


def test_a_pre_blank_that_failed_once_moves_the_min_too() -> None:
    disk = SimDisk()
    queue = ConsumeQueue(disk.mount(), "T", 0, 200)
    record = DispatchRequest(True, 100, "T", 0, 1000, 0, 5, 7, 0)
    disk.fail(DiskFault("write", "EIO"))
    with pytest.raises(OSError, match="made to fail"):
        queue.put_message_position_info(record)

    queue.put_message_position_info(record)

    assert queue.min_offset == 7


def test_a_queue_whose_sync_failed_keeps_the_end_from_being_orderly(
    store: StoreBuilder,
) -> None:
    store.put().reput().flush().fail("sync")
    with pytest.raises(OSError, match="made to fail"):
        store.flush_queues()
    store.disk.heal()

    assert not store.stop()

    store.restart().make_all_durable()
    assert any(store.disk.durable_files()[queue_file()][:20])


@pytest.mark.parametrize(
    "message",
    [
        Message("T0", 1 << 31, b""),
        Message("T0", -1, b""),
        Message("T0", 0, b"", {"a": "\ud800"}),
    ],
)
def test_what_no_record_can_hold_is_a_status_and_no_exception(
    store: StoreBuilder, message: Message
) -> None:
    store.send(message)

    assert store.results[-1].status.value == "MESSAGE_ILLEGAL"
