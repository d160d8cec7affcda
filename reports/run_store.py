"""A run's shards, spread over the executors of Spark.

A task is a shard: it runs the episodes and commits the shard itself, so that no
committer of Spark is between, and who dies has lost only the shards in flight. Tasks
come in waves, each a job of Spark, since a job of a million tasks would be slow to
begin.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow as pa
from pyspark import Accumulator, SparkContext
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from crashmq.reports.arrow import table_of
from crashmq.reports.errors import CannotWrite, EnvironmentMissing
from crashmq.reports.records import Shard
from crashmq.reports.run_dir import MANIFESTS_DIR, committed, missing, name_of
from crashmq.reports.shards import RunProgress, ShardResult, Task, write_shard
from crashmq.reports.spark_aggregates import ddl_of

_POLL_S = 0.5
_WAVE_MAX = 4_096
_SHARDS_A_CORE = 64  # of a wave; at its end the last shard is waited for


def run_on_spark(
    session: SparkSession,
    task: Task,
    out: Path,
    episodes: int,
    progress: Callable[[RunProgress], None],
    *,
    time_s: float | None = None,
) -> None:
    """Run the shards that are missing of so many episodes, and commit them in ``out``.

    ``progress`` is called from this thread, every half second and once at the end.

    Args:
        session: whose executors run shards.
        task: what is run.
        out: the run's directory, begun already; executors share it.
        episodes: how many the run shall have.
        progress: told how far it is.
        time_s: seconds after which no shard is begun; None for as long as it takes.

    Raises:
        EnvironmentMissing: executors wrote their shards where ``out`` is not.
    """
    out = out.absolute()
    until = None if time_s is None else time.time() + time_s
    cores = session.sparkContext.defaultParallelism
    watch = _Watch(session.sparkContext, f"crashmq {task.run_id}", progress)
    waiting = missing(out, episodes)
    while wave := list(islice(waiting, min(_WAVE_MAX, cores * _SHARDS_A_CORE))):
        watch.until_done(partial(_fan_out, session, task, wave, out, until, watch))
        if until is not None and time.time() >= until:
            return
        _see_that_all_are_there(wave, out)


class _Watch:
    """Jobs of Spark, seen from outside while each runs in a thread of its own."""

    def __init__(
        self,
        context: SparkContext,
        group: str,
        progress: Callable[[RunProgress], None],
    ) -> None:
        self._context = context
        self._group = group
        self._progress = progress
        self._started = time.monotonic()
        self.episodes: Accumulator[int] = context.accumulator(0)
        self.violated: Accumulator[int] = context.accumulator(0)

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
        elapsed_s = time.monotonic() - self._started
        return RunProgress(self.episodes.value, self.violated.value, elapsed_s)


def _fan_out(
    session: SparkSession,
    task: Task,
    wave: Sequence[Shard],
    out: Path,
    until: float | None,
    watch: _Watch,
) -> None:
    episodes, violated = watch.episodes, watch.violated

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                if until is not None and time.time() >= until:
                    continue
                result = write_shard(task, wave[index], out)
                episodes.add(result.episodes)
                violated.add(result.violated)
                yield from table_of([result], ShardResult).to_batches()

    rows = session.range(0, len(wave), 1, len(wave))
    done = rows.mapInArrow(run, ddl_of(ShardResult))
    try:
        done.write.format("noop").mode("overwrite").save()
    except PythonException as error:
        raise _told(error) from None


def _told(error: PythonException) -> Exception:
    """``error`` itself, unless it is one of ours, or says what executors lack."""
    text = str(error)
    if ours := re.search(r"crashmq\.reports\.errors\.CannotWrite: (.+)", text):
        return CannotWrite(ours[1])
    missing = re.search(r"ModuleNotFoundError: No module named '([^']+)'", text)
    if missing is None:
        return error
    return EnvironmentMissing(
        f"the Python of Spark's executors has no module {missing[1]}: install crashmq "
        f"there as it is here, or leave --master out to run on this machine."
    )


def _see_that_all_are_there(wave: Sequence[Shard], out: Path) -> None:
    there = set(committed(out))
    gone = [shard for shard in wave if shard not in there]
    if gone:
        raise EnvironmentMissing(
            f"{len(gone)} of {len(wave)} shards are not in {out / MANIFESTS_DIR}, "
            f"first {name_of(gone[0])}: the executors write to another file system; "
            f"give --out a directory that all of them share."
        )
