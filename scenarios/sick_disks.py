"""Disks that spoil what they were given and say nothing: lost and misdirected pages.

Source: rule E6 of the disk fault model.
"""

from __future__ import annotations

from dataclasses import replace

from models.ops import DiskFault
from models.program import Setup
from scenarios.message_scenarios import with_options
from scenarios.rotting import SERVING
from scenarios.scenario import Scenario
from scenarios.space import Size, often
from scenarios.spaces import BREAKING, CORE_LAWS, setups_on

_LOST = tuple(
    DiskFault("lose", "EIO", times, path, after, lasts)
    for path in ("commitlog", "consumequeue", "checkpoint", "")
    for times, after, lasts in ((1, 0, False), (1, 1, False), (2, 0, False))
)
_MISDIRECTED = tuple(
    DiskFault("misdirect", "EIO", 1, path, after, written=away)
    for path in ("commitlog", "consumequeue", "checkpoint")
    for after, away in ((0, 0), (0, 1), (1, 2), (0, 3))
)

_SPACE = replace(
    BREAKING,
    kinds=often(
        ("put", 5),
        ("burst", 6),
        ("service", 8),
        ("pull", 2),
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
    interrupted=often(("put", 3), ("service", 6), ("shutdown", 3), ("restart", 2)),
    crash_kinds=often(("power_loss", 4), ("process_kill", 1)),
    survivor_kinds=often(("none", 3), ("all", 2), ("prefix", 2), ("hashed", 2)),
    faults=(
        *_LOST,
        *_MISDIRECTED,
        DiskFault("evict", "EIO"),
        DiskFault("evict", "EIO"),
    ),
)

SICK_DISKS = (
    Scenario(
        name="lost_writes",
        sentence="of what a sync has made durable, pages are lost or lie in another "
        "place, and memory forgets them or power is lost",
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
            ),
        ),
        required_probes=(
            "message_store.load.refused",
            "checkpoint.load.mark",
            "consume_queue.put.built",
        ),
        required_invariants=CORE_LAWS,
    ),
)
