"""The named scenarios: what each tries, on which stores and disks, and how long."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.bit_rot import ROTTING, SERVING
from crashmq.scenarios.catalogue.concurrency import INTERLEAVING
from crashmq.scenarios.catalogue.consuming import CONSUMING
from crashmq.scenarios.catalogue.delaying import DELAYING
from crashmq.scenarios.catalogue.expiry import ALWAYS, EXPIRING, KEEPING
from crashmq.scenarios.catalogue.filtering import FILTERING
from crashmq.scenarios.catalogue.foreign_files import (
    ADOPTING,
    DISOWNED,
    FOREIGN_FILES,
)
from crashmq.scenarios.catalogue.living_consumers import (
    EDITED_TABLES,
    LIVING_CONSUMERS,
)
from crashmq.scenarios.catalogue.long_polling import LONG_POLLING
from crashmq.scenarios.catalogue.message_scenarios import (
    MESSAGE_SCENARIOS,
    with_options,
)
from crashmq.scenarios.catalogue.mixtures import mixable, mixtures_of, partners_of
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.catalogue.sick_disks import SICK_DISKS
from crashmq.scenarios.catalogue.topic_deletion import TOPIC_DELETION
from crashmq.scenarios.programs.space import Address, Label, Numbers, often
from crashmq.scenarios.programs.spaces import (
    BREAKING,
    BUFFERING,
    CALM,
    CORE_LAWS,
    FLUSHED,
    FLUSHING,
    INDEXED,
    JUMPING,
    LOSSY_DISKS,
    POOLED,
    SYNCED,
    TORN_BLOCKS,
    TORN_DISKS,
    WINDOWED,
    WINDOWED_STORES,
    setups_on,
)

__all__ = ["PARTNERS", "SCENARIOS", "Scenario"]

_SCENARIOS = (
    Scenario(
        name="clean_restart",
        sentence="the store is shut down in an orderly way and started again",
        space=CALM,
        setups=setups_on("ext4_ordered"),
        required_probes=(
            "commit_log.recover.normal",
            "commit_log.roll",
            "message_store.shutdown.clean",
            "reput.filler",
        ),
        required_laws=CORE_LAWS,
    ),
    Scenario(
        name="process_kill",
        sentence="the process is killed at any disk action, also during recovery",
        space=BREAKING,
        setups=setups_on("kill9"),
        required_probes=(
            "commit_log.recover.abnormal",
            "commit_log.recover.zeros",
            "message_store.start.lacking",
            "mapped_file.erase",
        ),
        required_laws=CORE_LAWS,
    ),
    Scenario(
        name="power_loss",
        sentence="power is lost at any disk action, also during recovery, and any "
        "part of the unsynced data survives",
        space=replace(
            BREAKING,
            crash_kinds=often(("power_loss", 8), ("process_kill", 1)),
            survivor_kinds=often(("none", 2), ("all", 1), ("prefix", 3), ("hashed", 4)),
        ),
        setups=(*LOSSY_DISKS, *TORN_DISKS),
        required_probes=(
            "commit_log.recover.abnormal",
            "checkpoint.load.mark",
            "message_store.start.lacking",
            "mapped_file.erase",
        ),
        required_laws=CORE_LAWS,
    ),
    Scenario(
        name="truncated_files",
        sentence="while the store is down, files are truncated or their tails zeroed, "
        "or a queue file is deleted",
        space=replace(
            CALM,
            kinds=often(
                ("put", 5),
                ("burst", 5),
                ("service", 8),
                ("pull", 2),
                ("damage", 3),
                ("restart", 1),
                ("clock", 1),
            ),
            kept=("burst", "service", "damage"),
            crash_kinds=often(("process_kill", 2), ("power_loss", 1)),
            survivor_kinds=often(("none", 1), ("prefix", 2), ("hashed", 1)),
            damage_targets=often(
                (("commitlog[-1]", "truncate"), 2),
                (("commitlog[-1]", "zero"), 2),
                (("commitlog[-2]", "truncate"), 1),
                (("commitlog[0]", "zero"), 1),
                (("consumequeue[-1]", "truncate"), 2),
                (("consumequeue[0]", "truncate"), 2),
                (("consumequeue[-1]", "zero"), 2),
                (("consumequeue[1]", "zero"), 2),
                (("consumequeue[-1]", "delete"), 2),
                (("consumequeue[0]", "delete"), 1),
                (("consumequeue[1]", "delete"), 1),
                (("checkpoint", "truncate"), 1),
                (("checkpoint", "zero"), 1),
                (("checkpoint", "delete"), 3),
                (("abort", "delete"), 2),
                (("commitlog[1]", "delete"), 1),
                (("commitlog[-1]", "delete"), 1),
            ),
        ),
        setups=tuple(
            # A directory that has lost its mark as well is refused, or adopted.
            replace(setup, adopt=bool(number % 2))
            for number, setup in enumerate(setups_on("ext4_ordered"))
        ),
        required_probes=(
            "message_store.load.refused",
            "mapped_file.extend",
            "consume_queue.put.built",
            "message_store.start.lacking",
        ),
        required_laws=CORE_LAWS,
    ),
    Scenario(
        name="reput_behind",
        sentence="the store is shut down, or its process killed, while any number of "
        "records are not dispatched",
        space=replace(
            CALM,
            kinds=often(
                ("put", 6),
                ("burst", 5),
                ("service", 4),
                ("pull", 3),
                ("restart", 3),
                ("crash", 2),
                ("interleave", 2),
            ),
            kept=("burst", "restart"),
            served_first=(False,),
            services=often(
                ("reput", 4),
                ("flush_commit_log", 2),
                ("flush_consume_queue", 2),
                ("checkpoint", 1),
            ),
            service_times=often((1, 6), (2, 2), (3, 1)),
            crash_kinds=("process_kill",),
        ),
        setups=setups_on("kill9"),
        required_probes=(
            "message_store.shutdown.behind",
            "message_store.start.lacking",
            "commit_log.recover.abnormal",
        ),
        required_laws=CORE_LAWS,
    ),
    Scenario(
        name="crash_in_recovery",
        sentence="nearly every start after a crash is itself cut short by kills and "
        "power losses, two or three times in a row",
        space=replace(
            BREAKING,
            kinds=often(("put", 5), ("burst", 4), ("service", 6), ("crash", 5)),
            crash_kinds=often(("power_loss", 2), ("process_kill", 1)),
            survivor_kinds=often(("none", 2), ("all", 1), ("prefix", 3), ("hashed", 4)),
            recovery_crashes=often((1, 2), (2, 3), (3, 2)),
            at_actions=CALM.at_actions._replace(
                restart=Numbers(tuple(range(1, 33)), 65, 1)
            ),
        ),
        setups=(*setups_on("ext4_ordered"), *setups_on("posix_min")),
        length=(12, 40),
        required_probes=(
            "commit_log.recover.abnormal",
            "mapped_file.erase",
            "checkpoint.load.one_slot",
        ),
        required_laws=CORE_LAWS,
    ),
    Scenario(
        name="checkpoint_window",
        sentence="many files, and a start that reads only what the checkpoint's mark "
        "does not cover",
        space=WINDOWED,
        setups=WINDOWED_STORES,
        length=(30, 90),
        required_probes=(
            "start_up.read.window",
            "commit_log.recover.first",
            "checkpoint.load.one_slot",
        ),
        required_laws=(*CORE_LAWS, "CP-7", "REC-7"),
    ),
    Scenario(
        name="window_damage",
        sentence="many files, and damage to a queue or log file that a start would "
        "leave unread",
        space=replace(
            WINDOWED,
            kinds=(*WINDOWED.kinds, "damage", "damage", "damage", "damage"),
            kept=("burst", "service", "damage"),
            addresses=(Address("T0", 0),),
            labels=often((Label(), 3), (Label(transaction="commit"), 1)),
            damage_targets=often(
                (("consumequeue[0]", "delete"), 5),
                (("consumequeue[-1]", "delete"), 5),
                (("commitlog[0]", "truncate"), 1),
                (("commitlog[1]", "truncate"), 1),
                (("commitlog[0]", "delete"), 1),
                (("commitlog[2]", "delete"), 1),
            ),
        ),
        setups=WINDOWED_STORES,
        length=(30, 90),
        required_probes=("start_up.read.window", "start_up.read.again"),
        required_laws=CORE_LAWS,
    ),
    Scenario(
        name="bit_rot",
        sentence="while the store is down, bytes and sectors of any file rot; a "
        "start refuses damage to durable data, or serves around it",
        space=ROTTING,
        setups=tuple(
            replace(setup, on_damage=on_damage)
            for setup in with_options(setups_on("ext4_ordered"), lights=False)
            for on_damage in SERVING
        )
        + tuple(
            replace(
                KEEPING, on_damage=on_damage, log_file_size=size, delete_hours=ALWAYS
            )
            for on_damage in (*SERVING, "serve", "serve")
            for size in (4096, 4096, 8192)
        )
        + (Setup(index_slots=8, index_entries=20, on_damage="serve"),) * 3,
        required_probes=(
            "message_store.load.refused",
            "start_up.refused.changed",
            "consume_queue.put.built",
            "queue_audit.disagreed",
            "scan_around.resynced",
            "scan_around.to_the_end",
            "scan_around.closed",
            "scan_around.begun",
            "scan_around.file_missing",
        ),
        required_laws=(*CORE_LAWS, "CP-8", "REC-8", "REC-12", "REC-11", "RD-6"),
    ),
    Scenario(
        name="clock_jumps",
        sentence="the wall clock is set forward and back, by milliseconds to years",
        space=JUMPING,
        setups=(*setups_on("ext4_ordered"), *often((POOLED, 6), (SYNCED, 2))),
        required_probes=(
            "time_search.amid",
            "time_search.before_all",
            "time_search.after_all",
        ),
        required_laws=(*CORE_LAWS, "RD-4", "CL-4", "CP-6"),
    ),
    Scenario(
        name="index",
        sentence="messages are queried by key, while the process is killed, power is "
        "lost, and index files are cut, zeroed or removed",
        space=INDEXED,
        # Five units of the commonest record fill a file of 109 bytes beside a queue.
        setups=tuple(
            replace(setup, index_slots=slots, index_entries=entries, disk_profile=disk)
            for slots, entries in ((8, 20), (8, 20), (3, 7), (1, 30), (16, 2), (40, 90))
            for setup, disk in (
                (Setup(), "ext4_ordered"),
                (Setup(), "posix_min"),  # no sync of a file makes its name durable
                (Setup(4096, 7, "SYNC_FLUSH", queue_ext_size=109), "ext4_ordered"),
                (Setup(log_file_size=8192), "kill9"),
                (Setup(16384, 40, queue_ext_size=200), "xfs"),
            )
        ),
        required_probes=(
            "index_audit.disagreed",
            "index_audit.unlinked",
            "consume_queue_ext.put",
            "consume_queue_ext.put.too_large",
            "consume_queue_ext.truncate",
            "index_file.put.linked",
            "index_service.dispatch.built",
            "index_service.dispatch.resumed",
            "index_service.load.odd",
            "index_service.recover.dropped",
            "key_query.found",
            "key_query.limited",
            "key_query.other",
        ),
        required_laws=(
            *CORE_LAWS,
            *("CQ-6", "IX-1", "IX-2", "IX-3", "IX-4", "IX-5", "IX-6", "IX-7", "IX-8"),
        ),
    ),
    Scenario(
        name="flush_modes",
        sentence="callers put at the same time, waiting for the flush or not, on a "
        "disk that stalls and fails, and the store is killed or loses power",
        space=FLUSHING,
        setups=often(
            (FLUSHED, 2),
            (SYNCED, 4),
            (replace(SYNCED, log_file_size=16384, flush_least_pages=1), 2),
            (replace(SYNCED, preallocate=False, queue_file_units=7), 1),
            (replace(FLUSHED, log_file_size=8192, flush_least_pages=1), 2),
            (replace(FLUSHED, log_file_size=16384, flush_least_pages=2), 1),
            (replace(FLUSHED, flush_least_pages=0, queue_file_units=40), 1),
            (replace(FLUSHED, disk_profile="posix_min"), 3),
            (replace(SYNCED, disk_profile="posix_min", log_file_size=8192), 2),
        ),
        required_probes=(
            "flush.group.committed",
            "flush.group.before",
            "flush.group.timed_out",
            "flush.group.stopped",
            "flush.real_time.least_pages",
            "flush.sync_failed",
            "allocate.ready",
        ),
        required_laws=(*CORE_LAWS, "FL-2", "FL-5", "FL-6", "FL-7"),
    ),
    Scenario(
        name="transient_pool",
        sentence="appends wait in write buffers, of which there may be too few, "
        "until they are committed to the files",
        space=BUFFERING,
        setups=often(
            (POOLED, 3),
            (replace(POOLED, flush_least_pages=0), 3),
            (replace(POOLED, transient_store_buffers=1), 2),
            (replace(POOLED, transient_store_buffers=5, preallocate=False), 1),
            (replace(POOLED, log_file_size=16384, flush_least_pages=1), 2),
            (replace(POOLED, log_file_size=8192, queue_file_units=40), 1),
            (replace(POOLED, flush_mode="SYNC_FLUSH"), 1),
            (replace(POOLED, flush_mode="SYNC_FLUSH", queue_file_units=7), 1),
            (
                replace(POOLED, flush_mode="SYNC_FLUSH", transient_store_buffers=1),
                1,
            ),
        ),
        required_probes=(
            "mapped_file.commit",
            "mapped_file.commit.failed",
            "transient_store_pool.exhausted",
            "transient_store_pool.return",
            "flush.commit.least_pages",
            "flush.commit.thorough",
        ),
        required_laws=(*CORE_LAWS, "FL-5", "FL-6", "FL-7"),
    ),
    *EXPIRING,
    *INTERLEAVING,
    *TOPIC_DELETION,
    *FOREIGN_FILES,
    *SICK_DISKS,
)

_TORN_BLOCKS = Scenario(
    name="torn_blocks",
    sentence="power is lost during the write of a 4 KiB sector, and the durable data "
    "in it is garbled or unreadable",
    space=replace(
        BREAKING,
        crash_kinds=often(("power_loss", 8), ("process_kill", 1)),
        survivor_kinds=often(("none", 1), ("prefix", 1), ("hashed", 6)),
    ),
    setups=TORN_BLOCKS,
    required_probes=("commit_log.recover.abnormal", "checkpoint.load.no_mark"),
    required_laws=CORE_LAWS,
)

_ALL = (*_SCENARIOS, *MESSAGE_SCENARIOS)

_MIXABLE = mixable(
    _ALL,
    (_TORN_BLOCKS, *CONSUMING, *LONG_POLLING, *FILTERING, *DELAYING),
    LIVING_CONSUMERS,
)
_MIXTURES = mixtures_of(_MIXABLE)

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        *(*_ALL, _MIXTURES[0], _TORN_BLOCKS),
        *(*CONSUMING, *LONG_POLLING, *FILTERING, *LIVING_CONSUMERS),
        *(*DELAYING, *_MIXTURES[1:], *ADOPTING, *DISOWNED, *EDITED_TABLES),
    )
}

PARTNERS: dict[str, tuple[Scenario, ...]] = partners_of(_MIXABLE)
"""By a scenario's name, those that it can be mixed with; of many, none."""
