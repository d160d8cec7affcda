"""Which messages of a large store no law need see: its splits, read side by side.

The same splits are read here, by processes of this machine or by Spark, and what they
find is joined in the order of the log: the answer does not depend on who read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from crashmq.harness.fsck.as_found import Tell
from crashmq.harness.fsck.store_files import Found
from crashmq.harness.guards.interrupts import (
    held_back,
    left_to_parent,
    new_interpreters,
)
from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.left_out import NOTHING, LeftOut
from crashmq.models.files.log import QueueKey, common_size
from crashmq.models.files.store_image import place_of

if TYPE_CHECKING:
    from crashmq.harness.fsck.scanner import Split, SplitScan

SPLIT_SIZE: Final = 128 << 20
SMALL_SIZE: Final = 32 << 20
COMPILED_SIZE: Final = 256 << 20
Read: TypeAlias = "Callable[[Split], SplitScan]"
Runner: TypeAlias = "Callable[[Read, list[Split]], Iterable[SplitScan]]"


def here(read: Read, splits: list[Split]) -> Iterator[SplitScan]:
    """Read splits one by one, in this process."""
    return map(read, splits)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a store is read: how it is split, who reads the splits, and what is skipped.

    Attributes:
        runner: reads the splits of a large log, and yields them in order.
        small_size: the laws see every record of a log smaller than this, in bytes.
        split_size: size of a split of a log file, in bytes.
        compiled_size: small records of a log this large are read by the compiled walk,
            where numba is installed; to load it costs as much as 200 MB of them.
        with_index: the index is judged; then the laws see all of its messages.
    """

    runner: Runner = here
    small_size: int = SMALL_SIZE
    split_size: int = SPLIT_SIZE
    compiled_size: int = COMPILED_SIZE
    with_index: bool = True


def by_processes(workers: int) -> Runner:
    """Read splits with this many processes."""

    def run(read: Read, splits: list[Split]) -> Iterator[SplitScan]:
        context = new_interpreters()
        with ProcessPoolExecutor(workers, context, left_to_parent) as pool:
            with held_back():  # it starts the workers
                scans = pool.map(read, splits)
            yield from scans

    return run


def survey(found: Found, tell: Tell, manner: Manner) -> LeftOut:
    """The part of a store that the laws need not see; nothing of a small store.

    Nothing is left out either where an index lists the messages, or where crashmq keeps
    a table of deleted topics: both refer to single messages.

    Raises:
        OSError: a file cannot be read.
    """
    logs = []
    queues: dict[QueueKey, list[tuple[int, int, str]]] = {}
    for path, data in found.files.items():
        place = place_of(path)
        if path not in found.paths or path.endswith("/"):
            continue
        if place.kind == "log":
            logs.append((path, found.paths[path].absolute(), place.base, len(data)))
        elif place.kind == "queue":
            where = str(found.paths[path].absolute())
            key = place.topic, place.queue_id
            queues.setdefault(key, []).append((place.base, len(data), where))
    logs.sort(key=lambda one: one[2])
    names_messages = any(
        path == DELETED_PATH or (path.startswith("index/") and data)
        for path, data in found.files.items()
    )
    if names_messages or sum(length for *_, length in logs) < manner.small_size:
        return NOTHING
    # Only a large store needs numpy.
    from crashmq.harness.fsck.scanner import joined, scan_split, splits_of

    size = common_size([base for _, _, base, _ in logs], [n for *_, n in logs])
    is_compiled = sum(length for *_, length in logs) >= manner.compiled_size
    splits = splits_of(logs, size, manner.split_size, is_compiled)
    scans = manner.runner(partial(scan_split, queues=queues), splits)
    return joined(_told(scans, splits, tell))


def _told(
    scans: Iterable[SplitScan], splits: list[Split], tell: Tell
) -> Iterator[SplitScan]:
    tell("scanning the log", 0, len(splits))
    for number, scan in enumerate(scans, 1):
        tell("scanning the log", number, len(splits))
        yield scan
