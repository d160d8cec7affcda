"""One file of the simulated disk: what readers see, and what is on the medium.

``cache`` is the whole file as a reader sees it, ``durable`` what is certainly on the
medium. Between them are ``pending`` stores, each within one page, and ``cuts`` made by
a truncation. Version j of a sector is the medium with the first j pending stores that
touch it, so every store boundary is a version. Pages are written back whole, so a page
of which the medium has lost bytes is complete again after the next store to it. This
module knows one file's bytes; names and their order belong to ``namespace``, the choice
of survivors to ``survivors``.

Buffers are copied on write: an inode and its snapshots share them until one of them
changes, and a file that has not changed since it was loaded has one buffer for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from crashmq.engine.host.disk import PAGE_SIZE
from crashmq.harness.disk.profiles import SECTOR_SIZE

PAGE_BITS = PAGE_SIZE.bit_length() - 1
assert 1 << PAGE_BITS == PAGE_SIZE

Store: TypeAlias = tuple[int, int, bytes]  # action number, offset, bytes
Cut: TypeAlias = tuple[int, int]  # action number, size the file was cut to
Room: TypeAlias = tuple[int, int]  # first byte, first byte after it


class InodeImage(NamedTuple):
    """An inode at one moment; the objects it refers to do not change.

    The cache is ``base`` with ``stores[since:end]`` applied; stores from ``end`` on
    were made later.
    """

    birth_path: str
    base: bytearray
    stores: list[Store]
    since: int
    end: int
    durable: bytearray
    durable_size: int
    cuts: list[Cut]
    mapped: bool
    mtime_ms: int
    unwritten: tuple[Room, ...]
    content: bytes | None
    bad: frozenset[int] = frozenset()


class Inode:
    """A file's bytes in memory and on the medium.

    Stores are appended to ``pending`` in place, and images share that list; any other
    change makes a new list. So an image after each of many stores costs no copy.

    While ``shared`` is true an image has the same cache object; ``durable_shared`` says
    the same of ``durable``. Since ``_imaged`` was taken, only stores have changed the
    inode.

    Invariants:
        durable_size <= len(durable)
        len(cache) <= len(durable)
        image is None or equals cache

    Attributes:
        mapped: it was opened as a mapping, so its pages may be written back at any
            time.
        unwritten: ranges of never synced space, which may have anything on the medium.
        late_errno: an error that the next sync reports.
        bad: numbers of the sectors that cannot be read until they are written.
    """

    __slots__ = (
        "_imaged",
        "bad",
        "birth_path",
        "cache",
        "cuts",
        "durable",
        "durable_shared",
        "durable_size",
        "image",
        "late_errno",
        "mapped",
        "mtime_ms",
        "open_files",
        "pending",
        "shared",
        "unwritten",
    )

    def __init__(
        self, birth_path: str, content: bytes = b"", mtime_ms: int = 0
    ) -> None:
        self.birth_path = birth_path
        self.mtime_ms = mtime_ms
        self.cache = bytearray(content)
        self.image: bytes | None = content
        self.durable = self.cache  # one buffer for both until the first change
        self.durable_size = len(content)
        self.pending: list[Store] = []
        self.cuts: list[Cut] = []
        self.mapped = False
        self.unwritten: tuple[Room, ...] = ()
        self.late_errno = 0
        self.bad: frozenset[int] = frozenset()
        self.shared = True
        self.durable_shared = True
        self.open_files = 0
        self._imaged: InodeImage | None = None

    def _check(self) -> None:
        assert 0 <= self.durable_size <= len(self.durable), self.birth_path
        assert len(self.cache) <= len(self.durable), self.birth_path
        assert self.image is None or self.image == self.cache, self.birth_path
        for number in self.bad:
            assert number >= 0, number

    @classmethod
    def of_image(
        cls, image: InodeImage, done: int | None = None, now_ms: int = 0
    ) -> Inode:
        """An inode that begins as ``image``, sharing its buffers.

        ``done``: with the later stores up to this action, at ``now_ms``; None: without
        them.
        """
        inode = cls.__new__(cls)
        inode.birth_path = image.birth_path
        inode.cache = image.base
        inode.image = image.content
        inode.mtime_ms = image.mtime_ms
        inode.shared = True
        end, stores = image.end, image.stores
        if done is not None:
            while end < len(stores) and stores[end][0] <= done:
                end += 1
                inode.image = None
                inode.mtime_ms = now_ms
        if end > image.since:
            inode.cache = bytearray(image.base)
            inode.shared = False
            for _, offset, data in stores[image.since : end]:
                inode.cache[offset : offset + len(data)] = data
        inode.durable = image.durable
        inode.durable_shared = True
        inode.durable_size = image.durable_size
        inode.pending = stores[:end]
        inode.cuts = image.cuts
        inode.mapped = image.mapped
        inode.unwritten = image.unwritten
        inode.late_errno = 0  # whom it was kept for is gone
        inode.bad = image.bad
        inode.open_files = 0
        inode._imaged = None
        return inode

    def share(self) -> InodeImage:
        """The inode as it is now; the next change copies buffers first."""
        imaged = self._imaged
        count = len(self.pending)
        if imaged is None:
            self.shared = self.durable_shared = True
            base, since = self.cache, count
        elif (
            imaged.end == count
            and imaged.durable_size == self.durable_size
            and imaged.unwritten is self.unwritten
            and imaged.mapped == self.mapped
            and imaged.mtime_ms == self.mtime_ms
            and imaged.content is self.image
            and imaged.bad is self.bad
        ):
            return imaged
        else:
            base, since = imaged.base, imaged.since
        self._imaged = imaged = InodeImage(
            self.birth_path,
            base,
            self.pending,
            since,
            count,
            self.durable,
            self.durable_size,
            self.cuts,
            self.mapped,
            self.mtime_ms,
            self.unwritten,
            self.image,
            self.bad,
        )
        return imaged

    def own(self) -> None:
        """Stop sharing the cache with snapshots; every store calls this first."""
        if self.shared:
            self.cache = bytearray(self.cache)
            self.shared = False

    def own_durable(self) -> None:
        """Stop sharing the medium's bytes, and drop the newest image."""
        self._imaged = None
        if self.durable_shared:
            self.durable = bytearray(self.durable)
            self.durable_shared = False

    def is_certain(self, size: int) -> bool:
        """Whether the medium has what readers see, if it has ``size`` bytes there."""
        return (
            not self.pending
            and not self.cuts
            and not self.unwritten
            and size == len(self.cache)
            and self.cache == self.durable
        )

    def content(self) -> bytes:
        """The bytes a reader sees; the same object until they change."""
        if self.image is None:
            self.image = bytes(self.cache)
        return self.image

    def store(self, action: int, offset: int, data: bytes) -> None:
        """Put bytes of one page into the cache."""
        if not data:
            return
        assert offset >> PAGE_BITS == (offset + len(data) - 1) >> PAGE_BITS
        self.own()
        self.cache[offset : offset + len(data)] = data
        self.pending.append((action, offset, data))
        self.image = None

    def resize(self, action: int, size: int) -> None:
        """Set the size in memory; the medium's follows once the change is committed."""
        self.own()
        self.own_durable()
        if size < len(self.cache):
            self._heal_from(size)
            del self.cache[size:]
            self.cuts = [*self.cuts, (action, size)]
        else:
            self.cache.extend(bytes(size - len(self.cache)))
            self.durable.extend(bytes(max(0, size - len(self.durable))))
        self.image = None

    def commit_size(self, action: int, size: int) -> None:
        """Make the size that ``action`` set durable, and a truncation final.

        Bytes beyond a cut are gone for good: after growing again they are zeros, and no
        store from before the cut can come back.
        """
        self.own_durable()
        if (action, size) in self.cuts:
            self.cuts = [cut for cut in self.cuts if cut != (action, size)]
            self.durable[size:] = bytes(len(self.durable) - size)
            self.pending = [
                store
                for old in self.pending
                if (store := clipped(old, size) if old[0] < action else old)[2]
            ]
        self.durable_size = size

    def dirty_pages(self) -> list[int]:
        """Numbers of the pages that a sync has to write, ascending."""
        return sorted({offset >> PAGE_BITS for _, offset, _ in self.pending})

    def write_back(self) -> None:
        """Make every page with a pending store durable, as memory shows it."""
        assert not self.cuts, "a cut has its effect before bytes are written back"
        if self.pending:
            self.own_durable()
            for page in self.dirty_pages():
                self._write_page(page)
            self._heal(self.pending)
            self.pending = []

    def write_back_page(self, page: int, until: int) -> None:
        """Make one page durable, as memory showed it after action ``until``."""
        assert not self.cuts, "a cut has its effect before bytes are written back"
        self.own_durable()
        here = [s for s in self.pending if s[1] >> PAGE_BITS == page]
        done = [store for store in here if store[0] <= until]
        if len(done) == len(here):
            self._write_page(page)
        else:
            for _, offset, data in done:
                self.durable[offset : offset + len(data)] = data
        self._heal(done)
        self.pending = [
            s for s in self.pending if s[0] > until or s[1] >> PAGE_BITS != page
        ]
        if self.unwritten:
            start = page << PAGE_BITS
            self.unwritten = tuple(_without(self.unwritten, start, start + PAGE_SIZE))

    def _write_page(self, page: int) -> None:
        start, end = self.page_range(page)
        self.durable[start:end] = self.cache[start:end]

    def write_back_before(self, action: int) -> None:
        """Make the stores before ``action`` durable."""
        self.own_durable()
        for made, offset, data in self.pending:
            if made < action:
                self.durable[offset : offset + len(data)] = data
        self.pending = [s for s in self.pending if s[0] >= action]

    def page_range(self, page: int) -> Room:
        """The bytes of a page, as far as the file has them."""
        start = page << PAGE_BITS
        return start, min(start + PAGE_SIZE, len(self.cache))

    def unreadable(self, start: int, end: int) -> range | None:
        """The first unreadable bytes of [start, end), if there are any."""
        for sector in sorted(self.unreadable_sectors()):
            at = sector * SECTOR_SIZE
            if at < end and start < at + SECTOR_SIZE:
                return range(max(at, start), min(at + SECTOR_SIZE, end))
        return None

    def unreadable_sectors(self) -> frozenset[int]:
        """The bad sectors that were not stored to since; those are read from memory."""
        if not self.bad:
            return self.bad
        return self.bad.difference(*map(whole_sectors, self.pending))

    def still_bad(self, content: bytes | bytearray) -> frozenset[int]:
        """The bad sectors whose bytes in ``content`` are those on the medium."""
        if not self.bad:
            return self.bad
        durable = self.durable
        size = SECTOR_SIZE
        return frozenset(
            [
                n
                for n in self.bad
                if content[n * size : n * size + size]
                == durable[n * size : n * size + size]
            ]
        )

    def _heal(self, stores: list[Store]) -> None:
        if self.bad:
            self.bad -= {n for store in stores for n in whole_sectors(store)}

    def _heal_from(self, size: int) -> None:
        """Drop the bad sectors past a cut: they are no longer part of the file."""
        if self.bad:
            self.bad = frozenset([n for n in self.bad if n * SECTOR_SIZE < size])

    def forget_page(self, page: int) -> None:
        """Mark a page clean without writing it: the medium lost the write (E6)."""
        self._imaged = None
        self.pending = [s for s in self.pending if s[1] >> PAGE_BITS != page]

    def overwrite_page(self, page: int, content: bytes) -> None:
        """Make this page durable with another page's content (E6)."""
        self.own_durable()
        start = page << PAGE_BITS
        end = min(start + len(content), len(self.durable))
        self.durable[start:end] = content[: max(0, end - start)]

    def forget_dirty_pages(self) -> None:
        """Mark every page clean without writing it, as a failed sync does (E1)."""
        self._imaged = None
        self.pending = []

    def take_over(self, content: bytearray) -> None:
        """Make ``content`` the medium's bytes; sectors that differ become readable."""
        assert len(content) == len(self.durable)
        size = SECTOR_SIZE
        for start in range(0, len(content), size):
            end = start + size
            if self.unwritten and content[start:end] != self.durable[start:end]:
                self.unwritten = tuple(_without(self.unwritten, start, end))
        self.bad = self.still_bad(content)
        self._imaged = None
        self.durable, self.durable_shared = content, False

    def evict(self) -> None:
        """Drop clean pages from memory: readers then see what the medium holds (E1)."""
        dirty = {offset >> PAGE_BITS for _, offset, _ in self.pending}
        for start in range(0, len(self.cache), PAGE_SIZE):
            end = min(start + PAGE_SIZE, len(self.cache))
            if start >> PAGE_BITS in dirty or (
                self.cache[start:end] == self.durable[start:end]
            ):
                continue
            self.own()
            self._imaged = None
            self.cache[start:end] = self.durable[start:end]
            self.image = None


def whole_sectors(store: Store) -> range:
    """Numbers of the sectors that a store replaces completely."""
    _, offset, data = store
    return range(-(-offset // SECTOR_SIZE), (offset + len(data)) // SECTOR_SIZE)


def clipped(store: Store, size: int) -> Store:
    """The part of a store below byte ``size``; possibly empty."""
    action, offset, data = store
    return action, offset, data[: max(0, size - offset)]


def _without(rooms: tuple[Room, ...], start: int, end: int) -> Iterator[Room]:
    for first, beyond in rooms:
        if first < min(beyond, start):
            yield first, min(beyond, start)
        if max(first, end) < beyond:
            yield max(first, end), beyond
