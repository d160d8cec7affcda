from __future__ import annotations

import pytest
from store_builder import RECORD_SIZE, StoreBuilder

from crashmq.engine.store.errors import StoreCorrupted, StoreStopped
from crashmq.engine.store.results import GetMessageStatus, PutMessageStatus
from crashmq.harness.disk.crash import StoreCrashed
from crashmq.models.ops import Crash, DiskFault, Survivors

LOST = Crash("power_loss", Survivors("none"))
GONE = (
    GetMessageStatus.NO_MATCHED_LOGIC_QUEUE,
    GetMessageStatus.NO_MESSAGE_IN_QUEUE,
)
ACTIONS_MAX = 40


def two_topics() -> StoreBuilder:
    """Three messages of T0 and one of T1, durable and dispatched."""
    return StoreBuilder().put(3).put(1, topic="T1").make_all_durable()


def test_a_deleted_topic_is_gone_and_no_other() -> None:
    store = two_topics()

    assert store.live.delete_topics(["T0", "T7"]) == 1

    assert store.pull().status in GONE
    assert store.served("T1") == [3]
    assert not store.mount.exists("consumequeue/T0")


def test_a_queue_file_that_a_failed_creation_left_goes_with_its_topic() -> None:
    store = StoreBuilder().put(1)
    store.disk.fail(DiskFault("sync", "EIO", path="consumequeue/T0/0/"))
    store.disk.fail(DiskFault("remove", "EIO", path="consumequeue/T0/0/"))
    with pytest.raises(OSError, match="remove"):
        store.reput()
    assert store.mount.exists("consumequeue/T0/0/00000000000000000000")

    assert store.live.delete_topics(["T0"]) == 1

    assert not store.mount.exists("consumequeue/T0")


def test_one_queue_goes_and_the_others_of_its_topic_stay() -> None:
    store = StoreBuilder().put(2).put(1, queue_id=1).reput()

    assert store.live.delete_queue("T0", 1) == 1
    assert store.live.delete_queue("T0", 1) == 0

    assert store.pull(queue_id=1).status in GONE
    assert store.served("T0", 0) == [0, 1]


def test_unused_topics_go_but_those_of_the_system_and_light_queues() -> None:
    kept = ("T1", "SCHEDULE_TOPIC_XXXX", "rmq_sys_x", "%LMQ%a")
    store = StoreBuilder().put(1)
    for topic in kept:
        store.put(1, topic=topic)

    assert store.reput().live.clean_unused_topic(["T1"]) == 1

    assert store.pull().status in GONE
    assert [len(store.served(topic)) for topic in kept] == [1, 1, 1, 1]


def test_what_is_put_after_a_deletion_counts_from_0() -> None:
    store = two_topics()
    store.live.delete_topics(["T0"])

    store.put(2).reput()

    assert [result.queue_offset for result in store.results[-2:]] == [0, 1]
    assert store.served() == [4, 5]


def test_a_deleted_topic_does_not_come_back_after_a_crash() -> None:
    store = two_topics()
    store.live.delete_topics(["T0"])
    store.put(1).flush().lose_power()

    assert store.reput().served() == [4]
    assert store.put(1).results[-1].queue_offset == 1


def test_records_not_dispatched_yet_are_deleted_too() -> None:
    store = StoreBuilder().put(3)
    store.live.delete_topics(["T0"])

    store.reput()

    assert store.pull().status in GONE
    assert not store.mount.exists("consumequeue/T0")


@pytest.mark.parametrize("crash", [LOST, Crash("process_kill")])
def test_a_crash_at_any_disk_action_leaves_a_topic_whole_or_gone(crash: Crash) -> None:
    served = []
    for at_action in range(1, ACTIONS_MAX):
        store = two_topics()

        def end(store: StoreBuilder = store) -> None:
            raise store.disk.crash(crash)

        store.disk.at_action(at_action, 0, end)
        try:
            store.live.delete_topics(["T0"])
        except StoreCrashed:
            store.kill()
        if not store.disk.end_watch():
            break
        served.append(store.reput().served())
        assert store.served("T1") == [3]

    assert served == sorted(served, reverse=True)
    assert {tuple(numbers) for numbers in served} == {(0, 1, 2), ()}


def test_a_place_beyond_a_log_that_lost_its_end_moves_back() -> None:
    store = two_topics().put(2)
    store.live.delete_topics(["T0"])
    store.lose_power()

    store.put(1).reput().restart()

    assert store.live.deleted_topics.dead_below("T0", 0) == 4 * RECORD_SIZE
    assert store.served() == [6]


def test_a_deletion_that_cannot_be_written_changes_nothing() -> None:
    store = two_topics().fail("create", "ENOSPC")

    with pytest.raises(OSError, match="No space"):
        store.live.delete_topics(["T0"])

    assert store.served() == [0, 1, 2]
    assert store.put(1).results[-1].queue_offset == 3


def test_after_a_deletion_cut_short_no_put_is_taken() -> None:
    store = two_topics().fail_at(6, "sync")

    with pytest.raises(OSError, match="error"):
        store.live.delete_topics(["T0"])
    with pytest.raises(StoreStopped, match="Start it again"):
        store.live.delete_topics(["T1"])

    assert store.put(1).results[-1].status is PutMessageStatus.SERVICE_NOT_AVAILABLE


def test_a_damaged_record_of_deletions_is_refused() -> None:
    store = two_topics()
    store.live.delete_topics(["T0"])
    store.stop()

    store.damage("deletedTopics", 30, b"9")

    with pytest.raises(StoreCorrupted, match="deletedTopics"):
        store.loaded()


def test_a_store_without_deletions_has_no_record_of_them() -> None:
    store = two_topics()
    store.restart()

    assert store.live.delete_topics(["T7"]) == 0
    assert "deletedTopics" not in store.disk.files()
