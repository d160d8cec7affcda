"""Planted bugs of consumequeue_ext, and of starts that rebuild too much."""

from __future__ import annotations

from dataclasses import replace

from models.ops import (
    AdvanceClock,
    DeleteManually,
    Op,
    PutMessage,
    Restart,
    RunService,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_BESIDE = Setup(queue_ext_size=100, log_file_size=8192)
_PUT = PutMessage("T0", 0, 20, tags="TagA")
_REPUT = RunService("reput")
_KEEPING = Setup(cleans=True, reserved_hours=2, flush_least_pages=0)
_LARGE = PutMessage("T0", 0, 1903, keys="Aa BB")
_SERVED: tuple[Op, ...] = (RunService("flush_commit_log", 9), RunService("reput"))
_EXPIRE: tuple[Op, ...] = (
    AdvanceClock(3 * 3_600_000),
    DeleteManually(),
    RunService("clean_commit_log"),
    RunService("clean_consume_queue"),
)

BIT_MAP_LOST = Mutant(
    id="E40",
    title="bit-map-never-asked-for",
    source="CommitLogDispatcherCalcBitMap; ours",
    killed_by=("CQ-8",),
    edits=(
        Edit(
            module="engine.store.consume_queue_store",
            function="ConsumeQueueStore.dispatch",
            before='self.calc_bit_map(request) if self.calc_bit_map else b""',
            after='b""',
        ),
    ),
    trigger=Program(_BESIDE, (_PUT, _PUT, _REPUT)),
    component="CQ",
    difficulty=1,
    needs="none",
)

# A reader takes such a unit's own code for its tags, so nothing it is given is wrong.
ADDRESS_WITHOUT_ITS_BASE = Mutant(
    id="E41",
    title="address-without-its-base",
    source="ConsumeQueueExt#decorate; ours",
    killed_by=("CQ-8",),
    edits=(
        Edit(
            module="engine.store.consume_queue_ext",
            function="ConsumeQueueExt.put",
            before="return offset + OFFSET_ADDED",
            after="return offset",
        ),
    ),
    trigger=Program(_BESIDE, (_PUT, _REPUT)),
    component="CQ",
    difficulty=1,
    needs="none",
)

EXPIRED_INDEX_STAYS = Mutant(
    id="E42",
    title="expired-index-files-stay",
    source="IndexService#deleteExpiredFile; ours",
    killed_by=("DEL-11",),
    edits=(
        Edit(
            module="engine.store.index_service",
            function="IndexService.delete_expired",
            before="self._files[0].header.end_phy_offset < min_phy_offset",
            after="self._files[0].header.end_phy_offset < 0",
        ),
    ),
    trigger=Program(
        replace(_KEEPING, index_slots=8, index_entries=4),
        (*(_LARGE,) * 5, *_SERVED, *_EXPIRE),
    ),
    component="INDEX",
    difficulty=2,
    needs="deletion, long history",
)

EXPIRED_BESIDE_STAYS = Mutant(
    id="E43",
    title="expired-files-beside-queues-stay",
    source="ConsumeQueueExt#truncateByMinAddress; ours",
    killed_by=("DEL-11",),
    edits=(
        Edit(
            module="engine.store.consume_queue_ext",
            function="ConsumeQueueExt.truncate_by_min_address",
            before="if not is_address(address):",
            after="if is_address(address):",
        ),
    ),
    trigger=Program(
        replace(_KEEPING, queue_ext_size=60, queue_file_units=2),
        (*(_LARGE,) * 5, *_SERVED, *_EXPIRE),
    ),
    component="CQ",
    difficulty=2,
    needs="deletion, long history",
)

# All of it is right; but each start of such a store makes its index anew.
LONE_INDEX_FILE_NOT_BELIEVED = Mutant(
    id="E44",
    title="lone-index-file-not-believed",
    source="ours",
    killed_by=("REC-15",),
    edits=(
        Edit(
            module="engine.store.index_audit",
            function="IndexAudit.visit",
            before="if recount is not None and recount.take(",
            after="if recount is not None and len(self._files) > 1 and recount.take(",
        ),
    ),
    trigger=Program(
        Setup(index_slots=8, index_entries=20),
        (replace(_PUT, keys="Aa"), *_SERVED, Restart(), Restart()),
    ),
    component="INDEX",
    difficulty=2,
    needs="none",
)

WHOLE_INDEX_MADE_ANEW = Mutant(
    id="E45",
    title="orderly-start-drops-the-index",
    source="IndexService#load with lastExitOK; ours",
    killed_by=("REC-15",),
    edits=(
        Edit(
            module="engine.store.index_audit",
            function="IndexAudit._recount",
            before="if len(self.recounts) == len(self._files):",
            after="if not self.recounts:",
        ),
    ),
    trigger=Program(
        Setup(index_slots=8, index_entries=20),
        (replace(_PUT, keys="Aa"), *_SERVED, Restart(), Restart()),
    ),
    component="INDEX",
    difficulty=1,
    needs="none",
)

BESIDE_MUTANTS = (
    BIT_MAP_LOST,
    ADDRESS_WITHOUT_ITS_BASE,
    EXPIRED_INDEX_STAYS,
    EXPIRED_BESIDE_STAYS,
    LONE_INDEX_FILE_NOT_BELIEVED,
    WHOLE_INDEX_MADE_ANEW,
)
