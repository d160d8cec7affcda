"""Reading a queue: every status, where to go on, and the limits of one read."""

from __future__ import annotations

import pytest
from store_builder import (
    LOG_FILE_SIZE,
    RECORD_SIZE,
    StoreBuilder,
    log_file,
    queue_file,
)

from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message.message_reader import MessageReader
from crashmq.engine.store.queue.consume_queue_store import ConsumeQueueStore
from crashmq.engine.store.results import GetMessageStatus
from crashmq.models.files.store_image import decode_record

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
Status = GetMessageStatus


@pytest.mark.parametrize(
    ("queue_offset", "status", "next_begin_offset", "messages"),
    [
        (0, Status.FOUND, 3, 3),
        (2, Status.FOUND, 3, 1),
        (3, Status.OFFSET_OVERFLOW_ONE, 3, 0),
        (4, Status.OFFSET_OVERFLOW_BADLY, 3, 0),
        (99, Status.OFFSET_OVERFLOW_BADLY, 3, 0),
        (-1, Status.OFFSET_TOO_SMALL, 0, 0),
    ],
)
def test_a_read_says_where_to_go_on(
    store: StoreBuilder,
    queue_offset: int,
    status: GetMessageStatus,
    next_begin_offset: int,
    messages: int,
) -> None:
    result = store.put(3).reput().pull(queue_offset)

    assert (result.status, result.next_begin_offset) == (status, next_begin_offset)
    assert len(result.messages) == messages
    assert (result.min_offset, result.max_offset) == (0, 3)


def test_a_read_of_an_unknown_queue_makes_none(store: StoreBuilder) -> None:
    result = store.put().reput().pull(topic="T9")

    assert (result.status, result.next_begin_offset) == (
        Status.NO_MATCHED_LOGIC_QUEUE,
        0,
    )
    assert [(q.topic, q.queue_id) for q in store.image().consume_queues] == [("T0", 0)]


def test_a_read_of_a_queue_that_lost_its_units_finds_no_message(
    store: StoreBuilder,
) -> None:
    store.put().reput().kill().damage(queue_file(), 0, bytes(20))

    result = store.restart().pull()

    assert (result.status, result.next_begin_offset) == (Status.NO_MESSAGE_IN_QUEUE, 0)


def test_a_read_below_the_queues_begin_is_sent_to_it(store: StoreBuilder) -> None:
    store.put(PER_FILE + 2).kill().remove(log_file(0))

    result = store.restart().reput().pull(0)

    assert (result.status, result.next_begin_offset) == (
        Status.OFFSET_TOO_SMALL,
        PER_FILE,
    )
    assert store.pull(PER_FILE).status is Status.FOUND


def test_a_read_in_a_file_that_has_gone_is_sent_to_the_next(
    store: StoreBuilder,
) -> None:
    store.put(PER_FILE + 2).reput().kill()
    queues = ConsumeQueueStore(store.config, store.mount, store.runtime)
    queues.load()
    log = CommitLog(store.config, store.mount, store.runtime, queues)
    queue = queues.find("T0", 0)
    assert queue is not None
    queue.mapped_files.files.pop(0).destroy()

    result = MessageReader(store.config, log, queues).get_message("T0", 0, 3, 32)

    assert result.status is Status.OFFSET_FOUND_NULL
    assert result.next_begin_offset == PER_FILE


@pytest.mark.parametrize(
    ("queue_offset", "status", "next_begin_offset"),
    [
        (0, Status.MESSAGE_WAS_REMOVING, PER_FILE),
        (PER_FILE, Status.FOUND, PER_FILE + 2),
    ],
)
def test_records_that_have_gone_cost_only_themselves(
    store: StoreBuilder,
    queue_offset: int,
    status: GetMessageStatus,
    next_begin_offset: int,
) -> None:
    store.put(PER_FILE + 2).reput()
    store.live.commit_log.mapped_files.files.pop(0).destroy()

    result = store.pull(queue_offset)

    assert (result.status, result.next_begin_offset) == (status, next_begin_offset)


