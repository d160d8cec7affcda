"""The aggregates of a run, computed by Spark; equal to those of ``aggregates``.

Spark reads the manifests as one frame, and the rows of shards with failures. For a run
of format 1 the executors compute the manifests from its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the field's name for it

from crashmq.reports.aggregates import manifest_from_rows, row_files, table_at
from crashmq.reports.arrow import arrow_schema, lists_since
from crashmq.reports.figures import Finding
from crashmq.reports.files import RUN_FORMAT, read_run_file
from crashmq.reports.findings import findings
from crashmq.reports.places import Place, Remote
from crashmq.reports.records import EpisodeRecord, ShardRecord
from crashmq.reports.run_dir import EPISODES_DIR, MANIFESTS_DIR, committed, name_of
from crashmq.reports.spark_errors import in_sentences
from crashmq.reports.sums import SUMS, added_up, counts_of, keys_of

_TYPES = {pa.int64(): "BIGINT", pa.string(): "STRING"}
_TASKS_MAX = 4_096


class SparkAggregates:
    """A run aggregated by Spark; implements ``Aggregates``.

    Its methods raise a ``ReportError`` if a file is damaged, or the cluster is gone.
    """

    def __init__(self, session: SparkSession, out: Place) -> None:
        """Find the files to read.

        Raises:
            NotARun: no run was written to ``out``.
        """
        self._session = session
        self._out = out.absolute()
        with in_sentences():
            self._manifests = read_manifests(session, out).cache()

    @in_sentences()
    def sums(self) -> Mapping[str, list[Any]]:
        """See ``Aggregates``."""
        return {name: self._summed(name, record) for name, record in SUMS.items()}

    @in_sentences()
    def digest(self) -> str:
        """See ``Aggregates``."""
        digests = [row["digest"] for row in self._manifests.select("digest").collect()]
        return added_up(digests) if digests else ""

    @in_sentences()
    def findings(self) -> list[Finding]:
        """See ``Aggregates``."""
        failed = self._manifests.where(F.col("failed") > 0)
        firsts = {
            row["first_episode"] for row in failed.select("first_episode").collect()
        }
        names = [name_of(s) for s in committed(self._out) if s.first_episode in firsts]
        paths = [self._out / EPISODES_DIR / name for name in names]
        if read_run_file(self._out)["format"] != RUN_FORMAT:
            paths = row_files(self._out)
        if not paths:
            return []
        rows = findings(read_rows(self._session, paths)).collect()
        return [Finding(**row.asDict(recursive=True)) for row in rows]

    def _summed(self, name: str, record: type) -> list[Any]:
        rows = summed(self._manifests, name, record).collect()
        names = [each.name for each in fields(record)]
        return [record(*(row[each] for each in names)) for row in rows]


def summed(manifests: DataFrame, name: str, record: type) -> DataFrame:
    """The sums of one list of all manifests: the columns of ``record``, sorted."""
    keys, counts = keys_of(record), counts_of(record)
    return (
        manifests.select(F.inline(name))
        .groupBy(*keys)
        .agg(*(F.sum(each).alias(each) for each in counts))
        .orderBy(*keys)
        .select(*keys, *counts)
    )


def read_manifests(session: SparkSession, out: Place) -> DataFrame:
    """The manifests of a run: the columns of ``ShardRecord``.

    Raises:
        NotARun: no run was written to ``out``.
    """
    run = read_run_file(out)
    if run["format"] == RUN_FORMAT:
        directory = out.absolute() / MANIFESTS_DIR
        paths = [directory / name_of(shard) for shard in committed(out)]
        return _read(session, paths, ShardRecord)
    paths, run_id = row_files(out.absolute()), run["run_id"]

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                yield from manifest_from_rows(run_id, paths[index]).to_batches()

    tasks = session.range(0, len(paths), 1, max(1, min(len(paths), _TASKS_MAX)))
    return tasks.mapInArrow(count, ddl_of(ShardRecord))


def read_rows(session: SparkSession, paths: list[Place]) -> DataFrame:
    """The rows in these files: the columns of ``EpisodeRecord``.

    Columns that an older version did not write are empty lists.
    """
    return _read(session, paths, EpisodeRecord)


def ddl_of(record: type) -> str:
    """The schema of a record class in Spark's DDL."""
    return ", ".join(_ddl(member, " ") for member in arrow_schema(record))


def _read(session: SparkSession, paths: list[Place], record: type) -> DataFrame:
    if not paths:
        return session.createDataFrame([], ddl_of(record))
    if isinstance(paths[0], Remote):
        return _asked_of_arrow(session, paths, record)
    # Spark takes a path for a pattern; a directory may be named like one.
    signs = str.maketrans({sign: f"\\{sign}" for sign in "[]{}*?\\"})
    names = [f"file://{str(path).translate(signs)}" for path in paths]
    rows = session.read.schema(ddl_of(record)).parquet(*names)
    lists = {
        name: F.coalesce(name, F.array()) for name in lists_since(arrow_schema(record))
    }
    return rows.withColumns(lists)


def _asked_of_arrow(
    session: SparkSession, paths: list[Place], record: type
) -> DataFrame:
    """Files of an object store, read through Arrow."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                yield from table_at(paths[index], arrow_schema(record)).to_batches()

    tasks = session.range(0, len(paths), 1, min(len(paths), _TASKS_MAX))
    return tasks.mapInArrow(read, ddl_of(record))


def _ddl(member: pa.Field, between: str) -> str:
    return f"{member.name}{between}{_ddl_type(member.type)}"


def _ddl_type(kind: pa.DataType) -> str:
    if not pa.types.is_list(kind):
        return _TYPES[kind]
    inner = ", ".join(_ddl(member, ": ") for member in kind.value_type)
    return f"ARRAY<STRUCT<{inner}>>"
