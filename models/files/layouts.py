"""Layouts of other kinds of store, whose log or queues this one cannot read.

Such a store has the same ``commitlog`` or none, so a put could be appended where its
own program does not look for it.

Source: DLedgerCommitLog (``dledger-<selfId>``), RocksDBConsumeQueueStore,
BatchConsumeQueue, CompactionStore (``compactionLog``, ``compactionCq``), RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Iterable

_BELOW = (
    *("batchconsumequeue/", "consumequeue/CURRENT"),
    *("compaction/compactionLog/", "compaction/compactionCq/"),
)
_FOLDERS = ("consumequeue_rocksdb", "dledger-")
"""How the names of folders begin."""


def of_another_layout(paths: Iterable[str]) -> str:
    """The first of the files that a store of another kind has; "" if none is."""
    return min(filter(_is_of_another_layout, paths), default="")


def _is_of_another_layout(path: str) -> bool:
    return path.startswith(_BELOW) or ("/" in path and path.startswith(_FOLDERS))
