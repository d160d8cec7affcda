"""Recovery: a store is started on a crash state, judged, and taken to the healed end.

A start depends only on the clock and the files, and on the files only as far as it
reads them. So its result is kept by these, and each judge that meets the same start
judges the kept result. Judges that know the same give the same verdict on starts that
did and left the same, except for the laws about the files that were found; only those
are asked again. What follows a start depends on the files that it left and on what the
judge knows. So for each such pair it is run once: a put, services until idle,
everything read back, a shutdown.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from crashmq.engine.host.probe import recording
from crashmq.harness.disk.sim_disk import DiskSnapshot, SimDisk
from crashmq.harness.episodes.episode import Episode
from crashmq.harness.explore.certificate import Certificate
from crashmq.harness.explore.crash_point import CrashPoint, Watcher
from crashmq.harness.explore.judged_crash import JudgedCrash
from crashmq.harness.explore.judges import Judges
from crashmq.harness.explore.read_log import ReadLog, Reads
from crashmq.harness.explore.state_key import NEVER_READ, StateKey, StateKeys
from crashmq.harness.judging.judge import Judge
from crashmq.harness.subjects.interpreter import interpreter_of
from crashmq.harness.subjects.subject import SnapshotSubject
from crashmq.models.history import Step
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.observations import DOWN, HalfMade, Positions, status_of
from crashmq.models.ops import Crash, CrashKind, Restart
from crashmq.models.plain_state import token

_STARTS_KEPT = 1024
Breach: TypeAlias = LawViolated | LawUnknown


class Outcome(NamedTuple):
    """The outcome of a state.

    ``path`` is how the start went: its result and the branches it took.
    """

    path: str
    breach: Breach | None


_UNJUDGED = Outcome("Skipped", None)


class Remnant(NamedTuple):
    """What a crash has left: its key; its files and disk are made on first use."""

    state_key: StateKey
    files: Callable[[], Mapping[str, bytes]]
    disk: Callable[[], DiskSnapshot]


@dataclass(frozen=True, slots=True)
class _Left:
    """What a start did and left, kept so that other judges can judge it.

    Attributes:
        numbers: the next queue_offset of each queue.
        number: equal for starts that did and left the same, whatever they found.
        is_shared: whether equal files mean equal consequences: a power loss could
            change none of the files, or no law asks about that.
    """

    step: Step
    positions: Positions
    numbers: tuple[object, ...]
    seen: Mapping[str, bytes]
    state_key: StateKey
    clock: tuple[int, int]
    path: str
    number: int
    is_shared: bool
    epoch_ms: int

    def files(self) -> Mapping[str, bytes]:
        """The files after the start."""
        return self.seen

    def unsynced_from(self) -> Mapping[str, int]:
        """Empty: no law asks for it here."""
        return {}

    def half_made(self) -> HalfMade:
        """Empty: no law asks for it here."""
        return HalfMade()


@dataclass
class Recoveries:
    """Every start so far, and the verdict on what followed each."""

    scenario: str
    state_keys: StateKeys
    counts: Certificate
    _starts: dict[tuple[StateKey, tuple[object, ...], CrashKind], _Left] = field(
        default_factory=dict
    )
    _reads: ReadLog[_Left] = field(default_factory=ReadLog)
    _ends: dict[tuple[int, ...] | None, Breach | None] = field(default_factory=dict)
    _healed: dict[object, Breach | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._judges = Judges(self.state_keys)

    def outcome(
        self, crash_point: CrashPoint, judged: JudgedCrash, remnant: Remnant
    ) -> Outcome:
        """Judge the state that a crash at ``crash_point`` has left."""
        if judged.judge.is_unsure:
            return _UNJUDGED
        files = remnant.files()
        left = self._starts.get((remnant.state_key, crash_point.world, judged.kind))
        if left is not None:
            files = left.step.starts[0].found  # with what nobody reads, as it was left
        else:
            left = self._reads.find(
                _root(remnant.state_key, crash_point, judged, files), files
            )
        if left is not None and left.is_shared:
            known = self._judged_again(left, files, judged, crash_point)
            if known is not None:
                return known
        return self._started(crash_point, judged, remnant)

    def reads_of(
        self, crash_point: CrashPoint, judged: JudgedCrash, remnant: Remnant
    ) -> Reads | None:
        """What the start on a state reads; None if no start that reads so was run.

        Empty if no start is run on any state of this crash.
        """
        if judged.breach is not None or judged.judge.is_unsure:
            return ()
        files = remnant.files()
        return self._reads.path(
            _root(remnant.state_key, crash_point, judged, files), files
        )

    def crash_points(
        self, crash_point: CrashPoint, judged: JudgedCrash, crash: Crash
    ) -> list[CrashPoint]:
        """The crash points during the recovery from a crash."""
        disk = SimDisk.fork(crash_point.disk, crash.cut)
        disk.crash(crash)
        episode = self._episode(crash_point, judged, disk, crash)
        watcher = Watcher(episode, is_down=True)
        try:
            watcher.begin(Restart())
            episode.get_up()
        except (LawViolated, LawUnknown):
            pass  # the state itself was judged before, and this is known of it
        finally:
            watcher.end()
            episode.ops.append(Restart())
            watcher.close()
            episode.close()
        return watcher.crash_points

    def _judged_again(
        self,
        left: _Left,
        files: Mapping[str, bytes],
        judged: JudgedCrash,
        crash_point: CrashPoint,
    ) -> Outcome | None:
        """Let this judge judge a known start; None if what follows was never run."""
        end = self._end(left, files, judged)
        if end in self._ends:
            return Outcome(left.path, self._ends[end])
        judge = judged.judge.fork(left)
        try:
            judge.judge(left.step.with_found(files), left.positions)
        except (LawViolated, LawUnknown) as breach:
            return Outcome(left.path, breach)
        if left.positions == DOWN or judge.is_unsure:
            return Outcome(left.path, None)
        key = self._key(left, judged, crash_point, judge)
        if key not in self._healed:
            return None
        if end is not None:
            self._ends[end] = self._healed[key]
        return Outcome(left.path, self._healed[key])

    def _end(
        self, left: _Left, files: Mapping[str, bytes], judged: JudgedCrash
    ) -> tuple[int, ...] | None:
        """A key for the verdict on a start, after the files it found were judged.

        None if judging needs more than that, or if a law is violated: then the whole
        judge must say which law comes first.
        """
        if not left.is_shared:
            return None
        try:
            found = judged.judge.judge_found_again(files, left.step, left.seen)
        except (LawViolated, LawUnknown):
            return None
        return None if found is None else (left.number, judged.number, found)

    def _started(
        self, crash_point: CrashPoint, judged: JudgedCrash, remnant: Remnant
    ) -> Outcome:
        self.counts.starts += 1
        if self.counts.starts % _STARTS_KEPT == 0:
            gc.collect(0)  # what a start raised may lead to itself
        disk = SimDisk.fork(remnant.disk())
        subject = crash_point.down_on(disk)
        asked = None if disk.seen().has_bad else disk.note_reads()
        interpreter = interpreter_of(subject.setup, subject, crash_point.life)
        with recording() as probes:
            step = interpreter.run(Restart(), len(judged.ops))
        left, files = self._left(subject, step, probes), step.starts[0].found
        if left.is_shared:
            self._starts[remnant.state_key, crash_point.world, judged.kind] = left
        if asked is not None:
            root = _root(remnant.state_key, crash_point, judged, files)
            self._reads.add(root, asked.all(), files, left)
        end = self._end(left, files, judged)
        if end in self._ends:
            subject.close()
            return Outcome(left.path, self._ends[end])
        outcome = self._judged(crash_point, judged, subject, interpreter.life, left)
        if end is not None:
            self._ends[end] = outcome.breach
        return outcome

    def _judged(
        self,
        crash_point: CrashPoint,
        judged: JudgedCrash,
        subject: SnapshotSubject,
        life: int,
        left: _Left,
    ) -> Outcome:
        """Judge a start that was run, and continue the store to the healed end."""
        episode = Episode(
            self.scenario,
            subject.setup,
            subject=subject,
            keep_trace=False,
            judge=judged.judge.fork(subject),
            life=life,
            after=judged.ops,
        )
        try:
            episode.judge.judge(left.step, left.positions)
            if episode.is_up and episode.heal():
                self._go_on(episode, left, judged, crash_point)
        except (LawViolated, LawUnknown) as breach:
            return Outcome(left.path, breach)
        finally:
            episode.close()
        return Outcome(left.path, None)

    def _key(
        self, left: _Left, judged: JudgedCrash, crash_point: CrashPoint, judge: Judge
    ) -> tuple[object, ...]:
        """The key that decides how a started store goes on and is judged."""
        known = self._judges.number(judge, (left.state_key, judged.number))
        at = (left.state_key, left.positions, left.numbers, left.clock)
        on_clients = judged.number if crash_point.client_disks else 0
        return (*at, crash_point.life, known, on_clients)

    def _go_on(
        self,
        episode: Episode,
        left: _Left,
        judged: JudgedCrash,
        crash_point: CrashPoint,
    ) -> None:
        if not left.is_shared:
            episode.go_on()
            return
        key = self._key(left, judged, crash_point, episode.judge)
        if key in self._healed:
            known = self._healed[key]
            if known is not None:
                raise known
            return
        self.counts.healed += 1
        try:
            episode.go_on()
        except (LawViolated, LawUnknown) as breach:
            self._healed[key] = breach
            raise
        self._healed[key] = None

    def _episode(
        self, crash_point: CrashPoint, judged: JudgedCrash, disk: SimDisk, crash: Crash
    ) -> Episode:
        subject = crash_point.down_on(disk)
        return Episode(
            self.scenario,
            subject.setup,
            subject=subject,
            keep_trace=False,
            judge=judged.judge.fork(subject),
            life=crash_point.life,
            after=crash_point.ops(crash),
        )

    def _left(
        self, subject: SnapshotSubject, step: Step, probes: Mapping[str, int]
    ) -> _Left:
        positions, numbers = subject.positions(), subject.numbers()
        state_key, clock = self.state_keys.of(*subject.disk.seen()), subject.clock
        is_asked = subject.disk.profile.honours_sync
        did = token(step.beside_what_was_found)
        return _Left(
            step,
            positions,
            numbers,
            subject.files(),
            state_key,
            clock,
            " ".join([status_of(step.seen), *sorted(probes)]),
            self.state_keys.number((did, positions, numbers, state_key, clock)),
            not is_asked or subject.disk.is_certain,
            subject.epoch_ms,
        )


def _root(
    state_key: StateKey,
    crash_point: CrashPoint,
    judged: JudgedCrash,
    files: Mapping[str, bytes],
) -> Hashable:
    """What a start knows before it reads, and what the disk holds of memory.

    Includes the sizes of the files that are never read, which no frame has.
    """
    unread = [len(files[path]) if path in files else -1 for path in NEVER_READ]
    return (state_key[0], crash_point.world, judged.kind, *unread)
