"""Laws of the marks a running store reports: flushed_where, reput_from_offset."""

from __future__ import annotations

from collections.abc import Iterator

from models.invariants.registry import invariant
from models.observations import Positions, Put
from models.program import FlushMode
from models.verdict import Violation


@invariant("FL-1", "flushed_where and reput_from_offset lie in the log", law="I7")
def marks_lie_in_the_log(now: Positions) -> Iterator[Violation]:
    """0 <= min <= flushed_where, reput_from_offset <= max."""
    low, high = max(0, now.min_phy_offset), now.max_phy_offset
    if not low <= now.flushed_where <= high:
        yield Violation("flushed_where", f"{now.flushed_where}", f"in [{low}, {high}]")
    if not low <= now.reput_from_offset <= high:
        seen = f"{now.reput_from_offset}"
        yield Violation("reput_from_offset", seen, f"in [{low}, {high}]")


@invariant("FL-2", "a put acknowledged under SYNC_FLUSH is flushed", law="I1 I7")
def acknowledged_is_flushed(answer: Put, now: Positions) -> Iterator[Violation]:
    """For a put that waited for the store."""
    end = answer.phy_offset + answer.size
    if answer.status == "PUT_OK" and now.flushed_where < end:
        yield Violation(
            f"put at phy_offset {answer.phy_offset}",
            f"PUT_OK while flushed_where is {now.flushed_where}",
            f"flushed_where at least {end}",
        )


@invariant(
    "FL-3", "under SYNC_FLUSH nothing is dispatched that could be lost", law="I13"
)
def dispatched_is_flushed(mode: FlushMode, now: Positions) -> Iterator[Violation]:
    """Else a consumer commits past a message whose offset is then given again."""
    if mode == "SYNC_FLUSH" and now.reput_from_offset > now.flushed_where:
        yield Violation(
            f"reput_from_offset {now.reput_from_offset}",
            "dispatch is past what is flushed",
            f"at most flushed_where {now.flushed_where}",
        )


@invariant("FL-4", "within a life no mark moves backwards", law="I7 I8")
def marks_only_rise(before: Positions, now: Positions) -> Iterator[Violation]:
    """Both reported by one life of the store, the older first."""
    for name in ("min_phy_offset", "max_phy_offset", "flushed_where"):
        old, new = getattr(before, name), getattr(now, name)
        if new < old:
            yield Violation(name, f"{new} after {old}", "no less than before")
    if now.reput_from_offset < before.reput_from_offset:
        seen = f"{now.reput_from_offset} after {before.reput_from_offset}"
        yield Violation("reput_from_offset", seen, "no less than before")
