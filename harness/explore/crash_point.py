"""Crash points: a history is run once, and its state kept at each disk action.

A crash point is a disk action of one op, before any of it is done, or the time between
two ops. It has everything that decides what follows from a crash there: the disk, the
clocks, what the op in progress had done, and what the judge knew before it. A crash
there is also an ordinary program, ``CrashPoint.program``, and running that program must
give the same verdict. A history ends before an op with the maximum of nested events,
since a program could not add the crash to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crashmq.harness.disk.sim_disk import DiskSnapshot, SimDisk
from crashmq.harness.episodes.episode import Episode
from crashmq.harness.judging.judge import Judge
from crashmq.harness.subjects.subject import SnapshotSubject, with_snapshots
from crashmq.models.history import ConsumerBegan, ConsumerEnded, Entry
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.ops import (
    NESTING_MAX,
    AdvanceClock,
    Crash,
    Damage,
    During,
    EndConsumer,
    Op,
    PlantFile,
    nesting,
)
from crashmq.models.program import Program

BETWEEN = AdvanceClock(0)  # an op that does nothing, for a crash to happen in


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A disk action of a history, or the time between two of its ops.

    Attributes:
        before: the ops that were done.
        op: the one in progress; ``BETWEEN`` if there is none.
        at_action: its disk action, from 1.
        disk: as it was, with all pending changes.
        clock: the wall clock, and the clock of the time-outs.
        life: how often the store was started before.
        entries: the events of the op up to there.
        judge: as of before the op.
        clients: whose consumers run. The crash ends them too: what a consumer does when
            its broker dies during a request is a state that cannot be copied.
        client_disks: disks of the machines on which consumers ran.
        subject: the store of the history, for its setup.
    """

    before: tuple[Op, ...]
    op: Op
    at_action: int
    disk: DiskSnapshot
    clock: tuple[int, int]
    life: int
    entries: Sequence[Entry]
    judge: Judge
    clients: tuple[str, ...]
    client_disks: Mapping[str, DiskSnapshot]
    subject: SnapshotSubject

    def ops(self, crash: Crash) -> tuple[Op, ...]:
        """The ops up to a crash here, with the crash and the consumers it ends."""
        killed = [EndConsumer(client, "kill") for client in self.clients]
        return (*self.before, During(self.op, self.at_action, crash), *killed)

    def down_on(self, disk: SimDisk) -> SnapshotSubject:
        """A store that is down since a crash at this point, which left ``disk``."""
        configured = self.judge.known.setup
        return self.subject.down_on(disk, self.clock, self.client_disks, configured)

    @property
    def world(self) -> tuple[object, ...]:
        """What a start knows beside its disk: the clocks, and what was configured."""
        return (*self.clock, self.judge.known.setup)

    def program(self, crash: Crash) -> Program:
        """The program that crashes here; its end starts the store again and judges."""
        return Program(self.subject.setup, self.ops(crash))

    @property
    def is_between(self) -> bool:
        """Whether no op is in progress."""
        return self.op is BETWEEN


@dataclass(slots=True)
class History:
    """A program's run, and its crash points.

    Attributes:
        breach: the law that the run itself violated; None if none.
    """

    scenario: str
    program: Program
    crash_points: list[CrashPoint]
    breach: LawViolated | LawUnknown | None = None


class Watcher:
    """Records the crash points of an episode, op by op."""

    def __init__(self, episode: Episode, *, is_down: bool = False) -> None:
        """Watch ``episode``; if its store is down, from its next op on."""
        self.crash_points: list[CrashPoint] = []
        self._episode = episode
        self._subject = with_snapshots(episode.subject)
        self._before: tuple[Op, ...] = ()
        self._op: Op = BETWEEN
        self._actions = self._subject.disk_actions() if is_down else -1
        self._judge: Judge | None = episode.judge
        self._entries: tuple[Entry, ...] = ()

    def begin(self, op: Op) -> None:
        """Record a crash point if the last op changed anything; watch ``op``."""
        self._look_between()
        self._op = op
        self._subject.disk.on_every_action(self._note)

    def end(self) -> None:
        """End the watched op: it is over, or the store is."""
        self._subject.disk.on_every_action(None)

    def close(self) -> None:
        """Record the crash point after the last op."""
        self._look_between()

    def _look_between(self) -> None:
        self._before = tuple(self._episode.ops)
        self._judge = None
        actions = self._subject.disk_actions()
        changed = actions != self._actions or isinstance(self._op, Damage | PlantFile)
        self._actions = actions
        if changed:
            self._op = BETWEEN
            self._keep(1, ())

    def _note(self) -> None:
        at_action = self._subject.disk_actions() - self._actions
        entries = self._episode.interpreter.entries
        # Most actions of an op come between two events.
        if len(entries) != len(self._entries) or entries[0] is not self._entries[0]:
            self._entries = tuple(entries)
        self._keep(at_action, self._entries)

    def _keep(self, at_action: int, entries: Sequence[Entry]) -> None:
        if self._judge is None:
            self._judge = self._episode.judge.fork(self._subject)
        self.crash_points.append(
            CrashPoint(
                self._before,
                self._op,
                at_action,
                self._subject.disk.snapshot(),
                self._subject.clock,
                self._episode.interpreter.life,
                entries,
                self._judge,
                _running(self._judge, entries),
                self._subject.client_disks,
                self._subject,
            )
        )


def _running(judge: Judge, entries: Sequence[Entry]) -> tuple[str, ...]:
    """The clients that have a consumer after these events of an op, sorted."""
    running = {*judge.known.consumption.living}
    for entry in entries:
        match entry.event:
            case ConsumerBegan(op):
                running.add(op.client)
            case ConsumerEnded(client):
                running.discard(client)
    return tuple(sorted(running))


def record(program: Program, scenario: str) -> History:
    """Run a program, judged as usual, and record its crash points.

    Where the run violates a law, the history ends.
    """
    episode = Episode(scenario, program.setup, keep_trace=False)
    watcher = Watcher(episode)
    breach: LawViolated | LawUnknown | None = None
    try:
        episode.begin()
        for op in program.ops:
            if nesting(op) >= NESTING_MAX:
                break
            watcher.begin(op)
            episode.step(op)
            watcher.end()
        watcher.close()
    except (LawViolated, LawUnknown) as error:
        breach = error
        watcher.end()
    finally:
        episode.close()
    return History(scenario, program, watcher.crash_points, breach)
