"""Runs of several machines become one, whoever did which shards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sample_run import SampleTask

from crashmq.reports.errors import BadRequest
from crashmq.reports.run_dir import (
    DONE,
    INTERRUPTED,
    Session,
    committed,
    elapsed_of,
    new_session,
    read_sessions,
    write_session,
)

merging = pytest.importorskip(
    "crashmq.reports.merge", reason="pyarrow is not installed"
)
aggregates = pytest.importorskip("crashmq.reports.aggregates")
store = pytest.importorskip("sample_store")


def comes_to(out: Path) -> tuple[object, ...]:
    found = aggregates.LocalAggregates(out)
    return dict(found.sums()), found.digest(), found.findings()


@pytest.fixture
def machines(tmp_path: Path) -> list[Path]:
    """Two machines with a run each, of which some shards are lost."""
    places = [tmp_path / "one", tmp_path / "two"]
    for number, place in enumerate(places):
        store.write_run(place, SampleTask(break_every=13), 130 + 50 * number)
        for shard in committed(place)[number::2]:
            name = f"{shard.first_episode:010d}-{shard.end:010d}.parquet"
            (place / "manifests" / name).unlink()
        session = Session("2026-11-24", f"machine{number}", "crashmq soak", DONE, 2.0)
        write_session(new_session(place), session)
    return places


def test_what_several_machines_did_is_what_one_would_have(
    machines: list[Path], tmp_path: Path
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    store.write_run(whole, SampleTask(break_every=13), 180)

    copied = merging.merge(out, machines)
    again = merging.merge(out, machines)

    lacks = [each for each in committed(whole) if each not in committed(out)]
    for shard in lacks:
        name = f"{shard.first_episode:010d}-{shard.end:010d}.parquet"
        (whole / "manifests" / name).unlink()
    assert comes_to(out) == comes_to(whole)
    assert (copied, again) == (len(committed(out)), 0)


def test_each_session_is_kept_and_told_once(
    machines: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"

    merging.merge(out, machines)
    merging.merge(out, machines)

    hosts = [session.host for session in read_sessions(out)]
    assert [host for host in hosts if host.startswith("machine")] == [
        "machine0",
        "machine1",
    ]
    assert elapsed_of(out) is not None


def test_a_session_that_still_ran_at_the_last_merge_is_told_once(
    machines: list[Path], tmp_path: Path
) -> None:
    out, (one, two) = tmp_path / "out", machines
    begun = Session("2026-11-25", "machine0", "crashmq soak")
    file = new_session(one)
    states = [begun, replace(begun, elapsed_s=5.0)]
    states.append(replace(begun, elapsed_s=9.0, ended=DONE))
    for state in states:
        write_session(file, state)
        merging.merge(out, machines)
    write_session(file, states[0])  # an older copy of it
    merging.merge(out, [two, one])

    assert [one for one in read_sessions(out) if one.began == begun.began] == states[2:]


def test_the_last_session_of_a_merged_run_is_the_one_that_began_last(
    machines: list[Path], tmp_path: Path
) -> None:
    stopped = Session("2026-11-26", "machine1", "crashmq soak", INTERRUPTED, 3.0)
    write_session(new_session(machines[1]), stopped)

    merging.merge(tmp_path / "out", machines[::-1])

    assert [each.began for each in read_sessions(tmp_path / "out")][-1] == "2026-11-26"
    assert elapsed_of(tmp_path / "out") is None


def test_a_run_of_something_else_is_refused_before_anything_is_written(
    machines: list[Path], tmp_path: Path
) -> None:
    store.write_run(tmp_path / "other", SampleTask(run_id="other"), 60)

    with pytest.raises(BadRequest, match="holds another run than"):
        merging.merge(tmp_path / "out", [*machines, tmp_path / "other"])

    assert not (tmp_path / "out").exists()
