"""What runs the shards of a soak, and sums a run up: processes, or Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from crashmq.harness.commands.sparked import spark_session
from crashmq.reports.masters import ATTEMPTS
from crashmq.reports.places import Place


@dataclass(frozen=True, slots=True)
class Runner:
    """``run`` runs the missing shards of a run; ``summed`` aggregates a run."""

    run: Callable[..., None]
    summed: Callable[[Place], Any]


@contextmanager
def runner(
    out: Place, master: str | None, workers: int | None, *, local: bool
) -> Iterator[Runner]:
    """Processes of this machine, or Spark, which is stopped at the end."""
    if local:
        from crashmq.harness.searches.shards_here import run_here
        from crashmq.reports.aggregates import LocalAggregates

        yield Runner(partial(run_here, workers=workers), LocalAggregates)
        return
    from crashmq.reports.run_store import run_on_spark
    from crashmq.reports.spark_aggregates import SparkAggregates

    here = f"local[{workers},{ATTEMPTS}]" if workers else None
    with spark_session(here or master, out) as session:
        yield Runner(partial(run_on_spark, session), partial(SparkAggregates, session))
