"""What two stores serve differently: messages by queue, and offsets of groups.

At a queue_offset a store serves the record to which the unit points, if that is intact.
Two stores serve the same message if all of it is equal but its place in the log, its
store time and its store host. Queues are read side by side, one unit at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from crashmq.harness.reading.looking import Files, queue_files, units_in
from crashmq.harness.reading.stream import LogPiece, Tell, log_pieces, tell_nobody
from crashmq.models.files.config_files import committed
from crashmq.models.files.record import (
    BadRecord,
    Record,
    as_listed,
    parse_record,
    written_part,
)

_NOTHING: Final = "nothing"


@dataclass(frozen=True, slots=True)
class Difference:
    """A run of queue_offsets [first, last] at which two stores serve differently.

    ``how`` is ``only in A``, ``only in B``, or what differs in the messages.
    """

    topic: str
    queue_id: int
    first: int
    last: int
    how: str

    def __str__(self) -> str:
        count = self.last - self.first + 1
        numbers = f"{self.first:,}" if count == 1 else f"{self.first:,}..{self.last:,}"
        messages = "message" if count == 1 else "messages"
        place = f"{self.topic}/{self.queue_id}[{numbers}]"
        return f"{place}: {count:,} {messages} {self.how}"


class Served:
    """The messages of one store, by queue and queue_offset."""

    def __init__(self, files: Files) -> None:
        self._pieces, self._size = log_pieces(files)
        self._queues = queue_files(files)

    @property
    def keys(self) -> set[tuple[str, int]]:
        """Topic and queue of each queue that has a file."""
        return {*self._queues}

    def messages(self, key: tuple[str, int]) -> Iterator[tuple[int, Record]]:
        """Each message that a queue serves, by queue_offset, ascending."""
        for number, phy_offset, size, _ in units_in(self._queues.get(key, [])):
            record = self._at(phy_offset, size)
            if record is None or not record.is_indexed:
                continue
            listed = as_listed(record, key[0])
            place = listed.topic, listed.queue_id, listed.queue_offset
            if place == (*key, number):
                yield number, listed

    def _at(self, phy_offset: int, size: int) -> Record | None:
        piece = self._piece_at(phy_offset)
        if piece is None:
            return None
        at = phy_offset - piece.base
        try:
            record = parse_record(
                piece.data, at, piece.limit, phy_offset, takes_nul=True
            )
        except BadRecord:
            return None
        return record if record.size == size else None

    def _piece_at(self, phy_offset: int) -> LogPiece | None:
        if not self._pieces or not self._size or phy_offset < self._pieces[0].base:
            return None
        number = (phy_offset - self._pieces[0].base) // self._size
        near = self._pieces[max(0, min(number, len(self._pieces) - 1)) :: -1]
        for piece in near:
            if piece.base <= phy_offset < piece.base + piece.limit:
                return piece
        return None


def differences(
    left: Files, right: Files, tell: Tell = tell_nobody
) -> Iterator[Difference]:
    """What the queues of A and B serve differently, in runs."""
    one, other = Served(left), Served(right)
    keys = sorted(one.keys | other.keys)
    for number, key in enumerate(keys):
        tell("comparing queues", number, len(keys))
        yield from _runs(key, _of_queue(one.messages(key), other.messages(key)))


def _of_queue(
    left: Iterator[tuple[int, Record]], right: Iterator[tuple[int, Record]]
) -> Iterator[tuple[int, str]]:
    """(queue_offset, how) of each difference."""
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            assert one is not None
            yield one[0], "only in A"
            one = next(left, None)
        elif one is None or other[0] < one[0]:
            yield other[0], "only in B"
            other = next(right, None)
        else:
            if how := _parted(one[1], other[1]):
                yield one[0], how
            one, other = next(left, None), next(right, None)


def _parted(one: Record, other: Record) -> str:
    """What differs between two messages; "" if nothing does."""
    pairs = {
        "body": (bytes(one.body), bytes(other.body)),
        "properties": (
            written_part(one.properties_raw),
            written_part(other.properties_raw),
        ),
        "flag": (one.flag, other.flag),
        "sys_flag": (one.sys_flag, other.sys_flag),
        "born_timestamp": (one.born_timestamp, other.born_timestamp),
        "born_host": (one.born_host, other.born_host),
        "reconsume_times": (one.reconsume_times, other.reconsume_times),
    }
    parts = [name for name, (left, right) in pairs.items() if left != right]
    return f"with another {' and '.join(parts)}" if parts else ""


def _runs(
    key: tuple[str, int], found: Iterator[tuple[int, str]]
) -> Iterator[Difference]:
    first = last = -1
    known = ""
    for number, how in found:
        if how == known and number == last + 1:
            last = number
            continue
        if known:
            yield Difference(*key, first, last, known)
        first, last, known = number, number, how
    if known:
        yield Difference(*key, first, last, known)


def offsets_differing(left: Files, right: Files) -> Iterator[str]:
    """A sentence for each offset of a group that only one has, or that differs."""
    one, other = (
        {(group, topic, queue_id): offset for group, topic, queue_id, offset in rows}
        for rows in (committed(left), committed(right))
    )
    for row in sorted({*one, *other}):
        said = one.get(row, _NOTHING), other.get(row, _NOTHING)
        if said[0] != said[1]:
            group, topic, queue_id = row
            yield f"offset of {group} on {topic}/{queue_id}: A {said[0]}, B {said[1]}"
