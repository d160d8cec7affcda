"""Explorer: tries all the crashes that one history can have.

A history is run once. At each crash point it tries a process kill, also with a store
into a mapping done in part, and power losses that any subset of the pending changes
survives. Each state that such a crash leaves is *decided*: if its files, and what must
hold of them, are equal to an earlier state's, it has the same outcome. Otherwise a
store is started on it, judged, and taken to the healed end. The recoveries are then
histories themselves, with crash points of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from crashmq.harness.disk.hashing import mixed
from crashmq.harness.disk.sim_disk import DiskSnapshot, SimDisk
from crashmq.harness.explore.certificate import Certificate
from crashmq.harness.explore.crash_point import CrashPoint, History
from crashmq.harness.explore.crash_states import CrashStates, State, Vector
from crashmq.harness.explore.judged_crash import JudgedCrash, JudgedCrashes
from crashmq.harness.explore.limits import HEADS, Limits, cuts_of
from crashmq.harness.explore.read_log import Reads
from crashmq.harness.explore.recovery import Breach, Outcome, Recoveries, Remnant
from crashmq.harness.explore.state_key import StateKey, StateKeys
from crashmq.models.laws.registry import LawViolated
from crashmq.models.ops import Crash, CrashKind, innermost
from crashmq.models.program import Program

Clock: TypeAlias = Callable[[], bool]

_LOOKS_AT_CLOCK = 256  # states


@dataclass(frozen=True, slots=True)
class Found:
    """The first state of its class in which a law was violated, as a program."""

    signature: str
    law: str
    message: str
    program: Program
    is_unknown: bool = False


class _Left(NamedTuple):
    """A crash and what it left; made on first use."""

    crash: Callable[[], Crash]
    remnant: Remnant


@dataclass(slots=True)
class _Nested:
    """A state whose recovery is to be crashed in turn."""

    crash_point: CrashPoint
    judged: JudgedCrash
    crash: Callable[[], Crash]
    depth: int
    name: str


class Explorer:
    """Explores one history after the other under one scenario's name.

    Attributes:
        counts: the certificate so far.
        found: the violations so far, by signature.
    """

    def __init__(
        self,
        scenario: str,
        limits: Limits,
        *,
        seed: int = 0,
        is_over: Clock = lambda: False,
    ) -> None:
        self.counts = Certificate()
        self.found: dict[str, Found] = {}
        self._scenario = scenario
        self._limits = limits
        self._seed = seed
        self._is_over = is_over
        self._begin()

    def _begin(self) -> None:
        self._state_keys = StateKeys()
        self._judged_crashes = JudgedCrashes(self._state_keys)
        self._recoveries = Recoveries(self._scenario, self._state_keys, self.counts)
        self._decided: dict[tuple[StateKey, int, CrashKind], Outcome] = {}
        self._queue: list[_Nested] = []
        self._begun_at = 0

    def explore(self, history: History) -> None:
        """Try the crashes at every crash point, then those in their recoveries."""
        self._begin()
        counts = self.counts
        before, was_open = counts.visited, (counts.open, counts.open_recoveries)
        counts.histories += 1
        if history.breach is not None:
            self._note_run(history)
        self._begin_depth()
        for number, crash_point in enumerate(history.crash_points):
            if self._stops() or self._is_enough():
                counts.open += len(history.crash_points) - number
                break
            self._explore(crash_point, 1)
        self._explore_recoveries()
        counts.states_per_history.append(counts.visited - before)
        if was_open == (counts.open, counts.open_recoveries):
            counts.closed_histories += not counts.stopped_early

    def _begin_depth(self) -> None:
        self._begun_at = self.counts.visited

    def _is_enough(self) -> bool:
        """Whether the limit of states at this depth of the history is reached."""
        most = self._limits.states_max
        return bool(most) and self.counts.visited - self._begun_at >= most

    def _stops(self) -> bool:
        if self._is_over():
            self.counts.stopped_early = True
        return self.counts.stopped_early

    def _explore(self, crash_point: CrashPoint, depth: int) -> None:
        for cut, disk in self._disks(crash_point):
            kill = self._judged_crashes.at(crash_point, "process_kill", cut)
            loss = self._judged_crashes.at(crash_point, "power_loss", cut)
            self._kill(crash_point, kill, cut, disk, depth)
            if disk.profile.loses_unsynced and cut not in HEADS:
                self._lose_power(crash_point, loss, cut, disk, depth)

    def _disks(self, crash_point: CrashPoint) -> Iterator[tuple[int, DiskSnapshot]]:
        """The disk before the action in progress, then after each part of it."""
        yield 0, crash_point.disk
        storing = None if crash_point.is_between else crash_point.disk.storing
        if self._limits.cuts and storing is not None:
            for cut in cuts_of(len(storing[1])):
                yield cut, SimDisk.fork(crash_point.disk, cut).snapshot()

    def _kill(
        self,
        crash_point: CrashPoint,
        judged: JudgedCrash,
        cut: int,
        disk: DiskSnapshot,
        depth: int,
    ) -> None:
        crash = Crash("process_kill", cut=cut)
        self.counts.space += 1
        seen = SimDisk.fork(disk)
        remnant = Remnant(self._state_keys.of(*seen.seen()), seen.files, lambda: disk)
        left = _Left(lambda: crash, remnant)
        self._decide(crash_point, judged, left, depth)
        self.counts.closed += 1

    def _lose_power(
        self,
        crash_point: CrashPoint,
        judged: JudgedCrash,
        cut: int,
        disk: DiskSnapshot,
        depth: int,
    ) -> None:
        crash_states = CrashStates(disk, self._state_keys)
        counts, limits = self.counts, self._limits
        most = limits.exact_max if depth == 1 else limits.exact_max_nested
        space = crash_states.space(most)
        if space > most and limits.classes_max:
            closed = self._close(crash_point, judged, crash_states, cut, depth)
            if closed is not None:
                counts.space += closed
                counts.closed += 1
                return
        counts.space += space
        seed = self._seed + counts.visited
        is_small = space <= most
        states = (
            crash_states.all()
            if is_small
            else crash_states.some(seed, limits.promising, limits.draws)
        )
        for state in states:
            if counts.visited % _LOOKS_AT_CLOCK == 0 and self._stops():
                counts.open += 1
                return
            left = _lost_power(crash_states, state, cut)
            outcome = self._decide(crash_point, judged, left, depth)
            if state.is_drawn:
                counts.drawn[_class_of(crash_point, "power_loss", outcome)] += 1
        if is_small:
            counts.closed += 1
        else:
            counts.open += 1

    def _close(
        self,
        crash_point: CrashPoint,
        judged: JudgedCrash,
        crash_states: CrashStates,
        cut: int,
        depth: int,
    ) -> int | None:
        """Decide a state of each class that starts read alike; how many states.

        None if there are too many classes, or if a start does not report what it reads.
        """

        def decide(state: State) -> Reads | None:
            left = _lost_power(crash_states, state, cut)
            self._decide(crash_point, judged, left, depth)
            return self._recoveries.reads_of(crash_point, judged, left.remnant)

        return crash_states.by_reads(decide, self._limits.classes_max, self._stops)

    def _decide(
        self, crash_point: CrashPoint, judged: JudgedCrash, left: _Left, depth: int
    ) -> Outcome:
        counts = self.counts
        counts.visited += 1
        key = (left.remnant.state_key, judged.number, judged.kind)
        outcome = self._decided.get(key)
        if outcome is None:
            counts.distinct += 1
            if judged.breach is not None:
                outcome = Outcome("", judged.breach)
            else:
                outcome = self._recoveries.outcome(crash_point, judged, left.remnant)
            self._decided[key] = outcome
            self._note(crash_point, judged, left.crash, outcome, depth)
        self._count(outcome.breach)
        return outcome

    def _count(self, breach: Breach | None) -> None:
        if isinstance(breach, LawViolated):
            self.counts.violations += 1
        elif breach is not None:
            self.counts.unknown += 1

    def _note(
        self,
        crash_point: CrashPoint,
        judged: JudgedCrash,
        crash: Callable[[], Crash],
        outcome: Outcome,
        depth: int,
    ) -> None:
        name = _class_of(crash_point, judged.kind, outcome)
        self.counts.classes[name] += 1
        if outcome.breach is not None:
            signature = f"{outcome.breach.id} {name.partition(' Started')[0]}"
            self._keep(signature, outcome.breach, crash_point.program(crash()))
        elif depth < self._limits.depth:
            self._queue.append(_Nested(crash_point, judged, crash, depth, name))

    def _note_run(self, history: History) -> None:
        """Keep a violation of the history itself, before any crash was added."""
        assert history.breach is not None
        self._count(history.breach)
        signature = f"{history.breach.id} by itself"
        self._keep(signature, history.breach, history.program)

    def _keep(self, signature: str, breach: Breach, program: Program) -> None:
        if signature not in self.found:
            self.found[signature] = Found(
                signature,
                breach.id,
                str(breach),
                program,
                not isinstance(breach, LawViolated),
            )

    def _explore_recoveries(self) -> None:
        """Crash the recoveries, depth by depth, as far as the limits allow."""
        for depth in range(1, self._limits.depth):
            queue = [state for state in self._queue if state.depth == depth]
            chosen = self._chosen(queue, depth)
            self.counts.open_recoveries += len(queue) - len(chosen)
            self._begin_depth()
            for number, state in enumerate(chosen):
                if self._stops() or self._is_enough():
                    self.counts.open_recoveries += len(chosen) - number
                    break
                for crash_point in self._recoveries.crash_points(
                    state.crash_point, state.judged, state.crash()
                ):
                    self._explore(crash_point, depth + 1)

    def _chosen(self, queue: list[_Nested], depth: int) -> list[_Nested]:
        limits = self._limits
        most = limits.nested_max if depth == 1 else limits.nested_draws
        if len(queue) <= most or (depth == 1 and not most):
            return queue
        if depth > 1:
            picks = [mixed(self._seed + n) % len(queue) for n in range(most)]
            return [queue[pick] for pick in sorted(set(picks))]
        seen: set[str] = set()
        firsts: list[_Nested] = []
        others: list[_Nested] = []
        for state in queue:
            (others if state.name in seen else firsts).append(state)
            seen.add(state.name)
        step = max(1, len(others) // max(1, most - len(firsts)))
        return [*firsts, *others[::step]][:most]


def _lost_power(crash_states: CrashStates, state: State, cut: int) -> _Left:
    return _Left(
        partial(_power_loss, crash_states, state.vector, cut),
        Remnant(
            state.state_key,
            partial(crash_states.files, state.vector),
            partial(crash_states.disk, state.vector),
        ),
    )


def _power_loss(crash_states: CrashStates, vector: Vector, cut: int) -> Crash:
    return Crash("power_loss", crash_states.survivors(vector), cut)


def _class_of(crash_point: CrashPoint, kind: CrashKind, outcome: Outcome) -> str:
    """The class of a state: kind of op, kind of action, and what followed."""
    verb, path = crash_point.disk.last
    place = (
        "between ops" if crash_point.is_between else f"{verb} {path.partition('/')[0]}"
    )
    name = type(innermost(crash_point.op)).__name__
    return f"{name}, {place}, {kind}, {outcome.path}"
