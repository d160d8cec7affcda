"""TopicDeletion: deletes a topic, or one queue of it, while the store runs.

It waits until no put, dispatch, flush or cleaner is at work. Then the log's end is
recorded durably as the phy_offset below which the topic's records are dead; then the
queues are removed, in memory first, then their files and directories. A crash before
the record leaves the topic as it was, a crash after it leaves files that the next start
removes. Later messages count their queue offsets from 0.

Source: DefaultMessageStore#deleteTopics, #cleanUnusedTopic, RocketMQ 5.3. Differs: in
RocketMQ only the removal of files is durable, a start may build the queues again, and
dispatch may write into a file that is being unmapped.
"""

from __future__ import annotations

from collections.abc import Collection

from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Lock, Runtime
from crashmq.engine.store.clean.deleted_topics import ALL_QUEUES, TopicOrQueue
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.errors import StoreStopped
from crashmq.engine.store.message.message import is_light_queue, is_system_topic
from crashmq.engine.store.queue.consume_queue_store import ConsumeQueueStore
from crashmq.engine.store.running_flags import RunningFlags

DELETED = probe("topic_deletion.deleted", "a topic or a queue was deleted")
UNKNOWN = probe(
    "topic_deletion.unknown", "a deletion named a topic or queue that does not exist"
)
UNWRITTEN = probe("topic_deletion.unwritten", "a deletion failed and changed nothing")
CUT_SHORT = probe("topic_deletion.cut_short", "a deletion failed half-way; puts stop")


class TopicDeletion:
    """Deletes topics and queues, holding the file cleaners' locks meanwhile."""

    def __init__(
        self,
        runtime: Runtime,
        flags: RunningFlags,
        commit_log: CommitLog,
        consume_queues: ConsumeQueueStore,
        cleaners: tuple[Lock, Lock],
    ) -> None:
        self._flags = flags
        self._commit_log = commit_log
        self._consume_queues = consume_queues
        self._deleted = consume_queues.deleted
        self._cleaners = cleaners
        self._lock = runtime.lock()
        self._is_stopped = False

    def delete_topics(self, topics: Collection[str]) -> int:
        """Delete topics with all their queues; returns how many existed.

        Raises:
            StoreStopped: the store is stopping, or a failed disk has stopped puts.
            OSError: the disk failed. Either nothing has changed, or the store takes no
                more puts and the topics may be deleted or not after the next start.

        Source: DefaultMessageStore#deleteTopics.
        """
        return self._delete([(topic, ALL_QUEUES) for topic in sorted(set(topics))])

    def delete_queue(self, topic: str, queue_id: int) -> int:
        """Delete one queue of a topic; returns 1 if it existed, else 0.

        Raises the exceptions of ``delete_topics``.
        """
        return self._delete([(topic, queue_id)])

    def clean_unused_topic(self, retained: Collection[str]) -> int:
        """Delete all topics but ``retained``, system topics and light queues.

        Returns how many topics that were; raises the exceptions of ``delete_topics``.

        Source: DefaultMessageStore#cleanUnusedTopic.
        """
        kept = set(retained)
        unused = [
            topic
            for topic in self._consume_queues.topics()
            if not (topic in kept or is_system_topic(topic) or is_light_queue(topic))
        ]
        return self.delete_topics(unused)

    def stop(self) -> None:
        """Wait for a deletion in progress; delete nothing after it."""
        with self._lock:
            self._is_stopped = True

    def _delete(self, wanted: list[TopicOrQueue]) -> int:
        first, second = self._cleaners
        # In the order in which everybody else takes them.
        with self._lock, first, second, self._consume_queues.flush_lock:
            if self._is_stopped or not self._flags.is_sound:
                raise StoreStopped(
                    "the store takes no deletion: it is stopping, or a disk that "
                    "failed has stopped its puts. Start it again, then delete."
                )
            with self._commit_log.put_lock:
                return self._delete_now(wanted)

    def _delete_now(self, wanted: list[TopicOrQueue]) -> int:
        keys = [key for key in wanted if self._consume_queues.knows(*key)]
        if not keys:
            UNKNOWN.hit()
            return 0
        entries = self._deleted.with_dead(keys, self._commit_log.max_offset)
        try:
            self._deleted.prepare(entries)
        except OSError:
            UNWRITTEN.hit()
            raise
        try:
            self._deleted.publish(entries)
            for key in keys:
                self._consume_queues.delete(*key)
        except OSError:
            # What is on the disk is more than what is known here, or less.
            CUT_SHORT.hit()
            self._flags.stop_writing()
            self._commit_log.refuse_puts_now()
            raise
        DELETED.hit()
        return len(keys)
