"""Laws of a start that takes over a directory which another program left.

Source: DefaultMessageStore#load, #recover: an orderly start of RocketMQ changes nothing
of what it finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.log import QueueKey
from crashmq.models.files.store_image import StoreImage
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Violation

_TIMES_END, _MARK_AT = 40, 512
_OF_A_START = ("commitlog/", "consumequeue/", "consumequeue_ext/", "index/", "config/")
_RUN_FILES = frozenset(
    {"abort", "checkpoint", "lock", DELETED_PATH, f"{DELETED_PATH}.tmp"}
)


@law(
    "REC-21",
    "a start on a directory that another program wrote keeps its CommitLog, the "
    "checkpoint fields that the store does not know and, after an orderly shutdown, "
    "its units and index entries, and marks all of that log as another program's",
    catalogue="I9 I10",
)
def what_others_left_is_kept(
    found: StoreImage, left: StoreImage, index_slots: int = 0
) -> Iterator[Violation]:
    """Compares the files before and after a start that ran alone and succeeded.

    Of the checkpoint the bytes between RocketMQ's first five fields and the mark are
    compared: later versions write more fields there. After a crash queues and index may
    have wrong parts, and dispatch writes again what the start cuts.

    Args:
        found: the files before.
        left: the files after.
        index_slots: slots of each index file; 0: derived from the files.
    """
    end = found.commit_log.max_phy_offset
    for file in found.commit_log.files:
        size = max(0, min(len(file.data), end - file.base))
        if left.files.get(file.path, b"")[:size] != file.data[:size]:
            yield Violation(file.path, "other bytes", f"{size} B as they were found")
    for path, data in sorted(found.files.items()):
        is_of_a_start = path.startswith(_OF_A_START) or path in _RUN_FILES
        if not is_of_a_start and left.files.get(path) != data:
            seen = "other bytes" if path in left.files else "gone"
            yield Violation(path, seen, f"{len(data)} B as they were found")
    fields = [
        image.files.get("checkpoint", b"")[_TIMES_END:_MARK_AT]
        for image in (found, left)
    ]
    if found.has_checkpoint and fields[0] != fields[1]:
        seen = "other bytes behind the five fields"
        yield Violation("checkpoint", seen, "what a later version wrote there")
    if not found.abort:
        yield from _not_marked(left, end)
        yield from _lost_units(found, left)
        yield from _lost_entries(found, left, index_slots)


@law(
    "REC-22",
    "a start on a directory that another program may have written to since it was "
    "marked removes a unit only if dispatch writes one for that queue_offset again; "
    "otherwise it refuses",
    catalogue="I9 I10",
)
def no_unit_of_others_is_cut(
    found: StoreImage, left: StoreImage, deleted: Collection[QueueKey] = ()
) -> Iterator[Violation]:
    """Compares the units before and after a start that ran alone and succeeded.

    What cannot point at any record is no unit. After a crash, units that point past
    the end of the log may go.

    Args:
        found: the files before.
        left: the files after.
        deleted: the queues whose messages were deleted, or may have been.
    """
    log = found.commit_log
    for queue in found.consume_queues:
        now = left.queue_at.get(queue.key)
        kept = frozenset(now.all_units) if now is not None else frozenset()
        lost = [unit for unit in queue.all_units if unit not in kept]
        if not lost or queue.key in deleted:
            continue
        built = {one.queue_offset for one in log.indexed_records.get(queue.key, ())}
        for unit in lost:
            is_any = unit.phy_offset >= 0 and unit.size > 0 and not unit.is_pre_blank
            is_behind = found.abort and unit.phy_offset >= log.max_phy_offset
            if is_any and not is_behind and unit.queue_offset not in built:
                where = queue.where(unit.queue_offset)
                yield Violation(where, "the unit is gone", "a refusal to start")


def _not_marked(left: StoreImage, end: int) -> Iterator[Violation]:
    """A mark that does not say that the log up to ``end`` may be another program's."""
    mark = left.checkpoint.mark
    others = mark.others_until if mark is not None else 0
    if others < end:
        yield Violation("checkpoint", f"others_until {others}", f"{end}, the log's end")


def _lost_units(found: StoreImage, left: StoreImage) -> Iterator[Violation]:
    for queue, units in found.live_units:
        now = left.queue_at.get(queue.key)
        kept = frozenset(now.units) if now is not None else frozenset()
        lost = [unit for unit in units if unit not in kept]
        if lost:
            where = queue.where(lost[0].queue_offset)
            yield Violation(where, f"{len(lost)} units less", "what was found there")


def _lost_entries(
    found: StoreImage, left: StoreImage, index_slots: int
) -> Iterator[Violation]:
    """Entries of the log's keys and tags that disappeared."""
    keys = {(key.key_hash, key.record.phy_offset) for key in found.log_keys}
    right = keys | found.tag_keys
    before, after = [
        Counter(
            (entry.key_hash, entry.phy_offset)
            for _, file in image.index(index_slots).files
            for entry in file.entries
        )
        for image in (found, left)
    ]
    lost = [one for one in (before - after) if one in right]
    if lost:
        seen = f"{len(lost)} entries less, the first of {min(at for _, at in lost)}"
        yield Violation("index", seen, "the entries that were found")
