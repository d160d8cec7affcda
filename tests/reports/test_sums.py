"""Sums of episodes by Arrow, without Spark."""

from __future__ import annotations

from typing import Any

import pytest
from sample_run import SampleTask, a_crash, an_episode, broken, kept

from crashmq.reports.records import (
    CrashPoint,
    EpisodeRecord,
    ExcuseCount,
    LawChecks,
    OpCount,
    ProbeHit,
    ProbeHits,
    ScenarioTotals,
    Shard,
)

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
arrow = pytest.importorskip("crashmq.reports.arrow")
sums = pytest.importorskip("crashmq.reports.sums")


def manifest(episodes: list[EpisodeRecord]) -> Any:
    table = arrow.table_of(episodes, EpisodeRecord)
    return sums.manifest_of("run", Shard(0, len(episodes)), table)


def summed(name: str, *shards: list[EpisodeRecord]) -> list[Any]:
    tables = sums.summed(map(manifest, shards))
    return list(sums.rows_of(tables[name], sums.SUMS[name]))


def digest(episodes: list[EpisodeRecord]) -> str:
    return str(manifest(episodes)["digest"][0].as_py())


def test_scenarios_are_summed_up() -> None:
    episodes = [
        an_episode(0),
        an_episode(1, outcome="violated", crashes=2),
        an_episode(2, outcome="signal:11"),
        an_episode(3, scenario="process_kill", steps=9),
    ]

    assert summed("scenarios", episodes) == [
        ScenarioTotals("power_loss", 3, 1, 1, 1, 12, 2, 3, 300),
        ScenarioTotals("process_kill", 1, 1, 0, 0, 9, 0, 1, 100),
    ]


def test_ops_are_summed_up_by_status_over_shards() -> None:
    put = [OpCount("Put", "PUT_OK", 3), OpCount("Put", "Skipped", 1)]
    shards = [[an_episode(0, op_counts=put)], [], [an_episode(1, op_counts=put[:1])]]

    assert summed("ops", *shards) == [
        OpCount("Put", "PUT_OK", 6),
        OpCount("Put", "Skipped", 1),
    ]


def test_survivors_lose_their_number() -> None:
    points = [a_crash(1, survivors="HASHED(5)"), a_crash(2, survivors="hashed(6)")]

    (point,) = summed("crash_points", [an_episode(crash_points=points)])

    assert (point.survivors, point.crashes) == ("hashed", 2)


def test_the_last_crash_before_the_first_breach_is_blamed() -> None:
    points = [a_crash(n, action=f"a{n}") for n in (1, 3, 6)]
    verdicts = [broken("CL-1", 4), broken("CQ-3", 7)]
    violated = an_episode(outcome="violated", crash_points=points, verdicts=verdicts)
    early = an_episode(
        1, outcome="violated", crash_points=points, verdicts=[broken("CL-1", 0)]
    )
    passed = an_episode(2, crash_points=points)

    counts = summed("crash_points", [violated, early], [passed])

    found = [(row.action, row.crashes, row.violated) for row in counts]
    assert found == [("a1", 3, 0), ("a3", 3, 1), ("a6", 3, 0)]
    assert isinstance(counts[0], CrashPoint)


def test_probes_are_counted_by_scenario_with_their_episodes() -> None:
    hits = [ProbeHit("log.roll", 2), ProbeHit("log.full", 0)]
    episodes = [an_episode(n, probes=hits) for n in range(2)]

    assert summed("probes", episodes, episodes[:1]) == [
        ProbeHits("log.full", "power_loss", 0, 0),
        ProbeHits("log.roll", "power_loss", 6, 3),
    ]


def test_laws_are_counted_by_scenario() -> None:
    unknown = kept("CL-1", 2)
    unknown.outcome = "unknown"
    episodes = [
        an_episode(0, outcome="violated", verdicts=[kept("CL-1"), broken("CQ-3", 2)]),
        an_episode(1, verdicts=[kept("CL-1", 7)]),
        an_episode(2, scenario="other", outcome="unknown", verdicts=[unknown]),
    ]

    assert summed("laws", episodes) == [
        LawChecks("CL-1", "other", 2, 0, 1),
        LawChecks("CL-1", "power_loss", 12, 0, 0),
        LawChecks("CQ-3", "power_loss", 5, 1, 0),
    ]


def test_excuses_are_summed_up_by_law_and_fact() -> None:
    alone, stays = ExcuseCount("RD-2", "alone", 3), ExcuseCount("RD-1", "stays", 1)
    episodes = [
        an_episode(0, excuses=[alone, stays]),
        an_episode(1),
        an_episode(2, excuses=[alone], scenario="other"),
        an_episode(3, excuses=[ExcuseCount("RD-2", "lives", 2)]),
    ]

    assert summed("excuses", episodes) == [
        ExcuseCount("RD-1", "stays", 1),
        ExcuseCount("RD-2", "alone", 6),
        ExcuseCount("RD-2", "lives", 2),
    ]


@pytest.mark.slow
def test_how_a_run_is_cut_into_shards_changes_no_sum() -> None:
    episodes = [SampleTask(break_every=7).episode(n) for n in range(90)]
    cut = [episodes[n : n + 25] for n in range(0, 90, 25)]

    for name in sums.SUMS:
        assert summed(name, episodes) == summed(name, *cut) != []
    parts = [digest(part) for part in cut]
    assert sums.added_up(parts) == digest(episodes)


def test_the_digest_of_a_run_knows_no_order_and_no_time() -> None:
    episodes = [an_episode(n) for n in (0, 999, 1000, 2500)]
    slower = [an_episode(n, elapsed_us=n) for n in (2500, 1000, 0, 999)]

    assert digest(episodes) == digest(slower)
    assert len(digest(episodes)) == 64


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"digest": "x"},
        {"outcome": "unknown"},
        {"scenario": "other"},
        {"signature": "s"},
    ],
)
def test_the_digest_of_a_run_knows_every_episode(change: dict[str, str]) -> None:
    first, second = an_episode(0), an_episode(1)

    assert digest([first, an_episode(1, **change)]) != digest([first, second])
    assert digest([first]) != digest([first, second])
    assert digest([first, second, second, second]) != digest([first, second])
