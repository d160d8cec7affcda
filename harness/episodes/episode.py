"""An episode: one subject, driven step by step, judged at each, recorded.

The whole run is told in ``run_program``; read it first. Hypothesis, a seed, a case
file and a search are four ways to produce ops; here they are all the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import blake2b
from zlib import crc32

import msgspec

from crashmq.harness.episodes.counted import Counted, name_of
from crashmq.harness.episodes.last_consumers import consume_all_left
from crashmq.harness.episodes.reading_back import (
    deliver_everything,
    pull_everything_filtered,
    query_everything,
    read_everything,
)
from crashmq.harness.judging.judge import Judge
from crashmq.harness.subjects.interpreter import (
    Interpreter,
    failure_of_the_engine,
    interpreter_of,
)
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.harness.subjects.subject import (
    Subject,
    capabilities_of,
    refuse_what_it_lacks,
    whole,
)
from crashmq.models.history import Step
from crashmq.models.laws.recovery import healed_store_works
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.laws.run import nobody_else_opens_it, nothing_unnamed_is_raised
from crashmq.models.observations import (
    Observation,
    Positions,
    Ran,
    Skipped,
    Stopped,
    status_of,
)
from crashmq.models.ops import (
    EVERYTHING,
    AdvanceClock,
    AskBroker,
    Capability,
    ChangeConfig,
    ConfirmLog,
    DeleteManually,
    FillDisk,
    Op,
    PutMessage,
    QueryOffset,
    Restart,
    RunService,
    ServiceName,
    Shutdown,
    needs,
)
from crashmq.models.program import HOUR_MS, Program, Setup
from crashmq.models.verdict import Outcome
from crashmq.reports.records import (
    EpisodeRecord,
    ExcuseCount,
    VerdictRecord,
)

THOROUGH_MS = 61_000
_ENCODER = msgspec.json.Encoder()
_UNJUDGED = Skipped("the log holds rot that nothing could show: nobody can judge it")
_CANNOT = Skipped("the subject cannot do it, and need not at the end")
_NOTHING_DONE = Step.that_saw(_UNJUDGED)
HEALING_HOURS = 1000  # whatever was set back or touched, it has expired by then
HEALING_ROUNDS_MAX = 200
AT_ONCE = ("reput", "deliver_delayed")


@dataclass(frozen=True, slots=True)
class TracedStep:
    """One step of a trace: the op, what was seen, where the log stood after it.

    ``woken`` are the answers that came to pulls of earlier ops.
    """

    number: int
    op: Op
    observation: Observation
    positions: Positions
    disk_actions: int
    at_ms: int
    turns: tuple[tuple[int, int], ...] = ()
    woken: tuple[tuple[Op, Observation], ...] = ()


@dataclass(slots=True)
class EpisodeResult:
    """The result of running one program.

    ``step`` is the number of the op that broke the law; the number of ops if only the
    end of the episode showed it; -1 if nothing was broken.
    """

    outcome: Outcome
    law: str
    step: int
    message: str
    digest: str
    trace: list[TracedStep]
    record: EpisodeRecord


class Episode:
    """A store, its judge and its record, from the first start to the last stop."""

    def __init__(
        self,
        scenario: str,
        setup: Setup,
        *,
        subject: Subject | None = None,
        keep_trace: bool = True,
        judge: Judge | None = None,
        life: int = 0,
        after: Sequence[Op] = (),
    ) -> None:
        """Begin with a new store, or go on where another episode has crashed.

        Args:
            scenario: its name, for the record.
            setup: of the store.
            subject: the store, with whatever it can do; by default our engine.
            keep_trace: keep every step for a timeline.
            judge: of that subject, having judged the crash.
            life: how often the store was started before.
            after: what was done until then; the last one is the crash. Such an
                episode has no record.
        """
        self.scenario = scenario
        self.setup = setup
        self.subject = whole(subject or PythonStore(setup))
        can = capabilities_of(self.subject)
        self._lacks = EVERYTHING - can
        self.trace: list[TracedStep] = []
        self.ops: list[Op] = list(after)
        self._keep_trace = keep_trace
        self._judge = judge or Judge(setup, self.subject, can)
        self._interpreter = interpreter_of(setup, self.subject, life)
        self._hasher = blake2b(digest_size=16)
        self._stack = ExitStack()
        self._counts = Counted.begun(self._stack)
        self._keeps_record = not after
        self._begun = bool(after) or setup.starts_by_an_op
        self.is_finishing = False

    @property
    def judge(self) -> Judge:
        """The judge of every step."""
        return self._judge

    @property
    def configured(self) -> Setup:
        """The setup with the options that were changed since the beginning."""
        return self._judge.known.setup

    @property
    def interpreter(self) -> Interpreter:
        """The interpreter that runs every step."""
        return self._interpreter

    @property
    def is_up(self) -> bool:
        """Whether the store is started."""
        return self.subject.is_up

    @property
    def starts(self) -> int:
        """How often the store was started so far."""
        return self._counts.recoveries

    @property
    def latest(self) -> Op:
        """The latest op, be it of the program or of its end."""
        return self._counts.latest

    @property
    def probes(self) -> Mapping[str, int]:
        """Hits of the probes so far, by name."""
        return self._counts.probes

    def step(self, op: Op) -> Observation:
        """Do one op and judge it.

        Raises:
            LawViolated: a law was broken, as the law's own class.
            LawUnknown: a law could not be judged.
        """
        self.begin()
        self.ops.append(op)
        return self._take(op, len(self.ops) - 1)

    def begin(self) -> None:
        """Start the store for the first time. Idempotent."""
        if not self._begun:
            self._begun = True
            self._take(Restart(), -1)

    def _take(self, op: Op, number: int) -> Observation:
        """Do and judge one op; what the engine raises as it is looked at counts too."""
        try:
            return self._taken(op, number)
        except (LawViolated, LawUnknown):
            raise
        except Exception as error:
            if failed := failure_of_the_engine(error):
                nothing_unnamed_is_raised.hold(self._judge.checks, [failed], False)
            raise

    def _taken(self, op: Op, number: int) -> Observation:
        subject = self.subject
        if self.is_finishing and self._lacks and needs(op) & self._lacks:
            return _CANNOT
        self._counts.latest = op
        if self._judge.is_unsure:
            self._record(op, number, _NOTHING_DONE, subject.positions())
            return _UNJUDGED
        done = self._interpreter.run(op, number if number >= 0 else 0)
        positions = subject.positions()
        if self._keeps_record:
            self._record(op, number, done, positions)
        self._judge.judge(done, positions)
        if done.has_put and subject.is_up and not self._judge.is_unsure:
            self._judge.judge_statistics(subject.statistics())
        return done.seen

    def _record(self, op: Op, number: int, done: Step, positions: Positions) -> None:
        seen, actions = done.seen, done.disk_actions
        self._hasher.update(_ENCODER.encode((seen, positions, actions)))
        if self.setup.keeps_progress and (answers := done.pulls_answered):
            told = [(one.op, one.answer) for one in answers]
            self._hasher.update(_ENCODER.encode(told))
        counts = self._counts
        if not self.is_finishing and number >= 0:
            counts.saw_op(op, seen)
        for start in done.starts:
            counts.saw_start(self._judge.image_of(start.found), start.seen)
        if done.crash is not None:
            action = self.subject.last_action()
            counts.saw_crash(number, op, actions, done.crash, action)
        if self._keep_trace:
            at_ms = self.subject.now_ms()
            woken = tuple([(one.op, one.answer) for one in done.pulls_woken])
            step = (number, op, seen, positions, actions, at_ms, done.turns, woken)
            self.trace.append(TracedStep(*step))

    def finish(self) -> None:
        """Heal, let every service catch up, read everything, stop; judge it all.

        A store that refuses to start, and may, ends the episode as it is; so does one
        with rot in its log that it cannot know of.

        Raises:
            LawViolated: as ``step``.
            LawUnknown: as ``step``.
        """
        self.begin()
        if self.heal():
            self.go_on()

    def get_up(self) -> None:
        """Start the store if it is down, with a working disk, and do no more."""
        self.is_finishing = True
        if not self.is_up:
            self._take(Restart(), len(self.ops))

    def heal(self) -> bool:
        """Let the store run, and be read; returns whether it can be judged."""
        self.get_up()
        number = len(self.ops)
        if self.is_up and self._judge.known.disk_failed:
            self._take(Restart(), number)
        if self.is_up and not self._judge.known.setup.lets_read:
            for op in (Shutdown(), ChangeConfig("lets_read", True), Restart()):
                self._take(op, number)
        return self.is_up and not self._judge.is_unsure

    def go_on(self) -> None:
        """Put to a healed store, let services catch up, read all of it, and stop it."""
        number = len(self.ops)
        if self.setup.keeps_progress:
            self._ask_for_configs(number)
        if self.setup.disk_capacity:
            self._make_room(number)
        has_room = self._judge.known.expiry.has_room
        answer = self._take(PutMessage("T0", 0, 16), number)
        self._take(PutMessage("T0", 1, 16, wait_store_ok=False), number)
        if self.setup.duplicates:
            self._take(ConfirmLog(), number)
        self._catch_up(number)
        if self.setup.delivers_delayed:
            self._deliver_all(number)
        epoch_ms = self.subject.epoch_ms
        read_everything(self._judge, epoch_ms, lambda op: self._take(op, number))
        if self._judge.known.consumption.newest:
            consume_all_left(self._judge, lambda op: self._take(op, number))
        if self.setup.keeps_progress:
            self._ask_for_progress(number)
        if self.setup.filters:
            self._take(RunService("persist_consumer_filter"), number)
            pull_everything_filtered(self._judge, lambda op: self._take(op, number))
        if self.setup.has_index:
            query_everything(self._judge, epoch_ms, lambda op: self._take(op, number))
        if Capability.TELLS_WHAT_IT_HOLDS not in self._lacks:
            nobody_else_opens_it.hold(self._judge.checks, self.subject.open_beside())
        stopped = self._take(Shutdown(), number)
        is_clean = isinstance(stopped, Stopped) and stopped.clean
        # Services that are turned by hand do some of their work only in time.
        turns = Capability.TURNS_SERVICES not in self._lacks
        if not (turns and Capability.HAS_CLOCK in self._lacks):
            # What the store itself holds may fill a disk on which nothing is deleted.
            status = status_of(answer) if has_room else "PUT_OK"
            healed_store_works.hold(self._judge.checks, status, is_clean)

    def _ask_for_configs(self, number: int) -> None:
        """Ask how groups and topics are configured, before anything writes it anew."""
        progress = self._judge.known.progress
        for group in sorted(progress.groups.of):
            self._take(AskBroker("group_config", group), number)
        for topic in sorted(progress.topics.changed):
            self._take(AskBroker("topic_config", topic=topic), number)

    def _ask_for_progress(self, number: int) -> None:
        """Persist the offsets of all groups, ask for each, and look at held pulls."""
        self._take(RunService("pull_request_hold"), number)
        self._take(RunService("persist_consumer_offset"), number)
        for key in self._judge.known.progress.in_files():
            self._take(QueryOffset(*key), number)

    def _deliver_all(self, number: int) -> None:
        """Let all that waits be delivered, and services catch up again."""
        deliver_everything(
            self._judge,
            lambda op: self._take(op, number),
            lambda: self._turn_until_idle("deliver_delayed", number),
        )
        if self.setup.duplicates:
            self._take(ConfirmLog(), number)  # what was delivered as well
        self._catch_up(number)
        self._judge.judge_all_delivered(self.subject.positions())
        self._take(RunService("persist_delay_offset"), number)

    def _make_room(self, number: int) -> None:
        """Free the disk; if what the store has fills it, let that expire and go."""
        self._take(FillDisk(0), number)
        if not self.setup.cleans:
            self._take(Restart(), number)  # the cleaner alone sees that there is room
            return
        self._turn_until_idle("flush_commit_log", number)
        self._turn_until_idle("reput", number)
        hours = self.configured.reserved_hours + HEALING_HOURS
        self._take(AdvanceClock(hours * HOUR_MS), number)
        self._take(DeleteManually(), number)
        self._take(RunService("clean_commit_log", HEALING_ROUNDS_MAX), number)
        self._take(RunService("clean_consume_queue", HEALING_ROUNDS_MAX), number)
        self._take(RunService("clean_commit_log"), number)

    def _catch_up(self, number: int) -> None:
        services: list[ServiceName] = [
            "flush_commit_log",
            "reput",
            "flush_consume_queue",
            "checkpoint",
        ]
        if self.configured.preallocate:
            services.insert(0, "allocate")
        if self.configured.transient_store_pool:
            services.insert(0, "commit")
        if self.setup.has_index:
            services.append("flush_index")
        busy = [name for name in services if not self._turn_until_idle(name, number)]
        self._judge.judge_caught_up(self.subject.positions(), busy)
        self._judge.judge_statistics(self.subject.statistics())

    def _turn_until_idle(self, service: ServiceName, number: int) -> bool:
        """Give a service rounds until it finds nothing to do; whether it came to it."""
        idle = 0
        for _ in range(HEALING_ROUNDS_MAX):
            if service not in AT_ONCE:  # the others do all only now and then
                self._take(AdvanceClock(THOROUGH_MS), number)
            seen = self._take(RunService(service), number)
            idle = 0 if isinstance(seen, Ran) and seen.work else idle + 1
            if idle > self._may_be_too_soon(service):
                return True
        return False

    def _may_be_too_soon(self, service: ServiceName) -> bool:
        """Whether a service may not be idle, but have done all just now, by its clock.

        So it is where the clock was set back by as much as it was moved on since.
        """
        if service != "flush_commit_log":
            return False
        stands = self.subject.positions()
        return 0 <= stands.flushed_where < stands.max_phy_offset

    def checks_of(self, law_id: str) -> int:
        """How often a law was judged so far."""
        return self._judge.checks.get(law_id, 0)

    def digest(self) -> str:
        """The digest of all observations and of the current files, in hexadecimal."""
        hasher = self._hasher.copy()
        for path, data in self.subject.files().items():
            hasher.update(f"{path} {len(data)} {crc32(data)};".encode())
        return hasher.hexdigest()

    def close(self) -> None:
        """Release the subject. Idempotent."""
        self.subject.close()
        self._stack.close()

    def record(self, outcome: Outcome) -> EpisodeRecord:
        """The episode's row; the caller knows its run, number, seed and time."""
        assert self._keeps_record, "it began in the middle"
        counts = self._counts
        return EpisodeRecord(
            run_id="",
            episode_id=0,
            scenario=self.scenario,
            subject=self.subject.name,
            mutant="",
            seed="",
            setup=_setup_text(self.setup),
            outcome=outcome.value,
            steps=len(self.ops),
            crashes=len(counts.crashes),
            recoveries=counts.recoveries,
            digest=self.digest(),
            elapsed_us=0,
            code_version="",
            op_counts=counts.op_rows,
            crash_points=counts.crashes,
            verdicts=[
                VerdictRecord(law, checks, 0, Outcome.PASSED.value)
                for law, checks in self._judge.checks.items()
            ],
            probes=counts.probe_rows,
            excuses=_excuses(self._judge),
            states=counts.state_rows,
        )


