"""What our engine and ``fsck`` get wrong of the corpus today, by the rules they break.

Each table maps a pattern of ``<version>-<feature>`` to a reason that begins with the
number of the defect. The tests are strict, but for directories that were just made:
whoever mends a defect removes its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest
from corpus_store import MADE

Table = Mapping[str, str]

R11 = "R11: at its default our engine appends records without the forced CRC"
R14 = "R14: queue files are lengthened to the size configured"
R17 = "R17: inner properties are parsed and written anew, not copied"

_WITH_INDEX_TAGS = [
    f"5.5.1-{feature}"
    for feature in (
        *("plain", "plain-killed", "upgraded", "delayed", "long-topics", "light"),
        *("crc", "expired", "storm-killed", "storm-sync-killed", "ours-continued"),
        *("batch", "odd-batch", "transactions", "ipv6", "expired-killed", "sync"),
        *("storm-pool-killed", "extended-unfiltered", "wide-queues"),
    )
]
_JUDGED_OF_5_5 = [
    f"5.5.1-{feature}"
    for feature in (
        *("plain", "plain-killed", "four-lives", "upgraded", "delayed", "long-topics"),
        *("odd-topics", "light", "crc", "expired", "storm-killed", "deleted-topic"),
        *("storm-sync-killed", "odd-properties", "batch-queues", "rocksdb"),
        *("batch", "transactions", "ipv6", "expired-killed", "pool-killed", "sync"),
        *("storm-pool-killed", "compaction", "extended", "extended-unfiltered"),
        *("wide-queues", "ours-continued-killed"),
    )
]

UNREAD: Table = {
    "4.9.8-odd-properties": "R2: 4.9 ends properties without a separator, here on NUL",
}
"""Served by RocketMQ, and not what our decoder reads."""

FSCK: Table = {
    "4.9.8-odd-properties": "R2: 4.9 ends properties without a separator, here on NUL",
    "4.9.8-deleted-topic": "R8: CQ-4 of the queues that RocketMQ deleted",
    "*-light-mqtt": "R5: CQ-1",
    "*-delayed-days": "R7: CQ-1",
    "*-ours-expired": "R12: CP-1",
    "*-ours-continued": "R13: CP-6",
    "*-odd-batch": "R18: CL-5",
    **dict.fromkeys(_JUDGED_OF_5_5, "R15 R16: IX-4, CP-10"),
}
"""Healthy, and ``fsck`` finds violations."""

ENGINE: Table = {
    "5.5.1-delayed-days": "R15: index files with tags are taken away",
    "*-odd-properties": "R2: refused",
    "*-nul-killed": "R2: refused",
    "*-ours-nul": "R2: the log is cut at the first NUL",
    "*-light-mqtt": "R5: refused",
    "*-odd-topics": "R6: refused",
    "*-deleted-topic": "R8: deleted messages come back",
    "*-batch-queues": "R9: taken without a word",
    "*-rocksdb": "R10: taken without a word",
    "*-ours-expired": "R12: refused for ever",
    "*-compaction": "R19: taken without a word",
    "*-extended": "R20: bit maps dropped",
    "*-timers": "undeclared: an index file without entries is taken away",
    **dict.fromkeys(_WITH_INDEX_TAGS, "R15: index files with tags are taken away"),
}
"""Our engine, configured as RocketMQ was, does not what the feature says."""

DEFAULTS: Table = {
    "*-ours-nul": "R2: the log is cut at the first NUL",
    "*-deleted-topic": "R8: deleted messages come back",
    "*-timers": "undeclared: an index file without entries is taken away",
    **dict.fromkeys(_WITH_INDEX_TAGS, "R15: index files with tags are taken away"),
}
"""Our engine, told nothing but sizes, takes away or changes something."""


FSCK_AFTER: Table = {
    "*-delayed-days": "R7: CQ-1",
    "5.5.1-four-lives": "R16: CP-10",
    "*-odd-batch": "R18: CL-5",
}
"""Served by our engine, and ``fsck`` finds violations once that has stopped."""

ROUND_TRIP: Table = {
    "5.5.1-*": "R15: index files with tags are taken away",
}
"""Served by our engine, and not by RocketMQ once ours has gone on."""


def marked(names: Sequence[str], table: Table) -> list[Any]:
    """The names as parameters; those in the table are expected to fail."""
    return [pytest.param(name, marks=_marks(name, table)) for name in names]


def _marks(name: str, table: Table) -> list[pytest.MarkDecorator]:
    reasons = [table[pattern] for pattern in table if fnmatchcase(name, pattern)]
    # What a kill leaves differs from one making to the next; an archive does not.
    strict = not MADE
    return [pytest.mark.xfail(strict=strict, reason=reason) for reason in reasons]


def right_today(names: Sequence[str], *tables: Table) -> list[str]:
    """The names that no table has a row of."""
    patterns = [one for table in tables for one in table]
    return [name for name in names if not any(fnmatchcase(name, p) for p in patterns)]
