"""State machines: Hypothesis drives a scenario, rule by rule.

A rule writes a *phrase* and steps it, and nothing else; ``Episode.step`` runs the ops
and asks the laws. A phrase is a few ops that belong together, such as a crash with the
restarts that recover from it. Seeded programs are made of the same phrases. All phrases
of a program share one draft, so that later ones know what earlier ones stored. Every op
is legal in every state, so no rule needs a precondition. Failures are shrunk by
``harness.failures.shrink``, not by Hypothesis; ``machine_search`` runs a machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
)
from hypothesis.strategies import DataObject, data

from crashmq.harness.episodes.episode import Episode
from crashmq.harness.explore.sample import sample
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.harness.searches.search_settings import search_settings
from crashmq.harness.subjects.named import MakesSubjects, NamedSubject
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.observations import Observation, Skipped
from crashmq.models.ops import EVERYTHING, Capability, Op
from crashmq.models.program import Program, Setup
from crashmq.scenarios.catalogue.scenarios import SCENARIOS, Scenario
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.restricting import within
from crashmq.scenarios.programs.space import Kind
from crashmq.scenarios.programs.strategies import HypothesisChance
from crashmq.scenarios.programs.workload import first_ops, rules_of, write_one_of

NOTHING = Skipped("there was no op")


@dataclass(frozen=True, slots=True)
class FoundFailure:
    """A program with which a machine violated a law.

    Attributes:
        step: number of the op at which the law was violated; the number of ops if only
            the end of the episode showed it.
        subject: what made the store; None for our engine.
    """

    scenario: str
    program: Program
    violated: str
    message: str
    step: int
    subject: MakesSubjects | None = None


@dataclass(slots=True)
class Recorder:
    """The newest failing program of each law, and how much was run.

    ``starts`` counts starts that were judged, ``probes`` hits by name. Hypothesis runs
    a failure once more to report it; so if it shrinks, the newest program is the shrunk
    one.
    """

    failures: dict[str, FoundFailure] = field(default_factory=dict)
    episodes: int = 0
    starts: int = 0
    probes: Counter[str] = field(default_factory=Counter)
    progress: Callable[[int], None] | None = None

    def add(self, episode: Episode) -> None:
        """Count a finished episode, and report the number to ``progress``."""
        self.episodes += 1
        self.starts += episode.starts
        self.probes.update(episode.probes)
        if self.progress is not None:
            self.progress(self.episodes)


class StoreMachine(RuleBasedStateMachine):
    """One episode, driven by rules; ``machine_for`` adds the rules of a scenario."""

    scenario: ClassVar[Scenario]
    recorder: ClassVar[Recorder]
    explore: ClassVar[int] = 0
    """How many crash states of a history that violated no law are tried."""
    subject: ClassVar[MakesSubjects | None] = None
    """The store that is driven; None for our engine."""

    def __init__(self) -> None:
        super().__init__()
        self.episode: Episode | None = None
        self.draft: Draft | None = None
        self.setup = Setup()
        self.taken: list[Op] = []
        self.seen: Observation = NOTHING
        self.failed = False

    def open(self, setup: Setup) -> None:
        """Begin the episode on one store and disk."""
        self.setup = setup
        subject = self.subject.made(setup) if self.subject else None
        name = self.scenario.name
        self.episode = Episode(name, setup, subject=subject, keep_trace=False)

    def take(self, *kinds: Kind) -> None:
        """Write a phrase of one of these kinds, and step its ops."""
        assert self.draft is not None, "the initialize rule runs before any other"
        self.step(*write_one_of(kinds, self.draft))

    def step(self, *ops: Op) -> None:
        """Run and judge each op; ``seen`` becomes the observation of the last one."""
        assert self.episode is not None, "the initialize rule runs before any other"
        INTERRUPTS.heed()  # Hypothesis has callbacks out of which none is raised
        for op in ops:
            self.taken.append(op)
            try:
                self.seen = self.episode.step(op)
            except (LawViolated, LawUnknown) as breach:
                self._record(breach, len(self.taken) - 1)
                raise
            except KeyboardInterrupt:
                self.failed = True  # halfway through an op there is no end to judge
                raise

    def teardown(self) -> None:
        """Judge the end of an episode that violated no law, and close it."""
        if self.episode is None:
            return
        try:
            if not self.failed:
                self.episode.finish()
                self._try_crashes()
        except (LawViolated, LawUnknown) as breach:
            self._record(breach, len(self.taken))
            raise
        finally:
            self.recorder.add(self.episode)
            self.episode.close()

    def _try_crashes(self) -> None:
        """Try a few crashes of the history; raise if one violates a law."""
        if not self.explore:
            return
        program = Program(self.setup, tuple(self.taken))
        found = sample(program, self.scenario.name, self.explore)
        if found is None:
            return
        self.taken = list(found.program.ops)
        crashed = Episode(self.scenario.name, self.setup, keep_trace=False)
        try:
            for op in self.taken:
                crashed.step(op)
            crashed.finish()
        finally:
            crashed.close()

    def _record(self, breach: LawViolated | LawUnknown, step: int) -> None:
        self.failed = True
        self.recorder.failures[breach.id] = FoundFailure(
            scenario=self.scenario.name,
            program=Program(self.setup, tuple(self.taken)),
            violated=breach.id,
            message=str(breach),
            step=step,
            subject=self.subject,
        )


def machine_for(
    asked: str | Scenario,
    recorder: Recorder | None = None,
    explore: int = 0,
    subject: NamedSubject | None = None,
) -> type[StoreMachine]:
    """The state machine of a scenario; its ``TestCase`` is for unittest and pytest.

    Args:
        asked: a scenario, or the name of one of the catalogue.
        recorder: where failing programs go; by default the class has its own.
        explore: how many crash states of each history are tried.
        subject: the store to drive, with what it can do of the scenario; by default
            our engine.

    Raises:
        KeyError: there is no such scenario.
        ValueError: the subject can do nothing of the scenario.
    """
    scenario = SCENARIOS[asked] if isinstance(asked, str) else asked
    can = subject.can if subject else EVERYTHING
    space = scenario.space if can == EVERYTHING else within(scenario.space, can)
    words = [*scenario.name.split("_"), "machine"]
    machine: type[StoreMachine] = type(
        "".join(word.capitalize() for word in words),
        (StoreMachine,),
        {
            "__doc__": f"A store in which {scenario.sentence}.",
            "scenario": scenario,
            "recorder": recorder or Recorder(),
            "explore": explore,
            "subject": subject,
            "begin": _beginning(scenario, can),
            **{name: _taking(name, kinds) for name, kinds in rules_of(space).items()},
        },
    )
    steps = scenario.machine_steps
    machine.TestCase.settings = search_settings("dev", steps=steps, shrinks=False)
    return machine


def _beginning(scenario: Scenario, can: frozenset[Capability]) -> object:
    """The rule that runs first: it opens a store and puts some messages."""

    def begin(self: StoreMachine, source: DataObject) -> None:
        chance = HypothesisChance(source.draw)
        space, setup = scenario.drawn(chance)
        if can != EVERYTHING:
            space = within(space, can)
        self.draft = Draft(space, setup, chance, can)
        self.open(self.draft.setup)
        self.step(*first_ops(self.draft))
        self.take("burst")

    return initialize(source=data())(begin)


def _taking(name: str, kinds: tuple[Kind, ...]) -> object:
    """A rule called ``name`` that writes and steps a phrase of one of these kinds."""

    def take(self: StoreMachine) -> None:
        self.take(*kinds)

    take.__name__ = take.__qualname__ = name
    return rule()(take)
