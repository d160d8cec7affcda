"""Disks that silently lose or misdirect pages.

Source: rule E6 of the disk fault model.
"""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import DiskFault, FaultCall, FaultErrno
from crashmq.models.program import HOUR_MS, Setup
from crashmq.scenarios.catalogue.bit_rot import ROTTING, SERVING
from crashmq.scenarios.catalogue.expiry import ALWAYS, KEEPING
from crashmq.scenarios.catalogue.message_scenarios import with_options
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.catalogue.topic_deletion import DELETIONS
from crashmq.scenarios.programs.space import Address, Numbers, Size, often
from crashmq.scenarios.programs.spaces import BREAKING, CORE_LAWS, INDEXED, setups_on

_LOST = tuple(
    DiskFault("lose", "EIO", times, path, after, lasts)
    for path in ("commitlog", "consumequeue", "checkpoint", "")
    for times, after, lasts in ((1, 0, False), (1, 1, False), (2, 0, False))
)
_MISDIRECTED = tuple(
    DiskFault("misdirect", "EIO", 1, path, after, written=away)
    for path in ("commitlog", "consumequeue", "consumequeue", "checkpoint")
    for after, away in ((0, 0), (0, 1), (1, 1), (1, 2), (0, 3))
)

_SPACE = replace(
    BREAKING,
    kinds=often(
        ("put", 5),
        ("burst", 6),
        ("service", 8),
        ("pull", 4),
        ("fault", 5),
        ("crash", 3),
        ("restart", 1),
        ("clock", 2),
    ),
    kept=("burst", "service", "fault", "crash"),
    sizes=often(
        (Size(extra=16), 6),
        (Size(extra=60), 4),
        (Size(extra=333), 3),
        (Size(extra=1000), 2),
        (Size(parts=4), 2),
        (Size(parts=2), 2),
        (Size(parts=1), 1),
    ),
    addresses=often(
        (Address("T0", 0), 4),
        (Address("T0", 1), 4),
        (Address("T1", 0), 2),
        (Address("T1", 1), 1),
    ),
    served_first=(False, True),
    interrupted=often(("put", 2), ("service", 6), ("shutdown", 6), ("restart", 2)),
    at_actions=BREAKING.at_actions._replace(
        shutdown=Numbers((1, 1, 1, 2, 3), 12, 1),
        service=Numbers((1, 1, 1, 2, 3, 4), 12, 1),
    ),
    crash_kinds=often(("power_loss", 4), ("process_kill", 1)),
    survivor_kinds=often(("none", 3), ("all", 2), ("prefix", 2), ("hashed", 2)),
    faults=(
        *_LOST,
        *_MISDIRECTED,
        DiskFault("evict", "EIO"),
        DiskFault("evict", "EIO"),
    ),
)

