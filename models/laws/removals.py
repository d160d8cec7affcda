"""Laws of removals: what makes a file unnecessary is durable before the file goes.

They ask the medium at the moment of the removal or rename, so no power loss has to
come. ``taken`` is what was known right before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crashmq.models.files.checkpoint import read_checkpoint
from crashmq.models.files.deleted import read_deleted
from crashmq.models.files.queue import PRE_BLANK_SIZE, UNIT_SIZE
from crashmq.models.files.record import RECORD_SIZE_MIN
from crashmq.models.files.store_image import Bytes
from crashmq.models.history import TakenAway
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Place, Violation

_END_PHY_OFFSET = slice(24, 32)  # of an index file's header
_OF_THE_END = frozenset({"abort", "lock"})


@law(
    "DUR-3",
    "a file is renamed over another one only after its whole content is synced",
    catalogue="I7 I12",
)
def what_is_renamed_is_synced(taken: TakenAway) -> Iterator[Violation]:
    """Asked at each rename: of a config file, its backup, the deleted-topics file.

    Otherwise a power loss could leave half of the bytes under the new name, or none.

    Differs: MixAll#string2File syncs nothing.
    """
    if not taken.is_synced:
        yield Violation(taken.path, "a power loss could take its bytes", "synced")


@law(
    "DUR-4",
    "the abort file is removed only after every other file is synced",
    catalogue="I7 I9",
)
def orderly_end_is_durable_first(taken: TakenAway) -> Iterator[Violation]:
    """Otherwise a start would trust an orderly shutdown and not notice what it lost.

    A temporary file may still be unsynced: the next start removes it.

    Source: DefaultMessageStore#shutdown, its order.
    """
    for path, first in taken.unsynced:
        is_left_over = first < 0 and path.endswith(".tmp")
        if path not in _OF_THE_END and not is_left_over:
            where = Place(path, max(0, first))
            yield Violation(where, "a power loss could change it", "synced before")


@law(
    "DUR-5",
    "a CommitLog file is deleted only after the units of its records are synced, the "
    "checkpoint's log_min_offset has passed it, and the removal of the file before it "
    "is synced",
    catalogue="I5 I14",
)
def log_file_is_needless(
    taken: TakenAway, file_size: int, files: Mapping[str, Bytes]
) -> Iterator[Violation]:
    """A running store may delete a log file only after three things are durable.

    The checkpoint has a log_min_offset behind the file, the log files before it are
    gone, and the ConsumeQueue units of its records are synced. Otherwise a power loss
    could leave a log with a hole, or a queue that counts its offsets again from what is
    left. ``files`` are those that exist at the deletion.

    Source: MappedFileQueue#deleteExpiredFileByTime; the checkpoint's log_min_offset is
    this store's own.
    """
    base = int(taken.path.rpartition("/")[2])
    end = base + file_size
    mark = read_checkpoint(taken.checkpoint).mark
    log_min = mark.log_min_offset if mark is not None else 0
    if log_min < end:
        seen = f"the checkpoint on the medium has log_min_offset {log_min}"
        yield Violation(taken.path, seen, f"at least {end}, before it is deleted")
    before = [path for path in taken.log if int(path.rpartition("/")[2]) < base]
    if before:
        seen = f"{before[-1]} could come back"
        yield Violation(taken.path, seen, "the files before it gone from the medium")
    for path, first in taken.unsynced:
        if first < 0 or not path.startswith("consumequeue/"):
            continue
        begin = first - first % UNIT_SIZE
        phy_offset = _leads_to(files.get(path, b"")[begin : begin + UNIT_SIZE])
        if 0 <= phy_offset < end:
            seen = f"a power loss could take the unit of the record at {phy_offset}"
            yield Violation(Place(path, first), seen, f"synced before {taken.path}")


@law(
    "DUR-6",
    "a ConsumeQueue or index file is deleted only after the deletion of all its "
    "records (of their topic, or of their CommitLog files) is durable",
    catalogue="I10 I14",
)
def listing_is_needless(taken: TakenAway) -> Iterator[Violation]:
    """Asked at each deletion in a running store; compares the file's last record.

    Otherwise a power loss could bring records back that no queue, or index file, lists.

    Source: MappedFileQueue#deleteExpiredFileByOffset, IndexService#deleteExpiredFile.
    """
    top, *rest = taken.path.split("/")
    if top == "index":
        last, dead_below = int.from_bytes(taken.content[_END_PHY_OFFSET]), 0
    else:
        last = _last_place(taken.content)
        deleted = read_deleted(taken.deleted) if taken.deleted else None
        queue_id = int(rest[1])
        dead_below = deleted.dead_below(rest[0], queue_id) if deleted else 0
    begins = [int(path.rpartition("/")[2]) for path in taken.log]
    lowest = min(begins, default=1 << 62)
    if last >= max(lowest, dead_below):
        seen = (
            f"it lists the record at {last}; on the medium the log begins at {lowest}"
        )
        yield Violation(taken.path, seen, "its topic, or the log before, gone for good")


def _leads_to(unit: Bytes) -> int:
    """The phy_offset of a unit; -1 if it is no unit, or a pre-blank one."""
    size = int.from_bytes(bytes(unit[8:12]), "big", signed=True)
    if not RECORD_SIZE_MIN <= size < PRE_BLANK_SIZE:
        return -1
    return int.from_bytes(bytes(unit[:8]), "big")


def _last_place(content: Bytes) -> int:
    """The phy_offset of a queue file's last unit; -1 without one."""
    for begin in range(len(content) - UNIT_SIZE, -1, -UNIT_SIZE):
        place = _leads_to(content[begin : begin + UNIT_SIZE])
        if place >= 0:
            return place
    return -1
