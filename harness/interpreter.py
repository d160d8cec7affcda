"""The one ``match`` from op to subject call to observation.

It gives each put its message, lets the world step in at a disk action, and notes every
put and pull with its answer, for the judge. What the engine raises is an observation;
a crash of the store ends the op, and is one too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

from harness.disk.crash import Hang, StoreCrashed
from harness.scheduling.turns import Turns
from harness.subjects.subject import Subject
from models.describe import describe
from models.image.places import is_of_a_store
from models.messages import PROP_CRC_SIZE, MessageToPut, batch_for, message_for
from models.observations import (
    Armed,
    ClockMoved,
    Crashed,
    Damaged,
    EndAwaited,
    Failed,
    Interleaved,
    Interrupted,
    Looked,
    Observation,
    Planted,
    Pulled,
    Put,
    Queried,
    Ran,
    Searched,
    Skipped,
    Started,
    Stopped,
    World,
)
from models.ops import (
    CAN_BE_TOGETHER,
    NESTING_MAX,
    SILENT,
    AdvanceClock,
    Capability,
    Crash,
    Damage,
    DeleteManually,
    DeleteTopic,
    DiskFault,
    During,
    Event,
    FillDisk,
    LookMessage,
    Op,
    PlantFile,
    PullMessage,
    PutBatch,
    PutMessage,
    QueryMessage,
    Restart,
    RunService,
    SearchOffset,
    Shutdown,
    Together,
    needs,
    nesting,
)
from models.plain_state import fork_of_fields

_NO_WORLD = World()


@dataclass(slots=True)
class Report:
    """What one op did to the subject, beside what was seen of it as a whole.

    Attributes:
        observation: what was seen of the op itself.
        puts: each message with its answer; None if the store crashed first.
        spans: of each of those, when it began and when it was answered, in beats that
            count what began and what was answered.
        batches: the messages of each batch that was answered, with its answer.
        spoilt: what the medium does not hold as it was told to, though no call failed.
        unreadable: what nobody could read of the files that each start found.
        is_unreadable: whether some of them still cannot be read after the op.
        reads_failed: whether reads were made to fail.
        found: the files as each start found them.
        starts: what came of each start, ``Failed`` if it did not end.
        puts_before_start: how many of ``puts`` began before the newest start ended.
        stops_before_start: the same of ``stops``, and so on.
        deletions: each deletion of a topic with what came of it; None if it failed,
            or the store crashed first.
        started_end: where the log ended then.
        crash: the event that ended the store's life, if one did.
        disk_actions: how many the op did, and what happened during it.
        interrupted: whether anything else happened while the op ran.
        together: whether that was ops which began at the same time.
        turns: what their schedule did to them, as preemptions.
        world: clock and disk after the op; before it, while it goes on.
        first_mtime_ms: how old the log's first file says it is, where that matters.
        is_stopping: whether the store began to stop, come to an end or not.
        stalled_ms: how long activities stood still at their disk actions.
        left_by_start: what a start that did not succeed held in the end.
        stop_took_ms: how long the newest stop took, by the wall clock.
        late_actions: of the disk, when a stop had let go of the directory.
        longest_wait_ms: the same of a put that was answered without its sync.
    """

    observation: Observation
    puts: list[tuple[MessageToPut, Put | None]] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    batches: list[tuple[tuple[MessageToPut, ...], Put]] = field(default_factory=list)
    pulls: list[tuple[PullMessage, Pulled]] = field(default_factory=list)
    looks: list[tuple[LookMessage, Looked]] = field(default_factory=list)
    searches: list[tuple[SearchOffset, Searched]] = field(default_factory=list)
    queries: list[tuple[QueryMessage, Queried]] = field(default_factory=list)
    failures: list[Failed] = field(default_factory=list)
    stops: list[Stopped] = field(default_factory=list)
    ends_awaited: list[EndAwaited] = field(default_factory=list)
    starts: list[Observation] = field(default_factory=list)
    puts_before_start: int = 0
    stops_before_start: int = 0
    deletions: list[tuple[DeleteTopic, Observation | None]] = field(
        default_factory=list
    )
    deletions_before_start: int = 0
    started_end: int = -1
    found: list[Mapping[str, bytes]] = field(default_factory=list)
    damages: list[Damaged] = field(default_factory=list)
    planted: list[Planted] = field(default_factory=list)
    spoilt: list[Damaged] = field(default_factory=list)
    unreadable: list[tuple[Damaged, ...]] = field(default_factory=list)
    is_unreadable: bool = False
    reads_failed: bool = False
    crash: Crash | None = None
    disk_actions: int = 0
    fault_armed: bool = False
    interrupted: bool = False
    together: bool = False
    turns: list[tuple[int, int]] = field(default_factory=list)
    is_stopping: bool = False
    world: World = _NO_WORLD
    first_mtime_ms: int = 0
    stalled_ms: int = 0
    left_by_start: tuple[str, ...] = ()
    stop_took_ms: int = 0
    late_actions: int = 0
    longest_wait_ms: int = 0

    def fork(self) -> Report:
        """What was done so far, while the op goes on."""
        return fork_of_fields(self)


NEVER = 1 << 62
_NOTHING_YET = Skipped("nothing was run yet")
_NO_REPORT = Report(_NOTHING_YET)  # of no op, so nobody adds to it
_CAPABILITIES = frozenset(Capability)
_UNENDED = Failed("start", "it did not come to an end")


class Interpreter:
    """Runs ops on one subject, one after the other."""

    def __init__(
        self, subject: Subject, life: int = 0, *, prop_crc: bool = False
    ) -> None:
        self._subject = subject
        self._extra_size = PROP_CRC_SIZE if prop_crc else 0
        self._prepared_offset = 0
        self._lacks = _CAPABILITIES - subject.capabilities
        self._life = life
        self._step = 0
        self._beats = 0
        self._report = _NO_REPORT

    @property
    def life(self) -> int:
        """How often the store was started."""
        return self._life

    @property
    def report(self) -> Report:
        """Of the op in progress, what it did so far; of the newest one, all."""
        return self._report

    def run(self, op: Op, step: int) -> Report:
        """Run one op to its end, or to the store's.

        Args:
            op: what to do.
            step: its number, from which its messages are derived.
        """
        self._step = step
        subject = self._subject
        self._report = report = Report(_NOTHING_YET, world=self._world())
        before = subject.disk_actions()
        try:
            report.observation = subject.run(lambda: self._do(op))
        except StoreCrashed:
            subject.end_watch()
            self._heal()
            assert report.crash is not None, "only an event crashes the store"
            report.observation = Crashed(
                report.crash.kind,
                subject.disk_actions() - before,
                subject.last_action(),
            )
        except Hang as endless:
            # The world ends a life that would not end; what it did is the finding.
            subject.end_watch()
            self._heal()
            subject.crash(Crash("process_kill"))
            report.observation = Failed("Hang", str(endless))
            report.failures.append(report.observation)
        report.disk_actions = subject.disk_actions() - before
        report.world = self._world()
        report.is_unreadable = bool(subject.unreadable())
        return report

    def _world(self) -> World:
        return World(self._subject.now_ms(), *self._subject.disk_usage())

    def _do(self, op: Op) -> Observation:
        if isinstance(op, During):
            return self._during(op)
        if isinstance(op, Together):
            return self._together(op)
        if self._lacks and needs(op) & self._lacks:
            return Skipped(f"{self._subject.name} cannot do this")
        try:
            return self._simple(op)
        except Exception as error:
            # Whatever the engine raises is a finding of the run, told as such.
            failed = Failed(type(error).__name__, str(error))
            if isinstance(error, OSError):
                failed = Failed("OSError", str(error))
            self._report.failures.append(failed)
            return failed

    def _simple(self, op: Op) -> Observation:
        subject, report = self._subject, self._report
        match op:
            case PutMessage():
                return self._put(op)
            case PutBatch():
                return self._put_batch(op)
            case PullMessage(topic, queue_id, queue_offset, max_msg_nums, tags):
                seen = subject.pull(topic, queue_id, queue_offset, max_msg_nums, tags)
                if isinstance(seen, Pulled):
                    report.pulls.append((op, seen))
                return seen
            case LookMessage(phy_offset):
                seen = subject.look(phy_offset)
                if isinstance(seen, Looked):
                    report.looks.append((op, seen))
                return seen
            case SearchOffset(topic, queue_id, at_ms, boundary):
                seen = subject.search(topic, queue_id, at_ms, boundary)
                if isinstance(seen, Searched):
                    report.searches.append((op, seen))
                return seen
            case QueryMessage(topic, key, max_num, begin_ms, end_ms):
                seen = subject.query(topic, key, max_num, begin_ms, end_ms)
                if isinstance(seen, Queried):
                    report.queries.append((op, seen))
                return seen
            case RunService(service, times):
                seen = subject.run_service(service, times)
                if service == "clean_commit_log" and isinstance(seen, Ran):
                    report.first_mtime_ms = self._first_mtime_ms()
                return seen
            case AdvanceClock(ms):
                return subject.advance_clock(ms)
            case DeleteManually():
                return subject.delete_manually()
            case DeleteTopic():
                return self._delete_topic(op)
            case FillDisk(percent):
                return subject.fill_disk(percent)
            case Shutdown():
                return self._shutdown()
            case Restart():
                if subject.is_up:
                    stopped = self._shutdown()
                    if subject.is_up:
                        return stopped
                return self._start()
            case Damage():
                return self._damage(op)
            case PlantFile():
                seen = subject.plant(op)
                if isinstance(seen, Planted):
                    report.planted.append(seen)
                return seen
            case During() | Together():
                raise AssertionError("what is made of ops is not simple")
            case _:
                assert_never(op)

    def _first_mtime_ms(self) -> int:
        log = [
            path
            for path in self._subject.files()
            if path.startswith("commitlog/") and is_of_a_store(path, has_index=False)
        ]
        return self._subject.mtime_ms(min(log)) if log else 0

    def _put(self, op: PutMessage) -> Observation:
        if not self._subject.is_up:
            return Skipped("the store is down")
        puts = self._report.puts
        message = message_for(
            op, self._life, self._step, len(puts), self._prepared_offset
        )
        place = len(puts)
        puts.append((message, None))
        self._begin_span(1)
        answer = self._timed(partial(self._subject.put, message))
        if not isinstance(answer, Put):
            return answer
        puts[place] = (message, answer)
        self._end_span(place, 1)
        if op.transaction == "prepared" and answer.phy_offset >= 0:
            self._prepared_offset = answer.phy_offset
        return answer

    def _put_batch(self, op: PutBatch) -> Observation:
        if not self._subject.is_up:
            return Skipped("the store is down")
        puts = self._report.puts
        place = len(puts)
        messages = batch_for(op, self._life, self._step, place, self._extra_size)
        puts.extend([(message, None) for message in messages])
        self._begin_span(len(messages))
        answer = self._timed(partial(self._subject.put_batch, messages))
        if not isinstance(answer, Put):
            return answer
        for number, message in enumerate(messages):
            puts[place + number] = (message, self._answer_in(answer, message))
        self._end_span(place, len(messages))
        self._report.batches.append((tuple(messages), answer))
        return answer

    def _timed(self, put: Callable[[], Observation]) -> Observation:
        """The answer to a put, if it got one, and how long it took."""
        began_ms = self._subject.now_ms()
        answer = put()
        if not isinstance(answer, Put):
            return answer
        took_ms, report = self._subject.now_ms() - began_ms, self._report
        if answer.status == "FLUSH_DISK_TIMEOUT":
            report.longest_wait_ms = max(took_ms, report.longest_wait_ms)
        is_known = took_ms == report.stalled_ms and not report.together
        return replace(
            answer,
            took_ms=took_ms if is_known or not report.interrupted else -1,
            flushed_where=self._subject.positions().flushed_where,
        )

    def _begin_span(self, count: int) -> None:
        self._beats += 1
        self._report.spans += [(self._beats, NEVER)] * count

    def _end_span(self, place: int, count: int) -> None:
        self._beats += 1
        for number in range(place, place + count):
            self._report.spans[number] = (self._report.spans[number][0], self._beats)

    def _delete_topic(self, op: DeleteTopic) -> Observation:
        if not self._subject.is_up:
            return Skipped("the store is down")
        deletions = self._report.deletions
        place = len(deletions)
        deletions.append((op, None))
        seen = self._subject.delete_topic(op.topic, op.queue_id)
        deletions[place] = (op, seen)
        return seen

    def _answer_in(self, answer: Put, message: MessageToPut) -> Put:
        """What the answer to a batch says of one of its messages."""
        batch = message.batch
        assert batch is not None, message
        if answer.phy_offset < 0:
            return answer
        return Put(
            answer.status,
            answer.phy_offset + batch.before,
            message.record_size + self._extra_size,
            answer.queue_offset + batch.number,
            took_ms=answer.took_ms,
            flushed_where=answer.flushed_where,
        )

    def _shutdown(self) -> Observation:
        self._report.is_stopping = True
        began_ms = self._subject.now_ms()
        seen = self._subject.shutdown()
        self._report.stop_took_ms = self._subject.now_ms() - began_ms
        if isinstance(seen, Stopped):
            self._report.stops.append(seen)
            self._report.late_actions += self._subject.late_actions()
        if isinstance(seen, EndAwaited):
            self._report.ends_awaited.append(seen)
        return seen

    def _damage(self, op: Damage) -> Observation:
        seen = self._subject.damage(op)
        if isinstance(seen, Damaged):
            self._report.damages.append(seen)
        return seen

    def _start(self) -> Observation:
        self._report.found.append(self._subject.files())
        self._report.unreadable.append(self._subject.unreadable())
        self._report.starts.append(_UNENDED)
        try:
            seen = self._subject.start()
        finally:
            self._report.left_by_start = self._subject.left_by_start()
        self._report.starts[-1] = seen
        if isinstance(seen, Started):
            self._life += 1
            self._report.puts_before_start = len(self._report.puts)
            self._report.stops_before_start = len(self._report.stops)
            self._report.deletions_before_start = len(self._report.deletions)
            self._report.started_end = self._subject.positions().max_phy_offset
            self._prepared_offset = 0
        return seen

    def _together(self, op: Together) -> Observation:
        """Begin all ops at once; ``Turns`` says who runs when."""
        if self._report.together:
            return Skipped("others run at the same time already")
        if self._lacks and needs(op) & self._lacks:
            return Skipped(f"{self._subject.name} cannot do this")
        self._report.interrupted = self._report.together = True
        turns = Turns(op.schedule)
        self._report.turns = turns.taken
        seen = self._subject.together(
            [
                (f"activity {number}, {describe(part)}", partial(self._one_of, part))
                for number, part in enumerate(op.ops)
            ],
            turns,
        )
        return Interleaved(tuple(seen), tuple(turns.taken), turns.points)

    def _one_of(self, op: Op) -> Observation:
        if not isinstance(op, CAN_BE_TOGETHER):
            return Skipped("nobody does this beside others")
        if isinstance(op, AdvanceClock) and op.ms > 0:
            self._report.stalled_ms += op.ms
        return self._do(op)

    def _during(self, op: During) -> Observation:
        if nesting(op) > NESTING_MAX:
            return Skipped(f"events nest at most {NESTING_MAX} deep")
        if self._lacks and needs(op) & self._lacks:
            return Skipped(f"{self._subject.name} cannot do this")
        self._report.interrupted = True
        waiting: list[Callable[[], Observation]] = []
        cut = op.event.cut if isinstance(op.event, Crash) else 0
        self._subject.on_action(
            max(1, op.at_action), cut, lambda: self._happen(op.event, waiting)
        )
        seen = self._do(op.op)
        if not self._subject.end_watch():
            self._happen(op.event, waiting)
        if isinstance(op.event, DiskFault):
            return Interrupted(seen, Armed(self._heal()))
        return Interrupted(seen, waiting[0]())

    def _heal(self) -> int:
        """Let the disk work again; how many calls had met its faults."""
        failed, spoilt = self._subject.heal()
        self._report.spoilt += spoilt
        return failed

    def _happen(self, event: Event, waiting: list[Callable[[], Observation]]) -> None:
        """Let the world step in; an op among the events goes on in ``waiting``."""
        match event:
            case Crash():
                self._report.crash = event
                raise self._subject.crash(event)
            case DiskFault():
                self._report.fault_armed |= event.call not in SILENT
                self._report.reads_failed |= event.call == "read"
                self._subject.fail(event)
            case AdvanceClock(ms) if ms > 0:
                # The stalled activity may be one that the op does not wait for.
                waiting.append(lambda: ClockMoved(self._subject.now_ms()))
                self._report.stalled_ms += ms
                self._subject.stall(ms)
            case _:
                waiting.append(self._subject.interleave(lambda: self._do(event)))
