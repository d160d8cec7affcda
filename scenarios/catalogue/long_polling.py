"""Scenarios of pulls that the broker holds until a message comes."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import DiskFault
from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.concurrency import SCHEDULES
from crashmq.scenarios.catalogue.consuming import PROGRESS
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.space import Address, Label, Size, often

HELD = replace(
    PROGRESS,
    kinds=often(
        ("hold", 16),
        ("progress", 1),
        ("put", 2),
        ("burst", 1),
        ("service", 2),
        ("restart", 1),
        ("crash", 1),
        ("clock", 1),
    ),
    kept=("hold",),
    addresses=often(
        (Address("T0", 0), 6),
        (Address("T0", 1), 2),
        (Address("T1", 0), 1),
    ),
    labels=often(
        (Label(), 5),
        (Label(tags="TagA"), 4),
        (Label(tags="TagB"), 2),
        (Label(tags="Aa"), 1),
        (Label(tags="BB"), 1),  # the same hash as Aa
        (Label(keys="key-1 key-2", wait_store_ok=False), 1),
        (Label(properties="a=6"), 1),
        (Label(tags="TagA", properties="a=9;b=x"), 1),
    ),
    sizes=often((Size(extra=16), 6), (Size(extra=60), 2), (Size(parts=4), 1)),
    pull_tags=often(
        *(("*", 12), ("TagA", 6), ("TagB || TagA", 2), ("Aa", 2), ("TagA || *", 1)),
        *(("||", 1), (" ", 1), ("TagB||", 1)),
    ),
    pull_counts=often((32, 6), (1, 2), (0, 1)),
    services=often(
        ("reput", 3),
        ("flush_commit_log", 1),
        ("persist_consumer_offset", 1),
        ("pull_request_hold", 3),
    ),
    faults=often(
        (DiskFault("write", "EIO", path="consumequeue"), 6),
        (DiskFault("create", "ENOSPC", path="consumequeue"), 2),
        (DiskFault("write", "EIO", path="index"), 3),
        (DiskFault("create", "ENOSPC", path="index"), 2),
        (DiskFault("write", "EIO", path="consumequeue_ext"), 1),
        (DiskFault("read", "EIO", times=2), 4),
    ),
    schedules=(*PROGRESS.schedules * 2, *SCHEDULES),
)
PLAIN = Setup(keeps_progress=True)
INDEXING = replace(PLAIN, index_slots=7, index_entries=9)
LIGHTS = replace(PLAIN, multi_dispatch=True)
SYNC = replace(PLAIN, log_file_size=8192, queue_file_units=7, flush_mode="SYNC_FLUSH")
STORES = often(
    (PLAIN, 5),
    (LIGHTS, 4),
    (INDEXING, 5),
    (replace(INDEXING, multi_dispatch=True, queue_file_units=40), 1),
    (replace(LIGHTS, log_file_size=8192, queue_ext_size=600), 2),
    (SYNC, 3),
    (replace(SYNC, multi_dispatch=True, index_slots=7, index_entries=9), 1),
    (replace(PLAIN, log_file_size=16384, queue_file_units=40), 1),
    (replace(PLAIN, transient_store_pool=True), 1),
    (replace(PLAIN, queue_file_units=2), 1),
    (replace(PLAIN, long_polling=False), 6),
    (replace(PLAIN, takes_lite_pulls=False), 2),
    (replace(PLAIN, lets_read=False), 1),
    (replace(PLAIN, filters=True, queue_ext_size=512), 4),
    (replace(PLAIN, filters=True, filters_retries=True, queue_ext_size=100), 1),
    (replace(PLAIN, duplicates=True), 2),
    (replace(INDEXING, duplicates=True, flush_mode="SYNC_FLUSH"), 1),
)

LONG_POLLING = (
    Scenario(
        name="long_polling",
        sentence="pulls are held at the broker until messages come, with dispatch, "
        "timeouts, resets, shutdowns, crashes and failing calls",
        space=HELD,
        setups=STORES,
        required_probes=(
            "pull_message.committed",
            "pull_message.reset",
            "pull_request_hold.came_meanwhile",
            "pull_request_hold.ended",
            "pull_request_hold.swept",
            "pull_request_hold.timed_out",
            "pull_request_hold.unmatched",
            "pull_request_hold.woken",
            "reput.arrived.light",
        ),
        required_laws=(*(f"LP-{number}" for number in range(1, 11)), "RD-1", "RUN-1"),
    ),
)
"""What `catalogue` lists of them."""
