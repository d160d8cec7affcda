from __future__ import annotations

from dataclasses import asdict

import pytest
from sample_run import SampleTask

from crashmq.reports.records import EpisodeRecord

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
arrow = pytest.importorskip("crashmq.reports.arrow")


def test_integers_become_int64_and_all_else_text() -> None:
    schema = arrow.arrow_schema(EpisodeRecord)

    assert schema.field("episode_id").type == pa.int64()
    assert schema.field("outcome").type == pa.string()
    hits = schema.field("probes").type.value_type
    assert [(f.name, f.type) for f in hits] == [
        ("probe", pa.string()),
        ("hits", pa.int64()),
    ]


def test_a_table_holds_every_field_of_every_row() -> None:
    rows = [SampleTask(break_every=2).episode(n) for n in range(4)]

    table = arrow.table_of(rows, EpisodeRecord)

    assert table.to_pylist() == [asdict(row) for row in rows]


def test_no_rows_make_an_empty_table_of_the_same_schema() -> None:
    table = arrow.table_of([], EpisodeRecord)

    assert table.num_rows == 0
    assert table.schema == arrow.arrow_schema(EpisodeRecord)
