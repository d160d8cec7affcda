"""The errors of the store, as a tree.

::

    StoreError
    +-- StoreCorrupted   files say what they must not; nothing was changed
    |   +-- StoreForeign   no mark says that the files are this store's to cut
    +-- StoreLocked      another store holds the directory
    +-- StoreStopped     the store is not started, or no longer
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A file or directory of the store, and which byte of it.

    Attributes:
        path: below the store's root.
        byte: in that file; -1 where the file as a whole is meant.
        offset: of that byte in the log, or of one that no file has; -1 elsewhere.
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
    """Any refusal of the store; the message says where, what and what to do.

    Attributes:
        place: what it is about; None for the store as a whole.
    """

    def __init__(self, why: str, place: Place | None = None) -> None:
        super().__init__(why if place is None else f"{place}: {why}")
        self.place = place

    @property
    def path(self) -> str:
        """Of its place; "" without one."""
        return self.place.path if self.place is not None else ""


class StoreCorrupted(StoreError):
    """Primary data is damaged; the store refuses rather than lose what it kept."""


class StoreForeign(StoreCorrupted):
    """A start would lose what lies in a directory without this store's durable mark.

    With ``StoreConfig.adopt`` it is lost.
    """


class StoreLocked(StoreError):
    """The directory belongs to another running store."""


class StoreStopped(StoreError):
    """The request needs a started store, and this one is not started."""
