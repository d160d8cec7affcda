"""The API for users' own tests; imported as ``crashmq.testing``.

It has programs and their ops, the store's laws, the state machines of the scenarios, a
strategy of programs, and ``StoreRules``: a Hypothesis state machine to which users add
rules and bundles; each op that a rule runs is judged by every law. docs/testing.md has
an example of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from hypothesis import strategies as st

from crashmq.harness.episodes.episode import EpisodeResult
from crashmq.harness.episodes.running import runner_of
from crashmq.harness.episodes.timeline import timeline
from crashmq.harness.searches.machine import Recorder, StoreMachine
from crashmq.harness.subjects.named import FactorySubject
from crashmq.harness.subjects.subject import Subject, capabilities_of
from crashmq.models.files.store_image import StoreImage, read_store
from crashmq.models.observations import Observation
from crashmq.models.ops import EVERYTHING, Capability, Op, needs
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
    subject: Callable[..., Subject] | None = None,
) -> EpisodeResult:
    """Run a program and check that every law holds.

    Args:
        program: what to run.
        scenario: its name, for the timeline.
        subject: makes the store to run it on, of the setup or of nothing; by default
            crashmq's engine.

    Raises:
        AssertionError: a law was violated or could not be judged; with the timeline.
    """
    run = runner_of(FactorySubject(subject) if subject else None)
    result = run(program, scenario)
    if result.outcome is not Outcome.PASSED:
        raise AssertionError(timeline(result))
    return result


def programs(
    scenario: str | Scenario, can: frozenset[Capability] = EVERYTHING
) -> st.SearchStrategy[Program]:
    """A Hypothesis strategy of a scenario's programs.

    Args:
        scenario: the name of one of crashmq's scenarios, or a user's own.
        can: the capabilities of the store that will run them.
    """
    chosen = SCENARIOS[scenario] if isinstance(scenario, str) else scenario

    @st.composite
    def drawn(draw: Any) -> Program:
        return program_by(chosen, HypothesisChance(draw), can)

    return drawn()


class StoreRules(StoreMachine):
    """A state machine with a store: derive from it, and let each rule ``do`` ops.

    Each op is judged at once, and the end when the test case is over. ``store`` is the
    setup; ``make`` makes another store than crashmq's engine, of the setup or of
    nothing.
    """

    store: ClassVar[Setup] = Setup()
    make: ClassVar[Callable[..., Subject] | None] = None
    scenario: ClassVar[Scenario] = SCENARIOS["clean_restart"]
    recorder: ClassVar[Recorder] = Recorder()

    def __init_subclass__(cls, **given: Any) -> None:
        """Give each derived class its own record of failures."""
        super().__init_subclass__(**given)
        cls.recorder = Recorder()
        make = vars(cls).get("make")
        if make is not None:
            cls.subject = FactorySubject(make)

    def __init__(self) -> None:
        super().__init__()
        self.open(self.store)

    def do(self, op: Op) -> Observation:
        """Run one op, judge it, and return its observation.

        Raises:
            LawViolated: a law was violated, as the law's own class.
        """
        assert self.episode is not None, "it is opened when it is made"
        self.step(op)
        if not needs(op) <= capabilities_of(self.episode.subject):
            self.taken.pop()  # skipped; a program may not ask for it
        return self.seen

    @property
    def is_up(self) -> bool:
        """Whether the store is started."""
        return self.episode is not None and self.episode.is_up

    @property
    def image(self) -> StoreImage:
        """The store's files as they are now, decoded."""
        assert self.episode is not None, "it is opened when it is made"
        levels = self.episode.setup.delay_levels
        return read_store(self.episode.subject.files(), None, levels)
