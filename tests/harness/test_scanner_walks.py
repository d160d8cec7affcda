"""Records of odd numbers, sizes and tails: both walks, and what is left out of them."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import numpy as np
import pytest
from fsck_archive import ARCHIVES, archive
from golden_store import golden
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crashmq.harness.fsck import numpy_walk, scanner
from crashmq.harness.fsck.columns import PLAIN, Records, Walk, Window
from crashmq.harness.fsck.fsck import fsck
from crashmq.harness.fsck.scanner import Split, compiled_walk, scan_split
from crashmq.harness.fsck.survey import Manner
from crashmq.models.files.record import BadRecord, parse_record

FILE_SIZE = 65_536
RECORDS = 120
WHOLE = Manner(small_size=1 << 60, with_index=False)
IN_SPLITS = Manner(small_size=0, split_size=10_000, with_index=False)
needs_numba = pytest.mark.skipif(
    find_spec("numba") is None, reason="numba is not installed (crashmq[fast])"
)


@cache
def first_records() -> tuple[bytes, tuple[int, ...]]:
    """The first records of a log that RocketMQ wrote, and where each begins."""
    known = archive("clean")
    path, _ = known.place(known.rows[0])
    places = [known.place(row) for row in known.rows[:RECORDS]]
    return known.files[path], tuple(at for where, at in places if where == path)


Edit = Callable[[bytearray], None]


def number_of(row: int, number: int) -> Edit:
    """Another queue_offset, which no CRC covers."""

    def edit(log: bytearray) -> None:
        at = first_records()[1][row]
        log[at + 20 : at + 28] = struct.pack(">q", number)

    return edit


def as_one_queue(first: int, numbers: tuple[int, ...]) -> Edit:
    """Records of one queue, numbered in any order, as those of no queue are."""

    def edit(log: bytearray) -> None:
        places = first_records()[1][first:]
        for at, number in zip(places, numbers, strict=False):
            log[at + 12 : at + 16] = bytes(4)
            log[at + 20 : at + 28] = struct.pack(">q", number)

    return edit


def word_of(row: int, field: int, word: bytes) -> Edit:
    def edit(log: bytearray) -> None:
        at = first_records()[1][row] + field
        log[at : at + len(word)] = word

    return edit


def torn(at: int, data: bytes) -> Edit:
    def edit(log: bytearray) -> None:
        log[at : at + len(data)] = data

    return edit


def body_of(row: int, size: int) -> Edit:
    """Another size of a body whose CRC is right for it: the tail is an odd one."""

    def edit(log: bytearray) -> None:
        at = first_records()[1][row]
        log[at + 84 : at + 88] = struct.pack(">i", size)
        crc = crc32(log[at + 88 : at + 88 + max(0, size)]) & 0x7FFFFFFF
        log[at + 8 : at + 12] = struct.pack(">i", crc)

    return edit


rows = st.integers(0, 100)
small = st.integers(0, 12)
odd = st.sampled_from([-1, 1 << 31, (1 << 63) - 1, -(1 << 63), 1 << 60])
EDITS = st.one_of(
    st.builds(number_of, rows, small | odd),
    st.builds(as_one_queue, rows, st.lists(small, max_size=40).map(tuple)),
    st.builds(
        word_of,
        rows,
        st.sampled_from([0, 4, 8, 12, 16, 36, 52, 56, 64, 68, 72, 76, 84]),
        st.binary(min_size=1, max_size=4),
    ),
    st.builds(torn, st.integers(0, FILE_SIZE - 1), st.binary(max_size=40)),
    st.builds(body_of, rows, st.integers(-1, 600)),
)


@cache
def other_log(name: str) -> bytes:
    """The first log file of a store whose records are not all plain."""
    known = archive(name)
    return known.files[known.log[0]]


def edited(edits: list[Edit], cut: int) -> bytes:
    log = bytearray(first_records()[0])
    for edit in edits:
        edit(log)
    return bytes(log[:cut])


def windows_of(file: Path, start: int) -> tuple[mmap.mmap, Window]:
    with file.open("rb") as opened:
        data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    return data, Window(data, memoryview(data), 0, len(data), start, len(data))


def said_of(walk: Walk, log: bytes, start: int) -> tuple[object, ...]:
    """What a walk says of a log from a place on, of plain records every column."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "log"
        file.write_bytes(log)
        data, window = windows_of(file, start)
        found = walk(window)
        window.view.release()
    said = columns_of(found)
    del found
    data.close()
    return said


