"""Runs that are gone on with: what is there, what is missing, who may go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_run import DECLARED

from crashmq.reports.errors import OutputExists
from crashmq.reports.records import Shard, is_bound, shards_of
from crashmq.reports.run_dir import (
    DONE,
    MANIFESTS_DIR,
    Session,
    begin_run,
    committed,
    elapsed_of,
    end_early,
    missing,
    name_of,
    new_session,
    read_sessions,
    write_session,
)

DEFINITION: dict[str, Any] = {"scenarios": ["power_loss"], "seed": 7, "mutant": ""}


def begin(out: Path, episodes: int, **changes: Any) -> int:
    definition = DEFINITION | changes
    run_id = f"run-{definition['seed']}"
    return begin_run(out, run_id, definition, episodes, DECLARED)


def commit(out: Path, *shards: Shard) -> None:
    for shard in shards:
        (out / MANIFESTS_DIR / name_of(shard)).touch()


def run_file(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "run.json").read_text())
    return found


@settings(deadline=None)
@given(episodes=st.integers(0, 250_000), more=st.integers(0, 5_000))
def test_shards_have_the_same_bounds_however_many_there_are(
    episodes: int, more: int
) -> None:
    shards, longer = list(shards_of(episodes)), list(shards_of(episodes + more))

    assert [0, *(shard.end for shard in shards)] == [
        *(shard.first_episode for shard in shards),
        episodes,
    ]
    assert longer[: len(shards[:-1])] == shards[:-1]
    assert all(
        longer[n].holds(shard) and shard.episodes <= 1_000
        for n, shard in enumerate(shards)
    )


@settings(deadline=None)
@given(episodes=st.integers(1, 250_000))
def test_a_bound_is_where_shards_of_a_longer_run_begin(episodes: int) -> None:
    firsts = {shard.first_episode for shard in shards_of(episodes + 1)}

    assert is_bound(episodes) == (episodes in firsts)


def test_a_new_run_says_what_it_is_and_misses_everything(tmp_path: Path) -> None:
    out = tmp_path / "out"

    assert begin(out, 120) == 0

    assert run_file(out) == {
        "format": 2,
        "run_id": "run-7",
        "episodes": 120,
        "definition": DEFINITION,
    }
    assert list(missing(out, 120)) == [Shard(0, 50), Shard(50, 50), Shard(100, 20)]


def test_the_same_definition_goes_on_and_may_become_longer(tmp_path: Path) -> None:
    begin(tmp_path, 120)
    commit(tmp_path, Shard(0, 50), Shard(100, 20))

    assert begin(tmp_path, 200) == 70

    assert run_file(tmp_path)["episodes"] == 200
    wanted = [Shard(50, 50), Shard(100, 50), Shard(150, 50)]
    assert list(missing(tmp_path, 200)) == wanted


def test_a_shorter_run_keeps_what_is_there(tmp_path: Path) -> None:
    begin(tmp_path, 100)
    commit(tmp_path, Shard(0, 50), Shard(50, 50))

    assert begin(tmp_path, 60) == 100

    assert list(missing(tmp_path, 60)) == []
    assert run_file(tmp_path)["episodes"] == 100


def test_what_lies_within_another_is_there_once(tmp_path: Path) -> None:
    begin(tmp_path, 100)
    commit(tmp_path, Shard(0, 50), Shard(50, 20), Shard(50, 50), Shard(0, 2_000))

    assert committed(tmp_path) == [Shard(0, 2_000)]
    (tmp_path / MANIFESTS_DIR / name_of(Shard(0, 2_000))).unlink()
    assert committed(tmp_path) == [Shard(0, 50), Shard(50, 50)]


@pytest.mark.parametrize(
    "name",
    ["0000000050-0000000050.parquet", ".0000000000-0000000050.parquet.1.tmp", "x"],
)
def test_a_name_that_is_none_of_ours_commits_nothing(tmp_path: Path, name: str) -> None:
    begin(tmp_path, 100)
    (tmp_path / MANIFESTS_DIR / name).touch()

    assert committed(tmp_path) == []


def test_another_definition_is_refused_and_told(tmp_path: Path) -> None:
    begin(tmp_path, 100)
    before = (tmp_path / "run.json").read_bytes()

    with pytest.raises(OutputExists, match="holds another run, of mutant '', seed 7; "):
        begin(tmp_path, 100, seed=8, mutant="R01")

    assert (tmp_path / "run.json").read_bytes() == before


def test_a_run_of_the_first_version_is_not_gone_on_with(tmp_path: Path) -> None:
    begin(tmp_path, 100)
    run = run_file(tmp_path) | {"format": 1}
    (tmp_path / "run.json").write_text(json.dumps(run))

    with pytest.raises(
        OutputExists, match="of an older crashmq, which can be reported"
    ):
        begin(tmp_path, 100)


def test_a_directory_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")

    with pytest.raises(OutputExists, match="already holds notes"):
        begin(tmp_path, 100)

    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_a_run_took_as_long_as_its_sessions(tmp_path: Path) -> None:
    begin(tmp_path, 100)
    killed = Session("2026-11-24T01:00:00+00:00", "here", "crashmq soak", "", 1.5)
    write_session(new_session(tmp_path), killed)
    new_session(tmp_path)  # of one that was killed before it could tell anything
    assert elapsed_of(tmp_path) is None

    done = Session("2026-11-24T02:00:00+00:00", "here", "crashmq soak", DONE, 2.0)
    write_session(new_session(tmp_path), done)

    assert read_sessions(tmp_path) == [killed, done]
    assert elapsed_of(tmp_path) == 3.5


def test_a_run_whose_time_was_up_was_asked_for_what_it_has(tmp_path: Path) -> None:
    begin(tmp_path, 100_000)
    commit(tmp_path, Shard(0, 50))

    end_early(tmp_path)

    assert run_file(tmp_path)["episodes"] == 50
