"""Numbers judges: equal numbers for judges that will give the same verdicts.

A judge's token takes a walk through all it knows. Nearly always it knows the same as
another judge at the same place and shares most of it; that check is much cheaper.
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
            judge: the judge; its present knowledge decides.
            place: where judges with the same knowledge are likely to have been.
        """
        state = judge.state()
        known = self._newest.get(place)
        if known is not None and is_alike(known[0], state):
            return known[1]
        number = self._state_keys.number(token(state))
        self._newest[place] = forked(state), number
        return number
