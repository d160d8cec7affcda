"""Planted bugs of the queues' units and minimum offsets."""

from __future__ import annotations

from models.ops import (
    Crash,
    Damage,
    DeleteTopic,
    During,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_PUT = PutMessage("T0", 0, 16)
_REPUT = RunService("reput")
_KILL = Crash("process_kill")

DUPLICATE_CQ_ON_REPLAY = Mutant(
    id="R28",
    title="duplicate-cq-on-replay",
    source="apache/rocketmq PR #146 (ROCKETMQ-265)",
    killed_by=("CQ-1", "CQ-2", "RD-1"),
    edits=(
        Edit(
            module="engine.store.consume_queue",
            function="ConsumeQueue._put_unit",
            before="BUILT.hit()\n        return",
            after="BUILT.hit()",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            PutMessage("T0", 1, 16),
            PutMessage("T0", 0, 16),
            RunService("reput"),
            Shutdown(),
            Damage("consumequeue[-1]", "delete"),
            Restart(),
            RunService("reput"),
        ),
    ),
    component="CQ",
    difficulty=2,
    needs="process kill",
)

# RocketMQ asks first whether the newest unit is too old, and then for the oldest.
EMPTY_LAST_FILE_START_FAILS = Mutant(
    id="R30",
    title="empty-last-cq-file-start-fails",
    source="apache/rocketmq#9728, #10108, PR #10109, PR #10211",
    killed_by=("RUN-1", "REC-4"),
    edits=(
        Edit(
            module="engine.store.consume_queue",
            function="ConsumeQueue.correct_min_offset",
            before="low = max(self.first_known,",
            after=(
                "if self.mapped_files.files:\n"
                "        newest = self.mapped_files.files[-1]\n"
                "        at = newest.wrote - CQ_STORE_UNIT_SIZE\n"
                "        UNIT.unpack(newest.read(at, CQ_STORE_UNIT_SIZE))\n"
                "    low = max(self.first_known,"
            ),
        ),
    ),
    trigger=Program(Setup(), (_PUT, During(_REPUT, 8, _KILL), Restart())),
    as_shipped=True,
    component="CQ",
    difficulty=3,
    needs="power loss",
)

# A start finds where the log's last whole record ends, so that is where a message that
# crosses the cut begins; and only a queue whose units are all right is cut by it.
STRADDLING_ENTRY_SURVIVES = Mutant(
    id="R32",
    title="straddling-entry-survives",
    source="apache/rocketmq#2571, PR #2573",
    killed_by=("CQ-3", "CQ-1", "RD-1", "RD-2"),
    edits=(
        Edit(
            module="engine.store.consume_queue_store",
            function="ConsumeQueueStore._cut",
            before="if end is not None:",
            after=(
                "if end is not None and key not in audit.first_wrong:\n"
                "        units = queue._recovered_bytes(end * 20, 20)\n"
                "        end += units[:8] == audit.log_end.to_bytes(8, 'big')\n"
                "    if end is not None:"
            ),
        ),
        Edit(
            module="engine.store.consume_queue_store",
            function="ConsumeQueueStore.recover",
            before="lacks = audit.first_wrong_phy_offset",
            after="lacks, audit.log_end = audit.first_wrong_phy_offset, scan.end",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_PUT, RunService("flush_commit_log"), _PUT, _REPUT),
            RunService("flush_consume_queue"),
            During(_REPUT, 1, Crash("power_loss")),
            Restart(),
        ),
    ),
    component="CQ",
    difficulty=2,
    needs="truncation",
)

# Of the deletion only memory knows; the queue's files go all the same.
DELETED_TOPIC_COMES_BACK = Mutant(
    id="R33",
    title="deleted-topic-comes-back",
    source="apache/rocketmq#1852, alibaba/rocketmq PR #406",
    killed_by=("DEL-7", "DEL-8", "DEL-9", "DEL-10", "CQ-4", "REC-1", "OFF-1"),
    edits=(
        Edit(
            module="engine.store.topic_deletion",
            function="TopicDeletion._delete_now",
            before="self._deleted.prepare(entries)",
            after="pass",
        ),
        Edit(
            module="engine.store.topic_deletion",
            function="TopicDeletion._delete_now",
            before="self._deleted.publish(entries)",
            after="self._deleted._entries = dict(entries)",
        ),
    ),
    trigger=Program(Setup(), (_PUT, DeleteTopic("T0"), Restart())),
    as_shipped=True,
    component="CQ",
    difficulty=3,
    needs="deletion, process kill",
)

DELETION_RACES_WITH_DISPATCH = Mutant(
    id="R34",
    title="delete-races-with-dispatch",
    source="apache/rocketmq#8405, PR #8403; #10288",
    killed_by=("RUN-1", "DEL-8", "DEL-9", "CQ-4", "RD-1", "RD-2"),
    edits=(
        Edit(
            module="engine.store.consume_queue_store",
            function="ConsumeQueueStore.dispatch",
            before="with self._dispatch_lock:",
            after="if True:",
        ),
        Edit(
            module="engine.store.consume_queue_store",
            function="ConsumeQueueStore.delete",
            before="with self._dispatch_lock:",
            after="if True:",
        ),
    ),
    trigger=Program(Setup(), (_PUT, During(_REPUT, 6, DeleteTopic("T0")))),
    as_shipped=True,
    component="CQ",
    difficulty=4,
    needs="concurrency, deletion",
)

QUEUE_MUTANTS = (
    DELETED_TOPIC_COMES_BACK,
    DELETION_RACES_WITH_DISPATCH,
    EMPTY_LAST_FILE_START_FAILS,
    STRADDLING_ENTRY_SURVIVES,
    DUPLICATE_CQ_ON_REPLAY,
)
