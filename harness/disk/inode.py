"""One file of the simulated disk: what readers see, and what is on the medium.

``cache`` is the whole file as a reader sees it, ``durable`` what is on the medium for
certain. Between them lie ``pending`` stores, each within one page, and ``cuts`` made by
a truncation. Version j of a sector is the medium with the first j pending stores that
touch it, so every store boundary is a version. This module knows one file's bytes;
names and their order belong to ``namespace``, the choice of survivors to ``survivors``.

Buffers are copied on write: an inode and its snapshots share them until one of them
changes, and a file that is as it was loaded needs one buffer for both images.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from engine.host.disk import PAGE_SIZE

PAGE_BITS = PAGE_SIZE.bit_length() - 1
assert 1 << PAGE_BITS == PAGE_SIZE

Store: TypeAlias = tuple[int, int, bytes]  # action number, offset, bytes
Cut: TypeAlias = tuple[int, int]  # action number, size the file was cut to


class InodeImage(NamedTuple):
    """The buffers of an inode at one moment; nobody changes them any more."""

    birth_path: str
    cache: bytearray
    image: bytes | None
    durable: bytearray
    durable_size: int
    pending: list[Store]
    cuts: list[Cut]
    mtime_ms: int = 0
    mapped: bool = False


class Inode:
    """A file's bytes in memory and on the medium.

    ``mapped``: it was opened as a mapping, so that its pages are written at any time.

    Invariants:
        shared, or cache and durable are buffers of their own
        durable_size <= len(durable)
        len(cache) <= len(durable)
        every pending store lies within one page
        image is None or equals cache
    """

    __slots__ = (
        "birth_path",
        "cache",
        "cuts",
        "durable",
        "durable_size",
        "image",
        "mapped",
        "mtime_ms",
        "open_files",
        "pending",
        "shared",
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
        self.shared = True
        self.open_files = 0

    @classmethod
    def of_image(cls, image: InodeImage) -> Inode:
        """An inode that starts from ``image``, sharing its buffers."""
        inode = cls.__new__(cls)
        inode.birth_path = image.birth_path
        inode.cache = image.cache
        inode.image = image.image
        inode.durable = image.durable
        inode.durable_size = image.durable_size
        inode.pending = image.pending
        inode.cuts = image.cuts
        inode.mtime_ms = image.mtime_ms
        inode.mapped = image.mapped
        inode.shared = True
        inode.open_files = 0
        return inode

    def share(self) -> InodeImage:
        """The buffers as they are now; the next change copies them first."""
        self.shared = True
        return InodeImage(
            self.birth_path,
            self.cache,
            self.image,
            self.durable,
            self.durable_size,
            self.pending,
            self.cuts,
            self.mtime_ms,
            self.mapped,
        )

    def own(self) -> None:
        """Stop sharing buffers with snapshots. Every change begins with this."""
        if self.shared:
            self.cache = bytearray(self.cache)
            self.durable = bytearray(self.durable)
            self.pending = list(self.pending)
            self.cuts = list(self.cuts)
            self.shared = False

    def is_certain(self, size: int) -> bool:
        """Whether the medium holds what readers see, if its size there is ``size``."""
        return (
            not self.pending
            and not self.cuts
            and size == len(self.cache)
            and self.cache == self.durable
        )

    def content(self) -> bytes:
        """The bytes a reader sees; the identical object until they change."""
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
        """Set the size in memory; the medium follows when the change is committed."""
        self.own()
        if size < len(self.cache):
            del self.cache[size:]
            self.cuts.append((action, size))
        else:
            self.cache.extend(bytes(size - len(self.cache)))
            self.durable.extend(bytes(max(0, size - len(self.durable))))
        self.image = None

    def commit_size(self, action: int, size: int) -> None:
        """Let the size set by ``action`` be on the medium, and a cut have its effect.

        Bytes beyond a cut are gone for good: growing again shows zeros there, and no
        store from before the cut may come back.
        """
        self.own()
        if (action, size) in self.cuts:
            self.cuts.remove((action, size))
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
        """Put every pending store on the medium."""
        if self.pending:
            self.own()
            durable = self.durable
            for _, offset, data in self.pending:
                durable[offset : offset + len(data)] = data
            self.pending = []

    def write_back_page(self, page: int) -> None:
        """Put the pending stores of one page on the medium."""
        self.own()
        for _, offset, data in self.pending:
            if offset >> PAGE_BITS == page:
                self.durable[offset : offset + len(data)] = data
        self.pending = [s for s in self.pending if s[1] >> PAGE_BITS != page]

    def write_back_before(self, action: int) -> None:
        """Put the stores made before ``action`` on the medium."""
        self.own()
        for made, offset, data in self.pending:
            if made < action:
                self.durable[offset : offset + len(data)] = data
        self.pending = [s for s in self.pending if s[0] >= action]

    def forget_dirty_pages(self) -> None:
        """Mark every page clean without writing it, as a failed sync does (E1)."""
        self.pending = []


def clipped(store: Store, size: int) -> Store:
    """The part of a store below byte ``size``; its bytes may be none."""
    action, offset, data = store
    return action, offset, data[: max(0, size - offset)]
