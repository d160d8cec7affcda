"""The outcomes of a law (passed, violated, unknown), and a violation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Self

from crashmq.models.printable import printable


class Place(str):
    """A place in a store's files, as text and as path and byte.

    Attributes:
        path: the file or folder, below the store's root.
        byte: in that file; None for the whole file or folder.
    """

    __slots__ = ("byte", "path")
    path: str
    byte: int | None

    def __new__(cls, path: str, byte: int | None = None, known_as: str = "") -> Self:
        """The place of a byte, which may also be ``known_as``, say, a phy_offset."""
        if byte is None:
            text = f"{path} {known_as}" if known_as else path
        else:
            text = f"{path} byte {byte}" + (f" ({known_as})" if known_as else "")
        place = super().__new__(cls, text)
        place.path, place.byte = path, byte
        return place


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation of a law: where, what was seen, what was expected.

    ``where`` is a ``Place`` if it lies in a file, else what was asked, such as a pull.
    Its text is one printable line, whatever names the store has.
    """

    where: str
    seen: str
    expected: str = ""

    def __str__(self) -> str:
        wanted = f"; expected {self.expected}" if self.expected else ""
        return printable(f"{self.where}: {self.seen}{wanted}")


class Outcome(Enum):
    """The outcome of a law, or of a whole episode."""

    PASSED = "passed"
    VIOLATED = "violated"
    UNKNOWN = "unknown"
