"""Laws that prove little: what becomes of them from night to night."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sample_figures import DECLARED, clean

from crashmq.reports.nights import Night, night_of
from crashmq.reports.records import ExcuseCount, LawChecks
from crashmq.reports.silent_laws import silent_laws


def night(day: int, checks: Mapping[str, int], excused: int = 0) -> Night:
    """A night with the checks of each declared law; ``excused`` is for CL-1."""
    laws = [LawChecks(law, "power_loss", times, 0, 0) for law, times in checks.items()]
    figures = clean(
        laws=laws,
        declared=replace(DECLARED, laws=dict.fromkeys(checks, "what it promises")),
        excuses=[ExcuseCount("CL-1", "alone", excused)] if excused else [],
    )
    return night_of(f"night{day}", figures)


def told(*nights: Night) -> dict[str, str]:
    return {one.law: one.told for one in silent_laws(nights)}


def test_a_law_that_is_asked_in_each_night_is_not_among_them() -> None:
    assert silent_laws([night(1, {"CL-1": 9}), night(2, {"CL-1": 1})]) == []


def test_a_law_that_is_no_longer_checked_is_told_with_the_night() -> None:
    nights = [night(1, {"CL-1": 9}), night(2, {"CL-1": 0}), night(3, {"CL-1": 0})]

    (one,) = silent_laws(nights)

    assert one.states == ("asked", "never checked", "never checked")
    assert one.told == "never checked since night2"
    assert [night.vacuous for night in nights] == [[], ["CL-1"], ["CL-1"]]


def test_a_law_that_is_excused_nearly_always_is_one_of_them() -> None:
    rarely, often = night(1, {"CL-1": 9}, 99), night(2, {"CL-1": 9}, 9_999)

    assert often.mostly_excused == ["CL-1"]
    assert told(rarely, often) == {"CL-1": "mostly excused since night2"}
    assert told(often, night(3, {"CL-1": 9})) == {"CL-1": "asked since night3"}
    assert told(often) == {"CL-1": "mostly excused in each night"}


def test_a_law_that_did_not_exist_was_not_asked() -> None:
    before, after = night(1, {"CL-1": 9}), night(2, {"CL-1": 9, "CL-2": 0})

    (one,) = silent_laws([before, after])

    assert one.states == ("not declared", "never checked")


def test_what_fell_silent_last_comes_first_and_what_speaks_again_last() -> None:
    nights = [
        night(1, {"AA-1": 0, "BB-1": 0, "CC-1": 5, "DD-1": 5}),
        night(2, {"AA-1": 5, "BB-1": 0, "CC-1": 0, "DD-1": 5}),
        night(3, {"AA-1": 5, "BB-1": 0, "CC-1": 0, "DD-1": 0}),
    ]

    assert list(told(*nights)) == ["DD-1", "CC-1", "BB-1", "AA-1"]
