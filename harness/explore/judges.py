"""Gives judges numbers: judges with equal numbers will give the same verdicts.

To compare judges, all that they know would have to be walked through. Nearly always a
judge knows the same as the last one at the same place, and shares most of it in memory;
checking that is much cheaper.
"""

from __future__ import annotations

from collections.abc import Hashable

from crashmq.harness.explore.state_key import StateKeys
from crashmq.harness.judging.judge import Judge
from crashmq.models.plain_state import forked, is_alike, token


class Judges:
    """The numbers given so far, and the newest judge at each place."""

    def __init__(self, state_keys: StateKeys) -> None:
        self._state_keys = state_keys
        self._newest: dict[Hashable, tuple[list[object], int]] = {}

    def number(self, judge: Judge, place: Hashable) -> int:
        """A number for what a judge knows, equal for judges that know the same.

        Args:
            judge: only its present knowledge counts.
            place: a key; judges with the same key are likely to know the same.
        """
        state = judge.state()
        known = self._newest.get(place)
        if known is not None and is_alike(known[0], state):
            return known[1]
        number = self._state_keys.number(token(state))
        self._newest[place] = forked(state), number
        return number
