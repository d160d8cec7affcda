"""Compares the runs of several nights: which failures are new, known, back, resolved.

A failure is followed by its signature through the nights that could have found it:
those that ran a scenario that met it against the same store. A failure that the last
night did not find counts as resolved only if that night was long enough to find it, by
its frequency before in each of these scenarios; otherwise its state is unknown. Nothing
here reads a file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from crashmq.reports.figures import Figures, unseen_share
from crashmq.reports.summary import (
    code_of,
    falls_short,
    missed_mutant,
    mostly_excused,
    vacuous_laws,
)

# What a failure is in the last night.
NEW, KNOWN, BACK = "new", "known", "back"
RESOLVED, NOT_MET, NOT_ASKED = "resolved", "not met", "not asked"
_STATES = (NEW, BACK, KNOWN, NOT_MET, NOT_ASKED, RESOLVED)
# What a law was in a night.
ASKED, NEVER, EXCUSED = "asked", "never checked", "mostly excused"
# Below this chance to miss it, a night that does not meet a failure has resolved it.
_MISSED_BY_CHANCE = 0.01
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")

Excuse = Callable[[str, Iterable[str]], str]
Place = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Met:
    """A failure in one night, and the number of its episodes by scenario."""

    law: str
    outcome: str
    scenarios: Mapping[str, int]

    @property
    def episodes(self) -> int:
        """The number of its episodes, in all scenarios."""
        return sum(self.scenarios.values())


@dataclass(frozen=True, slots=True)
class Night:
    """One run among several; they are ordered by ``when``.

    ``scenarios`` has the number of episodes of each scenario that was asked for or ran.
    """

    name: str
    when: str
    run: Mapping[str, str]  # seed, mutant, subject, code_version, revision
    scenarios: Mapping[str, int]
    counts: Counts
    elapsed_s: float | None
    falls_short: bool  # too little was judged for a verdict
    missed_mutant: str  # that broke no law
    met: Mapping[str, Met]  # by signature
    places: Mapping[Place, int]  # how often each kind of crash was tried
    states: Mapping[str, int]  # how often starts found each kind of state
    laws: Mapping[str, str]  # asked, never checked or mostly excused

    @property
    def episodes_per_second(self) -> float | None:
        """The run's speed; None if it was interrupted."""
        return self.counts.episodes / self.elapsed_s if self.elapsed_s else None

    @property
    def vacuous(self) -> list[str]:
        """The laws that were never checked."""
        return [law for law, state in self.laws.items() if state == NEVER]

    @property
    def mostly_excused(self) -> list[str]:
        """The laws that were asked in few of the moments at which they apply."""
        return [law for law, state in self.laws.items() if state == EXCUSED]


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of a night."""

    episodes: int
    planned: int
    checks: int
    crashes: int
    violated: int
    unjudged: int
    laws_checked: int
    laws: int


@dataclass(frozen=True, slots=True)
class Followed:
    """One failure through the nights.

    Attributes:
        scenarios: those in which the last night that found it did so.
        episodes: for each night, the number of its episodes; None if the night could
            not have found it.
        excuse: the baseline's text about it, "" if no entry accepts it.
        missed_by_chance: the probability that the last night misses it if it is still
            there and as frequent as before; 0 if it was found.
    """

    signature: str
    law: str
    scenarios: tuple[str, ...]
    outcome: str
    state: str
    first_seen: str
    last_seen: str
    episodes: tuple[int | None, ...]
    excuse: str
    missed_by_chance: float

    @property
    def told(self) -> str:
        """A text about this failure's state in the last night."""
        match self.state:
            case "new":
                said = "new"
            case "known":
                said = f"known since {self.first_seen}"
            case "back":
                said = f"back, first seen {self.first_seen}"
            case "resolved":
                said = f"resolved, last seen {self.last_seen}"
            case "not met":
                chance = f"{self.missed_by_chance:.0%}"
                said = f"not met, which is chance in {chance}; seen {self.last_seen}"
            case _:
                said = f"not asked, last seen {self.last_seen}"
        return f"{said}; baseline: {self.excuse}" if self.excuse else said


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found up to one night, and what is still to be expected.

    ``unseen`` is the estimated probability that the next crash is of a kind that no
    night has tried; ``unseen_states`` that the next start finds a kind of state that
    none has found.
    """

    places: int
    unseen: float
    failures: int
    states: int
    unseen_states: float


@dataclass(frozen=True, slots=True)
class Nights:
    """Nights in order, all their failures, and the progress of discovery."""

    nights: tuple[Night, ...]
    failures: tuple[Followed, ...]
    discovery: tuple[Discovery, ...]

    @property
    def last(self) -> Night:
        """The newest night, which the report is about."""
        return self.nights[-1]

    @property
    def met(self) -> list[Followed]:
        """The failures found by the last night."""
        return [one for one in self.failures if one.state in (NEW, KNOWN, BACK)]

    @property
    def red(self) -> list[Followed]:
        """The failures of the last night that no entry of the baseline accepts."""
        return [one for one in self.met if one.outcome != "unknown" and not one.excuse]

    @property
    def resolved(self) -> list[Followed]:
        """Failures of earlier nights that are resolved in the last one."""
        return [one for one in self.failures if one.state == RESOLVED]

    @property
    def exit_code(self) -> int:
        """That of the last night; see ``code_of``."""
        return code_of(
            is_red=bool(self.red),
            falls_short=self.last.falls_short,
            is_missed=bool(self.last.missed_mutant),
        )

    @property
    def verdict(self) -> str:
        """The last night in one sentence, compared with those before it."""
        states = [one.state for one in self.failures]
        counts = [
            f"{states.count(state)} {state}" for state in _STATES if state in states
        ]
        excused = sum(bool(one.excuse) for one in self.met)
        of_them = f" ({excused} excused by the baseline)" if excused else ""
        before = len(self.nights) - 1
        beside = f"beside {before} night{'s' if before != 1 else ''} before it"
        failures = ", ".join(counts) or "no failure in any of them"
        told = f"{self.last.name}, {beside}: {failures}{of_them}."
        if self.last.falls_short:
            told += " It judged too little for a verdict."
        if missed := self.last.missed_mutant:
            told += f" MISSED: planted bug {missed} broke no law."
        return told


def date_of(name: str) -> str:
    """The date that the name of a night's directory begins with; "" without one."""
    dated = _DATE.match(name)
    return dated[0] if dated else ""


