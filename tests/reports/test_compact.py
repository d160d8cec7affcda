from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sample_run import SampleTask

from crashmq.harness.cli import main
from crashmq.reports.errors import BadRequest
from crashmq.reports.records import Shard
from crashmq.reports.run_dir import committed, name_of

compacting = pytest.importorskip("crashmq.reports.compact", reason="needs pyarrow")
aggregates = pytest.importorskip("crashmq.reports.aggregates")
store = pytest.importorskip("sample_store")
TASK = SampleTask(break_every=13)


def comes_to(out: Path) -> tuple[Any, ...]:
    found = aggregates.LocalAggregates(out)
    return dict(found.sums()), found.digest(), found.findings()


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.slow
def test_a_compacted_run_says_the_same_in_fewer_files(tmp_path: Path) -> None:
    out = store.write_run(tmp_path, TASK, 230)
    before = comes_to(out)

    done = compacting.compact(out)

    assert (done.before, done.after) == (5, 2)
    assert comes_to(out) == before
    assert names_in(out / "episodes") == names_in(out / "manifests")
    assert names_in(out / "episodes") == [
        name_of(Shard(0, 200)),
        name_of(Shard(200, 30)),  # which a longer run replaces
    ]


@pytest.mark.slow
def test_files_are_about_as_large_as_asked_for(tmp_path: Path) -> None:
    out = store.write_run(tmp_path, TASK, 250)
    size = max(path.stat().st_size for path in (out / "episodes").iterdir())

    compacting.compact(out, file_size=2 * size)

    assert committed(out) == [Shard(0, 100), Shard(100, 100), Shard(200, 50)]


@pytest.mark.slow
def test_a_compacted_run_is_gone_on_with(tmp_path: Path) -> None:
    out = store.write_run(tmp_path / "joined", TASK, 230)
    compacting.compact(out)

    store.write_run(out, TASK, 400)
    store.write_run(tmp_path / "whole", TASK, 400)

    assert comes_to(out) == comes_to(tmp_path / "whole")


@pytest.mark.slow
def test_shards_with_a_gap_between_them_stay_apart(tmp_path: Path) -> None:
    out = store.write_run(tmp_path, TASK, 250)
    (out / "manifests" / name_of(Shard(100, 50))).unlink()
    before = comes_to(out)

    compacting.compact(out)

    assert committed(out) == [Shard(0, 100), Shard(150, 100)]
    assert comes_to(out) == before


@pytest.mark.slow
@pytest.mark.parametrize("lasted", [0, 1, 2])
def test_who_dies_amid_it_leaves_the_run_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lasted: int
) -> None:
    out = store.write_run(tmp_path, TASK, 150)
    before, left = comes_to(out), [lasted]
    really = compacting.write_groups

    def dies(*args: Any) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        really(*args)

    with monkeypatch.context() as patch:
        patch.setattr(compacting, "write_groups", dies)
        if lasted < 2:
            with pytest.raises(KeyboardInterrupt):
                compacting.compact(out)
        else:
            patch.setattr(compacting, "_remove_superseded", lambda _: None)
            compacting.compact(out)

    assert comes_to(out) == before
    compacting.compact(out)
    assert comes_to(out) == before
    assert committed(out) == [Shard(0, 150)]
    assert names_in(out / "episodes") == [name_of(Shard(0, 150))]


def test_an_old_run_stays_as_it_is(tmp_path: Path) -> None:
    out = store.write_old_run(tmp_path / "old", TASK)

    with pytest.raises(BadRequest, match="older crashmq; it stays as it is"):
        compacting.compact(out)


@pytest.mark.parametrize("kind", ["report", "compact", "sql"])
def test_rows_that_are_not_there_are_one_sentence(tmp_path: Path, kind: str) -> None:
    out = store.write_run(tmp_path, SampleTask(break_every=7), 60)
    file = out / "episodes" / name_of(Shard(0, 50))
    file.unlink()
    asked = ["select count(*) from episodes"] if kind == "sql" else []

    result = CliRunner().invoke(main, [kind, str(out), *asked])

    assert (result.exit_code, result.stdout) == (2, "")
    (sentence,) = result.stderr.splitlines()
    assert f"{file} is not there, and a manifest of its name says that" in sentence
    assert len(committed(out)) == 2
