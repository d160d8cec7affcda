"""What newer and otherwise configured brokers write is no damage."""

from __future__ import annotations

import struct
from pathlib import Path
from zlib import crc32

import pytest
from fsck_archive import INDEX_SLOTS, archive
from golden_store import golden

from crashmq.harness.fsck.fsck import FsckReport, fsck, report_on
from crashmq.harness.fsck.places import Places
from crashmq.models.files.index import index_hash

HOST = bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))
STORED = 1_700_000_000_000
LOG_SIZE, QUEUE_SIZE = 16_384, 400
DAY_MS = 86_400_000


def judged(files: dict[str, bytes]) -> FsckReport:
    folders = {path.split("/")[1] for path in files if path.startswith("consumequeue/")}
    return report_on("store", files, sorted(folders))


def record(
    place: tuple[str, int, int], phy_offset: int, properties: bytes, body: bytes = b"b"
) -> bytes:
    """A record of RocketMQ at (topic, queue_id, queue_offset)."""
    topic, queue_id, queue_offset = place
    name = topic.encode()
    tail = bytes([len(name)]) + name + struct.pack(">h", len(properties)) + properties
    size = 88 + len(body) + len(tail)
    head = struct.pack(
        ">iIIiiqqiq8sq8siqi",
        *(size, 0xDAA320A7, crc32(body) & 0x7FFFFFFF, queue_id, 0, queue_offset),
        *(phy_offset, 0, STORED, HOST, STORED + queue_offset, HOST, 0, 0, len(body)),
    )
    return head + body + tail


def store_of(
    records: list[tuple[tuple[str, int, int], bytes]], codes: list[int]
) -> dict[str, bytes]:
    """A store shut down in order, of these records and their units' tags codes."""
    log, units = b"", dict[str, bytes]()
    for (place, properties), code in zip(records, codes, strict=True):
        raw = record(place, len(log), properties)
        folder = f"consumequeue/{place[0]}/{place[1]}/{0:020d}"
        unit = struct.pack(">qiq", len(log), len(raw), code)
        units[folder] = units.get(folder, b"") + unit
        log += raw
    times = struct.pack(">2q", STORED + 99, STORED + 99)
    return {
        f"commitlog/{0:020d}": log.ljust(LOG_SIZE, b"\0"),
        "checkpoint": times.ljust(4096, b"\0"),
        **{path: data.ljust(QUEUE_SIZE, b"\0") for path, data in units.items()},
    }


def delayed(waits_ms: list[int]) -> dict[str, bytes]:
    level = 3
    records = [
        (("SCHEDULE_TOPIC_XXXX", level - 1, number), b"DELAY\x013\x02")
        for number in range(len(waits_ms))
    ]
    codes = [STORED + number + wait for number, wait in enumerate(waits_ms)]
    files = store_of(records, codes)
    last = STORED + len(waits_ms) - 1
    return files | {"checkpoint": struct.pack(">2q", last, last).ljust(4096, b"\0")}


def test_delay_levels_of_a_brokers_own_are_read_from_its_units() -> None:
    assert judged(delayed([3 * DAY_MS] * 4)).is_clean


def test_one_delayed_message_that_waits_as_no_other_is_damage() -> None:
    report = judged(delayed([3 * DAY_MS] * 3 + [3 * DAY_MS ^ (1 << 20)]))

    assert [(one.law, one.byte) for one in report.violations] == [("CQ-1", 60)]


@pytest.mark.parametrize(
    ("levels", "is_clean"), [("1s 5s 3d", True), ("1s 5s 2d", False)]
)
def test_the_configuration_says_which_delay_levels_there_are(
    levels: str, is_clean: bool, tmp_path: Path
) -> None:
    for path, data in delayed([3 * DAY_MS] * 4).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    units = {"s": 1000, "d": DAY_MS}
    waits = tuple(int(word[:-1]) * units[word[-1]] for word in levels.split())

    report = fsck(tmp_path, places=Places(tmp_path, delay_ms=waits))

    assert report.is_clean == is_clean


@pytest.mark.parametrize("name", ["%LMQ%a.b:c", "%LMQ%home/../x", "%LMQ%тема"])
def test_a_light_queue_may_have_any_name_that_is_no_path(name: str) -> None:
    properties = (
        f"INNER_MULTI_DISPATCH\x01{name}\x02INNER_MULTI_QUEUE_OFFSET\x010\x02".encode()
    )
    files = store_of([(("T", 0, 0), properties)], [0])
    raw = record(("T", 0, 0), 0, properties)
    files["checkpoint"] = struct.pack(">2q", STORED, STORED).ljust(4096, b"\0")
    if "/" not in name:
        unit = struct.pack(">qiq", 0, len(raw), 0)
        files[f"consumequeue/{name}/0/{0:020d}"] = unit.ljust(QUEUE_SIZE, b"\0")

    assert judged(files).is_clean


