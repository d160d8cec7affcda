"""Spaces and setups that several scenarios share; a scenario adds to them.

Small log files (4 KiB hold some twenty small messages) and queue files of ten units
make files roll within one episode, so recovery meets more than one.
"""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.limits import PUT_TIMES_MS
from crashmq.models.ops import DiskFault, Schedule
from crashmq.models.program import Setup
from crashmq.scenarios.programs.space import (
    ALL_TIMES,
    Address,
    AtActions,
    Kind,
    Label,
    Numbers,
    Size,
    Space,
    often,
)

LONG_TOPIC = "a-topic-whose-name-is-as-long-as-some-retry-topics-are"
TORN_UNITS = (8, 12, 16)
"""Bytes of a queue's unit up to before its size, before its tags code, and in that."""

TORN_TOPICS = (88 + 16 + 1, 88 + 16 + 40, 88 + 60 + 2)
"""Bytes of a record up to during its topic, for the commonest bodies: header, body and
CRC are whole there, and only the lengths show that the record is not."""

AFTER = 1000
"""A disk action no op comes to, so that what is to happen happens right after it."""

CALM = Space(
    kinds=often(
        ("put", 6),
        ("burst", 4),
        ("service", 7),
        ("pull", 3),
        ("restart", 2),
        ("clock", 1),
        ("interleave", 1),
        ("look", 1),
        ("search", 1),
    ),
    kept=("burst", "restart"),
    addresses=often(
        (Address("T0", 0), 10),
        (Address("T0", 1), 3),
        (Address("T1", 0), 2),
        (Address(LONG_TOPIC, 3), 2),
    ),
    labels=often(
        (Label(), 6),
        (Label(tags="TagA"), 3),
        (Label(tags="TagB", keys="key-1"), 1),
        (Label(wait_store_ok=False), 2),
        (Label(tags="已付款", flag=7, ipv6="both", reconsume_times=2), 1),
        (Label(transaction="prepared"), 1),
    ),
    sizes=often(
        (Size(extra=16), 8),
        (Size(extra=0), 1),
        (Size(extra=1), 1),
        (Size(extra=60), 6),
        (Size(extra=333), 3),
        (Size(extra=1000), 2),
        (Size(parts=8), 2),
        (Size(parts=4), 2),
        (Size(parts=4, extra=1), 1),
        (Size(parts=2), 1),
        (Size(parts=2, extra=1), 1),
        (Size(parts=1), 1),
        (Size(parts=1, extra=1), 1),
    ),
    burst_sizes=often((2, 2), (3, 3), (5, 3), (8, 2), (11, 2), (21, 1)),
    pull_offsets=Numbers((0, 0, 0, 1, 2, 3, 5, 9, 10, 11, -1, 1000), 24),
    pull_counts=often((32, 4), (1, 2), (3, 1)),
    served_first=(False, True),
    services=often(
        ("reput", 5),
        ("flush_commit_log", 3),
        ("flush_consume_queue", 2),
        ("checkpoint", 2),
    ),
    service_times=often((1, 6), (2, 2), (5, 2), (20, 1)),
    clock_steps_ms=Numbers((1, 0, 10, 500, 1000, 3000, 10_000, 60_000), 5000),
    orderly_stops=(False, True),
    interrupted=often(("put", 4), ("service", 5), ("shutdown", 2), ("restart", 2)),
    at_actions=AtActions(
        put=Numbers((1, 1, 1, 2, 3, 4), 8, 1),
        service=Numbers((1, 1, 2, 3, 4, 5, 6, 8, 10), 40, 1),
        shutdown=Numbers((1, 2, 3, 4, 5, 6, 8, 10, AFTER, AFTER), 24, 1),
        restart=Numbers(tuple(range(1, 13)), 33, 1),
    ),
    crash_kinds=(),
    survivor_kinds=(),
    survivor_numbers=Numbers((0, 1, 2, 3, 5, 8, 13, 21), 1 << 16),
    cuts=Numbers(
        (*(0, 0, 1), *TORN_UNITS, *(20, 31), *TORN_TOPICS * 2, *(511, 512, 2000)), 256
    ),
    recovery_crashes=often((0, 6), (1, 3), (2, 1)),
    faults=(),
    damage_targets=(),
    damage_offsets=Numbers((0, 1, 7, 20, 21, 180, 199, 512, 4000, 4088), 1 << 14),
    damage_sizes=(0,),
    damages_a_stop=often((1, 5), (2, 2), (3, 1)),
    look_offsets=Numbers((0, 131, 262, 1, 4096, 8192, -1, 1 << 40), 1 << 13),
    search_times_ms=Numbers((0, 1, 10, 500, 3000, 70_000, -1), 12_000),
)
"""Puts, pulls, services and orderly restarts; the other spaces say what they add."""

