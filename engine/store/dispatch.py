"""DispatchRequest: one scanned record, and the interface of its dispatchers.

Source: org.apache.rocketmq.store.DispatchRequest, CommitLogDispatcher, RocketMQ 5.3.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from crashmq.engine.store.message.message import has_unit, is_topic


class DispatchRequest(NamedTuple):
    """One record as a scan of the log read it; (success, msg_size) says how to go on.

    ============  ========  ===========================================
    success       msg_size  meaning
    ============  ========  ===========================================
    True          > 0       a whole record; go on after it
    True          0         the filler at the end of a file
    False         > 0       its declared length disagrees with its parts
    False         -1        no record
    ============  ========  ===========================================

    Attributes:
        commit_log_offset: the record's phy_offset.
        properties: their bytes as stored in the record.
        light_places: each light queue that lists the record, and its queue_offset
            there.
        flaw: why ``success`` is false; "" if it is true.
        buffer_size: bytes that the record takes in the log, if they are not
            ``msg_size`` because something is wrapped around it; else -1.
        bit_map: the Bloom filter bits of the groups whose filter may match the record;
            b"" if none were computed.
    """

    success: bool
    msg_size: int
    topic: str = ""
    queue_id: int = 0
    commit_log_offset: int = 0
    tags_code: int = 0
    store_timestamp: int = 0
    consume_queue_offset: int = 0
    sys_flag: int = 0
    properties: bytes = b""
    light_places: tuple[tuple[str, int], ...] = ()
    flaw: str = ""
    buffer_size: int = -1
    bit_map: bytes = b""

    @property
    def taken_size(self) -> int:
        """How many bytes the record takes in the log; ``msg_size`` if it is no record.

        Source: DispatchRequest#getBufferSize, as used by doReput.
        """
        return self.msg_size if self.buffer_size < 0 else self.buffer_size

    @property
    def has_unit(self) -> bool:
        """Whether a ConsumeQueue lists this record.

        A topic that cannot name a directory has no queue; brokers do not allow such
        topics.
        """
        return has_unit(self.sys_flag) and is_topic(self.topic)

    def in_light_queues(self) -> list[DispatchRequest]:
        """The record once for each light queue (LMQ) that lists it."""
        return [
            self._replace(
                topic=name,
                queue_id=0,
                consume_queue_offset=at,
                light_places=(),
                bit_map=b"",
            )
            for name, at in self.light_places
        ]


def illegal(flaw: str) -> DispatchRequest:
    """A failed request for bytes that are not a record, with the reason."""
    return DispatchRequest(False, -1, flaw=flaw)


FILLER = DispatchRequest(True, 0)


class CommitLogDispatcher(Protocol):
    """Derives data from the log, as the consume queues and the index do."""

    def dispatch(self, request: DispatchRequest) -> None:
        """Process one record; a second call for the same record has no effect.

        Raises:
            OSError: the record may be processed in part only; call again.
        """
