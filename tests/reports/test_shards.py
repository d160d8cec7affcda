from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from sample_run import SampleTask

from crashmq.reports.records import EpisodeRecord, Shard

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
shards = pytest.importorskip(
    "crashmq.reports.shards", reason="pyarrow is not installed"
)


def test_integers_become_int64_and_all_else_text() -> None:
    schema = shards.arrow_schema(EpisodeRecord)

    assert schema.field("episode_id").type == pa.int64()
    assert schema.field("outcome").type == pa.string()
    hits = schema.field("probes").type.value_type
    assert [(f.name, f.type) for f in hits] == [
        ("probe", pa.string()),
        ("hits", pa.int64()),
    ]


def test_a_table_holds_every_field_of_every_row() -> None:
    rows = [SampleTask(break_every=2).episode(n) for n in range(4)]

    table = shards.table_of(rows, EpisodeRecord)

    assert table.to_pylist() == [asdict(row) for row in rows]


def test_no_rows_make_an_empty_table_of_the_same_schema() -> None:
    table = shards.table_of([], EpisodeRecord)

    assert table.num_rows == 0
    assert table.schema == shards.arrow_schema(EpisodeRecord)


def test_a_shard_is_one_file_and_nothing_beside_it(tmp_path: Path) -> None:
    task, shard = SampleTask(break_every=3), Shard(4, 8, 4)

    result = shards.write_shard(task, shard, tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["shard-000004.parquet"]
    assert result == shards.ShardResult(number=4, episodes=4, violated=1)
    read = pq.read_table(tmp_path / "shard-000004.parquet")
    assert read.column("episode_id").to_pylist() == [8, 9, 10, 11]
    assert read.schema.metadata[b"crashmq.run_id"] == b"sample"


def test_a_shard_done_twice_is_the_same_file(tmp_path: Path) -> None:
    task, shard = SampleTask(), Shard(0, 0, 5)
    shards.write_shard(task, shard, tmp_path)
    before = (tmp_path / "shard-000000.parquet").read_bytes()

    shards.write_shard(task, shard, tmp_path)

    assert (tmp_path / "shard-000000.parquet").read_bytes() == before


def test_a_task_that_loses_a_row_writes_nothing(tmp_path: Path) -> None:
    class Forgetful(SampleTask):
        def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
            yield self.episode(shard.first_episode)

    with pytest.raises(ValueError, match="has 3 episodes and its task gave 1 rows"):
        shards.write_shard(Forgetful(), Shard(0, 0, 3), tmp_path)

    assert list(tmp_path.iterdir()) == []
