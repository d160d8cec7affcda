"""Sums over episodes by Arrow's kernels: a shard's manifest, and all of a run's.

A manifest is a ``ShardRecord`` as a table of one row. Each of its lists has sums,
grouped by the text fields of its class; so all lists are added in the same way, and the
result is of the same class again. No episode becomes a Python object here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc

from crashmq.reports.arrow import arrow_schema
from crashmq.reports.records import Shard, ShardRecord

PASSED, VIOLATED, UNKNOWN = "passed", "violated", "unknown"
SUMS: dict[str, type] = {
    name: get_args(hint)[0]
    for name, hint in get_type_hints(ShardRecord).items()
    if get_origin(hint) is list
}
_SEEN = ("episode_id", "scenario", "outcome", "signature", "digest")
_AT_ONCE = 256  # manifests in memory
_DIGEST_SIZE = 2**256


def keys_of(record: type) -> list[str]:
    """The fields by which the sums of this class are grouped."""
    return [member.name for member in arrow_schema(record) if _is_text(member)]


def counts_of(record: type) -> list[str]:
    """The fields that the sums of this class add up."""
    return [member.name for member in arrow_schema(record) if not _is_text(member)]


def manifest_of(run_id: str, shard: Shard, episodes: pa.Table) -> pa.Table:
    """The manifest of a shard, computed from its rows in any order."""
    values: dict[str, Any] = {
        "run_id": [run_id],
        "first_episode": [shard.first_episode],
        "episodes": [shard.episodes],
        "failed": [pc.sum(pc.not_equal(episodes["outcome"], PASSED)).as_py() or 0],
        "digest": [added_up(_digests(episodes))],
    }
    return _manifest(values, _sums_of(episodes))


def manifest_of_sums(shard: Shard, manifests: Sequence[pa.Table]) -> pa.Table:
    """The manifest of a shard, computed from the manifests of the shards in it."""
    values: dict[str, Any] = {
        "run_id": manifests[0]["run_id"].to_pylist(),
        "first_episode": [shard.first_episode],
        "episodes": [shard.episodes],
        "failed": [sum(pc.sum(each["failed"]).as_py() for each in manifests)],
        "digest": [added_up(d for m in manifests for d in m["digest"].to_pylist())],
    }
    return _manifest(values, summed(manifests))


def _manifest(values: dict[str, Any], sums: Mapping[str, pa.Table]) -> pa.Table:
    for name, table in sums.items():
        members = list(arrow_schema(SUMS[name]))
        flat = [table[each.name].combine_chunks() for each in members]
        structs = pa.StructArray.from_arrays(flat, fields=members)
        values[name] = _one_list(structs, arrow_schema(ShardRecord).field(name).type)
    return pa.table(values, schema=arrow_schema(ShardRecord))


def summed(manifests: Iterable[pa.Table]) -> dict[str, pa.Table]:
    """The sums of all manifests: a table of ``SUMS[name]`` by name, sorted."""
    sums = {name: arrow_schema(record).empty_table() for name, record in SUMS.items()}
    waiting = iter(manifests)
    while some := list(islice(waiting, _AT_ONCE)):
        for name, record in SUMS.items():
            flat = [_of(record, _flat(manifest[name])) for manifest in some]
            sums[name] = _grouped(pa.concat_tables([sums[name], *flat]), record)
    return sums


def rows_of(table: pa.Table, record: type) -> list[Any]:
    """A table's rows as instances of its record class."""
    names = [each.name for each in fields(record)]
    columns = [table[name].to_pylist() for name in names]
    return [record(*values) for values in zip(*columns, strict=True)]


def added_up(digests: Iterable[str]) -> str:
    """The sum of these digests."""
    return f"{sum(int(each, 16) for each in digests) % _DIGEST_SIZE:064x}"


def _digests(episodes: pa.Table) -> Iterator[str]:
    """A digest of each episode's program and observations, without its duration."""
    columns = [episodes[name].to_pylist() for name in _SEEN]
    for row in zip(*columns, strict=True):
        yield hashlib.sha256(" ".join(map(str, row)).encode()).hexdigest()


def _sums_of(episodes: pa.Table) -> dict[str, pa.Table]:
    sums = {
        "scenarios": _scenarios(episodes),
        "ops": _exploded(episodes, "op_counts"),
        "crash_points": _crash_points(episodes),
        "probes": _probes(episodes),
        "laws": _laws(episodes),
        "excuses": _exploded(episodes, "excuses"),
        "states": _exploded(episodes, "states"),
    }
    return {name: _grouped(table, SUMS[name]) for name, table in sums.items()}


