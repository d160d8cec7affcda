"""The reference model, note by note: what must survive, what may be read."""

from __future__ import annotations

import pytest

from crashmq.models.appended import differs, differs_from_message
from crashmq.models.files.deleted import ALL_QUEUES
from crashmq.models.files.store_image import Record
from crashmq.models.knowledge.reference import ReferenceModel
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import (
    Positions,
    Put,
    PutStatus,
)
from crashmq.models.ops import CrashKind
from crashmq.models.program import FlushMode

KEY = ("T0", 0)
SIZE = 100


def message(number: int = 0, *, topic: str = "T0", waits: bool = True) -> MessageToPut:
    return MessageToPut(topic, 0, b"x%d" % number, "", "", f"K{number}", waits)


def filled(
    count: int, mode: FlushMode = "ASYNC_FLUSH", *, status: PutStatus = "PUT_OK"
) -> ReferenceModel:
    model = ReferenceModel(mode)
    for number in range(count):
        answer = Put(status, number * SIZE, SIZE, number)
        model.put(message(number), answer, stored_ms=number)
    return model


def positions(end: int, **marks: int) -> Positions:
    given = {"flushed_where": 0, "reput_from_offset": 0, "min_phy_offset": 0, **marks}
    return Positions(max_phy_offset=end, **given)


@pytest.mark.parametrize(
    ("mode", "status", "kill", "power"),
    [
        ("ASYNC_FLUSH", "PUT_OK", 200, 0),
        ("SYNC_FLUSH", "PUT_OK", 200, 200),
        ("SYNC_FLUSH", "FLUSH_DISK_TIMEOUT", 0, 0),
    ],
)
def test_what_was_acknowledged_survives_as_the_mode_says(
    mode: FlushMode, status: PutStatus, kill: int, power: int
) -> None:
    model = filled(2, mode, status=status)

    assert (model.floor_kill, model.floor_power) == (kill, power)


def test_a_kill_empties_write_buffers_but_not_of_what_was_synced() -> None:
    for mode, kill in (("ASYNC_FLUSH", 0), ("SYNC_FLUSH", SIZE)):
        model = ReferenceModel(mode, buffers_appends=True)  # type: ignore[arg-type]
        model.put(message(), Put("PUT_OK", 0, SIZE, 0))

        assert model.floor_kill == kill


def test_marks_that_a_store_reports_are_promises() -> None:
    model = filled(3, status="FLUSH_DISK_TIMEOUT")

    model.saw_positions(positions(300, flushed_where=100, committed_where=200))

    assert (model.floor_power, model.floor_kill) == (100, 200)


@pytest.mark.parametrize(
    ("crashes", "floor"),
    [
        (("process_kill",), 300),
        (("power_loss",), 100),
        (("power_loss", "process_kill"), 100),
        (("process_kill", "power_loss"), 100),
    ],
)
def test_the_worst_crash_since_the_last_start_sets_the_floor(
    crashes: tuple[CrashKind, ...], floor: int
) -> None:
    model = filled(3)
    model.saw_positions(positions(300, flushed_where=100, committed_where=300))

    for kind in crashes:
        model.crashed(kind, [])

    assert model.floor == floor


def test_an_orderly_end_has_synced_everything() -> None:
    for clean, power in ((True, 200), (False, 0)):
        model = filled(2)

        model.stopped(200, clean=clean)
        model.crashed("power_loss", [])

        assert (model.floor_power, model.floor) == (power, power)


def test_a_kill_spares_no_more_than_power_loss_where_memory_was_taken_back() -> None:
    model = filled(2)

    model.lose_what_was_not_synced()
    model.crashed("process_kill", [])

    assert model.floor == 0


def test_unanswered_puts_are_kept_until_a_start_has_told_of_them() -> None:
    model = filled(1)

    model.crashed("process_kill", [message(1)])
    assert model.in_flight == [message(1)]
    model.adopt([], {}, 0)

    assert (model.in_flight, model.messages, model.queues) == ([], [], {})


def test_a_start_that_lost_the_tail_promises_what_is_left_and_no_more() -> None:
    model = filled(3, "SYNC_FLUSH")
    records = [stored(model, number) for number in range(2)]

    model.adopt(records, {KEY: 2}, 0)

    assert (model.end, model.floor_kill, model.floor_power) == (200, 200, 200)
    assert model.floor is None
    assert model.built == {KEY: 2}
    assert (model.put_by_topic, model.puts) == ({}, 0)
    assert model.next_queue_offset(KEY) == 2


def test_what_is_put_counts_once_and_a_batch_once() -> None:
    model = filled(3)

    assert model.puts == 3
    assert model.put_by_topic == {"T0": (3, 300)}


