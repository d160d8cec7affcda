from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import sample_run
from sample_run import DECLARED, SampleTask

from crashmq.reports.errors import EnvironmentMissing, NotARun, OutputExists
from crashmq.reports.records import EpisodeRecord, Shard

run_store = pytest.importorskip(
    "crashmq.reports.run_store", reason="pyspark is not installed"
)
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
SHARDS = [Shard(0, 0, 3), Shard(1, 3, 3), Shard(2, 6, 1)]


@pytest.fixture(autouse=True)
def _tasks_travel_whole() -> Iterator[None]:
    # A worker cannot import a test's module, so its classes go along with the task.
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    cloudpickle.register_pickle_by_value(sample_run)
    yield
    cloudpickle.unregister_pickle_by_value(sample_run)


def test_a_run_is_read_as_its_task_gave_it(session: Any, tmp_path: Path) -> None:
    task, out = SampleTask(break_every=4), tmp_path / "out"
    seen: list[Any] = []

    run_store.write_run(session, task, SHARDS, out, seen.append, declared=DECLARED)

    read = run_store.read_run(session, out).orderBy("episode_id").collect()
    wanted = [asdict(task.episode(n)) for n in range(7)]
    assert [row.asDict(recursive=True) for row in read] == wanted
    assert (seen[-1].shards_done, seen[-1].shards) == (3, 3)
    assert (seen[-1].episodes_done, seen[-1].violations) == (7, 2)


def test_a_run_of_a_version_that_kept_no_excuses_has_none(
    session: Any, tmp_path: Path
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "out"
    run_store.write_run(
        session, SampleTask(), SHARDS, out, lambda _: None, declared=DECLARED
    )
    (out / "episodes" / "shard-000001.parquet").unlink()
    (out / "episodes" / "shard-000002.parquet").unlink()
    old = out / "episodes" / "shard-000000.parquet"
    pq.write_table(pq.read_table(old).drop_columns(["excuses"]), old)

    read = run_store.read_run(session, out).orderBy("episode_id").collect()

    assert [row.excuses for row in read] == [[], [], []]
    assert read[0].digest == SampleTask().episode(0).digest


def test_a_run_says_what_it_was_and_that_it_ended(session: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"

    run_store.write_run(
        session, SampleTask(), SHARDS, out, lambda _: None, declared=DECLARED
    )

    run = json.loads((out / "run.json").read_text())
    assert run == {
        "format": 1,
        "run_id": "sample",
        "shards": 3,
        "episodes": 7,
        "definition": SampleTask().definition,
    }
    assert json.loads((out / "declared.json").read_text()) == asdict(DECLARED)
    assert json.loads((out / "finished.json").read_text())["elapsed_s"] > 0


def test_a_directory_that_is_taken_is_left_alone(session: Any, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("mine")

    with pytest.raises(OutputExists):
        run_store.write_run(
            session, SampleTask(), SHARDS, tmp_path, lambda _: None, declared=DECLARED
        )

    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    assert (tmp_path / "run.json").read_text() == "mine"


def test_a_directory_named_like_a_pattern_is_read(session: Any, tmp_path: Path) -> None:
    out = tmp_path / "a [1] {b,c}*? %20"

    run_store.write_run(
        session, SampleTask(), SHARDS, out, lambda _: None, declared=DECLARED
    )

    assert run_store.read_run(session, out).count() == 7


def test_a_run_of_no_episodes_has_no_rows(session: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"

    run_store.write_run(
        session, SampleTask(), [], out, lambda _: None, declared=DECLARED
    )

    assert run_store.read_run(session, out).count() == 0


def test_an_empty_directory_is_no_run(session: Any, tmp_path: Path) -> None:
    with pytest.raises(NotARun):
        run_store.read_run(session, tmp_path)


def test_a_task_that_fails_leaves_a_run_without_an_end(
    session: Any, tmp_path: Path
) -> None:
    class Failing(SampleTask):
        def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
            raise ValueError("the disk of this machine is on fire")

    errors = pytest.importorskip("pyspark.errors")
    with pytest.raises(errors.PySparkException, match="on fire"):
        run_store.write_run(
            session,
            Failing(),
            SHARDS[:1],
            tmp_path / "out",
            lambda _: None,
            declared=DECLARED,
        )

    assert not (tmp_path / "out" / "finished.json").exists()
    assert run_store.read_run(session, tmp_path / "out").count() == 0


def test_executors_without_our_code_are_told_what_they_lack(
    session: Any, tmp_path: Path
) -> None:
    class Foreign(SampleTask):
        def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
            import no_such_module  # type: ignore[import-not-found]

            yield no_such_module.row

    with pytest.raises(EnvironmentMissing, match="has no module no_such_module: "):
        run_store.write_run(
            session,
            Foreign(),
            SHARDS[:1],
            tmp_path / "out",
            lambda _: None,
            declared=DECLARED,
        )


def test_an_interrupt_cancels_the_job_and_is_raised(
    session: Any, tmp_path: Path
) -> None:
    class Endless(SampleTask):
        def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
            while True:
                yield from SampleTask.run_shard(self, shard)
                shard = Shard(shard.number, 0, 0)

    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_store.write_run(
            session,
            Endless(),
            SHARDS[:1],
            tmp_path / "out",
            interrupt,
            declared=DECLARED,
        )

    assert session.sparkContext.statusTracker().getActiveJobsIds() == []
    assert session.range(3).count() == 3
