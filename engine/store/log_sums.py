"""LogSums: CRC-32 sums of the durable part of the log, file by file.

RocketMQ's CRCs cover neither a record's header nor its topic and properties. So the
durable mark keeps a CRC-32 of each of the newest log files, and of the durable part of
the last one; a start that reads a file can verify every byte of it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from zlib import crc32

from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue
from crashmq.engine.store.store_checkpoint import SUMS_MAX, DurableMark
from crashmq.engine.store.unreadable import readable

_CHUNK = 4 * 1024 * 1024


class LogSums:
    """CRC-32 sums of log files, each from the file's first byte to the last one added.

    Each file before the one that contains ``_end`` has a sum of all its bytes, or none.

    Invariants:
        each sum is of a file: it begins at a multiple of the file size, before the end
        each is a CRC-32
    """

    def __init__(self, files: MappedFileQueue, runtime: Runtime) -> None:
        self._files = files
        self._lock = runtime.lock()
        self._sums: dict[int, int] = {}
        self._end = 0
        self._damaged: Collection[int] = ()

    def _check(self) -> None:
        for base, crc in self._sums.items():
            assert base % self._files.file_size == 0, base
            assert base < self._end, (base, self._end)
            assert 0 <= crc < 1 << 32, crc

    def begin(self, mark: DurableMark | None, read_from: int) -> None:
        """Take over a mark's sums of the files before ``read_from``, unread.

        ``read_from`` is the beginning of a file; from there on ``add`` reads the bytes.
        """
        marked = self.marked(mark) if mark else {}
        self._sums = {base: sum_ for base, sum_ in marked.items() if base < read_from}
        self._end = read_from

    def marked(self, mark: DurableMark) -> dict[int, int]:
        """The sums in a mark, by the phy_offset at which their file begins."""
        size = self._files.file_size
        last = (mark.durable_offset - 1) // size * size
        first = last - (len(mark.sums) - 1) * size
        return {first + n * size: sum_ for n, sum_ in enumerate(mark.sums)}

    def first_changed(
        self,
        mark: DurableMark,
        read_from: int,
        but_for: Collection[int] = (),
    ) -> int | None:
        """Where the first file begins that disagrees with the mark's sum.

        Reads the files from ``read_from`` on and keeps their sums; those that begin at
        an offset in ``but_for`` are not compared. None if all agree.

        Raises:
            OSError: the medium could not be read.
        """
        self.begin(mark, read_from)
        self._damaged = but_for
        self.add(mark.durable_offset)
        for base, sum_ in sorted(self.marked(mark).items()):
            if base not in but_for and self._sums.get(base, sum_) != sum_:
                return base
        return None

    def add(self, end: int) -> None:
        """Add the bytes up to ``end`` to the sums; they must never change again.

        Raises:
            OSError: the medium could not be read; the bytes before stay added.
        """
        with self._lock:
            while self._end < end:
                self._add_some(end)

    def _add_some(self, end: int) -> None:
        start = self._end
        file = self._files.find_mapped_file_by_offset(start)
        size = self._files.file_size
        base = start - start % size
        until = min(end, base + size, start + _CHUNK)
        position = start - base
        data = b""
        if file is not None:
            # A file that is served around need not have all its bytes.
            read = partial(readable, file.read) if base in self._damaged else file.read
            data = read(position, until - start)
        if len(data) == until - start and (not position or base in self._sums):
            self._sums[base] = crc32(data, self._sums.get(base, 0))
        else:
            # It was deleted meanwhile, or damaged: its sum is not needed.
            self._sums.pop(base, None)
        self._end = until

    def of(self, end: int) -> tuple[int, ...]:
        """The sums for a mark with this durable offset.

        Raises:
            OSError: the medium could not be read.
        """
        self.add(end)
        if self._end > end or not end:
            return ()
        size = self._files.file_size
        base = (end - 1) // size * size
        sums: list[int] = []
        while base in self._sums and len(sums) < SUMS_MAX:
            sums.append(self._sums[base])
            base -= size
        self._forget_before(base)
        return tuple(reversed(sums))

    def _forget_before(self, base: int) -> None:
        for old in [known for known in self._sums if known <= base]:
            del self._sums[old]
