"""The result of a soak as JUnit XML: a suite per scenario, a test per law asked there.

The names stay the same from night to night, so that a CI server can follow a test. What
has no verdict is an error: an episode that was not judged, a required law or probe that
was not reached, a run that was cut short. A planted bug that broke no law is a failure.
So the file has a failure or an error exactly if the run's exit code is not 0; the
baseline's failures are skipped tests.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crashmq.harness.commands.junit import (
    ERROR,
    FAILURE,
    SKIPPED,
    JUnit,
    Outcome,
    add_test,
)

if TYPE_CHECKING:
    from crashmq.reports.figures import Figures
    from crashmq.reports.summary import Failure, Summary

_ELSEWHERE = "broke a law in episodes that another failure of this run names"


def write_soak_junit(figures: Figures, summary: Summary, path: Path) -> None:
    """Write the file, replacing an older one."""
    junit = JUnit("crashmq soak")
    for scenario in summary.scenarios:
        suite = junit.add_suite(scenario)
        for law, outcome in sorted(_laws_of(scenario, figures, summary).items()):
            add_test(suite, scenario, law, outcome)
        for gap in summary.missing_required:
            if gap.scenario == scenario:
                why = (
                    f"{scenario} requires {gap.kind} {gap.name}, which was not reached"
                )
                add_test(suite, scenario, f"reaches {gap.name}", Outcome(ERROR, why))
        for one in summary.unjudged_failures:
            if scenario in one.scenarios:
                add_test(suite, scenario, one.signature, _unjudged(one))
    suite = junit.add_suite("the run")
    done, planned = summary.episodes, summary.episodes_planned
    cut_short = Outcome(ERROR, f"cut short: {done:,} of {planned:,} episodes")
    outcome = cut_short if summary.is_cut_short else None
    add_test(suite, "the run", "every episode that was asked for has run", outcome)
    if mutant := summary.definition.get("mutant"):
        add_test(suite, "the run", f"planted bug {mutant} is found", _missed(summary))
    junit.write(path)


def _missed(summary: Summary) -> Outcome | None:
    """What became of the search for a planted bug; None if it was found."""
    if summary.missed_mutant:
        return Outcome(FAILURE, summary.verdict)
    if summary.distinct_failures:
        return None
    return Outcome(SKIPPED, "too little was judged to tell")


def _laws_of(
    scenario: str, figures: Figures, summary: Summary
) -> dict[str, Outcome | None]:
    """The laws that were asked in a scenario, with what became of each.

    A breach whose episode has no verdict is an error of its own, and none of the law.
    """
    tests: dict[str, Outcome | None] = {}
    for row in figures.laws:
        if row.scenario != scenario:
            continue
        if row.violations > row.unknown:
            is_known = all(one.excused for one in summary.distinct_failures)
            tests[row.law] = Outcome(SKIPPED if is_known else FAILURE, _ELSEWHERE)
        elif row.checks:
            tests[row.law] = None
    here = [one for one in summary.distinct_failures if scenario in one.scenarios]
    for name in dict.fromkeys(one.law or one.signature for one in here):
        alike = [one for one in here if name in (one.law, one.signature)]
        tests[name] = _violated(alike)
    return tests


def _violated(alike: Sequence[Failure]) -> Outcome:
    """The failures of one law: red if the baseline does not accept all of them."""
    red = [one for one in alike if not one.excused]
    if not red:
        first = alike[0]
        return Outcome(SKIPPED, f"known: {first.excused}", first.law)
    first, text = red[0], "\n\n".join(map(_told, red))
    return Outcome(FAILURE, first.message.partition("\n")[0], first.law, text)


def _unjudged(one: Failure) -> Outcome:
    message = one.message.partition("\n")[0] or f"the episode ended: {one.outcome}"
    return Outcome(ERROR, message, one.law, _told(one))


def _told(one: Failure) -> str:
    """The message, how often and where, and the command that replays it."""
    met_in = f" in {', '.join(one.scenarios)}" if len(one.scenarios) > 1 else ""
    episodes = f"{one.episodes:,} episode{'s' if one.episodes != 1 else ''}"
    steps = f"{one.steps} step{'s' if one.steps != 1 else ''}"
    lines = [
        one.message,
        f"{episodes} of signature {one.signature}{met_in}; the smallest: "
        f"{one.scenario} episode {one.episode_id}, {steps}",
        f"nights: {one.history}" if one.history else "",
        f"replay: crashmq replay {shlex.quote(one.case)}" if one.case else "",
    ]
    return "\n".join(line for line in lines if line)
