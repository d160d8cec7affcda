"""What a store holds of its process while it lives, and what it gives back."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from crashmq.engine.host.real_disk import RealDisk
from crashmq.engine.host.service_threads import ServiceThreads
from crashmq.engine.host.thread_runtime import ThreadRuntime
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.errors import StoreCorrupted, StoreLocked
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message_store import MessageStore
from crashmq.models.laws.run import everything_is_given_back

LIVES = 8
CONFIG = StoreConfig(
    mapped_file_size_commit_log=4096,
    mapped_file_size_consume_queue=200,
    message_index_enable=True,
    max_hash_slot_num=8,
    max_index_num=20,
    enable_consume_queue_ext=True,
    mapped_file_size_consume_queue_ext=512,
    transient_store_pool_enable=True,
)


def held(root: Path) -> dict[str, int]:
    """Handles of the process, its threads, and its mappings of files below root."""
    process = psutil.Process(os.getpid())
    maps = process.memory_maps(grouped=False)
    return {
        "handles": process.num_fds(),
        "threads": process.num_threads(),
        "mappings": sum(part.path.startswith(str(root)) for part in maps),
    }


def a_store(root: Path, config: StoreConfig = CONFIG) -> MessageStore:
    return MessageStore(config, RealDisk(root), ThreadRuntime())


def live_once(root: Path, *, deletes: bool = False) -> None:
    """One life with its threads: put some files full, and stop in order."""
    store = a_store(root)
    store.load()
    store.start()
    assert held(root)["mappings"]
    with ServiceThreads(store):
        for number in range(20):
            store.put_message(Message("T0", number % 2, bytes(400), {"KEYS": "k"}))
        if deletes:
            assert store.delete_topics(["T0"]) == 1
        store.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("deletes", [False, True])
def test_a_store_that_was_shut_down_holds_nothing(
    tmp_path: Path, deletes: bool
) -> None:
    live_once(tmp_path, deletes=deletes)
    before = held(tmp_path)

    for _ in range(LIVES):
        live_once(tmp_path, deletes=deletes)

    assert before["mappings"] == 0
    assert not everything_is_given_back.violations(before, held(tmp_path))


@pytest.mark.slow
def test_a_start_that_was_refused_holds_nothing(tmp_path: Path) -> None:
    live_once(tmp_path)
    first = min((tmp_path / "commitlog").iterdir())
    first.rename(tmp_path / "taken")
    before = held(tmp_path)

    for _ in range(LIVES):
        with pytest.raises(StoreCorrupted):
            a_store(tmp_path).load()

    assert not everything_is_given_back.violations(before, held(tmp_path))


def test_a_start_that_met_a_held_directory_holds_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    store.load()
    store.start()
    before = held(tmp_path)

    for _ in range(LIVES):
        with pytest.raises(StoreLocked):
            a_store(tmp_path).load()

    assert not everything_is_given_back.violations(before, held(tmp_path))
    store.shutdown()


def test_a_handle_a_mapping_or_a_thread_too_many_is_named() -> None:
    before = {"handles": 5, "mappings": 0, "threads": 1}

    violations = everything_is_given_back.violations(before, {**before, "handles": 6})

    assert [(v.where, v.seen) for v in violations] == [("handles", "6")]
