"""Estimates where in the files the records of a program will lie.

Every put counts as appended, and none as lost: an estimate, since a program is
generated before it runs. With it, damage and reads hit existing data more often, and
unwritten bytes less. Batches and entries of light queues are not counted.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from crashmq.models.messages import PROP_CRC_SIZE
from crashmq.models.program import Setup
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.space import BLANK_SIZE_MIN, Address

RECORD_FIELDS = (
    *((0, 4), (0, 4), (4, 4), (8, 4), (8, 4), (12, 4), (16, 4), (20, 8), (28, 8)),
    *((36, 4), (40, 8), (48, 8), (56, 8), (64, 8), (72, 4), (76, 8), (84, 4)),
)
"""Where the fields of a record begin and how long they are, up to the body's length;
twice those that most depends on, its size and its CRC."""

FIELD_SIZE = 4  # of most of an index file's header
INDEX_HEADER_FIELDS = (0, 8, 16, 24, 32, 36)
INDEX_HEADER_SIZE = 40
SLOT_SIZE = 4
ENTRY_SIZE = 20
ENTRIES_MET = 6  # more than that a program seldom puts into one file
FIRST_ENTRY = 1  # entry 0 is never used
INDEX_PARTS = ("header", "slot", "entry", "entry")  # an index is mostly entries


class Piece(NamedTuple):
    """A record of the log, or the BLANK that closes a file."""

    start: int
    size: int


class Whereabouts:
    """The puts of a program so far.

    Attributes:
        counts: by queue, the number of messages.
        end: the phy_offset where the log ends.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._pieces: list[Piece] = []
        self.end = 0
        self.counts: Counter[Address] = Counter()

    @property
    def file(self) -> int:
        """The number of the log file that the next put goes to."""
        return self.end // self._setup.log_file_size

    def put(self, address: Address, record_size: int, times: int) -> None:
        """Count ``times`` more messages of one size."""
        file_size = self._setup.log_file_size
        record_size += PROP_CRC_SIZE if self._setup.prop_crc else 0
        if record_size + BLANK_SIZE_MIN > file_size:
            return  # no store takes it
        for _ in range(times):
            left = file_size - self.end % file_size
            if record_size + BLANK_SIZE_MIN > left:
                self._add(left)
            self._add(record_size)
        self.counts[address] += times

    def list_in(self, light_queues: str, times: int) -> None:
        """Count the last ``times`` messages in the light queues that list them too."""
        for name in light_queues.split(","):
            self.counts[Address(name, 0)] += times

    def _add(self, size: int) -> None:
        self._pieces.append(Piece(self.end, size))
        self.end += size

    @property
    def left_for_a_record(self) -> int:
        """Bytes left for a record in the log's last file."""
        file_size = self._setup.log_file_size
        left = file_size - self.end % file_size - BLANK_SIZE_MIN
        return left - (PROP_CRC_SIZE if self._setup.prop_crc else 0)

    def place_of(self, file: str, otherwise: int, chance: Chance) -> tuple[int, int]:
        """The byte and the size of something meaningful in a log or index file.

        Size 0: any size may be chosen. ``otherwise`` is the byte in other files.
        """
        if file.startswith("commitlog["):
            return self._place_of_log(int(file[10:-1]), otherwise, chance)
        if file.startswith("index[") and self._setup.has_index:
            return self._place_of_index(chance)
        return otherwise, 0

    def _place_of_log(
        self, number: int, otherwise: int, chance: Chance
    ) -> tuple[int, int]:
        """In a record or BLANK of that file: a field, one byte of it, or any byte."""
        file_size = self._setup.log_file_size
        files = -(-self.end // file_size)
        base = number % files * file_size if files else 0
        pieces = [p for p in self._pieces if base <= p.start < base + file_size]
        if not pieces:
            return otherwise, 0
        piece = chance.pick(pieces)
        half, is_any_byte = divmod(chance.word(), 2)
        if is_any_byte:
            return piece.start - base + half % piece.size, 0
        number, width = RECORD_FIELDS[half % len(RECORD_FIELDS)]
        at = piece.start - base + number
        byte = chance.below(2 * width)  # the whole field half of the time
        return (at, width) if byte >= width else (at + byte, 1)

    def _place_of_index(self, chance: Chance) -> tuple[int, int]:
        """In the header, in a slot, or in one of the first entries."""
        part = chance.pick(INDEX_PARTS)
        rest = chance.word()
        if part == "header":
            field, byte = divmod(rest, FIELD_SIZE)
            return INDEX_HEADER_FIELDS[field % len(INDEX_HEADER_FIELDS)] + byte, 0
        if part == "slot":
            slots_size = self._setup.index_slots * SLOT_SIZE
            return INDEX_HEADER_SIZE + rest % slots_size, 0
        entries = INDEX_HEADER_SIZE + self._setup.index_slots * SLOT_SIZE
        number, byte = divmod(rest, ENTRY_SIZE)
        entry = FIRST_ENTRY + number % ENTRIES_MET
        return entries + entry * ENTRY_SIZE + byte, 0
