"""Hypothesis as the source of choices, for the same generator that seeds use.

A draw of Hypothesis costs about a hundred times what a choice costs, often more than
the op it decides. So many bytes are drawn at once, and each choice is a digit of the
number that they form. Zeros are the simplest choices. Failing programs are shrunk by
crashmq's own shrinker, which knows that any op can be removed.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from crashmq.models.ops import Op
from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.scenarios import Scenario
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.space import Kind, Numbers
from crashmq.scenarios.programs.workload import PHRASES

BLOCK_BYTES = 64
GUARD = 1 << 16
"""A choice is made of a number this many times as large, so that none is likelier."""

_BLOCKS = st.binary(min_size=BLOCK_BYTES, max_size=BLOCK_BYTES)


class HypothesisChance(Chance):
    """The choices of one test case; ``draw``: that of ``composite`` or of ``data``."""

    __slots__ = ("_draw", "_left", "_number")

    def __init__(self, draw: Callable[[SearchStrategy[bytes]], bytes]) -> None:
        self._draw = draw
        self._number = 0  # any of [0, _left), of which digits are taken
        self._left = 1

    def below(self, bound: int) -> int:
        """The next digit, in base ``bound``."""
        if self._left < bound * GUARD:
            self._number = int.from_bytes(self._draw(_BLOCKS), "big")
            self._left = 1 << (8 * BLOCK_BYTES)
        self._number, digit = divmod(self._number, bound)
        self._left //= bound
        return digit

    def one_in(self, count: int) -> bool:
        """True one time in ``count``; False for zeros, the simplest choice."""
        return self.below(count) == count - 1

    def number(self, of: Numbers) -> int:
        """A number, by a digit as large as the ranges, which takes few bytes."""
        return of.choose(self.below(2 * max(of.below - of.least, len(of.special))))


def phrases(
    scenario: Scenario, kind: Kind
) -> SearchStrategy[tuple[Setup, tuple[Op, ...]]]:
    """A setup of the scenario, and one phrase of a kind that its space lists."""

    @st.composite
    def phrase(draw: DrawFn) -> tuple[Setup, tuple[Op, ...]]:
        chance = HypothesisChance(draw)
        draft = Draft(scenario.space, chance.pick(scenario.setups), chance)
        PHRASES[kind](draft)
        return draft.setup, tuple(draft.ops)

    return phrase()
