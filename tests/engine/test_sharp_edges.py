"""What makes RocketMQ 5.3.0 lose, repeat or invent messages, done to our store.

Each test provokes one known sharp edge of ``DefaultMessageStore``; its number is the
row of the list in the store's reference. None of them may cost a message here.
"""

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

from crashmq.engine.store.errors import StoreCorrupted
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.results import GetMessageStatus, PutMessageStatus
from crashmq.harness.disk.crash import PowerLost
from crashmq.models.ops import Crash

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
UNITS_PER_FILE = 10
UNIT = 20
PRE_BLANK = bytes.fromhex("0000000000000000 7fffffff 0000000000000000")


def queue_offsets(store: StoreBuilder) -> list[int]:
    return [unit.queue_offset for unit in store.queue()]


def test_14_1_a_first_unit_of_zeros_is_no_phantom_entry(store: StoreBuilder) -> None:
    store.put(UNITS_PER_FILE + 1).reput()
    assert store.stop()
    store.damage(queue_file(base=200), 0, bytes(UNIT))

    store.restart()

    assert store.pull(UNITS_PER_FILE).status is GetMessageStatus.OFFSET_OVERFLOW_ONE
    assert store.put().results[-1].queue_offset == UNITS_PER_FILE + 1
    assert store.reput().served() == list(range(UNITS_PER_FILE + 2))


def test_14_2_a_queue_lost_after_a_clean_exit_is_rebuilt(store: StoreBuilder) -> None:
    store.put(5).reput()
    assert store.stop()
    store.remove(queue_file())

    store.restart().put().reput()

    assert store.results[-1].queue_offset == 5
    assert store.served() == [0, 1, 2, 3, 4, 5]


def test_14_3_units_lost_behind_the_checkpoint_come_back_in_place(
    store: StoreBuilder,
) -> None:
    store.put(5).make_all_durable()
    store.put(18).reput().flush().write_checkpoint().lose_power()

    store.restart().reput()

    assert queue_offsets(store) == list(range(23))
    assert store.served() == list(range(23))
    assert store.put().results[-1].queue_offset == 23


def test_14_4_a_queue_of_pre_blanks_alone_takes_later_messages(
    store: StoreBuilder,
) -> None:
    store.configured(mapped_file_size_consume_queue=7 * UNIT)
    store.put(PER_FILE + 2).kill().remove(log_file(0))
    store.restart().reput().kill()
    found = store.disk.files()[queue_file(base=140)]
    assert found.startswith(PRE_BLANK * 3)
    store.damage(queue_file(base=140), 3 * UNIT, bytes(2 * UNIT))

    store.restart().reput().put().reput()

    first = store.pull(0).next_begin_offset
    assert first == PER_FILE
    assert len(store.pull(first).messages) == 3


def test_14_5a_no_pull_begins_at_a_pre_blank(store: StoreBuilder) -> None:
    store.configured(mapped_file_size_consume_queue=7 * UNIT)
    store.put(PER_FILE + 2).kill().remove(log_file(0))
    store.restart().reput()

    for _ in range(2):
        result = store.pull(7)
        assert result.status is GetMessageStatus.OFFSET_TOO_SMALL
        assert result.next_begin_offset == result.min_offset == PER_FILE
        store.restart()


def test_14_5b_phy_offset_0_is_never_another_file(store: StoreBuilder) -> None:
    store.put(PER_FILE + 2).reput()
    store.live.commit_log.mapped_files.files.pop(0).destroy()

    result = store.pull(0, max_msg_nums=1)

    assert result.status is GetMessageStatus.MESSAGE_WAS_REMOVING
    assert store.pull(PER_FILE).next_begin_offset == PER_FILE + 2


def test_14_6_a_record_of_a_wrong_length_does_not_cost_the_next(
    store: StoreBuilder,
) -> None:
    store.put(4).scribble(log_file(), RECORD_SIZE + 95, b"\x01").reput().put()
    assert store.served() == [0]

    store.scribble(log_file(), RECORD_SIZE + 95, b"\x02").reput()

    assert store.served() == [0, 1, 2, 3, 4]


