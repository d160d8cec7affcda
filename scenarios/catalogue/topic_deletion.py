"""Scenarios in which topics and queues are deleted and created again."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import DiskFault
from crashmq.models.program import HOUR_MS, Setup
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.space import Address, Label, Numbers, often
from crashmq.scenarios.programs.spaces import BREAKING, CORE_LAWS

LIGHT = "%LMQ%a"
ODD = "T \r\u2028é"
"""A name that a store takes and no broker would, with what ends lines elsewhere."""

DELETIONS = often(
    (Address("T0", -1), 3),
    (Address("T1", -1), 1),
    (Address("T0", 0), 2),
    (Address("T0", 1), 2),
    (Address("nobody", -1), 1),
    (Address(ODD, -1), 2),
)
LIGHT_DELETIONS = often((Address("T0", -1), 2), (Address(LIGHT, -1), 2))
KEEPING = Setup(cleans=True, reserved_hours=2, flush_least_pages=0)
DELETING = replace(
    BREAKING,
    kinds=(*BREAKING.kinds, *("delete",) * 9, "damage", *("fill",) * 2),
    kept=(*BREAKING.kept, "delete"),
    addresses=(
        *BREAKING.addresses,
        *often((Address("T00", 0), 3), (Address(ODD, 0), 2)),
    ),
    labels=(*BREAKING.labels, *often((Label(multi_dispatch=LIGHT), 2))),
    crash_kinds=often(("power_loss", 3), ("process_kill", 2)),
    survivor_kinds=often(("none", 2), ("all", 1), ("prefix", 3), ("hashed", 4)),
    deletions=(*DELETIONS, *LIGHT_DELETIONS),
    expiry_steps_ms=Numbers((3 * HOUR_MS, 2 * HOUR_MS), 8 * HOUR_MS),
    faults=(*BREAKING.faults, *often((DiskFault("remove", "EIO"), 3))),
    damage_targets=often(
        (("deletedTopics", "flip"), 2),
        (("deletedTopics", "zero"), 1),
        (("deletedTopics", "truncate"), 2),
    ),
    damage_sizes=(0, 1, 8),
    fill_percents=(95, 95, 91, 86, 0),
    damages_a_stop=(1,),
)
"""Topics go while messages come, and the power goes too; also if the disk is full."""

TOPIC_DELETION = (
    Scenario(
        name="deleted_topics",
        sentence="topics and queues are deleted and created again, with crashes at "
        "any point of it, while messages are put and dispatched",
        space=DELETING,
        setups=often(
            (Setup(), 3),
            (Setup(queue_file_units=2), 2),
            (Setup(flush_mode="SYNC_FLUSH", queue_file_units=7), 1),
            (Setup(disk_profile="posix_min"), 2),
            (Setup(multi_dispatch=True, queue_file_units=40), 2),
            (Setup(transient_store_pool=True, flush_least_pages=0), 1),
            (Setup(queue_ext_size=100, log_file_size=8192), 1),
            (Setup(index_slots=8, index_entries=20, log_file_size=16384), 1),
            (Setup(start_window=4096), 2),
            (KEEPING, 2),
            (replace(KEEPING, disk_capacity=512 * 1024), 2),
        ),
        required_probes=(
            "topic_deletion.deleted",
            "topic_deletion.unknown",
            "deleted_topics.load",
            "deleted_topics.clamp",
            "consume_queue_store.dispatch.dead",
            "consume_queue_store.recover.left_over",
        ),
        required_laws=(*CORE_LAWS, "DEL-7", "DEL-8", "DEL-9", "DEL-10"),
    ),
)
"""What `catalogue` lists of them."""
