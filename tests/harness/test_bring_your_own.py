"""A store with nothing but the core: what it is asked, and what it is found out by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from tiny_store import TinyStore

from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.harness.subjects.interpreter import Interpreter
from crashmq.harness.subjects.subject import SubjectLacks, capabilities_of
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import (
    Crashed,
    Observation,
    Pulled,
    Put,
    Refused,
    Skipped,
)
from crashmq.models.ops import (
    AdvanceClock,
    Crash,
    During,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    needs,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

CORE = capabilities_of(TinyStore())
RUNNABLE = [one for one in SCENARIOS.values() if one.needs <= CORE]
KILL = Crash("process_kill")


def programs(count: int) -> list[Program]:
    return [
        program_for(RUNNABLE[number % len(RUNNABLE)], 1, number, CORE)
        for number in range(count)
    ]


@cache
def healthy() -> tuple[EpisodeResult, ...]:
    """300 episodes of the store as it is."""
    return tuple(
        run_program(program, subject=TinyStore(), keep_trace=False)
        for program in programs(300)
    )


class Skips(TinyStore):
    """After a restart its first pull of messages passes over one."""

    def pull(
        self, topic: str, queue_id: int, queue_offset: int, max_msg_nums: int, tags: str
    ) -> Observation:
        seen = super().pull(topic, queue_id, queue_offset, max_msg_nums, tags)
        if self.starts > 1 and isinstance(seen, Pulled) and len(seen.messages) > 1:
            return replace(seen, messages=seen.messages[1:])
        return seen

    starts = 0

    def start(self) -> Observation:
        self.starts += 1
        return super().start()


class Forgets(TinyStore):
    """Each seventh message is acknowledged and not kept."""

    puts = 0

    def put(self, message: MessageToPut) -> Observation:
        self.puts += 1
        size = len(self.log)
        seen = super().put(message)
        if self.puts % 7 == 0 and isinstance(seen, Put):
            del self.log[size:]
            self.queues[message.topic, message.queue_id].pop()
        return seen


class KeepsInMemory(TinyStore):
    """What it has acknowledged last is in memory alone."""

    written = 0

    def put(self, message: MessageToPut) -> Observation:
        self.written = len(self.log)
        return super().put(message)

    def kill(self) -> None:
        if self.is_up:
            del self.log[self.written :]
        super().kill()

    def shutdown(self) -> Observation:
        self.written = len(self.log)
        return super().shutdown()


class Duplicates(TinyStore):
    """A start lists the log's last message twice."""

    def start(self) -> Observation:
        seen = super().start()
        places = [(queue[-1], queue) for queue in self.queues.values()]
        if places and not isinstance(seen, Skipped):
            at, queue = max(places)
            queue.append(at)
        return seen


class GoesOnWrongly(TinyStore):
    """A pull that returns several messages says to go on one too far."""

    def pull(
        self, topic: str, queue_id: int, queue_offset: int, max_msg_nums: int, tags: str
    ) -> Observation:
        seen = super().pull(topic, queue_id, queue_offset, max_msg_nums, tags)
        if isinstance(seen, Pulled) and len(seen.messages) > 1:
            return replace(seen, next_begin_offset=seen.next_begin_offset + 1)
        return seen


class CountsFromOne(TinyStore):
    """A put is answered with the place of the one behind it."""

    def put(self, message: MessageToPut) -> Observation:
        seen = super().put(message)
        if isinstance(seen, Put):
            return replace(seen, queue_offset=seen.queue_offset + 1)
        return seen


class GivesUp(TinyStore):
    """After a kill it does not start any more, though nothing is lost."""

    was_killed = False

    def kill(self) -> None:
        self.was_killed = self.was_killed or self.is_up
        super().kill()

    def shutdown(self) -> Observation:
        was_killed = self.was_killed
        seen = super().shutdown()
        self.was_killed = was_killed
        return seen

    def start(self) -> Observation:
        return Refused("it was killed") if self.was_killed else super().start()


class WritesWhenItRefuses(GivesUp):
    """It refuses, and drops its log."""

    def start(self) -> Observation:
        seen = super().start()
        if isinstance(seen, Refused):
            self.log.clear()
        return seen


class Raises(TinyStore):
    """It knows of no queue that has no message."""

    def pull(
        self, topic: str, queue_id: int, queue_offset: int, max_msg_nums: int, tags: str
    ) -> Observation:
        if self.is_up:
            _ = self.queues[topic, queue_id]
        return super().pull(topic, queue_id, queue_offset, max_msg_nums, tags)


def test_the_core_is_all_that_the_store_has() -> None:
    assert frozenset() == CORE
    assert {one.name for one in RUNNABLE} >= {"clean_restart", "process_kill"}


