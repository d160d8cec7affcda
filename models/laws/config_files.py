"""Laws of a broker's config files, which ``crashmq fsck`` asks."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.files.config_files import BACKUP, committed, config_pairs
from crashmq.models.files.offsets import OFFSETS_PATH
from crashmq.models.files.store_image import StoreImage
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Violation

RESET_BEYOND = 1
"""A reset may go so far past the end of a queue. Source: AdminBrokerProcessor."""


def queue_ends(image: StoreImage) -> dict[tuple[str, int], int]:
    """Where each queue ends, by its own files or by the log, whichever is later."""
    ends = {queue.key: queue.end for queue in image.consume_queues}
    for key, records in image.commit_log.indexed_records.items():
        if records:
            ends[key] = max(ends.get(key, 0), records[-1].queue_offset + 1)
    return ends


@law(
    "CFG-1",
    "of each config file of a broker, the file or its backup is a whole table",
    catalogue="I12 I9",
)
def config_files_are_whole(judged: Judged) -> Iterator[Violation]:
    """Not asked of what a crash left of a store without a mark.

    RocketMQ writes the file in place, and a second crash may take its backup too.
    Source: ConfigManager#load, #persist.
    """
    if not judged.clean and judged.image.checkpoint.mark is None:
        return
    for path, pair in config_pairs(judged.image.files).items():
        if pair.loaded is None:
            seen = f"{pair.file.state}, and its backup {pair.backup.state}"
            yield Violation(path, seen, f"a whole table there or in {path}{BACKUP}")


@law(
    "CFG-2",
    "in a store at rest no group's offset is past the end of its queue",
    catalogue="I12 I16",
)
def no_offset_is_past_its_queue(judged: Judged) -> Iterator[Violation]:
    """Such a group skips what is put there next. One past it a reset may have set.

    A queue that has no message and no file is not judged.
    """
    if not judged.clean:
        return
    ends = queue_ends(judged.image)
    for group, topic, queue_id, offset in committed(judged.image.files):
        end = ends.get((topic, queue_id))
        if end is not None and offset > end + RESET_BEYOND:
            seen = f"offset {offset} of {group} on {topic}/{queue_id}"
            yield Violation(OFFSETS_PATH, seen, f"{end} at most, the queue's end")