def night_of(name: str, figures: Figures, began: str = "", revision: str = "") -> Night:
    """A run as a night; ordered by the date in its directory's name, else its begin."""
    definition, laws = figures.definition, figures.laws
    checked = {row.law for row in laws if row.checks}
    places: dict[Place, int] = {}
    for point in figures.crash_points:
        kind = (point.action, point.file_kind, point.op, point.kind, point.recovery)
        places[kind] = places.get(kind, 0) + point.crashes
    named = ("seed", "mutant", "subject", "code_version")
    return Night(
        name=name,
        when=date_of(name) or began,
        run={key: str(definition.get(key, "")) for key in named}
        | {"revision": revision},
        scenarios=dict.fromkeys(figures.scenario_names, 0)
        | {each.scenario: each.episodes for each in figures.scenarios},
        counts=Counts(
            episodes=sum(each.episodes for each in figures.scenarios),
            planned=figures.run["episodes"],
            checks=sum(row.checks for row in laws),
            crashes=sum(each.crashes for each in figures.scenarios),
            violated=sum(each.violated for each in figures.scenarios),
            unjudged=sum(each.unjudged for each in figures.scenarios),
            laws_checked=len(checked),
            laws=len({row.law for row in laws}),
        ),
        elapsed_s=figures.elapsed_s,
        falls_short=falls_short(figures),
        missed_mutant=missed_mutant(figures),
        met={
            one.signature: Met(one.law, one.outcome, one.scenarios)
            for one in figures.findings
        },
        places=places,
        states=figures.found_states,
        laws=dict.fromkeys((row.law for row in laws), ASKED)
        | dict.fromkeys(mostly_excused(figures), EXCUSED)
        | dict.fromkeys(vacuous_laws(figures), NEVER),
    )


