"""Whereabouts: where in the files that likely lies which a program stores.

Every put is taken to be appended, and none to be lost: a guess, for who writes a
program does not run it. With it damage and reads meet what is there more often, and
bytes that were never written less. Batches are not counted, nor is what light queues
list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from models.messages import PROP_CRC_SIZE
from models.program import Setup
from scenarios.space import BLANK_SIZE_MIN, Address

RECORD_FIELDS = (0, 0, 4, 8, 12, 16, 20, 28, 36, 40, 48, 56, 64, 72, 76, 84)
"""Where the fields of a record begin, its size twice, up to the body's length."""

FIELD_SIZE = 4  # of most; of others the first half
INDEX_HEADER_FIELDS = (0, 8, 16, 24, 32, 36)
INDEX_HEADER_SIZE = 40
SLOT_SIZE = 4
ENTRY_SIZE = 20
ENTRIES_MET = 6  # more than that a program seldom puts into one file
FIRST_ENTRY = 1  # entry 0 is never used


class Piece(NamedTuple):
    """A record of the log, or the filler that closes a file."""

    start: int
    size: int


class Whereabouts:
    """What a program has put so far.

    Attributes:
        counts: messages of each queue.
        end: where the log ends.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._pieces: list[Piece] = []
        self.end = 0
        self.counts: Counter[Address] = Counter()

    @property
    def file(self) -> int:
        """The number of the log file that is put to."""
        return self.end // self._setup.log_file_size

    def put(self, address: Address, record_size: int, times: int) -> None:
        """Some more messages of one size are put."""
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

    def _add(self, size: int) -> None:
        self._pieces.append(Piece(self.end, size))
        self.end += size

    def byte_of(self, file: str, otherwise: int, draw: Callable[[], int]) -> int:
        """A byte that says something, of a file of the log or the index."""
        if file.startswith("commitlog["):
            return self._byte_of_log(int(file[10:-1]), otherwise, draw)
        if file.startswith("index[") and self._setup.has_index:
            return self._byte_of_index(draw)
        return otherwise

    def _byte_of_log(self, number: int, otherwise: int, draw: Callable[[], int]) -> int:
        """Of a record or filler of that file: one of its first fields, or any."""
        file_size = self._setup.log_file_size
        files = -(-self.end // file_size)
        base = number % files * file_size if files else 0
        pieces = [p for p in self._pieces if base <= p.start < base + file_size]
        if not pieces:
            return otherwise
        piece = pieces[draw() % len(pieces)]
        half, of = divmod(draw(), 2)
        if of:
            return piece.start - base + half % piece.size
        field, byte = divmod(half, FIELD_SIZE)
        return piece.start - base + RECORD_FIELDS[field % len(RECORD_FIELDS)] + byte

    def _byte_of_index(self, draw: Callable[[], int]) -> int:
        """Of the header, of a slot, or of one of the first entries."""
        part, rest = draw() % 4, draw()
        if part == 0:
            field, byte = divmod(rest, FIELD_SIZE)
            return INDEX_HEADER_FIELDS[field % len(INDEX_HEADER_FIELDS)] + byte
        if part == 1:
            return INDEX_HEADER_SIZE + rest % (self._setup.index_slots * SLOT_SIZE)
        entries = INDEX_HEADER_SIZE + self._setup.index_slots * SLOT_SIZE
        number, byte = divmod(rest, ENTRY_SIZE)
        return entries + (FIRST_ENTRY + number % ENTRIES_MET) * ENTRY_SIZE + byte
