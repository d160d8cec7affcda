"""ProcessQueue: the messages of one queue that a client has pulled and not finished.

Messages are in a tree by their queue_offset. Concurrent consumption removes them in any
order, and the offset to commit is the smallest one left. Orderly consumption moves them
from the front to a second tree, and commits that as a whole.

Source: org.apache.rocketmq.client.impl.consumer.ProcessQueue, RocketMQ 5.3. Differs: a
commit and the dropping of the queue exclude each other (``commit_offset``), so once the
queue is dropped it commits no offset; in RocketMQ a completion may check that the queue
is its own, and then commit after another client has begun.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence

from crashmq.engine.client.consumer.store.offset_store import OffsetStore
from crashmq.engine.client.impl.consumer.delays import has_passed
from crashmq.engine.common.message_ext import NOT_BEGUN, MessageExt
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

NOTHING_TO_COMMIT = -1
PULL_MAX_IDLE_TIME = 120_000
REBALANCE_LOCK_MAX_LIVE_TIME = 30_000
BROKER_LOCK_MAX_LIVE_TIME = 60_000

EMPTIED = probe(
    "process_queue.emptied", "a completion came after its queue was emptied"
)
LATE = probe("process_queue.late", "a completion came after its queue was dropped")


class OffsetTree:
    """Messages by their queue_offset, in order."""

    def __init__(self) -> None:
        self._messages: dict[int, MessageExt] = {}
        self._offsets: list[int] = []

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[MessageExt]:
        return (self._messages[offset] for offset in self._offsets)

    def __contains__(self, queue_offset: int) -> bool:
        return queue_offset in self._messages

    @property
    def first(self) -> int:
        """The smallest queue_offset; there must be one."""
        return self._offsets[0]

    @property
    def last(self) -> int:
        """The largest queue_offset; there must be one."""
        return self._offsets[-1]

    def put(self, message: MessageExt) -> bool:
        """Put a message, replacing one of its offset; returns whether it is new."""
        is_new = message.queue_offset not in self._messages
        if is_new:
            insort(self._offsets, message.queue_offset)
        self._messages[message.queue_offset] = message
        return is_new

    def pop(self, queue_offset: int) -> MessageExt | None:
        """Take a message out; None if it is not there."""
        message = self._messages.pop(queue_offset, None)
        if message is not None:
            del self._offsets[bisect_left(self._offsets, queue_offset)]
        return message

    def clear(self) -> None:
        """Remove all messages."""
        self._messages.clear()
        self._offsets.clear()


class QueueLease:
    """A client's lock of a queue consumed in order, as the client knows it."""

    def __init__(self) -> None:
        self.locked = False
        self.last_lock_timestamp = 0

    def grant(self, now_ms: int) -> None:
        """Record that the broker granted the lock, asked for at ``now_ms``."""
        self.last_lock_timestamp = now_ms
        self.locked = True

    def refuse(self) -> None:
        """Record that the broker did not grant the lock."""
        self.locked = False

    def holds(self, now_ms: int) -> bool:
        """Whether the queue is certainly locked for this client."""
        return self._is_younger(REBALANCE_LOCK_MAX_LIVE_TIME, now_ms)

    def is_kept(self, now_ms: int) -> bool:
        """Whether the broker cannot have given the lock to another client yet."""
        return self._is_younger(BROKER_LOCK_MAX_LIVE_TIME, now_ms)

    def _is_younger(self, age_ms: int, now_ms: int) -> bool:
        began_ms = self.last_lock_timestamp
        return self.locked and not has_passed(began_ms, age_ms + 1, now_ms)


