"""What a run runs, as its executors get it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from crashmq.reports.records import EpisodeRecord, Shard


class Task(Protocol):
    """The work of a run, as an executor gets it: picklable, and it never raises.

    ``definition`` is JSON-able and, with an episode's number, decides every row but
    for its timing.
    """

    @property
    def run_id(self) -> str:
        """The run's name, the same in every row."""

    @property
    def definition(self) -> dict[str, Any]:
        """All that decides the rows: scenarios, seed, mutant, code version.

        A kind of task may have more. How many episodes there are is not in it.
        """

    def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
        """The rows of one shard, one for each episode, by number."""

    def lost(self, number: int, how: str) -> EpisodeRecord:
        """The row of an episode that cannot be run: ``how`` is its outcome."""
