"""All queues: held against the log at a start, and the queue offsets given next."""

from __future__ import annotations

import pytest
from store_builder import RECORD_SIZE, StoreBuilder, log_file, queue_file

from crashmq.engine.host.probe import recording
from crashmq.engine.store.message.message import (
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)

UNIT = 20


def queue_offsets(store: StoreBuilder) -> list[int]:
    return [unit.queue_offset for unit in store.queue()]


def test_a_record_is_listed_in_its_queue_alone(store: StoreBuilder) -> None:
    store.put(2).put(topic="T1").put(queue_id=1).reput()

    assert [unit.phy_offset for unit in store.queue()] == [0, RECORD_SIZE]
    assert [unit.phy_offset for unit in store.queue("T1")] == [2 * RECORD_SIZE]
    assert [unit.phy_offset for unit in store.queue("T0", 1)] == [3 * RECORD_SIZE]


@pytest.mark.parametrize("sys_flag", [TRANSACTION_PREPARED, TRANSACTION_ROLLBACK])
def test_a_record_without_a_unit_is_listed_nowhere(
    store: StoreBuilder, sys_flag: int
) -> None:
    with recording() as hits:
        store.put(sys_flag=sys_flag).reput()

    assert hits["consume_queue_store.dispatch.none"] == 1
    assert store.image().consume_queues == ()


def test_a_start_finds_every_unit_in_its_place(store: StoreBuilder) -> None:
    store.put(13).put(3, topic="T1").reput().kill()

    with recording() as hits:
        store.restart()

    assert hits["consume_queue_store.audit.agreed"] == 1
    assert store.live.reput.behind == 0
    assert store.served() == list(range(13))


def test_recovery_cuts_units_past_the_commit_log(store: StoreBuilder) -> None:
    store.put(3).reput().kill().drop_commit_log_tail(messages=1)

    store.restart()

    assert queue_offsets(store) == [0, 1]


def test_a_unit_whose_record_is_left_in_part_is_cut(store: StoreBuilder) -> None:
    store.put(3).reput().kill()
    store.damage(log_file(), 2 * RECORD_SIZE + 10, bytes(RECORD_SIZE - 10))

    store.restart()

    assert queue_offsets(store) == [0, 1]


def test_a_queue_that_lacks_units_gets_them_from_the_log(store: StoreBuilder) -> None:
    store.put(3).reput().put(2).kill()

    store.restart()
    assert store.live.reput.reput_from_offset == 3 * RECORD_SIZE

    assert store.reput().served() == [0, 1, 2, 3, 4]


def test_a_queue_without_files_is_built_anew(store: StoreBuilder) -> None:
    store.put(3).put(2, topic="T1").reput().kill()
    store.remove(queue_file("T1"))

    store.restart().reput()

    assert store.served("T1") == [3, 4]
    assert store.served() == [0, 1, 2]


def test_a_queue_never_written_is_built_from_the_log(store: StoreBuilder) -> None:
    store.put(3).kill()

    with recording() as hits:
        store.restart()

    assert hits["queue_audit.lacked"] == 1
    assert store.reput().served() == [0, 1, 2]


@pytest.mark.parametrize("at", [0, 7, 8, 11, 12, 19])
def test_a_unit_that_is_not_its_records_is_replaced(
    store: StoreBuilder, at: int
) -> None:
    store.put(4).reput().kill()
    store.damage(queue_file(), UNIT + at, b"\x55")

    with recording() as hits:
        store.restart().reput()

    assert hits["queue_audit.disagreed"] == 1
    assert store.served() == [0, 1, 2, 3]


def test_dispatch_resumes_at_the_queue_that_lacks_most(store: StoreBuilder) -> None:
    store.put().put(topic="T1").put().put(topic="T1").reput().kill()
    store.damage(queue_file("T1"), 0, bytes(2 * UNIT))

    store.restart()

    assert store.live.reput.reput_from_offset == RECORD_SIZE
    assert store.reput().served("T1") == [1, 3]
    assert store.served() == [0, 2]


def test_a_queue_the_log_does_not_name_is_removed(store: StoreBuilder) -> None:
    store.put(2, topic="T1").put().reput().kill()
    store.drop_commit_log_tail(messages=1)

    with recording() as hits:
        store.restart()

    assert hits["consume_queue_store.audit.unlogged"] == 1
    assert queue_file() not in store.disk.files()
    assert store.put().reput().served() == [3]


def test_foreign_names_among_the_queues_are_passed_over(store: StoreBuilder) -> None:
    store.put().reput().kill()
    foreign = ("consumequeue/.tmp", "consumequeue/T0/x/file", "consumequeue/T0/0/.swp")
    for path in foreign:
        store.disk.replace_file(path, b"not ours")

    assert store.restart().served() == [0]
    assert all(store.disk.files()[path] == b"not ours" for path in foreign)


def test_the_next_queue_offset_is_right_while_dispatch_lags(
    store: StoreBuilder,
) -> None:
    store.put(3).reput().put(2).kill()

    store.restart().put()

    assert store.results[-1].queue_offset == 5
    assert store.reput().served() == [0, 1, 2, 3, 4, 5]


def test_each_queue_counts_for_itself(store: StoreBuilder) -> None:
    store.put(2).put(topic="T1").put(queue_id=1).put()

    assert [result.queue_offset for result in store.results] == [0, 1, 0, 0, 2]


def test_units_known_durable_are_not_written_again(store: StoreBuilder) -> None:
    store.put(3).make_all_durable().put(topic="T1").reput().kill()

    trace = store.traced(store.restart)

    assert f"write:{queue_file('T1')}" in trace
    assert f"write:{queue_file('T0')}" not in trace


def test_units_whose_sync_failed_are_durable_after_a_restart(
    store: StoreBuilder,
) -> None:
    store.put(3).reput().flush().fail("sync")
    with pytest.raises(OSError, match="sync"):
        store.flush_queues()
    store.kill()

    store.restart().flush_queues()

    assert any(store.disk.durable_files()[queue_file()][: 3 * UNIT])
    store.lose_power()
    assert queue_offsets(store) == [0, 1, 2]


def test_a_queue_file_without_its_bytes_is_filled_again(store: StoreBuilder) -> None:
    store.put(3).reput().kill()
    store.disk.replace_file(queue_file(), b"")

    store.restart().reput()

    assert queue_offsets(store) == [0, 1, 2]


@pytest.mark.parametrize("size", [1, 19, 21, 199])
def test_a_queue_file_cut_short_is_filled_again(store: StoreBuilder, size: int) -> None:
    store.put(12).reput().kill()
    store.disk.replace_file(queue_file(), store.disk.files()[queue_file()][:size])

    store.restart().reput()

    assert store.served() == list(range(12))
