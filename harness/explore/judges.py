"""Judges by number: equal numbers for judges that will say the same from here on.

To tell a judge's token takes a walk through all it knows. Nearly always it knows what
another one knew at the same place, and shares most of it; to see that takes much less.
"""

from __future__ import annotations

from collections.abc import Hashable

from harness.explore.views import Views
from harness.judging.judge import Judge
from models.plain_state import forked, is_alike, token


class Judges:
    """The numbers given so far, and of each place the newest judge there."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._newest: dict[Hashable, tuple[list[object], int]] = {}

    def number(self, judge: Judge, place: Hashable) -> int:
        """The number of a judge.

        Args:
            judge: what it knows now decides.
            place: where others that know the same are likely to have been.
        """
        state = judge.state()
        known = self._newest.get(place)
        if known is not None and is_alike(known[0], state):
            return known[1]
        number = self._views.number(token(state))
        self._newest[place] = forked(state), number
        return number
