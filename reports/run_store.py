"""A run on its way to disk and back: shards fanned out, rows read again.

One row of a small frame is one shard; the task that gets it runs the episodes and
writes the shard's file itself. So a file is whole or absent, no committer of Spark is
between, and a run that was cut short has lost only the shards in flight.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import Accumulator, SparkContext
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the field's name for it

from crashmq.reports.errors import EnvironmentMissing
from crashmq.reports.files import (
    EPISODES_DIR,
    FINISHED_FILE,
    RUN_FILE,
    RUN_FORMAT,
    check_output,
    read_run_file,
    shard_name,
    write_declared,
    write_json,
)
from crashmq.reports.records import Declared, EpisodeRecord, Shard
from crashmq.reports.shards import ShardResult as _Result
from crashmq.reports.shards import Task, arrow_schema, table_of, write_shard

_POLL_S = 0.5
_TYPES = {pa.int64(): "BIGINT", pa.string(): "STRING"}


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is. Episodes and violations are counted as their shard ends."""

    shards: int
    shards_done: int
    shards_active: int
    shards_failed: int
    episodes: int
    episodes_done: int
    violations: int
    elapsed_s: float


def write_run(
    session: SparkSession,
    task: Task,
    shards: Sequence[Shard],
    out: Path,
    progress: Callable[[RunProgress], None],
    *,
    declared: Declared,
) -> None:
    """Run every shard of ``task`` on the executors and keep all rows in ``out``.

    ``progress`` is called from this thread, every half second and once at the end.

    Raises:
        OutputExists: ``out`` holds something; nothing was written.
        EnvironmentMissing: executors wrote their shards where ``out`` is not.
    """
    out = out.absolute()
    check_output(out)
    (out / EPISODES_DIR).mkdir(parents=True)
    write_json(out / RUN_FILE, _run_file(task, shards))
    write_declared(out, declared)
    started = time.monotonic()
    watch = _Watch(session.sparkContext, f"crashmq {task.run_id}", shards, progress)
    watch.until_done(lambda: _fan_out(session, task, shards, out, watch))
    _see_that_all_are_there(shards, out)
    elapsed_s = round(time.monotonic() - started, 3)
    write_json(out / FINISHED_FILE, {"elapsed_s": elapsed_s})


def read_run(session: SparkSession, out: Path) -> DataFrame:
    """The rows of a run, whole or cut short: the columns of ``EpisodeRecord``.

    A list that an older version did not keep yet is empty.

    Raises:
        NotARun: no run was written to ``out``.
    """
    read_run_file(out)
    # Spark takes a path for a pattern; a directory may be named like one.
    path = re.sub(r"([][{}*?\\])", r"\\\1", str(out.absolute() / EPISODES_DIR))
    schema = ", ".join(_ddl(member, " ") for member in arrow_schema(EpisodeRecord))
    rows = session.read.schema(schema).parquet(f"file://{path}")
    return rows.withColumn("excuses", F.coalesce("excuses", F.array()))


class _Watch:
    """One job of Spark, seen from outside while it runs in a thread of its own."""

    def __init__(
        self,
        context: SparkContext,
        group: str,
        shards: Sequence[Shard],
        progress: Callable[[RunProgress], None],
    ) -> None:
        self._context = context
        self._group = group
        self._shards = len(shards)
        self._episodes = sum(shard.episodes for shard in shards)
        self._progress = progress
        self._started = time.monotonic()
        self.episodes_done: Accumulator[int] = context.accumulator(0)
        self.violations: Accumulator[int] = context.accumulator(0)

    def until_done(self, job: Callable[[], None]) -> None:
        """Run ``job`` to its end and raise what it raised; an interrupt cancels it."""
        with ThreadPoolExecutor(1, "crashmq-run") as threads:
            running = threads.submit(self._in_group, job)
            try:
                while wait([running], _POLL_S).not_done:
                    self._progress(self._now())
            finally:
                self._cancel(running)
        running.result()
        self._progress(self._now())

    def _in_group(self, job: Callable[[], None]) -> None:
        self._context.setJobGroup(self._group, self._group, interruptOnCancel=True)
        job()

    def _cancel(self, running: Future[None]) -> None:
        if not running.done():
            self._context.cancelJobGroup(self._group)

    def _now(self) -> RunProgress:
        done = active = failed = 0
        tracker = self._context.statusTracker()
        for job in tracker.getJobIdsForGroup(self._group):
            info = tracker.getJobInfo(job)
            for stage_id in info.stageIds if info else []:
                if stage := tracker.getStageInfo(stage_id):
                    done += stage.numCompletedTasks
                    active += stage.numActiveTasks
                    failed += stage.numFailedTasks
        return RunProgress(
            shards=self._shards,
            shards_done=done,
            shards_active=active,
            shards_failed=failed,
            episodes=self._episodes,
            episodes_done=self.episodes_done.value,
            violations=self.violations.value,
            elapsed_s=time.monotonic() - self._started,
        )


def _fan_out(
    session: SparkSession, task: Task, shards: Sequence[Shard], out: Path, watch: _Watch
) -> None:
    if not shards:
        return
    wanted, episodes_dir = list(shards), out / EPISODES_DIR
    episodes_done, violations = watch.episodes_done, watch.violations

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                result = write_shard(task, wanted[index], episodes_dir)
                episodes_done.add(result.episodes)
                violations.add(result.violated)
                yield from table_of([result], _Result).to_batches()

    rows = session.range(0, len(wanted), 1, len(wanted))
    schema = ", ".join(_ddl(member, " ") for member in arrow_schema(_Result))
    done = rows.mapInArrow(run, schema)
    try:
        done.write.format("noop").mode("overwrite").save()
    except PythonException as error:
        raise _told(error) from None


def _told(error: PythonException) -> Exception:
    """``error`` itself, unless it says that executors lack what this process has."""
    missing = re.search(r"ModuleNotFoundError: No module named '([^']+)'", str(error))
    if missing is None:
        return error
    return EnvironmentMissing(
        f"the Python of Spark's executors has no module {missing[1]}: install crashmq "
        f"there as it is here, or leave --master out to run on this machine."
    )


def _run_file(task: Task, shards: Sequence[Shard]) -> dict[str, object]:
    return {
        "format": RUN_FORMAT,
        "run_id": task.run_id,
        "shards": len(shards),
        "episodes": sum(shard.episodes for shard in shards),
        "definition": task.definition,
    }


def _see_that_all_are_there(shards: Sequence[Shard], out: Path) -> None:
    there = {path.name for path in (out / EPISODES_DIR).iterdir()}
    missing = [shard_name(shard) for shard in shards if shard_name(shard) not in there]
    if missing:
        raise EnvironmentMissing(
            f"{len(missing)} of {len(shards)} shards are not in {out / EPISODES_DIR}, "
            f"first {missing[0]}: the executors write to another file system; give "
            f"--out a directory that all of them share."
        )


def _ddl(member: pa.Field, between: str) -> str:
    return f"{member.name}{between}{_ddl_type(member.type)}"


def _ddl_type(kind: pa.DataType) -> str:
    if not pa.types.is_list(kind):
        return _TYPES[kind]
    inner = ", ".join(_ddl(member, ": ") for member in kind.value_type)
    return f"ARRAY<STRUCT<{inner}>>"
