"""The log: appending, rolling, reading, and where a start finds its end."""

from __future__ import annotations

import pytest
from store_builder import LOG_FILE_SIZE, RECORD_SIZE, StoreBuilder, log_file

from crashmq.engine.host.probe import recording
from crashmq.engine.store.damage import Stop
from crashmq.engine.store.log_scan import NONE_OURS, LogScan, records_in
from crashmq.engine.store.message.message import Host, Message
from crashmq.engine.store.results import PutMessageStatus
from crashmq.models.files.store_image import decode_record

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
FILLER_AT = PER_FILE * RECORD_SIZE
OVERHEAD = RECORD_SIZE - 7  # of the default message around its body
MIB = 1 << 20


def statuses(store: StoreBuilder) -> list[PutMessageStatus]:
    return [result.status for result in store.results]


def log_of(store: StoreBuilder) -> bytes:
    files = store.disk.files()
    return b"".join(
        data for path, data in files.items() if path.startswith("commitlog")
    )


def scan(store: StoreBuilder) -> LogScan:
    """Where a start finds the log's end; the store is down and stays so."""
    found = store.loaded().commit_log.scan(lambda request: None)
    store.kill()
    return found


def test_a_record_lies_at_its_own_phy_offset(store: StoreBuilder) -> None:
    store.put(3)

    records = store.image().commit_log.records
    assert [record.phy_offset for record in records] == [0, 100, 200]
    assert [record.queue_offset for record in records] == [0, 1, 2]
    assert [bytes(record.body) for record in records] == [
        b"000000%d" % n for n in range(3)
    ]


def test_the_result_says_where_the_record_lies(store: StoreBuilder) -> None:
    store.put(2)

    result = store.results[-1]
    assert (result.phy_offset, result.size, result.queue_offset) == (100, 100, 1)
    assert result.is_appended
    assert result.end_offset == store.live.commit_log.max_offset


def test_a_record_is_stamped_with_the_stores_clock(store: StoreBuilder) -> None:
    now = store.runtime.now_ms()

    store.put(born_host=Host(bytes(16), 1))

    assert store.image().commit_log.records[0].store_timestamp == now


def test_a_full_file_ends_with_a_filler_and_the_log_goes_on(
    store: StoreBuilder,
) -> None:
    store.put(PER_FILE + 1)

    filler = bytes.fromhex("00000018cbd43194") + bytes(16)
    assert log_of(store)[FILLER_AT:LOG_FILE_SIZE] == filler
    assert store.results[-1].phy_offset == LOG_FILE_SIZE
    assert store.results[-1].queue_offset == PER_FILE


def test_a_record_leaves_room_for_a_filler_of_eight_bytes(store: StoreBuilder) -> None:
    largest = LOG_FILE_SIZE - 8 - OVERHEAD

    store.put(body_size=largest).put()

    assert store.results[0].size == LOG_FILE_SIZE - 8
    assert log_of(store)[LOG_FILE_SIZE - 8 : LOG_FILE_SIZE].hex() == "00000008cbd43194"
    assert store.results[1].phy_offset == LOG_FILE_SIZE


@pytest.mark.parametrize(("size", "fits"), [(116, True), (117, False), (124, False)])
def test_a_record_goes_where_it_and_a_filler_fit(
    store: StoreBuilder, size: int, fits: bool
) -> None:
    store.put(9)  # which leaves 124 bytes

    store.put(body_size=size - OVERHEAD).put()

    assert store.results[9].phy_offset == (900 if fits else LOG_FILE_SIZE)
    assert len(store.image().commit_log.records) == 11


def test_a_record_that_no_file_holds_is_illegal(store: StoreBuilder) -> None:
    store.put(body_size=LOG_FILE_SIZE - 7 - OVERHEAD)

    assert statuses(store) == [PutMessageStatus.MESSAGE_ILLEGAL]
    assert not store.results[0].is_appended
    assert log_of(store) == b""


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (Message("", 0, b"x"), PutMessageStatus.MESSAGE_ILLEGAL),
        (Message("T0", 0, b"x" * 501), PutMessageStatus.MESSAGE_ILLEGAL),
        (
            Message("T0", 0, b"x" * 500, {"a": "y" * 500}),
            PutMessageStatus.MESSAGE_ILLEGAL,
        ),
        (
            Message("T0", 0, b"x", {"a": "y" * 40_000}),
            PutMessageStatus.PROPERTIES_SIZE_EXCEEDED,
        ),
    ],
)
def test_a_rejected_message_consumes_nothing(
    store: StoreBuilder, message: Message, status: PutMessageStatus
) -> None:
    store.configured(max_message_size=500).put()

    assert store.send(message).status is status

    store.put()
    assert (store.results[-1].phy_offset, store.results[-1].queue_offset) == (100, 1)