@pytest.mark.slow
def test_a_healthy_store_passes() -> None:
    results = healthy()

    assert [one.message for one in results if one.outcome is not Outcome.PASSED] == []


@pytest.mark.slow
def test_the_laws_are_asked_whose_facts_the_store_can_give() -> None:
    checks = Counter[str]()
    for result in healthy():
        for verdict in result.record.verdicts:
            checks[verdict.law] += verdict.checks

    asked = {"PUT-1", "RD-1", "RD-2", "RD-13", "REC-4", "REC-5", "RUN-1"}
    assert set(checks) == asked
    assert min(checks.values()) >= 300
    assert sum(checks.values()) > 20_000


@pytest.mark.slow
def test_the_programs_put_pull_kill_and_restart() -> None:
    done = Counter[str]()
    for result in healthy():
        for count in result.record.op_counts:
            done[f"{count.op} {count.status}"] += count.times

    assert done["PutMessage PUT_OK"] > 3000
    assert done["PullMessage FOUND"] > 100
    assert done["During Crashed"] > 300
    assert done["Restart Started"] > 500
    assert not any("Skipped" in one and "PutMessage" not in one for one in done)


def test_a_law_that_cannot_be_asked_is_counted_once_an_episode() -> None:
    excuses = {(one.law, one.fact): one.times for one in healthy()[0].record.excuses}

    assert excuses["CL-1", "stores_as_rocketmq"] == 1
    assert excuses["FL-1", "tells_positions"] == 1
    assert excuses["REC-14", "takes_damage"] == 1
    assert not any(law in ("PUT-1", "RD-1", "RD-2", "RUN-1") for law, _ in excuses)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "laws"),
    [
        (Skips, {"RD-1", "RD-2"}),
        (Forgets, {"PUT-1", "RD-2"}),
        (KeepsInMemory, {"PUT-1", "RD-2"}),
        (Duplicates, {"PUT-1", "RD-1", "RD-2"}),
        (GoesOnWrongly, {"RD-2"}),
        (CountsFromOne, {"PUT-1"}),
        (GivesUp, {"REC-4"}),
        (WritesWhenItRefuses, {"REC-4", "REC-8"}),
        (Raises, {"RUN-1"}),
    ],
)
def test_a_broken_store_is_found_out(
    broken: Callable[[], TinyStore], laws: set[str]
) -> None:
    found = Counter(
        result.law
        for program in programs(40)
        if (result := run_program(program, subject=broken())).law
    )

    assert found.keys() <= laws
    assert found.total() >= 9


def test_a_kill_amid_an_op_comes_right_after_it() -> None:
    store = TinyStore()
    ops = (PutMessage("T0", 0, 9), During(PutMessage("T0", 0, 9), 1, KILL), Restart())

    result = run_program(
        Program(Setup(), (*ops, PullMessage("T0", 0, 0))), subject=store
    )

    assert isinstance(result.trace[2].observation, Crashed)
    pulled = result.trace[4].observation
    assert isinstance(pulled, Pulled)
    assert len(pulled.messages) == 2


def test_a_program_that_the_store_cannot_run_is_refused_before_the_run() -> None:
    store = TinyStore()
    program = Program(Setup(), (PutMessage("T0", 0, 9), RunService("reput")))

    with pytest.raises(SubjectLacks, match=r"op 1 of the program, RunService, .*tiny"):
        run_program(program, subject=store)

    assert store.log == b""


def test_an_op_that_the_store_cannot_do_is_skipped_with_the_reason() -> None:
    interpreter = Interpreter(TinyStore())

    seen = interpreter.run(AdvanceClock(5), 0).seen

    assert isinstance(seen, Skipped)
    assert "HasClock (its time moves only when the harness moves it)" in seen.reason


@pytest.mark.parametrize("name", [one.name for one in RUNNABLE])
def test_what_is_drawn_for_a_store_it_can_do(name: str) -> None:
    for number in range(30):
        program = program_for(SCENARIOS[name], 3, number, CORE)

        assert all(needs(op) <= CORE for op in program.ops)
        assert len(program.ops) >= SCENARIOS[name].length[0]


def test_a_scenario_of_which_nothing_is_left_is_refused() -> None:
    only_services = replace(
        SCENARIOS["clean_restart"].space, kinds=("service",), kept=("service",)
    )
    scenario = replace(SCENARIOS["clean_restart"], space=only_services)

    assert not scenario.needs <= CORE
    with pytest.raises(ValueError, match="nothing is left of a scenario of service"):
        program_for(scenario, 1, 0, CORE)
