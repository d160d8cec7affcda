"""Shards in processes of this machine: whoever dies, nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sample_run import DECLARED, SampleTask

from crashmq.harness.searches.shards_here import run_here
from crashmq.reports.errors import CannotWrite, ShardLost
from crashmq.reports.records import EpisodeRecord, Shard
from crashmq.reports.run_dir import WHOLE, Part, Wanted, begin_run, committed
from crashmq.reports.shards import RunProgress

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
aggregates = pytest.importorskip("crashmq.reports.aggregates")
HERE = Path(__file__).resolve().parent


def run(out: Path, task: Any, episodes: int, **how: Any) -> list[RunProgress]:
    seen: list[RunProgress] = []
    begin_run(out, task.run_id, task.definition, episodes, DECLARED)
    wanted = Wanted(episodes, how.pop("time_s", None), how.pop("part", WHOLE))
    run_here(task, out, wanted, seen.append, **how)
    return seen


def comes_to(out: Path) -> tuple[object, ...]:
    found = aggregates.LocalAggregates(out)
    return dict(found.sums()), found.digest(), found.findings()


@pytest.mark.slow
def test_a_driver_killed_again_and_again_comes_to_what_it_would_have(
    tmp_path: Path,
) -> None:
    draw, out, episodes = random.Random(20), tmp_path / "killed", 2_130
    script = [sys.executable, str(HERE / "killed_soak.py")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    kills = 0
    while True:
        args = [*script, str(out), str(episodes)]
        with subprocess.Popen(args, env=env, stdout=subprocess.PIPE) as driver:
            assert driver.stdout is not None
            assert driver.stdout.readline() == b"begun\n"
            if kills < 5:
                time.sleep(draw.uniform(0.01, 0.3))
                driver.send_signal(signal.SIGKILL)
            killed = driver.wait() == -signal.SIGKILL
        if not killed:
            break
        kills += 1

    task = SampleTask(break_every=13)
    run(tmp_path / "whole", task, episodes, workers=2)
    assert kills > 1
    assert comes_to(out) == comes_to(tmp_path / "whole")


@pytest.mark.slow
def test_however_many_workers_the_rows_are_the_same(tmp_path: Path) -> None:
    task = SampleTask(break_every=13)

    (*_, last) = run(tmp_path / "one", task, 230, workers=1)
    run(tmp_path / "three", task, 230, workers=3)

    assert comes_to(tmp_path / "one") == comes_to(tmp_path / "three")
    assert (last.episodes, last.violated) == (230, 18)


def test_parts_of_a_run_have_each_shard_once(tmp_path: Path) -> None:
    task = SampleTask(break_every=13)
    for number in range(3):
        part = Part(number, 3)
        run(tmp_path / f"part{number}", task, 230, workers=1, part=part)

    parts = [committed(tmp_path / f"part{number}") for number in range(3)]
    run(tmp_path / "whole", task, 230, workers=1)
    assert sorted(shard for part in parts for shard in part) == committed(
        tmp_path / "whole"
    )
    assert [len(part) for part in parts] == [2, 2, 1]


def test_a_run_that_is_whole_runs_nothing(tmp_path: Path) -> None:
    task = SampleTask()
    run(tmp_path, task, 100)

    class Raising(SampleTask):
        def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
            raise AssertionError(shard)

    run(tmp_path, Raising(), 100)
    assert committed(tmp_path) == [Shard(0, 50), Shard(50, 50)]


def test_after_its_time_no_shard_is_begun(tmp_path: Path) -> None:
    run(tmp_path, SampleTask(), 10**9, workers=2, time_s=0.0)

    assert committed(tmp_path) == [Shard(0, 50), Shard(50, 50)]


class DyingOnce(SampleTask):
    """The process of a shard dies; of which, and how often, files say."""

    def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
        deaths = Path(self.run_id)
        if shard.first_episode == 50 and deaths.stat().st_size:
            os.truncate(deaths, deaths.stat().st_size - 1)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run_shard(shard)


@pytest.mark.slow
def test_a_shard_whose_process_died_is_given_to_another(tmp_path: Path) -> None:
    (tmp_path / "deaths").write_text("three")
    os.truncate(tmp_path / "deaths", 3)
    task = DyingOnce(run_id=str(tmp_path / "deaths"))

    run(tmp_path / "out", task, 150, workers=2)

    assert [shard.first_episode for shard in committed(tmp_path / "out")] == [
        0,
        50,
        100,
    ]


@pytest.mark.slow
def test_a_disk_that_is_full_is_told_and_goes_on_later(tmp_path: Path) -> None:
    task = SampleTask()
    begin_run(tmp_path, task.run_id, task.definition, 150, DECLARED)
    (tmp_path / "manifests").rmdir()
    (tmp_path / "manifests").write_text("in the way")

    with pytest.raises(CannotWrite, match="manifests cannot be written: Not a direc"):
        run_here(task, tmp_path, Wanted(150), lambda _: None)

    (tmp_path / "manifests").unlink()
    run(tmp_path, task, 150)
    assert len(committed(tmp_path)) == 3


class Killing(SampleTask):
    """Two of its episodes kill whoever runs them; no row of them is made."""

    def episode(self, episode_id: int) -> EpisodeRecord:
        if episode_id in (57, 81):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().episode(episode_id)


@pytest.mark.slow
def test_an_episode_that_kills_who_runs_it_is_one_row(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")

    run(tmp_path, Killing(), 150, workers=2)

    rows = [
        row
        for path in aggregates.row_files(tmp_path)
        for row in pq.read_table(path).to_pylist()
    ]
    killed = [row["episode_id"] for row in rows if row["outcome"] == "killed"]
    assert sorted(row["episode_id"] for row in rows) == list(range(150))
    assert killed == [57, 81]
    assert list((tmp_path / "in_flight").iterdir()) == []


@pytest.mark.slow
def test_a_shard_that_nobody_can_begin_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr("crashmq.harness.searches.shards_here.write_shard", die)
    with pytest.raises(
        ShardLost, match="were to run the episodes 0 to 9 died, the last"
    ):
        run(tmp_path, SampleTask(), 10, workers=1)
