"""Judging what one life of a store owes: what has waited, and what a failure ends.

A flush that failed is never believed again before a start; a service that is turned
often does, once an interval has passed, all that waited for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.interpreter import Report
from harness.judging.promises import Promises
from harness.judging.terms import LookedAt
from harness.subjects.engine_config import COMMIT_THOROUGH_MS, THOROUGH_MS
from models.invariants import marks, putting, recovery
from models.invariants.medium import waiting_units_are_on_the_medium
from models.observations import (
    Failed,
    Interleaved,
    Interrupted,
    Observation,
    Positions,
    Ran,
)
from models.ops import AdvanceClock, During, Event, RunService, Together, parts
from models.plain_state import fork_of_fields
from models.program import Setup
from models.store_image import StoreImage

DELETION = "delete_topic"
FLUSHES = frozenset({"flush_commit_log", "flush_consume_queue", "flush_index"})


class Waiting(NamedTuple):
    """What lies before a place of the log waits since a time, at least."""

    since_ms: int
    until: int

    def is_due(self, now_ms: int, interval_ms: int = THOROUGH_MS) -> bool:
        """Whether a round that takes everything has come since, or has now."""
        return now_ms - self.since_ms >= interval_ms


@dataclass(slots=True)
class Lifetime:
    """Between two steps of one life.

    Attributes:
        failed: the services whose flush has failed, and a deletion that failed amid it.
        may_be_amid: a deletion has failed; if puts stop then, it was amid it.
        unflushed: bytes of one log file that wait for their sync.
        uncommitted: bytes of the log that wait in a write buffer.
        undurable: records whose units may wait for their sync.
        newest_ms: the latest time there was, be the clock set back since: the last
            round that took everything may be of then.
    """

    setup: Setup = field(compare=False)
    failed: frozenset[str] = frozenset()
    may_be_amid: bool = False
    unflushed: Waiting | None = None
    uncommitted: Waiting | None = None
    undurable: Waiting | None = None
    newest_ms: int = 0

    def fork(self) -> Lifetime:
        """One that goes on by itself."""
        return fork_of_fields(self)

    def judge(
        self,
        checks: dict[str, int],
        op: Event,
        report: Report,
        positions: Positions,
        disk: tuple[Promises, LookedAt] | None,
        image: Callable[[], StoreImage],
    ) -> None:
        """Judge one step, and take note of it.

        ``disk`` is None if it has failed in this life; ``image`` reads the files.
        """
        self._judge_after_a_failure(checks, report)
        ended = report.crash is not None or positions.max_phy_offset < 0
        if ended or report.stops or report.starts:
            self.failed = frozenset()
            self.may_be_amid = False
            self.unflushed = self.uncommitted = self.undurable = None
        elif report.failures or report.puts:
            self.failed |= self._failed_flushes(op, report)
            self._see_deletions(report)
        if _sets_back(op):
            self.newest_ms += _forward_ms(op) + report.stalled_ms
        self.newest_ms = max(self.newest_ms, report.world.now_ms)
        keeps = disk is not None and disk[0].keeps_what_is_synced
        if disk is None or not keeps or disk[0].reverts or ended or _sets_back(op):
            self.unflushed = self.uncommitted = self.undurable = None
        else:
            self._judge_waiting(checks, op, report, positions, disk[1], image)

    def _judge_after_a_failure(self, checks: dict[str, int], report: Report) -> None:
        if not self.failed:
            return
        failed = ", ".join(sorted(self.failed))
        if "flush_commit_log" in self.failed and not report.starts:
            for _, answer in report.puts:
                if answer is not None:
                    putting.no_put_after_a_failed_flush.hold(checks, answer)
        if report.stops:
            stop = report.stops[0]
            recovery.no_orderly_end_after_a_failed_flush.hold(checks, stop, failed)

    def _failed_flushes(self, op: Event, report: Report) -> set[str]:
        """Those whose round raised, and that of the log if a put was told as much."""
        failed = _raised(op, report.observation) & FLUSHES
        if self.setup.transient_store_pool:
            # A round may have failed to take a buffer to the file, which is no sync.
            return failed - {"flush_commit_log"}
        is_told = any(
            answer is not None and answer.status == "FLUSH_DISK_TIMEOUT"
            for _, answer in report.puts
        )
        if is_told and not (report.stalled_ms or report.is_stopping):
            failed.add("flush_commit_log")
        return failed

    def _see_deletions(self, report: Report) -> None:
        """One that failed has changed nothing, or no put is taken any more."""
        is_refused = any(
            answer is not None and answer.status == "SERVICE_NOT_AVAILABLE"
            for _, answer in report.puts
        )
        is_clear = not (self.setup.disk_capacity or report.is_stopping)
        if self.may_be_amid and is_refused and is_clear:
            self.failed |= {DELETION}
        if report.failures and any(seen is None for _, seen in report.deletions):
            self.may_be_amid = True

    def _judge_waiting(
        self,
        checks: dict[str, int],
        op: Event,
        report: Report,
        now: Positions,
        subject: LookedAt,
        image: Callable[[], StoreImage],
    ) -> None:
        service = ""
        if isinstance(op, RunService) and isinstance(report.observation, Ran):
            service = op.service
        now_ms = report.world.now_ms
        if waits := self.unflushed:
            if service == "flush_commit_log" and waits.is_due(now_ms):
                flushed = now.flushed_where
                marks.what_waited_is_flushed.hold(checks, flushed, waits.until)
            if now.flushed_where >= waits.until:
                self.unflushed = None
        if waits := self.uncommitted:
            if service == "commit" and waits.is_due(now_ms, COMMIT_THOROUGH_MS):
                committed = now.committed_where
                marks.what_waited_is_committed.hold(checks, committed, waits.until)
            if now.committed_where >= waits.until:
                self.uncommitted = None
        waits = self.undurable if service == "flush_consume_queue" else None
        if waits is not None and waits.is_due(now_ms):
            unsynced, files = subject.unsynced_from(), image()
            law = waiting_units_are_on_the_medium
            law.hold(checks, unsynced, files, waits.until)
            self.undurable = None
        self._begin_to_wait(self.newest_ms, now)

    def _begin_to_wait(self, since_ms: int, now: Positions) -> None:
        if self.unflushed is None and now.committed_where > now.flushed_where:
            size = self.setup.log_file_size
            end = now.flushed_where - now.flushed_where % size + size
            self.unflushed = Waiting(since_ms, min(end, now.committed_where))
        if self.uncommitted is None and now.max_phy_offset > now.committed_where >= 0:
            self.uncommitted = Waiting(since_ms, now.max_phy_offset)
        if self.undurable is None and now.reput_from_offset > 0:
            self.undurable = Waiting(since_ms, now.reput_from_offset)


def _raised(op: Event, seen: Observation) -> set[str]:
    """The services a round of which raised an error of the disk."""
    match op, seen:
        case RunService(service), Failed(error="OSError"):
            return {service}
        case During(inner, _, event), Interrupted(of_inner, of_event):
            return _raised(inner, of_inner) | _raised(event, of_event)
        case Together(ops), Interleaved(of_ops):
            found = [_raised(one, of) for one, of in zip(ops, of_ops, strict=True)]
            return set().union(*found)
        case _:
            return set()


def _forward_ms(op: Event) -> int:
    """By how much the clock may have been ahead of where it was, at most."""
    if isinstance(op, AdvanceClock):
        return max(0, op.ms)
    return sum(map(_forward_ms, parts(op)))


def _sets_back(op: Event) -> bool:
    """Whether the wall clock may have been set back meanwhile."""
    if isinstance(op, AdvanceClock):
        return op.ms < 0
    return any(map(_sets_back, parts(op)))
