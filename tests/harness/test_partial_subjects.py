"""Our own engine, seen through part of its capabilities: no law cries wolf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.judging.asking import askable
from crashmq.harness.subjects.capabilities import TellsCounts, TellsPositions
from crashmq.harness.subjects.child_store import ChildStore
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.harness.subjects.subject import (
    CORE_METHODS,
    METHODS,
    PROTOCOLS,
    SubjectLacks,
    capabilities_of,
    whole,
    with_snapshots,
)
from crashmq.models.files.store_image import decode_record
from crashmq.models.knowledge.facts import CAPABILITIES, HOLDS, Fact
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import Observation, Pulled
from crashmq.models.ops import EVERYTHING, SERVICE_NAMES, Capability
from crashmq.models.program import Setup
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

ROUNDS = 40
# Its verbs wait inside a runtime that only ``run`` provides.
REMOVABLE = [{one} for one in Capability if one is not Capability.RUNS_SEVERAL]


class Partial:
    """A ``PythonStore`` of which only some capabilities are to be seen."""

    name = "partial"

    def __init__(self, setup: Setup, can: frozenset[Capability]) -> None:
        self._store = PythonStore(setup)
        self._can = can
        names = [name for one in can for name in METHODS[one]]
        for name in (*CORE_METHODS, *names):
            if name not in vars(Partial):
                setattr(self, name, getattr(self._store, name))

    @property
    def is_up(self) -> bool:
        return self._store.is_up

    def start(self) -> Observation:
        return self._run(self._store.start)

    def shutdown(self) -> Observation:
        self._serve()
        return self._run(self._store.shutdown)

    def put(self, message: MessageToPut) -> Observation:
        return self._run(lambda: self._store.put(message))

    def pull(
        self, topic: str, queue_id: int, queue_offset: int, max_msg_nums: int, tags: str
    ) -> Observation:
        self._serve()
        seen = self._store.pull(topic, queue_id, queue_offset, max_msg_nums, tags)
        if Capability.STORES_AS_ROCKETMQ in self._can or not isinstance(seen, Pulled):
            return seen
        bodies = [bytes(decode_record(data).body) for data in seen.messages]
        return replace(seen, messages=tuple(bodies))

    def advance_clock(self, ms: int) -> Observation:
        seen = self._store.advance_clock(ms)
        self._serve()
        return seen

    def kill(self) -> None:
        self._store.kill()

    def files(self) -> Mapping[str, bytes]:
        return self._store.files()

    def close(self) -> None:
        self._store.close()

    def _run(self, verb: Callable[[], Observation]) -> Observation:
        """The engine's verbs wait inside a runtime; who ``RunsSeveral`` enters it."""
        runs = Capability.RUNS_SEVERAL in self._can
        return verb() if runs else self._store.run(verb)

    def _serve(self) -> None:
        """Give services their rounds, where nobody else turns them."""
        if Capability.TURNS_SERVICES not in self._can and self.is_up:
            for service in (*SERVICE_NAMES, *SERVICE_NAMES):  # some wait for others
                self._store.run_service(service, ROUNDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "lacks",
    [
        *REMOVABLE,
        {Capability.STORES_AS_ROCKETMQ, Capability.TELLS_POSITIONS},
        EVERYTHING - {Capability.STORES_AS_ROCKETMQ},
        EVERYTHING - {Capability.TELLS_POSITIONS},
        EVERYTHING,
    ],
    ids=lambda lacks: "-".join(sorted(one.name for one in lacks)[:2]).lower(),
)
def test_no_law_fires_of_an_engine_that_shows_less(
    lacks: set[Capability], deep: bool
) -> None:
    can = EVERYTHING - lacks
    scenarios = [one for one in SCENARIOS.values() if one.needs <= can]
    judged = 0
    for number in range(400 if deep else 14):
        program = program_for(scenarios[number % len(scenarios)], 7, number, can)
        buffers = program.setup.transient_store_pool
        if buffers and Capability.STORES_AS_ROCKETMQ in lacks:
            continue  # a kill takes from its buffers what it has acknowledged
        if program.setup.duplicates and Capability.IS_REPLICATED in lacks:
            continue  # nobody tells it what its replicas have, so it dispatches nothing

        result = run_program(program, subject=Partial(program.setup, can))

        assert (result.outcome, result.message) == (Outcome.PASSED, "")
        asked = {verdict.law for verdict in result.record.verdicts}
        asked_ever = askable(can).questions.values()
        allowed = {each.question.laws for of in asked_ever for each in of}
        named = {law.id for laws in allowed for law in laws} | {"RUN-4", "REC-5"}
        assert asked <= named
        judged += 1
    assert judged > 6


def test_each_capability_is_a_protocol_with_methods_of_its_own() -> None:
    names = [name for methods in METHODS.values() for name in methods]

    assert PROTOCOLS.keys() == EVERYTHING
    assert len(names) == len(set(names))
    assert METHODS[Capability.TELLS_POSITIONS] == ("positions",)
    assert PROTOCOLS[Capability.TELLS_POSITIONS] is TellsPositions
    assert PROTOCOLS[Capability.TELLS_COUNTS] is TellsCounts


def test_a_protocol_is_named_as_its_capability() -> None:
    for capability, protocol in PROTOCOLS.items():
        plain = capability.name.replace("_", "").lower()

        assert protocol.__name__.lower() == plain


def test_a_capability_that_laws_need_has_a_fact_of_its_name() -> None:
    lets_be_tried = {
        Capability.CHANGES_CONFIG,
        Capability.MEETS_FAULTS,
        Capability.TAKES_SNAPSHOTS,
    }

    assert {*CAPABILITIES.values()} == EVERYTHING - lets_be_tried
    assert all(fact.name == one.name for fact, one in CAPABILITIES.items())
    assert HOLDS.keys() == {*Fact}


def test_our_engine_is_whole_by_itself() -> None:
    store = PythonStore(Setup())

    assert capabilities_of(store) == EVERYTHING
    assert whole(store) is store
    assert with_snapshots(store) is store
    assert askable(EVERYTHING).never == {}


def test_the_child_lacks_what_no_real_disk_gives(tmp_path: Path) -> None:
    assert EVERYTHING - capabilities_of(ChildStore(Setup(), tmp_path)) == {
        Capability.LOSES_POWER,
        Capability.RUNS_SEVERAL,
        Capability.HAS_ROOM,
        Capability.CHANGES_CONFIG,
        Capability.TRACKS_PROGRESS,
        Capability.RUNS_CONSUMERS,
        Capability.HOLDS_PULLS,
        Capability.FILTERS,
        Capability.IS_REPLICATED,
        Capability.DELIVERS_DELAYED,
        Capability.TAKES_SNAPSHOTS,
    }


def test_a_subject_without_snapshots_is_not_explored() -> None:
    subject = Partial(Setup(), EVERYTHING - {Capability.TAKES_SNAPSHOTS})

    with pytest.raises(SubjectLacks, match="cannot be explored: it lacks Takes"):
        with_snapshots(subject)


def test_of_what_a_subject_lacks_nothing_is_known() -> None:
    store = whole(Partial(Setup(), frozenset()))

    assert whole(store) is store
    assert store.positions().max_phy_offset == -1
    assert (store.now_ms(), store.disk_usage(), store.unreadable()) == (0, (0, 0), ())
    store.start()
    assert store.is_up
    store.close()
