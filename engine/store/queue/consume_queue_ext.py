"""ConsumeQueueExt: the files consumequeue_ext, with what filters need of a message.

An entry (RocketMQ: CqExtUnit) has a message's tags code, store time and bit map, for
which a unit has no room. Layout, big-endian: size i16 | tags_code i64 | msg_store_time
i64 | size of the bit map i16, bit map. A file's last four bytes are never used; where
an entry does not fit, a size of -1 closes the file. The queue's unit then holds an
address in place of the tags code: the least i64 plus the entry's byte offset, which no
32-bit hash reaches.

These files follow from the log, as the queue does: a start trusts an address only if
the entry there is the record's and addresses ascend from unit to unit, and it cuts
entries to which no unit points.

Source: org.apache.rocketmq.store.ConsumeQueueExt, RocketMQ 5.3. Differs: entries are
synced before the units that point at them, and bytes cut off are erased.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.store.logfile.mapped_file import MappedFile
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue
from crashmq.engine.store.unreadable import sectors_of

ADDRESS_MAX = -(1 << 31) - 1  # just below every tags code
OFFSET_ADDED = -(1 << 63)
NO_ADDRESS = 1
EXT_DIR = "consumequeue_ext"
UNIT_SIZE_MIN = 20
UNIT_SIZE_MAX = 0x7FFF
END_BLANK_SIZE = 4
_UNIT = struct.Struct(">hqqh")
_SIZE = struct.Struct(">h")
assert _UNIT.size == UNIT_SIZE_MIN
_CLOSED = _SIZE.pack(-1)

APPENDED = probe("consume_queue_ext.put", "an entry of consumequeue_ext was appended")
ROLLED = probe("consume_queue_ext.roll", "an entry met the end of its file")
TOO_LARGE = probe(
    "consume_queue_ext.put.too_large", "a bit map too large for any entry"
)
UNREADABLE = probe("consume_queue_ext.get.none", "an address that leads to no unit")
CUT = probe("consume_queue_ext.truncate", "entries without a unit were cut")
EXPIRED = probe(
    "consume_queue_ext.expired", "a file with only expired entries was removed"
)


class CqExtUnit(NamedTuple):
    """One entry: what filters need to know of one message."""

    tags_code: int
    msg_store_time: int
    bit_map: bytes = b""

    @property
    def size(self) -> int:
        """The entry's size in bytes."""
        return UNIT_SIZE_MIN + len(self.bit_map)

    def encode(self) -> bytes:
        """The entry's bytes."""
        head = _UNIT.pack(
            self.size, self.tags_code, self.msg_store_time, len(self.bit_map)
        )
        return head + self.bit_map


def is_address(tags_code: int) -> bool:
    """Whether the value in a unit's tags code field is an address."""
    return tags_code <= ADDRESS_MAX