@pytest.mark.parametrize("topic", ["a.b", "two words", "тема", "x" * 127])
def test_a_topic_may_have_an_odd_name(topic: str) -> None:
    files = store_of([((topic, 0, 0), b"K\x01v\x02")], [0])
    files["checkpoint"] = struct.pack(">2q", STORED, STORED).ljust(4096, b"\0")

    assert judged(files).is_clean


@pytest.mark.parametrize(
    ("value", "is_clean"),
    [("a time", True), ("an offset", True), (-1, True), (1 << 60, False)],
)
def test_the_checkpoint_may_have_a_sixth_field(
    value: int | str, is_clean: bool
) -> None:
    store = archive("clean")
    known = {"a time": store.rows[-1]["store_timestamp"], "an offset": 449_000}
    field = known.get(value, value) if isinstance(value, str) else value
    raw = bytearray(store.files["checkpoint"])
    raw[40:48] = struct.pack(">q", field)

    report = judged({**store.files, "checkpoint": bytes(raw)})

    assert report.is_clean == is_clean


def with_entry(key: str) -> dict[str, bytes]:
    """The store with one entry more in its index, of the record listed last there."""
    store = archive("rolled-clean")
    path = store.index[-1]
    data = bytearray(store.files[path])
    count, used = (
        struct.unpack_from(">i", data, 36)[0],
        struct.unpack_from(">i", data, 32),
    )
    last = store.entry(count - 1)
    phy_offset, seconds = struct.unpack_from(">qi", data, last + 4)
    code = index_hash(key)
    slot = 40 + 4 * (code % INDEX_SLOTS)
    previous = struct.unpack_from(">i", data, slot)[0]
    struct.pack_into(
        ">iqii", data, store.entry(count), code, phy_offset, seconds, previous
    )
    struct.pack_into(">i", data, slot, count)
    struct.pack_into(">ii", data, 32, used[0] + (not previous), count + 1)
    return {**store.files, path: bytes(data)}


def test_tags_may_stand_in_the_index() -> None:
    store = archive("rolled-clean")
    data = store.files[store.index[-1]]
    count = struct.unpack_from(">i", data, 36)[0]
    (phy_offset,) = struct.unpack_from(">q", data, store.entry(count - 1) + 4)
    row = next(r for r in store.rows if r["phy_offset"] == phy_offset)
    tags = row["tags"] or "none"

    right = judged(with_entry(f"{row['topic']}#T#{tags}"))
    wrong = judged(with_entry(f"{row['topic']}#T#another"))

    assert right.is_clean == bool(row["tags"])
    assert {one.law for one in wrong.violations} == {"IX-4"}


def with_mark(durable: int, first: int = 0) -> dict[str, bytes]:
    """A store of RocketMQ with a mark of crashmq that ends, or begins, before it."""
    files = dict(golden("rolled-clean").files)
    raw = struct.pack(
        ">IIqqqiiqI", 0x43524D51, 2, 3, first, durable, 16_384, 400, durable, 0
    )
    raw += crc32(raw).to_bytes(4, "big")
    point = bytearray(files["checkpoint"])
    point[512 : 512 + len(raw)] = raw
    return files | {"checkpoint": bytes(point)}


def test_what_rocketmq_wrote_behind_our_mark_is_no_damage() -> None:
    report = judged(with_mark(archive("rolled-clean").rows[9]["phy_offset"]))

    assert report.is_clean
    assert any("written on" in note for note in report.notes)
    assert not report.counts.is_ours


def test_without_rocketmqs_lock_a_mark_that_lags_is_damage() -> None:
    files = with_mark(archive("rolled-clean").rows[9]["phy_offset"])

    report = judged({path: data for path, data in files.items() if path != "lock"})

    assert "CP-6" in {one.law for one in report.violations}


def test_a_topic_without_a_folder_is_not_given_up_after_a_crash() -> None:
    files = store_of(
        [(("A", 0, 0), b"K\x01v\x02"), (("B", 0, 0), b"K\x01w\x02")], [0, 0]
    )
    del files[f"consumequeue/B/0/{0:020d}"], files["checkpoint"]

    report = judged({**files, "abort": b"", "checkpoint": bytes(4096)})

    assert report.is_clean
    assert (report.counts.whole, report.counts.lost_by_rocketmq) == (2, 0)