def _scenarios(episodes: pa.Table) -> pa.Table:
    is_passed = pc.equal(episodes["outcome"], PASSED)
    is_violated = pc.equal(episodes["outcome"], VIOLATED)
    return pa.table(
        {
            name: episodes[name]
            for name in ("scenario", "steps", "crashes", "recoveries")
        }
        | {
            "episodes": _ones(episodes),
            "passed": _times(is_passed),
            "violated": _times(is_violated),
            "unjudged": _times(pc.invert(pc.or_(is_passed, is_violated))),
            "elapsed_us": episodes["elapsed_us"],
        }
    )


def _crash_points(episodes: pa.Table) -> pa.Table:
    points = _exploded(episodes, "crash_points")
    survivors = pc.extract_regex(points["survivors"], r"^(?P<kind>[A-Za-z_]*)")
    blamed = pc.equal(points["step"], points["blamed"])
    return (
        points.drop_columns(["survivors"])
        .append_column("survivors", pc.utf8_lower(pc.struct_field(survivors, "kind")))
        .append_column("crashes", _ones(points))
        .append_column("violated", _times(pc.fill_null(blamed, fill_value=False)))
    )


def _probes(episodes: pa.Table) -> pa.Table:
    hits = _exploded(episodes, "probes")
    return hits.append_column("episodes", _times(pc.greater(hits["hits"], 0)))


def _laws(episodes: pa.Table) -> pa.Table:
    verdicts = _exploded(episodes, "verdicts")
    return (
        verdicts.drop_columns(["violations"])
        .append_column("violations", _times(pc.greater(verdicts["violations"], 0)))
        .append_column("unknown", _times(pc.equal(verdicts["outcome"], UNKNOWN)))
    )


def _exploded(episodes: pa.Table, column: str) -> pa.Table:
    """A row for each item of a list, with the episode's scenario and blamed crash."""
    lists = _whole(episodes[column])
    parents = pc.list_parent_indices(lists)
    flat = _flat(episodes[column])
    if "scenario" not in flat.column_names:
        scenarios = _whole(episodes["scenario"])
        flat = flat.append_column("scenario", scenarios.take(parents))
    if column == "crash_points":
        flat = flat.append_column("blamed", _blamed(episodes).take(parents))
    return flat


def _blamed(episodes: pa.Table) -> pa.Array:
    """For each episode, the step of its last crash at or before the first violation."""
    steps: list[int | None] = [None] * episodes.num_rows
    for row, outcome in enumerate(episodes["outcome"].to_pylist()):
        if outcome == PASSED:
            continue
        verdicts = episodes["verdicts"][row].as_py()
        breaches = [each["step"] for each in verdicts if each["violations"] > 0]
        crashes = [each["step"] for each in episodes["crash_points"][row].as_py()]
        if breaches:
            before = [step for step in crashes if step <= min(breaches)]
            steps[row] = max(before, default=None)
    return pa.array(steps, pa.int64())


def _grouped(table: pa.Table, record: type) -> pa.Table:
    keys, counts = keys_of(record), counts_of(record)
    sums = table.group_by(keys, use_threads=False).aggregate(
        [(name, "sum") for name in counts]
    )
    named = {name: sums[name] for name in keys}
    named |= {name: sums[f"{name}_sum"] for name in counts}
    return _of(record, pa.table(named)).sort_by([(key, "ascending") for key in keys])


def _of(record: type, table: pa.Table) -> pa.Table:
    """A table converted to the columns and types of a record class."""
    return table.select(arrow_schema(record).names).cast(arrow_schema(record))


def _flat(lists: pa.ChunkedArray) -> pa.Table:
    """The items of lists of structs, with a column for each member."""
    items = pc.list_flatten(_whole(lists))
    names = [items.type.field(n).name for n in range(items.type.num_fields)]
    return pa.table(dict(zip(names, items.flatten(), strict=True)))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _one_list(items: pa.Array, kind: pa.DataType) -> pa.Array:
    ends = pa.array([0, len(items)], pa.int32())
    return pa.ListArray.from_arrays(ends, items, type=kind)


def _ones(table: pa.Table) -> pa.Array:
    return pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)


def _times(truths: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(truths, pa.int64())


def _is_text(member: pa.Field) -> bool:
    return bool(pa.types.is_string(member.type))
