from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sample_run import SampleTask

from crashmq.reports.errors import CannotWrite
from crashmq.reports.records import EpisodeRecord, Shard
from crashmq.reports.run_dir import committed

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
shards = pytest.importorskip("crashmq.reports.shards")
sums = pytest.importorskip("crashmq.reports.sums")

SHARD = Shard(50, 50)
NAME = "0000000050-0000000100.parquet"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    for name in ("episodes", "manifests"):
        (tmp_path / name).mkdir()
    return tmp_path


def files(out: Path) -> list[str]:
    return sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file())


def test_a_shard_is_its_rows_and_a_manifest_and_nothing_beside(out: Path) -> None:
    task = SampleTask(break_every=3)

    result = shards.write_shard(task, SHARD, out)

    assert files(out) == [f"episodes/{NAME}", f"manifests/{NAME}"]
    assert result == shards.ShardResult(first_episode=50, episodes=50, violated=17)
    assert committed(out) == [SHARD]
    (manifest,) = pq.read_table(out / "manifests" / NAME).to_pylist()
    assert (manifest["run_id"], manifest["failed"]) == (task.run_id, 17)


def test_rows_of_failures_are_a_group_of_their_own(out: Path) -> None:
    shards.write_shard(SampleTask(break_every=3), SHARD, out)

    rows = pq.ParquetFile(out / "episodes" / NAME)

    failed, passed = (rows.read_row_group(n)["episode_id"].to_pylist() for n in (0, 1))
    assert failed == [n for n in range(50, 100) if n % 3 == 0]
    assert passed == [n for n in range(50, 100) if n % 3]


def test_an_error_amid_an_episode_is_not_noted_as_its_death(out: Path) -> None:
    class Raising(SampleTask):
        def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
            raise ValueError("what an executor lacks")

    for _ in range(4):
        with pytest.raises(ValueError, match="lacks"):
            shards.write_shard(Raising(), SHARD, out, again=True)
    mended = shards.write_shard(SampleTask(), SHARD, out, again=True)

    assert mended.episodes == SHARD.episodes
    (manifest,) = pq.read_table(out / "manifests" / NAME).to_pylist()
    assert manifest["failed"] == 0


class EndsIts(SampleTask):
    """Ends the process that runs the first episode of ``SHARD``."""

    def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
        if shard.first_episode == SHARD.first_episode:
            os._exit(9)
        return super().run_shard(shard)


class EndsAtOnce(SampleTask):
    """Ends its process, whichever episode that begins with."""

    def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
        os._exit(9)


@pytest.mark.parametrize(
    ("task", "sessions", "outcome"),
    [
        (EndsIts(), ["1", "1", "1", "1"], "killed"),
        (EndsIts(), ["1", "1", "1"], "passed"),
        (EndsIts(), ["1", "2", "3", "4", "5"], "passed"),
        (EndsAtOnce(), ["1", "1", "1", "1", "1", "1"], "passed"),
    ],
)
def test_an_episode_is_to_blame_if_processes_and_not_their_session_end_with_it(
    out: Path, task: SampleTask, sessions: list[str], outcome: str
) -> None:
    *before, last = sessions
    for session in before:
        child = os.fork()
        if child == 0:
            shards.write_shard(task, SHARD, out, again=True, session=session)
        os.waitpid(child, 0)
    shards.write_shard(SampleTask(), SHARD, out, again=True, session=last)

    rows = pq.read_table(out / "episodes" / NAME).to_pylist()
    assert len(rows) == SHARD.episodes
    first = next(row for row in rows if row["episode_id"] == SHARD.first_episode)
    assert first["outcome"] == outcome
    assert {row["outcome"] for row in rows if row is not first} == {"passed"}


def test_a_shard_done_twice_is_the_same_files(out: Path) -> None:
    shards.write_shard(SampleTask(), SHARD, out)
    before = [(out / name).read_bytes() for name in files(out)]

    shards.write_shard(SampleTask(), SHARD, out)

    assert [(out / name).read_bytes() for name in files(out)] == before


def test_a_task_that_loses_a_row_writes_nothing(out: Path) -> None:
    class Forgetful(SampleTask):
        def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
            yield self.episode(shard.first_episode)

    with pytest.raises(ValueError, match="has 50 episodes and its task gave 1 rows"):
        shards.write_shard(Forgetful(), SHARD, out)

    assert files(out) == []


@pytest.mark.parametrize("at", ["episodes", "manifests"])
def test_a_full_disk_commits_nothing_and_is_told(
    out: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    replace = Path.replace

    def refuse(temporary: Path, path: Path) -> None:
        if path.parent.name == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        replace(temporary, path)

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(CannotWrite, match=f"{at} cannot be written: No space left on"):
        shards.write_shard(SampleTask(), SHARD, out)

    assert committed(out) == []
    assert not [name for name in files(out) if name.endswith(".tmp")]


def test_notes_that_cannot_be_written_are_told(out: Path) -> None:
    (out / "in_flight").write_text("in the way")

    with pytest.raises(CannotWrite, match=f"^{out} cannot be written: File exists"):
        shards.write_shard(SampleTask(), SHARD, out, again=True)

    assert committed(out) == []
