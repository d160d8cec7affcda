"""Soak: runs many numbered episodes and makes a record of each, however it ends.

``SoakTask`` is the frozen and picklable definition of a run: together with an episode's
number it decides the record, except for the timing. A shard runs in supervised child
processes, so an episode that hangs or kills its process has a record too. Every
hundredth episode of a scenario is run twice and must give the same digest (DET-1).
``reports`` spreads shards over executors and evaluates the records.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.harness.explore.sample import sample
from crashmq.harness.guards.invariants import invariants_checked
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.harness.searches.aiming import aimed_until_lost, perhaps_aimed
from crashmq.harness.searches.episode_rows import (
    event_of,
    judge_determinism,
    row_of_lost,
    text_of,
)
from crashmq.harness.searches.supervised import Lost, supervised
from crashmq.harness.subjects.named import (
    NamedSubject,
    import_also_from,
    paths_of_the_user,
    subject_named,
)
from crashmq.models.ops import EVERYTHING
from crashmq.models.program import Program
from crashmq.models.verdict import Outcome
from crashmq.reports.records import (
    EpisodeRecord,
    Shard,
)
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.searching import searched_program

RECHECKED_EVERY = 100
EPISODE_TIMEOUT_S = 60.0
HANGS_MAX = 5  # of a shard; after that, little patience
LITTLE_PATIENCE = 1 / 30
LITTLE_PATIENCE_MIN_S = 1.0  # or what is merely slow would be lost, too
GROWTH_MAX = 256 * 1024 * 1024  # of a shard's child

_PACKAGES = ("engine", "models", "scenarios", "harness")


@dataclass(frozen=True, slots=True)
class SoakTask:
    """One run of any length.

    Episode n is of scenario n modulo their number; its program follows from (seed, n).

    Attributes:
        run_id: a hash of all the rest; make a task with ``define``.
        mutant: id of the bug planted while episodes run; "" for the clean engine.
        code_version: a hash of the source text, since another engine may give other
            digests.
        episode_timeout_s: processor time after which an episode is killed, with the
            outcome ``timeout``; shorter in a shard in which many were.
        explore: how many crash states of each passed episode are tried too.
        invariants: whether classes that list invariants have them checked.
        subject: the store that is judged, by its name in ``harness.subjects.named``; ""
            for our engine.
        imported_from: where the driver finds the subject's module; an executor has
            another current directory, and looks there too.
    """

    run_id: str
    scenarios: tuple[str, ...]
    seed: int
    mutant: str
    code_version: str
    episode_timeout_s: float = EPISODE_TIMEOUT_S
    explore: int = 0
    invariants: bool = False
    subject: str = ""
    imported_from: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def define(
        cls,
        scenarios: tuple[str, ...],
        seed: int,
        mutant: str = "",
        explore: int = 0,
        *,
        invariants: bool = False,
    ) -> Self:
        """The task of these scenarios, named by a hash of all that decides it."""
        task = cls(
            "",
            scenarios,
            seed,
            mutant,
            code_version(),
            explore=explore,
            invariants=invariants,
        )
        return task._named()

    def judging(self, subject: str) -> Self:
        """The same task for another store, by its name; "" for our engine."""
        paths = paths_of_the_user() if subject else ()
        return replace(self, subject=subject, imported_from=paths)._named()

    def _named(self) -> Self:
        text = json.dumps(self.definition, sort_keys=True)
        run_id = hashlib.sha256(text.encode()).hexdigest()[:12]
        return replace(self, run_id=run_id)

    @property
    def definition(self) -> dict[str, Any]:
        """All that decides the records, as JSON values."""
        explored = {"explore": self.explore} if self.explore else {}
        checked = {"invariants": True} if self.invariants else {}
        of_whom = {"subject": self.subject} if self.subject else {}
        return {
            **explored,
            **checked,
            **of_whom,
            "scenarios": list(self.scenarios),
            "seed": self.seed,
            "mutant": self.mutant,
            "code_version": self.code_version,
            "episode_timeout_s": self.episode_timeout_s,
        }

    def scenario_of(self, number: int) -> str:
        """The scenario of an episode."""
        return self.scenarios[number % len(self.scenarios)]

    def program_of(self, number: int) -> Program:
        """The program of an episode, before its damage is aimed."""
        scenario = SCENARIOS[self.scenario_of(number)]
        named = self._store()
        can = named.can if named else EVERYTHING
        return searched_program(scenario, self.seed, number, can)

    def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
        """Yield one record for each episode, by number, however the episode ends."""
        number, hung, patience_s = shard.first_episode, 0, self.episode_timeout_s
        while number < shard.end:
            numbers = range(number, shard.end)
            for row in supervised(
                self.run_episode, numbers, patience_s, self._planted, GROWTH_MAX
            ):
                number += 1
                yield self._lost(row, patience_s) if isinstance(row, Lost) else row
                hung += isinstance(row, Lost) and row.how == "timeout"
                if hung == HANGS_MAX:
                    little_s = self.episode_timeout_s * LITTLE_PATIENCE
                    little_s = max(LITTLE_PATIENCE_MIN_S, little_s)
                    hung, patience_s = 0, min(self.episode_timeout_s, little_s)
                    break

    def lost(self, number: int, how: str) -> EpisodeRecord:
        """The record of an episode that must not be run again; ``how`` says why."""
        return self._record_of(self.program_of(number), Lost(number, how))

    def run_episode(self, number: int) -> EpisodeRecord:
        """Run and judge one episode in this process; the caller plants the bug."""
        scenario = self.scenario_of(number)
        program = self.program_of(number)
        if not self.subject:  # where ours has something to be damaged
            program = perhaps_aimed(program, self.seed, number)
        started = time.perf_counter_ns()
        result = self._run(program, scenario, keep_trace=False)
        if self.explore and result.outcome is Outcome.PASSED:
            found = sample(program, scenario, self.explore, number)
            if found is not None:
                program = found.program
                result = run_program(program, scenario, keep_trace=False)
        elapsed_ns = time.perf_counter_ns() - started
        record = result.record
        round_number = number // len(self.scenarios)
        if result.outcome is not Outcome.PASSED or round_number % RECHECKED_EVERY == 0:
            again = self._run(program, scenario, keep_trace=True)
            record.events = [event_of(step) for step in again.trace]
            judge_determinism(record, result, again, program)
        if record.outcome != Outcome.PASSED.value:
            record.program = text_of(program)
        record.elapsed_us = elapsed_ns // 1000
        return self._signed(record, number)

    def _run(
        self, program: Program, scenario: str, *, keep_trace: bool
    ) -> EpisodeResult:
        named = self._store()
        subject = named.made(program.setup) if named else None
        return run_program(program, scenario, keep_trace=keep_trace, subject=subject)

    def _store(self) -> NamedSubject | None:
        import_also_from(self.imported_from)
        return subject_named(self.subject)

    @contextmanager
    def _planted(self) -> Iterator[None]:
        bug = applied(MUTANTS[self.mutant]) if self.mutant else nullcontext()
        with bug, invariants_checked(enabled=self.invariants):
            yield

    def _signed(self, record: EpisodeRecord, number: int) -> EpisodeRecord:
        record.run_id = self.run_id
        record.episode_id = number
        record.seed = str(self.seed)
        record.mutant = self.mutant
        record.subject = self.subject or record.subject
        record.code_version = self.code_version
        return record

    def _lost(self, lost: Lost, timeout_s: float) -> EpisodeRecord:
        """The record of an episode whose process ended, hung, or raised."""
        number, planted = lost.number, self._planted
        drawn = self.program_of(number)
        if not self.subject:
            drawn = aimed_until_lost(drawn, self.seed, number, planted, timeout_s)
        return self._record_of(drawn, lost)

    def _record_of(self, drawn: Program, lost: Lost) -> EpisodeRecord:
        record = row_of_lost(self.scenario_of(lost.number), drawn, lost)
        return self._signed(record, lost.number)


@cache
def code_version() -> str:
    """A hash of the source text of all that decides an episode."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
