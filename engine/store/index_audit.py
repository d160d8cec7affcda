"""IndexAudit: holds the index against the log, entry by entry, while a start scans it.

The index is a function of the log: the entries are, in order, those of the log's keys,
and slots, links and headers follow from the entries. So the audit walks both at once.
What agrees is kept, be it proven durable or not; from the first entry on that does not,
dispatch makes the index anew. Nothing is changed on the disk here.

Entries of records that the log has no more stand at the front, in the oldest files;
nothing proves them but that they follow from each other.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from engine.host.probe import probe
from engine.store.dispatch import DispatchRequest
from engine.store.index_file import ENTRY_SIZE, Header, IndexFile, decode_entry
from engine.store.index_keys import key_hashes

TIMESTAMP_MAX = (1 << 63) - 1

AGREED = probe("index_audit.agreed", "the index has every key of the log")
LACKED = probe("index_audit.lacked", "the index ends before the log's last key")
DISAGREED = probe("index_audit.disagreed", "an entry is not that of the log's next key")
EXPIRED = probe("index_audit.expired", "entries of records that the log has no more")
UNLINKED = probe("index_audit.unlinked", "slots or header are not what entries make")


class Recount:
    """What one file's header and slots must be, counted from its entries."""

    def __init__(self, file: IndexFile) -> None:
        self.file = file
        self.header = Header()
        self.slots: array[int] | None = array("i", bytes(4 * file.slot_num))
        self.has_right_slots = False
        self._window = b""
        self._window_at = 0

    @property
    def is_full(self) -> bool:
        """Whether the file has no place for one entry more."""
        return self.header.index_count >= self.file.index_num

    @property
    def counts_less_than_said(self) -> bool:
        """Whether the file's header counts entries that were not found right."""
        return self.header.index_count < self.file.header.index_count

    @property
    def needs_settling(self) -> bool:
        """Whether the file says anything else of its entries."""
        return not self.has_right_slots or self.header != self.file.header

    def skip_expired(self, log_min_offset: int) -> None:
        """Take the file's first entries on trust, as far as their records are gone.

        Their times follow from the header's, which a later one of them may correct.
        """
        said = self.file.header
        while self.header.index_count < min(said.index_count, self.file.index_num):
            entry = decode_entry(self._next_bytes())
            is_next = self.header.end_phy_offset <= entry.phy_offset < log_min_offset
            if not is_next or entry.phy_offset < said.begin_phy_offset:
                return
            stored = said.begin_timestamp + 1000 * entry.seconds
            if not self._agrees(entry.key_hash, entry.phy_offset, stored):
                return
            EXPIRED.hit()

    def take(self, key_hash: int, phy_offset: int, store_timestamp: int) -> bool:
        """Count the next entry in if it is that of this key, byte for byte."""
        return self._agrees(key_hash, phy_offset, store_timestamp)

    def _agrees(self, key_hash: int, phy_offset: int, store_timestamp: int) -> bool:
        assert self.slots is not None, "a file is counted before it is compared"
        header = self.header
        slot = key_hash % self.file.slot_num
        previous = self.slots[slot]
        entry = header.entry_for(key_hash, phy_offset, store_timestamp, previous)
        if self._next_bytes() != entry:
            return False
        self.slots[slot] = header.index_count
        self.header = header.counting(phy_offset, store_timestamp, previous)
        return True

    def _next_bytes(self) -> bytes:
        number = self.header.index_count
        at = (number - self._window_at) * ENTRY_SIZE
        if not 0 <= at < len(self._window):
            self._window, self._window_at, at = (
                self.file.entries_from(number),
                number,
                0,
            )
        return self._window[at : at + ENTRY_SIZE]

    def compare(self) -> None:
        """Hold the file's slots against the counted ones; those that agree are let go.

        The slots of one file of RocketMQ's sizes are 20 MB.
        """
        assert self.slots is not None, "a file is compared once"
        self._window = b""
        self.has_right_slots = self.file.has_slots(self.slots)
        if self.has_right_slots:
            self.slots = None


class IndexAudit:
    """What the log says of the index, gathered while a start scans it.

    Attributes:
        recounts: the files that hold anything right, in order.
        first_wrong_phy_offset: the first record that the index lacks a key of; -1 if
            it lacks none; ``first_wrong_timestamp`` is when that was stored.
        keys_there: how many keys of that record it has.
    """

    def __init__(self, files: Sequence[IndexFile], log_min_offset: int) -> None:
        self._files = files
        self._log_min_offset = log_min_offset
        self.recounts: list[Recount] = []
        self.first_wrong_phy_offset = -1
        self.first_wrong_timestamp = TIMESTAMP_MAX
        self.keys_there = 0

    def visit(self, request: DispatchRequest) -> None:
        """Hold one record against the index; records come in the log's order."""
        if self.first_wrong_phy_offset >= 0:
            return
        for number, key_hash in enumerate(key_hashes(request)):
            recount = self._recount()
            if recount is not None and recount.take(
                key_hash, request.commit_log_offset, request.store_timestamp
            ):
                continue
            has_more = recount is not None and recount.counts_less_than_said
            (DISAGREED if has_more else LACKED).hit()
            self.first_wrong_phy_offset = request.commit_log_offset
            self.first_wrong_timestamp = request.store_timestamp
            self.keys_there = number
            return

    def _recount(self) -> Recount | None:
        """The file that the next entry is in; None if there is none."""
        while not self.recounts or self.recounts[-1].is_full:
            if self.recounts:
                self.recounts[-1].compare()
            if len(self.recounts) == len(self._files):
                return None
            recount = Recount(self._files[len(self.recounts)])
            recount.skip_expired(self._log_min_offset)
            self.recounts.append(recount)
        return self.recounts[-1]

    def finish(self) -> None:
        """Take note that the log has ended; files without a live entry are let go."""
        if self.first_wrong_phy_offset < 0:
            AGREED.hit()
        for recount in self.recounts:
            if recount.slots is not None and not recount.has_right_slots:
                recount.compare()
        self.recounts = [
            recount
            for recount in self.recounts
            if recount.header.index_count > 1
            and recount.header.end_phy_offset >= self._log_min_offset
        ]
        if any(recount.needs_settling for recount in self.recounts):
            UNLINKED.hit()
