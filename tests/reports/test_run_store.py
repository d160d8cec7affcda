from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import sample_run
from sample_run import DECLARED, SampleTask

from crashmq.reports.errors import CannotWrite, EnvironmentMissing, NotARun
from crashmq.reports.records import EpisodeRecord, Shard
from crashmq.reports.run_dir import Wanted, begin_run, committed, read_sessions

run_store = pytest.importorskip(
    "crashmq.reports.run_store", reason="pyspark is not installed"
)
aggregates = pytest.importorskip("crashmq.reports.aggregates")
store = pytest.importorskip("sample_store")
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def run(
    session: Any, task: Any, out: Path, episodes: int, time_s: float | None = None
) -> list[Any]:
    seen: list[Any] = []
    begin_run(out, task.run_id, task.definition, episodes, DECLARED)
    run_store.run_on_spark(session, task, out, Wanted(episodes, time_s), seen.append)
    return seen


@pytest.fixture(autouse=True)
def _tasks_travel_whole() -> Iterator[None]:
    # A worker cannot import a test's module, so its classes go along with the task.
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    cloudpickle.register_pickle_by_value(sample_run)
    yield
    cloudpickle.unregister_pickle_by_value(sample_run)


def test_a_run_is_committed_as_its_task_gave_it(session: Any, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    task, out = SampleTask(break_every=4), tmp_path / "a [1] {b,c}*? %20"

    seen = run(session, task, out, 120)

    rows = [
        row
        for path in aggregates.row_files(out)
        for row in pq.read_table(path).to_pylist()
    ]
    wanted = [asdict(task.episode(n)) for n in range(120)]
    assert sorted(rows, key=lambda row: row["episode_id"]) == wanted
    assert (seen[-1].episodes, seen[-1].violated) == (120, 30)


def test_spark_goes_on_with_what_others_began(session: Any, tmp_path: Path) -> None:
    task, begun, whole = SampleTask(), tmp_path / "begun", tmp_path / "whole"
    store.write_run(begun, task, 70)
    (begun / "manifests" / "0000000000-0000000050.parquet").unlink()

    (*_, last) = run(session, task, begun, 150)
    run(session, task, whole, 150)

    assert last.episodes == 150
    found, wanted = map(aggregates.LocalAggregates, (begun, whole))
    assert (found.sums(), found.digest()) == (wanted.sums(), wanted.digest())


def test_a_run_that_is_whole_begins_no_job(session: Any, tmp_path: Path) -> None:
    run(session, SampleTask(), tmp_path, 60)

    assert run(session, SampleTask(), tmp_path, 60) == []


def test_after_its_time_no_shard_is_begun(session: Any, tmp_path: Path) -> None:
    run(session, SampleTask(), tmp_path, 10**9, time_s=0.0)

    assert committed(tmp_path) == []


def test_a_clock_there_that_is_ahead_ends_nothing(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 3_600)  # here, not there

    run(session, SampleTask(), tmp_path, 230, time_s=1_800.0)

    assert sum(shard.episodes for shard in committed(tmp_path)) == 230


def test_shards_that_others_joined_meanwhile_are_there(
    session: Any, tmp_path: Path
) -> None:
    out = str(tmp_path)

    class Joined(SampleTask):
        """Its last shard comes once somebody else has joined the others."""

        def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
            from crashmq.reports.compact import compact

            if shard.first_episode == 100:
                compact(Path(out))
            return super().run_shard(shard)

    run(session, Joined(), tmp_path, 150)

    assert committed(tmp_path) == [Shard(0, 100), Shard(100, 50)]


def test_shards_that_went_elsewhere_are_told(tmp_path: Path) -> None:
    begin_run(tmp_path, "sample", SampleTask().definition, 150, DECLARED)

    with pytest.raises(EnvironmentMissing, match=r"1 of 1 shards are not in .*manif"):
        run_store._see_that_all_are_there([Shard(0, 50)], tmp_path)


def test_a_task_that_fails_commits_nothing(session: Any, tmp_path: Path) -> None:
    class Failing(SampleTask):
        def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
            raise ValueError("the disk of this machine is on fire")

    errors = pytest.importorskip("pyspark.errors")
    with pytest.raises(errors.PySparkException, match="on fire"):
        run(session, Failing(), tmp_path, 3)

    assert committed(tmp_path) == []


def test_a_disk_that_is_full_is_told(session: Any, tmp_path: Path) -> None:
    begin_run(tmp_path, "sample", SampleTask().definition, 3, DECLARED)
    (tmp_path / "episodes").rmdir()
    (tmp_path / "episodes").write_text("in the way")

    with pytest.raises(
        CannotWrite, match="episodes cannot be written: Not a directory"
    ):
        run_store.run_on_spark(
            session, SampleTask(), tmp_path, Wanted(3), lambda _: None
        )


def test_executors_without_our_code_are_told_what_they_lack(
    session: Any, tmp_path: Path
) -> None:
    class Foreign(SampleTask):
        def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
            import no_such_module  # type: ignore[import-not-found]

            yield no_such_module.row

    with pytest.raises(EnvironmentMissing, match="has no module no_such_module: "):
        run(session, Foreign(), tmp_path, 3)


def test_an_interrupt_cancels_the_job_and_is_raised(
    session: Any, tmp_path: Path
) -> None:
    class Endless(SampleTask):
        def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
            while True:
                yield from SampleTask.run_shard(self, shard)
                shard = Shard(0, 0)

    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    task = Endless()
    begin_run(tmp_path, task.run_id, task.definition, 3, DECLARED)
    with pytest.raises(KeyboardInterrupt):
        run_store.run_on_spark(session, task, tmp_path, Wanted(3), interrupt)

    assert session.sparkContext.statusTracker().getActiveJobsIds() == []
    assert session.range(3).count() == 3


def test_an_episode_that_kills_its_worker_is_one_row(
    session: Any, tmp_path: Path
) -> None:
    class Killing(SampleTask):
        def episode(self, episode_id: int) -> EpisodeRecord:
            if episode_id in (57, 81):
                os.kill(os.getpid(), signal.SIGKILL)
            return super().episode(episode_id)

    run(session, Killing(), tmp_path, 120)

    found = aggregates.LocalAggregates(tmp_path)
    assert sum(each.episodes for each in found.sums()["scenarios"]) == 120
    assert sum(each.unjudged for each in found.sums()["scenarios"]) == 2
    assert {each.outcome for each in found.findings()} == {"killed"}


def test_a_run_that_an_executor_cannot_read_is_told_as_it_told_it(
    session: Any, tmp_path: Path
) -> None:
    class Unreadable(SampleTask):
        def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
            raise NotARun("run.json is not a JSON object.")

    with pytest.raises(NotARun) as refusal:
        run(session, Unreadable(), tmp_path, 3)

    assert str(refusal.value) == "run.json is not a JSON object."


@pytest.mark.slow
def test_a_jvm_that_dies_amid_a_soak_is_one_sentence(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    command = [sys.executable, "-m", "crashmq.harness.cli", "soak", "power_loss"]
    command += ["--time", "1h", "--workers", "1", "--out", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as soak:
        while not committed(tmp_path) and soak.poll() is None:
            time.sleep(0.1)
        for one in psutil.Process(soak.pid).children(recursive=True):
            if one.name() == "java":
                one.kill()
        out, err = soak.communicate()

    assert (soak.returncode, out) == (4, ""), err
    assert "crashmq: Spark or its cluster is gone: what was done is kept" in err
    (told,) = read_sessions(tmp_path)
    assert told.ended.startswith("gave up: Spark or its cluster is gone")
