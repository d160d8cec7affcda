"""A log whose first files were deleted, and queues whose first units point there."""

from __future__ import annotations

import struct

import pytest
from written_store import (
    LOG_FILE_SIZE,
    WrittenStore,
    log_path,
    patched,
    slot_bytes,
    unit_bytes,
    without,
)

from crashmq.models.files.store_image import StoreImage, Unit, read_store
from crashmq.models.knowledge.reference import ReferenceModel
from crashmq.models.laws.deletion import (
    a_full_disk_takes_no_put,
    empty_queues_keep_their_end,
    expired_queue_files_go,
    expired_side_files_go,
    log_begins_where_it_was_left,
    no_put_fills_the_disk,
    only_what_has_expired_goes,
    what_has_expired_goes,
)
from crashmq.models.laws.file_laws import FILE_LAWS
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.reading import pull_is_answered_right
from crashmq.models.laws.registry import LawViolated
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import (
    Positions,
    Pulled,
    PullStatus,
    Put,
)

KEY = ("T0", 0)


def expired_store() -> StoreImage:
    """Three log files of which the first is gone; the queues are whole."""
    files = without(WrittenStore().fill(50).files(), log_path(0))
    checkpoint = bytearray(files["checkpoint"])
    end = read_store(files).commit_log.max_phy_offset
    slot = slot_bytes(8, LOG_FILE_SIZE, end)
    checkpoint[1024 : 1024 + len(slot)] = slot
    return read_store({**files, "checkpoint": bytes(checkpoint)})


def model_of(count: int, size: int = 100) -> ReferenceModel:
    """A model of ``count`` messages of one queue, all dispatched."""
    model = ReferenceModel("ASYNC_FLUSH")
    for number in range(count):
        message = MessageToPut(*KEY, b"body", "", "", f"{number:012X}", True)
        model.put(message, Put("PUT_OK", number * size, size, number))
    model.saw_positions(Positions(0, count * size, 0, count * size))
    return model


def pulled(low: int, high: int, status: PullStatus, next_begin: int) -> Pulled:
    return Pulled(status, next_begin, low, high)


def test_a_store_without_its_first_file_keeps_every_law_of_the_files() -> None:
    image = expired_store()
    judged = Judged(image, image.commit_log.max_phy_offset)

    breaches = [str(breach) for law in FILE_LAWS for breach in law.violations(judged)]

    assert image.commit_log.min_phy_offset == LOG_FILE_SIZE
    assert breaches == []


def test_a_queue_begins_at_its_first_message_that_has_not_expired() -> None:
    model = model_of(10)

    model.saw_positions(Positions(400, 1000, 0, 1000))

    queue = model.visible(KEY)
    assert (queue.min_offset, queue.max_offset) == (4, 10)
    assert [m.queue_offset for m in queue.messages] == [4, 5, 6, 7, 8, 9]


def test_a_queue_of_which_all_has_expired_is_empty_at_its_end() -> None:
    model = model_of(10)

    model.saw_positions(Positions(1200, 1200, 0, 1200))

    queue = model.visible(KEY)
    assert (queue.min_offset, queue.max_offset, queue.messages) == (10, 10, [])
    assert model.next_queue_offset(KEY) == 10
    assert model.ends_of_empty_queues() == {KEY: 10}


def test_messages_of_a_file_that_came_back_are_there_again() -> None:
    model = model_of(10)
    model.saw_positions(Positions(400, 1000, 0, 1000))

    model.adopt((), {KEY: 2}, log_min=200)

    assert [m.queue_offset for m in model.queues[KEY]] == [0, 1]
    assert model.log_min == 200


def test_a_queue_whose_files_were_taken_begins_anew() -> None:
    model = model_of(10)

    model.adopt((), {KEY: 3}, log_min=1000)
    model.forget_lost_numbers()

    assert model.next_queue_offset(KEY) == 3
    model.adopt((), {KEY: 3}, log_min=1000)
    assert model.next_queue_offset(KEY) == 3


