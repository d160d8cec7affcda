"""The aggregates of a run, computed without Spark: sums, digest, distinct failures.

They are computed from the manifests, and from the rows of episodes that did not pass. A
run of format 1 has no manifests, so they are computed from its rows each time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crashmq.reports.arrow import arrow_schema, lists_since
from crashmq.reports.errors import NotARun
from crashmq.reports.figures import Finding
from crashmq.reports.files import RUN_FORMAT, read_run_file
from crashmq.reports.places import Place, listed, source_of
from crashmq.reports.records import EpisodeRecord, Shard, ShardRecord, signature_of
from crashmq.reports.run_dir import EPISODES_DIR, MANIFESTS_DIR, committed, name_of
from crashmq.reports.sums import PASSED, SUMS, added_up, manifest_of, rows_of, summed

_OF_A_FINDING = (
    *("outcome", "scenario", "subject", "mutant", "seed", "setup"),
    *("program", "digest", "episode_id", "steps", "events"),
)
_TELLING = ["signature", "outcome", "scenario", "steps", "episode_id"]


class Aggregates(Protocol):
    """The aggregates of a run; one implementation is local, one uses Spark."""

    def sums(self) -> Mapping[str, list[Any]]:
        """Instances of ``SUMS[name]`` by name, sorted by their texts."""

    def digest(self) -> str:
        """Sum of the SHA-256 of every episode's observations; "" without an episode."""

    def findings(self) -> list[Finding]:
        """One row for each distinct failure: its smallest episode, and their numbers.

        Failures are distinguished by ``signature_of`` their rows.
        """


class LocalAggregates:
    """A run aggregated in this process, a few hundred manifests at a time."""

    def __init__(self, out: Place) -> None:
        """Read the manifests of the run in ``out``.

        Raises:
            NotARun: ``out`` has no run, or a damaged file.
        """
        self._digests: list[str] = []
        self._with_failures: list[Place] = []
        self._sums = summed(self._heard(out))

    def sums(self) -> Mapping[str, list[Any]]:
        """See ``Aggregates``."""
        return {name: rows_of(self._sums[name], SUMS[name]) for name in SUMS}

    def digest(self) -> str:
        """See ``Aggregates``."""
        return added_up(self._digests) if self._digests else ""

    def findings(self) -> list[Finding]:
        """See ``Aggregates``."""
        smallest: dict[str, tuple[int, int, Place]] = {}
        times: dict[str, Counter[str]] = {}
        for path in self._with_failures:
            for row in _rows(path, _TELLING, pc.field("outcome") != PASSED):
                signature = signature_of(
                    row["outcome"], row["signature"], row["scenario"]
                )
                times.setdefault(signature, Counter())[row["scenario"]] += 1
                found = (row["steps"], row["episode_id"], path)
                smallest[signature] = min(smallest.get(signature, found), found)
        return [
            _finding(signature, _row(path, number), times[signature])
            for signature, (_, number, path) in smallest.items()
        ]

    def _heard(self, out: Place) -> Iterator[pa.Table]:
        for path, manifest in manifests(out):
            self._digests += manifest["digest"].to_pylist()
            if pc.sum(manifest["failed"]).as_py():
                self._with_failures.append(path)
            yield manifest


def manifests(out: Place) -> Iterator[tuple[Place, pa.Table]]:
    """The manifests of a run, each with the file of its rows.

    Raises:
        NotARun: ``out`` has no run, or a damaged file.
    """
    run = read_run_file(out)
    if run["format"] != RUN_FORMAT:
        for path in row_files(out):
            yield path, manifest_from_rows(run["run_id"], path)
        return
    for shard in committed(out):
        yield out / EPISODES_DIR / name_of(shard), manifest_at(out, shard)


def manifest_at(out: Place, shard: Shard) -> pa.Table:
    """The manifest of a shard.

    Raises:
        NotARun: it cannot be read.
    """
    path = out / MANIFESTS_DIR / name_of(shard)
    return table_at(path, arrow_schema(ShardRecord))