def test_a_read_for_no_message_matches_none(store: StoreBuilder) -> None:
    result = store.put(3).reput().pull(1, max_msg_nums=0)

    assert (result.status, result.next_begin_offset) == (Status.NO_MATCHED_MESSAGE, 1)


@pytest.mark.parametrize(("asked", "got"), [(10, 10), (20, 20), (32, 32), (100, 32)])
def test_a_read_returns_at_most_32_messages(
    store: StoreBuilder, asked: int, got: int
) -> None:
    store.configured(mapped_file_size_consume_queue=2000)

    result = store.put(40).reput().pull(0, max_msg_nums=asked)

    assert (len(result.messages), result.next_begin_offset) == (got, got)


@pytest.mark.parametrize(("limit", "got"), [(1, 1), (199, 1), (200, 2), (299, 2)])
def test_a_read_returns_at_most_so_many_bytes_but_always_one_message(
    store: StoreBuilder, limit: int, got: int
) -> None:
    store.configured(max_transfer_bytes_on_message_in_memory=limit)

    result = store.put(5).reput().pull(0)

    assert (len(result.messages), result.next_begin_offset) == (got, got)


def test_a_read_never_crosses_a_queue_file(store: StoreBuilder) -> None:
    store.put(15).reput()

    result = store.pull(8)

    assert [bytes(decode_record(m).body) for m in result.messages] == [
        b"0000008",
        b"0000009",
    ]
    assert result.next_begin_offset == 10


def test_a_message_comes_back_byte_for_byte(store: StoreBuilder) -> None:
    message = Message("T0", 0, b"body", {"TAGS": "TagA", "KEYS": "K1 K2"}, 42, flag=7)
    store.send(message)

    (served,) = store.reput().pull().messages

    record = decode_record(served)
    assert (bytes(record.body), record.flag, record.born_timestamp) == (b"body", 7, 42)
    assert record.properties == {"TAGS": "TagA", "KEYS": "K1 K2"}


def test_what_lies_far_behind_is_sent_a_little_at_a_time(store: StoreBuilder) -> None:
    store.configured(
        access_message_in_memory_max_size=1500,
        max_transfer_count_on_message_in_disk=3,
        mapped_file_size_consume_queue=2000,
    )
    store.put(40).reput()

    taken = [len(store.pull(at).messages) for at in (0, 30)]

    assert taken == [3, 10]
    assert store.pull(0, 2).next_begin_offset == 2


def test_a_record_from_the_disk_is_sent_however_large(store: StoreBuilder) -> None:
    store.configured(
        access_message_in_memory_max_size=0, max_transfer_bytes_on_message_in_disk=1
    )

    assert len(store.put(3).reput().pull().messages) == 1


@pytest.mark.parametrize("at", [0, 4, 28, 92, 95])
def test_a_damaged_record_is_not_returned_where_reads_check(
    store: StoreBuilder, at: int
) -> None:
    store.configured(check_crc_on_read=True).put(3).reput()
    store.scribble(log_file(), RECORD_SIZE + at, b"?")

    found = store.pull()
    store.scribble(log_file(), 2 * RECORD_SIZE + at, b"?")
    nothing = store.pull(1)

    assert [decode_record(m).queue_offset for m in found.messages] == [0, 2]
    assert found.next_begin_offset == 3
    assert (nothing.status, nothing.next_begin_offset) == (
        Status.MESSAGE_WAS_REMOVING,
        3,
    )


def test_a_unit_that_rots_in_a_running_store_leads_to_no_wrong_message(
    store: StoreBuilder,
) -> None:
    store.configured(check_crc_on_read=True).put(3).reput()
    store.scribble(queue_file(), 20 + 7, b"\x32")

    assert len(store.pull().messages) == 2
