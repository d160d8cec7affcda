"""Search turns: which scenario, and which of its programs, each turn of a hunt runs.

Every scenario has a turn, and some have several; a hunt that is aimed at changed lines
gives most turns to the scenarios that run them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Literal

from crashmq.harness.disk.hashing import mixed
from crashmq.harness.explore.schedules import together_in
from crashmq.harness.mutants.aim import ANY_OF, NO_AIM, Aim, neighbour_by
from crashmq.harness.mutants.edited_runs import first_that_runs_it, runs_edited
from crashmq.models.ops import Together, innermost
from crashmq.models.program import Program
from crashmq.scenarios.catalogue.failing import failing_for
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.searching import searched_program
from crashmq.scenarios.programs.workload import phrase_for, program_for

SliceKind = Literal["soak", "neighbours", "stops", "failures", "explore", "machine"]

EPISODES = 10
ROUND = 20  # slices from one of a hunt's rarer kinds to the next one
STOPPED = "overlaps"
SEEDS_APART = 1_000_003

SHARES = {
    "adopted_stores": 3,
    "broker_mixtures": 4,
    "clock_jumps": 3,
    "consumer_crash": 5,
    "consumer_mixtures": 3,
    "contention": 4,
    "filters": 3,
    "flush_modes": 3,
    "interleaved_deletion": 3,
    "interleavings": 3,
    "bit_rot": 5,
    "delayed": 3,
    "edited_tables": 3,
    "latent_errors": 3,
    "group_progress": 4,
    "long_polling": 2,
    "mixtures": 4,
    "offset_files": 2,
    "rebalance": 3,
    "retries": 5,
    "subscriptions": 3,
    "transient_pool": 3,
    "unmarked_stores": 4,
}
"""Turns of scenarios that have more than one: what they ask has more sides than an
episode can show, who is preempted where, which bytes of which record rot, what meets
what, what is due when, who outlives whom, what a directory may have become."""


def program_of(
    kind: SliceKind, seed: int, episode: int, aim: Aim = NO_AIM
) -> tuple[str, Program]:
    """The scenario and program of one episode of a hunt, before its damage is aimed."""
    if kind == "neighbours":
        return neighbour_by(aim, seed, episode)
    name = scenario_of_turn(episode, aim)
    return name, searched_program(SCENARIOS[name], seed, episode)


def episodes_of(number: int) -> range:
    """The numbers of the episodes of a slice of seeded programs."""
    return range(number * EPISODES, (number + 1) * EPISODES)


def explored_program(seed: int, number: int, aim: Aim = NO_AIM) -> tuple[str, Program]:
    """A scenario and its program whose first ops slice ``number`` of a hunt crashes."""
    name = scenario_of_slice(number, aim)
    return name, program_for(SCENARIOS[name], seed, number * EPISODES)


def overlapping_program(seed: int, turn: int, aim: Aim = NO_AIM) -> Program:
    """A short program of the scenario ``STOPPED`` in which two ops overlap.

    With an aim these ops run a function that the bug edits, if such a program is found;
    at each second turn the first one does, which is the one that is stopped.
    """
    space, setups = SCENARIOS[STOPPED].space, SCENARIOS[STOPPED].setups

    def drawn(number: int) -> Program:
        draw = mixed(seed * SEEDS_APART + number)
        setup = setups[draw % len(setups)]
        return Program(setup, phrase_for(space, setup, "overlap", draw))

    if not aim.is_in_code:
        return drawn(turn)

    def runs_it(program: Program) -> bool:
        if turn % 2:
            program = _with_the_stopped_op_alone(program)
        return runs_edited(program, STOPPED, together_in(program))

    return first_that_runs_it(drawn, runs_it, turn)


def _with_the_stopped_op_alone(program: Program) -> Program:
    """The program up to its overlap, of which only the first op is left."""
    at = together_in(program)
    op = innermost(program.ops[at])
    assert isinstance(op, Together), op
    alone = Together(op.ops[:1])
    return replace(program, ops=(*program.ops[:at], alone))


def failing_program(
    seed: int, turn: int, aim: Aim = NO_AIM
) -> tuple[str, Program, int]:
    """A scenario, a program, and the number of its op whose calls are to fail.

    With an aim the op runs a function that the bug edits, if such a program is found.
    """
    name = scenario_of_turn(turn, aim)

    def drawn(number: int) -> tuple[Program, int]:
        return failing_for(SCENARIOS[name], seed, number)

    if not aim.is_in_code:
        return name, *drawn(turn)
    return name, *first_that_runs_it(
        drawn, lambda one: runs_edited(one[0], name, one[1]), turn
    )


def scenario_of_slice(number: int, aim: Aim = NO_AIM) -> str:
    """The scenario of a slice of a rarer kind: each comes in turn."""
    return scenario_of_turn(number // ROUND, aim)


def scenario_of_turn(turn: int, aim: Aim = NO_AIM) -> str:
    """The scenario of a turn; some scenarios have several turns.

    With an aim, each ``ANY_OF``-th turn is as without one.
    """
    turns = _scenarios_in_turn()
    if not aim.scenarios:
        return turns[turn % len(turns)]
    if turn % ANY_OF == ANY_OF - 1:
        return turns[turn // ANY_OF % len(turns)]
    return aim.scenarios[turn % len(aim.scenarios)]


@cache
def _scenarios_in_turn() -> tuple[str, ...]:
    """Each scenario once, then again those with a larger share."""
    again = range(1, max(SHARES.values()))
    more = [name for n in again for name, share in SHARES.items() if share > n]
    return (*SCENARIOS, *more)
