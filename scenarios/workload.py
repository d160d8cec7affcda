"""Workload: a scenario and two integers as a program, a few microseconds an op.

Every episode weighs the kinds of op anew (swarm testing), so that some never pull,
some hardly run a service, some do little else than crash. Ops that belong together
come as a phrase, as a crash and the restart that recovers from it.
"""

from __future__ import annotations

from collections.abc import Callable

from models.ops import (
    AdvanceClock,
    DeleteTopic,
    DiskFault,
    During,
    LookMessage,
    Op,
    Restart,
    RunService,
    ServiceName,
    Shutdown,
    Together,
)
from models.program import Program, Setup
from scenarios.ageing import AGED_FLUSHES, AgeingWriter
from scenarios.catalogue import Scenario
from scenarios.chance import draws
from scenarios.overlapping import THOROUGH_MS
from scenarios.space import (
    FLUSHED_BY,
    WISHES,
    WRITTEN_BY,
    InterruptedKind,
    Kind,
    Space,
    fault_of,
    schedule_of,
)
from scenarios.spaces import AFTER

SWARM_WEIGHTS = (0, 1, 1, 2, 2, 6)  # of a kind in one episode; 0 drops it
MEETINGS: tuple[tuple[ServiceName, ServiceName | None], ...] = (
    ("flush_consume_queue", "reput"),
    ("flush_commit_log", None),
    ("checkpoint", "flush_consume_queue"),
    ("flush_index", "reput"),
    ("checkpoint", "flush_commit_log"),
)
"""Who makes durable, and who writes meanwhile; None: a put."""

FLUSHES: tuple[ServiceName, ...] = (
    "flush_commit_log",
    "flush_commit_log",
    "flush_consume_queue",
    "checkpoint",
)
FILLED_BY = 12  # messages with keys, of an index file
TICKS_MS = (500, 1000, 1500, 200, 1900)  # between two turns of one service


def program_for(scenario: Scenario, run: int, episode: int) -> Program:
    """The program of one episode of a run.

    Args:
        scenario: what is asked.
        run: the run's seed, >= 0.
        episode: the number of the episode in its run, >= 0.

    Returns:
        A program that is a function of the three arguments alone.
    """
    draw = draws(run, episode).__next__
    space, setup = scenario.drawn(draw)
    shortest, longest = scenario.length
    length = shortest + draw() % (longest - shortest + 1)
    writer = _Writer(space, setup, draw)
    return Program(setup, writer.write(length))


def phrase_for(space: Space, setup: Setup, kind: Kind, run: int) -> tuple[Op, ...]:
    """One phrase by itself, as such programs have it."""
    writer = _Writer(space, setup, draws(run, 0).__next__)
    writer.phrases()[kind]()
    return tuple(writer.ops)


def swarm_kinds(space: Space, draw: Callable[[], int]) -> tuple[Kind, ...]:
    """The kinds of one episode, each as often as its weight and the swarm's say."""
    weights: dict[Kind, int] = {}
    for kind in dict.fromkeys(space.kinds):
        weight = SWARM_WEIGHTS[draw() % len(SWARM_WEIGHTS)]
        weights[kind] = max(1, weight) if kind in space.kept else weight
    return tuple(kind for kind in space.kinds for _ in range(weights[kind]))


