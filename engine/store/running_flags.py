"""RunningFlags: what the store may do, one bit a reason not to.

Source: org.apache.rocketmq.store.RunningFlags, RocketMQ 5.3.
"""

from __future__ import annotations

NOT_READABLE_BIT = 1
NOT_WRITEABLE_BIT = 1 << 1
FLUSH_FAILED_BIT = 1 << 8  # ours, beyond RocketMQ's seven


class RunningFlags:
    """Bits in memory only: a start begins with none.

    A set rather than a number, since two threads that set a bit each by ``|=`` may
    leave only one; and a failed flush must not be forgotten.
    """

    def __init__(self) -> None:
        self._bits: set[int] = set()

    @property
    def is_writeable(self) -> bool:
        """Whether a put may be taken."""
        return self._bits.isdisjoint((NOT_WRITEABLE_BIT, FLUSH_FAILED_BIT))

    @property
    def is_flushable(self) -> bool:
        """Whether a sync can still prove anything in this life of the store."""
        return FLUSH_FAILED_BIT not in self._bits

    @property
    def is_readable(self) -> bool:
        """Whether messages may be read."""
        return NOT_READABLE_BIT not in self._bits

    def stop_writing(self) -> None:
        """Take no put any more: the log's end is unknown."""
        self._bits.add(NOT_WRITEABLE_BIT)

    def stop_flushing(self) -> None:
        """Believe no sync any more: one has failed."""
        self._bits.add(FLUSH_FAILED_BIT)
