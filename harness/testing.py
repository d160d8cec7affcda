"""What people write their own tests with; imported as ``crashmq.testing``.

Programs and their ops, the store's laws, the machines of our scenarios, a strategy of
whole programs, and ``StoreRules``: a state machine of Hypothesis to which one adds
rules, with bundles as one likes; each op that a rule does is judged by every law.
docs/testing.md shows each of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import strategies as st

from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.harness.episodes.timeline import timeline
from crashmq.harness.searches.machine import Recorder, StoreMachine
from crashmq.harness.subjects.subject import Subject
from crashmq.models.files.store_image import StoreImage, read_store
from crashmq.models.observations import Observation
from crashmq.models.ops import EVERYTHING, Capability, Op
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.strategies import HypothesisChance
from crashmq.scenarios.programs.workload import program_by


def holds(
    program: Program,
    *,
    scenario: str = "",
    subject: Callable[[Setup], Subject] | None = None,
) -> EpisodeResult:
    """Run a program; every law must hold.

    Args:
        program: what to do.
        scenario: its name, for the timeline.
        subject: makes the store to run it on; by default our engine.

    Raises:
        AssertionError: a law was broken, or could not be judged; it has the timeline.
    """
    store = subject(program.setup) if subject else None
    result = run_program(program, scenario, subject=store)
    if result.outcome is not Outcome.PASSED:
        raise AssertionError(timeline(result))
    return result


def programs(
    scenario: str | Scenario, can: frozenset[Capability] = EVERYTHING
) -> st.SearchStrategy[Program]:
    """Programs of a scenario, as a strategy of Hypothesis.

    Args:
        scenario: one of ours by its name, or one's own.
        can: what the store can do that will run them.
    """
    chosen = SCENARIOS[scenario] if isinstance(scenario, str) else scenario

    @st.composite
    def drawn(draw: Any) -> Program:
        return program_by(chosen, HypothesisChance(draw), can)

    return drawn()


@dataclass(frozen=True, slots=True)
class _Maker:
    """A function that makes stores."""

    make: Callable[[Setup], Subject]

    def made(self, setup: Setup) -> Subject:
        """A new store."""
        return self.make(setup)


class StoreRules(StoreMachine):
    """A store to write rules about: derive from it, and let each rule ``do`` ops.

    What a rule does is judged at once, the end when the test case is over. ``store``
    is the setup; ``make`` makes another store than our engine.
    """

    store: ClassVar[Setup] = Setup()
    make: ClassVar[Callable[[Setup], Subject] | None] = None
    scenario: ClassVar[Scenario] = SCENARIOS["clean_restart"]
    recorder: ClassVar[Recorder] = Recorder()

    def __init_subclass__(cls, **given: Any) -> None:
        """A class of rules keeps what it finds to itself."""
        super().__init_subclass__(**given)
        cls.recorder = Recorder()
        make = vars(cls).get("make")
        if make is not None:
            cls.subject = _Maker(make)

    def __init__(self) -> None:
        super().__init__()
        self.open(self.store)

    def do(self, op: Op) -> Observation:
        """Do one op, let it be judged, and return what was seen.

        Raises:
            LawViolated: a law was broken, as the law's own class.
        """
        self.step(op)
        return self.seen

    @property
    def is_up(self) -> bool:
        """Whether the store is started."""
        return self.episode is not None and self.episode.is_up

    @property
    def image(self) -> StoreImage:
        """The store's files as they are now, decoded."""
        assert self.episode is not None, "it is opened when it is made"
        return read_store(self.episode.subject.files())
