"""The laws' numbers are RocketMQ's, written once, and none is the engine's."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from crashmq.engine.store.clean.clean_commit_log_service import (
    MAX_MANUAL_DELETE_FILE_TIMES,
)
from crashmq.engine.store.config import StoreConfig
from crashmq.models import limits
from crashmq.models.knowledge import locks
from crashmq.models.laws import filtering, long_polling, membership, querying, reading
from crashmq.models.program import COMMIT_THOROUGH_MS, Setup

ROOT = Path(__file__).parents[2]
JUDGES = [
    path
    for folder in ("models", "harness/judging")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


@pytest.mark.slow
@pytest.mark.parametrize("path", JUDGES, ids=lambda path: path.stem)
def test_whoever_judges_imports_nothing_of_the_engine(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    named = [
        node.module or "" for node in ast.walk(tree) if type(node) is ast.ImportFrom
    ]
    named += [
        alias.name
        for node in ast.walk(tree)
        if type(node) is ast.Import
        for alias in node.names
    ]

    assert [name for name in named if name.startswith("crashmq.engine")] == []


def test_laws_that_name_a_number_themselves_name_the_same() -> None:
    assert {
        reading.SCAN_UNITS_MAX,
        filtering.SCAN_UNITS_MAX,
        long_polling.SCAN_ENTRIES_MAX,
    } == {limits.SCAN_UNITS}
    near = reading.TRANSFER_COUNT_MAX, reading.TRANSFER_BYTES_MAX
    of_filters = filtering.TRANSFER_COUNT_MAX, filtering.TRANSFER_BYTES_MAX
    assert near == of_filters == limits.NEAR_TRANSFER
    far = reading.FAR_TRANSFER_COUNT_MAX, reading.FAR_TRANSFER_BYTES_MAX
    assert far == limits.FAR_TRANSFER
    assert querying.QUERY_MAX == limits.QUERY_MAX
    assert membership.SILENT_MS == limits.CLIENT_SILENT_MS
    assert locks.LOCK_MS == limits.QUEUE_LOCK_MS


def test_a_setup_asks_for_what_rocketmq_does_unless_it_says_so() -> None:
    assert Setup().flush_least_pages == limits.LOG_LEAST_PAGES
    assert Setup().delete_batch == limits.DELETE_BATCH
    assert COMMIT_THOROUGH_MS == limits.COMMIT_THOROUGH_MS


def test_the_engine_has_rocketmqs_numbers_by_default() -> None:
    config = StoreConfig()

    assert {
        config.flush_commit_log_least_pages,
        config.commit_commit_log_least_pages,
    } == {limits.LOG_LEAST_PAGES}
    assert config.flush_consume_queue_least_pages == limits.QUEUE_LEAST_PAGES
    assert config.commit_commit_log_thorough_interval == limits.COMMIT_THOROUGH_MS
    assert config.sync_flush_timeout == limits.SYNC_TIMEOUT_MS
    assert config.shutdown_dispatch_timeout == limits.DISPATCH_TIMEOUT_MS
    assert config.delete_file_batch_max == limits.DELETE_BATCH
    assert config.disk_max_used_space_ratio == limits.DELETE_FROM_PERCENT
    assert config.disk_space_clean_forcibly_ratio == limits.FORCE_FROM_PERCENT
    assert config.disk_space_warning_level_ratio == limits.STOP_FROM_PERCENT
    assert config.max_filter_message_size == limits.SCAN_UNITS * 20
    assert config.max_msgs_num_batch == limits.QUERY_MAX
    assert MAX_MANUAL_DELETE_FILE_TIMES == limits.ROUNDS_OF_A_REQUEST


def test_the_engine_turns_its_services_as_often_as_rocketmq_does() -> None:
    config = StoreConfig()

    assert {
        "flushIntervalCommitLog": config.flush_interval_commit_log,
        "commitIntervalCommitLog": config.commit_interval_commit_log,
        "flushIntervalConsumeQueue": config.flush_interval_consume_queue,
        "flushCommitLogThoroughInterval": config.flush_commit_log_thorough_interval,
        "flushConsumeQueueThoroughInterval": (
            config.flush_consume_queue_thorough_interval
        ),
        "cleanResourceInterval": config.clean_resource_interval,
        "fileReservedTime": config.file_reserved_time,
        "deleteWhen": config.delete_when,
    } == {
        "flushIntervalCommitLog": 500,
        "commitIntervalCommitLog": 200,
        "flushIntervalConsumeQueue": 1000,
        "flushCommitLogThoroughInterval": 10_000,
        "flushConsumeQueueThoroughInterval": 60_000,
        "cleanResourceInterval": 10_000,
        "fileReservedTime": 72,
        "deleteWhen": "04",
    }
