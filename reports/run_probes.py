"""Reads which probes each episode of a run hit, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from crashmq.reports.aggregates import row_files
from crashmq.reports.errors import NotARun
from crashmq.reports.files import read_run_file
from crashmq.reports.sums import PASSED

_COLUMNS = ["episode_id", "scenario", "outcome", "probes"]


def run_seed(out: Path) -> int:
    """The seed of a run on the engine without a planted bug.

    Raises:
        NotARun: ``out`` has no run, or one with a planted bug.
    """
    definition = read_run_file(out)["definition"]
    if definition["mutant"]:
        raise NotARun(
            f"{out} is a run with {definition['mutant']} planted; give one of the "
            f"clean engine."
        )
    return int(definition["seed"])


def probes_of_run(out: Path) -> Iterator[tuple[int, str, frozenset[str]]]:
    """Number, scenario and probes of each episode that passed, by number."""
    for path in row_files(out):
        for row in pq.ParquetFile(path).read(_COLUMNS).to_pylist():
            if row["outcome"] == PASSED:
                hits = frozenset(hit["probe"] for hit in row["probes"])
                yield row["episode_id"], row["scenario"], hits
