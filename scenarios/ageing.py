"""Ageing: phrases in which time passes, files fill and go, and all becomes durable.

A phrase is a few ops that belong together; ``workload`` says which follows which.
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
    """Writes phrases of a store that fills and grows old."""

    def __init__(self, space: Space, setup: Setup, draw: Callable[[], int]) -> None:
        super().__init__(space, setup, draw)
        self.ops: list[Op] = []

    def _settle(self, path: str) -> None:
        """The store starts again, and everybody says what is durable now."""
        self.ops.append(Restart())
        self._tell(FLUSHED_BY.get(path, "flush_commit_log"))

    def _tell(self, service: ServiceName) -> None:
        """A message comes, and all of it becomes durable, as the checkpoint says."""
        waiting = AdvanceClock(THOROUGH_MS)
        self.ops += (self._put(), RunService("reput"), waiting)
        self.ops += (RunService("flush_commit_log"), RunService(service))
        self.ops.append(RunService("checkpoint"))

    def _clean_now(self) -> None:
        """What has expired, and whatever kept it so far, has to go in this round."""
        self.ops += (DeleteManually(), RunService("clean_commit_log"))

    def _age(self) -> None:
        """Messages are dispatched and grow old; cleaners are asked to look.

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
        """Messages until one begins another log file, or as many as there may be."""
        file = self.whereabouts.file
        for _ in range(ROLLED_BY):
            self.ops.append(self._put())
            if self.whereabouts.file > file:
                break

    def _fill(self) -> None:
        """Others fill the disk or free it; the cleaner sees it, or a put does first."""
        percents, draw = self.space.fill_percents, self.draw
        if draw() & 3 == 0:
            self._grow_old()
        if draw() & 1:
            self.ops += (FillDisk(max(percents)), RunService("clean_commit_log"))
        self.ops.append(FillDisk(percents[draw() % len(percents)]))
        if draw() & 1:
            self.ops += (RunService("clean_commit_log"), self._put())