def test_without_space_for_the_next_file_a_put_fails_and_the_next_works(
    store: StoreBuilder,
) -> None:
    store.put(PER_FILE).fail("create", "ENOSPC").put()
    assert statuses(store)[-1] is PutMessageStatus.CREATE_MAPPED_FILE_FAILED
    store.disk.heal()

    store.put()

    assert store.results[-1].phy_offset == LOG_FILE_SIZE
    assert store.results[-1].queue_offset == PER_FILE
    assert store.reput().served() == [*range(PER_FILE), PER_FILE + 1]


def test_without_space_for_the_first_file_a_put_fails(store: StoreBuilder) -> None:
    assert store.live.is_started
    store.fail("create", "ENOSPC").put()
    store.disk.heal()

    store.put()

    assert statuses(store) == [
        PutMessageStatus.CREATE_MAPPED_FILE_FAILED,
        PutMessageStatus.PUT_OK,
    ]
    assert store.results[1].phy_offset == 0


def test_after_a_failed_append_nothing_is_appended_until_a_restart(
    store: StoreBuilder,
) -> None:
    store.put(2).fail("write").put()
    store.disk.heal()
    store.put()
    assert statuses(store)[2:] == [
        PutMessageStatus.UNKNOWN_ERROR,
        PutMessageStatus.SERVICE_NOT_AVAILABLE,
    ]

    store.restart().put()

    assert store.results[-1].phy_offset == 2 * RECORD_SIZE
    assert store.results[-1].queue_offset == 2


def test_a_failed_append_keeps_the_start_abnormal(store: StoreBuilder) -> None:
    store.put(2).reput().fail("write").put()
    store.disk.heal()

    assert not store.stop()
    assert not store.loaded().last_exit_ok


@pytest.mark.parametrize(
    ("phy_offset", "size", "is_there"),
    [
        (100, 100, True),
        (0, 300, True),
        (250, 50, True),
        (250, 51, False),  # behind what was written
        (0, 0, False),
        (0, -1, False),
        (-1, 10, False),
        (1024, 100, False),
    ],
)
def test_bytes_are_read_where_one_file_has_them_written(
    store: StoreBuilder, phy_offset: int, size: int, is_there: bool
) -> None:
    data = store.put(3).live.commit_log.get_message(phy_offset, size)

    wanted = log_of(store)[phy_offset : phy_offset + size]
    assert data == (wanted if is_there else None)


def test_no_read_crosses_a_file(store: StoreBuilder) -> None:
    log = store.put(PER_FILE + 1).live.commit_log

    assert log.get_message(LOG_FILE_SIZE - 8, 16) is None
    assert len(log.read_from(LOG_FILE_SIZE - 8, 9999)) == 8
    assert log.read_from(LOG_FILE_SIZE, 9999) == log.get_message(LOG_FILE_SIZE, 100)
    assert log.read_from(9999, 99999) == b""


def test_a_log_without_files_begins_nowhere(store: StoreBuilder) -> None:
    log = store.live.commit_log

    assert (log.min_offset, log.max_offset, log.flushed_where) == (-1, 0, 0)
    assert not log.flush(0)


def test_the_next_file_begins_at_the_next_multiple(store: StoreBuilder) -> None:
    log = store.live.commit_log

    assert [log.roll_next_file(offset) for offset in (0, 1023, 1024)] == [
        1024,
        1024,
        2048,
    ]


def test_a_scan_of_no_files_ends_at_zero(store: StoreBuilder) -> None:
    assert scan(store) == LogScan(0, 0, 0, 0, Stop.NO_FILES)


def test_a_scan_ends_at_bytes_never_written(store: StoreBuilder) -> None:
    store.put(3).kill()
    newest = store.runtime.now_ms() - 1

    assert scan(store) == LogScan(0, 300, newest, 3, Stop.ZEROS)


def test_a_scan_goes_on_behind_a_filler(store: StoreBuilder) -> None:
    store.put(PER_FILE + 2).kill()

    found = scan(store)

    assert (found.end, found.records) == (LOG_FILE_SIZE + 200, PER_FILE + 2)


def test_a_scan_ends_at_half_a_message(store: StoreBuilder) -> None:
    store.put(3).kill().damage(log_file(), 100 + 95, b"\x01")  # its topic's length

    found = scan(store)

    assert (found.end, found.stopped_by) == (
        100,
        "a record whose length is not its parts'",
    )


