"""Judging what has come to its end: a service's round, and a life of the store."""

from __future__ import annotations

from collections.abc import Callable

from harness.interpreter import Report
from harness.promises import Promises
from models.invariants.checkpoint import round_marks_what_is_flushed
from models.invariants.marks import round_flushes_what_is_enough
from models.invariants.recovery import orderly_end_is_durable
from models.invariants.run import nothing_is_held
from models.observations import Positions, Ran, Stopped
from models.ops import Event, RunService
from models.program import Setup
from models.store_image import StoreImage


def judge_round(
    checks: dict[str, int],
    setup: Setup,
    op: Event,
    report: Report,
    around: tuple[Positions | None, Positions],
    image: Callable[[], StoreImage],
) -> None:
    """Judge rounds that ran alone, by where the log stood ``around`` them.

    Where it stood before is None if nobody knows, or if the disk has failed since.
    """
    if not (isinstance(op, RunService) and isinstance(report.observation, Ran)):
        return
    before, now = around
    if op.service == "checkpoint":
        round_marks_what_is_flushed.hold(checks, image(), now.flushed_where)
    if op.service == "flush_commit_log" and before is not None:
        round_flushes_what_is_enough.hold(checks, before, now, setup)


def judge_stop(
    checks: dict[str, int], stop: Stopped, report: Report, promises: Promises
) -> None:
    """Judge what a stop left, as far as the disk keeps what it says."""
    if promises.keeps_what_is_synced:
        orderly_end_is_durable.hold(checks, stop)
    if not report.interrupted:
        nothing_is_held.hold(checks, stop)
