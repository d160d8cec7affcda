"""SQL queries on a run: its rows and its sums as views of DuckDB, in memory.

::

    episodes     a row each, as ``EpisodeRecord``
    manifests    a row a shard, as ``ShardRecord``
    scenarios, ops, crash_points, probes, laws, excuses, states
                 the sums of the manifests, a row a shard and name

A run of format 1 has no manifests; its view of them is computed from its rows.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa
from pyarrow import dataset

from crashmq.reports.aggregates import manifests, row_files, size_of
from crashmq.reports.arrow import arrow_schema
from crashmq.reports.errors import BadRequest, NotARun
from crashmq.reports.files import read_run_file
from crashmq.reports.places import Place, Remote
from crashmq.reports.records import EpisodeRecord, ShardRecord
from crashmq.reports.sums import SUMS

_QUESTIONS = (
    duckdb.StatementType.SELECT,
    duckdb.StatementType.EXPLAIN,
    duckdb.StatementType.MULTI,  # a PIVOT, which is carried out in two steps
)
_REFUSED = (duckdb.Error, pa.ArrowException, OSError)


def answer(out: Place, question: str) -> str:
    """The result of a ``select`` on the views of a run, as a table in text.

    Raises:
        NotARun: no run was written to ``out``, or a file of it is damaged or gone.
        BadRequest: DuckDB refused the query, or met a value that it cannot convert.
    """
    read_run_file(out)
    with duckdb.connect() as connection:
        try:
            _make_views(connection, out)
        except _REFUSED as error:
            raise NotARun(
                f"{out} has a damaged file: {_first_line(error)}. Run its soak again "
                f"in a new directory, or restore the file."
            ) from None
        try:
            kinds = [one.type for one in connection.extract_statements(question)]
            if len(kinds) == 1 and kinds[0] in _QUESTIONS:
                # What is asked for is computed once it is shown.
                return str(connection.sql(question))
            why = "It takes one SELECT, and changes nothing"
        except _REFUSED as error:
            why = _first_line(error)
    raise BadRequest(
        f"{why}. Views: episodes, manifests, {', '.join(SUMS)}; docs/runs.md says what "
        f"is in them."
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".!")


def _make_views(connection: duckdb.DuckDBPyConnection, out: Place) -> None:
    of_shards = [arrow_schema(ShardRecord).empty_table()]
    of_shards += [manifest for _, manifest in manifests(out)]
    connection.register("manifests", pa.concat_tables(of_shards))
    for name in SUMS:
        connection.execute(
            f"create view {name} as "
            f"select first_episode, unnest(item, recursive := true) "
            f"from (select first_episode, unnest({name}) as item from manifests)"
        )
    files = row_files(out)
    if isinstance(out, Remote):
        names = [file.path for file in files if isinstance(file, Remote)]
        schema = arrow_schema(EpisodeRecord)
        rows = dataset.dataset(names, schema, "parquet", filesystem=out.filesystem)
        connection.register("episodes", rows)
    elif files:
        for path in files:
            size_of(path)  # DuckDB would call a path that leads nowhere a pattern
        paths = [str(path) for path in files]
        connection.read_parquet(paths, union_by_name=True).create_view("episodes")