BREAKING = replace(
    CALM,
    kinds=often(
        ("put", 6),
        ("burst", 5),
        ("service", 8),
        ("pull", 2),
        ("crash", 4),
        ("restart", 1),
        ("clock", 1),
        ("interleave", 1),
        ("fault", 1),
    ),
    kept=("burst", "crash"),
    crash_kinds=("process_kill",),
    faults=(
        DiskFault("sync", "EIO"),
        DiskFault("create", "ENOSPC"),
        DiskFault("sync", "EIO", 3),
        DiskFault("write", "EIO"),
        DiskFault("create", "EIO"),
        DiskFault("evict", "EIO"),
        DiskFault("sync", "EIO", path="consumequeue"),
        DiskFault("sync", "EIO", path="checkpoint"),
        DiskFault("sync", "EIO", after=1),
        DiskFault("write", "EIO", written=40),
        DiskFault("write", "ENOSPC", lasts=True),
        DiskFault("write", "EINTR", path="consumequeue", after=2),
        DiskFault("sync", "EIO", lasts=True),
        DiskFault("remove", "EIO"),
    ),
)


INDEXED = replace(
    BREAKING,
    kinds=often(
        ("put", 6),
        ("burst", 4),
        ("service", 8),
        ("query", 6),
        ("together", 3),
        ("crash", 3),
        ("damage", 2),
        ("restart", 1),
        ("clock", 1),
        ("interleave", 1),
        ("fault", 2),
    ),
    kept=("burst", "query", "crash"),
    together=often(
        ("query", 5), ("put", 4), ("service", 5), ("pull", 1), ("shutdown", 1)
    ),
    together_counts=often((2, 3), (3, 2)),
    schedules=often(
        (Schedule("preempt", depth=1, steps=24), 2),
        (Schedule("pct", depth=2, steps=64), 2),
        (Schedule("pct", depth=2, steps=120, grain="lines"), 1),
    ),
    labels=often(
        (Label(keys="Aa"), 3),
        (Label(keys="BB"), 2),  # the same hash as Aa
        (Label(), 2),
        (Label(keys="Aa BB"), 2),
        (Label(keys="one two three four five six seven"), 2),
        (Label(tags="TagA", keys="two  two "), 1),
        (Label(keys="AaAa BBBB AaBB", wait_store_ok=False), 1),
        (Label(keys="Aa", transaction="rollback"), 1),
        (Label(keys="two", transaction="prepared"), 1),
        (Label(keys="a\tkey one\u00a0key"), 1),  # keys end at blanks only
    ),
    services=often(
        ("reput", 6),
        ("flush_commit_log", 2),
        ("flush_consume_queue", 1),
        ("checkpoint", 2),
        ("flush_index", 3),
    ),
    at_actions=AtActions(
        put=Numbers((1, 1, 2, 3), 8, 1),
        service=Numbers((1, 2, 3, 4, 5, 6, 8, 10), 60, 1),
        shutdown=Numbers((1, 2, 3, 4, 5, 6, 8, 10, AFTER, AFTER), 24, 1),
        restart=Numbers(tuple(range(1, 13)), 33, 1),
    ),
    crash_kinds=often(("power_loss", 1), ("process_kill", 1)),
    survivor_kinds=often(("none", 2), ("all", 1), ("prefix", 2), ("hashed", 3)),
    faults=(
        DiskFault("write", "EIO"),
        DiskFault("create", "ENOSPC"),
        DiskFault("sync", "EIO"),
        DiskFault("write", "EIO", 3),
        DiskFault("create", "ENOSPC", 3),
        DiskFault("write", "ENOSPC", path="index"),
        DiskFault("write", "EIO", path="index", after=1),
        DiskFault("create", "EIO", path="index"),
        DiskFault("sync", "EIO", path="index"),
    ),
    damage_targets=often(
        (("index[-1]", "truncate"), 3),
        (("index[-1]", "zero"), 3),
        (("index[-1]", "flip"), 3),
        (("index[-1]", "repeat"), 2),
        (("index[-1]", "delete"), 2),
        (("index[0]", "delete"), 2),
        (("index[0]", "zero"), 2),
        (("index[0]", "flip"), 2),
        (("index[1]", "truncate"), 1),
        (("index[1]", "delete"), 1),
        (("consumequeue[0]", "delete"), 1),
        (("consumequeue_ext[0]", "zero"), 1),
        (("consumequeue_ext[0]", "flip"), 1),
        (("consumequeue_ext[-1]", "truncate"), 1),
        (("consumequeue_ext[-1]", "delete"), 1),
        (("consumequeue[-1]", "zero"), 1),
        (("commitlog[-1]", "truncate"), 1),
        (("checkpoint", "delete"), 1),
    ),
    damage_offsets=Numbers((0, 8, 32, 36, 40, 44, 60, 72, 92, 100, 112), 512),
    damage_sizes=(0, 1, 2, 4, 20),
    query_keys=(
        *("Aa", "BB", "two", "seven", "AaAa", "BBBB", "AaBB", "nobody", "Aa BB"),
        *("a\tkey", "one\u00a0key"),
    ),
    query_counts=often((32, 3), (64, 2), (1, 2), (3, 2), (1000, 1), (0, 1)),
    query_times_ms=often(
        (ALL_TIMES, 4),
        ((0, 500), 1),
        ((500, ALL_TIMES[1]), 1),
        ((1, 999), 1),
        ((1000, 2999), 1),
        ((2000, 60_000), 1),
        ((0, 0), 1),
        ((5, 4), 1),
    ),
)
"""Keys, some of the same hash, in files of a few entries."""