def test_14_7_a_length_near_2_gib_ends_the_log_and_nothing_else(
    store: StoreBuilder,
) -> None:
    store.put(4).reput().kill()
    store.damage(log_file(), 2 * RECORD_SIZE, b"\x7f\xff\xff\xff")

    store.restart().reput()

    assert store.served() == [0, 1]
    assert store.put().results[-1].phy_offset == 2 * RECORD_SIZE


def test_14_8_bit_rot_in_an_old_record_is_told_and_costs_nothing(
    store: StoreBuilder,
) -> None:
    store.put(4 * PER_FILE).make_all_durable()
    assert store.stop()
    rotten = store.disk.files()[log_file()][90]
    store.damage(log_file(), 90, bytes((rotten ^ 1,)))
    before = store.disk.files()

    with pytest.raises(StoreCorrupted, match=rf"{log_file()} byte 0 \(offset 0\)"):
        store.loaded()
    assert store.disk.files() == before

    store.kill().damage(log_file(), 90, bytes((rotten,)))
    assert store.restart().served() == list(range(4 * PER_FILE))


def test_14_10_a_failed_sync_is_no_put_ok_and_no_durable_byte(
    store: StoreBuilder,
) -> None:
    store.configured(flush_disk_type=SYNC).put()
    live = store.live
    answers: list[PutMessageStatus] = []

    def put() -> None:
        answers.append(live.put_message(Message("T0", 0, b"0000001")).status)

    store.fail("sync")
    with pytest.raises(OSError, match="sync"):
        store.runtime.run(put)
    assert answers == [PutMessageStatus.FLUSH_DISK_TIMEOUT]
    assert live.commit_log.flushed_where == RECORD_SIZE
    assert not any(store.disk.durable_files()[log_file()][RECORD_SIZE:])


def test_14_14_units_after_a_cut_across_files_become_durable(
    store: StoreBuilder,
) -> None:
    store.put(UNITS_PER_FILE + 2).make_all_durable().kill()
    store.drop_commit_log_tail(messages=4).remove("checkpoint")

    store.restart().put().reput().flush_queues()

    assert queue_offsets(store) == list(range(UNITS_PER_FILE - 1))
    newest = (UNITS_PER_FILE - 2) * UNIT
    durable = store.disk.durable_files()[queue_file()]
    assert any(durable[newest : newest + UNIT])


@pytest.mark.parametrize("ends", ["clean", "killed"])
def test_14_18_a_discarded_record_is_never_resurrected(
    store: StoreBuilder, ends: str
) -> None:
    store.put(3).reput().kill().damage(log_file(), RECORD_SIZE + 4, b"\x33")
    store.restart().put().reput()
    assert store.results[-1].phy_offset == RECORD_SIZE
    if ends == "killed":
        store.kill()

    store.restart().reput()

    assert store.served() == [0, 3]
    assert queue_offsets(store) == [0, 1]
    assert store.live.commit_log.max_offset == 2 * RECORD_SIZE


def test_14_21_abort_is_durable_before_anything_else_is_changed(
    store: StoreBuilder,
) -> None:
    store.put(PER_FILE + 5).reput()
    assert store.stop()
    store.damage(queue_file(), 0, b"\x33").damage(log_file(), 1010, b"\x33")
    store.remove("checkpoint").configured(adopt=True)
    before = store.disk.files()

    for at_action in range(1, len(store.traced(store.restart)) + 1):
        again = StoreBuilder().configured(adopt=True)
        again.disk.load(before)
        crash_at(again, at_action)
        left = dict(again.disk.files())
        left.pop("checkpoint", None)  # its mark says first whose the directory was
        assert "abort" in left or left == before, at_action


def crash_at(store: StoreBuilder, at_action: int) -> None:
    """Lose power in a start, with all that was not synced."""

    def lose_power() -> None:
        raise store.disk.crash(Crash("power_loss"))

    store.disk.at_action(at_action, 0, lose_power)
    with pytest.raises(PowerLost):
        store.restart()


def test_14_23_the_queue_that_lags_is_repaired_not_the_one_ahead(
    store: StoreBuilder,
) -> None:
    for _ in range(4):
        store.put().put(topic="T1")
    store.reput().flush().write_checkpoint()
    ahead = store.disk.files()[queue_file()]
    store.lose_power()
    store.disk.replace_file(queue_file(), ahead)

    store.restart().reput()

    assert store.served() == [0, 2, 4, 6]
    assert store.served("T1") == [1, 3, 5, 7]