def _excuses(judge: Judge) -> list[ExcuseCount]:
    """How often each law was excused by each fact, by law and fact."""
    times = {(law, fact.label): count for (law, fact), count in judge.excused.items()}
    return [ExcuseCount(*key, times[key]) for key in sorted(times)]


@lru_cache(maxsize=256)
def _setup_text(setup: Setup) -> str:
    return json.dumps(asdict(setup))


def run_program(
    program: Program,
    scenario: str = "",
    *,
    until: int | None = None,
    keep_trace: bool = True,
    subject: Subject | None = None,
) -> EpisodeResult:
    """Run a program and judge it; a breach ends the run and is the result.

    Args:
        program: what to do; nothing else decides the result.
        scenario: its name, for the record.
        until: stop after this many ops, and do not judge the end.
        keep_trace: keep every step for a timeline.
        subject: a new store to run it on; by default our engine.

    Raises:
        SubjectLacks: the subject cannot do every op of the program.
    """
    if subject is not None:
        refuse_what_it_lacks(program, subject)
    episode = Episode(scenario, program.setup, subject=subject, keep_trace=keep_trace)
    breach: LawViolated | LawUnknown | None = None
    try:
        for op in program.ops[:until]:
            episode.step(op)
        if until is None:
            episode.finish()
    except (LawViolated, LawUnknown) as error:
        breach = error
    try:
        return _result(episode, program, breach)
    finally:
        episode.close()


def _result(
    episode: Episode,
    program: Program,
    breach: LawViolated | LawUnknown | None,
) -> EpisodeResult:
    if breach is None:
        record = episode.record(Outcome.PASSED)
        return EpisodeResult(
            Outcome.PASSED, "", -1, "", record.digest, episode.trace, record
        )
    is_violated = isinstance(breach, LawViolated)
    outcome = Outcome.VIOLATED if is_violated else Outcome.UNKNOWN
    record = episode.record(outcome)
    kind = name_of(episode.latest)
    step, op = len(program.ops), "end"
    if not episode.is_finishing:
        step, op = max(0, len(episode.ops) - 1), kind
    record.signature = f"{breach.id}-{kind}"
    record.verdicts = [v for v in record.verdicts if v.law != breach.id]
    checks = episode.checks_of(breach.id)
    record.verdicts.append(
        VerdictRecord(breach.id, checks, 1, outcome.value, step, op, str(breach))
    )
    return EpisodeResult(
        outcome, breach.id, step, str(breach), record.digest, episode.trace, record
    )