def setups_on(disk_profile: str) -> tuple[Setup, ...]:
    """Stores of several sizes and both flush modes on one kind of disk."""
    small = Setup(disk_profile=disk_profile)
    return often(
        (small, 4),
        (replace(small, flush_mode="SYNC_FLUSH"), 3),
        (replace(small, queue_file_units=7), 1),
        (replace(small, queue_file_units=2), 1),
        (replace(small, queue_file_units=40, flush_mode="SYNC_FLUSH"), 1),
        (replace(small, log_file_size=8192), 1),
        (replace(small, log_file_size=16384, queue_file_units=7), 1),
        (replace(small, max_message_size=1024), 1),
        (replace(small, queue_ext_size=600, log_file_size=8192), 1),
        (replace(small, read_window=600, queue_file_units=7, checks_crc=True), 1),
        (replace(small, read_window=64), 1),
    )


LOSSY_DISKS = (
    *setups_on("ext4_ordered") * 2,
    *setups_on("posix_min") * 2,
    *setups_on("xfs"),
    *setups_on("btrfs"),
    *setups_on("ext4_data"),
    *setups_on("lying_disk"),
)
"""Stores on every disk that loses what was not synced; the mildest and the wildest
are the likeliest."""

TORN_DISKS = tuple(
    replace(setup, prop_crc=bool(number % 2))
    for number, setup in enumerate(setups_on("nvme_torn"))
)
"""Stores on a disk that tears sectors; a CRC over each record shows what it tore."""

TORN_BLOCKS = tuple(
    replace(setup, prop_crc=bool(number % 2))
    for number, setup in enumerate(setups_on("physical_4k"))
)
"""The same on one whose sectors have 4 KiB, and spoil what was durable in them."""

CORE_LAWS = ("CL-1", "CQ-1", "CQ-4", "FL-1", "PUT-1", "RD-1", "REC-1", "REC-2", "REC-4")
"""What no scenario can do without having judged."""

WINDOWED = replace(
    BREAKING,
    kinds=often(
        ("put", 2),
        ("burst", 8),
        ("service", 12),
        ("pull", 2),
        ("crash", 3),
        ("restart", 2),
        ("clock", 3),
        ("fault", 1),
    ),
    kept=("burst", "service", "clock"),
    sizes=often(
        (Size(extra=333), 3),
        (Size(parts=4), 2),
        (Size(parts=2, extra=1), 2),
        (Size(parts=1), 2),
        (Size(extra=16), 2),
    ),
    clock_steps_ms=Numbers((3000, 60_000, 500), 5000),
    service_times=often((1, 2), (5, 2), (20, 1)),
    crash_kinds=("process_kill", "power_loss"),
    survivor_kinds=often(("none", 2), ("all", 1), ("prefix", 3), ("hashed", 4)),
)
"""Many files, filled by bursts, and time for the checkpoint to tell of them."""

