"""Counts over the records of a soak, as the gate needs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from crashmq.harness.searches.soak import SoakTask
from crashmq.models.verdict import Outcome
from crashmq.reports.records import EpisodeRecord, Shard, signature_of


@dataclass(slots=True)
class Tally:
    """Counts over records, and the first record of each distinct failure."""

    episodes: int = 0
    steps: int = 0
    crashes: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    checks: dict[str, int] = field(default_factory=dict)  # by law
    excuses: dict[tuple[str, str], int] = field(default_factory=dict)  # by law, fact
    probes: dict[str, int] = field(default_factory=dict)  # hits by name
    failures: dict[str, EpisodeRecord] = field(default_factory=dict)  # by signature

    def add(self, record: EpisodeRecord) -> None:
        """Count one record."""
        self.episodes += 1
        self.steps += record.steps
        self.crashes += record.crashes
        self.outcomes[record.outcome] = self.outcomes.get(record.outcome, 0) + 1
        for verdict in record.verdicts:
            law = verdict.law
            self.checks[law] = self.checks.get(law, 0) + verdict.checks
        for excuse in record.excuses:
            key = (excuse.law, excuse.fact)
            self.excuses[key] = self.excuses.get(key, 0) + excuse.times
        for hit in record.probes:
            self.probes[hit.probe] = self.probes.get(hit.probe, 0) + hit.hits
        if record.outcome != Outcome.PASSED.value:
            signature = signature_of(record.outcome, record.signature, record.scenario)
            self.failures.setdefault(signature, record)

    @property
    def violated(self) -> int:
        """Episodes in which a law was violated."""
        return self.outcomes.get(Outcome.VIOLATED.value, 0)

    @property
    def unjudged(self) -> int:
        """Episodes that neither passed nor violated a law."""
        return self.episodes - self.violated - self.outcomes.get("passed", 0)


def tallied(task: SoakTask, episodes: int) -> Iterator[Tally]:
    """Run the first episodes in child processes; yield the tally after each."""
    tally = Tally()
    for record in task.run_shard(Shard(0, episodes)):
        tally.add(record)
        yield tally
