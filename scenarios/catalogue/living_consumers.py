"""Scenarios of living consumers: they join, share queues, pull, work, end and die."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import StartConsumer, Strategy
from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.consuming import PROGRESS
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.space import Address, Label, Numbers, Size, often

TOPICS = "T0,T1"
CLIENTS = ("c0", "c1", "c2", "c3", "c4")


def _of_group(
    group: str, clients: tuple[str, ...], strategy: Strategy = "AVG"
) -> tuple[StartConsumer, ...]:
    return tuple(
        [StartConsumer(one, group, TOPICS, strategy=strategy) for one in clients]
    )


def _in_order(group: str, clients: tuple[str, ...]) -> tuple[StartConsumer, ...]:
    return tuple(
        [StartConsumer(one, group, TOPICS, is_orderly=True) for one in clients]
    )


WORKING = replace(
    PROGRESS,
    kinds=often(
        ("consume", 14),
        ("put", 3),
        ("burst", 3),
        ("service", 2),
        ("restart", 1),
    ),
    kept=("consume", "burst"),
    addresses=often(
        (Address("T0", 0), 4), (Address("T0", 1), 3), (Address("T1", 1), 2)
    ),
    labels=often((Label(), 4), (Label(tags="TagA"), 1)),
    sizes=often((Size(extra=16), 4), (Size(extra=200), 2)),
    burst_sizes=often((2, 3), (3, 4), (5, 3), (20, 1)),
    groups=("g",),
    consumers=(
        *_of_group("g", ("c0", "c1", "c2")),
        *_of_group("h", ("c3",)),
        *_in_order("o", ("c4", "c5", "c6")),
    ),
    services=often(
        ("reput", 3),
        ("flush_commit_log", 1),
        ("persist_consumer_offset", 2),
        ("pull_request_hold", 2),
        ("client_housekeeping", 1),
    ),
    progress_offsets=Numbers((0, 1, 2, 5), 12),
    consumed=often(("success", 6), ("later", 1), ("raises", 1)),
)
SHARING = replace(
    WORKING,
    kinds=often(("consume", 16), ("burst", 3), ("service", 1), ("restart", 1)),
    kept=("consume", "burst"),
    consumers=(
        *_of_group("g", CLIENTS[:4], "AVG_BY_CIRCLE"),
        *_of_group("h", CLIENTS[4:], "CONSISTENT_HASH"),
        *_of_group("h", ("c5", "c6"), "CONSISTENT_HASH"),
    ),
)
TELLING_ALL = replace(
    WORKING,
    kinds=often(
        ("consume", 14), ("put", 2), ("burst", 3), ("service", 2), ("crash", 1)
    ),
    consumers=(
        StartConsumer("c0", "b", TOPICS, broadcasts=True),
        StartConsumer("c1", "b", TOPICS, broadcasts=True),
        StartConsumer("c2", "b", TOPICS, "last", broadcasts=True),
    ),
    groups=("b",),
)
CRASHING = replace(
    WORKING,
    kinds=often(
        ("consume", 14), ("put", 2), ("burst", 3), ("service", 3), ("crash", 4)
    ),
    kept=("consume", "burst", "crash"),
)
STORES = often(
    (Setup(keeps_progress=True), 3),
    (Setup(keeps_progress=True, pull_batch=3, pull_threshold=4), 3),
    (Setup(keeps_progress=True, topic_queues=5, disk_profile="posix_min"), 2),
    (Setup(8192, 7, "SYNC_FLUSH", keeps_progress=True, pull_threshold=2), 2),
    (Setup(keeps_progress=True, delivers_delayed=True, topic_queues=1), 2),
    (Setup(16384, 40, keeps_progress=True, delivers_delayed=True, pull_batch=4), 2),
)

LIVING_CONSUMERS = (
    Scenario(
        name="rebalance",
        sentence="consumers join and leave, by different strategies, and share out "
        "the queues of their groups",
        space=SHARING,
        setups=STORES,
        required_probes=(),
        required_laws=("CON-1", "CON-2", "CON-3", "CON-7"),
    ),
    Scenario(
        name="broadcast",
        sentence="each consumer of a group gets every message, keeps its offsets in a "
        "file of its own, and dies or loses power",
        space=TELLING_ALL,
        setups=STORES,
        required_probes=(),
        required_laws=("CON-2", "CON-3", "CON-4", "CON-6", "CON-7", "OFS-8"),
    ),
    Scenario(
        name="consumer_crash",
        sentence="consumers are killed and their broker crashes, while they pull and "
        "work off messages",
        space=CRASHING,
        setups=STORES,
        required_probes=(),
        required_laws=("CON-1", "CON-2", "CON-4", "CON-7", "CON-9", "OFS-4"),
    ),
)
"""What `catalogue` lists of them."""