def columns_of(found: Records) -> tuple[object, ...]:
    names = {number: raw for raw, number in found.topics.items()}
    plain = np.flatnonzero(found.kinds == PLAIN)
    columns = (
        *(found.places, found.sizes, found.numbers, found.queue_ids),
        *(found.stored, found.hosts, found.flags, found.kinds),
    )
    return (
        [column.tolist() for column in columns],
        [names[number] for number in found.topic_of[plain].tolist()],
        found.codes[plain].tolist(),
        found.stop,
    )


@pytest.mark.slow
@needs_numba
@pytest.mark.parametrize("name", ARCHIVES)
def test_the_compiled_walk_says_of_each_golden_log_what_numpy_says(name: str) -> None:
    compiled = compiled_walk()
    assert compiled is not None
    known = archive(name)
    for path in known.log:
        at = 0
        while at < len(known.files[path]):
            usual = said_of(numpy_walk.walk, known.files[path], at)

            assert said_of(compiled, known.files[path], at) == usual
            at += 16_384


@pytest.mark.slow
@needs_numba
@settings(deadline=None, max_examples=300)
@given(st.lists(EDITS, max_size=6), st.integers(1, FILE_SIZE), st.integers(0, 400))
def test_the_compiled_walk_says_of_odd_records_what_numpy_says(
    edits: list[Edit], cut: int, start: int
) -> None:
    compiled = compiled_walk()
    assert compiled is not None
    log = edited(edits, cut)
    start = min(start, len(log) - 1)

    assert said_of(compiled, log, start) == said_of(numpy_walk.walk, log, start)


@pytest.mark.slow
@needs_numba
@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from(ARCHIVES),
    st.lists(st.tuples(st.integers(0, 8000), st.binary(max_size=8)), max_size=6),
)
def test_the_compiled_walk_says_of_torn_logs_what_numpy_says(
    name: str, tears: list[tuple[int, bytes]]
) -> None:
    compiled = compiled_walk()
    assert compiled is not None
    log = bytearray(other_log(name)[:16_000])
    for at, data in tears:
        log[at : at + len(data)] = data

    assert said_of(compiled, bytes(log), 0) == said_of(numpy_walk.walk, bytes(log), 0)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden("clean").unpack(tmp_path_factory.mktemp("odd") / "store")


def files_of_queues(root: Path) -> dict[tuple[str, int], list[tuple[int, int, str]]]:
    found: dict[tuple[str, int], list[tuple[int, int, str]]] = {}
    for file in sorted((root / "consumequeue").glob("*/*/*")):
        key = file.parts[-3], int(file.parts[-2])
        size = file.stat().st_size
        found.setdefault(key, []).append((int(file.name), size, str(file)))
    return found


@pytest.mark.slow
@settings(
    deadline=None,
    max_examples=200,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(EDITS, max_size=6), st.integers(1, FILE_SIZE), st.integers(0, FILE_SIZE)
)
def test_whatever_records_say_only_whole_ones_are_left_out(
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    edits: list[Edit],
    cut: int,
    middle: int,
) -> None:
    """Numbers of no queue, cut and torn tails: no split of them ends in an error."""
    monkeypatch.setattr(scanner, "_NEAR_IN_QUEUE", 1)
    log, queues = edited(edits, cut), files_of_queues(store)
    middle = min(middle, len(log))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "log"
        file.write_bytes(log)
        for start, end in ((0, middle), (middle, len(log))):
            split = Split("commitlog/0", str(file), 0, len(log), start, end)
            for at, skip in scan_split(split, queues).skips.items():
                assert records_between(log, at, skip.end) == skip.records


def records_between(log: bytes, at: int, end: int) -> int:
    count = 0
    while at < end:
        try:
            at += parse_record(log, at, len(log), at, takes_nul=True).size
        except BadRecord:
            return -1
        count += 1
    return count if at == end else -1


@pytest.mark.slow
@settings(
    deadline=None,
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(EDITS, min_size=1, max_size=4), st.integers(200, FILE_SIZE))
def test_the_report_on_odd_records_is_that_of_all_of_them(
    store: Path, monkeypatch: pytest.MonkeyPatch, edits: list[Edit], cut: int
) -> None:
    monkeypatch.setattr(scanner, "_NEAR_IN_QUEUE", 1)
    known = archive("clean")
    path, _ = known.place(known.rows[0])
    (store / path).write_bytes(edited(edits, cut).ljust(FILE_SIZE, b"\0"))

    assert fsck(store, manner=IN_SPLITS) == fsck(store, manner=WHOLE)
    (store / path).write_bytes(known.files[path])
