"""Starts in directories that no durable mark says are this store's."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_kinds import config_for, settings_of
from store_builder import (
    LOG_FILE_SIZE,
    RECORD_SIZE,
    StoreBuilder,
    log_file,
    queue_file,
)

from crashmq.engine.host.real_disk import RealDisk
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.errors import StoreForeign
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.queue.cq_unit import CQ_STORE_UNIT_SIZE
from crashmq.harness.scheduling.sim_runtime import SimRuntime

GoldenStore = Callable[[str], tuple[Path, list[dict[str, Any]]]]
PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
COUNT = 2 * PER_FILE + 3


def contents(root: Path) -> dict[str, str]:
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.name != "lock"
    }


def refusal_of(root: Path, config: StoreConfig) -> str:
    """Why a start refuses, which must change nothing."""
    before = contents(root)
    with pytest.raises(StoreForeign) as caught:
        MessageStore(config, RealDisk(root), SimRuntime(1_800_000_000_000)).load()
    assert contents(root) == before
    return str(caught.value)


def test_one_bit_in_the_first_of_rocketmqs_log_files_removes_none(
    golden_store: GoldenStore,
) -> None:
    root, _ = golden_store("rolled-killed")
    config = config_for(settings_of(root))
    files = sorted((root / "commitlog").iterdir())
    data = bytearray(files[0].read_bytes())
    data[4] ^= 1
    files[0].write_bytes(bytes(data))

    said = refusal_of(root, config)

    assert said.startswith("commitlog/00000000000000000000 byte 0 (offset 0): ")
    assert "whole records" in said
    assert "crashmq fsck" in said
    assert "adopt=True" in said


def test_whoever_adopts_a_directory_has_its_log_cut(golden_store: GoldenStore) -> None:
    root, _ = golden_store("rolled-clean")
    settings = settings_of(root)
    files = sorted((root / "commitlog").iterdir())
    data = bytearray(files[-2].read_bytes())
    data[4] ^= 1
    files[-2].write_bytes(bytes(data))
    refusal_of(root, config_for(settings))

    config = StoreConfig(
        mapped_file_size_commit_log=settings["log_file_size"],
        mapped_file_size_consume_queue=settings["queue_file_size"],
        adopt=True,
    )
    store = MessageStore(config, RealDisk(root), SimRuntime(1_800_000_000_000))
    store.load()
    store.start()

    assert store.losses.records
    assert store.commit_log.max_offset == int(files[-2].name)
    assert store.shutdown()


@pytest.mark.parametrize("ends", ["clean", "killed"])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_log_that_is_kept_elsewhere_costs_no_queue(
    golden_store: GoldenStore, ends: str, is_there: bool
) -> None:
    root, _ = golden_store(f"rolled-{ends}")
    shutil.rmtree(root / "commitlog")
    if is_there:
        (root / "commitlog").mkdir()

    said = refusal_of(root, config_for(settings_of(root)))

    assert said.startswith("commitlog: there are queues but no log")
    assert " units of " in said
    assert " index files" in said


@pytest.fixture
def unmarked(store: StoreBuilder) -> StoreBuilder:
    """Three log files, of a life that ended in order; the mark is gone."""
    assert store.put(COUNT).make_all_durable().stop()
    return store.remove("checkpoint")


def refusal(store: StoreBuilder) -> str:
    before = dict(store.disk.files())
    with pytest.raises(StoreForeign) as caught:
        store.restart()
    after = dict(store.disk.files())
    assert after.pop("lock", None) == before.pop("lock", None)
    assert after == before
    return str(caught.value)


def ended_by_a_kill(store: StoreBuilder) -> StoreBuilder:
    store.disk.replace_file("abort", b"1")
    return store


def test_a_healthy_store_without_its_mark_starts(unmarked: StoreBuilder) -> None:
    assert unmarked.restart().reput().served() == list(range(COUNT))


@pytest.mark.parametrize("killed", [False, True])
def test_queues_that_are_gone_are_made_again(
    unmarked: StoreBuilder, killed: bool
) -> None:
    for path in [p for p in unmarked.disk.files() if p.startswith("consumequeue/")]:
        unmarked.remove(path)
    if killed:
        ended_by_a_kill(unmarked)

    assert unmarked.restart().reput().served() == list(range(COUNT))


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("number", [0, PER_FILE - 1, PER_FILE, COUNT - 2])
def test_whole_records_behind_a_break_are_never_cut(
    unmarked: StoreBuilder, killed: bool, number: int
) -> None:
    base, at = divmod(number, PER_FILE)
    base *= LOG_FILE_SIZE
    unmarked.damage(log_file(base), at * RECORD_SIZE + 4, b"\x33")
    if killed:
        ended_by_a_kill(unmarked)

    said = refusal(unmarked)

    where = f"{log_file(base)} byte {at * RECORD_SIZE} (offset {base + at * 100})"
    assert said.startswith(where)
    assert f"{COUNT - number - 1} whole records" in said


def test_a_log_file_that_is_missing_costs_no_other(unmarked: StoreBuilder) -> None:
    ended_by_a_kill(unmarked.remove(log_file(LOG_FILE_SIZE)))

    said = refusal(unmarked)

    assert said.startswith("commitlog at offset 1024: a missing file")
    assert "3 whole records" in said


def test_a_torn_last_record_goes_after_a_crash_alone(unmarked: StoreBuilder) -> None:
    torn = log_file(2 * LOG_FILE_SIZE)
    unmarked.damage(torn, 2 * RECORD_SIZE + 60, bytes(40))

    assert refusal(unmarked).startswith(f"{torn} byte {2 * RECORD_SIZE} ")

    unmarked.kill()
    ended_by_a_kill(unmarked)
    assert unmarked.restart().reput().served() == list(range(COUNT - 1))


def test_a_unit_that_leads_elsewhere_is_not_cut(unmarked: StoreBuilder) -> None:
    ended_by_a_kill(unmarked.damage(queue_file(), 5 * CQ_STORE_UNIT_SIZE, b"\x01"))

    said = refusal(unmarked)

    assert said.startswith(f"{queue_file()} byte {5 * CQ_STORE_UNIT_SIZE}: a unit")
    assert "1 units of 1 queues" in said


def test_units_of_a_record_that_the_log_never_had_are_not_cut(
    unmarked: StoreBuilder,
) -> None:
    other = unmarked.disk.files()[queue_file()]
    unmarked.disk.replace_file(queue_file("T1"), other)

    assert "10 units of 1 queues" in refusal(unmarked)


def test_a_hole_amid_a_queue_is_filled_from_the_log(unmarked: StoreBuilder) -> None:
    unmarked.damage(queue_file(), 3 * CQ_STORE_UNIT_SIZE, bytes(48))

    assert refusal(unmarked).startswith(f"{queue_file()} byte 100: a unit")

    unmarked.kill()
    ended_by_a_kill(unmarked)
    assert unmarked.restart().reput().served() == list(range(COUNT))


def test_units_behind_a_torn_log_go_with_it(unmarked: StoreBuilder) -> None:
    unmarked.damage(log_file(2 * LOG_FILE_SIZE), RECORD_SIZE, bytes(2 * RECORD_SIZE))

    assert "2 units of 1 queues" in refusal(unmarked)

    unmarked.kill()
    ended_by_a_kill(unmarked)
    assert unmarked.restart().reput().served() == list(range(COUNT - 2))


def test_index_files_of_another_size_are_not_removed(unmarked: StoreBuilder) -> None:
    unmarked.configured(message_index_enable=True, max_hash_slot_num=4)
    unmarked.configured(max_index_num=8)
    path = "index/20231114221320000"
    unmarked.disk.replace_file(path, b"\x01" * 500)

    said = refusal(unmarked)

    assert said.startswith(f"{path}: 500 bytes, 216 in this store")
    assert "1 index files" in said


def test_a_directory_with_a_mark_is_its_own_affair(store: StoreBuilder) -> None:
    store.put(COUNT).make_all_durable().put(3).reput().kill()
    last = COUNT + 1 - 2 * PER_FILE
    store.damage(log_file(2 * LOG_FILE_SIZE), last * RECORD_SIZE + 4, b"\x33")

    assert store.restart().reput().served() == list(range(COUNT + 1))
