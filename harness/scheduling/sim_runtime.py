"""SimRuntime: activities that take turns on one thread, in simulated time.

An *activity* is a body of blocking code in a greenlet of its own. Exactly one runs, and
it runs until it ends or waits; fixed rules decide which one is next. The first activity
is the caller of ``run`` and needs no greenlet, so a body that never waits costs next to
nothing. While it waits, its frame runs this loop:

1. the longest runnable activity runs; 2. with none, a wait whose time is over ends; 3.
with none, the services that answer waits run one round each, in order; 4. when a whole
sweep of them did nothing, the clock jumps to the nearest time-out; 5. without a
time-out: ``Deadlock``, naming each activity.

A lock goes to the activity that has waited longest, at the moment of its release. A
crash of the store (any ``BaseException`` that is no ``Exception``) in one activity is
thrown into all, so that each unwinds, and ``run`` raises it. Control moves at one
place, ``SimRuntime._switch_to``.

Activities that begin ``together`` also stop halfway: at each call of their host
``pause`` asks ``Turns`` which one runs next, and so does rule 1. They have numbers, and
so has a round that runs for them; activities without a number, such as the main one, go
first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from crashmq.engine.host.service import Service
from crashmq.harness.disk.crash import Hang
from crashmq.harness.scheduling.activity import Activity
from crashmq.harness.scheduling.line_switches import at_each_line
from crashmq.harness.scheduling.sim_locks import SimEvent, SimLock
from crashmq.harness.scheduling.turns import Turns

T = TypeVar("T")
SWEEPS_MAX = 1000
TURNS_MAX = 100_000


class Deadlock(Exception):
    """Every activity waits for another one, and there is no time-out."""


class SimRuntime:
    """The host of one simulated store: its clock, locks and activities.

    Time-outs run on a clock of their own, which only goes forward; ``now_ms`` is the
    wall clock, which may be set back.
    """

    def __init__(self, now_ms: int, elapsed_ms: int = 0) -> None:
        self._elapsed_ms = elapsed_ms
        self._wall_at_zero_ms = now_ms - elapsed_ms
        self._main: Activity[Any] = Activity(None, "the main activity")
        self.current: Activity[Any] = self._main
        self._runnable: deque[Activity[Any]] = deque()
        self._waiting: list[Activity[Any]] = []
        self._spawned: list[Activity[Any]] = []
        self._services: tuple[Service, ...] = ()
        self._rounds: dict[str, Activity[int]] = {}
        self._crash: BaseException | None = None
        self._idle: list[greenlet] = []
        self._sweeps = 0
        self._turns = 0
        self._running = False
        self._turned = False
        self.turns_taken: Turns | None = None
        self._next: Activity[Any] | None = None
        self._newest = -1
        self._numbered = 0
        self._wheel: greenlet | None = None

    def now_ms(self) -> int:
        """The wall clock, in milliseconds since the Unix epoch."""
        return self._wall_at_zero_ms + self._elapsed_ms

    @property
    def elapsed_ms(self) -> int:
        """The clock of the time-outs."""
        return self._elapsed_ms

    def advance(self, ms: int) -> None:
        """Let ``ms`` milliseconds pass; negative: set the wall clock back."""
        if ms >= 0:
            self._elapsed_ms += ms
        else:
            self._wall_at_zero_ms += ms

    def sleep_ms(self, ms: int) -> None:
        """Wait until ``ms`` milliseconds have passed; others run meanwhile."""
        self.wait_in(deque(), f"{ms} ms to pass", max(0, ms))

    def lock(self) -> SimLock:
        """A new lock, free."""
        return SimLock(self)

    def event(self) -> SimEvent:
        """A new event, not yet set."""
        return SimEvent(self)

    def serve(self, services: Sequence[Service]) -> None:
        """Set the services to run, in this order, when every activity waits."""
        self._services = tuple(services)

    def run(self, body: Callable[[], T]) -> T:
        """Run ``body`` as the main activity, then the others, to their ends.

        Returns:
            What ``body`` returned.

        Raises:
            Deadlock: every activity waits for another one.
            Exception: what ``body`` raised, else the first error of an activity whose
                result was not asked for.
            BaseException: what crashed the store, when every activity has unwound.
        """
        assert not self._running, "run() inside run(); spawn an activity instead"
        self._running = True
        self._wheel = getcurrent()
        try:
            try:
                result = body()
            except Exception:
                self._turn_until_all_ended()
                raise
            if self._spawned:
                self._turn_until_all_ended()
                self._raise_unasked()
            return result
        except BaseException as error:
            # Whatever it is, no activity may be left with nobody to turn it.
            self._unwind(error)
            raise
        finally:
            self._running = False
            if self._turned:
                self._forget_activities()

    def end_by(self, crash: BaseException) -> None:
        """Let every activity unwind: the running one is about to raise ``crash``.

        What they do while unwinding happens in a dead process.
        """
        if self._running:
            self._crash, self._turned = crash, True

    def spawn(self, body: Callable[[], T], name: str = "") -> Activity[T]:
        """Start an activity; it runs now, until it ends or waits."""
        self._turned = True
        number = len(self._spawned) + 1
        activity: Activity[T] = Activity(self, name or f"activity {number}")
        self._spawned.append(activity)
        self._start(activity, body)
        return activity

    def together(
        self, bodies: Sequence[tuple[str, Callable[[], T]]], turns: Turns
    ) -> list[T]:
        """Run named bodies at the same time, to their ends, by ``turns``.

        Raises:
            Deadlock: every activity waits for another one.
            Exception: the first error of a body, in their order.
        """
        assert self.turns_taken is None, "together() inside together()"
        self._turned = True
        activities: list[Activity[T]] = []
        for number, (name, body) in enumerate(bodies):
            activity: Activity[T] = Activity(self, name)
            activity.body, activity.number = body, number
            activities.append(activity)
        self._spawned += activities
        self._runnable += activities
        self.turns_taken, self._newest = turns, -1
        self._numbered = len(activities)
        try:
            with at_each_line(self.pause, enabled=turns.grain == "lines"):
                return [activity.result() for activity in activities]
        finally:
            self.turns_taken = None

    def pause(self) -> None:
        """A switch point: a schedule may let another activity run here."""
        turns, activity = self.turns_taken, self.current
        if turns is None or activity.number < 0 or not self._runnable:
            return
        if self._crash is not None:
            return  # it unwinds, and nobody runs on beside it
        fiber = activity.fiber
        assert fiber is not None
        if fiber.parent is not self._wheel:
            return  # it began inside another activity, which has to go on first
        others = sorted([a.number for a in self._runnable if a.number >= 0])
        if not others:
            return
        chosen = turns.next(activity.number, others, goes_on=True)
        if chosen == activity.number:
            return
        self._next = next(a for a in self._runnable if a.number == chosen)
        self._runnable.append(activity)
        assert fiber.parent is not None
        fiber.parent.switch()
        if self._crash is not None:
            raise self._crash

    def wake(self, activity: Activity[Any]) -> Activity[Any]:
        """Make a waiting activity runnable; it runs when its turn comes."""
        assert activity.queue is not None, activity.name
        activity.queue.remove(activity)
        activity.queue = None
        activity.deadline = None
        self._waiting.remove(activity)
        self._runnable.append(activity)
        return activity

    def wait_in(
        self, queue: deque[Activity[Any]], what: str, timeout_ms: int | None
    ) -> None:
        """Let the current activity wait in ``queue`` until woken or timed out."""
        if self._crash is not None:
            raise self._crash
        self._turned = True
        activity = self.current
        activity.waits_for = what
        activity.queue = queue
        activity.deadline = (
            None if timeout_ms is None else self._elapsed_ms + timeout_ms
        )
        queue.append(activity)
        self._waiting.append(activity)
        try:
            if activity is self._main:
                while not self._turn():
                    pass
            else:
                assert activity.fiber is not None
                assert activity.fiber.parent is not None
                activity.fiber.parent.switch()
                if self._crash is not None:
                    raise self._crash
        finally:
            self._stop_waiting(activity)

    def _stop_waiting(self, activity: Activity[Any]) -> None:
        """Take an activity out of its queue, if an error ended its wait there."""
        if activity.queue is not None:
            activity.queue.remove(activity)
            activity.queue = None
            self._waiting.remove(activity)

    def _turn_until_all_ended(self) -> None:
        while self._runnable or self._waiting:
            self._turn()

    def _turn(self) -> bool:
        """One pass of the loop; return whether the main activity is next."""
        self._turns += 1
        if self._turns > TURNS_MAX:
            waits = "; ".join(f"{a.name} for {a.waits_for}" for a in self._waiting)
            raise Hang(f"{TURNS_MAX} turns and no end; still waiting: {waits}.")
        if self._runnable:
            self._sweeps = 0
            activity = self._take_runnable()
            if activity is self._main:
                return True
            body, activity.body = activity.body, None
            if body is not None:
                self._start(activity, body)
            else:
                self._switch_to(activity)
            if self._crash is not None:
                raise self._crash
        elif not self._wake_first(by_ms=self._elapsed_ms):
            if self._sweeps < SWEEPS_MAX and self._sweep():
                self._sweeps += 1
            else:
                self._sweeps = 0
                self._jump()
        return False

    def _take_runnable(self) -> Activity[Any]:
        turns = self.turns_taken
        if turns is None:
            return self._runnable.popleft()
        chosen, self._next = self._next, None
        if chosen is None:
            chosen = next((a for a in self._runnable if a.number < 0), None)
        if chosen is None:
            by_number = {a.number: a for a in self._runnable}
            numbers = sorted(by_number)
            number = numbers[0]
            if len(numbers) > 1:
                number = turns.next(self._newest, numbers, goes_on=False)
            chosen = by_number[number]
        self._runnable.remove(chosen)
        self._newest = max(chosen.number, -1)
        return chosen

    def _wake_first(self, by_ms: int | None) -> bool:
        """Wake the activity that times out first, until ``by_ms`` if given."""
        timed = [a for a in self._waiting if a.deadline is not None]
        first = min(timed, key=lambda a: a.deadline or 0, default=None)
        if first is None or first.deadline is None:
            return False
        if by_ms is not None and first.deadline > by_ms:
            return False
        self._elapsed_ms = max(self._elapsed_ms, first.deadline)
        self.wake(first)
        return True

    def _jump(self) -> None:
        if self._wake_first(by_ms=None):
            return
        waits = "; ".join(f"{a.name} waits for {a.waits_for}" for a in self._waiting)
        raise Deadlock(
            f"no activity can run and no time-out will come: {waits}. One "
            "of them must release what it holds before it waits."
        )

    def _sweep(self) -> bool:
        """Run each service for a round; False if none did work or woke an activity."""
        worked = False
        for service in self._services:
            before = self._rounds.get(service.name)
            if before is not None and not before.done:
                continue
            turn: Activity[int] = Activity(self, f"a round of {service.name}")
            if self.turns_taken is not None:
                turn.number = self._numbered
                self._numbered += 1
            self._start(turn, service.run_once)
            self._rounds[service.name] = turn
            if not turn.done or turn.error is not None:
                self._spawned.append(turn)
            elif turn.result() > 0:
                worked = True
            if self._runnable:
                return True
        return worked

    def _start(self, activity: Activity[T], body: Callable[[], T]) -> None:
        activity.fiber = self._idle.pop() if self._idle else _new_fiber()
        self._switch_to(activity, activity, body)
        if self._crash is not None:
            raise self._crash

    def _switch_to(self, activity: Activity[Any], *start: object) -> None:
        """Run an activity, from its start or its wait, until it waits.

        The one place where control moves. If the store has crashed meanwhile, the
        returning activity raises that from its wait.
        """
        fiber = activity.fiber
        assert fiber is not None
        fiber.parent = getcurrent()
        before = self.current
        self.current = activity
        fiber.switch(*start)
        self.current = before
        if activity.done:
            activity.fiber = None
            self._idle.append(fiber)
        if activity.crash is not None and self._crash is None:
            self._crash = activity.crash

    def close(self) -> None:
        """End the fibers that wait for a body. Idempotent.

        Else a collection of garbage would have to end them, amid whatever runs then.
        """
        idle, self._idle = self._idle, []
        for fiber in idle:
            fiber.parent = getcurrent()
            fiber.throw()

    def _raise_unasked(self) -> None:
        for activity in self._spawned:
            if activity.error is not None and not activity.asked:
                raise activity.error

    def _unwind(self, error: BaseException) -> None:
        """Let every activity that is left end by ``error``."""
        self._turned = True
        self._crash = error
        for activity in self._spawned:
            if activity.body is not None:
                activity.body, activity.done = None, True  # it never began
            elif not activity.done:
                self._switch_to(activity)
        assert all(activity.done for activity in self._spawned)

    def _forget_activities(self) -> None:
        self._runnable.clear()
        self._waiting.clear()
        self._spawned.clear()
        self._rounds.clear()
        self._crash = None
        self._sweeps = 0
        self._turns = 0
        self._turned = False
        self._next = None


def _new_fiber() -> greenlet:
    fiber = greenlet(_live)
    fiber.switch()
    return fiber


def _live() -> None:
    """The loop of a fiber: one body after another, since a new fiber costs more.

    Between two bodies it refers to nothing, so that fibers end with their runtime. It
    gets no start arguments, which would live as long as the fiber.
    """
    while True:
        caller = getcurrent().parent
        assert caller is not None
        activity, body = caller.switch()
        try:
            activity.run(body)
        except BaseException as error:
            # It has to reach every activity, not only whoever switched here.
            activity.crash = error
        del activity, body, caller
