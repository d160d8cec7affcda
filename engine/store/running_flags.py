"""RunningFlags: one bit for each reason why the store must not do something.

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

Each bit is set and cleared independently. A full disk stops only puts: the log is still
dispatched and read.

Source: org.apache.rocketmq.store.RunningFlags, RocketMQ 5.3. Differs: a bit is set in
one step, while two of RocketMQ's threads may lose one; FLUSH_FAILED is ours; and a
queue that could not be written sets no bit, since its record is dispatched again.
"""

from __future__ import annotations

from enum import IntFlag


class Flag(IntFlag):
    """The bits, with RocketMQ's values; FLUSH_FAILED is an eighth."""

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
    """The flags, in memory only: a start begins with none.

    A set rather than a number: two threads that each set a bit with ``|=`` may leave
    only one of them, and a failed flush must not be forgotten.
    """

    def __init__(self) -> None:
        self._flags: set[Flag] = set()

    @property
    def bits(self) -> int:
        """All flags as one number, as in RocketMQ."""
        return sum(self._flags)

    def has(self, flag: Flag) -> bool:
        """Whether this flag is set."""
        return flag in self._flags

    def set(self, flag: Flag) -> None:
        """Set a flag."""
        self._flags.add(flag)

    def clear(self, flag: Flag) -> None:
        """Clear a flag; the others stay."""
        self._flags.discard(flag)

    @property
    def is_writeable(self) -> bool:
        """Whether puts may be taken.

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
        """Whether the log's end is known and no sync has failed."""
        return self._flags.isdisjoint(_END_UNKNOWN)

    @property
    def is_flushable(self) -> bool:
        """Whether later syncs can be trusted: none has failed since the start."""
        return Flag.FLUSH_FAILED not in self._flags

    def stop_writing(self) -> None:
        """Refuse puts: the log's end is unknown."""
        self.set(Flag.NOT_WRITEABLE)

    def stop_flushing(self) -> None:
        """Trust no later sync: one has failed."""
        self.set(Flag.FLUSH_FAILED)
