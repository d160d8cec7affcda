"""The marks in front of lines of a timeline, by which a terminal colours them."""

from __future__ import annotations

BREACH_MARK = "✗"
UNKNOWN_MARK = "?"
PASSED_MARK = "✓"
FAULT_MARK = "!"
