"""Corpus: programs that reached something rare, so that their neighbours are tried.

What was reached is told by probes: a probe that few episodes hit, and two of those in
one program. ``gather`` runs seeded episodes, keeps of them as few as reach all that any
did, and cuts each down to what it takes to get there. The corpus that hunts start from
is data, ``scenarios/corpus.jsonl``; it was gathered on the clean engine, so it knows of
branches and of no bug. When generators or the engine change, gather it anew.

Source: coverage-guided fuzzing, as AFL's queue of inputs; its culling as ``afl-cmin``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

from harness.episode import run_program
from models.program import BadProgram, Program, from_json, to_short_json
from models.verdict import Outcome
from scenarios.catalogue import SCENARIOS
from scenarios.neighbours import neighbour_of
from scenarios.workload import program_for

PACKAGED = Path(__file__).resolve().parents[2] / "scenarios" / "corpus.jsonl"
RARE = 0.01  # of all episodes
KEPT_MAX = 400
CUTS_MAX = 60  # runs to cut one program down

Reached: TypeAlias = frozenset[str]
Goal: TypeAlias = tuple[str, ...]  # one rare probe, or two in one program


@dataclass(frozen=True, slots=True)
class Entry:
    """A program of a scenario, and the rare probes that it was kept for."""

    scenario: str
    program: Program
    reached: tuple[str, ...] = ()


class BadCorpus(ValueError):
    """A file is no corpus; the message says where and why."""


@cache
def packaged() -> tuple[Entry, ...]:
    """The corpus that comes with the harness."""
    return tuple(read(PACKAGED))


def neighbour(entries: Sequence[Entry], seed: int, number: int) -> tuple[str, Program]:
    """A neighbour of one of the entries: its scenario, and the program."""
    entry = entries[number % len(entries)]
    scenario = SCENARIOS[entry.scenario]
    return entry.scenario, neighbour_of(entry.program, scenario, seed, number)


def read(path: Path) -> Iterator[Entry]:
    """The entries of a corpus file, one a line.

    Raises:
        BadCorpus: a line is none.
    """
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            said = json.loads(line)
            scenario, reached = said["scenario"], tuple(said["reached"])
            entry = Entry(scenario, from_json(said["program"]), reached)
        except (ValueError, TypeError, KeyError, BadProgram) as error:
            raise BadCorpus(f"{path}:{number}: no entry of a corpus: {error}") from None
        if scenario not in SCENARIOS:
            raise BadCorpus(f"{path}:{number}: there is no scenario {scenario!r}.")
        yield entry


def written(entries: Sequence[Entry]) -> str:
    """A corpus as the text of its file."""
    lines = [
        {
            "scenario": entry.scenario,
            "reached": list(entry.reached),
            "program": to_short_json(entry.program),
        }
        for entry in entries
    ]
    return "".join([json.dumps(one, separators=(",", ":")) + "\n" for one in lines])


@dataclass(slots=True)
class Gathering:
    """Seeded episodes, and what each reached; then what is kept of them."""

    seed: int
    episodes: int

    def run(self, told: Callable[[int], None]) -> list[Reached]:
        """Run every episode; which probes each hit, none where it did not pass."""
        seen: list[Reached] = []
        for number in range(self.episodes):
            scenario, program = self.program_of(number)
            seen.append(reached_by(program, scenario))
            told(number + 1)
        return seen

    def program_of(self, number: int) -> tuple[str, Program]:
        """The scenario and the program of one episode."""
        names = tuple(SCENARIOS)
        name = names[number % len(names)]
        return name, program_for(SCENARIOS[name], self.seed, number)

    def kept(
        self, seen: Sequence[Reached], told: Callable[[int, int], None]
    ) -> list[Entry]:
        """As few programs as reach every goal that any did, each cut down."""
        entries: list[Entry] = []
        chosen = chosen_of(seen)
        for done, (number, goals) in enumerate(chosen):
            needed = frozenset(probe for goal in goals for probe in goal)
            scenario, program = self.program_of(number)
            program = cut_down(program, scenario, needed)
            entries.append(Entry(scenario, program, tuple(sorted(needed))))
            told(done + 1, len(chosen))
        return entries


def reached_by(program: Program, scenario: str) -> Reached:
    """The probes that a program hits; none if it breaks a law or cannot be judged."""
    result = run_program(program, scenario, keep_trace=False)
    if result.outcome is not Outcome.PASSED:
        return frozenset()
    return frozenset(hit.probe for hit in result.record.probes)


def chosen_of(seen: Sequence[Reached]) -> list[tuple[int, frozenset[Goal]]]:
    """Which episodes are kept, each with the goals that it alone has so far.

    The one that adds most comes first, of equals the earlier one.
    """
    counts = Counter(probe for reached in seen for probe in reached)
    rare = frozenset(p for p, count in counts.items() if count <= RARE * len(seen))
    goals = {number: _goals(reached & rare) for number, reached in enumerate(seen)}
    goals = {number: of_one for number, of_one in goals.items() if of_one}
    left = frozenset().union(*goals.values()) if goals else frozenset()
    chosen: list[tuple[int, frozenset[Goal]]] = []
    while left and len(chosen) < KEPT_MAX:
        best = max(goals, key=lambda number: (len(goals[number] & left), -number))
        chosen.append((best, goals[best] & left))
        left -= goals[best]
    return chosen


def _goals(rare: Reached) -> frozenset[Goal]:
    names = sorted(rare)
    return frozenset([*((name,) for name in names), *combinations(names, 2)])


def cut_down(program: Program, scenario: str, needed: Reached) -> Program:
    """The program without runs of ops that it does not take to hit ``needed``."""
    size, runs = max(1, len(program.ops) // 2), 0
    while size and runs < CUTS_MAX:
        end = len(program.ops)
        while end > 0 and runs < CUTS_MAX:
            start = max(0, end - size)
            ops = program.ops[:start] + program.ops[end:]
            shorter = replace(program, ops=ops)
            runs += 1
            if needed <= reached_by(shorter, scenario):
                program = shorter
            end = start
        size //= 2
    return program
