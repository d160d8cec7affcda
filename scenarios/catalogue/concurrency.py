"""Scenarios in which callers and services run at the same time, by many schedules."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import Schedule
from crashmq.models.program import HOUR_MS, Setup
from crashmq.scenarios.catalogue.expiry import KEEPING
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.catalogue.topic_deletion import DELETIONS
from crashmq.scenarios.programs.space import Address, Label, Numbers, Size, often
from crashmq.scenarios.programs.spaces import (
    CORE_LAWS,
    FLUSHED,
    FLUSHING,
    POOLED,
    SYNCED,
)

SCHEDULES = often(
    (Schedule("pct", depth=3, steps=24), 3),
    (Schedule("pct", depth=2, steps=64), 2),
    (Schedule("pct", depth=4, steps=400, grain="lines"), 2),
    (Schedule("pct", depth=2, steps=120, grain="lines"), 2),
    (Schedule("pct", depth=2, steps=40, grain="lines"), 2),
    (Schedule("preempt", depth=1, steps=24), 2),
    (Schedule("preempt", depth=3, steps=48), 1),
)
"""Most races need one or two switches; few ops make more than some dozens of points, or
some hundreds of lines."""

EARLY = often(
    (Schedule("preempt", depth=1, steps=10), 5),
    (Schedule("pct", depth=2, steps=10), 2),
    (Schedule("pct", depth=3, steps=24), 1),
    (Schedule("pct", depth=2, steps=60, grain="lines"), 1),
)
"""Of two rounds one is stopped early, mostly once, until the other one has ended."""

TOGETHER = replace(
    FLUSHING,
    kinds=often(
        ("together", 9),
        ("put", 3),
        ("burst", 3),
        ("service", 4),
        ("pull", 1),
        ("crash", 1),
        ("restart", 1),
        ("clock", 2),
    ),
    kept=("put", "together"),
    addresses=often(
        (Address("T0", 0), 6), (Address("T0", 1), 1), (Address("T1", 0), 1)
    ),
    pull_offsets=Numbers((0, 0, 0, 0, 1, 2, 3, 5, 9), 24),
    labels=often(
        (Label(), 6),
        (Label(wait_store_ok=False), 2),
        (Label("TagA", "Aa"), 3),
        (Label(multi_dispatch="%LMQ%a,%LMQ%b"), 2),
        (Label(transaction="prepared"), 1),
    ),
    sizes=often(
        (Size(extra=16), 2),
        (Size(extra=1000), 2),
        (Size(parts=4), 2),
        (Size(parts=2), 3),
        (Size(parts=1), 3),
    ),
    burst_sizes=often((2, 2), (3, 3), (5, 2), (17, 1)),
    batch_counts=(2, 3),
    services=often(
        ("flush_commit_log", 6),
        ("reput", 4),
        ("checkpoint", 2),
        ("commit", 3),
        ("allocate", 6),
        ("flush_consume_queue", 2),
    ),
    together=often(
        ("put", 10),
        ("service", 9),
        ("pull", 3),
        ("batch", 1),
        ("look", 2),
        ("search", 2),
        ("query", 2),
        ("wait", 1),
        ("shutdown", 2),
    ),
    query_keys=("Aa", "BB"),
    query_counts=often((32, 3), (1, 1)),
    together_counts=often((2, 2), (3, 6), (4, 4), (6, 1)),
    schedules=SCHEDULES,
)
"""Puts, dispatch, flushes and reads for one another; cleaners are for the next one."""

TOGETHER_WITH_CLEANERS = replace(
    TOGETHER,
    kinds=often(
        ("together", 6),
        ("burst", 5),
        ("expire", 3),
        ("service", 2),
        ("query", 1),
        ("crash", 1),
        ("restart", 1),
    ),
    kept=("burst", "together", "expire"),
    burst_sizes=often((3, 1), (5, 2), (9, 3), (17, 1)),
    services=often(
        ("clean_commit_log", 2),
        ("clean_consume_queue", 2),
        ("checkpoint", 4),
        ("reput", 3),
        ("flush_commit_log", 4),
        ("flush_consume_queue", 2),
        ("flush_index", 1),
    ),
    together=often(
        ("service", 9),
        ("pull", 6),
        ("put", 3),
        ("look", 2),
        ("search", 1),
        ("query", 1),
        ("delete", 1),
        ("shutdown", 2),
    ),
    look_offsets=Numbers((0, 4096, 8192, 12288, 16384), 1 << 14),
    expiry_steps_ms=Numbers((2 * HOUR_MS, 3 * HOUR_MS, 25 * HOUR_MS), 8 * HOUR_MS),
)

CONTENDING = replace(
    TOGETHER_WITH_CLEANERS,
    kinds=often(("contend", 8), ("pull", 1), ("crash", 1), ("restart", 1)),
    kept=("contend",),
    services=often(
        ("clean_commit_log", 2),
        ("flush_commit_log", 4),
        ("checkpoint", 3),
        ("reput", 2),
        ("clean_consume_queue", 2),
        ("flush_consume_queue", 2),
        ("flush_index", 1),
        ("commit", 1),
        ("allocate", 1),
    ),
    schedules=EARLY,
)
"""All of it again and again: what two activities need to meet, and little else."""

OVERLAPPING = replace(
    TOGETHER_WITH_CLEANERS,
    kinds=often(("overlap", 8), ("crash", 1), ("restart", 1)),
    kept=("overlap",),
    deletions=DELETIONS,
    labels=often(
        (Label(), 2), (Label(wait_store_ok=False), 3), (Label("TagA", "Aa"), 1)
    ),
    sizes=often(
        (Size(extra=16), 5),
        (Size(extra=1000), 1),
        (Size(parts=2), 1),
        (Size(parts=1), 1),
    ),
)
"""Of two activities one is stopped once, at any point, until the other has ended."""

_OVERLAPPED = tuple(
    replace(
        setup,
        flush_least_pages=0,
        preallocate=True,
        disk_profile=disk,
        queue_file_units=2 if setup.cleans else units,  # or no file of theirs goes
        log_file_size=size,
    )
    for disk, units, size in (
        ("ext4_ordered", 10, 4096),
        ("posix_min", 2, 4096),
        ("ext4_ordered", 7, 8192),
        ("posix_min", 40, 4096),
        ("btrfs", 10, 16384),
    )
    for setup in (
        Setup(queue_ext_size=100),
        Setup(flush_mode="SYNC_FLUSH"),
        Setup(
            flush_mode="SYNC_FLUSH", queue_ext_size=100, index_slots=8, index_entries=4
        ),
        Setup(flush_mode="SYNC_FLUSH", transient_store_pool=True),
        Setup(transient_store_pool=True, queue_ext_size=100),
        Setup(multi_dispatch=True),
        replace(KEEPING, queue_ext_size=100),
        replace(KEEPING, flush_mode="SYNC_FLUSH", index_slots=8, index_entries=4),
    )
)

INTERLEAVING = (
    Scenario(
        name="interleavings",
        sentence="callers and services run at the same time, and a schedule may "
        "switch between them at any call or line",
        space=TOGETHER,
        setups=often(
            (FLUSHED, 1),
            (replace(FLUSHED, index_slots=3, index_entries=7), 2),
            (SYNCED, 1),
            (replace(SYNCED, multi_dispatch=True), 4),
            (replace(SYNCED, index_slots=8, index_entries=20), 5),
            (POOLED, 2),
            (replace(POOLED, flush_mode="SYNC_FLUSH", transient_store_buffers=1), 2),
            (replace(POOLED, log_file_size=16384, preallocate=False), 1),
            (replace(SYNCED, queue_file_units=7, multi_dispatch=True), 1),
            (replace(FLUSHED, log_file_size=8192, queue_file_units=40), 1),
        ),
        length=(12, 36),
        required_probes=(
            "flush.group.committed",
            "reput.dispatched",
            "allocate.ready",
        ),
        required_laws=(*CORE_LAWS, "FL-2", "FL-6", "PUT-4", "RD-5"),
    ),
    Scenario(
        name="interleaved_deletion",
        sentence="the log's first files are deleted while other activities read, "
        "dispatch, put and shut down, by a schedule",
        space=TOGETHER_WITH_CLEANERS,
        setups=often(
            (KEEPING, 2),
            (replace(KEEPING, flush_mode="SYNC_FLUSH"), 2),
            (replace(KEEPING, queue_file_units=2, delete_batch=1), 2),
            (replace(KEEPING, queue_file_units=2, delete_batch=10), 5),
            (replace(KEEPING, queue_file_units=7, multi_dispatch=True), 1),
            (replace(KEEPING, index_slots=8, index_entries=20, queue_ext_size=100), 4),
            (replace(KEEPING, index_slots=8, index_entries=4, queue_file_units=40), 3),
            (replace(KEEPING, log_file_size=8192, queue_file_units=40), 1),
            (replace(KEEPING, log_file_size=16384), 1),
        ),
        length=(12, 36),
        required_probes=(
            "clean_commit_log.deleted",
            "clean_consume_queue.deleted",
            "reput.dispatched",
        ),
        required_laws=(*CORE_LAWS, "DEL-1", "DEL-3", "PUT-4", "RD-5"),
    ),
    Scenario(
        name="contention",
        sentence="every service has work to do, and of two activities that begin, one "
        "is stopped until the other has ended",
        space=CONTENDING,
        setups=often(
            (KEEPING, 4),
            (replace(KEEPING, flush_mode="SYNC_FLUSH"), 1),
            (replace(KEEPING, queue_file_units=2, delete_batch=1), 1),
            (replace(KEEPING, queue_file_units=7, preallocate=True), 1),
            (replace(KEEPING, index_slots=8, index_entries=20, queue_ext_size=100), 1),
            (replace(KEEPING, index_slots=8, index_entries=4, queue_file_units=40), 1),
            (replace(KEEPING, transient_store_pool=True, preallocate=True), 1),
            (replace(KEEPING, multi_dispatch=True), 1),
            (replace(KEEPING, log_file_size=8192, queue_file_units=40), 1),
            (replace(KEEPING, log_file_size=16384), 1),
        ),
        length=(30, 60),
        required_probes=(
            "clean_commit_log.deleted",
            "clean_consume_queue.deleted",
            "reput.dispatched",
        ),
        required_laws=(*CORE_LAWS, "DEL-1", "DEL-3", "PUT-4", "RD-5"),
    ),
    Scenario(
        name="overlaps",
        sentence="two activities begin, one is stopped once while the other runs, and "
        "what the store reports as durable must be durable",
        space=OVERLAPPING,
        setups=_OVERLAPPED,
        length=(20, 50),
        required_probes=(
            "topic_deletion.deleted",
            "reput.dispatched",
            "flush.queues.thorough",
        ),
        required_laws=(*CORE_LAWS, "CP-9", "CP-12", "FL-9", "REC-10"),
    ),
)
"""What ``catalogue`` lists of them."""
