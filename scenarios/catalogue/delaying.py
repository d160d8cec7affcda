"""Scenarios of delayed messages, and of the file of delay offsets."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import DiskFault, Schedule
from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.space import Address, Label, Numbers, Size, often
from crashmq.scenarios.programs.spaces import CALM, LONG_TOPIC

DELAYS = "config/delayOffset.json"
DELIVERY_LAWS = (*(f"DLY-{number}" for number in range(1, 11)), "REC-1", "RUN-1")
DELAYED = replace(
    CALM,
    kinds=often(
        ("delay", 12),
        ("put", 2),
        ("burst", 1),
        ("pull", 1),
        ("service", 3),
        ("clock", 2),
        ("damage", 1),
        ("restart", 2),
        ("crash", 2),
    ),
    kept=("delay",),
    addresses=often(
        (Address("T0", 0), 5),
        (Address("T0", 1), 2),
        (Address("T1", 0), 1),
        (Address(LONG_TOPIC, 3), 1),
    ),
    labels=often(
        (Label(), 3),
        (Label(tags="TagA", keys="k1"), 2),
        (Label(delay_level=1), 2),
        (Label(delay_level=19, tags="Aa"), 1),
        (Label(delay_level=2, wait_store_ok=False, flag=7), 1),
        (Label(delay_level=1, transaction="commit", reconsume_times=3), 1),
        (Label(delay_level=1, transaction="prepared"), 1),
        (Label(delay_level=1, ipv6="both"), 1),
    ),
    sizes=often((Size(extra=16), 6), (Size(extra=333), 2), (Size(parts=3), 1)),
    services=often(
        ("reput", 3),
        ("flush_commit_log", 2),
        ("deliver_delayed", 4),
        ("persist_delay_offset", 3),
        ("checkpoint", 1),
    ),
    service_times=often((1, 6), (2, 1)),
    clock_steps_ms=Numbers((1000, 5000, 999, 1, 100, 10_000, -1000, 2000), 8000),
    crash_kinds=often(("power_loss", 3), ("process_kill", 2)),
    survivor_kinds=often(("none", 2), ("all", 1), ("prefix", 3), ("hashed", 4)),
    faults=often(
        (DiskFault("create", "ENOSPC", path="config"), 2),
        (DiskFault("write", "ENOSPC", path="config", written=9), 2),
        (DiskFault("sync", "EIO", path="config"), 2),
        (DiskFault("remove", "EIO", path="config"), 1),
        (DiskFault("read", "EIO", path="commitlog"), 4),
        (DiskFault("write", "EIO", path="commitlog"), 1),
        (DiskFault("create", "ENOSPC", path="commitlog"), 1),
        (DiskFault("sync", "EIO", path="commitlog"), 1),
    ),
    damage_targets=often(
        ((DELAYS, "truncate"), 3),
        ((DELAYS, "zero"), 2),
        ((DELAYS, "delete"), 2),
        ((DELAYS, "reword"), 3),
        ((f"{DELAYS}.bak", "truncate"), 2),
        ((f"{DELAYS}.bak", "delete"), 1),
    ),
    damage_offsets=Numbers((0, 1, 40, 90, -1), 120),
    damage_sizes=(0, 1, 8),
    damages_a_stop=often((1, 3), (2, 1)),
    schedules=often(
        (Schedule(depth=2, steps=12), 6),
        (Schedule("pct", depth=3, steps=40), 2),
        (Schedule("pct", depth=3, steps=400, grain="lines"), 1),
    ),
    delay_levels=often((1, 6), (2, 3), (3, 1), (18, 1), (30, 1)),
)
FEW = "3s 1m"
FALLING = "1h 2m 10s 1s 0s"
ALIKE = "2s 2s 1s 2s"
LONG = "7d"
MANY = "1s 4s 9s 1m 1s 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h 12h 1d 3d"
AS_MANY = "2s 4s 9s 20s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 3h"
"""Delay levels of a broker's own; the last are as many as RocketMQ's."""
OF_A_FEW_LEVELS = Setup(delivers_delayed=True, message_delay_level=FEW)
STORES = often(
    (Setup(delivers_delayed=True), 4),
    (Setup(delivers_delayed=True, disk_profile="posix_min"), 4),
    (Setup(delivers_delayed=True, disk_profile="btrfs"), 1),
    (Setup(delivers_delayed=True, disk_profile="xfs"), 1),
    (Setup(delivers_delayed=True, disk_profile="kill9"), 1),
    (Setup(8192, 7, "SYNC_FLUSH", delivers_delayed=True), 2),
    (Setup(16384, 40, delivers_delayed=True), 1),
    (Setup(delivers_delayed=True, queue_ext_size=256), 1),
    (Setup(delivers_delayed=True, index_slots=8, index_entries=24), 1),
    (Setup(delivers_delayed=True, transient_store_pool=True), 1),
    (Setup(delivers_delayed=True, prop_crc=True, preallocate=True), 1),
    (replace(OF_A_FEW_LEVELS, disk_profile="posix_min"), 2),
    (replace(OF_A_FEW_LEVELS, queue_ext_size=256), 2),
    (replace(OF_A_FEW_LEVELS, index_slots=8, index_entries=24), 1),
    (Setup(delivers_delayed=True, message_delay_level=FALLING, prop_crc=True), 1),
    (Setup(8192, 7, delivers_delayed=True, message_delay_level=ALIKE), 1),
    (Setup(8192, 7, "SYNC_FLUSH", delivers_delayed=True, message_delay_level=LONG), 1),
    (Setup(16384, 40, delivers_delayed=True, message_delay_level=MANY), 2),
    (Setup(delivers_delayed=True, message_delay_level=MANY), 1),
    (Setup(delivers_delayed=True, message_delay_level=AS_MANY), 1),
)

DELAYING = (
    Scenario(
        name="delayed",
        sentence="messages wait for their delay level's time and are delivered, with "
        "crashes, failing calls and a clock that is set back at any step of "
        "it",
        space=DELAYED,
        setups=STORES,
        required_probes=(
            "config_file.load.backup",
            "delayed_message.clamped",
            "delayed_message.undeliverable",
            "schedule.delivered",
            "schedule.waits",
            "schedule.clock_went_back",
            "schedule.failed",
            "schedule.persist.held_back",
        ),
        required_laws=DELIVERY_LAWS,
    ),
)
"""What `catalogue` lists of them."""
