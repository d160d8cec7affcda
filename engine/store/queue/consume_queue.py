"""ConsumeQueue: a queue's units, which point at its records in the CommitLog.

A queue is a run of fixed 20-byte units, so unit n lies at byte n * 20. Reput appends
units, pulls read them, a start cuts those that do not agree with the log. This module
knows units and files; what a message is belongs to ``message_codec``.

Source: org.apache.rocketmq.store.ConsumeQueue, RocketMQ 5.3. Differs: a unit is written
at its own queue_offset or not at all, also at queue_offset 0; a pre-blank unit never
counts as a record's; and a start compares units with their records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.store.damage import Damage
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.logfile.mapped_file import MappedFile
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue
from crashmq.engine.store.message_filter import MessageFilter
from crashmq.engine.store.queue.consume_queue_ext import (
    NO_ADDRESS,
    ConsumeQueueExt,
    CqExtUnit,
    is_address,
)
from crashmq.engine.store.queue.cq_unit import (
    BLANK_SIZE,
    CQ_STORE_UNIT_SIZE,
    PRE_BLANK,
    UNIT,
    decode_units,
    encode_unit,
    end_of_units,
    is_pre_blank,
)

_WINDOW_SIZE = 64 * 1024 // CQ_STORE_UNIT_SIZE * CQ_STORE_UNIT_SIZE

APPENDED = probe("consume_queue.put.append", "a unit was appended at the queue's end")
BUILT = probe("consume_queue.put.built", "a record whose unit exists came again")
PRE_BLANKED = probe(
    "consume_queue.put.pre_blank", "placeholder units were written before a first unit"
)
NO_SPACE = probe("consume_queue.put.failed", "the disk failed the append of a unit")
REUSED = probe("consume_queue.put.again", "what lay beside a failed unit is led to")
RECOVERED_EMPTY = probe("consume_queue.recover.empty", "a queue without files")
RECOVERED_PART = probe("consume_queue.recover.part", "a queue ends inside a file")
RECOVERED_FULL = probe("consume_queue.recover.full", "a queue ends with a full file")
RECOVERED_GAP = probe("consume_queue.recover.gap", "a queue lacks a file in the middle")
UNPROVEN = probe(
    "consume_queue.recover.unproven", "a unit was rebuilt, as its bit map is not proven"
)
CUT = probe("consume_queue.truncate.cut", "units were cut from a queue's end")
DESTROYED = probe("consume_queue.truncate.destroy", "a queue lost all its files")
KEPT = probe("consume_queue.truncate.kept", "a queue kept all its units")


class ConsumeQueue:
    """One queue of one topic.

    Units [min_offset, max_offset) point at this queue's records, in log order.

    Invariants:
        min_offset and first_known are queue offsets, at least 0
        the queue's end is the end of a whole unit
    """

    def __init__(
        self,
        disk: Disk,
        topic: str,
        queue_id: int,
        file_size: int,
        ext: ConsumeQueueExt | None = None,
    ) -> None:
        assert file_size % CQ_STORE_UNIT_SIZE == 0, file_size
        self.topic = topic
        self.queue_id = queue_id
        self._file_size = file_size
        self.mapped_files = MappedFileQueue(
            disk, f"consumequeue/{topic}/{queue_id}", file_size, is_derived=True
        )
        self._ext = ext
        self.min_offset = 0
        self._has_unit = False
        self._beside: tuple[tuple[int, int], int] | None = None  # of which record
        self._recovered_end = self._first_read = 0
        self._window_start, self._window = 0, b""
        self.first_known = 0  # units before, if there are any, were of expired records

    def _check(self) -> None:
        assert self.min_offset >= 0, self.min_offset
        assert self.first_known >= 0, self.first_known
        assert self.mapped_files.max_offset % CQ_STORE_UNIT_SIZE == 0, self.topic

    @property
    def max_offset(self) -> int:
        """The queue_offset of the next unit."""
        return self.mapped_files.max_offset // CQ_STORE_UNIT_SIZE

    @property
    def max_phy_offset(self) -> int:
        """Where the record of the newest unit ends; 0 without a unit.

        Raises:
            OSError: the medium could not be read.

        Source: ConsumeQueue#getMaxPhysicOffset.
        """
        for phy_offset, size, _ in decode_units(self.unit_at(self.max_offset - 1)):
            return phy_offset + size if size != BLANK_SIZE else 0
        return 0

    @property
    def is_empty(self) -> bool:
        """Whether the queue has no unit."""
        return self.mapped_files.max_offset <= max(0, self.mapped_files.min_offset)

    @property
    def has_ext(self) -> bool:
        """Whether its units may hold consumequeue_ext addresses."""
        return self._ext is not None

    def load(self) -> None:
        """Open the queue's files without changing the disk."""
        self.mapped_files.load()
        if self._ext is not None:
            self._ext.load()

    def put_message_position_info(self, request: DispatchRequest) -> None:
        """Append the unit of one record, unless the queue already has it.

        Its bit map goes into consumequeue_ext, if the queue has it.

        Raises:
            OSError: the unit was not appended; call again.

        Source: ConsumeQueue#putMessagePositionInfoWrapper, #putMessagePositionInfo, its
        order-check table.
        """
        unit = self.unit_of(request)
        try:
            if self._ext is not None:
                unit = self._unit_with_address(self._ext, request)
            self._put_unit(request.consume_queue_offset, unit)
        except OSError:
            NO_SPACE.hit()
            raise

    def unit_of(self, request: DispatchRequest) -> bytes:
        """Encode the unit of one record, without a consumequeue_ext address."""
        return encode_unit(
            request.commit_log_offset, request.msg_size, request.tags_code
        )

    def unit_place(self, queue_offset: int) -> int:
        """The phy_offset in a recovered unit; -1 without a unit or for a pre-blank."""
        offset = queue_offset * CQ_STORE_UNIT_SIZE
        unit = self._recovered_bytes(offset, CQ_STORE_UNIT_SIZE)
        if len(unit) < CQ_STORE_UNIT_SIZE:
            return -1
        phy_offset, size, _ = UNIT.unpack(unit)
        return -1 if size == BLANK_SIZE else int(phy_offset)

    def _unit_with_address(
        self, ext: ConsumeQueueExt, request: DispatchRequest
    ) -> bytes:
        """Encode the record's unit with the address of its consumequeue_ext entry."""
        if request.consume_queue_offset < self.max_offset:
            return self.unit_at(request.consume_queue_offset)
        place = (request.commit_log_offset, request.consume_queue_offset)
        if self._beside is None or self._beside[0] != place:
            said = (request.tags_code, request.store_timestamp, request.bit_map)
            self._beside = (place, ext.put(CqExtUnit(*said)))
        else:
            REUSED.hit()  # the append of its unit has failed, and no other leads there
        address = self._beside[1]
        code = address if is_address(address) else request.tags_code
        return encode_unit(request.commit_log_offset, request.msg_size, code)

    def passes(self, wanted: MessageFilter, code: int) -> bool:
        """Whether the message of a unit with tags code ``code`` may be ``wanted``.

        If the code is a consumequeue_ext address, the entry there decides; without an
        entry the message's tags are unknown.

        Source: ConsumeQueue#getExt, MessageFilter#isMatchedByConsumeQueue.
        """
        if self._ext is None or not is_address(code):
            return wanted.is_matched_by_consume_queue(code, None)
        said = self._ext.get(code)
        known = None if said is None else said.tags_code
        return wanted.is_matched_by_consume_queue(known, said)

    def tags_code_of(self, code: int) -> int | None:
        """The tags code: ``code`` itself, or that of the entry at this address.

        None if it is an address without an entry.

        Source: ConsumeQueue#getExt.
        """
        if self._ext is None or not is_address(code):
            return code
        said = self._ext.get(code)
        return None if said is None else said.tags_code

    def _put_unit(self, queue_offset: int, unit: bytes) -> None:
        expect = queue_offset * CQ_STORE_UNIT_SIZE
        end = self.mapped_files.max_offset
        if expect < end:
            BUILT.hit()
            return
        if expect > end:
            # Amid units the places must rise with them, for searches to find their way.
            place = unit[:8] if self._has_unit else PRE_BLANK[:8]
            self._pre_blank(expect, place + PRE_BLANK[8:])
        file = self.mapped_files.get_or_create_last_mapped_file(expect)
        appended = file.append_message(unit)
        assert appended, file
        self._has_unit = True
        APPENDED.hit()

    def _pre_blank(self, expect: int, blank: bytes) -> None:
        """Fill the queue_offsets before ``expect`` with pre-blank units.

        The log has no records with these offsets. The size in a pre-blank unit is one
        that no record has, so that a pull never takes it for a message.

        Source: ConsumeQueue#fillPreBlank.
        """
        while self.mapped_files.max_offset < expect or not self.mapped_files.files:
            file = self.mapped_files.get_or_create_last_mapped_file(expect)
            until = min(expect, file.end_offset) - file.file_from_offset
            blanks = (until - file.wrote) // CQ_STORE_UNIT_SIZE
            if blanks:
                file.append_message(blank * blanks)
            if file.end_offset > expect:
                break
        PRE_BLANKED.hit()
        if not self._has_unit:
            self.min_offset = expect // CQ_STORE_UNIT_SIZE

    def unit_at(self, queue_offset: int) -> bytes:
        """The 20 bytes of one unit; b"" if the queue does not have it."""
        return self.units_from(queue_offset, 1)

    def units_from(self, queue_offset: int, count: int) -> bytes:
        """Up to ``count`` units from ``queue_offset`` on, within one file.

        Source: ConsumeQueue#getIndexBuffer.
        """
        offset = queue_offset * CQ_STORE_UNIT_SIZE
        file = self.mapped_files.find_mapped_file_by_offset(offset)
        if file is None:
            return b""
        position = offset - file.file_from_offset
        size = min(file.wrote - position, count * CQ_STORE_UNIT_SIZE)
        return file.read(position, size) if size > 0 else b""

    def roll_next_file(self, queue_offset: int) -> int:
        """The first queue offset of the file after the one of ``queue_offset``.

        Source: ConsumeQueue#rollNextFile.
        """
        units = self._file_size // CQ_STORE_UNIT_SIZE
        return queue_offset + units - queue_offset % units

    def recover(self, trusted_below: int = 0) -> None:
        """Find the end of the units, without changing the disk.

        Units count as long as phy_offset >= 0 and size > 0 and no file is missing;
        ``agrees_with`` then compares each with its record. Of the files that begin with
        a record below ``trusted_below`` only the last is read.

        Source: ConsumeQueue#recover, which trusts all but the last three files.
        """
        files = self.mapped_files.files
        if not files:
            RECOVERED_EMPTY.hit()
            return
        self._first_read = self._first_to_read(trusted_below) if trusted_below else 0
        end = files[0].file_from_offset
        for number, file in enumerate(files):
            if file.file_from_offset != end:
                RECOVERED_GAP.hit()
                break
            if number < self._first_read and file.on_disk_size == file.file_size:
                file.set_positions(file.file_size)
                end = file.end_offset
                continue
            position = end_of_units(file.read(0, file.file_size))
            file.set_positions(position)
            end += position
            if position < file.file_size:
                RECOVERED_PART.hit()
                break
        else:
            RECOVERED_FULL.hit()
        self._recovered_end = end

    def _first_to_read(self, trusted_below: int) -> int:
        """The number of the first file to read: all before it are full and trusted."""
        files = self.mapped_files.files
        before, end = -1, files[0].file_from_offset
        for number, file in enumerate(files):
            phy_offset, size, _ = UNIT.unpack(file.read(0, UNIT.size))
            is_next, end = file.file_from_offset == end, file.end_offset
            if not (is_next and size > 0 and before < phy_offset < trusted_below):
                return max(0, number - 1)
            last_unit = file.read(file.file_size - UNIT.size, UNIT.size)
            before, size, _ = UNIT.unpack(last_unit)
            if size <= 0:
                return number
        return len(files) - 1

    @property
    def first_offset(self) -> int:
        """The first queue_offset of the queue's first file; 0 without a file."""
        return max(0, self.mapped_files.min_offset) // CQ_STORE_UNIT_SIZE

    def end_of_damaged(self, first: int, end: int, damage: Damage, log_end: int) -> int:
        """How far units from ``first`` on can be those of damaged records.

        Such units show which queue_offsets are in use; no message is read through them.
        They ascend, and point at damaged or expired bytes, at ``log_end`` at most.
        """
        last_seen = self.unit_at(first - 1) if first > self.first_offset else b""
        before = UNIT.unpack(last_seen)[0] + 1 if last_seen else 0
        for queue_offset in range(first, min(end, self.recovered_units)):
            if len(unit := self.unit_at(queue_offset)) < CQ_STORE_UNIT_SIZE:
                return queue_offset
            if is_pre_blank(unit) and before <= damage.log_min_offset:
                continue  # it was put after units that have all expired
            phy_offset, size, _ = UNIT.unpack(unit)
            is_nowhere = size == BLANK_SIZE or damage.hides(phy_offset)
            if not (before <= phy_offset <= log_end and is_nowhere):
                return queue_offset
            before = phy_offset + (size != BLANK_SIZE)
        return min(end, self.recovered_units)

    @property
    def recovered_units(self) -> int:
        """The queue_offset after the last recovered unit."""
        return self._recovered_end // CQ_STORE_UNIT_SIZE

    def agrees_with(
        self,
        request: DispatchRequest,
        is_proven: bool = True,
        log_min_offset: int = 0,
        /,
    ) -> bool:
        """Whether the recovered queue has exactly this record's unit in its place.

        Args:
            request: the record.
            is_proven: whether the unit is known to be durable; if not, a power loss may
                have torn its bit map, which then counts as wrong.
            log_min_offset: units of records before it have expired, and their
                consumequeue_ext addresses are not compared with this unit's.
        """
        offset = request.consume_queue_offset * CQ_STORE_UNIT_SIZE
        at = offset - self._window_start
        if not 0 <= at < len(self._window):
            self._window_start, at = offset, 0
            self._window = self._recovered_bytes(offset, _WINDOW_SIZE)
        unit = self._window[at : at + CQ_STORE_UNIT_SIZE]
        if unit == UNIT.pack(
            request.commit_log_offset, request.msg_size, request.tags_code
        ):
            return is_proven or self._ext is None  # it may have lost an address
        is_whole = len(unit) == CQ_STORE_UNIT_SIZE
        return is_whole and self._agrees_by_address(
            unit, request, is_proven=is_proven, log_min_offset=log_min_offset
        )

    def _agrees_by_address(
        self,
        unit: bytes,
        request: DispatchRequest,
        *,
        is_proven: bool,
        log_min_offset: int,
    ) -> bool:
        phy_offset, size, code = UNIT.unpack(unit)
        place = (request.commit_log_offset, request.msg_size)
        if self._ext is None or not is_address(code) or (phy_offset, size) != place:
            return False
        said = self._ext.get(code)
        if said is None or said[:2] != (request.tags_code, request.store_timestamp):
            return False
        if said.bit_map and not is_proven:
            UNPROVEN.hit()
            return False
        # A torn address leads to what an older unit's does, which may say the same. An
        # older one that leads nowhere is no witness.
        older = self._last_address_before(request.consume_queue_offset, log_min_offset)
        return older == NO_ADDRESS or older < code or self._ext.get(older) is None

    def _recovered_bytes(self, offset: int, size: int) -> bytes:
        file = self.mapped_files.find_mapped_file_by_offset(offset)
        if file is None:
            return b""
        until = min(self._recovered_end, file.end_offset, offset + size)
        position = offset - file.file_from_offset
        return file.read(position, until - offset) if until > offset else b""

    def first_unit_at_or_past(self, phy_offset: int) -> int:
        """The first recovered unit that points at or past ``phy_offset``.

        Returns its queue_offset; without such a unit, that after the last unit.
        """
        for queue_offset, unit in self._units_read():
            if unit[0] >= phy_offset and UNIT.pack(*unit) != PRE_BLANK:
                return queue_offset
        return self._recovered_end // CQ_STORE_UNIT_SIZE

    def first_message_at_or_past(self, phy_offset: int, end: int) -> int:
        """The first recovered unit before ``end`` that points there and is no blank.

        Returns its queue_offset; without such a unit, ``end``.
        """
        for queue_offset, (at, size, _) in self._units_read():
            if queue_offset >= end:
                break
            if at >= phy_offset and size != BLANK_SIZE:
                return queue_offset
        return end

    def _units_read(self) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """The recovered units of the files that were read, with their queue_offsets."""
        for file in self.mapped_files.files[self._first_read :]:
            size = min(file.file_size, self._recovered_end - file.file_from_offset)
            first = file.file_from_offset // CQ_STORE_UNIT_SIZE
            yield from enumerate(decode_units(file.read(0, max(0, size))), first)

    def truncate_dirty_units(self, queue_offset: int) -> None:
        """Keep the recovered units before ``queue_offset`` and erase the rest.

        Entries of consumequeue_ext that may be expired units' are kept.

        Source: ConsumeQueue#truncateDirtyLogicFiles, which takes a first unit of zeros
        for an entry, and leaves flushed_where past the end.
        """
        files = self.mapped_files.files
        offset = min(queue_offset * CQ_STORE_UNIT_SIZE, self._recovered_end)
        self._window = b""
        if files and offset < files[0].file_from_offset:
            self.destroy()
            return
        (CUT if offset < self._recovered_end else KEPT).hit()
        self.mapped_files.truncate_dirty_files(offset)
        if self._ext is not None:
            at = self._last_address_before(self.max_offset)
            self._ext.truncate_by_max_address(at, keep=self.first_offset > 0)

    def _last_address_before(self, queue_offset: int, log_min_offset: int = 0) -> int:
        """The consumequeue_ext address in the newest unit before that has one.

        NO_ADDRESS without one. The search ends at a unit whose record lies before
        ``log_min_offset``.
        """
        for before in range(queue_offset - 1, self.first_offset - 1, -1):
            phy_offset, _, code = UNIT.unpack(self.unit_at(before) or PRE_BLANK)
            if phy_offset < log_min_offset:
                return NO_ADDRESS
            if is_address(code):
                return int(code)
        return NO_ADDRESS

    def destroy(self) -> None:
        """Remove every file; the queue is empty then."""
        DESTROYED.hit()
        self.mapped_files.destroy()
        if self._ext is not None:
            self._ext.truncate_by_max_address(NO_ADDRESS)
        self.min_offset = 0
        self._has_unit = False
        self._beside = None

    def remove(self) -> None:
        """Remove the queue's files and directories durably, consumequeue_ext first.

        Raises:
            OSError: some may exist still, or after a power loss.
        """
        if self._ext is not None:
            self._ext.mapped_files.remove()
        self.mapped_files.remove()
        self.min_offset = 0
        self._has_unit = False
        self._beside = None

    def set_flushed(self, first_unflushed: int | None) -> None:
        """Count the units before ``first_unflushed`` as durable; write the rest again.

        Otherwise no sync might ever write these: see ``MappedFile.rewrite``. With them
        goes all of consumequeue_ext, which may have kept entries of units that were
        cut. None: every unit and entry is durable.
        """
        offset = self.mapped_files.max_offset
        if first_unflushed is not None:
            offset = min(first_unflushed * CQ_STORE_UNIT_SIZE, offset)
        self.mapped_files.flushed_where = max(self.mapped_files.min_offset, offset)
        for file in self.mapped_files.files:
            file.flushed = min(file.wrote, max(0, offset - file.file_from_offset))
        self.mapped_files.rewrite(offset)
        if self._ext is not None and first_unflushed is not None:
            self._ext.set_unflushed()

    @property
    def folders(self) -> list[MappedFileQueue]:
        """The queue's directory, and its consumequeue_ext directory if there is one."""
        beside = [] if self._ext is None else [self._ext.mapped_files]
        return [self.mapped_files, *beside]

    def correct_min_offset(self, log_min_offset: int) -> None:
        """Set min_offset to the first unit whose record the log still has.

        Without such a unit, to the queue's end. Dispatch may append units meanwhile.

        Source: ConsumeQueue#correctMinOffset.
        """
        low = max(self.first_known, self.mapped_files.min_offset // CQ_STORE_UNIT_SIZE)
        end = high = self.max_offset
        while low < high:
            # The first unit is the one of nearly every queue of nearly every store.
            middle = low if high == end else (low + high) // 2
            unit = self.unit_at(middle) or PRE_BLANK  # its file has just expired
            if not is_pre_blank(unit) and UNIT.unpack(unit)[0] >= log_min_offset:
                high = middle
            else:
                low = middle + 1
                end = -1
        self._has_unit = self._has_unit or low < self.max_offset
        self.min_offset = low

    def delete_expired(self, log_min_offset: int, pause: Callable[[], None]) -> int:
        """Delete files whose last unit points before ``log_min_offset``.

        Returns how many files were deleted, those of consumequeue_ext included;
        ``pause`` is called between two files.

        Source: MappedFileQueue#deleteExpiredFileByOffset.
        """

        def may_go(file: MappedFile) -> bool:
            last = file.read(self._file_size - CQ_STORE_UNIT_SIZE, CQ_STORE_UNIT_SIZE)
            return is_pre_blank(last) or UNIT.unpack(last)[0] < log_min_offset

        files = self.mapped_files
        every = len(files.files)
        deleted = files.delete_first_files(may_go, at_most=every, pause=pause)
        unit = self.unit_at(self.min_offset)
        if self._ext is not None and unit:
            deleted += self._ext.truncate_by_min_address(UNIT.unpack(unit)[2])
        return deleted

    def flush(self, least_pages: int) -> bool:
        """Sync one file of the queue; return whether its flushed position moved.

        Raises:
            OSError: the position has not moved, and no later sync may move it.
        """
        if self._ext is not None:
            self._ext.flush()
        moved = self.mapped_files.flush(least_pages)
        if self._ext is not None:
            self._ext.flush()  # of what dispatch has put there since, with its unit
        return moved

    def close(self) -> None:
        """Close every file."""
        self.mapped_files.close()
        if self._ext is not None:
            self._ext.close()
