"""Planted bugs of a start after a crash: what it believes, refuses and publishes."""

from __future__ import annotations

from dataclasses import replace

from models.ops import (
    Crash,
    During,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Survivors,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_PUT = PutMessage("T0", 0, 16)
_FILLING = PutMessage("T0", 0, 3900)  # a log file of its own
_PULL = PullMessage("T0", 0, 0)
_REPUT = RunService("reput")
_KILL = During(_PULL, 1, Crash("process_kill"))
_THE_SECOND = Survivors("hashed", 38)
_BODY_AND_HEADER = 88 + 16  # the size of a record's header, and of the body below

STALE_INDEX_TRUSTED = Mutant(
    id="X08",
    title="stale-index-trusted-after-kill",
    source="nats-io/nats-server PR #5901, #5893",
    killed_by=("IX-2", "IX-4", "IX-6", "REC-3"),
    edits=(
        Edit(
            module="engine.store.start_up",
            function="StartUp.mend",
            before=(
                "_first(audit.first_wrong_phy_offset, index.first_wrong_phy_offset)"
            ),
            after="audit.first_wrong_phy_offset",
        ),
    ),
    trigger=Program(
        Setup(index_slots=8, index_entries=20),
        (
            replace(_PUT, keys="Aa"),
            During(_REPUT, 12, Crash("process_kill")),
            Restart(),
        ),
    ),
    component="RECOVERY",
    difficulty=3,
    needs="process kill",
)

TORN_RECORD_NOT_REPAIRED = Mutant(
    id="X12",
    title="torn-record-in-preallocated-file",
    source="etcd-io/etcd#5230, #6515, #11488",
    killed_by=("REC-4",),
    edits=(
        Edit(
            module="engine.store.start_up",
            function="StartUp._refuse_lost",
            before="if scan.end < mark.durable_offset:",
            after=(
                "if scan.end < mark.durable_offset or scan.stopped_by in (\n"
                "        Stop.ILLEGAL,\n"
                "        Stop.HALF,\n"
                "    ):"
            ),
        ),
    ),
    trigger=Program(
        Setup(),
        (During(_PUT, 6, Crash("process_kill", cut=_BODY_AND_HEADER)), Restart()),
    ),
    component="RECOVERY",
    difficulty=3,
    needs="power loss within a sector, or a kill within a page",
)

# Where one file ends early and the next one begins with a record, the scan goes on.
GAP_UNDETECTED = Mutant(
    id="X15",
    title="recycled-log-gap-undetected",
    source="facebook/rocksdb PR #12918, #12403, #12639",
    killed_by=("CL-1", "CL-3", "REC-1", "CQ-1", "REC-2", "REC-4", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.commit_log",
            function="CommitLog.scan",
            before="if file.file_from_offset != end:",
            after="if file.file_from_offset < end:",
        ),
        Edit(
            module="engine.store.commit_log",
            function="CommitLog.scan",
            before="        end += position\n",
            after=(
                "        end = file.file_from_offset + position\n"
                "        later = files[files.index(file) + 1 :]\n"
                "        if later and any(later[0].read(0, BLANK_SIZE_MIN)):\n"
                "            continue\n"
            ),
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_FILLING, _FILLING),
            During(_PULL, 1, Crash("power_loss", _THE_SECOND)),
            Restart(),
        ),
    ),
    component="RECOVERY",
    difficulty=4,
    needs="power loss",
)

PUBLISHED_BEFORE_RECOVERED = Mutant(
    id="X17",
    title="crash-inside-recovery",
    source="facebook/rocksdb PR #9634, #9922",
    killed_by=("CL-1", "CP-1", "REC-4", "REC-2", "REC-9", "CP-8", "CP-7", "CP-4"),
    edits=(
        Edit(
            module="engine.store.message_store",
            function="MessageStore.start",
            before="        self.reput.reput_from_offset = self._start_up.mend()\n",
            after=(
                "        found = self._start_up._found[0]\n"
                "        self.commit_log.mapped_files.flushed_where = found.end\n"
                "        self._checkpoint.open()\n"
                "        self._checkpoint_service.run_once()\n"
                "        self.reput.reput_from_offset = self._start_up.mend()\n"
            ),
        ),
        Edit(
            module="engine.store.message_store",
            function="MessageStore.start",
            before=(
                "        self._checkpoint.open()\n"
                "        self._checkpoint_service.run_once()\n"
                "        # What"
            ),
            after="        self._checkpoint_service.run_once()\n        # What",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_PUT, _KILL),
            During(Restart(), 7, Crash("power_loss")),
            Restart(),
        ),
    ),
    component="RECOVERY",
    difficulty=4,
    needs="power loss during recovery",
)

RESTART_MUTANTS = (
    STALE_INDEX_TRUSTED,
    TORN_RECORD_NOT_REPAIRED,
    GAP_UNDETECTED,
    PUBLISHED_BEFORE_RECOVERED,
)
