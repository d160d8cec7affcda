"""Episodes to Arrow to one Parquet file a shard: the part of a run without Spark.

The Arrow schema is derived from the dataclasses of ``records``; columns are built one
at a time, nested ones from flat children and offsets, since a dict an episode would
cost several times as much. An executor imports this module and no JVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from crashmq.reports.files import move_into_place, shard_name, temporary_beside
from crashmq.reports.records import EpisodeRecord, Shard

_SCALARS = {int: pa.int64(), str: pa.string()}


class Task(Protocol):
    """The work of a run, as an executor gets it: picklable, and it never raises.

    ``definition`` is JSON-able and, with an episode's number, decides every row but
    for its timing.
    """

    @property
    def run_id(self) -> str:
        """The run's name, the same in every row."""

    @property
    def definition(self) -> dict[str, Any]:
        """All that decides the rows: scenarios, episodes, seed, mutant, code version.

        A kind of task may have more.
        """

    def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
        """The rows of one shard, one for each episode, by number."""


@dataclass(frozen=True, slots=True)
class ShardResult:
    """A task's result; the rows themselves stay in its file."""

    number: int
    episodes: int
    violated: int


def arrow_schema(record: type) -> pa.Schema:
    """The Arrow schema of a record class: int64, string, and lists of structs."""
    return pa.schema(list(_struct(record)))


def table_of(rows: Sequence[Any], record: type) -> pa.Table:
    """Instances of ``record`` as a table of ``arrow_schema(record)``."""
    schema = arrow_schema(record)
    return pa.Table.from_arrays(_columns(rows, schema), schema=schema)


def write_shard(task: Task, shard: Shard, episodes_dir: Path) -> ShardResult:
    """Run one shard and put its rows into its file, whole and durable.

    Running it again replaces the file by one that differs in its timings alone.

    Raises:
        ValueError: the task gave another number of rows than the shard has.
    """
    rows = list(task.run_shard(shard))
    if len(rows) != shard.episodes:
        raise ValueError(
            f"shard {shard.number} of run {task.run_id} has {shard.episodes} episodes "
            f"and its task gave {len(rows)} rows; an episode must give exactly one."
        )
    table = table_of(rows, EpisodeRecord).replace_schema_metadata(
        {"crashmq.run_id": task.run_id, "crashmq.first": str(shard.first_episode)}
    )
    path = episodes_dir / shard_name(shard)
    temporary = temporary_beside(path)
    pq.write_table(table, temporary, compression="zstd")
    move_into_place(temporary, path)
    violated = sum(row.outcome == "violated" for row in rows)
    return ShardResult(shard.number, len(rows), violated)


def _struct(record: type) -> pa.StructType:
    hints = get_type_hints(record)
    members = [(field.name, _type(hints[field.name])) for field in fields(record)]
    return pa.struct([pa.field(name, kind, nullable=False) for name, kind in members])


def _type(hint: Any) -> pa.DataType:
    if get_origin(hint) is list:
        (item,) = get_args(hint)
        return pa.list_(pa.field("element", _struct(item), nullable=False))
    assert hint in _SCALARS, hint
    return _SCALARS[hint]


def _columns(rows: Sequence[Any], members: Iterable[pa.Field]) -> list[pa.Array]:
    return [_column(list(map(attrgetter(m.name), rows)), m.type) for m in members]


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_list(kind):
        return pa.array(values, type=kind)
    offsets = pa.array(accumulate(map(len, values), initial=0), type=pa.int32())
    items = [item for value in values for item in value]
    members = list(kind.value_type)
    flat = pa.StructArray.from_arrays(_columns(items, members), fields=members)
    return pa.ListArray.from_arrays(offsets, flat, type=kind)
