"""Corpus: programs that reached rare branches, kept so that neighbours can be tried.

A *goal* is a probe that few episodes hit, or two such probes in one program. ``gather``
runs seeded episodes, keeps as few as possible that reach every goal that any reached,
and cuts each down to the ops that it needs. The corpus for hunts is
``scenarios/corpus.jsonl``. It was gathered on the clean engine, so it depends on
branches and on no bug. When generators or the engine change, gather it again.

Source: coverage-guided fuzzing, as AFL's queue of inputs; its culling as ``afl-cmin``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.failures.shrink import cut_runs
from crashmq.models.ops import Op
from crashmq.models.program import BadProgram, Program
from crashmq.models.program_json import from_json, to_short_json
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.neighbours import neighbour_of
from crashmq.scenarios.programs.workload import program_for

PACKAGED = Path(__file__).resolve().parents[2] / "scenarios" / "corpus.jsonl"
RARE = 0.01  # of all episodes
KEPT_MAX = 200
CUTS_MAX = 60  # runs to cut one program down

Reached: TypeAlias = frozenset[str]
Goal: TypeAlias = tuple[str, ...]  # one rare probe, or two in one program


@dataclass(frozen=True, slots=True)
class Entry:
    """A program of a scenario, and the rare probes for which it is kept."""

    scenario: str
    program: Program
    reached: tuple[str, ...] = ()


class BadCorpus(ValueError):
    """A file is not a corpus; the message says where and why."""


@cache
def packaged() -> tuple[Entry, ...]:
    """The corpus that comes with the harness."""
    return tuple(read(PACKAGED))


def neighbour(entries: Sequence[Entry], seed: int, number: int) -> tuple[str, Program]:
    """A variation of one of the entries: its scenario and program."""
    entry = entries[number % len(entries)]
    scenario = SCENARIOS[entry.scenario]
    return entry.scenario, neighbour_of(entry.program, scenario, seed, number)


def read(path: Path) -> Iterator[Entry]:
    """Yield the entries of a corpus file, which has one on each line.

    Raises:
        BadCorpus: a line is not an entry.
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


@dataclass(frozen=True, slots=True)
class Seen:
    """A seeded episode that passed, and the probes it hit."""

    scenario: str
    seed: int
    number: int
    reached: Reached

    @property
    def program(self) -> Program:
        """The episode's program, generated again."""
        return program_for(SCENARIOS[self.scenario], self.seed, self.number)


def run_episodes(
    seed: int, episodes: int, told: Callable[[int], None] = lambda _: None
) -> list[Seen]:
    """Run seeded episodes, the scenarios in turn; returns those that passed."""
    seen: list[Seen] = []
    names = tuple(SCENARIOS)
    for number in range(episodes):
        one = Seen(names[number % len(names)], seed, number, frozenset())
        reached = reached_by(one.program, one.scenario)
        if reached:
            seen.append(replace(one, reached=reached))
        told(number + 1)
    return seen


def gather(
    seen: Sequence[Seen], told: Callable[[int, int], None] = lambda _, __: None
) -> list[Entry]:
    """Find as few programs as possible that reach every goal that any reached.

    Each is cut down. An episode of an older run may have another program today: it is
    left out unless that still reaches its goals.
    """
    entries: list[Entry] = []
    chosen = chosen_of([one.reached for one in seen])
    for done, (number, goals) in enumerate(chosen):
        one = seen[number]
        needed = frozenset(probe for goal in goals for probe in goal)
        program = one.program
        if needed <= reached_by(program, one.scenario):
            program = cut_down(program, one.scenario, needed)
            entries.append(Entry(one.scenario, program, tuple(sorted(needed))))
        told(done + 1, len(chosen))
    return entries


def reached_by(program: Program, scenario: str) -> Reached:
    """The probes that a program hits; none if it violates a law or cannot be judged."""
    result = run_program(program, scenario, keep_trace=False)
    if result.outcome is not Outcome.PASSED:
        return frozenset()
    return frozenset(hit.probe for hit in result.record.probes)


def chosen_of(seen: Sequence[Reached]) -> list[tuple[int, frozenset[Goal]]]:
    """The episodes to keep, each with the goals that no earlier one has.

    First those that reach all rare probes, then those for most pairs of them. The one
    that adds most goals comes first; of equal ones, the earlier.
    """
    counts = Counter(probe for reached in seen for probe in reached)
    rare = frozenset(p for p, count in counts.items() if count <= RARE * len(seen))
    goals = {number: _goals(reached & rare) for number, reached in enumerate(seen)}
    single = {n: frozenset(g for g in gs if len(g) == 1) for n, gs in goals.items()}
    chosen: dict[int, frozenset[Goal]] = {}
    met: set[Goal] = set()
    for wanted in (single, goals):
        heap = [(-len(gs), number) for number, gs in wanted.items() if gs]
        heapify(heap)
        while heap and len(chosen) < KEPT_MAX:
            _, number = heappop(heap)
            new = wanted[number] - met
            if not new:
                continue
            if heap and (-len(new), number) > heap[0]:
                heappush(heap, (-len(new), number))  # others have come before it
                continue
            new = goals[number] - met
            chosen[number] = chosen.get(number, frozenset()) | new
            met |= new
    return list(chosen.items())


def _goals(rare: Reached) -> frozenset[Goal]:
    names = sorted(rare)
    return frozenset([*((name,) for name in names), *combinations(names, 2)])


def cut_down(program: Program, scenario: str, needed: Reached) -> Program:
    """The program without ops that it does not need to hit ``needed``."""
    ops, runs = program.ops, 0

    def take(shorter: tuple[Op, ...]) -> None:
        nonlocal ops, runs
        if runs < CUTS_MAX:
            runs += 1
            if needed <= reached_by(replace(program, ops=shorter), scenario):
                ops = shorter

    cut_runs(lambda: ops, take)
    return replace(program, ops=ops)
