"""The outcomes of a law (passed, violated, unknown), and a violation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from crashmq.models.printable import printable


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of a law: where it is, what was seen, what was expected.

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
