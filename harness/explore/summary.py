"""The results of an exploration: a summary in numbers, a certificate in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from crashmq.harness.explore.campaign import Result
from crashmq.harness.explore.certificate import Certificate
from crashmq.harness.searches.soak import code_version
from crashmq.reports.summary import CLEAN, TOO_LITTLE, VIOLATED


def exit_code_of(result: Result) -> int:
    """1 if a law was violated; 5 if one could not be judged, or no state was tried."""
    counts = result.counts
    if counts.violations or any(not one.is_unknown for one in result.found.values()):
        return VIOLATED
    if counts.unknown or not counts.visited:
        return TOO_LITTLE
    return CLEAN


def summary_of(result: Result, seconds: float) -> dict[str, Any]:
    """``summary.json``."""
    counts = result.counts
    core_seconds = max(counts.seconds, 1e-9)
    per_history = counts.states_per_history
    return {
        "states": counts.visited,
        "recoveries": counts.distinct,
        "states_per_second_per_core": round(counts.visited / core_seconds, 1),
        "recoveries_per_second_per_core": round(counts.distinct / core_seconds, 1),
        "histories": counts.histories,
        "violations": counts.violations,
        "unknown": counts.unknown,
        "space": counts.space,
        "visited": counts.visited,
        "classes": len(counts.classes),
        "unseen_estimate": round(counts.unseen_estimate, 6),
        "drawn": counts.drawn.total(),
        "starts": counts.starts,
        "healed": counts.healed,
        "closed_moments": counts.closed,
        "open_moments": counts.open,
        "open_recoveries": counts.open_recoveries,
        "closed_histories": counts.closed_histories,
        "is_closed": counts.is_closed,
        "stopped_early": counts.stopped_early,
        "median_states_per_history": median(per_history) if per_history else 0,
        "findings": len(result.found),
        "per_profile": {
            profile: _of_profile(one) for profile, one in sorted(result.on.items())
        },
        "seconds": round(seconds, 3),
        "core_seconds": round(counts.seconds, 3),
        "exit_code": exit_code_of(result),
        "code_version": code_version(),
    }


def _of_profile(counts: Certificate) -> dict[str, Any]:
    return {
        "states": counts.visited,
        "recoveries": counts.distinct,
        "histories": counts.histories,
        "closed_histories": counts.closed_histories,
        "space": counts.space,
        "closed_moments": counts.closed,
        "open_moments": counts.open,
        "open_recoveries": counts.open_recoveries,
        "violations": counts.violations,
        "unknown": counts.unknown,
        "classes": len(counts.classes),
        "unseen_estimate": round(counts.unseen_estimate, 6),
        "is_closed": counts.is_closed,
    }


def profile_lines(result: Result) -> Iterator[str]:
    """The certificate of each disk profile, if there are several."""
    if len(result.on) < 2:
        return
    for profile, counts in sorted(result.on.items()):
        yield (
            f"{profile:<13} {counts.visited:>11,} states, {counts.distinct:>9,} "
            f"recovered; {counts.closed:,} crash points closed, {counts.open:,} open; "
            f"{counts.violations:,} broke a law, {counts.unknown:,} not judged"
        )


def certificate_lines(result: Result) -> Iterator[str]:
    """How much of the space was tried, in sentences."""
    counts = result.counts
    yield (
        f"{counts.visited:,} states of {counts.histories:,} histories decided, "
        f"{counts.distinct:,} of them recovered and judged; "
        f"{counts.violations:,} broke a law, {counts.unknown:,} could not be judged"
    )
    share = f"{counts.closed:,} crash points closed, {counts.open:,} open"
    if counts.is_closed:
        yield f"space {counts.space:,}: CLOSED, every choice was tried ({share})"
    else:
        yield (
            f"space {counts.space:,}: OPEN ({share}; the recoveries from "
            f"{counts.open_recoveries:,} states were not crashed in turn)"
        )
    drawn = counts.drawn.total()
    if drawn:
        yield (
            f"{len(counts.classes):,} classes; {drawn:,} states were drawn by chance, "
            f"the next shows a new class with a chance of {counts.unseen_estimate:.3%}"
        )
    else:
        yield f"{len(counts.classes):,} classes; nothing was left to chance"
    if counts.stopped_early:
        yield "STOPPED EARLY: the budget ended first; this says nothing of the rest"


def speed_line(result: Result, seconds: float, workers: int) -> str:
    """States and recoveries per second, in one line."""
    counts = result.counts
    core_seconds = max(counts.seconds, 1e-9)
    return (
        f"{seconds:.1f} s on {workers} cores: "
        f"{counts.visited / core_seconds:,.0f} states and "
        f"{counts.distinct / core_seconds:,.0f} recoveries a second and core"
    )
