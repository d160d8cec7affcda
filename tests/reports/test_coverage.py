from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sample_run import a_crash, an_episode, broken

from crashmq.reports.records import OpCount, ProbeHit

coverage = pytest.importorskip(
    "crashmq.reports.coverage", reason="pyspark is not installed"
)
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_scenarios_are_summed_up(frame_of: Callable[..., Any]) -> None:
    episodes = [
        an_episode(0),
        an_episode(1, outcome="violated", crashes=2),
        an_episode(2, outcome="signal:11"),
        an_episode(3, scenario="process_kill", steps=9),
    ]

    totals = coverage.scenario_totals(frame_of(episodes))

    assert rows(totals) == [
        ("power_loss", 3, 1, 1, 1, 12, 2, 3, 300),
        ("process_kill", 1, 1, 0, 0, 9, 0, 1, 100),
    ]


def test_an_op_that_never_ran_has_a_row(
    session: Any, frame_of: Callable[..., Any]
) -> None:
    put = [OpCount("Put", "PUT_OK", 3), OpCount("Put", "Skipped", 1)]
    episodes = [an_episode(0, op_counts=put), an_episode(1, op_counts=put[:1])]
    declared = session.createDataFrame([("Put",), ("Pull",)], "op string")

    counts = coverage.op_statuses(frame_of(episodes), declared)

    assert rows(counts) == [
        ("Pull", "", 0),
        ("Put", "PUT_OK", 6),
        ("Put", "Skipped", 1),
    ]


def test_survivors_lose_their_number(frame_of: Callable[..., Any]) -> None:
    points = [a_crash(1, survivors="HASHED(5)"), a_crash(2, survivors="hashed(6)")]

    counts = coverage.crash_points(frame_of([an_episode(crash_points=points)]))

    assert [(row.survivors, row.crashes) for row in counts.collect()] == [("hashed", 2)]


def test_the_last_crash_before_the_first_breach_is_blamed(
    frame_of: Callable[..., Any],
) -> None:
    points = [a_crash(n, action=f"a{n}") for n in (1, 3, 6)]
    verdicts = [broken("CL-1", 4), broken("CQ-3", 7)]
    violated = an_episode(outcome="violated", crash_points=points, verdicts=verdicts)
    passed = an_episode(1, crash_points=points)

    counts = coverage.crash_points(frame_of([violated, passed]))

    found = sorted((row.action, row.crashes, row.violated) for row in counts.collect())
    assert found == [("a1", 2, 0), ("a3", 2, 1), ("a6", 2, 0)]


def test_a_probe_that_was_never_hit_has_a_row_with_zeros(
    session: Any, frame_of: Callable[..., Any]
) -> None:
    hits = [ProbeHit("log.roll", 2)]
    episodes = [an_episode(n, probes=hits) for n in range(2)]
    declared = session.createDataFrame(
        [("log.roll", "rolled"), ("log.full", "full")], "probe string, sentence string"
    )

    counts = coverage.probe_hits(frame_of(episodes), declared)

    assert rows(counts) == [
        ("log.full", "full", "", 0, 0),
        ("log.roll", "rolled", "power_loss", 4, 2),
    ]


def test_a_probe_nobody_declared_is_not_lost(
    session: Any, frame_of: Callable[..., Any]
) -> None:
    episodes = [an_episode(probes=[ProbeHit("stray", 1)])]
    declared = session.createDataFrame([], "probe string, sentence string")

    counts = coverage.probe_hits(frame_of(episodes), declared)

    assert rows(counts) == [("stray", "", "power_loss", 1, 1)]


def test_the_digest_of_a_run_knows_no_order_and_no_time(
    frame_of: Callable[..., Any],
) -> None:
    episodes = [an_episode(n) for n in (0, 999, 1000, 2500)]
    slower = [an_episode(n, elapsed_us=n) for n in (2500, 1000, 0, 999)]

    digest, again = (rows(coverage.run_digest(frame_of(e))) for e in (episodes, slower))

    assert digest == again
    assert len(digest[0][0]) == 64


@pytest.mark.parametrize(
    "change", [{"digest": "x"}, {"outcome": "unknown"}, {"scenario": "other"}]
)
def test_the_digest_of_a_run_knows_every_episode(
    frame_of: Callable[..., Any], change: dict[str, str]
) -> None:
    first, second = an_episode(0), an_episode(1)

    digest = rows(coverage.run_digest(frame_of([first, second])))

    changed = [first, an_episode(1, **change)]
    assert rows(coverage.run_digest(frame_of(changed))) != digest
    assert rows(coverage.run_digest(frame_of([first]))) != digest
