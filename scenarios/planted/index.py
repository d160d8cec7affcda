"""Planted bugs of the index: what it lists, how it links, how it is read."""

from __future__ import annotations

from models.ops import (
    Crash,
    Damage,
    DiskFault,
    During,
    PutMessage,
    QueryMessage,
    Restart,
    RunService,
    Shutdown,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_INDEXED = Setup(index_slots=8, index_entries=20)
_PUT = PutMessage("T0", 0, 16, keys="Aa")
_REPUT = RunService("reput")

# The file goes as RocketMQ lets it go, and nobody is told to dispatch its keys again.
INDEX_DROPPED_NOT_REPLAYED = Mutant(
    id="R58",
    title="index-dropped-but-not-replayed",
    source="apache/rocketmq#3868, #8007, PR #8018",
    killed_by=("IX-6", "IX-2"),
    edits=(
        Edit(
            module="engine.store.index_service",
            function="IndexService.recover",
            before="kept = [recount.file for recount in audit.recounts]",
            after=(
                "said = self._checkpoint.index_msg_timestamp\n"
                "    audit.recounts = [\n"
                "        recount\n"
                "        for recount in audit.recounts\n"
                "        if clean or recount.file.header.end_timestamp <= said\n"
                "    ]\n"
                "    kept = [recount.file for recount in audit.recounts]"
            ),
        ),
        Edit(
            module="engine.store.start_up",
            function="StartUp.mend",
            before="_first(audit.first_wrong_phy_offset, index.first_wrong_phy_offset)",
            after="audit.first_wrong_phy_offset",
        ),
    ),
    trigger=Program(
        _INDEXED,
        (_PUT, During(_REPUT, 99, Crash("process_kill")), Restart()),
    ),
    as_shipped=True,
    component="INDEX",
    difficulty=3,
    needs="process kill, long history",
)

# A start compares every link with what it must be, so that a damaged one is never
# followed; the bug comes with RocketMQ's trust in the file.
INDEX_CHAIN_LOOPS = Mutant(
    id="R60",
    title="index-chain-loops",
    source="apache/rocketmq PR #8018, its second part; sharp edge 14.26",
    killed_by=("IX-5", "IX-2", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.index_file",
            function="IndexFile.chain",
            before="if not 0 <= entry.previous < number:",
            after="if not 0 <= entry.previous < self.header.index_count:",
        ),
        Edit(
            module="engine.store.index_audit",
            function="Recount._agrees",
            before="if self._next_bytes() != entry:",
            after="if self._next_bytes()[:16] != entry[:16]:",
        ),
    ),
    trigger=Program(
        _INDEXED,
        (_PUT, _REPUT, Shutdown(), Damage("index[-1]", "flip", 111, 1), Restart()),
    ),
    as_shipped=True,
    component="INDEX",
    difficulty=3,
    needs="bit rot",
)

HASH_HIT_WITHOUT_KEY_CHECK = Mutant(
    id="R61",
    title="hash-hit-without-key-check",
    source="apache/rocketmq PR #3614",
    killed_by=("IX-1", "IX-2"),
    edits=(
        Edit(
            module="engine.store.key_query",
            function="KeyQuery.query",
            before="request.topic == topic and key in keys_of(request.properties)",
            after="True",
        ),
    ),
    trigger=Program(_INDEXED, (_PUT, _REPUT, QueryMessage("T0", "BB"))),
    as_shipped=True,
    component="INDEX",
    difficulty=2,
    needs="none",
)

# Our disk makes a file whole or not at all, so the second step of making one, which
# fails, is its first header; the next try leaves that name alone, as RocketMQ's does.
INDEX_CREATE_LEAKS_FILES = Mutant(
    id="R62",
    title="index-create-retry-leaks-files",
    source="apache/rocketmq#7539",
    killed_by=("IX-9", "IX-7", "IX-8", "RUN-2"),
    edits=(
        Edit(
            module="engine.store.index_file",
            function="IndexFile.__init__",
            before="    if not create:\n",
            after="    if create:\n"
            "        self._file.write_at(0, self.header.encode())\n"
            "    else:\n",
        ),
        Edit(
            module="engine.store.index_service",
            function="IndexService._file_with_space",
            before='path = f"{INDEX_DIR}/{name:0{NAME_DIGITS}d}"',
            after=(
                "self._last_name = name\n"
                '    path = f"{INDEX_DIR}/{name:0{NAME_DIGITS}d}"'
            ),
        ),
    ),
    trigger=Program(
        _INDEXED,
        (_PUT, During(_REPUT, 1, DiskFault("write", "ENOSPC", path="index")), _REPUT),
    ),
    as_shipped=True,
    component="INDEX",
    difficulty=2,
    needs="ENOSPC",
)