_UNREADABLE = replace(
    ROTTING,
    kinds=often(
        ("put", 4),
        ("burst", 6),
        ("service", 8),
        ("pull", 2),
        ("query", 1),
        ("damage", 5),
        ("fault", 2),
        ("crash", 1),
        ("clock", 2),
    ),
    sizes=often(
        (Size(extra=16), 5),
        (Size(extra=60), 3),
        (Size(extra=333), 3),
        (Size(extra=1000), 3),
        (Size(parts=4, extra=1), 2),
        (Size(parts=2, extra=1), 3),
        (Size(parts=1), 3),
    ),
    burst_sizes=often((2, 2), (3, 2), (5, 2), (8, 2), (11, 2), (21, 2), (30, 3)),
    labels=INDEXED.labels,
    services=INDEXED.services,
    query_keys=INDEXED.query_keys,
    query_counts=INDEXED.query_counts,
    interrupted=often(("restart", 7), ("service", 1), ("put", 1), ("shutdown", 1)),
    faults=(
        DiskFault("read", "EIO"),
        DiskFault("read", "EIO", path="commitlog"),
        DiskFault("read", "EIO", 3, "commitlog", 1),
        DiskFault("read", "EIO", 1, "commitlog", 2),
        DiskFault("read", "EIO", path="consumequeue", lasts=True),
        DiskFault("read", "EIO", 1, "consumequeue", 1, lasts=True),
        DiskFault("read", "EIO", 1, "consumequeue", 2, lasts=True),
        DiskFault("read", "EIO", 1, "consumequeue", 4, lasts=True),
        DiskFault("read", "EIO", 9, "consumequeue_ext"),
        DiskFault("read", "EIO", path="checkpoint"),
        DiskFault("read", "EIO", 2, "index", 1),
        DiskFault("read", "EIO", 1, "", 3),
        DiskFault("read", "EINTR"),
        DiskFault("read", "EINTR", 9, "checkpoint"),
        DiskFault("read", "EINTR", lasts=True),
    ),
    damage_targets=often(
        (("commitlog[-1]", "unreadable"), 5),
        (("commitlog[0]", "unreadable"), 4),
        (("commitlog[1]", "unreadable"), 2),
        (("consumequeue[-1]", "unreadable"), 3),
        (("consumequeue[0]", "unreadable"), 3),
        (("consumequeue[1]", "unreadable"), 2),
        (("index[-1]", "unreadable"), 4),
        (("index[0]", "unreadable"), 4),
        (("consumequeue_ext[0]", "unreadable"), 2),
        (("consumequeue_ext[-1]", "unreadable"), 1),
        (("checkpoint", "unreadable"), 1),
        (("abort", "unreadable"), 1),
    ),
    damage_offsets=Numbers((0, 512, 1024, 3584, 2048, 4096, 8191), 8192),
    damage_sizes=often((1, 5), (513, 2), (1024, 1), (4096, 1)),
)

_FAILURES: tuple[tuple[FaultCall, FaultErrno, int, int], ...] = (
    ("sync", "EIO", 1, 0),
    ("sync", "EIO", 1, 1),
    ("sync", "EIO", 3, 0),
    ("write", "EIO", 1, 0),
    ("write", "ENOSPC", 1, 1),
    ("create", "ENOSPC", 1, 0),
    ("remove", "EIO", 1, 0),
)

_FAILING = replace(
    BREAKING,
    kinds=often(
        ("put", 4),
        ("burst", 4),
        ("service", 6),
        ("pull", 1),
        ("fault", 7),
        ("crash", 3),
        ("restart", 3),
        ("clock", 2),
        ("interleave", 2),
        ("expire", 4),
        ("delete", 1),
    ),
    kept=("burst", "service", "fault"),
    labels=INDEXED.labels,
    services=often(
        ("reput", 4),
        ("flush_commit_log", 3),
        ("flush_consume_queue", 3),
        ("checkpoint", 3),
        ("flush_index", 1),
        ("allocate", 1),
        ("commit", 1),
        ("clean_commit_log", 1),
        ("clean_consume_queue", 1),
    ),
    interrupted=often(("put", 2), ("service", 5), ("shutdown", 3), ("restart", 3)),
    crash_kinds=often(("process_kill", 3), ("power_loss", 2)),
    survivor_kinds=often(("none", 3), ("all", 1), ("prefix", 2), ("hashed", 2)),
    faults=tuple(
        DiskFault(call, errno, times, path, after)
        for path in ("commitlog", "consumequeue", "checkpoint", "index", "")
        for call, errno, times, after in _FAILURES
    ),
    deletions=DELETIONS,
    expiry_steps_ms=Numbers((3 * HOUR_MS, 2 * HOUR_MS, 0), 8 * HOUR_MS),
)

