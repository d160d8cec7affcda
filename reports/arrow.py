"""Record classes as Arrow tables.

The schema is derived from the dataclasses of ``records``. Columns are built one at a
time, nested ones from flat children and offsets; building a dict for each episode would
cost several times as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import accumulate
from operator import attrgetter
from typing import Any, get_args, get_origin, get_type_hints

import pyarrow as pa

_ADDED = ("excuses", "states")
"""Lists that files of the first versions do not have."""

_SCALARS = {int: pa.int64(), str: pa.string()}


def arrow_schema(record: type) -> pa.Schema:
    """The Arrow schema of a record class: int64, string, and lists of structs."""
    return pa.schema(list(_struct(record)))


def lists_since(schema: pa.Schema) -> list[str]:
    """The lists of a schema that a file of an older version may lack."""
    return [name for name in _ADDED if name in schema.names]


def table_of(rows: Sequence[Any], record: type) -> pa.Table:
    """Instances of ``record`` as a table of ``arrow_schema(record)``."""
    schema = arrow_schema(record)
    return pa.Table.from_arrays(_columns(rows, schema), schema=schema)


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