class ProcessQueue:
    """The messages of one queue in one client.

    Invariants:
        msg_count is the number of messages in both trees, msg_size that of their bytes
        no queue_offset is in both trees
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = runtime.lock()
        self._tree = OffsetTree()
        self._consuming_tree = OffsetTree()
        self.msg_count = 0
        self.msg_size = 0
        self.queue_offset_max = 0
        self.dropped = False
        self.consuming = False
        self.is_held = False
        self.last_pull_timestamp = runtime.now_ms()
        self.lease = QueueLease()

    @property
    def offsets(self) -> tuple[int, ...]:
        """The queue_offsets of all its messages, ascending."""
        both = (*self._tree, *self._consuming_tree)
        return tuple(sorted(message.queue_offset for message in both))

    @property
    def max_span(self) -> int:
        """The distance from the first to the last waiting message.

        Source: #getMaxSpan.
        """
        with self._lock:
            return self._tree.last - self._tree.first if self._tree else 0

    def is_pull_expired(self, now_ms: int) -> bool:
        """Whether it was not pulled for so long that its pull request must be lost.

        If the clock was set back, the time starts again.
        """
        self.last_pull_timestamp = min(self.last_pull_timestamp, now_ms)
        return now_ms - self.last_pull_timestamp > PULL_MAX_IDLE_TIME

    def put_message(self, messages: Sequence[MessageExt]) -> bool:
        """Add pulled messages; returns whether an orderly run must be started."""
        with self._lock:
            for message in messages:
                if self._tree.put(message):
                    self.queue_offset_max = message.queue_offset
                    self.msg_count += 1
                    self.msg_size += len(message.body)
            if not self._tree or self.consuming:
                return False
            self.consuming = True
            return True

    def remove_message(self, messages: Iterable[MessageExt]) -> int:
        """Remove what is finished; the offset to commit, or ``NOTHING_TO_COMMIT``.

        Everything below that offset is finished. Once a queue was emptied otherwise,
        there is none.
        """
        with self._lock:
            if not self._tree:
                EMPTIED.hit()
                return NOTHING_TO_COMMIT
            for message in messages:
                self._forget(self._tree, message.queue_offset)
            return self._tree.first if self._tree else self.queue_offset_max + 1

    def _forget(self, tree: OffsetTree, queue_offset: int) -> None:
        message = tree.pop(queue_offset)
        if message is not None:
            self.msg_count -= 1
            self.msg_size -= len(message.body)

    def contains_message(self, message: MessageExt) -> bool:
        """Whether a message is not finished yet. Source: #containsMessage."""
        with self._lock:
            return message.queue_offset in self._tree

    def take_messages(self, batch_size: int) -> list[MessageExt]:
        """Take the first messages, to be consumed in order; none ends the run."""
        with self._lock:
            taken = [m for m, _ in zip(self._tree, range(batch_size), strict=False)]
            for message in taken:
                self._tree.pop(message.queue_offset)
                self._consuming_tree.put(message)
            if not taken:
                self.consuming = False
            return taken

    def commit(self) -> int:
        """Finish all taken messages; the offset to commit, or ``NOTHING_TO_COMMIT``."""
        with self._lock:
            if not self._consuming_tree:
                return NOTHING_TO_COMMIT
            offset = self._consuming_tree.last + 1
            for message in list(self._consuming_tree):
                self._forget(self._consuming_tree, message.queue_offset)
            return offset

    def rollback(self) -> None:
        """Put back all taken messages. Source: ProcessQueue#rollback."""
        with self._lock:
            self._put_back(list(self._consuming_tree))

    def make_message_to_consume_again(self, messages: Iterable[MessageExt]) -> None:
        """Put back some of the taken messages.

        Source: #makeMessageToConsumeAgain.
        """
        with self._lock:
            self._put_back(messages)

    def _put_back(self, messages: Iterable[MessageExt]) -> None:
        for message in messages:
            if self._consuming_tree.pop(message.queue_offset) is not None:
                self._tree.put(message)

    def forget_taken(self, messages: Iterable[MessageExt]) -> None:
        """Finish some of the taken messages, without an offset to commit."""
        with self._lock:
            for message in messages:
                self._forget(self._consuming_tree, message.queue_offset)

    def first_begun(self) -> MessageExt | None:
        """The first message, if a listener already has it; else None."""
        with self._lock:
            if not self._tree:
                return None
            first = next(iter(self._tree))
            return None if first.consume_start_timestamp == NOT_BEGUN else first

    def remove_if_first(self, message: MessageExt) -> None:
        """Remove a message if it is the first one."""
        with self._lock:
            if self._tree and self._tree.first == message.queue_offset:
                self._forget(self._tree, message.queue_offset)

    def drop(self) -> None:
        """Mark the queue as given up; from now on it commits no offset."""
        with self._lock:
            if not self.dropped:
                self.dropped = True

    def clear(self) -> None:
        """Remove all messages. Source: ProcessQueue#clear."""
        with self._lock:
            self._tree.clear()
            self._consuming_tree.clear()
            self.msg_count = self.msg_size = self.queue_offset_max = 0

    def commit_offset(
        self,
        queue: MessageQueue,
        offset: int,
        store: OffsetStore,
        *,
        increase_only: bool,
    ) -> bool:
        """Set an offset in ``store`` unless the queue was dropped; returns whether.

        While a listener has messages of the queue in order it may still commit, dropped
        or not, until the lock at the broker is too old, since no other client gets the
        queue.

        Source: ConsumeMessageConcurrentlyService#processConsumeResult, its end; also
        ConsumeMessageOrderlyService#processConsumeResult, which commits nothing then.
        """
        with self._lock:
            is_kept = self.is_held and self.lease.is_kept(self._runtime.now_ms())
            if self.dropped and not is_kept:
                LATE.hit()
                return False
            store.update_offset(queue, offset, increase_only=increase_only)
            return True

    def hold(self) -> bool:
        """Keep the queue while a listener has it in order; False: it was dropped."""
        with self._lock:
            if self.dropped or self.is_held:
                return False
            self.is_held = True
            return True

    def let_go(self) -> None:
        """End what ``hold`` began: the listener has returned."""
        with self._lock:
            self.is_held = False

    def _check(self) -> None:
        messages = (*self._tree, *self._consuming_tree)
        assert self.msg_count == len(messages), self.msg_count
        assert self.msg_size == sum(len(message.body) for message in messages)
        assert len(self.offsets) == len(set(self.offsets)), self.offsets