SICK_DISKS = (
    Scenario(
        name="failing_calls",
        sentence="disk calls fail again and again, and the store goes on, is shut "
        "down, is killed or loses power",
        space=_FAILING,
        setups=often(
            (Setup(), 3),
            (Setup(flush_mode="SYNC_FLUSH", flush_least_pages=0), 2),
            (Setup(queue_file_units=2, disk_profile="posix_min"), 2),
            (Setup(queue_file_units=7, disk_profile="xfs", preallocate=True), 1),
            (Setup(8192, queue_ext_size=100, flush_least_pages=0), 2),
            (Setup(index_slots=8, index_entries=20, flush_least_pages=0), 3),
            (Setup(16384, 40, transient_store_pool=True, flush_least_pages=0), 1),
            (replace(KEEPING, delete_hours=ALWAYS), 2),
            (replace(KEEPING, delete_hours=ALWAYS, disk_profile="posix_min"), 3),
            (replace(KEEPING, queue_file_units=2, queue_ext_size=88), 2),
        ),
        required_probes=(
            "flush.sync_failed",
            "message_store.shutdown.unflushed",
            "reput.failed",
            "index_service.put.failed",
        ),
        required_laws=(*CORE_LAWS, "REC-18", "CP-11", "CP-12"),
    ),
    Scenario(
        name="latent_errors",
        sentence="while the store is down, sectors become unreadable; reads fail "
        "once, or for a while",
        space=_UNREADABLE,
        setups=(
            *with_options(
                tuple(
                    replace(setup, on_damage=on_damage)
                    for setup in setups_on("ext4_ordered")
                    for on_damage in SERVING
                ),
                lights=False,
            ),
            *often(
                (Setup(16384, 250), 6),
                (Setup(16384, 250, "SYNC_FLUSH", on_damage="serve"), 4),
                # Two sectors, of which the last is not all of the file.
                (Setup(16384, 27), 5),
                (Setup(8192, 40), 5),
                (Setup(8192, 30, queue_ext_size=1000), 3),
                (Setup(index_slots=8, index_entries=20, queue_ext_size=100), 4),
                (Setup(index_slots=40, index_entries=60, queue_ext_size=100), 4),
                (Setup(8192, 7, index_slots=3, index_entries=60), 4),
                (Setup(index_slots=8, index_entries=20, on_damage="serve"), 2),
                (Setup(index_slots=99, index_entries=60, on_damage="serve"), 4),
                (Setup(8192, index_slots=99, index_entries=60), 8),
                (Setup(16384, index_slots=150, index_entries=60), 4),
                (Setup(disk_profile="posix_min", queue_ext_size=1000), 4),
                (replace(KEEPING, queue_file_units=40, delete_hours=ALWAYS), 3),
                (replace(KEEPING, on_damage="serve", delete_hours=ALWAYS), 3),
            ),
        ),
        required_probes=(
            "message_store.load.refused",
            "start_up.refused.unreadable",
            "unreadable.met",
            "unreadable.zeros",
            "index_service.load.unreadable",
            "consume_queue.put.built",
            "scan_around.found",
        ),
        required_laws=(*CORE_LAWS, "REC-8"),
    ),
    Scenario(
        name="lost_writes",
        sentence="pages that a sync made durable are lost or land in another place, "
        "which shows once the page cache is dropped or power is lost",
        space=_SPACE,
        setups=(
            *with_options(
                tuple(
                    replace(setup, on_damage=on_damage)
                    for setup in setups_on("ext4_ordered")
                    for on_damage in SERVING
                ),
                lights=False,
            ),
            *often(
                (Setup(log_file_size=16384, queue_file_units=250), 6),
                (Setup(16384, 250, "SYNC_FLUSH"), 6),
                (Setup(16384, disk_profile="xfs", index_slots=8, index_entries=20), 4),
                (Setup(disk_profile="posix_min"), 4),
                (Setup(flush_least_pages=0, checks_crc=True), 8),
            ),
        ),
        required_probes=(
            "message_reader.damaged",
            "message_store.load.refused",
            "checkpoint.load.mark",
            "consume_queue.put.built",
        ),
        required_laws=CORE_LAWS,
    ),
)
