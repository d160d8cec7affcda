"""The law of putting: an answer says where the message is, or that it is nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from models.invariants.registry import invariant
from models.observations import Put
from models.verdict import Violation

_APPENDED = frozenset({"PUT_OK", "FLUSH_DISK_TIMEOUT"})


@invariant(
    "PUT-1",
    "a put is answered with the next place in log and queue, or changes nothing",
    law="I3 I5",
)
def put_takes_the_next_place(
    answer: Put, log_end: int, next_queue_offset: int
) -> Iterator[Violation]:
    """``log_end`` is where the newest message ends; a filler may follow it."""
    where = f"put answered {answer.status}"
    if answer.status not in _APPENDED:
        if answer.phy_offset >= 0:
            yield Violation(where, f"at phy_offset {answer.phy_offset}", "no place")
        return
    if answer.phy_offset < log_end or answer.size <= 0:
        seen = f"phy_offset {answer.phy_offset}, {answer.size} bytes"
        yield Violation(where, seen, f"a place from {log_end} on")
    if answer.queue_offset != next_queue_offset:
        seen = f"queue_offset {answer.queue_offset}"
        yield Violation(where, seen, f"queue_offset {next_queue_offset}")
