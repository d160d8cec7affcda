"""Index entries that no crash can have made wrong.

Entries are appended one after the other, so a sector with a correct entry holds every
earlier entry of its own as it was written. Slots and headers are written in place, so
nothing follows for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from crashmq.models.files.index import ENTRY_SIZE, IndexEntry, IndexFileImage
from crashmq.models.laws.judged import Judged, was_cut_here

_SECTOR = 512
_AGREED_MIN = 0.5


class Settled(NamedTuple):
    """An index entry with a correct later entry in its sector.

    Attributes:
        is_right: it is a key of the log, and of no later record than the entry
            after it.
        newest: the number of the last correct entry before it in its slot; -1 if
            the number of slots is unknown.
    """

    path: str
    file: IndexFileImage
    number: int
    entry: IndexEntry
    is_right: bool
    newest: int

    @property
    def leads_astray(self) -> bool:
        """Whether its link leads to itself or forward, or skips an entry of its slot.

        An earlier entry that was lost proves nothing.
        """
        return self.newest >= 0 and not (
            self.newest <= self.entry.previous < self.number
        )


def settled_entries(judged: Judged) -> Iterator[Settled]:
    """The settled entries of each file, the last first, without expired ones."""
    image = judged.image
    if not judged.whole_sectors or was_cut_here(image):
        return
    minimum = image.commit_log.min_phy_offset
    files = image.index(judged.index_slots).files
    right = {(key.key_hash, key.record.phy_offset) for key in image.log_keys}
    if any(_of(e) not in right for _, f in files for e in f.entries):
        right |= image.tag_keys  # of RocketMQ 5.4.0 and later
    for path, file in files:
        newest = _newest_before(file, right)
        settled, following = -1, 0
        for number in range(len(file.entries), 0, -1):
            entry = file.entries[number - 1]
            is_right = (entry.key_hash, entry.phy_offset) in right
            first = file.entry_at(number) // _SECTOR
            last = (file.entry_at(number) + ENTRY_SIZE - 1) // _SECTOR
            is_settled = first == last == settled
            if is_settled and not 0 <= entry.phy_offset < minimum:
                is_right = is_right and entry.phy_offset <= following
                found = (path, file, number, entry, is_right, newest[number - 1])
                yield Settled(*found)
            if is_right and first == last:
                settled, following = last, entry.phy_offset


def _of(entry: IndexEntry) -> tuple[int, int]:
    return entry.key_hash, entry.phy_offset


def _newest_before(
    file: IndexFileImage, right: Collection[tuple[int, int]]
) -> list[int]:
    """For each entry, the number of the correct one before it in its slot, or 0."""
    newest: dict[int, int] = {}
    found = []
    linked = agreed = 0
    for number, entry in enumerate(file.entries, 1):
        slot = entry.key_hash % file.slot_num
        found.append(newest.get(slot, 0))
        if (entry.key_hash, entry.phy_offset) in right:
            newest[slot] = number
            linked += found[-1] > 0 or entry.previous > 0
            agreed += found[-1] == entry.previous > 0
    # With another number of slots than it has, nearly no link would agree.
    return found if agreed > linked * _AGREED_MIN else [-1] * len(found)
