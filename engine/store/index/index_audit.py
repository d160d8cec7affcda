"""IndexAudit: compares the index with the log while a start scans the log.

The index follows from the log: its entries are the log's keys, in log order, and slots,
links and headers follow from the entries. So the audit reads both side by side. Entries
that agree with the log are kept, whether or not they are known to be durable; from the
first that disagrees, dispatch builds the index again. The disk is not changed here.

The oldest files begin with entries of expired records. Of these only the order of
their phy_offsets can be checked.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from crashmq.engine.host.probe import probe
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.index.index_file import (
    ENTRY_SIZE,
    Header,
    IndexFile,
    decode_entry,
)
from crashmq.engine.store.index.index_keys import key_hashes, tag_hash

TIMESTAMP_MAX = (1 << 63) - 1

AGREED = probe("index_audit.agreed", "the index has every key of the log")
LACKED = probe("index_audit.lacked", "the index ends before the log's last key")
DISAGREED = probe(
    "index_audit.disagreed", "an entry is not the one of the log's next key"
)
TAGS_FOUND = probe("index_audit.tags", "a record is indexed by its tags as well")
EXPIRED = probe("index_audit.expired", "entries of expired records")
UNLINKED = probe("index_audit.unlinked", "slots or header disagree with the entries")


class Recount:
    """The header and slots that one file must have, counted from its entries."""

    def __init__(self, file: IndexFile) -> None:
        self.file = file
        self.header = Header()
        self.slots: array[int] | None = array("i", bytes(4 * file.slot_num))
        self.has_right_slots = False
        self.is_compared = False
        self._window = b""
        self._window_at = 0

    @property
    def is_full(self) -> bool:
        """Whether the file has no room for another entry."""
        return self.header.index_count >= self.file.index_num

    @property
    def counts_less_than_said(self) -> bool:
        """Whether the header counts more entries than agreed with the log."""
        return self.header.index_count < self.file.header.index_count

    @property
    def needs_settling(self) -> bool:
        """Whether the file's header or slots must be written again."""
        return not self.has_right_slots or self.header != self.file.header

    def skip_expired(self, log_min_offset: int) -> None:
        """Count the first entries of the file, whose records have expired, unchecked.

        Their times are computed from the header's begin_timestamp.
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
        """Count the next entry if it is exactly this key's; return whether it is."""
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
        """Compare the file's slots with the counted ones; free the count if they agree.

        The slots of one file of RocketMQ's sizes take 20 MB. A second call does
        nothing: records without keys may follow the last file, and each asks for the
        next entry.
        """
        if self.is_compared:
            return
        assert self.slots is not None, "a file is counted before it is compared"
        self.is_compared = True
        self._window = b""
        self.has_right_slots = self.file.has_slots(self.slots)
        if self.has_right_slots:
            self.slots = None


class IndexAudit:
    """The result of comparing the index with the log, gathered during a scan.

    Attributes:
        recounts: one for each file with an entry that agreed, oldest file first.
        first_wrong_phy_offset: the first record that the index lacks a key of; -1 if
            none.
        first_wrong_timestamp: the store time of that record, in milliseconds.
        keys_there: how many keys of that record the index has.
        indexes_tags: whether the newest record with tags has an entry for them.
    """

    def __init__(self, files: Sequence[IndexFile], log_min_offset: int) -> None:
        self._files = files
        self._log_min_offset = log_min_offset
        self.recounts: list[Recount] = []
        self.first_wrong_phy_offset = -1
        self.first_wrong_timestamp = TIMESTAMP_MAX
        self.keys_there = 0
        self.indexes_tags = False

    def visit(self, request: DispatchRequest) -> None:
        """Compare one record's keys with the index; records come in log order."""
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
        self._take_tags(request)

    def _take_tags(self, request: DispatchRequest) -> None:
        """Count the entry of a record's tags; RocketMQ before 5.4 writes none."""
        key_hash = tag_hash(request)
        if key_hash is None:
            return
        recount = self._recount()
        if recount is None or not recount.counts_less_than_said:
            if self.indexes_tags:
                LACKED.hit()
                self.first_wrong_phy_offset = request.commit_log_offset
                self.first_wrong_timestamp = request.store_timestamp
                self.keys_there = sum(1 for _ in key_hashes(request))
            return
        place = (request.commit_log_offset, request.store_timestamp)
        self.indexes_tags = recount.take(key_hash, *place)
        if self.indexes_tags:
            TAGS_FOUND.hit()

    def _recount(self) -> Recount | None:
        """The file of the next entry; None if there is none."""
        while not self.recounts or self.recounts[-1].is_full:
            if self.recounts and self.recounts[-1].slots is not None:
                self.recounts[-1].compare()
            if len(self.recounts) == len(self._files):
                return None
            recount = Recount(self._files[len(self.recounts)])
            recount.skip_expired(self._log_min_offset)
            self.recounts.append(recount)
        return self.recounts[-1]

    def finish(self) -> None:
        """End at the log's end; drop the files without an entry of a live record."""
        if self.first_wrong_phy_offset < 0:
            AGREED.hit()
        for recount in self.recounts:
            recount.compare()
        self.recounts = [
            recount
            for recount in self.recounts
            if recount.header.index_count > 1
            and recount.header.end_phy_offset >= self._log_min_offset
        ]
        if any(recount.needs_settling for recount in self.recounts):
            UNLINKED.hit()