@pytest.mark.parametrize("at", [3, 4, 30, 90], ids=["size", "magic", "offset", "body"])
def test_a_scan_ends_at_what_is_no_record(store: StoreBuilder, at: int) -> None:
    store.put(3).kill().damage(log_file(), 100 + at, b"\x33")

    found = scan(store)

    assert (found.end, found.stopped_by) == (100, Stop.ILLEGAL)


def test_a_scan_ends_at_a_filler_of_another_length(store: StoreBuilder) -> None:
    store.put(PER_FILE + 1).kill().damage(log_file(), FILLER_AT + 3, b"\x17")

    assert scan(store).end == FILLER_AT


def test_a_scan_ends_at_a_missing_file(store: StoreBuilder) -> None:
    store.put(3 * PER_FILE).kill().remove(log_file(LOG_FILE_SIZE))

    found = scan(store)

    assert (found.start, found.end) == (0, LOG_FILE_SIZE)
    assert found.stopped_by is Stop.MISSING_FILE


def test_a_scan_ends_with_the_last_file_if_all_are_full(store: StoreBuilder) -> None:
    store.put(PER_FILE).fail("create", "ENOSPC").put().kill()

    found = scan(store)

    assert (found.end, found.records) == (LOG_FILE_SIZE, PER_FILE)
    assert found.stopped_by is Stop.END


def test_a_log_that_begins_later_is_scanned_from_its_first_file(
    store: StoreBuilder,
) -> None:
    store.put(2 * PER_FILE).kill().remove(log_file(0))

    found = scan(store)

    assert (found.start, found.end) == (LOG_FILE_SIZE, LOG_FILE_SIZE + FILLER_AT)
    assert store.restart().live.commit_log.min_offset == LOG_FILE_SIZE


def test_a_scan_counts_the_newest_timestamp_not_the_last(store: StoreBuilder) -> None:
    newest = store.runtime.now_ms()
    store.put().runtime.advance(-5000)
    store.put().kill()

    assert scan(store).newest_timestamp == newest


def test_a_scan_changes_nothing(store: StoreBuilder) -> None:
    store.put(3).kill().damage(log_file(), 100, b"\x33")
    before = store.disk.files()

    scan(store)

    assert store.disk.files() == before


def test_records_that_cross_the_windows_of_a_scan_are_found(
    store: StoreBuilder,
) -> None:
    store.configured(mapped_file_size_commit_log=10 * MIB, max_message_size=MIB)
    store.put(9, body_size=MIB - 100).kill()

    found = scan(store)

    assert (found.records, found.end) == (9, store.results[-1].end_offset)


@pytest.mark.parametrize("behind", [b"", b"\0" * 8])
def test_a_record_of_others_whose_end_was_lost_is_none_in_any_window(
    store: StoreBuilder, behind: bytes
) -> None:
    """A window that ends with the record does not show what lies behind it."""
    store.put(properties={"colour": "red"})
    size = store.live.commit_log.max_offset
    torn = log_of(store)[: size - 4] + bytes(4)

    found = records_in(torn + behind, 0, LOG_FILE_SIZE, 0, False, NONE_OURS)

    assert found.records == ()
    if behind:
        assert found.stopped_by
    else:
        assert found.wanted == size + 4


def test_a_record_larger_than_a_window_is_found(store: StoreBuilder) -> None:
    store.configured(mapped_file_size_commit_log=12 * MIB, max_message_size=6 * MIB)
    store.put().put(body_size=5 * MIB).put().kill()

    store.configured(max_message_size=1024)

    found = scan(store)
    assert (found.records, found.end) == (3, store.results[-1].end_offset)


def test_recovery_erases_what_lies_behind_the_end(store: StoreBuilder) -> None:
    store.put(PER_FILE + 3).kill().damage(log_file(), 500, b"\x33")

    with recording() as hits:
        store.restart()

    assert log_of(store)[500:] == bytes(LOG_FILE_SIZE - 500)
    assert hits["mapped_file_queue.truncate.remove"] == 1


def test_a_recovered_log_is_flushed_to_its_end(store: StoreBuilder) -> None:
    store.put(PER_FILE + 3).kill()

    store.restart()

    log = store.live.commit_log
    assert log.flushed_where == log.max_offset == LOG_FILE_SIZE + 300
    store.lose_power()
    assert store.restart().reput().served() == list(range(PER_FILE + 3))


def test_a_put_goes_on_where_recovery_left_the_log(store: StoreBuilder) -> None:
    store.put(3).kill().damage(log_file(), 200, b"\x33")

    store.restart().put().reput()

    assert store.results[-1].phy_offset == 200
    assert store.served() == [0, 1, 3]
    data = store.live.commit_log.get_message(200, 100)
    assert data is not None
    assert decode_record(data).queue_offset == 2
