"""The side file ``deletedTopics``: which topics and queues a store has deleted.

A line with the format's name, ``phy_offset queue_id topic`` for each topic or queue
(queue_id -1 for a whole topic), and a line with the CRC-32 of everything before.
Records of the topic or queue below that phy_offset are dead: no queue lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

from crashmq.models.files.record import Bytes

DELETED_PATH = "deletedTopics"
ALL_QUEUES = -1

_FIRST = "crashmq deleted topics 1"
_CRC_LINE_SIZE = 9
_DIGITS_MAX = 19


class DeletedImage(NamedTuple):
    """The phy_offsets by (topic, queue_id); ``flaw`` is what is wrong with the file."""

    places: Mapping[tuple[str, int], int]
    flaw: str = ""

    def dead_below(self, topic: str, queue_id: int) -> int:
        """The phy_offset below which a queue's records are dead; 0 if none is."""
        of_topic = self.places.get((topic, ALL_QUEUES), 0)
        return max(of_topic, self.places.get((topic, queue_id), 0))


NOTHING_DELETED = DeletedImage({})


def read_deleted(data: Bytes) -> DeletedImage:
    """Decode the file; damage is returned as ``flaw``, not raised."""
    raw = bytes(data)
    text, crc = raw[:-_CRC_LINE_SIZE], raw[-_CRC_LINE_SIZE:]
    if crc != b"%08x\n" % crc32(text):
        return DeletedImage({}, "its CRC is not that of what it says")
    lines = text.decode(errors="replace").split("\n")
    if lines[0] != _FIRST or lines[-1]:
        return DeletedImage({}, f"it begins with {lines[0]!r}")
    places: dict[tuple[str, int], int] = {}
    for line in lines[1:-1]:
        parts = line.split(" ", 2)
        if len(parts) != 3 or not _is_number(parts[0]) or not _is_queue(parts[1]):
            return DeletedImage({}, f"it has the line {line!r}")
        places[parts[2], int(parts[1])] = int(parts[0])
    return DeletedImage(places)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX


def _is_queue(text: str) -> bool:
    return text == str(ALL_QUEUES) or _is_number(text)
