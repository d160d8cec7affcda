"""Recovery: a store started on what a crash left, judged, and led to a healed end.

A start depends on the files, the clock and nothing else, so its outcome is kept by
these and held against each judge that meets them. What comes after a start depends on
what the start left and on what the judge knows then; from each such pair the store goes
on once: it takes a put, catches up, is read whole, and stops.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from harness.disk.sim_disk import DiskSnapshot, SimDisk
from harness.episode import Episode
from harness.explore.certificate import Certificate
from harness.explore.fall import Fall
from harness.explore.judges import Judges
from harness.explore.moment import Moment, Watcher
from harness.explore.views import View, Views
from harness.interpreter import Report
from harness.judging.judge import Judge
from harness.subjects.python_store import EPOCH_MS, PythonStore
from models.invariants.registry import InvariantUnknown, InvariantViolated
from models.observations import Positions, status_of
from models.ops import Crash, Op, Restart

_STARTS_KEPT = 1024
Breach: TypeAlias = InvariantViolated | InvariantUnknown


class Outcome(NamedTuple):
    """What came of a state.

    ``path`` tells how the start went: its answer and the branches it took.
    """

    path: str
    breach: Breach | None


@dataclass(frozen=True, slots=True)
class _Left:
    """What a start did and left, for a judge to be asked about it again."""

    report: Report
    positions: Positions
    seen: Mapping[str, bytes]
    view: View
    clock: tuple[int, int]
    path: str
    epoch_ms: int = EPOCH_MS

    def files(self) -> Mapping[str, bytes]:
        """The files after the start."""
        return self.seen

    def unsynced_from(self) -> Mapping[str, int]:
        """Judged when the start was made, and then not kept."""
        return {}


@dataclass
class Recoveries:
    """Every start so far, and every way a healed store went on."""

    scenario: str
    views: Views
    counts: Certificate
    _starts: dict[tuple[View, tuple[int, int]], _Left] = field(default_factory=dict)
    _healed: dict[object, Breach | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._judges = Judges(self.views)

    def outcome(
        self, moment: Moment, fall: Fall, view: View, disk: Callable[[], DiskSnapshot]
    ) -> Outcome:
        """Judge the state of ``disk``, which a crash at ``moment`` has left."""
        left = self._starts.get((view, moment.clock))
        if left is not None:
            known = self._judged_again(left, fall, moment)
            if known is not None:
                return known
        return self._started(moment, fall, view, SimDisk.fork(disk()))

    def moments(self, moment: Moment, fall: Fall, crash: Crash) -> list[Moment]:
        """The moments of the recovery from a crash, as those of a history."""
        disk = SimDisk.fork(moment.disk, crash.cut)
        disk.crash(crash)
        episode = self._episode(moment, fall, disk, moment.ops(crash))
        watcher = Watcher(episode, is_down=True)
        try:
            watcher.begin(Restart())
            episode.heal()
        except (InvariantViolated, InvariantUnknown):
            pass  # the state itself was judged before, and this is known of it
        finally:
            watcher.end()
            episode.ops.append(Restart())
            watcher.close()
            episode.close()
        return watcher.moments

    def _judged_again(self, left: _Left, fall: Fall, moment: Moment) -> Outcome | None:
        """Ask this judge about a known start; None if nobody went on from there."""
        judge = fall.judge.fork(left)
        try:
            judge.judge(Restart(), left.report, left.positions)
        except (InvariantViolated, InvariantUnknown) as breach:
            return Outcome(left.path, breach)
        key = self._key(left, fall, moment, judge)
        if key not in self._healed:
            return None
        return Outcome(left.path, self._healed[key])

    def _started(
        self, moment: Moment, fall: Fall, view: View, disk: SimDisk
    ) -> Outcome:
        self.counts.starts += 1
        if self.counts.starts % _STARTS_KEPT == 0:
            gc.collect(0)  # what a start raised may lead to itself
        episode = self._episode(moment, fall, disk, fall.ops)
        path = ""
        try:
            is_up = episode.heal()
            left = self._left(episode)
            path = left.path
            self._starts[view, moment.clock] = left
            if is_up:
                self._go_on(episode, left, fall, moment)
        except (InvariantViolated, InvariantUnknown) as breach:
            return Outcome(path or _path_of(episode), breach)
        finally:
            episode.close()
        return Outcome(path, None)

    def _key(
        self, left: _Left, fall: Fall, moment: Moment, judge: Judge
    ) -> tuple[object, ...]:
        """What decides how a started store goes on, and is judged."""
        known = self._judges.number(judge, (left.view, fall.number))
        return (left.view, left.positions, left.clock, moment.life, known)

    def _go_on(self, episode: Episode, left: _Left, fall: Fall, moment: Moment) -> None:
        key = self._key(left, fall, moment, episode.judge)
        if key in self._healed:
            known = self._healed[key]
            if known is not None:
                raise known
            return
        self.counts.healed += 1
        try:
            episode.go_on()
        except (InvariantViolated, InvariantUnknown) as breach:
            self._healed[key] = breach
            raise
        self._healed[key] = None

    def _episode(
        self, moment: Moment, fall: Fall, disk: SimDisk, ops: Sequence[Op]
    ) -> Episode:
        subject = moment.subject.down_on(disk, moment.clock)
        return Episode(
            self.scenario,
            subject.setup,
            subject=subject,
            keep_trace=False,
            judge=fall.judge.fork(subject),
            life=moment.life,
            after=ops,
        )

    def _left(self, episode: Episode) -> _Left:
        subject = episode.subject
        assert isinstance(subject, PythonStore)
        return _Left(
            episode.interpreter.report,
            subject.positions(),
            subject.files(),
            self.views.of(*subject.disk.seen()),
            subject.clock,
            _path_of(episode),
        )


def _path_of(episode: Episode) -> str:
    answer = status_of(episode.interpreter.report.observation)
    return " ".join([answer, *sorted(episode.probes)])