@pytest.mark.parametrize(
    ("queue_offset", "answer"),
    [
        (3, pulled(4, 10, "OFFSET_TOO_SMALL", 4)),
        (10, pulled(4, 10, "OFFSET_OVERFLOW_ONE", 10)),
        (11, pulled(4, 10, "OFFSET_OVERFLOW_BADLY", 10)),
    ],
)
def test_a_pull_outside_of_what_is_left_is_told_the_bounds(
    queue_offset: int, answer: Pulled
) -> None:
    model = model_of(10)
    model.saw_positions(Positions(400, 1000, 0, 1000))

    pull_is_answered_right.hold({}, answer, queue_offset, 32, model.visible(KEY), 10)


def test_a_minimum_that_was_not_moved_is_a_breach() -> None:
    model = model_of(10)
    model.saw_positions(Positions(400, 1000, 0, 1000))
    answer = pulled(0, 10, "OFFSET_OVERFLOW_ONE", 10)

    with pytest.raises(LawViolated, match="bounds 0 and 10"):
        pull_is_answered_right.hold({}, answer, 10, 32, model.visible(KEY), 10)


@pytest.mark.parametrize("found", [0, 300])
def test_a_log_that_begins_elsewhere_is_a_breach(found: int) -> None:
    with pytest.raises(LawViolated, match="DEL-1"):
        log_begins_where_it_was_left.hold({}, found, 100, 200)


def test_a_queue_that_counts_anew_is_a_breach() -> None:
    with pytest.raises(LawViolated, match="it ends at queue_offset 0"):
        empty_queues_keep_their_end.hold({}, {}, {KEY: 10})


def test_files_that_no_cleaner_took_are_a_breach() -> None:
    now = Positions(4096, 8192, 8192, 8192)

    with pytest.raises(LawViolated, match="no cleaner has run"):
        only_what_has_expired_goes.hold(
            {}, now, [], 100, is_cleaning=False, is_due=True
        )


def test_young_messages_that_went_are_a_breach_unless_by_force() -> None:
    now = Positions(4096, 8192, 8192, 8192)

    law, due = only_what_has_expired_goes, {"is_cleaning": True, "is_due": True}
    law.hold({}, now, [100, 101], None, **due)
    with pytest.raises(LawViolated, match="one stored at 101"):
        law.hold({}, now, [100, 101], 100, **due)


def test_a_deletion_that_was_not_due_is_a_breach() -> None:
    now = Positions(4096, 8192, 8192, 8192)

    with pytest.raises(LawViolated, match="no request"):
        only_what_has_expired_goes.hold(
            {}, now, [100], None, is_cleaning=True, is_due=False
        )


def test_an_old_file_that_is_still_there_is_a_breach() -> None:
    log = expired_store().commit_log
    end = log.max_phy_offset
    old_ms = log.files[1].records[0].store_timestamp

    what_has_expired_goes.hold({}, log, Positions(0, end, end, end), 0, old_ms - 1)
    what_has_expired_goes.hold({}, log, Positions(0, end, end, 0), 0, old_ms)
    with pytest.raises(LawViolated, match="it is still there"):
        what_has_expired_goes.hold({}, log, Positions(0, end, end, end), 0, old_ms)


def test_a_queue_file_that_points_before_the_log_is_a_breach() -> None:
    files = WrittenStore().fill(90).files()
    image = read_store(without(files, log_path(0), log_path(LOG_FILE_SIZE)))

    with pytest.raises(LawViolated, match="its last unit points at"):
        expired_queue_files_go.hold({}, image)