WINDOWED_STORES = tuple(
    replace(setup, start_window=window)
    for setup in setups_on("ext4_ordered")
    for window in (0, 4096, 9000)
)
"""Stores whose starts leave old log files unread."""

JUMPING = replace(
    CALM,
    kinds=often(
        ("put", 6),
        ("burst", 3),
        ("service", 7),
        ("pull", 1),
        ("search", 4),
        ("restart", 2),
        ("crash", 2),
        ("clock", 6),
    ),
    kept=("put", "clock", "search"),
    services=(*CALM.services, "commit"),
    clock_steps_ms=Numbers(
        (-1, 1, 0, -10_000, 10_000, -86_400_000, 86_400_000, -(10**12), 10**12), 5000
    ),
    search_times_ms=Numbers(
        (0, 1, 10_000, -10_000, 86_400_000, 10**12, -(10**12)), 20_000, -10_000
    ),
    crash_kinds=("process_kill", "power_loss"),
    survivor_kinds=often(("none", 1), ("prefix", 2), ("hashed", 2)),
)
"""A wall clock that is set back and forth, by moments and by years."""

FLUSHING = replace(
    BREAKING,
    kinds=often(
        ("put", 6),
        ("burst", 3),
        ("service", 7),
        ("pull", 2),
        ("crash", 3),
        ("restart", 1),
        ("clock", 3),
        ("interleave", 5),
        ("fault", 2),
    ),
    kept=("put", "interleave"),
    labels=often((Label(), 6), (Label(wait_store_ok=False), 4), (Label("TagA"), 1)),
    sizes=often(
        (Size(extra=16), 5),
        (Size(extra=333), 3),
        (Size(extra=1000), 6),
        (Size(extra=3000), 2),
        (Size(parts=4), 3),
        (Size(parts=2), 2),
        (Size(parts=2, extra=1), 1),
        (Size(parts=1), 1),
    ),
    clock_steps_ms=Numbers((1, 10, 200, 500, 1000, 2000, 5000, 10_000), 5000),
    services=often(
        ("flush_commit_log", 5),
        ("reput", 4),
        ("commit", 3),
        ("allocate", 4),
        ("flush_consume_queue", 2),
        ("checkpoint", 2),
    ),
    interrupted=often(("put", 6), ("service", 5), ("shutdown", 2), ("restart", 1)),
    interleaved=often(
        ("put", 4), ("service", 3), ("stall", 7), ("pull", 1), ("shutdown", 1)
    ),
    crowded=(False, True),
    stalls_ms=Numbers((5001, 20_000, 6000, 60_000, 5000, 4999, *PUT_TIMES_MS), 8000),
    at_actions=CALM.at_actions._replace(put=Numbers((1, 2, 2, 3, 2, 4), 8, 1)),
    crash_kinds=("process_kill", "power_loss"),
    survivor_kinds=often(("none", 2), ("all", 1), ("prefix", 3), ("hashed", 4)),
)
"""What each flush mode promises, with callers at the same time and a disk that stalls.
"""

_TIME: tuple[Kind, ...] = ("clock",) * 3
BUFFERING = replace(
    FLUSHING,
    kinds=(*FLUSHING.kinds, *_TIME),
    paced=(False, True, True),
    clock_steps_ms=Numbers((*FLUSHING.clock_steps_ms.special, -3000), 5000),
    services=often(
        ("commit", 6),
        ("reput", 3),
        ("flush_commit_log", 6),
        ("allocate", 2),
        ("flush_consume_queue", 1),
        ("checkpoint", 4),
    ),
    interrupted=often(("put", 4), ("service", 7), ("shutdown", 2), ("restart", 1)),
    faults=often(
        (DiskFault("write", "EIO"), 3),
        (DiskFault("write", "EIO", 3), 1),
        (DiskFault("sync", "EIO"), 2),
        (DiskFault("create", "ENOSPC"), 1),
    ),
)
"""The same of a store with write buffers, whose commits meet the failing disk.

Time passes between its puts, so that what waits in a buffer is younger than the rest;
and now and then the clock is set back, so that it may wait for a time to come.
"""

FLUSHED = Setup(preallocate=True)
SYNCED = replace(FLUSHED, flush_mode="SYNC_FLUSH")
POOLED = replace(FLUSHED, transient_store_pool=True)
