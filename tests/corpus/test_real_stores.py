"""Every directory of the corpus: as our decoder reads it, and ``fsck``."""

from __future__ import annotations

import struct
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from corpus_store import (
    ARCHIVES,
    ARCHIVES_SIZE_MAX,
    COMMITTED,
    EVERY,
    TESTED,
    Real,
    feature_of,
    real_store,
)
from expected_today import (
    DEFAULTS,
    ENGINE,
    FSCK,
    FSCK_AFTER,
    ROUND_TRIP,
    UNREAD,
    marked,
)

from crashmq.harness.fsck.fsck import fsck
from crashmq.models.files.record import Record, parse_record

_UNIT = struct.Struct(">qiq")
HEALTHY = [name for name in TESTED if not feature_of(name).is_damaged]
JUDGED = [name for name in HEALTHY if not feature_of(name).is_log_elsewhere]


def test_the_archives_are_those_that_the_features_commit() -> None:
    found = {path.name.removesuffix(".tar.xz") for path in ARCHIVES.iterdir()}

    assert found == set(COMMITTED)
    assert len(COMMITTED) == len(found)


def test_the_archives_are_small() -> None:
    sizes = [path.stat().st_size for path in ARCHIVES.iterdir()]

    assert sum(sizes) <= ARCHIVES_SIZE_MAX


@pytest.mark.slow
@pytest.mark.parametrize("name", TESTED)
def test_rocketmq_served_what_it_had_acknowledged(name: str, tmp_path: Path) -> None:
    """But for what its feature takes away: expired, deleted or never committed."""
    real = real_store(name, tmp_path)

    assert (real.manifest["outcome"], real.manifest["why"]) == ("served", None)
    served = {message["phy_offset"] for _, _, message in real.served}
    acknowledged = {row["phy_offset"] for row in real.manifest["acknowledged"]}
    if real.feature.loses:
        assert len(acknowledged - served) > 0 or "storm" in name
    else:
        assert acknowledged <= served


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(HEALTHY, UNREAD))
def test_our_decoder_reads_every_message_that_rocketmq_serves(
    name: str, tmp_path: Path
) -> None:
    real = real_store(name, tmp_path)
    files = real.log_files()

    for _, _, message in real.of_the_log:
        record = _record_at(files, message["phy_offset"])
        place = (record.topic, record.queue_id, record.queue_offset)
        assert place == (
            message["record_topic"],
            message["record_queue_id"],
            message["record_queue_offset"],
        )
        told = (record.size, record.body_crc, len(record.body), record.sys_flag)
        names = ("size", "body_crc", "body_size", "sys_flag")
        assert told == tuple(message[name] for name in names)
        assert record.properties.get("KEYS") == message["keys"]
        assert record.properties.get("TAGS") == message["tags"]
        assert record.store_timestamp == message["store_timestamp"]


def _record_at(files: dict[int, bytes], phy_offset: int) -> Record:
    base = max(base for base in files if base <= phy_offset)
    data = files[base]
    return parse_record(data, phy_offset - base, len(data), None, takes_nul=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", TESTED)
def test_units_of_the_queue_files_agree_with_what_is_served(
    name: str, tmp_path: Path
) -> None:
    real = real_store(name, tmp_path)
    seen = 0

    for topic, queue_id, message in real.of_the_log:
        unit = _unit_of(real, topic, queue_id, message["queue_offset"])
        if unit is None or unit[1] == 0:
            continue  # dispatch had not reached it, or its queue has another form
        assert unit[:2] == (message["phy_offset"], message["size"])
        seen += 1

    assert seen > 0 or not real.feature.has_units


def _unit_of(
    real: Real, topic: str, queue_id: int, queue_offset: int
) -> tuple[int, int, int] | None:
    size = int(real.settings.store["mappedFileSizeConsumeQueue"])
    at = 20 * queue_offset
    folder = real.root / "consumequeue" / topic / str(queue_id)
    path = folder / f"{at // size * size:020d}"
    data = path.read_bytes() if path.is_file() else b""
    if len(data) < at % size + _UNIT.size:
        return None  # a kill came between its creation and its growth
    unit: tuple[int, int, int] = _UNIT.unpack_from(data, at % size)
    return unit


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(JUDGED, FSCK))
def test_fsck_finds_no_violation_in_a_healthy_store(name: str, tmp_path: Path) -> None:
    real = real_store(name, tmp_path)

    assert fsck(real.root).violations == ()


def test_every_pattern_of_the_tables_has_a_store() -> None:
    tables = (UNREAD, FSCK, ENGINE, DEFAULTS, FSCK_AFTER, ROUND_TRIP)

    assert [
        pattern
        for table in tables
        for pattern in table
        if not any(fnmatchcase(name, pattern) for name in EVERY)
    ] == []
