"""Schedules: runs the ops of one ``Together`` with every schedule of few preemptions.

A run is described by the switch points at which another activity ran than by default.
Runs with equal descriptions up to a point are equal up to there; so each run shows
which points can be preempted next, and a tree of runs has every schedule of at most
``bound`` preemptions once.

Source: Musuvathi and Qadeer, Iterative Context Bounding, PLDI 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from crashmq.harness.episodes.episode import Episode, EpisodeResult, run_program
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.observations import Interleaved, Interrupted, Observation
from crashmq.models.ops import During, Grain, Op, Schedule, Together, innermost
from crashmq.models.program import Program


@dataclass(slots=True)
class Schedules:
    """The result of running the schedules of one program.

    Attributes:
        bound: the most preemptions.
        visited: schedules run.
        open: known schedules that were not run, since time was over; those that would
            have followed from them are not counted.
        points: the most switch points of one run.
        found: by law, the first schedule that violated it, fewest preemptions first.
        outcomes: how often each combination of the ops' observations occurred.
    """

    bound: int
    visited: int = 0
    open: int = 0
    points: int = 0
    found: dict[str, Program] = field(default_factory=dict)
    outcomes: dict[Observation, int] = field(default_factory=dict)

    @property
    def is_closed(self) -> bool:
        """Whether every schedule with at most ``bound`` preemptions was run."""
        return not self.open


def together_in(program: Program) -> int:
    """The number of the last op whose schedules can be explored; -1 if none."""
    numbers = [n for n, op in enumerate(program.ops) if _together(op) is not None]
    return numbers[-1] if numbers else -1


def clients_in(program: Program) -> int:
    """How many ops begin at the same time in the last ``Together``; 0 without one."""
    at = together_in(program)
    together = _together(program.ops[at]) if at >= 0 else None
    return len(together.ops) if together else 0


def _together(op: Op) -> Together | None:
    inner = innermost(op)
    return inner if isinstance(inner, Together) else None


def explore_schedules(
    program: Program,
    scenario: str,
    is_over: Callable[[], bool] = lambda: False,
    *,
    bound: int = 2,
    grain: Grain = "calls",
) -> Schedules:
    """Run the last ``Together`` of a program with every schedule.

    Args:
        program: one with such ops; their own schedule is replaced.
        scenario: the program's.
        is_over: whether time is over.
        bound: the most preemptions.
        grain: at which places a preemption may be.
    """
    at = together_in(program)
    assert at >= 0, "no ops of the program begin together"
    seen = Schedules(bound)
    level: list[tuple[tuple[int, int], ...]] = [()]
    for preemptions in range(bound + 1):
        below: list[tuple[tuple[int, int], ...]] = []
        for number, told in enumerate(level):
            if is_over():
                seen.open += len(level) - number
                break
            tried = _with_schedule(program, at, Schedule(preemptions=told, grain=grain))
            done = _run(tried, scenario, at)
            seen.visited += 1
            seen.points = max(seen.points, len(done.others))
            if done.observed is not None:
                seen.outcomes[done.observed] = seen.outcomes.get(done.observed, 0) + 1
            if done.law:
                seen.found.setdefault(done.law, tried)
            elif preemptions < bound:
                below += _next(told, done.others)
        level = below
    return seen


def each_stop(
    program: Program, scenario: str, points_max: int
) -> Iterator[tuple[Program, EpisodeResult]]:
    """Stop the first op of the last ``Together`` at each of its switch points in turn.

    While it is stopped the others run to their ends, in their order. Yields for each
    run its program and result; in the last run the first op did not reach that point.
    """
    at = together_in(program)
    assert at >= 0, "no ops of the program begin together"
    for point in range(1, points_max + 1):
        stop = (point, 1)
        tried = _with_schedule(program, at, Schedule(preemptions=(stop,)))
        result = run_program(tried, scenario, until=len(tried.ops))
        yield tried, result
        taken = next((step.turns for step in result.trace if step.number == at), ())
        if stop not in taken:
            return


def _next(
    told: tuple[tuple[int, int], ...], others: Sequence[tuple[int, ...]]
) -> Iterator[tuple[tuple[int, int], ...]]:
    """The schedules with one more preemption, after those that are there."""
    first = told[-1][0] + 1 if told else 1
    for point in range(first, len(others) + 1):
        for who in others[point - 1]:
            yield (*told, (point, who))


def _with_schedule(program: Program, at: int, schedule: Schedule) -> Program:
    def changed(op: Op) -> Op:
        if isinstance(op, During):
            return replace(op, op=changed(op.op))
        assert isinstance(op, Together), op
        return replace(op, schedule=schedule)

    ops = program.ops
    return replace(program, ops=(*ops[:at], changed(ops[at]), *ops[at + 1 :]))


@dataclass(frozen=True, slots=True)
class _Run:
    """One schedule's run: what it showed, and where it could have gone otherwise.

    ``others``: at each switch point, the activities that another schedule could choose.
    """

    law: str
    observed: Observation | None
    others: Sequence[tuple[int, ...]]


def _run(program: Program, scenario: str, at: int) -> _Run:
    """Run a program, and say what became of its op ``at``."""
    law, observed = "", None
    others: Sequence[tuple[int, ...]] = ()
    episode = Episode(scenario, program.setup, keep_trace=False)
    try:
        for number, op in enumerate(program.ops):
            try:
                seen = episode.step(op)
            finally:
                if number == at and (turns := episode.interpreter.turns) is not None:
                    others = turns.others
            if number == at:
                observed = _without_turns(seen)
        episode.finish()
    except (LawViolated, LawUnknown) as breach:
        law = breach.id
    finally:
        episode.close()
    return _Run(law, observed, others)


def _without_turns(seen: Observation) -> Observation:
    """What was observed of ops that began together, whatever their schedule was."""
    while isinstance(seen, Interrupted):
        seen = seen.observation
    if isinstance(seen, Interleaved):
        return replace(seen, turns=(), points=0)
    return seen