def test_a_queue_counts_on_where_its_expired_messages_ended() -> None:
    model = filled(3)
    model.saw_positions(positions(300, min_phy_offset=200, reput_from_offset=300))

    assert model.built == {KEY: 2}
    assert model.ends_of_empty_queues() == {}
    model.saw_positions(positions(300, min_phy_offset=300, reput_from_offset=300))
    assert model.built == {KEY: 3}
    assert model.ends_of_empty_queues() == {KEY: 3}
    assert model.next_queue_offset(KEY) == 3


@pytest.mark.parametrize(
    ("old_ms", "reput", "until"), [(None, 300, 200), (0, 300, 100), (None, 100, 100)]
)
def test_whole_files_may_expire_that_are_old_dispatched_and_not_the_last(
    old_ms: int | None, reput: int, until: int
) -> None:
    model = filled(3)
    model.saw_positions(positions(300, reput_from_offset=reput))

    assert model.expirable_until(100, old_ms) == until


@pytest.mark.parametrize(
    ("reput", "log_min", "low", "high"),
    [(300, 0, 0, 3), (299, 0, 0, 2), (300, 100, 1, 3), (0, 0, 0, 0)],
)
def test_what_is_dispatched_and_not_expired_may_be_read(
    reput: int, log_min: int, low: int, high: int
) -> None:
    model = filled(3)
    model.saw_positions(positions(300, min_phy_offset=log_min, reput_from_offset=reput))

    visible = model.visible(KEY)

    assert (visible.min_offset, visible.max_offset) == (low, high)
    assert len(visible.messages) == high - low


def test_a_deleted_queue_begins_anew_and_a_topic_speaks_for_all_of_its_queues() -> None:
    model = filled(3)
    model.built = {KEY: 3}

    model.delete(KEY, 200)
    assert [m.queue_offset for m in model.queues[KEY]] == [2]
    assert model.next_queue_offset(KEY) == 3
    assert (model.built, model.dead_below(KEY)) == ({}, 200)
    model.delete(("T0", ALL_QUEUES), 300)

    assert (model.queues, model.deleted) == ({}, {("T0", ALL_QUEUES): 300})
    assert (model.dead_below(KEY), model.dead_below(("T1", 0))) == (300, 0)


def test_a_deletion_cut_short_leaves_its_queues_unsettled() -> None:
    model = filled(1)
    assert not model.is_unsettled(KEY)

    model.may_have_deleted(("T0", ALL_QUEUES), 50, 100)
    model.may_have_deleted(("T0", ALL_QUEUES), 60, 90)

    assert model.is_unsettled(KEY)
    assert model.may_be_deleted == {("T0", ALL_QUEUES): (50, 100)}


def stored(model: ReferenceModel, number: int, **other: object) -> Record:
    """The record that a store would have of a message, but for what ``other`` says."""
    appended = model.messages[number]
    put = appended.message
    fields = {
        "phy_offset": appended.phy_offset,
        "size": appended.size,
        "topic": put.topic,
        "queue_id": put.queue_id,
        "queue_offset": appended.queue_offset,
        "tags_code": 0,
        "store_timestamp": 1,
        "sys_flag": put.sys_flag,
        "body": put.body,
        "properties_raw": b"UNIQ_KEY\x01" + put.unique_key.encode() + b"\x02",
        "magic": 0,
        "body_crc": 0,
        "flag": put.flag,
        "born_timestamp": put.born_timestamp,
        "born_host": put.born_host,
        "store_host": put.store_host,
        "reconsume_times": 0,
        "prepared_transaction_offset": 0,
    }
    return Record(**(fields | other))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "other",
    [
        {"body": b"?"},
        {"phy_offset": 101},
        {"size": 99},
        {"queue_offset": 7},
        {"topic": "T1"},
        {"queue_id": 1},
        {"flag": 1},
        {"sys_flag": 1},
        {"born_timestamp": 5},
        {"store_host": bytes(8)},
        {"reconsume_times": 1},
        {"properties_raw": b"UNIQ_KEY\x01other\x02"},
        {"properties_raw": b"UNIQ_KEY\x01K1\x02INNER_MULTI_QUEUE_OFFSET\x017\x02"},
    ],
)
def test_a_record_that_differs_anywhere_is_not_the_message(
    other: dict[str, object],
) -> None:
    model = filled(2)
    same, wrong = stored(model, 1), stored(model, 1, **other)

    assert differs(same, model.messages[1]) == ""
    assert differs(wrong, model.messages[1])
    if not {"phy_offset", "size", "queue_offset"} & {*other}:
        assert differs_from_message(wrong, model.messages[1].message)
