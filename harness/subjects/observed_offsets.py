"""ObservedOffsets: a local offset store whose reads and writes are recorded as events.

Nothing is recorded once the client's process has ended: then its disk belongs to the
next one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from crashmq.engine.client.consumer.store.local_file_offset_store import (
    LocalFileOffsetStore,
)
from crashmq.engine.client.consumer.store.offset_store import ReadOffsetType
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.harness.disk.crash import StoreCrashed
from crashmq.models.history import Happening, OffsetRead, OffsetSent, OneQueue


class ObservedOffsets:
    """The offsets of one broadcasting consumer."""

    def __init__(
        self,
        store: LocalFileOffsetStore,
        mine: Callable[[MessageQueue], OneQueue],
        check: Callable[[], None],
        note: Callable[[Happening], None],
    ) -> None:
        """Record what ``store`` does.

        Args:
            store: the client's local offset store.
            mine: says which client and group work on a queue.
            check: raises if the process no longer exists.
            note: is called with each event.
        """
        self._store = store
        self._mine = mine
        self._check = check
        self._note = note
        self.load = store.load
        self.update_offset = store.update_offset
        self.update_and_freeze_offset = store.update_and_freeze_offset
        self.remove_offset = store.remove_offset
        self.clone_offset_table = store.clone_offset_table
        self.heard_of = store.heard_of
        self.broker_life_of = store.broker_life_of

    @contextmanager
    def _on_disk(self) -> Iterator[None]:
        """Use the client's disk; raise if the client's process has ended."""
        self._check()
        try:
            yield
        except StoreCrashed:
            self._check()
            raise
        self._check()

    def read_offset(self, queue: MessageQueue, read_type: ReadOffsetType) -> int:
        """The offset of a queue."""
        with self._on_disk():
            offset = self._store.read_offset(queue, read_type)
        if read_type is ReadOffsetType.READ_FROM_STORE:
            self._note(OffsetRead(self._mine(queue), offset))
        return offset

    def persist(self, queue: MessageQueue) -> int:
        """Keep the offset of one queue."""
        with self._on_disk():
            kept = self._store.persist(queue)
        self._tell([queue])
        return kept

    def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """Keep the offsets of all queues."""
        with self._on_disk():
            self._store.persist_all(queues)
        self._tell(queues)

    def _tell(self, queues: Collection[MessageQueue]) -> None:
        kept = self._store.kept
        for queue in queues:
            if queue in kept:
                self._note(OffsetSent(self._mine(queue), kept[queue], kept[queue]))
