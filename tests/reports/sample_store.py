"""A made-up run on disk, written without Spark or processes."""

from __future__ import annotations

from pathlib import Path

from sample_run import DECLARED, SampleTask

from crashmq.reports.arrow import table_of
from crashmq.reports.files import write_declared, write_json
from crashmq.reports.records import EpisodeRecord
from crashmq.reports.run_dir import (
    DONE,
    Session,
    begin_run,
    missing,
    new_session,
    write_session,
)
from crashmq.reports.shards import write_shard


def write_run(out: Path, task: SampleTask, episodes: int = 200) -> Path:
    """A run of so many episodes in four seconds; gone on with if it is there."""
    begin_run(out, task.run_id, task.definition, episodes, DECLARED)
    for shard in list(missing(out, episodes)):
        write_shard(task, shard, out)
    ended = Session("2026-11-24T00:00:00+00:00", "here", "crashmq soak", DONE, 4.0)
    write_session(new_session(out), ended)
    return out


def write_old_run(out: Path, task: SampleTask, episodes: int = 200) -> Path:
    """The same as the first version wrote it."""
    import pyarrow.parquet as pq

    (out / "episodes").mkdir(parents=True)
    run = {"format": 1, "run_id": task.run_id, "shards": 2, "episodes": episodes}
    write_json(out / "run.json", run | {"definition": task.definition})
    write_declared(out, DECLARED)
    half = episodes // 2
    for number, numbers in enumerate((range(half), range(half, episodes))):
        table = table_of([task.episode(n) for n in numbers], EpisodeRecord)
        pq.write_table(table, out / "episodes" / f"shard-{number:06d}.parquet")
    write_json(out / "finished.json", {"elapsed_s": 4.0})
    return out