class ConsumeQueueExt:
    """The consumequeue_ext files of one queue.

    Entries follow each other without a gap, and each lies in one file.

    Invariants:
        the end that recovery found is not before the first file
    """

    def __init__(self, disk: Disk, topic: str, queue_id: int, file_size: int) -> None:
        self.mapped_files = MappedFileQueue(
            disk, f"{EXT_DIR}/{topic}/{queue_id}", file_size, is_derived=True
        )
        self._recovered_end = 0
        self._begin = 0  # of the first file, if there is none

    def _check(self) -> None:
        assert self._recovered_end >= 0, self._recovered_end

    def load(self) -> None:
        """Open the files and find the end of the entries without changing them.

        Source: ConsumeQueueExt#load, #recover.
        """
        self.mapped_files.load()
        files = self.mapped_files.files
        end = files[0].file_from_offset if files else 0
        for file in files:
            if file.file_from_offset != end:
                break
            position = _end_of_units(file.read(0, file.file_size))
            file.set_positions(position)
            end += position
            if position < file.file_size:
                break
        self._recovered_end = end
        self.mapped_files.lose_no_more()

    def put(self, unit: CqExtUnit) -> int:
        """Append an entry and return its address; ``NO_ADDRESS`` if it fits no file.

        Raises:
            OSError: the entry was not added; call again.

        Source: ConsumeQueueExt#put, #fullFillToEnd.
        """
        room = self.mapped_files.file_size - END_BLANK_SIZE
        if unit.size > min(UNIT_SIZE_MAX, room):
            TOO_LARGE.hit()
            return NO_ADDRESS
        file = self.mapped_files.get_or_create_last_mapped_file(self._begin)
        if unit.size > room - file.wrote:
            file.append_declared(_CLOSED, file.file_size - file.wrote)
            ROLLED.hit()
            file = self.mapped_files.get_or_create_last_mapped_file(self._begin)
        offset = file.file_from_offset + file.wrote
        appended = file.append_message(unit.encode())
        assert appended, file
        APPENDED.hit()
        return offset + OFFSET_ADDED

    def get(self, address: int) -> CqExtUnit | None:
        """The entry at an address; None if there is no intact one.

        Source: ConsumeQueueExt#get.
        """
        found = self._find(address)
        if found is None:
            UNREADABLE.hit()
            return None
        file, position = found
        head = file.read(position, min(UNIT_SIZE_MIN, file.file_size - position))
        if len(head) == UNIT_SIZE_MIN:
            size, tags_code, stored_at, bit_map_size = _UNIT.unpack(head)
            end = position + size
            is_whole = 0 <= bit_map_size == size - UNIT_SIZE_MIN
            is_whole = is_whole and file.known_lost.isdisjoint(
                sectors_of(position, size)
            )
            if is_whole and end <= file.file_size - END_BLANK_SIZE:
                bit_map = file.read(position + UNIT_SIZE_MIN, bit_map_size)
                return CqExtUnit(tags_code, stored_at, bit_map)
        UNREADABLE.hit()
        return None

    def _find(self, address: int) -> tuple[MappedFile, int] | None:
        if not is_address(address):
            return None
        offset = address - OFFSET_ADDED
        file = self.mapped_files.find_mapped_file_by_offset(offset)
        if file is None or offset - file.file_from_offset >= file.wrote:
            return None
        return file, offset - file.file_from_offset

    def truncate_by_max_address(self, address: int, *, keep: bool = False) -> None:
        """Keep the entries up to the one at ``address``.

        If no entry is there, keep none, and append later ones past ``address``: a
        damaged record's unit may point there, and must not come to point at another
        record's entry. ``keep``: if ``address`` is not an address, keep every entry,
        because they may belong to expired messages.

        Source: ConsumeQueueExt#truncateByMaxAddress.
        """
        unit = self.get(address) if is_address(address) else None
        if keep and not is_address(address):
            self.mapped_files.truncate_dirty_files(self._recovered_end)
            return
        if unit is None:
            if self.mapped_files.files:
                CUT.hit()
                self.mapped_files.destroy()
            self._begin = self._first_file_past(address)
            return
        end = address - OFFSET_ADDED + unit.size
        if end < self._recovered_end:
            CUT.hit()
        self.mapped_files.truncate_dirty_files(end)

    def _first_file_past(self, address: int) -> int:
        """The offset of a file that begins past every present address; 0 if none."""
        size = self.mapped_files.file_size
        begin = (address - OFFSET_ADDED) // size * size + size
        has_room = is_address(address) and is_address(begin + size + OFFSET_ADDED)
        return begin if has_room else 0

    def truncate_by_min_address(self, address: int) -> int:
        """Remove files whose entries all lie before ``address``; returns how many.

        Source: ConsumeQueueExt#truncateByMinAddress.
        """
        if not is_address(address):
            return 0
        offset = address - OFFSET_ADDED

        def may_go(file: MappedFile) -> bool:
            return file.end_offset <= offset

        files = self.mapped_files
        deleted = files.delete_first_files(
            may_go, at_most=len(files.files), pause=lambda: None
        )
        if deleted:
            EXPIRED.hit()
        return deleted

    def set_unflushed(self) -> None:
        """Count no entry as durable, so that the next flush writes all again.

        Otherwise no sync might ever write them: see ``MappedFile.rewrite``.
        """
        start = max(0, self.mapped_files.min_offset)
        self.mapped_files.flushed_where = start
        for file in self.mapped_files.files:
            file.flushed = 0
        self.mapped_files.rewrite(start)

    def flush(self) -> None:
        """Sync every entry.

        Raises:
            OSError: some entries may never be durable in this life of the store.
        """
        end = self.mapped_files.max_offset
        while self.mapped_files.flushed_where < end and self.mapped_files.flush(0):
            pass

    def close(self) -> None:
        """Close every file."""
        self.mapped_files.close()


def _end_of_units(data: bytes) -> int:
    """The end of a file's entries, by their sizes; the file's length if closed."""
    position = 0
    while position + UNIT_SIZE_MIN <= len(data) - END_BLANK_SIZE:
        (size,) = _SIZE.unpack_from(data, position)
        if size == -1:
            return len(data)
        end = position + size
        if size < UNIT_SIZE_MIN or end > len(data) - END_BLANK_SIZE:
            return position
        position = end
    closed = data[position : position + _SIZE.size] == _CLOSED
    return len(data) if closed else position
