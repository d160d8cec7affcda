"""Runs and commits one shard of a run: its rows in a file, then its manifest.

The rows are written to a temporary file, synced and renamed; then the manifest, which
commits them, in the same way. So after a crash at any point the shard is there
completely or not at all; a file of rows without a manifest is no shard. An executor
imports this module, and no JVM.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crashmq.reports import careful
from crashmq.reports.arrow import table_of
from crashmq.reports.files import changing, replacing
from crashmq.reports.places import Place, Remote, is_there
from crashmq.reports.records import EpisodeRecord, Shard
from crashmq.reports.run_dir import EPISODES_DIR, MANIFESTS_DIR, name_of
from crashmq.reports.sums import PASSED, VIOLATED, manifest_of
from crashmq.reports.task import Task


@dataclass(frozen=True, slots=True)
class ShardResult:
    """The summary of a shard for the driver; everything else stays in its files."""

    first_episode: int
    episodes: int
    violated: int


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a session; it counts episodes and violations of ended shards."""

    episodes: int
    violated: int
    elapsed_s: float


def write_shard(
    task: Task, shard: Shard, out: Place, *, again: bool = False, session: str = ""
) -> ShardResult:
    """Run one shard and commit it, durably.

    Running it again replaces its files by others that differ only in timings.

    Args:
        task: the work of the run.
        shard: which of its episodes.
        out: the run's directory, begun already.
        again: whether a process has died running it.
        session: the name of the session that runs it.

    Raises:
        CannotWrite: the disk is full, say; the shard is not there then.
        ValueError: the task returned another number of rows than the shard has.
    """
    notes = careful.notes_of(out, shard)
    if again or is_there(notes):
        with changing(out):
            notes.parent.mkdir(exist_ok=True)
        rows = list(careful.rows_of(task, shard, notes, session))
    else:
        rows = list(task.run_shard(shard))
    if len(rows) != shard.episodes:
        raise ValueError(
            f"the shard of run {task.run_id} from episode {shard.first_episode} on has "
            f"{shard.episodes} episodes and its task gave {len(rows)} rows; an episode "
            f"must give exactly one."
        )
    # Rows that a report has to read are a row group of their own.
    failed = [row for row in rows if row.outcome != PASSED]
    passed = [row for row in rows if row.outcome == PASSED]
    groups = [table_of(some, EpisodeRecord) for some in (failed, passed) if some]
    write_groups(out / EPISODES_DIR / name_of(shard), groups)
    manifest = manifest_of(task.run_id, shard, pa.concat_tables(groups))
    write_groups(out / MANIFESTS_DIR / name_of(shard), [manifest])
    with changing(notes.parent):
        notes.unlink(missing_ok=True)
    violated = sum(row.outcome == VIOLATED for row in failed)
    return ShardResult(shard.first_episode, len(rows), violated)


def hand_over(staged: Path, shard: Shard, out: Remote) -> None:
    """Copy a shard committed in a directory of this machine to its remote place.

    Raises:
        CannotWrite: it could not be copied, and is not there.
    """
    for kind in (EPISODES_DIR, MANIFESTS_DIR):
        file = staged / kind / name_of(shard)
        (out / kind / name_of(shard)).write_bytes(file.read_bytes())
        file.unlink()


def write_groups(path: Place, groups: Iterable[pa.Table]) -> None:
    """Write tables as a Parquet file, a row group each, atomically and durably.

    Raises:
        CannotWrite: the disk is full, say; the file is not there then.
    """
    if isinstance(path, Remote):
        sink = pa.BufferOutputStream()
        _write_parquet(sink, groups)
        path.write_bytes(sink.getvalue())
        return
    with replacing(path) as temporary:
        _write_parquet(temporary, groups)


def _write_parquet(where: Any, groups: Iterable[pa.Table]) -> None:
    waiting = iter(groups)
    first = next(waiting)
    with pq.ParquetWriter(where, first.schema, compression="zstd") as writer:
        for table in chain([first], waiting):
            writer.write_table(table)