def row_files(out: Place) -> list[Place]:
    """The files of a run's rows, in the order of its episodes.

    Raises:
        NotARun: no run was written to ``out``.
    """
    directory = out / EPISODES_DIR
    if read_run_file(out)["format"] == RUN_FORMAT:
        return [directory / name_of(shard) for shard in committed(out)]
    return listed(directory, "[!.]*.parquet")


def manifest_from_rows(run_id: str, path: Place) -> pa.Table:
    """The manifest computed from a file of rows.

    Raises:
        NotARun: the file cannot be read.
    """
    rows = table_at(path, arrow_schema(EpisodeRecord))
    first = pc.min(rows["episode_id"]).as_py() or 0
    return manifest_of(run_id, Shard(first, rows.num_rows), rows)


def table_at(path: Place, schema: pa.Schema) -> pa.Table:
    """A file of a run as a table of this schema.

    Lists that an older version did not write are empty.

    Raises:
        NotARun: it cannot be read, or is damaged.
        EnvironmentMissing: the object store does not answer.
    """

    def parse(source: Any) -> pa.Table:
        table = pq.ParquetFile(source).read(use_threads=False)
        for name in lists_since(schema):
            if name not in table.column_names:
                empty = pa.array([[]] * table.num_rows, schema.field(name).type)
                table = table.append_column(name, empty)
        return table.select(schema.names).cast(schema)

    return _parsed(path, parse)


def size_of(path: Place) -> int:
    """The size of a file of a run, in bytes.

    Raises:
        NotARun: it is not there, or cannot be looked at.
    """
    try:
        return path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from None


def _rows(path: Place, columns: Sequence[str], which: Any) -> list[dict[str, Any]]:
    """The rows of a file that match ``which``; row groups without any are skipped."""

    def parse(source: Any) -> pa.Table:
        return pq.read_table(source, columns=list(columns), filters=which)

    rows: list[dict[str, Any]] = _parsed(path, parse).to_pylist()
    return rows


def _row(path: Place, number: int) -> dict[str, Any]:
    schema = arrow_schema(EpisodeRecord)
    names = [name for name in schema.names if name not in lists_since(schema)]
    (row,) = _rows(path, names, pc.field("episode_id") == number)
    return row


def _finding(
    signature: str, row: Mapping[str, Any], times: Mapping[str, int]
) -> Finding:
    broken = [each for each in row["verdicts"] if each["outcome"] != PASSED]
    told = min(
        ((each["step"], each["law"], each["op"], each["message"]) for each in broken),
        default=(-1, "", "", ""),
    )
    values: dict[str, Any] = {name: row[name] for name in _OF_A_FINDING}
    values |= zip(("step", "law", "op", "message"), told, strict=True)
    return Finding(signature=signature, scenarios=dict(sorted(times.items())), **values)


def _parsed(path: Place, parse: Callable[[Any], pa.Table]) -> pa.Table:
    """The table in a file of a run; ``parse`` is given the file, or its bytes.

    An object store that fails amid a file looks like a file that is damaged. So the
    file is read whole then, which tells them apart.
    """
    try:
        return parse(source_of(path))
    except (OSError, pa.ArrowException, KeyError) as error:
        if isinstance(path, Path) or isinstance(error, FileNotFoundError):
            raise _unreadable(path, error) from None
    try:
        return parse(pa.BufferReader(path.read_bytes()))
    except (OSError, pa.ArrowException, KeyError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Place, error: Exception) -> NotARun:
    """Why a file of a run is of no use, and what to do; a damaged one is removed."""
    if isinstance(error, FileNotFoundError):
        return NotARun(
            f"{path} is not there, and a manifest of its name says that it is; remove "
            f"the manifest, and give the soak's command again: it makes what is "
            f"missing."
        )
    if isinstance(error, OSError) and error.errno:
        return NotARun(
            f"{path} cannot be read ({os.strerror(error.errno)}); see to that, and "
            f"give the same command again."
        )
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    return NotARun(
        f"{path} cannot be read ({why[:200]}); remove it and the manifest of its name, "
        f"and give the soak's command again: it makes what is missing."
    )
