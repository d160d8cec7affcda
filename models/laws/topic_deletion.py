"""Laws of deleted topics: a topic is deleted as a whole and for good."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from crashmq.models.files.deleted import ALL_QUEUES, DELETED_PATH
from crashmq.models.files.inferred_deletions import is_kept_topic
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Violation


@law(
    "DEL-7",
    "the deleted-topics file is intact and holds no phy_offset past the CommitLog's "
    "end",
    catalogue="I14",
)
def record_of_deletions_is_whole(judged: Judged) -> Iterator[Violation]:
    """Decodes the file and compares its phy_offsets with the log's end.

    A phy_offset past the end would delete messages that are put next. After a crash the
    log may have lost its end, which the next start handles; while the store runs, its
    end may lie in a write buffer.
    """
    log = judged.image.commit_log
    if log.deleted.flaw:
        yield Violation(DELETED_PATH, log.deleted.flaw, "a whole file, or none")
    if judged.clean and f"{DELETED_PATH}.tmp" in judged.image.files:
        yield Violation(f"{DELETED_PATH}.tmp", "it is there", "none at rest")
    if not judged.clean or judged.image.abort:
        return
    for (topic, queue_id), at in log.deleted.places.items():
        if at > log.max_phy_offset:
            seen = f"{topic}/{queue_id} is dead below {at}"
            yield Violation(DELETED_PATH, seen, f"at most {log.max_phy_offset}")


@law(
    "DEL-13",
    "deleting a topic or queue leaves none of its consumequeue and consumequeue_ext "
    "files",
    catalogue="I14 I20",
)
def nothing_is_left_of_the_deleted(
    files: Iterable[str], topic: str, queue_id: int
) -> Iterator[Violation]:
    """Looks for such files right after a deletion that ran alone.

    ``queue_id`` -1 is the whole topic.

    Source: DefaultMessageStore#deleteTopics, ConsumeQueueStore#destroy.
    """
    for root in ("consumequeue", "consumequeue_ext"):
        folder = f"{root}/{topic}/"
        if queue_id != ALL_QUEUES:
            folder += f"{queue_id}/"
        for path in files:
            if path.startswith(folder):
                yield Violation(path, "it is there", "nothing of what was deleted")


@law(
    "DEL-15",
    "deleting all unused topics deletes none that is retained, no system topic and no "
    "light queue, and counts those that it deletes",
    catalogue="I14",
)
def what_is_retained_stays(
    retained: Collection[str], deleted: Collection[str], count: int
) -> Iterator[Violation]:
    """``deleted`` are the topics that the store has marked, ``count`` its answer.

    That each of the others goes is left to DEL-10.

    Source: DefaultMessageStore#cleanUnusedTopic.
    """
    for topic in sorted(deleted):
        if topic in retained or is_kept_topic(topic):
            yield Violation(f"topic {topic}", "it is deleted", "it is retained")
    if count != len(deleted):
        yield Violation("the answer", f"{count} topics", f"{len(deleted)} are deleted")


@law(
    "DEL-8",
    "no ConsumeQueue unit points at a record that was put before its topic or queue "
    "was deleted",
    catalogue="I3 I14",
)
def no_unit_points_at_the_dead(judged: Judged) -> Iterator[Violation]:
    """Compares each unit's phy_offset with that of its queue's deletion, at rest.

    Neither a leftover queue nor a queue of a topic that was created again may have such
    a unit.
    """
    deleted = judged.image.commit_log.deleted
    if not (judged.clean and deleted.places):
        return
    for queue in judged.image.consume_queues:
        dead_below = deleted.dead_below(queue.topic, queue.queue_id)
        for unit in queue.units:
            if unit.phy_offset < dead_below and not unit.is_pre_blank:
                yield Violation(
                    queue.where(unit.queue_offset),
                    f"phy_offset {unit.phy_offset}",
                    f"none before {dead_below}, where the queue was deleted",
                )


@law(
    "DEL-9",
    "a start knows exactly the topics and queues that were deleted, and the phy_offset "
    "below which each one's messages are deleted",
    catalogue="I14",
)
def deletions_are_remembered(
    found: Mapping[QueueKey, int],
    deleted: Mapping[QueueKey, int],
    may_be_deleted: Mapping[QueueKey, tuple[int, int]],
    log_min: int,
    log_end: int,
) -> Iterator[Violation]:
    """Compares the deletions that the start reads with those that it must read.

    Args:
        found: the phy_offset below which a topic's or queue's messages are deleted,
            as the start reads it.
        deleted: the same, as it must be.
        may_be_deleted: for deletions that a crash or a failing disk cut short, the
            phy_offsets between which they may end, if they count.
        log_min: deletions of what lies below may be forgotten: it has expired.
        log_end: what lay past it is lost.
    """
    for key in sorted({*found, *deleted, *may_be_deleted}):
        at = found.get(key, 0)
        known = min(deleted.get(key, 0), log_end)
        lowest, highest = may_be_deleted.get(key, (log_end + 1, 0))
        is_one_cut_short = min(lowest, log_end) <= at <= min(highest, log_end)
        # The topic's own place, once it has one, speaks for all of its queues.
        is_of_topic = not at and found.get((key[0], ALL_QUEUES), 0) >= known
        if at == known or max(at, known) <= log_min:
            continue
        if not (is_one_cut_short or is_of_topic):
            where = f"{DELETED_PATH}: {key[0]}/{key[1]}"
            yield Violation(where, f"dead below {at}", f"dead below {known}")


@law(
    "DEL-10",
    "deleting a topic or queue deletes every message put before the deletion and none "
    "put after it",
    catalogue="I14",
)
def deletion_ends_where_the_log_did(
    dead_below: int, lowest: int, highest: int, *, had_messages: bool
) -> Iterator[Violation]:
    """Compares where a deletion ended with where the log ended while it ran.

    Args:
        dead_below: the phy_offset that the deletion returned; -1: nothing to
            delete.
        lowest: where the log ended before the deletion.
        highest: where it ended after it.
        had_messages: whether the topic or queue had any message.

    Source: DefaultMessageStore#deleteTopics.
    """
    if dead_below < 0:
        if had_messages:
            yield Violation("deletion", "there was nothing to delete", "messages go")
    elif not lowest <= dead_below <= highest:
        expected = f"below the log's end, in [{lowest}, {highest}]"
        yield Violation("deletion", f"what lies below {dead_below} goes", expected)


@law(
    "DEL-16",
    "a deletion of a topic or queue is refused only while the store stops, or after a "
    "disk call failed or met a full disk",
    catalogue="I14 I19",
)
def deletion_is_refused_with_reason(why: str) -> Iterator[Violation]:
    """Asked of a refused deletion if neither has happened since the store started.

    A broker always refuses it for a topic that is RocketMQ's own.

    A disk that is only nearly full stops puts, not deletions, which make room.
    """
    yield Violation("deletion", f"it was refused: {why}", "the messages go")


@law(
    "DEL-17",
    "after a start, the deleted-topics file names only deletions of which the "
    "CommitLog may still have records",
    catalogue="I14 I20",
)
def expired_deletions_are_forgotten(
    deleted: Mapping[QueueKey, int], log_min: int
) -> Iterator[Violation]:
    """``deleted`` is what the start has left in the file, with where the records die.

    Else the file grows with every topic that was ever deleted, and each dispatched
    record is looked up in it.
    """
    for (topic, queue_id), at in sorted(deleted.items()):
        if at <= log_min:
            seen = f"{topic}/{queue_id} is dead below {at}"
            yield Violation(DELETED_PATH, seen, f"none before {log_min}: expired")
