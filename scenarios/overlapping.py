"""Overlaps: one activity is stopped once amid its work for another, then both are told.

Everything is given something to do first, and time passes between any two messages; so
whatever an activity reads in front of its sync differs from what is there behind it.
Afterwards the store is asked for what it holds durable by then: a sync of all, a
checkpoint, an orderly end, or a power loss right away.
"""

from __future__ import annotations

from collections.abc import Callable

from models.ops import (
    AdvanceClock,
    Crash,
    DeleteManually,
    DeleteTopic,
    During,
    Op,
    Restart,
    RunService,
    Schedule,
    ServiceName,
    Shutdown,
    Survivors,
    Together,
)
from models.program import Setup
from scenarios.drawn_ops import OpDrawer
from scenarios.space import Numbers, Size, fault_of, put_message
from scenarios.spaces import AFTER

THOROUGH_MS = 61_000  # after so long every service does all there is to do
STEPS_MS = (1, 7, 300)  # between two messages
OTHERS_MAX = 4
FAILING = 8  # of so many overlaps one meets a fault, at one of so many disk actions
POINTS = Numbers(tuple(range(1, 9)), 40, 1)
"""The switch point at which the first activity is stopped: most syncs are early."""

_POWER_LOSS = Crash("power_loss", Survivors("none"))


def makers_of(setup: Setup) -> tuple[ServiceName, ...]:
    """The services by which something comes to be that is not durable yet."""
    names: list[ServiceName] = ["reput", "reput"]
    if setup.preallocate:
        names += ("allocate", "allocate")
    if setup.transient_store_pool:
        names.append("commit")
    return tuple(names)


def keepers_of(setup: Setup) -> tuple[ServiceName, ...]:
    """The services that make durable, tell of it, or remove by it."""
    names: list[ServiceName] = [
        "flush_commit_log",
        "flush_consume_queue",
        "checkpoint",
    ]
    if setup.has_index:
        names.append("flush_index")
    if setup.cleans:
        names += ("clean_commit_log", "clean_consume_queue")
    return tuple(names)


class OverlapDrawer(OpDrawer):
    """Draws overlaps of two activities, with what comes before and after."""

    def _overlap(self) -> list[Op]:
        """One overlap, from what there is to do to what is said of it."""
        before = self._work_for_all()
        stopped = self._keeper() if self.draw() % 3 else self._maker()
        if isinstance(stopped, Shutdown) and self.draw() & 1:
            before += self._serving()
        others = self._others()
        ends = any(isinstance(op, Shutdown) for op in (stopped, *others))
        told = [Restart()] if ends else self._telling()
        return [*before, self._stopped_once((stopped, *others)), *told]

    def _others(self) -> list[Op]:
        """One to four activities; or a stop, mostly of a store that has served all.

        Such a stop waits for nobody, so that it ends while the first one stands still.
        """
        match self.draw() % 8:
            case 0 | 1:
                return [*self._serving(), Shutdown()]
            case 2:
                return [Shutdown()]
        count = 1 + self.draw() % OTHERS_MAX
        kinds = (self._maker, self._maker, self._keeper)
        return [kinds[self.draw() % len(kinds)]() for _ in range(count)]

    def _work_for_all(self) -> list[Op]:
        """Messages that are flushed, dispatched, or only put, each of a later time."""
        draw, ops = self.draw, list[Op]()
        if self.setup.cleans and draw() % 3:
            ops += self._grown_old()
        elif draw() & 1:
            ops += [self._half_a_file()] * 3  # so that the log has rolled
        for _ in range(1 + draw() % 2):
            ops += (self._put(), AdvanceClock(STEPS_MS[draw() % len(STEPS_MS)]))
        if draw() & 1:
            ops.append(self._all_of("flush_commit_log"))
        if draw() % 4:
            ops.append(self._all_of("reput"))
        if draw() % 4:
            ops.append(self._put())
        ops.append(AdvanceClock(THOROUGH_MS if draw() % 4 else STEPS_MS[0]))
        return ops

    def _grown_old(self) -> list[Op]:
        """Files that may go, of the log or, where that has gone, of the queues."""
        waiting = AdvanceClock(self.space.expiry_steps_ms.choose(self.draw()))
        ops = [*[self._half_a_file()] * 5, *self._serving(), waiting, DeleteManually()]
        if self.draw() & 1:
            ops.append(self._all_of("clean_commit_log"))
        return ops

    def _half_a_file(self) -> Op:
        address, label = self.space.addresses[0], self.space.labels[0]
        return put_message(self.log_file_size, address, Size(parts=2), label)

    def _serving(self) -> list[Op]:
        return [self._all_of("flush_commit_log"), self._all_of("reput")]

    def _all_of(self, service: ServiceName) -> Op:
        return RunService(service, 9)

    def _maker(self) -> Op:
        """A caller or a service that makes something; what is deleted is, as well."""
        services = makers_of(self.setup)
        callers: tuple[Callable[[], Op], ...] = (
            *(self._put, self._put, self._put, self._put_at_the_end),
            *(self._put_at_the_end, self._deletion, self._deletion),
            *(self._made_by(service) for service in services),
        )
        return callers[self.draw() % len(callers)]()

    def _made_by(self, service: ServiceName) -> Callable[[], Op]:
        return lambda: RunService(service)

    def _keeper(self) -> Op:
        services = keepers_of(self.setup)
        which = self.draw() % (len(services) + 1)
        return Shutdown() if which == len(services) else RunService(services[which])

    def _deletion(self) -> Op:
        deletions = self.space.deletions
        return DeleteTopic(*deletions[self.draw() % len(deletions)])

    def _stopped_once(self, ops: tuple[Op, ...]) -> Op:
        """The first one is stopped; the others run to their ends, in their order.

        A deletion of topics meets no fault here: what it leaves half done the next
        start decides, and the store goes on.
        """
        draw = self.draw
        schedule = Schedule(preemptions=((POINTS.choose(draw()), 1),))
        together = Together(ops, schedule)
        is_alone = isinstance(ops[1], Shutdown)  # then the stop itself may fail
        deletes = any(isinstance(op, DeleteTopic) for op in ops)
        if deletes or draw() % (FAILING // 2 if is_alone else FAILING):
            return together
        fault = fault_of(self.space.faults, draw())
        return During(together, 1 + draw() % FAILING, fault)

    def _telling(self) -> list[Op]:
        """Something that says what is durable now, or shows what is not."""
        draw = self.draw
        thorough = (RunService("flush_consume_queue"), RunService("checkpoint"))
        ops: list[Op] = [RunService("checkpoint")]
        ops += (self._all_of("flush_commit_log"), AdvanceClock(THOROUGH_MS), *thorough)
        match draw() % 4:
            case 0 | 1:
                ops += (Shutdown(), Restart())
            case 2:
                ops.append(During(RunService("checkpoint"), AFTER, _POWER_LOSS))
                ops.append(Restart())
            case _:
                ops += (RunService("reput"), self._pulled())
        return ops
