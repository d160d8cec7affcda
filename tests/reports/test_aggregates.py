"""What a run comes to, without Spark; and that Spark says the same."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sample_run import SampleTask, an_episode, broken, kept

from crashmq.reports.errors import NotARun
from crashmq.reports.records import EpisodeRecord, VerdictRecord

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
aggregates = pytest.importorskip("crashmq.reports.aggregates")
store = pytest.importorskip("sample_store")

BROKEN = SampleTask(break_every=7)


class Given(SampleTask):
    """A run of the episodes that it is given."""

    def __init__(self, *episodes: EpisodeRecord) -> None:
        super().__init__()
        object.__setattr__(self, "episodes", episodes)

    def episode(self, episode_id: int) -> EpisodeRecord:
        episodes: tuple[EpisodeRecord, ...] = self.episodes  # type: ignore[attr-defined]
        return episodes[episode_id]


def violated(episode_id: int, **fields: Any) -> EpisodeRecord:
    plain = {
        "outcome": "violated",
        "signature": "CQ-3-Restart",
        "verdicts": [kept("CL-1"), broken("CQ-3", 2)],
    }
    return an_episode(episode_id, **(plain | fields))


def findings_of(out: Path, *episodes: EpisodeRecord) -> list[Any]:
    store.write_run(out, Given(*episodes), len(episodes))
    return sorted(aggregates.LocalAggregates(out).findings(), key=lambda f: f.signature)


def all_of(found: Any) -> tuple[object, ...]:
    by_signature = sorted(found.findings(), key=lambda each: each.signature)
    return dict(found.sums()), found.digest(), by_signature


@pytest.mark.slow
def test_a_run_comes_to_what_a_plain_count_says(tmp_path: Path) -> None:
    found = aggregates.LocalAggregates(store.write_run(tmp_path / "out", BROKEN, 230))

    episodes = [BROKEN.episode(n) for n in range(230)]
    ops: Counter[tuple[str, str]] = Counter()
    checks: Counter[tuple[str, str]] = Counter()
    for episode in episodes:
        ops.update({(each.op, each.status): each.times for each in episode.op_counts})
        for each in episode.verdicts:
            checks[each.law, episode.scenario] += each.checks
    sums = found.sums()
    assert {(each.op, each.status): each.times for each in sums["ops"]} == ops
    assert {(each.law, each.scenario): each.checks for each in sums["laws"]} == checks
    assert sum(each.episodes for each in sums["scenarios"]) == 230
    (finding,) = found.findings()
    failed = [episode for episode in episodes if episode.outcome == "violated"]
    smallest = min(failed, key=lambda episode: (episode.steps, episode.episode_id))
    assert (finding.episodes, finding.episode_id) == (len(failed), smallest.episode_id)
    assert finding.program == smallest.program
    assert [event["step"] for event in finding.events] == list(range(smallest.steps))


@pytest.mark.slow
def test_a_run_that_grew_has_nothing_twice(tmp_path: Path) -> None:
    grown, whole = tmp_path / "grown", tmp_path / "whole"
    for episodes in (70, 130, 130, 230):
        store.write_run(grown, BROKEN, episodes)
    store.write_run(whole, BROKEN, 230)

    assert all_of(aggregates.LocalAggregates(grown)) == all_of(
        aggregates.LocalAggregates(whole)
    )


@pytest.mark.slow
def test_rows_without_a_manifest_are_no_shard(tmp_path: Path) -> None:
    out = store.write_run(tmp_path / "out", BROKEN, 100)
    more, less = tmp_path / "more", tmp_path / "less"
    store.write_run(more, BROKEN, 150)
    store.write_run(less, BROKEN, 50)
    (more / "manifests" / "0000000100-0000000150.parquet").unlink()
    shutil.copytree(more / "episodes", less / "episodes", dirs_exist_ok=True)
    shutil.copytree(more / "manifests", less / "manifests", dirs_exist_ok=True)

    expected = all_of(aggregates.LocalAggregates(out))

    assert all_of(aggregates.LocalAggregates(more)) == expected
    assert all_of(aggregates.LocalAggregates(less)) == expected  # merged by a copy


@pytest.mark.slow
def test_a_run_of_the_first_version_comes_to_the_same(tmp_path: Path) -> None:
    old = store.write_old_run(tmp_path / "old", BROKEN, 200)
    new = store.write_run(tmp_path / "new", BROKEN, 200)

    assert all_of(aggregates.LocalAggregates(old)) == all_of(
        aggregates.LocalAggregates(new)
    )


def test_a_run_of_a_version_that_kept_no_excuses_has_none(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    out = store.write_old_run(tmp_path / "out", SampleTask(), 20)
    for shard in (out / "episodes").iterdir():
        pq.write_table(pq.read_table(shard).drop_columns(["excuses"]), shard)

    found = aggregates.LocalAggregates(out)

    assert found.sums()["excuses"] == []
    assert found.sums()["scenarios"] != []


@pytest.mark.slow
@pytest.mark.parametrize("where", ["episodes", "manifests"])
def test_a_file_that_is_damaged_is_one_sentence(tmp_path: Path, where: str) -> None:
    out = store.write_run(tmp_path / "out", BROKEN, 100)
    path = out / where / "0000000050-0000000100.parquet"
    path.write_bytes(path.read_bytes()[:-9])

    with pytest.raises(NotARun, match=r"0000000050-0000000100.parquet cannot be") as no:
        aggregates.LocalAggregates(out).findings()

    assert "\n" not in str(no.value)


def test_a_run_that_has_just_begun_comes_to_nothing(tmp_path: Path) -> None:
    found = aggregates.LocalAggregates(store.write_run(tmp_path / "out", BROKEN, 0))

    assert not any(found.sums().values())
    assert (found.digest(), found.findings()) == ("", [])


def test_the_smallest_episode_speaks_for_its_signature(tmp_path: Path) -> None:
    episodes = [an_episode(0), *(violated(n, steps=9 - n % 3) for n in range(1, 7))]

    (found,) = findings_of(tmp_path / "out", *episodes)

    assert (found.episode_id, found.steps, found.episodes) == (2, 7, 6)
    assert (found.law, found.step, found.op) == ("CQ-3", 2, "Restart")
    assert found.message == "CQ-3 is broken"


def test_a_finding_has_the_number_of_its_episodes_in_each_scenario(
    tmp_path: Path,
) -> None:
    scenarios = ["power_loss", "clean_restart", "power_loss"]
    episodes = [violated(n, scenario=name) for n, name in enumerate(scenarios)]

    (found,) = findings_of(tmp_path / "out", *episodes)

    assert [*found.scenarios.items()] == [("clean_restart", 1), ("power_loss", 2)]
    assert (found.scenario, found.episodes) == ("power_loss", 3)


@pytest.mark.slow
def test_two_signatures_are_two_findings(tmp_path: Path) -> None:
    episodes = [violated(0), violated(1, signature="CQ-3-During")]

    found = findings_of(tmp_path / "out", *episodes)

    assert [row.signature for row in found] == ["CQ-3-During", "CQ-3-Restart"]


def test_an_episode_that_was_not_judged_hides_no_violation(tmp_path: Path) -> None:
    unknown = VerdictRecord("CQ-3", 1, 1, "unknown", 2, "Put", "the law raised")
    unjudged = violated(0, outcome="unknown", steps=1, verdicts=[unknown])

    judged, other = findings_of(tmp_path / "out", unjudged, violated(1), violated(2))

    assert (judged.signature, other.signature) == (
        "CQ-3-Restart",
        "unknown-CQ-3-Restart",
    )
    assert (judged.outcome, judged.episode_id, judged.episodes) == ("violated", 1, 2)
    assert (other.outcome, other.episode_id, other.episodes) == ("unknown", 0, 1)


def test_of_several_broken_laws_the_first_breach_is_told(tmp_path: Path) -> None:
    episode = violated(0, verdicts=[broken("REC-1", 5), broken("CQ-3", 3)])

    (found,) = findings_of(tmp_path / "out", episode)

    assert (found.law, found.step) == ("CQ-3", 3)


def test_an_episode_whose_process_died_is_a_finding_without_a_law(
    tmp_path: Path,
) -> None:
    episodes = [an_episode(n, outcome="signal:11") for n in range(2)]

    (found,) = findings_of(tmp_path / "out", *episodes)

    assert found.signature == "signal-11-power_loss"
    assert (found.episode_id, found.episodes) == (0, 2)
    assert (found.law, found.step, found.message) == ("", -1, "")


def mixed() -> list[EpisodeRecord]:
    """Sixty-one episodes with every kind of failure."""
    unknown = VerdictRecord("OFF-1", 1, 0, "unknown", 2, "Put", "the law raised")
    return [BROKEN.episode(n) for n in range(53)] + [
        violated(53, verdicts=[broken("REC-1", 5), broken("CQ-3", 3)]),
        violated(54, signature="CQ-3-During", steps=2),
        an_episode(55, outcome="signal:11"),
        an_episode(56, outcome="timeout", scenario="other"),
        an_episode(57, outcome="unknown", signature="OFF-1", verdicts=[unknown]),
        an_episode(58, outcome="timeout", scenario="other", steps=1),
        an_episode(59),
        violated(60, outcome="unknown", steps=1, verdicts=[unknown]),
    ]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", ["run", "a [1] {b,c}*? %20"])
@pytest.mark.parametrize("write", ["write_run", "write_old_run"])
def test_spark_says_the_same_to_the_digit(
    session: Any, tmp_path: Path, name: str, write: str
) -> None:
    of_spark = pytest.importorskip("crashmq.reports.spark_aggregates").SparkAggregates
    write_it: Callable[..., Path] = getattr(store, write)
    out = write_it(tmp_path / name, Given(*mixed()), 61)

    here, there = aggregates.LocalAggregates(out), of_spark(session, out)

    assert all_of(there) == all_of(here)
    assert len(here.findings()) == 7


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_sums_up_nothing_to_nothing(session: Any, tmp_path: Path) -> None:
    of_spark = pytest.importorskip("crashmq.reports.spark_aggregates").SparkAggregates
    out = store.write_run(tmp_path / "out", BROKEN, 0)

    assert all_of(of_spark(session, out)) == all_of(aggregates.LocalAggregates(out))


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("how", ["gone", "cut short"])
def test_a_file_that_spark_cannot_read_is_one_sentence(
    session: Any, tmp_path: Path, how: str
) -> None:
    of_spark = pytest.importorskip("crashmq.reports.spark_aggregates").SparkAggregates
    out = store.write_run(tmp_path, SampleTask(break_every=13), 60)
    file = out / "episodes" / "0000000000-0000000050.parquet"
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-100])

    with pytest.raises(NotARun, match=f"Spark cannot read file:.*{file.name}; `cras"):
        of_spark(session, out).findings()


def test_a_file_that_the_disk_does_not_give_is_not_to_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = store.write_run(tmp_path, SampleTask(), 50)

    def refuse(path: Path) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    monkeypatch.setattr(aggregates, "source_of", refuse)
    with pytest.raises(NotARun) as refusal:
        aggregates.LocalAggregates(out)

    assert "cannot be read (Input/output error); see to that" in str(refusal.value)
    assert "remove" not in str(refusal.value)
