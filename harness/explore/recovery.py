"""Recovery: a store started on a crash state, judged, and taken to the healed end.

A start depends only on the files and the clock, and of the files only on what it reads.
So its result is stored by these and judged by each judge that meets it. Equal judges
give equal verdicts on starts that did and left the same, except for laws about the
files that were found; only those are asked again. What comes after a start depends on
the files it left and on what the judge knows then; each such pair is continued once: a
put, services until idle, everything read back, a shutdown.
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
    """What a crash has left: a key of it; its files and disk, made on first use."""

    view: StateKey
    files: Callable[[], Mapping[str, bytes]]
    disk: Callable[[], DiskSnapshot]


@dataclass(frozen=True, slots=True)
class _Left:
    """What a start did and left, for a judge to be asked about it again.

    Attributes:
        numbers: the next queue_offset of each queue.
        number: equal for starts that did and left the same, whatever they found.
        is_shared: a power loss could change none of its files, or no law asks. Else
            neither it nor what follows can be shared by files alone.
    """

    step: Step
    positions: Positions
    numbers: tuple[object, ...]
    seen: Mapping[str, bytes]
    view: StateKey
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
    """Every start so far, and every way a started store went on."""

    scenario: str
    views: StateKeys
    counts: Certificate
    _starts: dict[tuple[StateKey, tuple[int, int], CrashKind], _Left] = field(
        default_factory=dict
    )
    _reads: ReadLog[_Left] = field(default_factory=ReadLog)
    _ends: dict[tuple[int, ...] | None, Breach | None] = field(default_factory=dict)
    _healed: dict[object, Breach | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._judges = Judges(self.views)

    def outcome(
        self, moment: CrashPoint, fall: JudgedCrash, remnant: Remnant
    ) -> Outcome:
        """Judge the state that a crash at ``moment`` has left."""
        if fall.judge.is_unsure:
            return _UNJUDGED
        files = remnant.files()
        left = self._starts.get((remnant.view, moment.clock, fall.kind))
        if left is not None:
            files = left.step.starts[0].found  # with what nobody reads, as it was left
        else:
            left = self._reads.find(_root(remnant.view, moment, fall, files), files)
        if left is not None and left.is_shared:
            known = self._judged_again(left, files, fall, moment)
            if known is not None:
                return known
        return self._started(moment, fall, remnant)

    def reads_of(
        self, moment: CrashPoint, fall: JudgedCrash, remnant: Remnant
    ) -> Reads | None:
        """What the start on a state reads; None unless a start that reads so was run.

        Empty if none is run on any state of this crash.
        """
        if fall.breach is not None or fall.judge.is_unsure:
            return ()
        files = remnant.files()
        return self._reads.path(_root(remnant.view, moment, fall, files), files)

    def moments(
        self, moment: CrashPoint, fall: JudgedCrash, crash: Crash
    ) -> list[CrashPoint]:
        """The crash points within the recovery from a crash."""
        disk = SimDisk.fork(moment.disk, crash.cut)
        disk.crash(crash)
        episode = self._episode(moment, fall, disk, crash)
        watcher = Watcher(episode, is_down=True)
        try:
            watcher.begin(Restart())
            episode.heal()
        except (LawViolated, LawUnknown):
            pass  # the state itself was judged before, and this is known of it
        finally:
            watcher.end()
            episode.ops.append(Restart())
            watcher.close()
            episode.close()
        return watcher.moments

    def _judged_again(
        self,
        left: _Left,
        files: Mapping[str, bytes],
        fall: JudgedCrash,
        moment: CrashPoint,
    ) -> Outcome | None:
        """Ask this judge about a known start; None if it was not continued."""
        end = self._end(left, files, fall)
        if end in self._ends:
            return Outcome(left.path, self._ends[end])
        judge = fall.judge.fork(left)
        try:
            judge.judge(left.step.with_found(files), left.positions)
        except (LawViolated, LawUnknown) as breach:
            return Outcome(left.path, breach)
        if left.positions == DOWN or judge.is_unsure:
            return Outcome(left.path, None)
        key = self._key(left, fall, moment, judge)
        if key not in self._healed:
            return None
        if end is not None:
            self._ends[end] = self._healed[key]
        return Outcome(left.path, self._healed[key])

    def _end(
        self, left: _Left, files: Mapping[str, bytes], fall: JudgedCrash
    ) -> tuple[int, ...] | None:
        """The key of a start's verdict, once the files that it found are judged.

        None if that is more, or if a law is broken: the whole judge says which first.
        """
        if not left.is_shared:
            return None
        try:
            found = fall.judge.judge_found_again(files, left.step, left.seen)
        except (LawViolated, LawUnknown):
            return None
        return None if found is None else (left.number, fall.number, found)

    def _started(
        self, moment: CrashPoint, fall: JudgedCrash, remnant: Remnant
    ) -> Outcome:
        self.counts.starts += 1
        if self.counts.starts % _STARTS_KEPT == 0:
            gc.collect(0)  # what a start raised may lead to itself
        disk = SimDisk.fork(remnant.disk())
        subject = moment.down_on(disk)
        asked = None if disk.seen().has_bad else disk.note_reads()
        interpreter = interpreter_of(subject.setup, subject, moment.life)
        with recording() as probes:
            step = interpreter.run(Restart(), len(fall.ops))
        left, files = self._left(subject, step, probes), step.starts[0].found
        if left.is_shared:
            self._starts[remnant.view, moment.clock, fall.kind] = left
        if asked is not None:
            root = _root(remnant.view, moment, fall, files)
            self._reads.add(root, asked.all(), files, left)
        end = self._end(left, files, fall)
        if end in self._ends:
            subject.close()
            return Outcome(left.path, self._ends[end])
        outcome = self._judged(moment, fall, subject, interpreter.life, left)
        if end is not None:
            self._ends[end] = outcome.breach
        return outcome

    def _judged(
        self,
        moment: CrashPoint,
        fall: JudgedCrash,
        subject: SnapshotSubject,
        life: int,
        left: _Left,
    ) -> Outcome:
        """Judge a start that was run, and let the store go on."""
        episode = Episode(
            self.scenario,
            subject.setup,
            subject=subject,
            keep_trace=False,
            judge=fall.judge.fork(subject),
            life=life,
            after=fall.ops,
        )
        try:
            episode.judge.judge(left.step, left.positions)
            if episode.is_up and episode.heal():
                self._go_on(episode, left, fall, moment)
        except (LawViolated, LawUnknown) as breach:
            return Outcome(left.path, breach)
        finally:
            episode.close()
        return Outcome(left.path, None)

    def _key(
        self, left: _Left, fall: JudgedCrash, moment: CrashPoint, judge: Judge
    ) -> tuple[object, ...]:
        """The key that decides how a started store goes on and is judged."""
        known = self._judges.number(judge, (left.view, fall.number))
        at = (left.view, left.positions, left.numbers, left.clock)
        on_clients = fall.number if moment.client_disks else 0
        return (*at, moment.life, known, on_clients)

    def _go_on(
        self, episode: Episode, left: _Left, fall: JudgedCrash, moment: CrashPoint
    ) -> None:
        if not left.is_shared:
            episode.go_on()
            return
        key = self._key(left, fall, moment, episode.judge)
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
        self, moment: CrashPoint, fall: JudgedCrash, disk: SimDisk, crash: Crash
    ) -> Episode:
        subject = moment.down_on(disk)
        return Episode(
            self.scenario,
            subject.setup,
            subject=subject,
            keep_trace=False,
            judge=fall.judge.fork(subject),
            life=moment.life,
            after=moment.ops(crash),
        )

    def _left(
        self, subject: SnapshotSubject, step: Step, probes: Mapping[str, int]
    ) -> _Left:
        positions, numbers = subject.positions(), subject.numbers()
        view, clock = self.views.of(*subject.disk.seen()), subject.clock
        is_asked = subject.disk.profile.honours_sync
        did = token(step.beside_what_was_found)
        return _Left(
            step,
            positions,
            numbers,
            subject.files(),
            view,
            clock,
            " ".join([status_of(step.seen), *sorted(probes)]),
            self.views.number((did, positions, numbers, view, clock)),
            not is_asked or subject.disk.is_certain,
            subject.epoch_ms,
        )


def _root(
    view: StateKey, moment: CrashPoint, fall: JudgedCrash, files: Mapping[str, bytes]
) -> Hashable:
    """What a start knows without a read, and whether the disk holds what readers see.

    No frame has the sizes of what nobody reads.
    """
    unread = [len(files[path]) if path in files else -1 for path in NEVER_READ]
    return (view[0], moment.clock, fall.kind, *unread)
