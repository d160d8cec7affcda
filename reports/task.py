"""The work of a run, as its executors get it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from crashmq.reports.records import EpisodeRecord, Shard


class Task(Protocol):
    """The work of a run, as an executor gets it: picklable, and it never raises.

    ``definition`` is JSON-able; together with an episode's number it decides every row,
    except timings.
    """

    @property
    def run_id(self) -> str:
        """The run's name, the same in every row."""

    @property
    def definition(self) -> dict[str, Any]:
        """Everything that decides the rows: scenarios, seed, mutant, code version.

        Some kinds of task have more. The number of episodes is not in it.
        """

    def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
        """The rows of one shard, one for each episode, by number."""

    def lost(self, number: int, how: str) -> EpisodeRecord:
        """The row of an episode that cannot be run; ``how`` is its outcome."""
