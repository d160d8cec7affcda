from __future__ import annotations

import struct

import pytest
from damaged_store import (
    FILES,
    Q0,
    STORE,
    broken,
    first,
    i64,
    in_record,
    in_unit,
    judged,
)
from written_store import (
    FIRST_MS,
    TAGS_CODES,
    WrittenStore,
    log_path,
    patched,
    queue_path,
    unit_bytes,
    without,
)

from crashmq.models.files.store_image import read_store
from crashmq.models.laws import consume_queue, offsets


@pytest.mark.parametrize(
    ("at", "data"),
    [
        (0, i64(7)),
        (0, i64(-1)),
        (0, i64(STORE.records[5][0])),
        (8, struct.pack(">i", 5)),
        (12, i64(5)),
    ],
)
def test_cq_1_names_a_unit_that_points_wrong(at: int, data: bytes) -> None:
    violation = first("CQ-1", in_unit(14, data, at))

    assert violation.where == f"{queue_path(base=200)} byte 80 (queue_offset 14)"
    assert f"phy_offset {STORE.records[28][0]}" in violation.expected


def test_cq_1_names_both_of_two_units_that_changed_places() -> None:
    data = FILES[Q0]
    swapped = {**FILES, Q0: data[:60] + data[80:100] + data[60:80] + data[100:]}

    violations = consume_queue.units_point_at_their_records.violations(judged(swapped))

    assert [v.where for v in violations] == [
        f"{Q0} byte 60 (queue_offset 3)",
        f"{Q0} byte 80 (queue_offset 4)",
    ]


def test_cq_1_names_a_phantom_behind_the_last_unit() -> None:
    store = WrittenStore().fill(4)
    phantom = unit_bytes(*store.records[0])

    violation = first("CQ-1", patched(store.files(), Q0, 40, phantom))

    assert violation.where == f"{Q0} byte 40 (queue_offset 2)"
    assert violation.expected == "no unit: the log has no record for it"


def test_cq_1_asks_for_delivery_times_and_leaves_ext_addresses_to_cq_6() -> None:
    store = WrittenStore()
    store.put("SCHEDULE_TOPIC_XXXX", 3, properties=b"DELAY\x013\x02").put()
    size = store.records[0][1]
    timed = unit_bytes(0, size, FIRST_MS + 10_000)
    ext = unit_bytes(*store.records[1], -(2**63) + 24)
    files = patched(store.files(), queue_path("SCHEDULE_TOPIC_XXXX", 3), 0, timed)
    files = patched(files, Q0, 0, ext)
    extension = {"consumequeue_ext/T0/0/00000000000000000000": bytes(64)}

    assert broken({**files, **extension}) == {"CQ-6"}
    assert broken(files) == {"CQ-1"}  # nothing that an address could lead to


def test_cq_2_names_a_hole_before_written_units() -> None:
    violation = first("CQ-2", in_unit(14, bytes(20)))

    assert violation.where == f"{queue_path(base=200)} byte 80 (queue_offset 14)"
    assert violation.seen == "no unit, yet 15 follow from queue_offset 15"


@pytest.mark.parametrize("size", [0, -5])
def test_cq_2_names_a_unit_whose_size_is_no_size(size: int) -> None:
    violation = first("CQ-2", in_unit(29, struct.pack(">i", size), 8))

    assert violation.where == f"{queue_path(base=400)} byte 180 (queue_offset 29)"


def test_cq_3_names_a_unit_past_the_log() -> None:
    amid = first("CQ-3", in_unit(14, i64(1 << 40)), stale_allowed=True)
    last = first("CQ-3", in_unit(29, i64(1 << 40)), stale_allowed=True)

    assert amid.where == f"{queue_path(base=200)} byte 80 (queue_offset 14)"
    assert last.where == f"{queue_path(base=400)} byte 180 (queue_offset 29)"


def test_cq_3_excuses_left_over_units_of_no_record() -> None:
    store = WrittenStore().fill(4)
    stale = patched(store.files(), Q0, 40, unit_bytes(len(store.log) + 99, 150))

    assert "CQ-3" in broken(stale)
    assert broken(stale, stale_allowed=True) == set()


