"""Scenarios in which messages expire, and foreign files fill the disk."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import DiskFault
from crashmq.models.program import HOUR_MS, Setup
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.catalogue.topic_deletion import DELETIONS
from crashmq.scenarios.programs.space import Kind, Label, Numbers, Size, often
from crashmq.scenarios.programs.spaces import BREAKING, CORE_LAWS

AGEING = replace(
    BREAKING,
    kinds=often(
        ("put", 5),
        ("burst", 7),
        ("service", 5),
        ("pull", 3),
        ("expire", 6),
        ("crash", 3),
        ("restart", 2),
        ("interleave", 4),
        ("fault", 1),
        ("damage", 1),
        ("delete", 1),
    ),
    deletions=DELETIONS,
    kept=("burst", "expire"),
    labels=(*BREAKING.labels, *often((Label(keys="Aa"), 4), (Label(keys="Aa two"), 1))),
    sizes=often(
        (Size(extra=60), 2),
        (Size(extra=1000), 3),
        (Size(parts=4), 3),
        (Size(parts=2), 3),
    ),
    burst_sizes=often((3, 1), (5, 2), (11, 3), (17, 1)),
    services=often(
        ("reput", 4),
        ("flush_commit_log", 3),
        ("flush_consume_queue", 1),
        ("commit", 1),
        ("checkpoint", 3),
        ("clean_commit_log", 4),
        ("clean_consume_queue", 3),
    ),
    served_first=often((True, 2), (False, 1)),
    interrupted=often(("put", 2), ("service", 7), ("shutdown", 1), ("restart", 2)),
    crash_kinds=often(("power_loss", 3), ("process_kill", 2)),
    survivor_kinds=often(("none", 2), ("all", 1), ("prefix", 3), ("hashed", 4)),
    expiry_steps_ms=Numbers(
        (2 * HOUR_MS, 2 * HOUR_MS - 1, 3 * HOUR_MS, HOUR_MS, 26 * HOUR_MS, 0, -HOUR_MS),
        8 * HOUR_MS,
    ),
    damage_targets=often(
        (("commitlog[0]", "touch"), 3), (("commitlog[1]", "touch"), 1)
    ),
    faults=often(
        *((fault, 1) for fault in BREAKING.faults),
        (DiskFault("sync", "EIO", path="commitlog"), 4),
        (DiskFault("remove", "EIO"), 3),
    ),
    touch_ages_ms=Numbers((2 * HOUR_MS, 0, 1000 * HOUR_MS, -HOUR_MS), 4 * HOUR_MS),
)
"""Messages grow old, and the first files go; what others add is said there."""

ALWAYS = ";".join(map(str, range(24)))
"""Hours of deletion of a store whose cleaner need not be asked."""

FILLS: tuple[Kind, ...] = ("fill",) * 5
KEEPING = Setup(
    cleans=True,
    reserved_hours=2,
    delete_hours="22;04",
    delete_batch=3,
    flush_least_pages=0,
)


def expiring_setups(*, capacity: int = 0) -> tuple[Setup, ...]:
    """Stores that keep messages for two hours, on a disk with or without a limit."""
    small = replace(KEEPING, disk_capacity=capacity)
    return often(
        (small, 4),
        (replace(small, flush_mode="SYNC_FLUSH"), 2),
        (replace(small, queue_file_units=2), 1),
        (replace(small, disk_profile="posix_min"), 4),
        (replace(small, queue_file_units=2, queue_ext_size=88), 2),
        (replace(small, queue_file_units=7, delete_batch=1), 1),
        (replace(small, delete_hours="23", delete_batch=10), 1),
        (replace(small, log_file_size=8192, max_message_size=1024), 1),
        (replace(small, log_file_size=16384, queue_file_units=40), 1),
        (replace(small, transient_store_pool=True, preallocate=True), 2),
        (replace(small, transient_store_pool=True, transient_store_buffers=2), 1),
        (replace(small, index_slots=8, index_entries=20, queue_ext_size=100), 2),
        (replace(small, index_slots=8, index_entries=3), 2),
    )


EXPIRING = (
    Scenario(
        name="expiry",
        sentence="messages expire, and the first files of log and queues are deleted, "
        "with crashes at any point of it, wrong clocks and wrong file times",
        space=AGEING,
        setups=expiring_setups(),
        required_probes=(
            "clean_commit_log.deleted",
            "clean_commit_log.needed",
            "clean_commit_log.young",
            "clean_commit_log.batch_full",
            "clean_consume_queue.deleted",
            "message_reader.too_small",
        ),
        required_laws=(*CORE_LAWS, "DEL-1", "DEL-2", "DEL-3", "DEL-4", "DEL-5"),
    ),
    Scenario(
        name="disk_full",
        sentence="foreign files fill the disk and free it again; puts stop before it "
        "is full, and resume",
        space=replace(
            AGEING,
            kinds=tuple(kind for kind in AGEING.kinds if kind != "damage") + FILLS,
            kept=("burst", "fill"),
            fill_percents=(100, 91, 90, 88, 86, 85, 76, 75, 50, 0, 0, 0),
        ),
        setups=(
            *expiring_setups(capacity=100 * 1024),
            replace(KEEPING, disk_capacity=64 * 1024, cleans_forcibly=True),
            replace(KEEPING, disk_capacity=512 * 1024),
            replace(KEEPING, disk_capacity=512 * 1024, flush_mode="SYNC_FLUSH"),
        ),
        required_probes=(
            "disk_space.full",
            "disk_space.no_room",
            "disk_space.relieved",
            "clean_commit_log.by_space",
            "reput.failed",
        ),
        required_laws=(*CORE_LAWS, "DEL-1", "DEL-3", "DEL-6"),
    ),
)
"""What `catalogue` lists of them."""
