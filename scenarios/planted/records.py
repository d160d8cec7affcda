"""Planted bugs of records and their places: encoders, batches, light queues."""

from __future__ import annotations

from models.ops import (
    Crash,
    Damage,
    During,
    PutBatch,
    PutMessage,
    Restart,
    RunService,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_LIGHT = PutMessage("T0", 0, 16, multi_dispatch="%LMQ%a")
_LIGHTS_ON = Setup(multi_dispatch=True)

RESERVED_BYTES_GARBAGE = Mutant(
    id="R09",
    title="reserved-bytes-garbage",
    source="apache/rocketmq#8350, PR #8351; #8669, PR #8670",
    killed_by=("PUT-1", "REC-1", "RD-1"),
    edits=(
        Edit(
            module="engine.store.log_writer",
            function="LogWriter._put_listed_twice",
            before="PROPERTY_MULTI_QUEUE_OFFSET: places}",
            after='PROPERTY_MULTI_QUEUE_OFFSET: places, "left": "over" * 4}',
        ),
    ),
    trigger=Program(_LIGHTS_ON, (_LIGHT,)),
    as_shipped=True,
    component="FORMAT",
    difficulty=2,
    needs="none",
)

# RocketMQ appends such a record. Its dispatch then fails for ever, for the whole store.
LIGHT_QUEUE_POISON = Mutant(
    id="E12",
    title="light-queue-poison",
    source="sharp edge 14.12",
    killed_by=("PUT-1", "PUT-2", "RUN-1", "REC-3"),
    edits=(
        Edit(
            module="engine.store.message_encoder",
            function="check_light_queues",
            before="if not is_light_queue(name):",
            after="if False:",
        ),
        Edit(
            module="engine.store.message",
            function="light_places",
            before="if is_light_queue(name) and is_number(offset)",
            after="if int(offset) >= 0",
        ),
    ),
    trigger=Program(
        _LIGHTS_ON,
        (PutMessage("T0", 0, 16, multi_dispatch="foo,%LMQ%a"), RunService("reput")),
    ),
    as_shipped=True,
    component="CQ",
    difficulty=2,
    needs="none",
)

BATCH_COUNTS_ONE = Mutant(
    id="E13",
    title="batch-counts-one-queue-offset",
    source="store reference 2.10: n for batches",
    killed_by=("PUT-1", "OFF-1", "REC-1"),
    edits=(
        Edit(
            module="engine.store.commit_log",
            function="CommitLog._append_to",
            before="self._consume_queues.increase_queue_offset(*queue, len(encoded))",
            after="self._consume_queues.increase_queue_offset(*queue)",
        ),
    ),
    trigger=Program(
        Setup(), (PutBatch("T0", 0, (16, 16)), PutMessage("T0", 0, 16), Restart())
    ),
    component="APPEND",
    difficulty=1,
    needs="none",
)

PREPARED_TAKES_AN_OFFSET = Mutant(
    id="E14",
    title="prepared-message-takes-a-queue-offset",
    source="store reference 11: prepared and rollback take none",
    killed_by=("PUT-1", "REC-1", "CQ-4"),
    edits=(
        Edit(
            module="engine.store.commit_log",
            function="CommitLog._append_to",
            before="listed = has_unit(message.sys_flag)",
            after="listed = True",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            PutMessage("T0", 0, 16, transaction="prepared"),
            PutMessage("T0", 0, 16, transaction="commit"),
        ),
    ),
    component="APPEND",
    difficulty=1,
    needs="none",
)

CRC_ZERO_UNCHECKED = Mutant(
    id="R08",
    title="crc-zero-means-unchecked",
    source="apache/rocketmq#9121, PR #9122",
    killed_by=("CL-1", "REC-1", "REC-4"),
    edits=(
        Edit(
            module="engine.store.message_codec",
            function="check_message",
            before="if body and crc32(body) & 0x7FFFFFFF != fields[2]:",
            after="if body and crc32(body) & 0x7FFFFFFF != fields[2] > 0:",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            During(PutMessage("T0", 0, 16), 9, Crash("process_kill")),
            Damage("commitlog[0]", "zero", at=8, size=4),
            Restart(),
        ),
    ),
    component="FORMAT",
    difficulty=5,
    needs="bit rot",
)

OFFSET_CONSUMED_BY_REJECTED = Mutant(
    id="R19",
    title="offset-consumed-by-rejected-append",
    source="apache/rocketmq#6570, PR #6641",
    killed_by=("PUT-1", "OFF-1", "REC-1"),
    edits=(
        Edit(
            module="engine.store.commit_log",
            function="CommitLog._append",
            before="    if size + BLANK_SIZE_MIN > self._file_size:\n",
            after=(
                "    if size + BLANK_SIZE_MIN > self._file_size:\n"
                "        self._consume_queues.increase_queue_offset(\n"
                "            message.topic, message.queue_id, len(encoded)\n"
                "        )\n"
            ),
        ),
    ),
    trigger=Program(Setup(), (PutMessage("T0", 0, 5000), PutMessage("T0", 0, 16))),
    component="APPEND",
    difficulty=1,
    needs="none",
)

BATCH_IS_NOT_BELIEVED = Mutant(
    id="E84",
    title="a-message-overrules-its-batch",
    source="MessageExtEncoder#encode(MessageExtBatch): the batch's come last",
    killed_by=("PUT-3",),
    edits=(
        Edit(
            module="engine.store.message_batch",
            function="expand_batch",
            before="{**message.properties, **batch.properties}",
            after="{**batch.properties, **message.properties}",
        ),
    ),
    trigger=Program(Setup(), (PutBatch("T0", 0, (16, 16), wait_store_ok=False),)),
    component="FORMAT",
    difficulty=1,
    needs="none",
)

RECORD_MUTANTS = (
    BATCH_IS_NOT_BELIEVED,
    CRC_ZERO_UNCHECKED,
    OFFSET_CONSUMED_BY_REJECTED,
    RESERVED_BYTES_GARBAGE,
    LIGHT_QUEUE_POISON,
    BATCH_COUNTS_ONE,
    PREPARED_TAKES_AN_OFFSET,
)
