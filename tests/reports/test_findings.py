from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sample_run import an_episode, broken, kept

from crashmq.reports.records import VerdictRecord

findings = pytest.importorskip(
    "crashmq.reports.findings", reason="pyspark is not installed"
)
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def violated(episode_id: int, **fields: Any) -> Any:
    plain = {
        "outcome": "violated",
        "signature": "CQ-3-Restart",
        "verdicts": [kept("CL-1"), broken("CQ-3", 2)],
    }
    return an_episode(episode_id, **(plain | fields))


def test_the_smallest_episode_speaks_for_its_signature(
    frame_of: Callable[..., Any],
) -> None:
    episodes = [an_episode(0), *(violated(n, steps=9 - n % 3) for n in range(1, 7))]

    (found,) = findings.findings(frame_of(episodes)).collect()

    assert (found.episode_id, found.steps, found.scenarios) == (2, 7, {"power_loss": 6})
    assert (found.law, found.step, found.op) == ("CQ-3", 2, "Restart")
    assert found.message == "CQ-3 is broken"


def test_two_signatures_are_two_findings(frame_of: Callable[..., Any]) -> None:
    episodes = [violated(0), violated(1, signature="CQ-3-During")]

    found = findings.findings(frame_of(episodes)).collect()

    assert sorted(row.signature for row in found) == ["CQ-3-During", "CQ-3-Restart"]


def test_of_several_broken_laws_the_first_breach_is_told(
    frame_of: Callable[..., Any],
) -> None:
    episode = violated(0, verdicts=[broken("REC-1", 5), broken("CQ-3", 3)])

    (found,) = findings.findings(frame_of([episode])).collect()

    assert (found.law, found.step) == ("CQ-3", 3)


def test_an_episode_whose_process_died_is_a_finding_without_a_law(
    frame_of: Callable[..., Any],
) -> None:
    episodes = [an_episode(n, outcome="signal:11") for n in (4, 3)]

    (found,) = findings.findings(frame_of(episodes)).collect()

    assert found.signature == "signal-11-power_loss"
    assert (found.episode_id, found.scenarios) == (3, {"power_loss": 2})
    assert (found.law, found.step, found.message) == ("", -1, "")


def test_an_unknown_verdict_is_told_with_its_law(frame_of: Callable[..., Any]) -> None:
    unknown = VerdictRecord("OFF-1", 1, 0, "unknown", 2, "Put", "the law raised")
    episode = an_episode(outcome="unknown", signature="OFF-1", verdicts=[unknown])

    (found,) = findings.findings(frame_of([episode])).collect()

    assert (found.outcome, found.law) == ("unknown", "OFF-1")
