"""The errors of the store, as a tree.

::

    StoreError
    +-- StoreCorrupted   the files contradict each other; nothing was changed
    |   +-- StoreForeign   a start would remove data that may be another program's
    +-- StoreLocked      another store holds the directory
    +-- StoreStopped     the store is not started, or was stopped
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A file or directory of the store, and one byte in it.

    Attributes:
        path: relative to the store's root.
        byte: position in the file; -1 if the error is about the file as a whole.
        offset: the byte's phy_offset, also where no file has that byte; -1 outside the
            log.
    """

    path: str
    byte: int = -1
    offset: int = -1

    def __str__(self) -> str:
        if self.byte < 0:
            return (
                self.path if self.offset < 0 else f"{self.path} at offset {self.offset}"
            )
        in_log = f" (offset {self.offset})" if self.offset >= 0 else ""
        return f"{self.path} byte {self.byte}{in_log}"


class StoreError(Exception):
    """The base of the store's errors; the message says what, where and what to do.

    Attributes:
        place: the file that the error is about; None for the store as a whole.
    """

    def __init__(self, why: str, place: Place | None = None) -> None:
        super().__init__(why if place is None else f"{place}: {why}")
        self.place = place

    @property
    def path(self) -> str:
        """The path of ``place``; "" without one."""
        return self.place.path if self.place is not None else ""


class StoreCorrupted(StoreError):
    """Durable data is damaged; a start refuses, since it would lose more of it."""


class StoreForeign(StoreCorrupted):
    """A start would remove data, and no durable mark says that it is this store's own.

    With ``StoreConfig.adopt`` the start removes it.
    """


class StoreLocked(StoreError):
    """The directory belongs to another running store."""


class SystemTopic(StoreError):
    """A topic that is RocketMQ's own was to be deleted, and is kept."""


class StoreStopped(StoreError):
    """The request needs a started store, and this one is not started."""