def side_by_side(nights: Sequence[Night], excuse: Excuse = lambda *_: "") -> Nights:
    """Nights ordered by ``when`` and name, with their failures followed through them.

    Args:
        nights: at least one.
        excuse: returns the baseline's text for a failure's law and scenarios; "" for
            none.
    """
    ordered = tuple(sorted(nights, key=lambda night: (night.when, night.name)))
    signatures = sorted({name for night in ordered for name in night.met})
    failures = [_followed(name, ordered, excuse) for name in signatures]
    failures.sort(key=lambda one: (_STATES.index(one.state), one.signature))
    return Nights(ordered, tuple(failures), tuple(_discovery(ordered)))


def without_earlier(nights: Nights, columns: int) -> Nights:
    """The last ``columns`` nights; failures keep only the columns of these."""
    failures = [
        replace(one, episodes=one.episodes[-columns:]) for one in nights.failures
    ]
    return Nights(
        nights.nights[-columns:], tuple(failures), nights.discovery[-columns:]
    )


def _followed(signature: str, nights: Sequence[Night], excuse: Excuse) -> Followed:
    seen = [night for night in nights if signature in night.met]
    met = seen[-1].met[signature]
    scenarios = {name for night in seen for name in night.met[signature].scenarios}
    subjects = {night.run["subject"] for night in seen}
    asked = [
        night.run["subject"] in subjects
        and any(night.scenarios.get(name) for name in scenarios)
        for night in nights
    ]
    episodes = tuple(
        (night.met[signature].episodes if signature in night.met else 0)
        if is_asked
        else None
        for night, is_asked in zip(nights, asked, strict=True)
    )
    chance = 0.0
    if episodes[-1] == 0:
        chance = _missed_by_chance(signature, [*compress(nights, asked)])
    return Followed(
        signature=signature,
        law=met.law,
        scenarios=tuple(met.scenarios),
        outcome=met.outcome,
        state=_state(episodes, chance),
        first_seen=seen[0].name,
        last_seen=seen[-1].name,
        episodes=episodes,
        excuse=excuse(met.law, met.scenarios),
        missed_by_chance=chance,
    )


def _state(episodes: Sequence[int | None], chance: float) -> str:
    *before, last = episodes
    if last is None:
        return NOT_ASKED
    asked = [times for times in before if times is not None]
    if last == 0:
        return RESOLVED if chance < _MISSED_BY_CHANCE else NOT_MET
    if not any(asked):
        return NEW
    return KNOWN if asked[-1] else BACK


def _missed_by_chance(signature: str, asked: Sequence[Night]) -> float:
    """The probability that the nights since a failure was last found all missed it.

    In each scenario it is as frequent as between the nights that found it first and
    last.
    """
    met_in = [n for n, night in enumerate(asked) if signature in night.met]
    first, last = met_in[0], met_in[-1]
    times: Counter[str] = Counter()
    for n in met_in:
        times.update(asked[n].met[signature].scenarios)
    chance = 1.0
    for scenario in sorted(times):
        sizes = [night.scenarios.get(scenario, 0) for night in asked]
        rate = min(1.0, times[scenario] / max(1, sum(sizes[first : last + 1])))
        chance *= (1 - rate) ** sum(sizes[last + 1 :])
    return chance


def _discovery(nights: Sequence[Night]) -> list[Discovery]:
    places: Counter[Place] = Counter()
    states: Counter[str] = Counter()
    failures: set[str] = set()
    found = []
    for night in nights:
        places.update(night.places)
        states.update(night.states)
        failures |= night.met.keys()
        found.append(
            Discovery(
                places=len(places),
                unseen=unseen_share(places.values()),
                failures=len(failures),
                states=len(states),
                unseen_states=unseen_share(states.values()),
            )
        )
    return found
