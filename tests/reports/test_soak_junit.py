"""A soak's JUnit XML: what is red in it, and that it agrees with the exit code."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from sample_figures import clean, finding, planted, totals

from crashmq.harness.commands.soak_junit import write_soak_junit
from crashmq.reports.figures import Background, Figures
from crashmq.reports.records import LawChecks
from crashmq.reports.summary import summarise

KNOWN = Background(excused={"CL-1-Restart": "being mended"})
BROKEN = [LawChecks("CL-1", "power_loss", 70, 6, 0)]


def written(figures: Figures, path: Path) -> ET.Element:
    summary = summarise(figures, {"CL-1-Restart": "run/cases/a b.case.json"})
    write_soak_junit(figures, summary, path / "j.xml")
    return ET.parse(path / "j.xml").getroot()


def outcomes(suites: ET.Element) -> dict[str, str]:
    """What became of each test that did not pass, by its suite and name."""
    return {
        f"{suite.get('name')}: {test.get('name')}": f"{one.tag}, {one.get('message')}"
        for suite in suites
        for test in suite
        for one in test
    }


def test_a_clean_run_is_a_test_for_each_law_of_each_scenario(tmp_path: Path) -> None:
    suites = written(clean(), tmp_path)

    assert suites.get("name") == "crashmq soak"
    assert [suite.get("name") for suite in suites] == ["power_loss", "the run"]
    (law,) = suites[0]
    assert (law.get("classname"), law.get("name")) == ("power_loss", "CL-1")
    assert outcomes(suites) == {}


def test_a_broken_law_is_a_failure_with_its_message_and_its_replay(
    tmp_path: Path,
) -> None:
    broken = finding(message="CL-1 (I1):\n  byte \x007 <here>")

    suites = written(clean(laws=BROKEN, findings=[broken]), tmp_path)

    (failure,) = suites.iter("failure")
    assert (failure.get("type"), failure.get("message")) == ("CL-1", "CL-1 (I1):")
    assert "byte \\x007 <here>" in (failure.text or "")
    assert "replay: crashmq replay 'run/cases/a b.case.json'" in (failure.text or "")
    assert (suites[0].get("tests"), suites[0].get("failures")) == ("1", "1")


def test_what_the_baseline_accepts_is_skipped(tmp_path: Path) -> None:
    run = clean(laws=BROKEN, findings=[finding()], background=KNOWN)

    assert outcomes(written(run, tmp_path)) == {
        "power_loss: CL-1": "skipped, known: being mended"
    }


def test_what_the_baseline_accepts_hides_no_other_failure_of_the_law(
    tmp_path: Path,
) -> None:
    both = [finding(signature="CL-1-end", message="another"), finding()]
    run = clean(laws=BROKEN, findings=both, background=KNOWN)

    assert outcomes(written(run, tmp_path)) == {"power_loss: CL-1": "failure, another"}


def test_a_failure_of_several_scenarios_is_a_failure_in_each(tmp_path: Path) -> None:
    both = [totals(), totals(scenario="other")]
    met = finding(scenarios={"other": 2, "power_loss": 6})

    suites = written(clean(scenarios=both, findings=[met]), tmp_path)

    assert outcomes(suites) == {
        "power_loss: CL-1": "failure, CL-1 is broken",
        "other: CL-1": "failure, CL-1 is broken",
        "other: reaches never.asked": "error, other requires probe never.asked, "
        "which was not reached",
    }
    (text, _) = [one.text or "" for one in suites.iter("failure")]
    assert "8 episodes of signature CL-1-Restart in other, power_loss; the" in text


def test_a_law_that_broke_in_several_ways_is_one_test_that_tells_them_all(
    tmp_path: Path,
) -> None:
    both = [finding(message="often"), finding(signature="CL-1-end", message="rarely")]

    suites = written(clean(laws=BROKEN, findings=both), tmp_path)

    (failure,) = suites.iter("failure")
    assert failure.get("message") == "often"
    text = failure.text or ""
    assert text.startswith("often\n6 episodes of signature CL-1-Restart;")
    assert "\n\nrarely\n6 episodes of signature CL-1-end;" in text


def test_a_law_that_no_finding_names_is_as_red_as_the_findings(tmp_path: Path) -> None:
    laws = [*BROKEN, LawChecks("CQ-1", "power_loss", 70, 2, 0)]
    run = clean(laws=laws, findings=[finding()])

    red = outcomes(written(run, tmp_path))
    known = outcomes(written(replace(run, background=KNOWN), tmp_path))

    assert red["power_loss: CQ-1"].startswith("failure, broke a law in episodes")
    assert known["power_loss: CQ-1"].startswith("skipped, broke a law in episodes")


def test_a_law_whose_every_breach_has_no_verdict_is_not_told_as_broken(
    tmp_path: Path,
) -> None:
    laws = [LawChecks("CL-1", "power_loss", 70, 3, 3)]
    unknown = finding(outcome="unknown")

    told = outcomes(written(clean(laws=laws, findings=[unknown]), tmp_path))

    assert [name for name, what in told.items() if "error" not in what] == []
    assert "power_loss: CL-1" not in told


def test_whether_a_planted_bug_was_found_is_a_test(tmp_path: Path) -> None:
    found = planted("R28", findings=[finding()])
    short = planted("R28", elapsed_s=None)

    told = [outcomes(written(run, tmp_path)) for run in (planted("R28"), found, short)]

    name = "the run: planted bug R28 is found"
    assert told[0][name].startswith("failure, MISSED: planted bug R28 broke no law in")
    assert name not in told[1]
    assert told[2][name] == "skipped, too little was judged to tell"


def test_what_has_no_verdict_is_an_error(tmp_path: Path) -> None:
    died = finding(
        signature="timeout-power_loss", outcome="timeout", law="", message=""
    )
    run = clean(probes=[], findings=[died], elapsed_s=None)

    assert outcomes(written(run, tmp_path)) == {
        "power_loss: reaches log.roll": "error, power_loss requires probe log.roll, "
        "which was not reached",
        "power_loss: timeout-power_loss": "error, the episode ended: timeout",
        "the run: every episode that was asked for has run": "error, cut short: 200 of "
        "200 episodes",
    }


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"elapsed_s": None},
        {"probes": []},
        {"laws": []},
        {"scenarios": []},
        {"findings": [finding()]},
        {"findings": [finding()], "background": KNOWN},
        {"findings": [finding(outcome="unknown")]},
        {"findings": [finding(outcome="signal:9")], "background": KNOWN},
        {"laws": BROKEN, "findings": [finding(scenario="other")]},
    ],
)
@pytest.mark.parametrize("mutant", ["", "R28"])
def test_a_file_is_green_exactly_if_the_exit_code_is_0(
    changes: dict[str, object], mutant: str, tmp_path: Path
) -> None:
    run = planted(mutant, **changes)

    suites = written(run, tmp_path)

    red = [*suites.iter("failure"), *suites.iter("error")]
    assert bool(red) == bool(summarise(run, {}).exit_code)
