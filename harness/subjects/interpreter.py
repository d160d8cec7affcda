"""Interpreter: runs each op on the subject and returns its observation.

One ``match`` maps ops to calls. It gives each put its message, lets events happen at
disk actions, and appends what happens to the op's history (``models.history``). An
exception of the engine is an observation. So is a crash of the store, which ends the
op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from traceback import walk_tb
from typing import assert_never

from crashmq.harness.disk.crash import Hang, StoreCrashed
from crashmq.harness.scheduling.line_switches import no_line_switches
from crashmq.harness.scheduling.turns import Turns
from crashmq.harness.subjects.engine_config import adds_crc
from crashmq.harness.subjects.subject import (
    Subject,
    capabilities_of,
    whole,
    why_skipped,
)
from crashmq.models.describe import describe
from crashmq.models.files.inferred_deletions import is_kept_topic
from crashmq.models.files.message_delay_level import DelayLevels
from crashmq.models.files.places import is_of_a_store
from crashmq.models.history import (
    MAIN,
    BrokerPullAnswered,
    BrokerPullAsked,
    BrokerPullHeld,
    ConfigChanged,
    DelaysLoaded,
    DeletionAsked,
    DeletionEnded,
    Entry,
    FaultMet,
    FaultsEnded,
    FaultSet,
    FileDamaged,
    FilePlanted,
    FiltersLoaded,
    Happening,
    History,
    LifeEnded,
    OffsetsLoaded,
    OpBegan,
    OpEnded,
    OthersMayAct,
    ProgressAnswered,
    ProgressAsked,
    PutAnswered,
    PutAsked,
    Raised,
    Read,
    ReadAnswered,
    ReadAsked,
    ReplicasConfirmed,
    RoundDone,
    RoundsEnded,
    SendAnswered,
    StartBegan,
    StartEnded,
    Step,
    StopBegan,
    StopEnded,
    SubscriptionAnswered,
    SubscriptionAsked,
    TimePassed,
)
from crashmq.models.messages import MessageToPut, batch_for, message_for
from crashmq.models.observations import (
    Armed,
    BrokerPulled,
    ClockMoved,
    Crashed,
    Damaged,
    Deleted,
    Done,
    Failed,
    FilteredPull,
    Interleaved,
    Interrupted,
    InTurn,
    LogConfirmed,
    Looked,
    NotFiltered,
    Observation,
    OffsetKept,
    Planted,
    Positions,
    Pulled,
    PullHeld,
    Put,
    Queried,
    Ran,
    Searched,
    Skipped,
    Started,
    Stopped,
    TopicsCleaned,
    World,
)
from crashmq.models.ops import (
    CAN_BE_TOGETHER,
    EVERYTHING,
    NESTING_MAX,
    AdvanceClock,
    AskBroker,
    ChangeConfig,
    ChangeTopic,
    CleanOffsets,
    CleanTopics,
    CloneOffset,
    CommitOffset,
    ConfigureGroup,
    ConfirmLog,
    Consume,
    ConsumerOp,
    Crash,
    Damage,
    DeleteGroup,
    DeleteManually,
    DeleteTopic,
    DiskFault,
    During,
    EndConsumer,
    Event,
    FillDisk,
    FilterOp,
    LookMessage,
    Op,
    PlantFile,
    ProgressOp,
    PullFiltered,
    PullMessage,
    PullThroughBroker,
    PutBatch,
    PutMessage,
    QueryLowestOffsets,
    QueryMessage,
    QueryOffset,
    ResetOffset,
    Restart,
    Resubscribe,
    RunService,
    SearchOffset,
    SendMessage,
    ServiceName,
    Session,
    Shutdown,
    StartConsumer,
    Subscribe,
    TakeQueue,
    TellReset,
    Together,
    TurnConsumer,
    Unsubscribe,
    needs,
    nesting,
)
from crashmq.models.program import Setup

_ANSWERS = (Pulled, Looked, Searched, Queried, FilteredPull, NotFiltered)
_FLUSHES = ("flush_consume_queue", "flush_index")
_UNENDED = Failed("start", "it did not come to an end")


@dataclass(slots=True)
class _Running:
    """What an op in progress has done so far.

    Attributes:
        puts: how many messages it has given to the store.
        stalled_ms: how long activities were stalled.
        activities: how many began besides the op itself.
        crash: the event that ended the store's life.
        turns: what its schedule did so far.
        faults: those that were set and may still be met by calls.
        host_rounds: how many rounds that the host started are in progress.
    """

    puts: int = 0
    stalled_ms: int = 0
    activities: int = 0
    is_alone: bool = True
    is_together: bool = False
    crash: Crash | None = None
    turns: Turns | None = None
    faults: list[DiskFault] = field(default_factory=list)
    host_rounds: int = 0
    is_starting: bool = False


def interpreter_of(setup: Setup, subject: Subject, life: int = 0) -> Interpreter:
    """An interpreter for a store of this setup that was started ``life`` times."""
    return Interpreter(
        subject,
        life,
        prop_crc=adds_crc(setup),
        levels=setup.delay_levels if setup.delivers_delayed else None,
    )


class Interpreter:
    """Runs ops on one subject, one after the other, and records what happens."""

    def __init__(
        self,
        subject: Subject,
        life: int = 0,
        *,
        prop_crc: bool = False,
        levels: DelayLevels | None = None,
    ) -> None:
        """``levels`` are those of a broker that delivers delayed messages."""
        self._subject = whole(subject)
        self._levels = levels
        self._deliverer = MAIN
        if levels is not None:
            self._subject.tell_deliveries(self._put_of_broker)
        self._prop_crc = prop_crc
        self._prepared_offset = 0
        self._lacks = EVERYTHING - capabilities_of(subject)
        self._life = life
        self._step = 0
        self._pulls = 0
        self._topics: set[str] = set()
        self._history = History()
        self._running = _Running()
        self._subject.tell_consumers_to(self._note_of_consumer)
        self._subject.tell_rounds(self._round_of_host)
        self._subject.tell_removals(partial(self._note, MAIN))
        self._subject.tell_marks(partial(self._note, MAIN))

    @property
    def life(self) -> int:
        """How often the store was started."""
        return self._life

    @property
    def entries(self) -> Sequence[Entry]:
        """The events so far of the op in progress, else all of the last op."""
        self._note_faults_met()
        return self._history.entries

    def run(self, op: Op, step: int) -> Step:
        """Run one op to its end, or to the store's; its history.

        Args:
            op: what to do.
            step: its number, from which its messages are derived.
        """
        self._step = step
        subject = self._subject
        self._history, self._running = History(), _Running()
        self._note(MAIN, OpBegan(op, self._world()))
        before = subject.disk_actions()
        try:
            seen = subject.run(lambda: self._do(op, MAIN))
        except StoreCrashed:
            self._forget_events()
            crash = self._running.crash
            assert crash is not None, "only an event crashes the store"
            actions = subject.disk_actions() - before
            seen = Crashed(crash.kind, actions, subject.last_action())
        except Hang as endless:
            # The world ends a life that would not end; what it did is the finding.
            self._forget_events()
            subject.crash(Crash("process_kill"))
            seen = Failed("Hang", str(endless))
            self._note(MAIN, Raised(seen))
        turns = self._running.turns
        ended = OpEnded(
            seen,
            subject.disk_actions() - before,
            self._world(),
            bool(subject.unreadable()),
            tuple(turns.taken) if turns is not None else (),
        )
        self._note(MAIN, ended)
        return Step(op, self._history.entries)

    @property
    def turns(self) -> Turns | None:
        """The choices among ops that began together in the newest step, if any."""
        return self._running.turns

    def _forget_events(self) -> None:
        """Let nothing happen any more that was to come amid what has ended."""
        for _ in range(NESTING_MAX):
            self._subject.end_watch()
        self._heal(MAIN)

    def _note(self, who: int, event: Happening) -> int:
        if self._running.faults:
            self._note_faults_met()
        return self._history.append(self._subject.now_ms(), who, event)

    def _note_of_consumer(self, event: Happening) -> None:
        """Note what a consumer did, in whichever activity."""
        self._note(MAIN, event)

    def _note_faults_met(self) -> None:
        """Note the calls that have met a fault since the newest event."""
        faults = self._running.faults
        if not faults:
            return
        met = self._subject.take_faults_met()
        if met is None:
            met = [(fault.call, "") for fault in faults]
            faults.clear()
        for call, path in met:
            self._history.append(self._subject.now_ms(), MAIN, FaultMet(call, path))

    def _world(self) -> World:
        return World(self._subject.now_ms(), *self._subject.disk_usage())

    def _do(self, op: Op, who: int) -> Observation:
        """Run an op as a part of activity ``who``."""
        if isinstance(op, During):
            return self._during(op, who)
        if isinstance(op, Together):
            return self._together(op, who)
        if isinstance(op, Session):
            return Skipped("a session is one of several that begin together")
        if self._lacks and needs(op) & self._lacks:
            return Skipped(why_skipped(self._subject, op))
        try:
            return self._simple(op, who)
        except Exception as error:
            # Whatever the engine raises is a finding of the run, told as such.
            failed = Failed(type(error).__name__, str(error))
            if isinstance(error, OSError):
                failed = Failed("OSError", str(error))
            self._note(who, Raised(failed))
            return failed

    def _simple(self, op: Op, who: int) -> Observation:
        subject = self._subject
        match op:
            case PutMessage():
                return self._put(op, who)
            case AdvanceClock(ms):
                return subject.advance_clock(ms)
            case RunService(service, times):
                return self._run_service(service, times, who)
            case TurnConsumer() | Consume() | TellReset():
                return self._turn_consumer(op, who)
            case SearchOffset() | PullMessage() | LookMessage() | QueryMessage():
                return self._read(op, who)
            case PullFiltered():
                return self._read(op, who)
            case PutBatch():
                return self._put_batch(op, who)
            case SendMessage():
                return self._send(op, who)
            case DeleteManually():
                return subject.delete_manually()
            case DeleteTopic():
                return self._delete_topic(op, who)
            case CleanTopics():
                return self._clean_topics(op, who)
            case ResetOffset() | TakeQueue() | ConfigureGroup() | DeleteGroup():
                return self._progress(op, who)
            case CommitOffset() | QueryOffset() | CloneOffset() | QueryLowestOffsets():
                return self._progress(op, who)
            case CleanOffsets() | ChangeTopic() | AskBroker():
                return self._progress(op, who)
            case StartConsumer() | Resubscribe() | EndConsumer():
                return self._turn_consumer(op, who)
            case PullThroughBroker():
                return self._pull_through_broker(op, who)
            case Subscribe() | Unsubscribe():
                return self._subscribe(op, who)
            case ConfirmLog(behind):
                seen = subject.confirm_log(behind)
                if isinstance(seen, LogConfirmed):
                    self._note(who, ReplicasConfirmed(seen.phy_offset))
                return seen
            case FillDisk(percent):
                return subject.fill_disk(percent)
            case Shutdown():
                return self._shutdown(who)
            case Restart():
                if subject.is_up:
                    stopped = self._shutdown(who)
                    if subject.is_up:
                        return stopped
                return self._start(who)
            case Damage() | PlantFile() | ChangeConfig():
                return self._change_from_outside(op, who)
            case During() | Together() | Session():
                raise AssertionError("what is made of ops is not simple")
            case _:
                assert_never(op)

    def _read(self, op: Read, who: int) -> Observation:
        if self._running.is_alone:
            seen = self._ask_read(op)
            if isinstance(seen, _ANSWERS):
                self._note(who, ReadAnswered(op, seen))
            return seen
        asked = self._note(who, ReadAsked(op, self._stands()))
        seen = self._ask_read(op)
        if isinstance(seen, _ANSWERS):
            self._note(who, ReadAnswered(op, seen, asked, self._stands()))
        return seen

    def _stands(self) -> Positions:
        """The log's positions now; reading them is no switch point of a schedule."""
        with no_line_switches():
            return self._subject.positions()

    def _ask_read(self, op: Read) -> Observation:
        subject = self._subject
        match op:
            case PullMessage(topic, queue_id, queue_offset, max_msg_nums, tags):
                return subject.pull(topic, queue_id, queue_offset, max_msg_nums, tags)
            case LookMessage(phy_offset):
                return subject.look(phy_offset)
            case SearchOffset(topic, queue_id, at_ms, boundary):
                return subject.search(topic, queue_id, at_ms, boundary)
            case QueryMessage(topic, key, max_num, begin_ms, end_ms):
                return subject.query(topic, key, max_num, begin_ms, end_ms)
            case PullFiltered(group, topic, queue_id, queue_offset, max_msg_nums):
                place = topic, queue_id
                return subject.pull_filtered(group, *place, queue_offset, max_msg_nums)
            case _:
                assert_never(op)

    def _run_service(self, service: ServiceName, times: int, who: int) -> Observation:
        if service == "deliver_delayed":
            self._deliverer = who
        seen: Observation = Ran(0)
        work = 0
        for _ in range(times):
            seen = self._one_round(service, who)
            if not isinstance(seen, Ran):
                break
            work += seen.work
            if not seen.work:
                break
        if isinstance(seen, Ran):
            seen = Ran(work)
        is_cleaner = service == "clean_commit_log" and isinstance(seen, Ran)
        first_mtime_ms = self._first_mtime_ms() if is_cleaner else 0
        self._note(who, RoundsEnded(service, seen, first_mtime_ms))
        return seen

    def _one_round(self, service: ServiceName, who: int) -> Observation:
        subject = self._subject
        unsynced = None
        if service in _FLUSHES and self._running.is_alone:
            unsynced = tuple(subject.unsynced_from().items())
        began = self._began(service, unsynced)
        seen = subject.run_service(service, 1)
        if isinstance(seen, Ran):
            self._note(who, began(seen.work, by_host=False))
        return seen

    def _began(
        self, service: str, unsynced: tuple[tuple[str, int], ...] | None
    ) -> Callable[..., RoundDone]:
        """Record that a round begins; returns what makes the event of its end."""
        subject, number = self._subject, len(self._history.entries)
        before, began_ms = subject.positions(), subject.now_ms()
        actions = subject.disk_actions()

        def ended(work: int, *, by_host: bool) -> RoundDone:
            return RoundDone(
                service,
                work,
                number,
                began_ms,
                before,
                subject.positions(),
                subject.disk_actions() - actions,
                by_host,
                unsynced,
            )

        return ended

    def _round_of_host(self, service: str, turn: Callable[[], int]) -> int:
        """Let the host run a round while every activity waits; returns its work."""
        running, history = self._running, self._history
        began = self._began(service, None)
        running.host_rounds += 1
        try:
            work = turn()
        finally:
            running.host_rounds -= 1
        if history is self._history:
            self._note(MAIN, began(work, by_host=True))
        return work

    def _first_mtime_ms(self) -> int:
        log = [
            path
            for path in self._subject.files()
            if path.startswith("commitlog/") and is_of_a_store(path, has_index=False)
        ]
        return self._subject.mtime_ms(min(log)) if log else 0

    def _put(self, op: PutMessage, who: int) -> Observation:
        if not self._subject.is_up:
            return Skipped("the store is down")
        place = self._running.puts
        message = message_for(op, self._life, self._step, place, self._prepared_offset)
        stored = message if self._levels is None else message.scheduled(self._levels)
        asked = self._ask(who, (stored,))
        answer, waited_ms = self._timed(partial(self._subject.put, message))
        if not isinstance(answer, Put):
            return answer
        self._note(who, PutAnswered(asked, (answer,), None, waited_ms))
        if op.transaction == "prepared" and answer.phy_offset >= 0:
            self._prepared_offset = answer.phy_offset
        return answer

    def _put_of_broker(
        self, message: MessageToPut, put: Callable[[], Observation]
    ) -> None:
        """Record what the broker delivers, and the answer to that put."""
        self._put_for(self._deliverer, message, put)

    def _put_for(
        self, who: int, message: MessageToPut, put: Callable[[], Observation]
    ) -> None:
        asked = self._ask(who, (message,))
        answer, waited_ms = self._timed(put)
        if isinstance(answer, Put):
            self._note(who, PutAnswered(asked, (answer,), None, waited_ms))

    def _send(self, op: SendMessage, who: int) -> Observation:
        if not self._subject.is_up:
            return Skipped("the store is down")
        place = self._running.puts
        self._running.puts += 1  # whoever sends beside it sends another message
        message = message_for(op.put, self._life, self._step, place)
        most, put = op.max_reconsume_times, partial(self._put_for, who)
        seen = self._subject.send_message(message, most, op.asks_queues, put)
        self._note(who, SendAnswered(op, message, seen))
        return seen

    def _put_batch(self, op: PutBatch, who: int) -> Observation:
        if not self._subject.is_up:
            return Skipped("the store is down")
        place = self._running.puts
        messages = batch_for(op, self._life, self._step, place, prop_crc=self._prop_crc)
        asked = self._ask(who, tuple(messages))
        answer, waited_ms = self._timed(partial(self._subject.put_batch, messages))
        if not isinstance(answer, Put):
            return answer
        answers = tuple([self._answer_in(answer, message) for message in messages])
        self._note(who, PutAnswered(asked, answers, answer, waited_ms))
        return answer

    def _ask(self, who: int, messages: tuple[MessageToPut, ...]) -> int:
        self._running.puts += len(messages)
        self._topics.update([message.topic for message in messages])
        return self._note(who, PutAsked(messages))

    def _timed(self, put: Callable[[], Observation]) -> tuple[Observation, int]:
        """The answer to a put, and how long it took in milliseconds."""
        began_ms = self._subject.now_ms()
        answer = put()
        if not isinstance(answer, Put):
            return answer, 0
        waited_ms, running = self._subject.now_ms() - began_ms, self._running
        is_known = waited_ms == running.stalled_ms and not running.is_together
        told = Put(
            answer.status,
            answer.phy_offset,
            answer.size,
            answer.queue_offset,
            answer.message_ids,
            waited_ms if is_known or running.is_alone else -1,
            self._subject.positions().flushed_where,
        )
        return told, waited_ms

    def _change_from_outside(
        self, op: Damage | PlantFile | ChangeConfig, who: int
    ) -> Observation:
        if isinstance(op, ChangeConfig):
            done = self._subject.change_config(op)
            if isinstance(done, Done):
                self._note(who, ConfigChanged(op))
            return done
        if isinstance(op, Damage):
            seen = self._subject.damage(op)
            if isinstance(seen, Damaged):
                self._note(who, FileDamaged(seen))
            return seen
        seen = self._subject.plant(op)
        if isinstance(seen, Planted):
            self._note(who, FilePlanted(seen))
            folder, _, inside = seen.path.partition("/")
            if folder == "consumequeue" and "/" in inside:
                self._topics.add(inside.partition("/")[0])
        return seen

    def _delete_topic(self, op: DeleteTopic, who: int) -> Observation:
        if not self._subject.is_up:
            return Skipped("the store is down")
        asked = self._note(who, DeletionAsked(op))
        seen = self._subject.delete_topic(op.topic, op.queue_id)
        self._note(who, DeletionEnded(asked, seen))
        return seen

    def _clean_topics(self, op: CleanTopics, who: int) -> Observation:
        """Note a deletion of each topic that may go; which do is told afterwards."""
        if not self._subject.is_up:
            return Skipped("the store is down")
        if self._subject.begins_with():
            return Skipped("it began with topics that no op has put to")
        retained = tuple(op.retained.split(",")) if op.retained else ()
        unused = sorted(self._topics - {*retained})
        asked = {
            topic: self._note(who, DeletionAsked(DeleteTopic(topic)))
            for topic in unused
            if not is_kept_topic(topic)
        }
        seen = self._subject.clean_topics(retained)
        if not isinstance(seen, TopicsCleaned):
            return seen
        dead = dict(seen.rows)
        for topic in dead:
            if topic not in asked:  # somebody has put to it meanwhile
                asked[topic] = self._note(who, DeletionAsked(DeleteTopic(topic)))
        for topic, number in asked.items():
            self._note(who, DeletionEnded(number, Deleted(dead.get(topic, -1))))
        return seen

    def _progress(self, op: ProgressOp, who: int) -> Observation:
        if not self._subject.is_up:
            return Skipped("the store is down")
        asked = self._note(who, ProgressAsked(op))
        seen = self._ask_for_progress(op)
        self._note(who, ProgressAnswered(asked, seen))
        return seen

    def _ask_for_progress(self, op: ProgressOp) -> Observation:
        subject = self._subject
        match op:
            case CommitOffset(group, topic, queue_id, offset):
                return subject.commit_offset(group, topic, queue_id, offset)
            case QueryOffset(group, topic, queue_id):
                return subject.query_offset(group, topic, queue_id)
            case ResetOffset(group, topic, queue_id, offset, to):
                return subject.reset_offset(group, topic, queue_id, offset, to)
            case TakeQueue(group, topic, queue_id, where, at_ms):
                return subject.take_queue(group, topic, queue_id, where, at_ms)
            case DeleteGroup(group):
                return subject.delete_group(group)
            case ConfigureGroup():
                return subject.configure_group(op)
            case CloneOffset(group, target, topic):
                return subject.clone_offset(group, target, topic)
            case QueryLowestOffsets(group, topic):
                return subject.query_lowest_offsets(group, topic)
            case CleanOffsets(topic):
                return subject.clean_offsets(topic)
            case ChangeTopic():
                return subject.change_topic(op)
            case AskBroker():
                return subject.ask_broker(op)

    def _turn_consumer(self, op: ConsumerOp, who: int) -> Observation:
        subject = self._subject
        match op:
            case StartConsumer():
                return subject.start_consumer(op)
            case Resubscribe():
                return subject.resubscribe(op)
            case EndConsumer(client, how):
                return subject.end_consumer(client, how)
            case TurnConsumer(client, task, times, lost):
                if lost:  # what is left undone then, nobody knows
                    self._running.is_alone = False
                    self._note(who, OthersMayAct(together=False))
                return subject.turn_consumer(client, task, times, lost)
            case Consume():
                return subject.consume(op)
            case TellReset(client, topic, queue_id, offset):
                return subject.tell_reset(client, topic, queue_id, offset)

    def _pull_through_broker(self, op: PullThroughBroker, who: int) -> Observation:
        subject = self._subject
        if not subject.is_up:
            return Skipped("the store is down")
        self._pulls += 1
        number = self._pulls

        def begins(told: int) -> None:
            self._note(who, BrokerPullAsked(number, op, told))

        def answer(pulled: BrokerPulled) -> None:
            # Perhaps in a later op: the store's own activities have no number then.
            answered = BrokerPullAnswered(number, op, pulled, self._offset_for(op))
            self._note(MAIN, answered)

        seen = subject.pull_through_broker(op, begins, answer)
        if isinstance(seen, PullHeld):
            self._note(who, BrokerPullHeld(number, op, self._offset_for(op)))
        return seen

    def _offset_for(self, op: PullThroughBroker) -> int:
        """The offset of the group that pulls, as the broker answers it."""
        seen = self._subject.query_offset(op.group, op.topic, op.queue_id)
        return seen.offset if isinstance(seen, OffsetKept) else -1

    def _subscribe(self, op: FilterOp, who: int) -> Observation:
        subject = self._subject
        if not subject.is_up:
            return Skipped("the store is down")
        asked = self._note(who, SubscriptionAsked(op))
        if isinstance(op, Unsubscribe):
            seen = subject.unsubscribe(op.group)
        else:
            # Of one step they may come in any order, so each is newer in its own way.
            newest = self._life << 40 | self._step << 16 | asked
            seen = subject.subscribe(
                op.group,
                op.topic,
                op.expression,
                op.expression_type,
                op.version or newest,
            )
        self._note(who, SubscriptionAnswered(asked, seen))
        return seen

    def _answer_in(self, answer: Put, message: MessageToPut) -> Put:
        """The answer for one message of a batch, taken from the batch's answer."""
        batch = message.batch
        assert batch is not None, message
        if answer.phy_offset < 0:
            return answer
        return Put(
            answer.status,
            answer.phy_offset + batch.before,
            message.record_size + (message.prop_crc_size if self._prop_crc else 0),
            answer.queue_offset + batch.number,
            took_ms=answer.took_ms,
            flushed_where=answer.flushed_where,
        )

    def _shutdown(self, who: int) -> Observation:
        self._note(who, StopBegan())
        began_ms = self._subject.now_ms()
        seen = self._subject.shutdown()
        took_ms = self._subject.now_ms() - began_ms
        late = self._subject.late_actions() if isinstance(seen, Stopped) else 0
        self._note(who, StopEnded(seen, took_ms, late))
        return seen

    def _start(self, who: int) -> Observation:
        subject = self._subject
        if self._running.is_starting:
            return Skipped("the store is about to start")
        self._running.is_starting = True
        self._note(who, StartBegan(subject.files(), subject.unreadable()))
        seen: Observation = _UNENDED
        log_end, left = -1, None
        try:
            seen = subject.start()
            if isinstance(seen, Started):
                log_end = subject.positions().max_phy_offset
                left = None if self._running.is_alone else subject.files()
        finally:
            self._running.is_starting = False
            held = subject.left_by_start()
            self._note(who, StartEnded(seen, log_end, held, left))
        if isinstance(seen, Started):
            offsets = subject.offsets()
            if offsets is not None:
                self._note(who, OffsetsLoaded(offsets))
            filters = subject.filters()
            if filters is not None:
                self._note(who, FiltersLoaded(filters))
            delays = subject.delays()
            if delays is not None:
                self._note(who, DelaysLoaded(delays))
            self._life += 1
            self._prepared_offset = 0
        return seen

    def _together(self, op: Together, who: int) -> Observation:
        """Begin all ops at once; ``Turns`` says who runs when."""
        running = self._running
        if running.is_together:
            return Skipped("others run at the same time already")
        if self._lacks and needs(op) & self._lacks:
            return Skipped(why_skipped(self._subject, op))
        running.is_alone, running.is_together = False, True
        self._note(who, OthersMayAct(together=True))
        turns = running.turns = Turns(op.schedule)
        first = running.activities + 1
        running.activities += len(op.ops)
        seen = self._subject.together(
            [
                (
                    f"activity {number}, {describe(part)}",
                    partial(self._one_of, part, first + number),
                )
                for number, part in enumerate(op.ops)
            ],
            turns,
        )
        return Interleaved(tuple(seen), tuple(turns.taken), turns.points)

    def _one_of(self, op: Op, who: int) -> Observation:
        if not isinstance(op, Session):
            return self._beside(op, who)
        return InTurn(tuple([self._beside(part, who) for part in op.ops]))

    def _beside(self, op: Op, who: int) -> Observation:
        if not isinstance(op, CAN_BE_TOGETHER):
            return Skipped("nobody does this beside others")
        if isinstance(op, AdvanceClock) and op.ms > 0:
            self._stall(op.ms, who)
        return self._do(op, who)

    def _stall(self, ms: int, who: int) -> None:
        self._running.stalled_ms += ms
        in_round = self._running.host_rounds > 0
        self._note(who, TimePassed(ms, in_round))

    def _during(self, op: During, who: int) -> Observation:
        if nesting(op) > NESTING_MAX:
            return Skipped(f"events nest at most {NESTING_MAX} deep")
        if self._lacks and needs(op) & self._lacks:
            return Skipped(why_skipped(self._subject, op))
        self._running.is_alone = False
        self._note(who, OthersMayAct(together=False))
        waiting: list[Callable[[], Observation]] = []
        cut = op.event.cut if isinstance(op.event, Crash) else 0
        event = partial(self._happen, op.event, waiting)
        self._subject.on_action(max(1, op.at_action), cut, event)
        if isinstance(op.op, AdvanceClock) and op.op.ms > 0 and who != MAIN:
            self._stall(op.op.ms, who)
        seen = self._do(op.op, who)
        if not self._subject.end_watch(event):
            event()
        if isinstance(op.event, DiskFault):
            return Interrupted(seen, Armed(self._heal(who)))
        return Interrupted(seen, waiting[0]())

    def _heal(self, who: int) -> int:
        """Disarm all disk faults; returns how many calls had met one."""
        self._note_faults_met()
        self._running.faults.clear()
        failed, spoilt = self._subject.heal()
        self._note(who, FaultsEnded(spoilt))
        return failed

    def _happen(self, event: Event, waiting: list[Callable[[], Observation]]) -> None:
        """Let an event happen; an op among the events continues in ``waiting``."""
        self._running.activities += 1
        who = self._running.activities
        match event:
            case Crash():
                self._running.crash = event
                crashed = self._subject.crash(event)
                self._note(who, LifeEnded(event))
                raise crashed
            case DiskFault():
                self._note(who, FaultSet(event))
                self._running.faults.append(event)
                self._subject.fail(event)
            case AdvanceClock(ms) if ms > 0:
                # The stalled activity may be one that the op does not wait for.
                waiting.append(lambda: ClockMoved(self._subject.now_ms()))
                self._stall(ms, who)
                self._subject.stall(ms)
            case _:
                waiting.append(self._subject.interleave(lambda: self._do(event, who)))


def failure_of_the_engine(error: Exception) -> Failed | None:
    """The observation for an exception raised while the harness read the store.

    None if neither the engine raised it nor a library that the engine called.
    """
    names = [
        str(frame.f_globals.get("__name__", ""))
        for frame, _ in walk_tb(error.__traceback__)
    ]
    ours = [name for name in names if name.startswith("crashmq.")]
    is_its = bool(ours) and ours[-1].startswith("crashmq.engine.")
    return Failed(type(error).__name__, str(error)) if is_its else None
