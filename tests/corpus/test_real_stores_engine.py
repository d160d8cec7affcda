"""Our engine on every directory of the corpus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from corpus_features import ODD_BATCHES, SMALL, odd_batch
from corpus_store import TESTED, Real, feature_of, real_store
from corpus_work import place_of
from expected_today import (
    DEFAULTS,
    ENGINE,
    FSCK_AFTER,
    marked,
    right_today,
)
from our_answers import LATER_MS, answer_of, newest_ms
from our_stores import config_of, put_mixed, started
from rocketmq import Settings

from crashmq.engine.store.errors import StoreForeign
from crashmq.engine.store.message.message import Message
from crashmq.harness.fsck.fsck import fsck
from crashmq.models.files.index import keys_of
from crashmq.models.files.record import Record
from crashmq.models.files.store_image import read_store

SERVED = [name for name in TESTED if feature_of(name).takes == "serves"]


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(TESTED, ENGINE))
def test_a_start_serves_what_rocketmq_serves_or_refuses_what_it_does_not_know(
    name: str, tmp_path: Path
) -> None:
    real = real_store(name, tmp_path)

    answer = answer_of(real, config_of(real.settings))

    takes = real.feature.takes
    allowed = ("serves", "refuses") if takes == "either" else (takes,)
    assert answer.outcome in allowed, answer.why
    if answer.outcome == "refuses":
        assert real.feature.refused_as
        assert real.feature.refused_as in answer.why


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(SERVED, DEFAULTS))
def test_a_start_that_is_told_sizes_alone_takes_nothing_away(
    name: str, tmp_path: Path
) -> None:
    """Whoever forgets a setting of RocketMQ may be refused, and never loses by it."""
    real = real_store(name, tmp_path)

    answer = answer_of(real, config_of(sizes_alone(real)))

    assert answer.outcome != "loses", answer.why


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(right_today(SERVED, ENGINE), FSCK_AFTER))
def test_fsck_finds_no_violation_once_our_engine_has_stopped(
    name: str, tmp_path: Path
) -> None:
    real = real_store(name, tmp_path)
    store = started(real.root, config_of(real.settings), newest_ms(real) + LATER_MS)
    put_mixed(store, 1_000, 10, 100)

    assert store.shutdown()

    assert fsck(real.root).violations == ()


def test_entries_of_tags_that_our_engine_goes_on_with_are_judged(
    tmp_path: Path,
) -> None:
    real = real_store("5.5.1-one-killed", tmp_path, committed=True)
    store = started(real.root, config_of(real.settings), newest_ms(real) + LATER_MS)
    put_mixed(store, 1_000, 4, 100)
    assert store.shutdown()
    (path,) = (real.root / "index").iterdir()
    whole = path.read_bytes()
    first = 40 + 4 * int(real.settings.store["maxHashSlotNum"])
    entries = int.from_bytes(whole[36:40], "big") - 1

    fired = []
    for number in range(1, entries + 1):
        data = bytearray(whole)
        data[first + 20 * number + 3] ^= 1
        path.write_bytes(data)
        fired.append({found.law for found in fsck(real.root).violations})

    records = records_of(real.root)
    assert entries > sum(len(keys_of(one.properties_raw)) for one in records)
    assert all("IX-4" in laws for laws in fired)


def sizes_alone(real: Real) -> Settings:
    store = real.settings.store
    return Settings({size: store[size] for size in SMALL})


@pytest.mark.parametrize("name", ["5.3.0-plain", "4.9.8-plain-killed"])
def test_queue_files_smaller_than_configured_keep_their_length(
    name: str, tmp_path: Path
) -> None:
    real = real_store(name, tmp_path)
    config = config_of(real.settings)

    answer = answer_of(real, replace(config, mapped_file_size_consume_queue=12_000))

    assert answer.outcome != "loses", answer.why


@pytest.mark.parametrize("name", ["5.3.0-crc", "5.5.1-crc"])
def test_a_store_whose_records_have_a_crc_gets_none_without(
    name: str, tmp_path: Path
) -> None:
    """RocketMQ of that store, which forces it, cuts the log at the first without."""
    real = real_store(name, tmp_path)
    try:
        store = started(real.root, config_of(sizes_alone(real)), newest_ms(real))
    except StoreForeign:
        return
    put_mixed(store, 0, 3, 100)
    assert store.shutdown()

    records = records_of(real.root)

    assert len(records) == 103
    assert [record.phy_offset for record in records if not has_crc(record)] == []


def has_crc(record: Record) -> bool:
    return b"__CRC32#\x01" in record.properties_raw


def records_of(root: Path) -> tuple[Record, ...]:
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    return read_store(files, by_rocketmq=True).commit_log.records


@pytest.mark.parametrize("name", ["4.9.8-odd-batch", "5.3.0-odd-batch"])
def test_our_engine_copies_properties_of_inner_messages_as_rocketmq_does(
    name: str, tmp_path: Path
) -> None:
    real = real_store(name, tmp_path)
    ours_root = tmp_path / "ours"
    ours_root.mkdir()
    store = started(ours_root, config_of(real.settings))

    for number in ODD_BATCHES:
        topic, queue_id = place_of(number)
        body = b"".join(odd_batch(number))
        assert store.put_messages(Message(topic, queue_id, body)).is_appended
    assert store.shutdown()

    ours = records_of(ours_root)
    theirs = records_of(real.root)[: len(ours)]
    assert len(ours) == 4 * len(ODD_BATCHES)
    assert [one.properties_raw for one in ours] == [
        one.properties_raw for one in theirs
    ]
