"""RunningFlags: what the store may do, one bit a reason not to.

=================  =========  ============  =======
bit                takes put  queues grow   is read
=================  =========  ============  =======
NOT_READABLE       yes        yes           no
NOT_WRITEABLE      no         no            yes
LOGICS_QUEUE_ERROR no         no            yes
INDEX_FILE_ERROR   no         no            yes
DISK_FULL          no         yes           yes
FENCED             no         yes           yes
LOGIC_DISK_FULL    no         no            yes
FLUSH_FAILED       no         yes           yes
=================  =========  ============  =======

Every bit is set and cleared by itself. A full disk stops puts alone: what the log has
is still dispatched and read.

Source: org.apache.rocketmq.store.RunningFlags, RocketMQ 5.3. Differs: a bit is set by
one step, where two threads there may lose one; FLUSH_FAILED is ours; and a queue that
could not be written sets no bit, since its record is dispatched again.
"""

from __future__ import annotations

from enum import IntFlag


class Flag(IntFlag):
    """The reasons, with RocketMQ's values; the last one is beyond its seven."""

    NOT_READABLE = 1
    NOT_WRITEABLE = 1 << 1
    LOGICS_QUEUE_ERROR = 1 << 2
    INDEX_FILE_ERROR = 1 << 3
    DISK_FULL = 1 << 4
    FENCED = 1 << 5
    LOGIC_DISK_FULL = 1 << 6
    FLUSH_FAILED = 1 << 8


_STOP_READING = frozenset({Flag.NOT_READABLE})
_STOP_QUEUES = frozenset(
    {
        Flag.NOT_WRITEABLE,
        Flag.LOGICS_QUEUE_ERROR,
        Flag.INDEX_FILE_ERROR,
        Flag.LOGIC_DISK_FULL,
    }
)
_STOP_PUTS = _STOP_QUEUES | {Flag.DISK_FULL, Flag.FENCED, Flag.FLUSH_FAILED}
_END_UNKNOWN = frozenset({Flag.NOT_WRITEABLE, Flag.FLUSH_FAILED})


class RunningFlags:
    """Bits in memory only: a start begins with none.

    A set rather than a number, since two threads that set a bit each by ``|=`` may
    leave only one; and a failed flush must not be forgotten.
    """

    def __init__(self) -> None:
        self._flags: set[Flag] = set()

    @property
    def bits(self) -> int:
        """All of them as one number, as RocketMQ shows them."""
        return sum(self._flags)

    def has(self, flag: Flag) -> bool:
        """Whether one of them is set."""
        return flag in self._flags

    def set(self, flag: Flag) -> None:
        """Let it hold from now on."""
        self._flags.add(flag)

    def clear(self, flag: Flag) -> None:
        """Let it hold no more; the others stay as they are."""
        self._flags.discard(flag)

    @property
    def is_writeable(self) -> bool:
        """Whether a put may be taken.

        Source: RunningFlags#isWriteable.
        """
        return self._flags.isdisjoint(_STOP_PUTS)

    @property
    def is_cq_writeable(self) -> bool:
        """Whether a queue may be written.

        Source: RunningFlags#isCQWriteable.
        """
        return self._flags.isdisjoint(_STOP_QUEUES)

    @property
    def is_readable(self) -> bool:
        """Whether messages may be read.

        Source: RunningFlags#isReadable.
        """
        return self._flags.isdisjoint(_STOP_READING)

    @property
    def is_sound(self) -> bool:
        """Whether the log's end is known and its syncs can be believed."""
        return self._flags.isdisjoint(_END_UNKNOWN)

    @property
    def is_flushable(self) -> bool:
        """Whether a sync can still prove anything in this life of the store."""
        return Flag.FLUSH_FAILED not in self._flags

    def stop_writing(self) -> None:
        """Take no put any more: the log's end is unknown."""
        self.set(Flag.NOT_WRITEABLE)

    def stop_flushing(self) -> None:
        """Believe no sync any more: one has failed."""
        self.set(Flag.FLUSH_FAILED)
