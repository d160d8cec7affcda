"""TransientStorePool: write buffers that receive a log file's appends first.

A buffer has the size of a log file. A mapped file borrows one, commits it to the file
in larger pieces, and returns it when the file is full and committed.

Source: org.apache.rocketmq.store.TransientStorePool, RocketMQ 5.3. Differs: a file that
finds the pool empty is written and read directly; in RocketMQ it is written directly,
but read only up to a committed position that never moves.
"""

from __future__ import annotations

from crashmq.engine.host.probe import probe

BORROWED = probe("transient_store_pool.borrow", "a log file got a write buffer")
EXHAUSTED = probe("transient_store_pool.exhausted", "a log file found no buffer left")
RETURNED = probe("transient_store_pool.return", "a write buffer was returned")


class TransientStorePool:
    """The free buffers; their old contents are not cleared.

    Putters borrow while the commit service returns; each is one step on a list, so
    neither needs a lock.
    """

    def __init__(self, size: int, buffer_size: int) -> None:
        self._buffer_size = buffer_size
        self._unmade = [None] * size
        self._free: list[bytearray] = []

    @property
    def available(self) -> int:
        """How many buffers can be borrowed.

        Source: TransientStorePool#availableBufferNums.
        """
        return len(self._free) + len(self._unmade)

    def borrow_buffer(self) -> bytearray | None:
        """A buffer; None if all are borrowed.

        Source: TransientStorePool#borrowBuffer.
        """
        for store in (self._free, self._unmade):
            try:
                buffer = store.pop()
            except IndexError:
                continue
            BORROWED.hit()
            return bytearray(self._buffer_size) if buffer is None else buffer
        EXHAUSTED.hit()
        return None

    def return_buffer(self, buffer: bytearray) -> None:
        """Return a borrowed buffer.

        Source: TransientStorePool#returnBuffer.
        """
        RETURNED.hit()
        self._free.append(buffer)
