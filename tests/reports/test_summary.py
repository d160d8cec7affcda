from __future__ import annotations

from dataclasses import replace

import pytest
from sample_figures import DECLARED, clean, finding, planted, totals

from crashmq.reports.figures import Background, Figures
from crashmq.reports.records import ExcuseCount, OpCount
from crashmq.reports.summary import Missing, summarise

CUT_SHORT = clean(elapsed_s=None)
NO_PROBE = clean(probes=[])
NO_LAW = clean(laws=[])
DIED = clean(findings=[finding(outcome="timeout", law="")])
UNKNOWN = clean(findings=[finding(outcome="unknown")])
BROKEN = clean(findings=[finding(), finding(signature="b", outcome="timeout")])
NOTHING_RAN = clean(scenarios=[])
TITLED = replace(DECLARED, mutants={"R28": "late-flush"})
MISSED = planted("R28", declared=TITLED)
FOUND = planted("R28", findings=[finding()])
TOO_SHORT_TO_MISS = planted("R28", elapsed_s=None)
KNOWN = Background(excused={"CL-1-Restart": "open"})
DIED_TOO = [finding(), finding(signature="b", outcome="timeout", law="", episodes=2)]


def test_a_clean_run_says_so_with_its_size_and_no_warning() -> None:
    summary = summarise(clean(), {})

    assert summary.exit_code == 0
    assert summary.verdict == (
        "Clean: 200 episodes, 4,000 ops and 300 crashes; no law was broken."
    )
    assert summary.warnings == []
    assert (summary.episodes_per_second, summary.ops_per_second) == (100.0, 2000.0)


@pytest.mark.parametrize(
    ("figures", "code", "word"),
    [
        (BROKEN, 1, "Violated: 1 distinct failure of CL-1 in 6 of 200"),
        (UNKNOWN, 5, "Not judged: 6 of 200 episodes ended without"),
        (DIED, 1, "Hung or died: 6 of 200 episodes ended without"),
        (CUT_SHORT, 5, "Not judged: the run was cut short"),
        (NO_PROBE, 5, "never reached log.roll in power_loss"),
        (NO_LAW, 5, "never reached CL-1 in power_loss"),
        (NOTHING_RAN, 5, "Not judged"),
        (MISSED, 1, "MISSED: planted bug R28 (late-flush) broke no law in 200 epis"),
        (FOUND, 1, "Violated: 1 distinct"),
        (TOO_SHORT_TO_MISS, 5, "Not judged: the run was cut short"),
        (replace(FOUND, background=KNOWN), 0, "Known: 1 distinct failure of CL-1"),
        (clean(findings=DIED_TOO, background=KNOWN), 1, "Hung or died: 2 of 200"),
        (
            clean(findings=[finding()], background=KNOWN, elapsed_s=None),
            5,
            "crashes; no law was broken but 1 known.",
        ),
    ],
)
def test_a_run_that_is_not_clean_exits_as_the_table_of_codes_says(
    figures: Figures, code: int, word: str
) -> None:
    summary = summarise(figures, {})

    assert summary.exit_code == code
    assert word in summary.verdict


def test_a_run_with_fewer_episodes_than_planned_was_cut_short() -> None:
    summary = summarise(clean(scenarios=[totals(episodes=150, passed=150)]), {})

    assert summary.exit_code == 5
    assert "Cut short: 150 of 200 episodes." in summary.warnings


def test_only_scenarios_that_were_asked_for_can_miss_what_they_require() -> None:
    summary = summarise(NO_PROBE, {})

    assert summary.missing_required == [Missing("power_loss", "probe", "log.roll")]
    assert summary.probes_never_hit == ["log.roll"]


def test_a_branch_out_of_reach_is_not_missed_and_is_told_once_it_is_reached() -> None:
    declared = replace(DECLARED, unreachable={"log.roll": "nothing comes here"})
    missed, reached = clean(probes=[], declared=declared), clean(declared=declared)

    assert summarise(missed, {}).probes_never_hit == []
    assert summarise(reached, {}).warnings == [
        "Reached, though declared unreachable: log.roll."
    ]


def test_a_law_with_few_checks_in_a_long_run_is_told() -> None:
    (law,) = clean().laws
    long = [totals(episodes=20_000, passed=20_000)]
    rare, often = replace(law, checks=99), replace(law, checks=100)

    told = summarise(clean(scenarios=long, laws=[rare]), {})

    assert told.rarely_checked == {"CL-1": 99}
    assert "Checked less than once in 200 episodes: CL-1." in told.warnings
    assert summarise(clean(scenarios=long, laws=[often]), {}).rarely_checked == {}
    assert summarise(clean(laws=[replace(law, checks=1)]), {}).rarely_checked == {}


def test_a_declared_law_without_a_check_is_vacuous() -> None:
    summary = summarise(NO_LAW, {})

    assert summary.vacuous_laws == ["CL-1"]
    assert "Declared, but never checked: CL-1." in summary.warnings


def test_a_law_excused_in_nearly_all_its_moments_is_named() -> None:
    at_the_bound, beyond = 70 * 99, 70 * 99 + 1

    kept = summarise(clean(excuses=[ExcuseCount("CL-1", "alone", at_the_bound)]), {})
    named = summarise(clean(excuses=[ExcuseCount("CL-1", "alone", beyond)]), {})

    assert (kept.mostly_excused, kept.warnings) == ([], [])
    assert named.mostly_excused == ["CL-1"]
    assert named.warnings == ["Excused in more than 99% of moments: CL-1."]
    assert named.exit_code == 0


def test_what_makes_green_mean_less_is_warned_of() -> None:
    ops = [OpCount("During", "", 0), OpCount("PutMessage", "Skipped", 5)]
    run = clean().run | {"definition": {"scenarios": ["power_loss"], "mutant": "R21"}}
    few = [totals(episodes=50)]

    found = summarise(clean(ops=ops, run=run | {"episodes": 50}, scenarios=few), {})

    assert found.warnings == [
        "power_loss ran only 50 episodes.",
        "Ops that never ran: During.",
        "Ops that were nearly always skipped: PutMessage.",
        "The planted bug R21 was in place: not the shipped engine.",
    ]


def test_a_failure_names_the_case_file_that_was_saved_for_it() -> None:
    summary = summarise(BROKEN, {"CL-1-Restart": "out/cases/a.case.json"})

    assert summary.distinct_failures[0].case == "out/cases/a.case.json"
    assert summary.unjudged_failures[0].case == ""


def test_many_names_are_cut_short() -> None:
    probes = {f"p{n:02}": "" for n in range(20)}
    declared = type(DECLARED)(probes=probes)

    summary = summarise(clean(declared=declared, probes=[]), {})

    assert summary.warnings[0].endswith("p06, p07 and 12 more.")
