"""Laws of putting: an answer says where the message is, and why it was not taken."""

from __future__ import annotations

from collections.abc import Iterator

from models.invariants.registry import invariant
from models.messages import (
    FILLER_SIZE_MIN,
    PROPERTIES_SIZE_MAX,
    RECORD_OVERHEAD,
    MessageToPut,
)
from models.observations import Put
from models.program import Setup
from models.verdict import Violation

_APPENDED = frozenset({"PUT_OK", "FLUSH_DISK_TIMEOUT"})


@invariant(
    "PUT-1",
    "a put is answered with the next place in log and queue, or changes nothing",
    law="I3 I5",
)
def put_takes_the_next_place(
    answer: Put, log_end: int, place: int, next_queue_offset: int
) -> Iterator[Violation]:
    """``log_end`` is where the newest message ends; a filler may follow it.

    ``place`` is where the record must lie; -1 where others acted at the same time.
    """
    where = f"put answered {answer.status}"
    if answer.status not in _APPENDED:
        if answer.phy_offset >= 0:
            yield Violation(where, f"at phy_offset {answer.phy_offset}", "no place")
        return
    if answer.phy_offset < log_end or answer.size <= 0:
        seen = f"phy_offset {answer.phy_offset}, {answer.size} bytes"
        yield Violation(where, seen, f"a place from {log_end} on")
    elif place not in (-1, answer.phy_offset):
        yield Violation(where, f"phy_offset {answer.phy_offset}", f"{place}")
    if answer.queue_offset != next_queue_offset:
        seen = f"queue_offset {answer.queue_offset}"
        yield Violation(where, seen, f"queue_offset {next_queue_offset}")


@invariant(
    "PUT-2", "a put is refused only for its size, or after the disk failed", law="I19"
)
def put_is_refused_for_a_reason(
    message: MessageToPut, answer: Put, setup: Setup, *, may_refuse: bool
) -> Iterator[Violation]:
    """``may_refuse``: the disk failed in this life of the store, or it is stopping."""
    size, body, topic = message.record_size, message.body, message.topic
    expected = "PUT_OK"
    if size - len(body) - len(topic.encode()) > RECORD_OVERHEAD + PROPERTIES_SIZE_MAX:
        expected = "PROPERTIES_SIZE_EXCEEDED"
    elif (
        len(body) > setup.max_message_size
        or size + FILLER_SIZE_MIN > setup.log_file_size
    ):
        expected = "MESSAGE_ILLEGAL"
    if answer.status != expected and not may_refuse:
        yield Violation(f"put of a record of {size} bytes", answer.status, expected)
