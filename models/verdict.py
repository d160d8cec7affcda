"""What a law may say: passed, violated or unknown, and what a breach looks like."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from models.printable import printable


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of one law: where it was seen, what was seen, what was expected.

    Said as one printable line, whatever names the store has.
    """

    where: str
    seen: str
    expected: str = ""

    def __str__(self) -> str:
        wanted = f"; expected {self.expected}" if self.expected else ""
        return printable(f"{self.where}: {self.seen}{wanted}")


class Outcome(Enum):
    """What came of a law, or of a whole episode."""

    PASSED = "passed"
    VIOLATED = "violated"
    UNKNOWN = "unknown"
