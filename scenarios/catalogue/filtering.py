"""Scenarios of groups that subscribe by expressions and pull filtered messages."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import DiskFault, ExpressionType, Schedule
from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.expressions import ALIKE, VALUES
from crashmq.scenarios.programs.space import Address, Label, Numbers, Size, often
from crashmq.scenarios.programs.spaces import CALM

FILTERS = "config/consumerFilter.json"
EXPRESSIONS: tuple[tuple[str, ExpressionType], ...] = often(
    (("a > 5", "SQL92"), 3),
    (("b = 'x'", "SQL92"), 3),
    (("a BETWEEN 2 AND 7", "SQL92"), 1),
    (("a NOT BETWEEN 2 AND 7", "SQL92"), 1),
    (("b <> 'x'", "SQL92"), 1),
    (("b IN ('x', 'y')", "SQL92"), 1),
    (("b NOT IN ('x')", "SQL92"), 1),
    (("a IS NULL", "SQL92"), 2),
    (("b IS NOT NULL", "SQL92"), 1),
    (("b CONTAINS 'x'", "SQL92"), 1),
    (("b NOT STARTSWITH 'x'", "SQL92"), 1),
    (("a > 5 AND b = 'x'", "SQL92"), 1),
    (("b = 'x' OR a > 5", "SQL92"), 1),
    (("NOT (a > 5 AND b = 'x')", "SQL92"), 2),
    (("a > 5.5", "SQL92"), 1),
    *[((f"a {order} 6", "SQL92"), 1) for order in ("<", "<=", ">", ">=")],
    *[((f"a {order} b", "SQL92"), 1) for order in ("<", "<=", ">", ">=", "=", "<>")],
    (("a = 99", "SQL92"), 2),
    (("a IS NULL OR a IS NOT NULL", "SQL92"), 1),
    (("a > 'x'", "SQL92"), 1),
    (("TagA", "TAG"), 1),
    (("TagA || TagB", "TAG"), 1),
    (("*", "TAG"), 1),
)
"""One of them is no expression, and one matches nothing."""
LABELS = often(
    (Label(properties="a=6"), 3),
    (Label(properties="a=3;b=x"), 3),
    (Label(properties="a=9;b=x"), 2),
    (Label(tags="TagA", properties="b=y"), 2),
    (Label(tags="TagB"), 1),
    (Label(), 2),
    (Label(properties="a=10.5;b=xy"), 1),
    (Label(properties="a=many;b=x"), 2),
    (Label(transaction="prepared", properties="a=6"), 1),
    # Each other value beside one that most expressions are about.
    *[(Label(properties=f"a={value};b=x"), 1) for value in VALUES],
    *[(Label(properties=f"b={value};c=6"), 1) for value in VALUES[::3]],
    # Two that are equal as numbers, or nearly so.
    *[
        (Label(properties=f"a={one};b={other}"), 1)
        for alike in ALIKE
        for one in alike
        for other in alike
    ],
)
NAME = "a-group-of-consumers-of-filters"
GROUPS = often(
    ("g", 9), ("h", 6), *[(NAME[:size], 1) for size in (4, 6, 8, 11, 13, 17, 21, 29)]
)
"""A filter's bits are those of group and topic, hashed in blocks of 16 bytes and what
is left: with a topic of two letters some fill one or two of them."""
FILTERED = replace(
    CALM,
    kinds=often(
        ("filter", 12),
        ("put", 1),
        ("burst", 1),
        ("service", 2),
        ("restart", 2),
        ("crash", 1),
    ),
    kept=("filter",),
    addresses=often(
        (Address("T0", 0), 6), (Address("T0", 1), 1), (Address("T1", 0), 1)
    ),
    labels=LABELS,
    sizes=often((Size(extra=16), 6), (Size(extra=60), 2), (Size(parts=4), 1)),
    burst_sizes=often((2, 2), (3, 3), (21, 1)),
    pull_offsets=Numbers((0, 1, 2, 3, 5, 9, 10, 11), 16),
    services=often(
        ("reput", 5),
        ("flush_commit_log", 1),
        ("flush_consume_queue", 1),
        ("persist_consumer_filter", 2),
    ),
    service_times=often((1, 6), (2, 1)),
    crash_kinds=often(("power_loss", 3), ("process_kill", 2)),
    survivor_kinds=often(("none", 2), ("all", 1), ("prefix", 3), ("hashed", 4)),
    faults=often(
        (DiskFault("write", "ENOSPC", path="config", written=9), 1),
        (DiskFault("sync", "EIO", path="config"), 1),
    ),
    groups=GROUPS,
    expressions=EXPRESSIONS,
    schedules=often(
        (Schedule(depth=2, steps=8), 4),
        (Schedule(depth=3, steps=24), 1),
        (Schedule("pct", depth=3, steps=40), 2),
        (Schedule("pct", depth=3, steps=400, grain="lines"), 1),
    ),
)
_BASE = Setup(keeps_progress=True, filters=True, queue_ext_size=512)
STORES = often(
    (_BASE, 3),
    (replace(_BASE, filters_retries=True), 3),
    (replace(_BASE, disk_profile="posix_min"), 3),
    (replace(_BASE, queue_ext_size=100), 2),
    (replace(_BASE, queue_ext_size=0), 1),
    (replace(_BASE, disk_profile="kill9"), 1),
    (
        replace(_BASE, log_file_size=8192, queue_file_units=7, flush_mode="SYNC_FLUSH"),
        1,
    ),
    (replace(_BASE, log_file_size=16384, queue_file_units=40), 1),
)
PULL_LAWS = ("FLT-1", "FLT-2", "FLT-3", "FLT-4", "FLT-5")
RETRY_LAWS = ("FLT-6",)

FILTERING = (
    Scenario(
        name="filters",
        sentence="groups subscribe by expressions and pull by them, while clocks step "
        "back, brokers crash, and clients with older subscriptions come back",
        space=FILTERED,
        setups=STORES,
        required_probes=(
            "calc_bit_map.calculated",
            "calc_bit_map.failed",
            "consumer_filter.changed",
            "consumer_filter.cleaned",
            "consumer_filter.refused",
            "consumer_filter.reloaded",
            "consumer_filter.revived",
            "message_filter.failed",
            "message_filter.hit",
            "message_filter.passed_over",
            "message_filter.uncovered",
            "retry_filter.dropped",
            "retry_filter.unknown",
        ),
        required_laws=(*PULL_LAWS, *RETRY_LAWS, "REC-1", "RUN-1"),
    ),
    Scenario(
        name="filter_files",
        sentence="while the store is down, the consumer filters' file or its backup "
        "is cut, zeroed, removed or edited, so that filters are lost, older or others",
        space=replace(
            FILTERED,
            kinds=often(("filter", 8), ("put", 1), ("service", 3), ("damage", 3)),
            kept=("filter", "damage"),
            damage_targets=often(
                ((FILTERS, "truncate"), 2),
                ((FILTERS, "zero"), 2),
                ((FILTERS, "delete"), 4),
                ((FILTERS, "reword"), 4),
                ((f"{FILTERS}.bak", "truncate"), 1),
                ((f"{FILTERS}.bak", "delete"), 2),
            ),
            damage_offsets=Numbers((0, 1, 40, 90, -1), 200),
            damage_sizes=(0, 1, 8),
            damages_a_stop=often((1, 2), (2, 3)),
        ),
        setups=STORES,
        required_probes=("config_file.load.backup", "config_file.load.refused"),
        required_laws=("FLT-1", "FLT-2", "FLT-5", "REC-4"),
    ),
)
"""What `catalogue` lists of them."""
