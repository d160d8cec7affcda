"""The laws that prove little, night by night: never checked, or nearly always excused.

A law that was asked in one night and not in the next says that a change of programs or
of the store took its moments away, which no failure would ever tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crashmq.reports.nights import ASKED, Night

NOT_DECLARED = "not declared"


@dataclass(frozen=True, slots=True)
class SilentLaw:
    """A law that was silent in at least one night.

    Attributes:
        states: for each night, asked, never checked, mostly excused or not declared.
        since: the first of the last nights that have the same state.
        has_changed: whether a night before these has another state.
    """

    law: str
    states: tuple[str, ...]
    since: str
    has_changed: bool

    @property
    def told(self) -> str:
        """A text about this law's state in the last night."""
        since = f"since {self.since}" if self.has_changed else "in each night"
        return f"{self.states[-1]} {since}"


def silent_laws(nights: Sequence[Night]) -> list[SilentLaw]:
    """Those that are silent in the last night, what changed last first; then others."""
    names = {law for night in nights for law in (*night.vacuous, *night.mostly_excused)}
    laws = [_followed(law, nights) for law in sorted(names)]
    at = {night.name: number for number, night in enumerate(nights)}
    spoken = (ASKED, NOT_DECLARED)
    return sorted(laws, key=lambda one: (one.states[-1] in spoken, -at[one.since]))


def _followed(law: str, nights: Sequence[Night]) -> SilentLaw:
    states = tuple(night.laws.get(law, NOT_DECLARED) for night in nights)
    first = len(states) - 1
    while first and states[first - 1] == states[-1]:
        first -= 1
    return SilentLaw(law, states, nights[first].name, has_changed=first > 0)
