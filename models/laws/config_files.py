"""Laws of a broker's config files; only ``crashmq fsck`` asks CFG-2."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.files.bloom_bits import bits_of
from crashmq.models.files.config_files import (
    BACKUP,
    committed,
    config_pairs,
    filters_in,
)
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
    "for each config file of a broker, the file or its .bak backup is a complete table",
    catalogue="I12 I9",
)
def config_files_are_whole(judged: Judged) -> Iterator[Violation]:
    """Decodes each file and its backup.

    Not asked after a crash of a store without a durable mark: RocketMQ writes the file
    in place, and a second crash may take its backup too.

    Source: ConfigManager#load, #persist.
    """
    if _may_be_torn(judged):
        return
    for path, pair in config_pairs(judged.image.files).items():
        if pair.loaded is None:
            seen = f"{pair.file.state}, and its backup {pair.backup.state}"
            yield Violation(path, seen, f"a whole table there or in {path}{BACKUP}")


@law(
    "CFG-2",
    "when a broker is idle or was stopped, no consumer offset in its config is past "
    "the end of its queue",
    catalogue="I12 I16",
)
def no_offset_is_past_its_queue(judged: Judged) -> Iterator[Violation]:
    """A group whose offset is past the end skips the messages that are put there next.

    An offset one past the end may come from a reset. A queue without message and file
    is not judged.
    """
    if not judged.clean:
        return
    ends = queue_ends(judged.image)
    for group, topic, queue_id, offset in committed(judged.image.files):
        end = ends.get((topic, queue_id))
        if end is not None and offset > end + RESET_BEYOND:
            seen = f"offset {offset} of {group} on {topic}/{queue_id}"
            yield Violation(OFFSETS_PATH, seen, f"{end} at most, the queue's end")


@law(
    "CFG-3",
    "each entry of the broker's consumer filter table names the topic and group under "
    "which it is filed",
    catalogue="I12",
)
def filters_are_in_their_place(judged: Judged) -> Iterator[Violation]:
    """Bloom filter bits are computed for the place, and pulls are filtered by it.

    Source: ConsumerFilterManager.FilterDataMapByTopic#register.
    """
    if _may_be_torn(judged):
        return
    for path, one in filters_in(judged.image.files):
        if one.names != (one.group, one.topic, one.topic):
            group, topic, holder = one.names
            seen = f"a filter of {group} on {topic}, among those of topic {holder}"
            yield Violation(path, seen, f"one of {one.group} on {one.topic}")


@law(
    "CFG-4",
    "a consumer filter sets the Bloom filter bits that are computed from its group "
    "and topic, and all filters of a table set equally many bits of equally long bit "
    "maps",
    catalogue="I12 I15",
)
def bits_are_those_of_their_group(judged: Judged) -> Iterator[Violation]:
    """A filter with other bits rejects messages whose bit maps were computed for these.

    The number of bits follows from the broker's configuration; a load skips a table
    whose filters have another number, so all filters of one table have the same.

    Source: BloomFilter#generate, ConsumerFilterManager#decode.
    """
    if _may_be_torn(judged):
        return
    shapes: dict[str, tuple[int, int]] = {}
    for path, one in filters_in(judged.image.files):
        where = f"filter of {one.group} on {one.topic}"
        shape = len(one.bit_pos), one.bit_num
        first = shapes.setdefault(path, shape)
        if not one.bit_pos or one.bit_num <= 0 or one.bit_num % 8:
            yield Violation(path, f"{where}: {_shape(shape)}", "some, of whole bytes")
        elif shape != first:
            seen = f"{where}: {_shape(shape)}"
            yield Violation(path, seen, f"{_shape(first)}, as others of the table")
        else:
            expected = bits_of(one.group, one.topic, *shape)
            if one.bit_pos != expected:
                seen = f"{where}: bits {[*one.bit_pos]}"
                yield Violation(path, seen, f"{[*expected]} of {one.bit_num}")


def _shape(shape: tuple[int, int]) -> str:
    return f"{shape[0]} bits of {shape[1]}"


def _may_be_torn(judged: Judged) -> bool:
    """Whether a crash may have left parts of two tables in one file.

    RocketMQ writes in place and without a sync.
    """
    return not judged.clean and judged.image.checkpoint.mark is None