SLOT_COUNTER_ON_EVERY_PUT = Mutant(
    id="R64",
    title="slot-counter-on-every-put",
    source="apache/rocketmq PR #2018",
    killed_by=("IX-3",),
    edits=(
        Edit(
            module="engine.store.index_file",
            function="Header.counting",
            before="self.hash_slot_count + (not previous)",
            after="self.hash_slot_count + 1",
        ),
    ),
    trigger=Program(_INDEXED, (PutMessage("T0", 0, 16, keys="Aa Aa"), _REPUT)),
    component="INDEX",
    difficulty=1,
    needs="none",
)

SHORT_INDEX_PANICS = Mutant(
    id="X10",
    title="short-index-panics",
    source="nats-io/nats-server PR #1775",
    killed_by=("RUN-1", "REC-4"),
    edits=(
        Edit(
            module="engine.store.index_service",
            function="IndexService.load",
            before="if self._disk.file_size(path) == file_size(slots, entries):",
            after="if True:",
        ),
    ),
    trigger=Program(
        _INDEXED,
        (_PUT, _REPUT, Shutdown(), Damage("index[-1]", "truncate", 8), Restart()),
    ),
    component="INDEX",
    difficulty=1,
    needs="truncation, power loss",
)

# Records that a start hands over again come in twos, and wait in one buffer.
REBUILD_REUSES_ITS_BUFFER = Mutant(
    id="X11",
    title="rebuild-path-differs-from-write-path",
    source="nats-io/nats-server#4842",
    killed_by=("IX-4", "IX-6", "IX-2"),
    edits=(
        Edit(
            module="engine.store.index_service",
            function="IndexService.recover",
            before="self._keys_there = audit.keys_there if first_wrong >= 0 else 0",
            after=(
                "self._keys_there = 0\n"
                "    self._log_end, self._waiting = log_end, []\n"
                "    self._buffer = bytearray()"
            ),
        ),
        Edit(
            module="engine.store.index_service",
            function="IndexService.dispatch",
            before="for number, key_hash in enumerate(key_hashes(request)):\n",
            after=(
                "if phy_offset < self._log_end:\n"
                "        self._buffer[:] = request.properties\n"
                "        request = request._replace(properties=self._buffer)\n"
                "        self._waiting.append(request)\n"
                "        end = phy_offset + request.msg_size\n"
                "        if len(self._waiting) == 2 or end >= self._log_end:\n"
                "            for one in self._waiting:\n"
                "                for key_hash in key_hashes(one):\n"
                "                    self._put_key(\n"
                "                        key_hash,\n"
                "                        one.commit_log_offset,\n"
                "                        one.store_timestamp,\n"
                "                    )\n"
                "            self._waiting = []\n"
                "        self._next_phy_offset = end\n"
                "        return\n"
                "    for number, key_hash in enumerate(key_hashes(request)):\n"
            ),
        ),
    ),
    trigger=Program(
        _INDEXED,
        (
            _PUT,
            PutMessage("T0", 0, 16),
            During(RunService("checkpoint"), 99, Crash("process_kill")),
            Restart(),
            _REPUT,
        ),
    ),
    component="INDEX",
    difficulty=3,
    needs="deletion of index",
)

LAST_RECORD_INDEXED_AGAIN = Mutant(
    id="S09",
    title="last-record-indexed-again",
    source="sharp edge 14.9: a replay puts the last record's keys twice",
    killed_by=("IX-4",),
    edits=(
        Edit(
            module="engine.store.index_service",
            function="IndexService.dispatch",
            before="if phy_offset < self._next_phy_offset:",
            after=(
                "if self._files and phy_offset < self._files[-1].header.end_phy_offset:"
            ),
        ),
    ),
    trigger=Program(
        _INDEXED,
        (
            _PUT,
            _REPUT,
            Shutdown(),
            Damage("consumequeue[-1]", "delete"),
            Restart(),
            _REPUT,
        ),
    ),
    as_shipped=True,
    component="INDEX",
    difficulty=3,
    needs="process kill",
)

INDEX_MUTANTS = (
    INDEX_DROPPED_NOT_REPLAYED,
    INDEX_CHAIN_LOOPS,
    HASH_HIT_WITHOUT_KEY_CHECK,
    INDEX_CREATE_LEAKS_FILES,
    SLOT_COUNTER_ON_EVERY_PUT,
    SHORT_INDEX_PANICS,
    REBUILD_REUSES_ITS_BUFFER,
    LAST_RECORD_INDEXED_AGAIN,
)
