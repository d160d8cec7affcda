"""Directories of RocketMQ with random small damage: all is served, or all refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from golden_kinds import config_for, settings_of
from store_builder import StoreBuilder

from crashmq.engine.store.errors import StoreCorrupted
from crashmq.engine.store.message_store import MessageStore
from crashmq.models.files.record import as_listed, decode_record
from crashmq.models.files.store_image import read_store

GoldenStore = Callable[[str], tuple[Path, list[dict[str, Any]]]]
Files = dict[str, bytes]
Place = tuple[str, int, int]  # topic, queue_id, queue_offset
SEEDS = 60
ENDS = [
    f"{kind}-{end}"
    for kind in ("rolled", "batch", "lmq", "crc", "expired")
    for end in ("clean", "killed")
]


def changed(files: Files, chance: random.Random) -> Files:
    """The files after one to three things that happen to a directory."""
    out = dict(files)
    for _ in range(chance.randint(1, 3)):
        chance.choice(HAPPENINGS)(out, chance)
    return out


def some(files: Files, chance: random.Random, *folders: str) -> str:
    return chance.choice(sorted(p for p in files if p.startswith(folders)) or [""])


def flip(files: Files, chance: random.Random) -> None:
    path = some(files, chance, "commitlog/", "consumequeue/", "index/")
    if data := bytearray(files.get(path, b"")):
        at = chance.randrange(len(data))
        data[at] ^= 1 << chance.randrange(8)
        files[path] = bytes(data)


def zero(files: Files, chance: random.Random) -> None:
    path = some(files, chance, "commitlog/", "consumequeue/")
    data = files.get(path, b"")
    at, size = chance.randrange(len(data) + 1), chance.choice((1, 20, 512, 4096))
    files[path] = (data[:at] + bytes(size) + data[at + size :])[: len(data)]


def cut(files: Files, chance: random.Random) -> None:
    path = some(files, chance, "commitlog/", "consumequeue/", "index/", "checkpoint")
    files[path] = files.get(path, b"")[: chance.randrange(len(files[path]) + 1)]


def remove(files: Files, chance: random.Random) -> None:
    files.pop(some(files, chance, "commitlog/", "consumequeue/", "index/"), None)


def rename_folder(files: Files, chance: random.Random) -> None:
    folder = some(files, chance, "consumequeue/").rpartition("/")[0]
    other = chance.choice(("consumequeue/orders/9", "consumequeue/other/0", "old"))
    for path in [path for path in files if path.startswith(f"{folder}/")]:
        files[path.replace(folder, other)] = files.pop(path)


def exchange(files: Files, chance: random.Random) -> None:
    one, two = (some(files, chance, "consumequeue/") for _ in range(2))
    files[one], files[two] = files.get(two, b""), files.get(one, b"")


def plant(files: Files, chance: random.Random) -> None:
    path = chance.choice(
        (
            *("notes.txt", "commitlog/notes", "index/README", "timerlog/0000000"),
            *("consumequeue/orders/0/x", "consumequeue/a/b/c", "config/topics.json.1"),
            *("dledger-n1/data/0", "consumequeue/CURRENT", "rocksdbstore/CURRENT"),
            "batchconsumequeue/t/0/00000000000000000000",
        )
    )
    files[path] = chance.randbytes(chance.choice((0, 20, 400)))


HAPPENINGS = (flip, flip, zero, cut, remove, rename_folder, exchange, plant)


def whole_units(files: Mapping[str, bytes]) -> Iterator[tuple[Place, int]]:
    """What RocketMQ could serve: units that lead to a whole record of their place."""
    image = read_store(files, by_rocketmq=True)
    log = image.commit_log
    records = {r.phy_offset: r for r in (*log.records, *log.records_beyond)}
    for queue in image.consume_queues:
        for unit in queue.units:
            record = records.get(unit.phy_offset)
            if record is None or record.size != unit.size:
                continue
            listed = as_listed(record, queue.topic)
            place = (listed.topic, listed.queue_id, listed.queue_offset)
            if place == (queue.topic, queue.queue_id, unit.queue_offset):
                yield place, record.phy_offset


def served(store: MessageStore) -> dict[Place, int]:
    found: dict[Place, int] = {}
    for (topic, queue_id), _ in store.next_queue_offsets:
        at = store.get_min_offset_in_queue(topic, queue_id)
        while at < store.get_max_offset_in_queue(topic, queue_id):
            result = store.get_message(topic, queue_id, at, 32)
            for data in result.messages:
                record = as_listed(decode_record(data, takes_nul=True), topic)
                place = (topic, queue_id, record.queue_offset)
                found[place] = record.phy_offset
            assert result.next_begin_offset > at
            at = result.next_begin_offset
    return found


def refusal_of(world: StoreBuilder) -> str:
    """Why a start refuses; "" if it came up."""
    try:
        world.restart()
    except StoreCorrupted as refusal:
        return str(refusal)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDS)
def test_a_start_serves_what_rocketmq_would_or_changes_nothing(
    golden_store: GoldenStore, name: str
) -> None:
    root, _ = golden_store(name)
    config = config_for(settings_of(root))
    config = replace(config, force_verify_prop_crc=config.enabled_append_prop_crc)
    paths = [path for path in root.rglob("*") if path.is_file()]
    golden = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    golden.pop("lock", None)
    starts = 0
    for seed in range(SEEDS):
        files = changed(golden, random.Random(f"{name} {seed}"))
        world = StoreBuilder()
        world.config = config
        for path, data in files.items():
            world.disk.replace_file(path, data)
        before = dict(world.disk.files())
        if said := refusal_of(world):
            after = dict(world.disk.files())
            after.pop("lock", None)
            assert "othing was changed" in said
            assert after == before, (seed, said)
            continue
        starts += 1
        while world.live.reput.behind > 0:
            world.reput()
        found = served(world.live)
        lost = {place: at for place, at in whole_units(files) if found.get(place) != at}
        assert not lost, (seed, lost)
        assert world.stop(), seed
        assert served(world.restart().live) == found, seed
    assert 0 < starts < SEEDS
