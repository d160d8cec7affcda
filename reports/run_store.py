"""Runs a run's shards on the executors of Spark.

A task is a shard: it runs the episodes and commits the shard itself, without a
committer of Spark. If a process dies, only the shards in progress are lost. Tasks come
in waves, each a Spark job, since a job of a million tasks would be slow to begin.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from itertools import islice

import pyarrow as pa
from pyspark import Accumulator, SparkContext, TaskContext
from pyspark.sql import SparkSession

from crashmq.reports.arrow import table_of
from crashmq.reports.careful import deaths_noted
from crashmq.reports.errors import EnvironmentMissing, ShardLost
from crashmq.reports.places import Place
from crashmq.reports.records import Shard
from crashmq.reports.run_dir import (
    MANIFESTS_DIR,
    Wanted,
    committed,
    lacking,
    latest_session,
    missing,
    name_of,
)
from crashmq.reports.shards import RunProgress, ShardResult, write_shard
from crashmq.reports.spark import cancel
from crashmq.reports.spark_aggregates import ddl_of
from crashmq.reports.spark_errors import in_sentences
from crashmq.reports.task import Task

_POLL_S = 0.5
_WAVE_MAX = 4_096
_SHARDS_A_CORE = 64  # of a wave; at its end the last shard is waited for


def run_on_spark(
    session: SparkSession,
    task: Task,
    out: Place,
    wanted: Wanted,
    progress: Callable[[RunProgress], None],
) -> None:
    """Run the missing shards of what is wanted of a run; commit them in ``out``.

    ``progress`` is called from this thread, every half second and once at the end.

    Args:
        session: its executors run the shards.
        task: the work of the run.
        out: the run's directory, begun already; executors share it.
        wanted: how much of the run.
        progress: the callback for the progress.

    Raises:
        CannotWrite: a disk is full, say.
        EnvironmentMissing: executors wrote their shards to another directory than
            ``out``, lack our code, or are gone.
        ShardLost: processes died running a shard, and it is unknown in which episode.
    """
    out = out.absolute()
    until = theirs = None if wanted.time_s is None else time.time() + wanted.time_s
    cores = session.sparkContext.defaultParallelism
    watch = _Watch(session.sparkContext, f"crashmq {task.run_id}", progress)
    size, came_to = min(_WAVE_MAX, cores * _SHARDS_A_CORE), (-1, -1)
    again, ours = False, latest_session(out)
    write = partial(write_shard, task, out=out, session=ours)
    while wave := list(islice(missing(out, wanted.episodes, wanted.part), size)):
        try:
            commit = partial(_committed, write, wave, theirs, again)
            watch.until_done(partial(_fan_out, session, commit, len(wave), watch))
        except ShardLost:
            before, came_to = came_to, (len(committed(out)), deaths_noted(out, ours))
            if before == came_to:
                raise
            again = True
            continue
        again = False
        if until is not None and time.time() >= until:
            return
        if theirs is not None and watch.late.value:
            # A clock there is ahead of ours, which is asked alone from here on.
            theirs, size = None, cores
        else:
            _see_that_all_are_there(wave, out)


class _Watch:
    """Runs Spark jobs in a thread of their own, and watches them from outside."""

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
        self.late: Accumulator[int] = context.accumulator(0)
        """How many shards were not begun, since their time was over."""

    def until_done(self, job: Callable[[], None]) -> None:
        """Run ``job`` to its end and raise its error; an interrupt cancels it.

        Raises:
            ReportError: the job failed for a reason that has a sentence.
        """
        with ThreadPoolExecutor(1, "crashmq-run") as threads:
            running = threads.submit(self._in_group, job)
            try:
                while wait([running], _POLL_S).not_done:
                    self._progress(self._now())
            finally:
                cancel(self._context, self._group, [running])
        running.result()
        self._progress(self._now())

    def _in_group(self, job: Callable[[], None]) -> None:
        with in_sentences():
            self._context.setJobGroup(self._group, self._group, interruptOnCancel=True)
            job()

    def _now(self) -> RunProgress:
        elapsed_s = time.monotonic() - self._started
        return RunProgress(self.episodes.value, self.violated.value, elapsed_s)


def _fan_out(
    session: SparkSession,
    commit: Callable[[int], ShardResult | None],
    tasks: int,
    watch: _Watch,
) -> None:
    episodes, violated, late = watch.episodes, watch.violated, watch.late

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for result in map(commit, batch.column("id").to_pylist()):
                if result is None:
                    late.add(1)
                    continue
                episodes.add(result.episodes)
                violated.add(result.violated)
                yield from table_of([result], ShardResult).to_batches()

    done = session.range(0, tasks, 1, tasks).mapInArrow(run, ddl_of(ShardResult))
    done.write.format("noop").mode("overwrite").save()


def _committed(
    write: Callable[..., ShardResult],
    wave: Sequence[Shard],
    until: float | None,
    again: bool,
    number: int,
) -> ShardResult | None:
    """In a task: run one shard of a wave and commit it; None after its time.

    The time is that of this machine's clock.
    """
    if until is not None and time.time() >= until:
        return None
    return write(wave[number], again=again or _is_again())


def _is_again() -> bool:
    """In a task: whether an earlier attempt at the same task died."""
    task = TaskContext.get()
    return task is not None and task.attemptNumber() > 0


def _see_that_all_are_there(wave: Sequence[Shard], out: Place) -> None:
    gone = list(lacking(out, wave))
    if gone:
        raise EnvironmentMissing(
            f"{len(gone)} of {len(wave)} shards are not in {out / MANIFESTS_DIR}, "
            f"first {name_of(gone[0])}: the executors write to another file system; "
            f"give --out a directory that all of them share."
        )
