"""Shrink: the smallest program that still violates the same law.

Cuts the ops after the violation, then runs of ops; replaces an op with an event by one
of the two; makes arguments simpler; and again until nothing more goes. An op is legal
in every state, so any may be cut. A program counts as failing only if it violates the
same law, so the search cannot slip to another bug, and only if a case file may hold it.
``simplify`` defines what is simpler; the caller plants the bug, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TypeAlias

from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.harness.failures.case_bounds import is_within_bounds
from crashmq.harness.failures.simplify import (
    is_op,
    simpler_everywhere,
    simpler_ops,
    simpler_setups,
    unwrapped,
    with_turns_listed,
)
from crashmq.models.observations import Put
from crashmq.models.ops import During, Op, PutMessage, Session, Together
from crashmq.models.program import Program
from crashmq.models.verdict import Outcome

_PAIRS_UP_TO = 16


class NothingToShrink(ValueError):
    """The program does not violate the law that it is said to violate."""


class ShrinkInterrupted(KeyboardInterrupt):
    """Ctrl-C while shrinking; ``so_far`` has the smallest program until then."""

    def __init__(self, so_far: ShrinkResult) -> None:
        super().__init__()
        self.so_far = so_far


@dataclass(frozen=True, slots=True)
class ShrinkResult:
    """The smallest program found, its last run with the trace, and the runs it took.

    ``exhausted``: the budget ended first, so that it may shrink further.
    """

    program: Program
    result: EpisodeResult
    runs: int
    ops_before: int
    exhausted: bool


Progress: TypeAlias = Callable[[ShrinkResult], None]
Run: TypeAlias = Callable[[Program, str], EpisodeResult]


def shrink(
    program: Program,
    scenario: str,
    law_id: str,
    *,
    budget_runs: int = 2000,
    progress: Progress | None = None,
    run: Run = run_program,
) -> ShrinkResult:
    """Shrink a program that breaks ``law_id``.

    Args:
        program: what to shrink.
        scenario: decides how a program is judged at its end.
        law_id: the law it breaks, and the only one that counts.
        budget_runs: programs to try at most.
        progress: called after each run with what has been reached so far.
        run: runs and judges a program of a scenario.

    Raises:
        NothingToShrink: the program does not violate that law here.
        ShrinkInterrupted: by Ctrl-C; it has the smallest program so far.
    """
    search = _Search(
        program, lambda tried: run(tried, scenario), law_id, budget_runs, progress
    )
    if not search.take(program):
        raise NothingToShrink(
            f"the program of {len(program.ops)} ops does not break {law_id} "
            f"here. Replay it, with the planted bug it was found with if there was "
            f"one, or take the version it was found with."
        )
    try:
        search.run()
    except KeyboardInterrupt:
        raise ShrinkInterrupted(search.reached(exhausted=True)) from None
    return search.reached(exhausted=search.runs >= budget_runs)


def cut_runs(
    best: Callable[[], tuple[Op, ...]], take: Callable[[tuple[Op, ...]], object]
) -> None:
    """Cut runs of ops, long ones first, from the end to the front.

    ``take`` is called with fewer ops than ``best`` returns; if it accepts them,
    ``best`` returns them from then on.
    """
    size = max(1, len(best()) // 2)
    while size:
        end = len(best())
        while end > 0:
            ops, start = best(), max(0, end - size)
            take(ops[:start] + ops[end:])
            end = min(start, len(best()))
        size //= 2


class _Search:
    """The best program so far and the runs it cost.

    Invariants:
        ``result`` is the run of ``best``, which breaks the law
        no program is run twice, nor more of them than the budget allows
    """

    def __init__(
        self,
        program: Program,
        run: Callable[[Program], EpisodeResult],
        law_id: str,
        budget: int,
        progress: Progress | None,
    ) -> None:
        self.best = program
        self.result: EpisodeResult | None = None
        self.runs = 0
        self._ops_before = len(program.ops)
        self._run = run
        self._law_id = law_id
        self._budget = budget
        self._progress = progress
        self._tried: set[Program] = set()
        self._is_bounded = is_within_bounds(program)

    def _check(self) -> None:
        assert self.runs == len(self._tried) <= self._budget, self.runs
        if self.result is not None:
            assert self.result.outcome is Outcome.VIOLATED, self.result.outcome
            assert self.result.law == self._law_id, self.result.law
            assert self.best in self._tried, self.best

    def run(self) -> None:
        """Run every pass, the cheapest first, until a round of them gains nothing."""
        before = None
        while before != self.best and self.runs < self._budget:
            before = self.best
            cut_runs(lambda: self.best.ops, self._take_ops)
            self._simplify_everywhere()
            self._simplify_each(unwrapped)
            self._split_each()
            self._tell_turns()
            self._simplify_each(simpler_ops)
            self._simplify_setup()
            if before == self.best:
                self._cut_pairs()
            if before == self.best:
                self._merge_puts()

    def reached(self, *, exhausted: bool) -> ShrinkResult:
        """The result so far."""
        assert self.result is not None
        return ShrinkResult(
            program=self.best,
            result=self.result,
            runs=self.runs,
            ops_before=self._ops_before,
            exhausted=exhausted,
        )

    def take(self, candidate: Program) -> bool:
        """Whether the candidate violates the law.

        If so it becomes the best one, without the ops after the step that failed.
        """
        if candidate in self._tried or self.runs >= self._budget:
            return False
        if self._is_bounded and not is_within_bounds(candidate):
            return False  # no case file could hold it
        self._tried.add(candidate)
        self.runs += 1
        result = self._run(candidate)
        is_one = result.outcome is Outcome.VIOLATED and result.law == self._law_id
        if is_one:
            self.best, self.result = candidate, result
        if self._progress and self.result:
            self._progress(self.reached(exhausted=True))
        if not is_one:
            return False
        needed = candidate.ops[: result.step + 1]
        if result.step >= 0 and len(needed) < len(candidate.ops):
            self.take(replace(candidate, ops=needed))
        return True

    def _take_ops(self, ops: tuple[Op, ...]) -> bool:
        return self.take(replace(self.best, ops=ops))

    def _cut_pairs(self) -> None:
        """Cut two ops at once: neither can go alone if it needs the other."""
        again = len(self.best.ops) <= _PAIRS_UP_TO
        while again:
            ops = self.best.ops
            again = any(
                self._take_ops(ops[:i] + ops[i + 1 : j] + ops[j + 1 :])
                for i, j in combinations(range(len(ops)), 2)
            )

    def _merge_puts(self) -> None:
        """Replace two puts by one as long, so that later records stay in place."""
        again = True
        while again:
            ops, sizes = self.best.ops, self._sizes()
            again = any(
                self._take_ops((*ops[:i], *ops[i + 1 : j], longer, *ops[j + 1 :]))
                for i, j in pairwise(sizes)
                for kept, gone in ((j, i), (i, j))
                for longer in _longer(ops[kept], sizes[gone])
            )

    def _sizes(self) -> dict[int, int]:
        """How many bytes of the log each put took, by its number in the program."""
        assert self.result is not None
        return {
            step.number: step.observation.size
            for step in self.result.trace
            if isinstance(step.observation, Put)
            and 0 <= step.number < len(self.best.ops)
            and isinstance(self.best.ops[step.number], PutMessage)
            and step.observation.size > 0
        }

    def _simplify_everywhere(self) -> None:
        while any(self.take(program) for program in simpler_everywhere(self.best)):
            pass

    def _simplify_setup(self) -> None:
        while any(
            self.take(replace(self.best, setup=setup))
            for setup in simpler_setups(self.best.setup)
        ):
            pass

    def _split_each(self) -> None:
        """Let an op that happens during another happen before or after it."""
        for at in reversed(range(len(self.best.ops))):
            ops = self.best.ops
            match ops[at] if at < len(ops) else None:
                case During(op, _, event) if is_op(event):
                    for both in ((op, event), (event, op)):
                        if self._take_ops((*ops[:at], *both, *ops[at + 1 :])):
                            break
                case Together(parts):
                    callers = [p.ops if isinstance(p, Session) else (p,) for p in parts]
                    for order in (sum(callers, ()), sum(callers[::-1], ())):
                        if self._take_ops((*ops[:at], *order, *ops[at + 1 :])):
                            break

    def _tell_turns(self) -> None:
        """Replace drawn schedules by the list of their preemptions."""
        assert self.result is not None
        for step in self.result.trace:
            ops = self.best.ops
            if 0 <= step.number < len(ops) and step.turns:
                told = with_turns_listed(ops[step.number], step.turns)
                if told != ops[step.number] and is_op(told):
                    at = step.number
                    self._take_ops((*ops[:at], told, *ops[at + 1 :]))

    def _simplify_each(self, variants: Callable[[Op], Iterator[Op]]) -> None:
        """Try variants of each op, the last op first, while they violate the law."""
        for at in reversed(range(len(self.best.ops))):
            while at < len(self.best.ops) and self._simplify_one(at, variants):
                pass

    def _simplify_one(self, at: int, variants: Callable[[Op], Iterator[Op]]) -> bool:
        ops = self.best.ops
        return any(
            self._take_ops((*ops[:at], simpler, *ops[at + 1 :]))
            for simpler in variants(ops[at])
        )


def _longer(op: Op, by: int) -> Iterator[Op]:
    """A put whose body is longer by so many bytes."""
    assert isinstance(op, PutMessage)
    yield replace(op, body_size=op.body_size + by)
