"""Joins the many small files of a run to a few large ones with the same content.

Consecutive shards become one shard: one file of rows, with row groups of episodes that
did not pass first, and one manifest with their sums. It is committed like any shard,
and supersedes the shards in it; only then are these removed, so a crash at any point
leaves the run complete. It must not run while the run is being read; adding episodes at
the same time is safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from crashmq.reports.aggregates import manifest_at, size_of, table_at
from crashmq.reports.arrow import arrow_schema
from crashmq.reports.errors import BadRequest
from crashmq.reports.files import RUN_FORMAT, changing, read_run_file
from crashmq.reports.places import Place, listed
from crashmq.reports.records import EpisodeRecord, Shard, is_bound
from crashmq.reports.run_dir import (
    EPISODES_DIR,
    MANIFESTS_DIR,
    committed,
    name_of,
    shard_named,
)
from crashmq.reports.shards import write_groups
from crashmq.reports.sums import PASSED, manifest_of_sums

FILE_SIZE = 128 * 1024 * 1024
_GROUP_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Compacted:
    """How many files of rows there were before and after."""

    before: int
    after: int


def compact(out: Place, file_size: int = FILE_SIZE) -> Compacted:
    """Join a run's shards until their rows are about ``file_size`` bytes.

    Raises:
        NotARun: ``out`` has no run, or a file is damaged or not there.
        BadRequest: it is of format 1, which has no manifests.
        CannotWrite: the disk is full, say; the run is unchanged.
    """
    if read_run_file(out)["format"] != RUN_FORMAT:
        raise BadRequest(f"{out} holds a run of an older crashmq; it stays as it is.")
    before = committed(out)
    for shards in _together(out, before, file_size):
        if len(shards) > 1:
            _join(out, shards)
    _remove_superseded(out)
    return Compacted(len(before), len(committed(out)))


def _together(
    out: Place, shards: Iterable[Shard], file_size: int
) -> Iterator[list[Shard]]:
    """Groups of consecutive shards, each as large as a file of this size.

    A last shard that is shorter than the usual bounds stays alone: a longer run will
    replace it.
    """
    some: list[Shard] = []
    size = 0
    for shard in shards:
        own = size_of(out / EPISODES_DIR / name_of(shard))
        has_gap = bool(some) and some[-1].end != shard.first_episode
        has_gap |= not is_bound(shard.end)
        if some and (has_gap or size + own > file_size):
            yield some
            some, size = [], 0
        some.append(shard)
        size += own
    if some:
        yield some


def _join(out: Place, shards: Sequence[Shard]) -> None:
    whole = Shard(shards[0].first_episode, shards[-1].end - shards[0].first_episode)
    manifests = [manifest_at(out, shard) for shard in shards]
    write_groups(out / EPISODES_DIR / name_of(whole), _row_groups(out, shards))
    joined = manifest_of_sums(whole, manifests)
    write_groups(out / MANIFESTS_DIR / name_of(whole), [joined])


def _row_groups(out: Place, shards: Sequence[Shard]) -> Iterator[pa.Table]:
    """All rows of these shards, those that did not pass first, in groups."""
    schema = arrow_schema(EpisodeRecord)
    for is_passed in (False, True):
        some = schema.empty_table()
        for shard in shards:
            rows = table_at(out / EPISODES_DIR / name_of(shard), schema)
            mask = pc.equal(rows["outcome"], PASSED)
            rows = rows.filter(mask if is_passed else pc.invert(mask))
            some = pa.concat_tables([some, rows])
            if some.num_rows >= _GROUP_ROWS:
                yield some.combine_chunks()
                some = schema.empty_table()
        if some.num_rows:
            yield some.combine_chunks()


def _remove_superseded(out: Place) -> None:
    """Remove the files of shards that lie within a committed shard; manifests first."""
    there = committed(out)
    for kind in (MANIFESTS_DIR, EPISODES_DIR):
        for file in listed(out / kind):
            shard = shard_named(file.name)
            if shard is None or shard in there:
                continue
            if any(one.holds(shard) for one in there):
                with changing(file.parent), suppress(FileNotFoundError):
                    file.unlink()
