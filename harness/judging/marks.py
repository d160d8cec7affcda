"""Judging the positions that a running store reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from models.invariants import marks, run
from models.observations import Positions
from models.program import Setup
from models.reference import ReferenceModel


def judge_marks(
    checks: dict[str, int],
    setup: Setup,
    model: ReferenceModel,
    now: Positions,
    before: Positions | None,
    files: Callable[[], Iterable[str]],
) -> None:
    """Judge them, and let the model take note of their promises.

    ``before`` is what the same life of the store reported last; None if nothing.
    ``files`` says the store's files.
    """
    marks.marks_lie_in_the_log.hold(checks, now)
    marks.dispatched_is_flushed.hold(checks, model.flush_mode, now)
    if before is not None:
        marks.marks_only_rise.hold(checks, before, now)
    if now.committed_where >= 0:
        marks.marks_are_in_order.hold(checks, now)
        marks.dispatched_is_confirmed.hold(checks, model.flush_mode, now)
    if now.free_buffers >= 0:
        log_files = [
            int(path.partition("/")[2])
            for path in files()
            if path.startswith("commitlog/")
        ]
        buffers, file_size = setup.transient_store_buffers, setup.log_file_size
        run.buffers_come_back.hold(checks, now, buffers, log_files, file_size)
    model.saw_positions(now)
