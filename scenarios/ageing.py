"""Phrases in which time passes, files fill and are deleted, and all becomes durable.

A phrase is a few ops that belong together; ``workload`` decides their order.
"""

from __future__ import annotations

from collections.abc import Callable

from models.ops import (
    AdvanceClock,
    DeleteManually,
    FillDisk,
    Op,
    Restart,
    RunService,
    ServiceName,
)
from models.program import Setup
from scenarios.overlapping import THOROUGH_MS, OverlapDrawer
from scenarios.space import FLUSHED_BY, Space

ROLLED_BY = 8
AGED_FLUSHES = (9, 2, 1)  # files that are flushed before the messages grow old


class AgeingWriter(OverlapDrawer):
    """Writes phrases for a store that fills and whose messages expire."""

    def __init__(self, space: Space, setup: Setup, draw: Callable[[], int]) -> None:
        super().__init__(space, setup, draw)
        self.ops: list[Op] = []

    def _settle(self, path: str) -> None:
        """A restart; then every service reports what is durable."""
        self.ops.append(Restart())
        self._tell(FLUSHED_BY.get(path, "flush_commit_log"))

    def _tell(self, service: ServiceName) -> None:
        """A put, then everything becomes durable and the checkpoint says so."""
        waiting = AdvanceClock(THOROUGH_MS)
        self.ops += (self._put(), RunService("reput"), waiting)
        self.ops += (RunService("flush_commit_log"), RunService(service))
        self.ops.append(RunService("checkpoint"))

    def _clean_now(self) -> None:
        """Ops after which the next cleaner round must delete expired files."""
        self.ops += (DeleteManually(), RunService("clean_commit_log"))

    def _age(self) -> None:
        """Messages are dispatched and grow old; then cleaners run.

        The last files are flushed or left for later, and young messages may follow.
        """
        self._grow_old()
        self.ops += [self._put() for _ in range(self.draw() % 4)]
        self.ops.append(DeleteManually())

    def _grow_old(self) -> None:
        flushes = AGED_FLUSHES[self.draw() % len(AGED_FLUSHES)]
        self._roll()
        self._serve(flushes)
        self.ops.append(AdvanceClock(self.space.expiry_steps_ms.choose(self.draw())))

    def _serve(self, flushes: int) -> None:
        if self.setup.transient_store_pool:
            self.ops.append(RunService("commit", flushes))
        self.ops += (RunService("flush_commit_log", flushes), RunService("reput"))

    def _roll(self) -> None:
        """Puts until one begins another log file, or up to a maximum."""
        file = self.whereabouts.file
        for _ in range(ROLLED_BY):
            self.ops.append(self._put())
            if self.whereabouts.file > file:
                break

    def _fill(self) -> None:
        """A foreign file fills the disk or goes; the cleaner or a put notices."""
        percents, draw = self.space.fill_percents, self.draw
        if draw() & 3 == 0:
            self._grow_old()
        if draw() & 1:
            self.ops += (FillDisk(max(percents)), RunService("clean_commit_log"))
        self.ops.append(FillDisk(percents[draw() % len(percents)]))
        if draw() & 1:
            self.ops += (RunService("clean_commit_log"), self._put())