def test_cq_3_says_nothing_of_units_whose_records_are_whole_behind_a_break() -> None:
    files = in_record(30, 90, b"\0")

    violations = consume_queue.no_unit_past_the_log.violations(judged(files))

    assert [v.where for v in violations] == [
        f"{queue_path(base=200)} byte 100 (queue_offset 15)"
    ]


def test_cq_4_names_each_run_of_records_without_units() -> None:
    behind = without(FILES, queue_path(base=400))
    nowhere = without(FILES, Q0, queue_path(base=200), queue_path(base=400))

    assert first("CQ-4", behind).where == (
        f"{queue_path(base=400)} byte 0 (queue_offset 20)"
    )
    assert first("CQ-4", behind).expected.startswith("10 units from the record")
    assert first("CQ-4", nowhere).where == f"{Q0} byte 0 (queue_offset 0)"


def test_cq_4_asks_only_below_the_place_dispatch_has_reached() -> None:
    files = without(FILES, queue_path(base=400))
    reached = STORE.records[40][0]

    assert "CQ-4" not in broken(files, reput_from_offset=reached)
    assert "CQ-4" in broken(files, reput_from_offset=reached + 1)
    assert "CQ-4" not in broken(files, reput_from_offset=None)


def test_cq_4_asks_for_no_unit_of_a_prepared_message() -> None:
    store = WrittenStore().put().put()
    prepared = struct.pack(">i", 4)
    files = patched(store.files(), log_path(0), store.records[1][0] + 36, prepared)

    assert broken(patched(files, Q0, 20, bytes(20))) == set()


def test_cq_5_names_files_that_do_not_fit_together() -> None:
    cut = {**FILES, Q0: FILES[Q0][:67]}
    odd = {**FILES, "consumequeue/T0/0/tmp": b""}
    gap = without(FILES, queue_path(base=200))

    assert first("CQ-5", cut).where == f"{Q0} byte 67 (length 67)"
    assert first("CQ-5", odd).where == "consumequeue/T0/0/tmp"
    assert first("CQ-5", gap).where == f"{queue_path(base=200)} byte 0"
    assert "CQ-5" in broken(cut, clean=False)


def test_off_1_names_an_offset_given_twice_and_one_left_out() -> None:
    twice = in_record(30, 20, i64(14))
    skipped = in_record(30, 20, i64(16))

    assert first("OFF-1", twice).seen == "queue_offset 14 of T0/0"
    assert first("OFF-1", skipped, clean=False).expected.startswith("15, one more")


LISTED = b"INNER_MULTI_DISPATCH\x01%LMQ%x\x02INNER_MULTI_QUEUE_OFFSET\x01{}\x02"


@pytest.mark.parametrize(
    ("place", "unit_there", "laws"),
    [
        (b"0", True, set()),
        (b"1", True, {"CQ-1", "CQ-4"}),
        (b"0", False, {"CQ-4"}),
    ],
)
def test_a_light_queue_lists_the_records_that_name_their_place_in_it(
    place: bytes, unit_there: bool, laws: set[str]
) -> None:
    store = WrittenStore().put(properties=LISTED.replace(b"{}", place))
    files = store.files()
    if unit_there:
        unit = unit_bytes(*store.records[0]).ljust(200, b"\0")
        files[queue_path("%LMQ%x")] = unit

    assert broken(files) == laws


def test_a_unit_of_a_light_queue_needs_a_record_that_names_it() -> None:
    store = WrittenStore().put()
    unit = unit_bytes(*store.records[0]).ljust(200, b"\0")

    assert broken({**store.files(), queue_path("%LMQ%x"): unit}) == {"CQ-1"}


def test_the_hand_written_hashes_are_those_of_the_reader() -> None:
    image = read_store(FILES)

    codes = {
        r.properties.get("TAGS", ""): r.tags_code for r in image.commit_log.records
    }

    assert codes == TAGS_CODES


def test_offsets_of_each_queue_count_on_their_own() -> None:
    store = WrittenStore().put("T0", 0).put("T1", 0).put("T0", 1).put("T0", 0)

    assert offsets.queue_offsets_rise_by_one.violations(judged(store.files())) == []
