"""Several nights side by side: what becomes of a failure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from sample_figures import clean, finding, planted, point, totals

from crashmq.harness.failures.baseline import Baseline, Known
from crashmq.reports.figures import Figures
from crashmq.reports.nights import (
    BACK,
    KNOWN,
    NEW,
    NOT_ASKED,
    NOT_MET,
    RESOLVED,
    Night,
    Nights,
    date_of,
    night_of,
    side_by_side,
)
from crashmq.reports.records import StateCount


def night(day: int, times: int = 0, episodes: int = 200, **changes: Any) -> Night:
    """A night of so many episodes, so many of which met CL-1-Restart."""
    figures = clean(scenarios=[totals(episodes=episodes)])
    if times:
        figures = replace(figures, findings=[finding(episodes=times)])
    return night_of(f"2026-11-{day:02d}-x", replace(figures, **changes))


def state(*nights: Night) -> str:
    (one,) = side_by_side(nights).failures
    return one.state


def of(subject: str) -> Figures:
    definition = {"scenarios": ["power_loss"], "seed": 7, "mutant": ""}
    run = {"run_id": "x", "episodes": 200}
    return clean(run=run | {"definition": definition | {"subject": subject}})


def test_a_bug_of_the_second_night_is_new_and_then_resolved() -> None:
    one, two, three = night(1), night(2, times=50), night(3)

    assert side_by_side([one]).failures == ()
    assert state(one, two) == NEW
    assert state(one, two, three) == RESOLVED


def test_nights_are_told_by_their_dates_however_they_are_given() -> None:
    told = side_by_side([night(3), night(1), night(2, times=50)])

    assert [one.name for one in told.nights] == [
        f"2026-11-0{day}-x" for day in (1, 2, 3)
    ]
    assert told.failures[0].episodes == (0, 50, 0)
    assert told.verdict == "2026-11-03-x, beside 2 nights before it: 1 resolved."


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("2026-11-24-0123456789ab", "2026-11-24"),
        ("2026-11-24", "2026-11-24"),
        ("2026-11-245", ""),
        ("of-2026-11-24", ""),
    ],
)
def test_the_date_of_a_night_is_what_its_name_begins_with(name: str, date: str) -> None:
    assert date_of(name) == date
    assert night_of(name, clean(), began="2026-12-01").when == (date or "2026-12-01")


def test_what_the_night_before_met_is_known_and_what_it_did_not_is_back() -> None:
    assert state(night(1, times=5), night(2, times=4)) == KNOWN
    assert state(night(1, times=5), night(2), night(3, times=4)) == BACK


def test_a_rare_failure_that_is_not_met_is_not_called_resolved() -> None:
    nights = side_by_side([night(1, times=1), night(2)])

    (one,) = nights.failures
    assert one.state == NOT_MET
    assert one.told == "not met, which is chance in 37%; seen 2026-11-01-x"
    # Five nights without it are enough.
    assert state(night(1, times=1), *map(night, range(2, 7))) == RESOLVED


def test_a_night_that_did_not_ask_says_nothing() -> None:
    other = clean(scenarios=[totals(scenario="clean_restart")])
    other = replace(
        other, run=other.run | {"definition": {"scenarios": ["clean_restart"]}}
    )

    assert state(night(1, times=50), night_of("2026-11-02-x", other)) == NOT_ASKED
    elsewhere = night_of("2026-11-02-x", of("mine:store"))
    assert state(night(1, times=50), elsewhere) == NOT_ASKED
    assert state(night(1, times=5), elsewhere, night(3, times=5)) == KNOWN


def test_a_night_says_as_much_as_it_ran_of_the_scenarios_that_met_a_failure() -> None:
    other = totals(scenario="clean_restart", episodes=10_000)

    def last(power_loss: int) -> Night:
        return night(2, scenarios=[totals(episodes=power_loss), other])

    assert state(night(1, times=20), last(0)) == NOT_ASKED
    assert state(night(1, times=20), last(10)) == NOT_MET
    assert state(night(1, times=20), last(200)) == RESOLVED


def test_a_failure_is_followed_by_its_frequency_in_each_scenario() -> None:
    here, there = totals(), totals(scenario="clean_restart")
    met = [finding(scenarios={"clean_restart": 1, "power_loss": 100})]
    first = night(1, findings=met, scenarios=[here, there])

    assert state(first, night(2, scenarios=[there])) == NOT_MET
    assert state(first, night(2, scenarios=[here])) == RESOLVED


def test_what_the_baseline_excuses_is_no_reason_for_red() -> None:
    nights = [night(1), night(2, times=50)]

    def excuse(law: str, scenarios: Iterable[str]) -> str:
        return "being mended" if (law, *scenarios) == ("CL-1", "power_loss") else ""

    told = side_by_side(nights, excuse)

    assert (side_by_side(nights).exit_code, told.exit_code) == (1, 0)
    assert told.failures[0].told == "new; baseline: being mended"
    assert "1 new (1 excused by the baseline)" in told.verdict


def test_what_the_baseline_excuses_in_one_scenario_is_red_in_another() -> None:
    met = [finding(scenarios={"clean_restart": 1, "power_loss": 50})]
    entry = Known("CL-1", "being mended", date(2026, 12, 31), "power_loss")

    told = side_by_side([night(1, findings=met)], Baseline((entry,)).excuse)

    assert (told.exit_code, told.failures[0].excuse) == (1, "")
    assert told.failures[0].scenarios == ("clean_restart", "power_loss")


@pytest.mark.parametrize(
    "short", [{"elapsed_s": None}, {"scenarios": [totals(episodes=199)]}]
)
def test_a_night_that_was_cut_short_has_no_verdict(short: dict[str, Any]) -> None:
    assert side_by_side([night(1), night(2)]).exit_code == 0
    told = side_by_side([night(1), night(2, **short)])
    assert told.exit_code == 5
    assert told.verdict.endswith(
        ": no failure in any of them. It judged too little for a verdict."
    )


def test_a_night_is_judged_as_its_own_report_is() -> None:
    nothing = side_by_side([night(1), night(2, probes=[])])
    missed = side_by_side([night(1), night_of("2026-11-02-x", planted("R28"))])

    assert (nothing.exit_code, missed.exit_code) == (5, 1)
    assert missed.verdict.endswith(" MISSED: planted bug R28 broke no law.")


def test_discovery_counts_each_kind_of_state_that_starts_find() -> None:
    often = StateCount("log 1", "normal", 19)
    rare = StateCount("log 0", "refused", 1)
    again = StateCount("log 1", "abnormal", 1)

    told = side_by_side([night(1, states=[often]), night(2, states=[again, rare])])

    first, second = told.discovery
    assert (first.states, first.unseen_states) == (1, 0.0)
    assert (second.states, second.unseen_states) == (2, 1 / 21)


def test_discovery_counts_each_kind_of_crash_once() -> None:
    rare = [point(), point(op="Restart", crashes=1)]

    told: Nights = side_by_side([night(1), night(2, crash_points=rare)])

    first, second = told.discovery
    assert (first.places, first.unseen) == (1, 0.0)
    assert (second.places, second.unseen) == (2, 1 / 21)
