"""Judging the positions that a running store reports."""

from __future__ import annotations

from models.invariants import marks
from models.observations import Positions
from models.reference import ReferenceModel


def judge_marks(
    checks: dict[str, int],
    model: ReferenceModel,
    now: Positions,
    before: Positions | None,
) -> None:
    """Judge them, and let the model take note of their promises.

    ``before`` is what the same life of the store reported last; None if nothing.
    """
    marks.marks_lie_in_the_log.hold(checks, now)
    marks.dispatched_is_flushed.hold(checks, model.flush_mode, now)
    if before is not None:
        marks.marks_only_rise.hold(checks, before, now)
    if now.committed_where >= 0:
        marks.marks_are_in_order.hold(checks, now)
        marks.dispatched_is_confirmed.hold(checks, model.flush_mode, now)
    model.saw_positions(now)
