"""Our index on directories that Apache RocketMQ wrote: each entry must agree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crashmq.engine.host.probe import recording
from crashmq.engine.host.real_disk import RealDisk
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.message_store import MessageStore
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.files.index import guessed_slots, keys_of
from crashmq.models.files.store_image import Record, StoreImage, read_store
from crashmq.models.laws.file_laws import FILE_LAWS
from crashmq.models.laws.judged import Judged

GoldenStore = Callable[[str], tuple[Path, list[dict[str, Any]]]]

NAMES = ["clean", "killed", "killed-sync", "expired-clean", "rolled-killed"]
SLOTS, ENTRIES = 256, 1024
FOREVER = 1 << 62
EVERY_NAME = pytest.mark.parametrize("name", NAMES)


def files_of(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def index_of(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if path.startswith("index/")}


def started(root: Path, image: StoreImage) -> MessageStore:
    config = StoreConfig(
        mapped_file_size_commit_log=image.commit_log.file_size,
        mapped_file_size_consume_queue=image.queue_file_size,
        message_index_enable=True,
        max_hash_slot_num=SLOTS,
        max_index_num=ENTRIES,
    )
    store = MessageStore(config, RealDisk(root), SimRuntime(1_800_000_000_000))
    store.load()
    store.start()
    return store


def offsets_with(records: tuple[Record, ...], topic: str, key: str) -> list[int]:
    found = [
        record.phy_offset
        for record in records
        if record.topic == topic and key in keys_of(record.properties_raw)
    ]
    return found[-64:]


@pytest.mark.slow
@EVERY_NAME
def test_rocketmqs_index_is_kept_byte_for_byte_and_answers_for_every_key(
    golden_store: GoldenStore, name: str
) -> None:
    root, _ = golden_store(name)
    before = files_of(root)
    image = read_store(before)
    records = image.commit_log.records
    asked = {(r.topic, key): r for r in records for key in keys_of(r.properties_raw)}

    with recording() as hits:
        store = started(root, image)
        for topic, key in asked:
            answer = store.query_message(topic, key, 64, 0, FOREVER).messages
            offsets = [int.from_bytes(data[28:36], "big") for data in answer]
            assert offsets == offsets_with(records, topic, key)
        assert store.shutdown()

    assert hits["index_audit.agreed"] == 1
    assert index_of(files_of(root)) == index_of(before)


@pytest.mark.slow
@EVERY_NAME
def test_what_our_store_makes_anew_is_what_rocketmq_made(
    golden_store: GoldenStore, name: str
) -> None:
    root, _ = golden_store(name)
    before = files_of(root)
    for path in index_of(before):
        (root / path).unlink()

    store = started(root, read_store(before))
    store.reput.run_once()
    assert store.shutdown()

    made = list(index_of(files_of(root)).values())
    if not name.startswith("expired"):  # whose index lists what the log has no more
        assert made == list(index_of(before).values())
    assert len(read_store(files_of(root)).index(SLOTS).entries) == len(
        read_store(before).log_keys
    )


@EVERY_NAME
def test_rocketmqs_index_keeps_every_law(golden_store: GoldenStore, name: str) -> None:
    root, _ = golden_store(name)
    image = read_store(files_of(root))

    judged = Judged(image, image.commit_log.max_phy_offset, keeps_index=True)

    assert all(not law.violations(judged) for law in FILE_LAWS if law.id[:2] == "IX")
    assert guessed_slots(next(iter(index_of(files_of(root)).values()))) == SLOTS
