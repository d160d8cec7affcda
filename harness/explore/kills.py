"""Kills: kills the store's process in each op of a history, one op after the other.

It explores a store that is not ours, and needs only the core of a subject. If the store
reports its disk actions, it is killed at each of them; any other store only right after
each op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from crashmq.harness.episodes.episode import EpisodeResult
from crashmq.harness.episodes.running import Run
from crashmq.models.ops import Crash, During, Restart
from crashmq.models.program import Program
from crashmq.models.verdict import Outcome

KILL = Crash("process_kill")


@dataclass(slots=True)
class Kills:
    """The result of killing the store in each op of one program.

    Attributes:
        visited: runs, including the one without a kill.
        open: ops in which the store was not killed, since time was over.
        found: by law, the first run that violated it.
    """

    visited: int = 0
    open: int = 0
    found: dict[str, Program] = field(default_factory=dict)

    @property
    def is_closed(self) -> bool:
        """Whether the store was killed in each op."""
        return not self.open


def explore_kills(
    program: Program,
    scenario: str,
    is_over: Callable[[], bool] = lambda: False,
    *,
    run: Run,
) -> Kills:
    """Kill the store in each op of a program, start it again, and continue.

    Args:
        program: the history; an op with an event is killed at its end.
        scenario: the program's.
        is_over: whether time is over.
        run: runs and judges a program on the store.
    """
    seen = Kills()
    whole = run(program, scenario)
    seen.visited += 1
    _note(seen, program, whole)
    actions = {step.number: step.disk_actions for step in whole.trace}
    for number in range(len(program.ops)):
        if is_over():
            seen.open += 1
            continue
        for tried in _killed_in(program, number, actions.get(number, 0)):
            seen.visited += 1
            _note(seen, tried, run(tried, scenario))
    return seen


def _killed_in(program: Program, number: int, actions: int) -> Iterator[Program]:
    op, before, behind = (
        program.ops[number],
        program.ops[:number],
        program.ops[number + 1 :],
    )
    points = range(1, 2 if isinstance(op, During) else actions + 2)
    for at_action in points:
        killed = During(op, at_action, KILL)
        yield replace(program, ops=(*before, killed, Restart(), *behind))


def _note(seen: Kills, program: Program, result: EpisodeResult) -> None:
    if result.outcome is not Outcome.PASSED:
        seen.found.setdefault(result.law, program)