def test_a_file_beside_a_queue_whose_units_have_all_expired_is_a_breach() -> None:
    files = {path: bytes(data) for path, data in expired_store().files.items()}
    path = "consumequeue/T0/0/00000000000000000000"
    phy_offset, size = struct.unpack(">qi", files[path][180:192])
    assert phy_offset == LOG_FILE_SIZE
    led = patched(files, path, 180, unit_bytes(phy_offset, size, 100 - 2**63))
    beside = {f"consumequeue_ext/T0/0/{base:020d}": bytes(100) for base in (0, 100)}

    with pytest.raises(LawViolated, match="no file of units before 100"):
        expired_side_files_go.hold({}, read_store({**led, **beside}), 0)
    del beside[f"consumequeue_ext/T0/0/{0:020d}"]
    expired_side_files_go.hold({}, read_store({**led, **beside}), 0)


def test_an_index_file_whose_records_have_all_expired_is_a_breach() -> None:
    def index(end: int) -> bytes:
        return struct.pack(">qqqqii", 1, 1, 0, end, 1, 2) + bytes(4 + 20 * 2)

    names = [f"index/{number:017d}" for number in (1, 2)]
    last, gone = index(LOG_FILE_SIZE), index(LOG_FILE_SIZE - 1)
    files = dict(expired_store().files)
    alive = read_store({**files, names[0]: last, names[1]: last})
    stale = read_store({**files, names[0]: gone, names[1]: gone})

    expired_side_files_go.hold({}, alive, 1)
    with pytest.raises(LawViolated, match=names[0]):
        expired_side_files_go.hold({}, stale, 1)


def test_a_put_must_make_no_file_that_fills_the_disk() -> None:
    in_the_file, new = Put("PUT_OK", 4000, 50, 0), Put("PUT_OK", 4096, 50, 0)

    def breaches(answer: Put, used: int) -> int:
        found = no_put_fills_the_disk.violations(answer, 4000, 4096, used, 10_000)
        return len(found)

    assert (breaches(new, 9001), breaches(new, 9000)) == (1, 0)
    assert (breaches(in_the_file, 9999), breaches(Put("UNKNOWN_ERROR"), 9999)) == (0, 0)


def test_a_put_taken_on_a_full_disk_is_a_breach() -> None:
    a_full_disk_takes_no_put.hold({}, Put("SERVICE_NOT_AVAILABLE"))
    with pytest.raises(LawViolated, match="it was taken"):
        a_full_disk_takes_no_put.hold({}, Put("PUT_OK", 0, 100, 0))


def bytes_of(image: StoreImage) -> dict[str, bytes]:
    return {path: bytes(data) for path, data in image.files.items()}


def alive(image: StoreImage) -> list[tuple[Unit, ...]]:
    return [units for _, units in image.live_units]


@pytest.mark.parametrize("numbers", [(1,), (0, 8), (2, 3, 7)])
def test_units_of_expired_records_that_rotted_end_no_queue(
    numbers: tuple[int, ...],
) -> None:
    store = expired_store()
    files = bytes_of(store)
    path, rot = "consumequeue/T0/0/00000000000000000000", unit_bytes(-117, -5, 0)

    for number in numbers:
        files = patched(files, path, number * 20, rot)
    rotten = read_store(files, store)

    assert rotten.consume_queues[0].stray_units == ()
    assert alive(rotten) == alive(store) == alive(read_store(store.files, rotten))


@pytest.mark.parametrize("rot", [None, unit_bytes(-117, 5, 0), unit_bytes(1 << 40, 5)])
def test_a_queue_without_a_record_in_the_log_has_no_live_unit(
    rot: bytes | None,
) -> None:
    store = WrittenStore().put("T1").put("T1").put("T1").put("T1").fill(50)
    files = without(store.files(), log_path(0))
    if rot is not None:
        files = patched(files, "consumequeue/T1/0/00000000000000000000", 20, rot)

    of_t1 = alive(read_store(files))[-1]

    assert of_t1 == ()


def test_a_unit_that_rotted_of_a_record_that_is_there_makes_a_hole() -> None:
    path = "consumequeue/T0/0/00000000000000000000"
    files = patched(bytes_of(expired_store()), path, 9 * 20, unit_bytes(-117, -5, 0))

    rotten = read_store(files).consume_queues[0]

    assert (rotten.end, rotten.stray_units[0].queue_offset) == (9, 9)
