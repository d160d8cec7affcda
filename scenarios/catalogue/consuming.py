"""Scenarios of consumer offsets, and of the files that keep them."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import DiskFault, Schedule
from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.space import Address, Numbers, often
from crashmq.scenarios.programs.spaces import CALM

OFFSETS = "config/consumerOffset.json"
KEPT_LAWS = (*(f"OFS-{number}" for number in range(1, 13)), "REC-1", "REC-4", "RUN-1")
PROGRESS = replace(
    CALM,
    kinds=often(
        ("progress", 12),
        ("put", 2),
        ("burst", 1),
        ("service", 2),
        ("restart", 2),
        ("crash", 1),
    ),
    kept=("progress",),
    addresses=often(
        (Address("T0", 0), 5), (Address("T0", 1), 2), (Address("T1", 0), 1)
    ),
    services=often(
        ("reput", 2), ("flush_commit_log", 1), ("persist_consumer_offset", 4)
    ),
    service_times=often((1, 6), (2, 1)),
    crash_kinds=often(("power_loss", 3), ("process_kill", 2)),
    survivor_kinds=often(("none", 2), ("all", 1), ("prefix", 3), ("hashed", 4)),
    faults=often(
        (DiskFault("create", "ENOSPC", path="config"), 2),
        (DiskFault("write", "ENOSPC", path="config", written=9), 3),
        (DiskFault("write", "EIO", path="config", times=2), 1),
        (DiskFault("sync", "EIO", path="config"), 3),
        (DiskFault("remove", "EIO", path="config"), 2),
    ),
    groups=often(("g", 3), ("h", 2), ("k", 1)),
    progress_offsets=Numbers((1, 2, 3, 5, 8, 13, 0, 1 << 40), 40),
    schedules=often(
        (Schedule(depth=2, steps=24), 6),
        (Schedule("pct", depth=3, steps=40), 2),
        (Schedule("pct", depth=3, steps=200, grain="lines"), 1),
    ),
)
STORES = often(
    (Setup(keeps_progress=True), 3),
    (Setup(keeps_progress=True, disk_profile="posix_min"), 4),
    (Setup(keeps_progress=True, disk_profile="btrfs"), 1),
    (Setup(keeps_progress=True, disk_profile="xfs"), 1),
    (Setup(keeps_progress=True, disk_profile="kill9"), 1),
    (Setup(8192, 7, "SYNC_FLUSH", keeps_progress=True), 1),
    (Setup(16384, 40, keeps_progress=True), 1),
    (Setup(keeps_progress=True, in_memory_size=150), 2),
)

CONSUMING = (
    Scenario(
        name="group_progress",
        sentence="groups commit offsets, are reset and deleted with or without their "
        "topics, and offsets are persisted, with crashes and failing calls "
        "at any disk action of it",
        space=PROGRESS,
        setups=STORES,
        required_probes=(
            "config_file.load",
            "config_file.persist",
            "config_file.persist.left_over",
            "consumer_manage.update.swallowed",
            "consumer_offset.commit.deleted",
            "consumer_offset.commit.too_high",
            "consumer_offset.corrected",
            "consumer_offset.removed",
            "consumer_offset.removal.failed",
            "consumer_offset.reset.met",
        ),
        required_laws=KEPT_LAWS,
    ),
    Scenario(
        name="offset_files",
        sentence="while the store is down, the consumer offsets' file or its backup "
        "is cut, zeroed, removed or edited",
        space=replace(
            PROGRESS,
            kinds=often(
                ("progress", 6),
                ("put", 3),
                ("burst", 2),
                ("service", 4),
                ("damage", 4),
                ("restart", 1),
            ),
            kept=("progress", "damage"),
            damage_targets=often(
                ((OFFSETS, "truncate"), 3),
                ((OFFSETS, "zero"), 2),
                ((OFFSETS, "delete"), 2),
                ((OFFSETS, "reword"), 4),
                ((f"{OFFSETS}.bak", "truncate"), 2),
                ((f"{OFFSETS}.bak", "zero"), 1),
                ((f"{OFFSETS}.bak", "delete"), 1),
                ((f"{OFFSETS}.bak", "reword"), 1),
            ),
            damage_offsets=Numbers((0, 1, 40, 90, -1), 200),
            damage_sizes=(0, 1, 8),
            damages_a_stop=often((1, 2), (2, 3)),
        ),
        setups=STORES,
        required_probes=("config_file.load.backup", "config_file.load.refused"),
        required_laws=("OFS-6", "REC-4", "REC-8", "REC-17"),
    ),
)
"""What `catalogue` lists of them."""