class _Writer(AgeingWriter):
    """Writes one program, phrase by phrase."""

    def write(self, length: int) -> tuple[Op, ...]:
        """A program of ``length`` ops, cut where a phrase leaves it."""
        phrases = self.phrases()
        steps = [phrases[kind] for kind in swarm_kinds(self.space, self.draw)]
        while len(self.ops) < length:
            steps[self.draw() % len(steps)]()
        return tuple(self.ops[:length])

    def phrases(self) -> dict[Kind, Callable[[], None]]:
        """What writes a phrase of each kind."""
        return {
            "put": lambda: self.ops.append(self._put()),
            "burst": self._burst,
            "batch": lambda: self.ops.append(self._batch()),
            "pull": self._pull,
            "look": self._look,
            "search": self._search,
            "query": lambda: self.ops.append(self._query()),
            "service": lambda: self.ops.append(self._service()),
            "clock": self._clock,
            "restart": self._restart,
            "crash": self._crash,
            "fault": self._fault,
            "interleave": self._interleave,
            "together": self._together,
            "contend": self._contend,
            "overlap": lambda: self.ops.extend(self._overlap()),
            "damage": self._damage,
            "expire": self._expire,
            "fill": self._fill_after_all,
            "delete": self._delete,
        }

    def _burst(self) -> None:
        sizes = self.space.burst_sizes
        size = sizes[self.draw() % len(sizes)]
        if self.draw() & 1:
            self.ops.extend([self._put() for _ in range(size)])
        else:
            self.ops.extend([self._put(size)] * size)
        if self.draw() & 3 == 0:
            self.ops.append(self._put_at_the_end())

    def _pull(self) -> None:
        self._perhaps_serve()
        self.ops.append(self._pulled())

    def _look(self) -> None:
        self.ops.append(LookMessage(self.space.look_offsets.choose(self.draw())))

    def _search(self) -> None:
        self._perhaps_serve()
        self.ops.append(self._searched())

    def _perhaps_serve(self) -> None:
        served = self.space.served_first
        if served[self.draw() % len(served)]:
            self.ops.append(RunService("reput"))

    def _clock(self) -> None:
        if self.draw() & 3 == 0:
            self._tick()
            return
        waiting = AdvanceClock(self.space.clock_steps_ms.choose(self.draw()))
        paced = self.space.paced
        if len(paced) == 1 or not paced[self.draw() % len(paced)]:
            self.ops.append(waiting)
            return
        before = [self._put(), self._round(), self._round()]
        after = [self._put(), self._round(), self._round(), self._round()]
        self.ops += [*before, waiting, *after]

    def _tick(self) -> None:
        """Time passes as it does for a service that is turned often."""
        turn, ticks = self._round(), TICKS_MS[self.draw() % len(TICKS_MS)]
        self.ops.append(self._put())
        for _ in range(2 + self.draw() % 4):
            self.ops += (AdvanceClock(ticks), turn)

    def _restart(self) -> None:
        stops = self.space.orderly_stops
        if stops[self.draw() % len(stops)]:
            self.ops.append(Shutdown())
        self.ops.append(Restart())

    def _crash(self) -> None:
        self._crash_during(*self._crowded(*self._interrupted()))
        crashes = self.space.recovery_crashes
        for _ in range(crashes[self.draw() % len(crashes)]):
            at_action = self.space.at_actions.restart.choose(self.draw())
            self._crash_during(Restart(), at_action)
        self.ops.append(Restart())
        if self.draw() & 3 == 0:
            self._tell("flush_consume_queue")  # what that start has taken for durable

    def _crash_during(self, op: Op, at_action: int) -> None:
        self.ops.append(During(op, at_action, self._crash_event()))

    def _interrupted(self) -> tuple[Op, int]:
        """An op, and the disk action of it at which something is to step in."""
        space = self.space
        kind = space.interrupted[self.draw() % len(space.interrupted)]
        if kind == "restart" and self.draw() & 1:
            self.ops.append(Shutdown())  # else most of its actions are of a stop
        return self._op_of(kind), space.at_actions.of(kind).choose(self.draw())

    def _op_of(self, kind: InterruptedKind) -> Op:
        match kind:
            case "put":
                is_batch = self.space.batch_counts and self.draw() & 1
                return self._batch() if is_batch else self._put()
            case "service":
                return self._service()
            case "shutdown":
                return Shutdown()
            case "restart":
                return Restart()

    def _fault(self) -> None:
        faults = self.space.faults
        fault = fault_of(faults, self.draw())
        if fault.call in ("lose", "misdirect"):
            self._spoil(fault)
        else:
            self._fail(fault)
        if self.draw() & 1 and self.space.crash_kinds:
            self._crash()  # what it left behind shows after a crash
        elif fault.call == "sync" and fault.path and self.draw() & 1:
            self._settle(fault.path)

    def _fail(self, fault: DiskFault) -> None:
        """An op meets a fault that it is told of."""
        services = FLUSHED_BY if fault.call == "sync" else WRITTEN_BY
        is_read = fault.call == "read"  # mostly by a start
        if fault.call == "sync" and fault.path != "index" and self.draw() & 1:
            op, at_action = self._due_flush(fault.path), 1
        elif fault.path in services and not is_read and self.draw() & 1:
            puts = 1 + self.draw() % FILLED_BY if fault.path == "index" else 1
            self.ops += [self._put() for _ in range(puts)]
            self.ops.append(RunService("flush_commit_log", puts))
            if fault.call == "sync" and self.draw() & 1:
                self.ops.append(RunService("reput"))
            op, at_action = RunService(services[fault.path]), 1
        else:
            op, at_action = self._interrupted()
        self.ops.append(During(*self._crowded(op, at_action), fault))
        if fault.call == "sync" and self.draw() & 1:
            self.ops.append(self._put())  # to be refused, if it was the log's
        if self.draw() & 3 == 0 and not isinstance(op, Shutdown):
            self.ops.append(op)  # what failed is asked for again
        if fault.call == "sync" and self.draw() & 1:
            self.ops += (self._evicting(), RunService("reput"), self._pulled())

    def _due_flush(self, path: str) -> Op:
        """A round that syncs, below ``path`` if it says where, since all has waited."""
        service = FLUSHED_BY.get(path) or FLUSHES[self.draw() % len(FLUSHES)]
        self.ops += (self._put(), RunService("reput"))
        if service != "flush_commit_log" and self.draw() & 1:
            self.ops.append(RunService("flush_commit_log"))
        self.ops += (self._put(), AdvanceClock(THOROUGH_MS))
        return RunService(service)

    def _spoil(self, fault: DiskFault) -> None:
        """Lose or misdirect what some op syncs, or a service that has to do with it."""
        draw = self.draw
        if draw() % 4:
            service = FLUSHED_BY.get(fault.path, "flush_commit_log")
            if draw() & 1:
                self.ops.append(RunService("reput"))
            interrupted: tuple[Op, int] = (RunService(service, 1 + draw() % 9), 1)
        else:
            interrupted = self._crowded(*self._interrupted())
        self.ops.append(During(*interrupted, fault))
        if draw() & 1:
            self.ops += (self._evicting(), self._pulled(), self._pulled())

    def _evicting(self) -> Op:
        """Memory forgets: what is read from then on is what the medium has."""
        return During(self._service(), AFTER, DiskFault("evict", "EIO"))

    def _interleave(self) -> None:
        if self.draw() & 3 == 0:
            self._meet()
            return
        event = self._interleaved()
        if self.space.query_keys and self.draw() & 1:
            event = self._query()
        if self.draw() & 3 == 0:
            self._clock()  # or all that meets here has one time
        self.ops.append(During(*self._crowded(*self._interrupted()), event))
        if isinstance(event, Shutdown):
            self.ops.append(Restart())
        elif self.draw() & 1:
            self.ops.append(RunService("checkpoint"))  # it says what came of both

    def _meet(self) -> None:
        """What is being made durable grows, and the checkpoint tells what is."""
        service, writer = MEETINGS[self.draw() % len(MEETINGS)]
        self.ops += (self._put(), RunService("reput"), self._put())
        self.ops += (AdvanceClock(THOROUGH_MS), RunService("flush_commit_log"))
        event = RunService(writer) if writer else self._put_at_the_end()
        self.ops.append(During(RunService(service), 1 + self.draw() % 4, event))
        if service == "flush_commit_log":
            self.ops.append(RunService(service))
        self.ops.append(RunService("checkpoint"))

    def _interleaved(self) -> Op:
        space, draw = self.space, self.draw
        match space.interleaved[draw() % len(space.interleaved)]:
            case "service":
                return self._service()
            case "put":
                return self._put_at_the_end() if draw() & 1 else self._put()
            case "pull":
                return self._pulled()
            case "shutdown":
                return Shutdown()
            case "stall":
                return AdvanceClock(space.stalls_ms.choose(draw()))

    def _together(self) -> None:
        space, draw = self.space, self.draw
        count = space.together_counts[draw() % len(space.together_counts)]
        is_aged = "expire" in space.kinds and bool(draw() & 1)
        if is_aged:
            self._age()
        kinds = [space.together[draw() % len(space.together)] for _ in range(count)]
        parts = [self._part(kind) for kind in kinds]
        if draw() & 7 == 0:  # a put or round amid a stop, or behind it
            parts[:2] = (self._put() if draw() & 1 else self._round(), Shutdown())
        if is_aged:
            parts[draw() % count] = RunService("clean_commit_log")
            if draw() & 1:  # the queues' files go with the log's
                parts.append(RunService("clean_consume_queue"))
        template = space.schedules[draw() % len(space.schedules)]
        together = Together(tuple(parts), schedule_of(template, len(parts), draw()))
        event = draw() % 8
        if event == 0 and space.crash_kinds:
            at_action = space.at_actions.service.choose(draw())
            self._crash_during(together, at_action)
            self.ops.append(Restart())
        elif event == 1 and space.faults:
            fault = fault_of(space.faults, draw())
            at_action = space.at_actions.service.choose(draw())
            self.ops.append(During(together, at_action, fault))
        else:
            self.ops.append(together)
        if any(isinstance(part, Shutdown) for part in parts):
            self.ops.append(Restart())
        elif is_aged:
            # What others kept from going has to go now.
            self._clean_now()

    def _contend(self) -> None:
        """Every service is given something to do, and one of two is made to wait."""
        space, draw = self.space, self.draw
        self._age()
        one = self._part(space.together[draw() % len(space.together)])
        one = self._round() if draw() & 1 else one
        other = self._round() if draw() & 1 else RunService("clean_commit_log")
        parts = (one, other) if draw() & 1 else (other, one)
        template = space.schedules[draw() % len(space.schedules)]
        self.ops.append(Together(parts, schedule_of(template, 2, draw())))
        if isinstance(one, Shutdown):
            self.ops.append(Restart())
        elif draw() & 1:
            # What one kept the other from doing has to be done now.
            self._clean_now()

    def _crowded(self, op: Op, at_action: int) -> tuple[Op, int]:
        """The op, or the same with a put or service coming in at its first action."""
        crowded = self.space.crowded
        if len(crowded) > 1 and crowded[self.draw() % len(crowded)]:
            event = self._put() if self.draw() & 1 else self._service()
            return During(op, 1, event), at_action
        return op, at_action

    def _damage(self) -> None:
        self._perhaps_serve()
        counts = self.space.damages_a_stop
        damages = range(counts[self.draw() % len(counts)])
        changed = [self._damaged_file() for _ in damages]
        touched = any(getattr(damage, "kind", "") == "touch" for damage in changed)
        if touched:
            if self.draw() & 1:  # a file of old messages and of young ones
                grows_old = self.space.expiry_steps_ms.choose(self.draw())
                self.ops += (self._put(), AdvanceClock(grows_old))
            self._roll()  # or there is no file that may go
            self.ops.append(RunService("reput"))
        match self.draw() % 4 if self.space.crash_kinds else 0:
            case 2:
                self._crash_during(*self._interrupted())
            case 3:
                self._crash_during(self._put(), AFTER)  # nobody had said that it ends
            case _:
                self.ops.append(Shutdown())
        self.ops += (*changed, Restart())
        if touched and self.draw() & 1:
            # Nothing but the files' own word is old.
            self._clean_now()
        elif self.setup.cleans and self.draw() & 3:
            self._expire()  # what was damaged, too

    def _expire(self) -> None:
        """Messages grow old, and cleaners look whether they may go."""
        wish = WISHES[self.draw() % len(WISHES)]
        if self.draw() % 4:
            self._roll()  # or there is seldom a file that may go
        self.ops += wish.first
        self.ops.append(AdvanceClock(self.space.expiry_steps_ms.choose(self.draw())))
        served = self.space.served_first
        if served[self.draw() % len(served)]:
            flushes = AGED_FLUSHES[self.draw() % len(AGED_FLUSHES)]
            self._serve(flushes)
        self.ops += wish.then
        rounds = self.space.service_times
        times = rounds[self.draw() % len(rounds)]
        cleaning = RunService("clean_commit_log", times)
        if "fault" in self.space.kinds and self.draw() % 4 == 0:
            faults = self.space.faults
            if self.draw() & 1:  # of files that are to go
                faults = tuple(filter(_fails_removals, faults)) or faults
            fault = fault_of(faults, self.draw())
            at_action = self.space.at_actions.service.choose(self.draw())
            self.ops.append(During(cleaning, at_action, fault))
            if self.draw() & 1:
                # What the fault kept from going has to go now, and for good.
                self._clean_now()
            elif self.draw() & 1:
                self.ops += (Shutdown(), Restart())  # or with the end, if it is orderly
        elif self.space.together and self.draw() & 1:
            self._beside(cleaning)
            if self.draw() & 1:
                # What others kept from going has to go now.
                self._clean_now()
        else:
            self.ops.append(cleaning)
        if self.draw() & 1:
            self.ops.append(self._pulled())  # before the queues' cleaner has looked
        queues = RunService("clean_consume_queue")
        match self.draw() % 4:
            case 0:
                self.ops.append(queues)
            case 1 if self.space.together_counts:
                self._beside(queues)

    def _fill_after_all(self) -> None:
        """The disk fills, perhaps after a trouble that room does not make up for."""
        if self.draw() & 3 == 0:
            self._fault()
        self._fill()

    def _beside(self, op: Op) -> None:
        """The op, begun at the same time as another one."""
        space, draw = self.space, self.draw
        other = self._part(space.together[draw() % len(space.together)])
        template = space.schedules[draw() % len(space.schedules)]
        self.ops.append(Together((other, op), schedule_of(template, 2, draw())))
        if isinstance(other, Shutdown):
            self.ops.append(Restart())

    def _delete(self) -> None:
        """A topic goes: alone, cut short, with others about, or amid a dispatch."""
        space, draw = self.space, self.draw
        op = DeleteTopic(*space.deletions[draw() % len(space.deletions)])
        match draw() % 4:
            case 0:
                self._tell("flush_consume_queue")  # of what is about to go
            case 1 if self.setup.cleans:
                self._expire()
        at_action = space.at_actions.service.choose(draw())
        match draw() % 6:
            case 2:
                self._crash_during(op, at_action)
                self.ops.append(Restart())
            case 3:
                self.ops.append(During(RunService("reput"), at_action, op))
            case 4:
                event = self._put() if draw() & 1 else self._service()
                self.ops.append(During(op, at_action, event))
            case 5:
                fault = fault_of(space.faults, draw())
                self.ops.append(During(op, at_action, fault))
                self.ops += (self._put(), Restart()) if draw() & 1 else (Restart(),)
            case _:
                self.ops.append(op)


def _fails_removals(fault: DiskFault) -> bool:
    """Whether the log's files may stay, or come back, by a fault."""
    is_met = fault.path in ("", "commitlog")
    return is_met and fault.call in ("sync", "remove")
