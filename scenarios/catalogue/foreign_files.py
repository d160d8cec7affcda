"""Foreign files: planted among the store's own, or a whole store of RocketMQ.

Single files are leftovers or copies. A whole store is one that RocketMQ wrote: the
first start takes it over, and later ops work on its messages, index, checkpoint and
deletions.

Source: rule E9 of the disk fault model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from crashmq.models.ops import PlantFile, ServiceName, SurvivorKind
from crashmq.models.program import HOUR_MS, FlushMode, FoundStore, Setup
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.catalogue.topic_deletion import DELETIONS
from crashmq.scenarios.programs.space import ALL_TIMES, Address, Label, Numbers, often
from crashmq.scenarios.programs.spaces import BREAKING, CORE_LAWS, INDEXED, setups_on

_NOBODYS = (
    PlantFile("commitlog/.DS_Store", "garbage", 40),
    PlantFile("commitlog/lost+found", "directory"),
    PlantFile("commitlog/0", "zeros", 4096),
    PlantFile("commitlog/0000000000000000000a", "garbage", 4096),
    PlantFile("commitlog/00000000000000000000.bak", "copy", source="commitlog[0]"),
    PlantFile("consumequeue/T0/0/00000000000000000000.bak", "garbage", 200),
    PlantFile("consumequeue/T0/0/notes", "empty"),
    PlantFile("consumequeue/T0/lost+found", "directory"),
    PlantFile("consumequeue/T0/x/00000000000000000000", "garbage", 200),
    PlantFile("consumequeue/T0/00", "garbage", 20),
    PlantFile("consumequeue/T1/00/00000000000000000000", "copy", 0, "consumequeue[0]"),
    PlantFile("consumequeue/T9", "empty"),
    PlantFile("consumequeue/.nfs0001", "garbage", 7),
    PlantFile("consumequeue_ext/T0/0/core", "garbage", 100),
    PlantFile("index/notes.txt", "garbage", 60),
    PlantFile("index/lost+found", "directory"),
    PlantFile("index/2026010112000000", "zeros", 512),
    # Digits of other scripts are no digits of a file's name.
    PlantFile("index/" + 17 * "\u0661", "zeros", 512),
    PlantFile("index/" + 17 * "\u0661", "garbage", 512),
    PlantFile("commitlog/" + 20 * "\uff10", "garbage", 4096),
    PlantFile("consumequeue/T0/0/" + 20 * "\uff10", "garbage", 200),
    PlantFile("consumequeue/T0/\uff11", "directory"),
    PlantFile("commitlog/00000009999999999999", "directory"),
    PlantFile("consumequeue/T0/0/00000009999999999999", "directory"),
    PlantFile("index/99999999999999999", "directory"),
    PlantFile("core.1234", "garbage", 4096),
    PlantFile("lost+found", "directory"),
)
_LEFT_OVER = (
    PlantFile("commitlog/{next}", "empty"),
    PlantFile("commitlog/{next}", "zeros", 4096),
    PlantFile("commitlog/{next}", "garbage", 4096),
    PlantFile("commitlog/{next}", "copy", source="commitlog[0]"),
    PlantFile("commitlog/{far}", "copy", source="commitlog[-1]"),
    PlantFile("commitlog/{far}", "empty"),
    PlantFile("consumequeue/T0/0/{next}", "empty"),
    PlantFile("consumequeue/T0/0/{next}", "garbage", 40),
    PlantFile("consumequeue/T0/0/{next}", "copy", source="consumequeue[0]"),
    PlantFile("consumequeue/T0/0/{far}", "copy", source="consumequeue[-1]"),
    PlantFile("consumequeue/T0/1/{next}", "copy", source="consumequeue[0]"),
    PlantFile("consumequeue/T9/0/{next}", "copy", source="consumequeue[0]"),
    PlantFile("consumequeue/T1/0/00000000000000000000", "copy", 0, "consumequeue[-1]"),
    PlantFile("index/20260101120000000", "empty"),
    PlantFile("index/20260101120000000", "copy", source="index[0]"),
    PlantFile("index/00000000000000001", "garbage", 300),
    PlantFile("index/00000000000000002", "copy", source="index[-1]"),
    PlantFile("abort", "empty"),
)

_OTHER_LAYOUTS = (
    PlantFile("dledger-broker-a/data/00000000000000000000", "garbage", 64),
    PlantFile("consumequeue_rocksdb/000004.log", "garbage", 64),
    PlantFile("consumequeue_rocksdb/CURRENT", "empty"),
    PlantFile("consumequeue_rocksdb", "directory"),
    PlantFile("consumequeue/CURRENT", "garbage", 16),
    PlantFile("batchconsumequeue/T0/0/00000000000000000000", "zeros", 46),
    PlantFile("batchconsumequeue/T7/3/00000000000000000000", "empty"),
    PlantFile("batchconsumequeue/T0/0", "directory"),
    PlantFile("compaction/compactionLog/T0/0/00000000000000000000", "zeros", 64),
    PlantFile("compaction/compactionCq/T0/0/00000000000000000000", "empty"),
    PlantFile("compaction/position-checkpoint", "garbage", 40),
    PlantFile("compaction/compactionLog", "directory"),
    PlantFile("timerlog/00000000000000000000", "zeros", 64),
    PlantFile("rocksdbstore/CURRENT", "garbage", 16),
)
"""Files of stores of other kinds, and some that only look so."""

_SERVICES: tuple[tuple[ServiceName, int], ...] = (
    ("reput", 5),
    ("flush_commit_log", 3),
    ("flush_consume_queue", 2),
    ("checkpoint", 2),
    ("flush_index", 1),
)
_SURVIVORS: tuple[SurvivorKind, ...] = often(
    ("none", 2), ("all", 1), ("prefix", 2), ("hashed", 3)
)

_SPACE = replace(
    BREAKING,
    kinds=often(
        ("put", 5),
        ("burst", 6),
        ("service", 7),
        ("pull", 2),
        ("query", 1),
        ("damage", 6),
        ("crash", 1),
        ("restart", 1),
        ("expire", 1),
        ("delete", 1),
        ("fault", 1),
    ),
    kept=("burst", "service", "damage"),
    labels=INDEXED.labels,
    services=often(
        *_SERVICES,
        ("clean_commit_log", 1),
        ("clean_consume_queue", 1),
    ),
    crash_kinds=often(("process_kill", 1), ("power_loss", 1)),
    survivor_kinds=_SURVIVORS,
    damage_targets=often((("consumequeue[0]", "delete"), 1), (("abort", "delete"), 1)),
    damages_a_stop=often((1, 3), (2, 3), (3, 2), (5, 1)),
    plants=(*_NOBODYS, *_LEFT_OVER),
    query_keys=INDEXED.query_keys,
    query_counts=INDEXED.query_counts,
    deletions=DELETIONS,
    expiry_steps_ms=Numbers((3 * HOUR_MS, 2 * HOUR_MS, 0), 8 * HOUR_MS),
)

_CLEANING = Setup(cleans=True, reserved_hours=2, delete_hours="0;1;2;3;4;5;6;7;8;9")
_INDEXING = Setup(index_slots=8, index_entries=20)

FOREIGN_FILES = (
    Scenario(
        name="foreign_files",
        sentence="while the store is down, foreign files are put into its "
        "directories: leftovers, copies, or files with names of their own",
        space=_SPACE,
        setups=(
            *setups_on("ext4_ordered"),
            *often(
                (_CLEANING, 3),
                (replace(_CLEANING, flush_mode="SYNC_FLUSH", queue_file_units=7), 2),
                (_INDEXING, 4),
                (replace(_INDEXING, log_file_size=8192, queue_ext_size=100), 2),
                (replace(_INDEXING, cleans=True, reserved_hours=2), 2),
                (Setup(disk_profile="posix_min"), 2),
            ),
        ),
        required_probes=(
            "mapped_file_queue.load.foreign",
            "index_service.load.foreign",
            "index_service.load.odd",
            "mapped_file_queue.load.gap",
        ),
        required_laws=(*CORE_LAWS, "REC-14"),
    ),
)

_DISOWNED = replace(
    _SPACE,
    kinds=often(
        ("disown", 6),
        ("put", 3),
        ("burst", 3),
        ("service", 4),
        ("pull", 2),
        ("query", 1),
        ("delete", 1),
    ),
    kept=("disown",),
    damage_sizes=often((1, 3), (4, 2), (0, 2), (20, 2), (512, 1), (1024, 1)),
    plants=(*_NOBODYS, *_LEFT_OVER, *_OTHER_LAYOUTS),
)
_SERVING = Setup(on_damage="serve")

DISOWNED = (
    Scenario(
        name="unmarked_stores",
        sentence="a store is started on a directory without its own durable mark, or "
        "with an old one, in which files are damaged, missing or another program's",
        space=_DISOWNED,
        setups=often(
            (Setup(), 6),
            (Setup(flush_mode="SYNC_FLUSH", queue_file_units=7), 2),
            (Setup(log_file_size=8192, queue_file_units=10), 2),
            (Setup(adopt=True), 3),
            (Setup(adopt=True, queue_file_units=2), 3),
            (_SERVING, 3),
            (
                replace(_SERVING, adopt=True, log_file_size=16384, queue_file_units=40),
                1,
            ),
            (_INDEXING, 2),
            (replace(_INDEXING, queue_ext_size=100), 1),
            (replace(_CLEANING, adopt=True), 1),
            (Setup(disk_profile="posix_min"), 2),
        ),
        length=(25, 70),
        required_probes=(
            "start_up.refused.foreign",
            "adoption.layout",
            "start_up.read.as_found",
            "start_up.take_over",
        ),
        required_laws=(*CORE_LAWS, "REC-4", "REC-22"),
    ),
)

_EMPTY_FOLDERS = tuple(
    PlantFile(f"consumequeue/{folder}", "directory")
    for folder in ("T1", "T1", "T.1", "T9", "%LMQ%a")
)
"""RocketMQ 4.9 leaves the folder of a deleted topic, without a queue in it."""

FOUND_STORES: tuple[FoundStore, ...] = tuple(filter(None, get_args(FoundStore)))

_ADOPTING = replace(
    BREAKING,
    kinds=often(
        ("put", 5),
        ("burst", 4),
        ("batch", 2),
        ("service", 7),
        ("pull", 4),
        ("query", 2),
        ("search", 2),
        ("delete", 1),
        ("crash", 4),
        ("restart", 3),
        ("clock", 1),
    ),
    kept=("pull", "crash", "restart"),
    addresses=often(
        (Address("T0", 0), 6),
        (Address("T0", 1), 2),
        (Address("T1", 0), 4),
        (Address("Té", 2), 1),
        (Address("T.1", 0), 1),
        (Address("orders", 0), 1),
    ),
    labels=often(
        (Label(), 4),
        (Label(tags="TagA"), 3),
        (Label(tags="TagB", keys="key-1"), 2),
        (Label(tags="已付款", keys="key-2 key-3"), 2),
        (Label(keys="key-1 key-4", wait_store_ok=False), 1),
        (Label(transaction="prepared"), 1),
    ),
    batch_counts=often((2, 3), (1, 1), (5, 1)),
    plants=_EMPTY_FOLDERS,
    deletions=often((Address("T1", -1), 2), (Address("T0", 1), 1)),
    crash_kinds=often(("power_loss", 1), ("process_kill", 1)),
    survivor_kinds=_SURVIVORS,
    services=often(*_SERVICES),
    search_times_ms=Numbers((0, -1, -1000, -1100, -1500, -1800, 10, 3000), 12_000),
    query_keys=("key-1", "key-2", "key-4", "K7", "K10", "nobody"),
    query_counts=often((32, 3), (64, 1), (1, 2), (3, 1)),
    query_times_ms=often((ALL_TIMES, 4), ((-2000, -1000), 1), ((0, ALL_TIMES[1]), 1)),
)


_DISKS: tuple[tuple[str, FlushMode], ...] = (
    ("ext4_ordered", "ASYNC_FLUSH"),
    ("posix_min", "SYNC_FLUSH"),
)
_LOG_FILE_SIZES: dict[FoundStore, int] = {"5.3.0-killed": 4096, "5.5.1-killed": 16384}
_QUEUE_FILE_UNITS: dict[FoundStore, int] = {"5.3.0-crc": 7, "4.9.8-nul": 40}


def setup_of(name: FoundStore) -> Setup:
    """A setup with the file sizes of a found store, and the options that it needs."""
    return Setup(
        log_file_size=_LOG_FILE_SIZES.get(name, 8192),
        queue_file_units=_QUEUE_FILE_UNITS.get(name, 10),
        index_slots=8,
        index_entries=20,
        multi_dispatch=name.endswith("light"),
        begins_with=name,
    )


ADOPTING = (
    Scenario(
        name="adopted_stores",
        sentence="the store, perhaps with a broker, is started on a directory that "
        "RocketMQ wrote, or has written to since, and is killed, loses power and goes "
        "on",
        space=_ADOPTING,
        setups=(
            *[
                replace(setup_of(name), disk_profile=disk, flush_mode=mode)
                for name in FOUND_STORES
                for disk, mode in _DISKS
            ],
            *[
                replace(setup_of(name), keeps_progress=True, delivers_delayed=True)
                for name in FOUND_STORES
            ],
        ),
        length=(8, 40),
        required_probes=(
            "start_up.take_over",
            "start_up.read.expired",
            "adoption.deleted",
            "index_audit.tags",
        ),
        required_laws=(*CORE_LAWS, "IX-1", "IX-4", "DEL-9"),
    ),
)
