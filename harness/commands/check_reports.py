"""The machine-readable results of ``crashmq check``.

JUnit XML, for CI servers, with one test for each phase of a scenario; JSON; a Markdown
page for GitHub's step summary; and annotations, which are GitHub workflow commands.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from crashmq.harness.commands.junit import (
    ERROR,
    FAILURE,
    SKIPPED,
    JUnit,
    Outcome,
    add_test,
)
from crashmq.harness.commands.output import say
from crashmq.harness.episodes.timeline import timeline
from crashmq.harness.failures.baseline import Known
from crashmq.harness.searches.gate import GateFailure, GateResult
from crashmq.harness.subjects.named import OURS
from crashmq.models.printable import printable_lines

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class GateReport:
    """The result of the gate as the reports need it; ``seconds`` is wall time.

    Attributes:
        replays_with: options that a replay needs to find what is the user's own.
        expired: entries of the baseline that excuse nothing any more.
    """

    result: GateResult
    profile: str
    mutant: str
    subject: str
    verdict: str
    exit_code: int
    seconds: float
    replays_with: str = ""
    expired: tuple[Known, ...] = ()

    def replay(self, failure: GateFailure) -> str:
        """The command that replays a failure."""
        return f"crashmq replay {shlex.quote(str(failure.case))}{self.replays_with}"

    @property
    def under(self) -> str:
        """What was planted, and which store was judged, if it is not ours."""
        bug = f", planted bug {self.mutant}" if self.mutant else ""
        return bug + (f", store {self.subject}" if self.subject != OURS else "")


def write_json(told: GateReport, path: Path) -> None:
    """Write the result as one JSON object; to standard output for ``-``."""
    text = json.dumps(as_json(told), indent=2)
    if str(path) == "-":
        say(text)
    else:
        path.write_text(text + "\n", encoding="utf-8")


def as_json(told: GateReport) -> dict[str, Any]:
    """The result as a JSON object; its keys do not change within a format."""
    result = told.result
    return {
        "format": _FORMAT,
        "verdict": told.verdict,
        "exit_code": told.exit_code,
        "profile": told.profile,
        "mutant": told.mutant,
        "subject": told.subject,
        "seconds": round(told.seconds, 3),
        "parts": [asdict(row) for row in result.rows],
        "failures": [
            {
                "law": one.law,
                "scenario": one.scenario,
                "phase": one.phase,
                "ops": len(one.shrunk.program.ops),
                "step": one.shrunk.result.step,
                "message": one.shrunk.result.message,
                "case": str(one.case),
                "replay": told.replay(one),
            }
            for one in result.failures
        ],
        "known": [
            {**_entry(one), "times": times} for one, times in result.known.items()
        ],
        "expired": [_entry(one) for one in told.expired],
        "unjudged": result.unjudged,
        "not_run": [{"scenario": s, "phase": p} for s, p in result.not_run],
        "cannot": result.cannot,
        "interrupted": result.interrupted,
    }


def _entry(one: Known) -> dict[str, str]:
    return {
        "law": one.law,
        "scenario": one.scenario,
        "reason": one.reason,
        "expires": one.expires.isoformat(),
    }


def write_junit(told: GateReport, path: Path) -> None:
    """Write the result as JUnit XML: a suite per scenario, a test per phase."""
    result = told.result
    failures = {(one.scenario, one.phase): one for one in result.failures}
    left = set(result.not_run)
    junit = JUnit("crashmq check")
    for scenario, rows in groupby(result.rows, key=lambda row: row.scenario):
        suite = junit.add_suite(scenario)
        for row in rows:
            outcome = None
            failure = failures.get((scenario, row.phase))
            if failure is not None:
                outcome = _outcome(failure, told)
            elif row.failures:
                why = "broke a law that another part of the gate reports"
                outcome = Outcome(FAILURE, why)
            elif (scenario, row.phase) in left:
                outcome = Outcome(SKIPPED, "was not run to its end")
            elif row.known:
                outcome = Outcome(SKIPPED, "a failure that is known")
            add_test(suite, scenario, row.phase, outcome)
    if result.unjudged:
        suite = junit.add_suite("what could not be judged")
        for why in result.unjudged:
            add_test(suite, "unjudged", why, Outcome(ERROR, why))
    junit.write(path)


def _outcome(failure: GateFailure, told: GateReport) -> Outcome:
    message = failure.shrunk.result.message.partition("\n")[0]
    return Outcome(FAILURE, message, failure.law, _timeline(failure, told))


def _timeline(failure: GateFailure, told: GateReport) -> str:
    return timeline(failure.shrunk.result, replay=told.replay(failure))


def write_step_summary(told: GateReport, path: str) -> None:
    """Add a page to GitHub's step summary, if ``path`` is not empty."""
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(_page(told))


def _page(told: GateReport) -> str:
    result = told.result
    runs = sum(row.runs for row in result.rows)
    lines = [
        f"## crashmq check: {told.verdict}",
        "",
        f"{runs:,} programs, profile {told.profile}{told.under}, {told.seconds:.0f} s.",
        "",
    ]
    for failure in result.failures:
        lines += [
            f"### {failure.law} in {failure.scenario}",
            "",
            "```text",
            printable_lines(_timeline(failure, told)).replace("```", "'''"),
            "```",
            "",
        ]
    lines += [f"- known: {printable_lines(one.sentence)}" for one in result.known]
    lines += [f"- not judged: {printable_lines(why)}" for why in result.unjudged]
    return "\n".join(lines) + "\n"


def annotate(told: GateReport) -> Iterator[str]:
    """GitHub's workflow commands: errors for failures, warnings for unjudged ones.

    A failure that was planted is what was hoped for, so it is no error but a notice.
    """
    level = "notice" if told.mutant else "error"
    for failure in told.result.failures:
        title = f"{failure.law} in {failure.scenario}"
        message = f"{failure.shrunk.result.message}\n{told.replay(failure)}"
        yield f"::{level} title={_property(title)}::{_data(message)}"
    for why in told.result.unjudged:
        yield f"::warning title=crashmq::{_data(why)}"
    if told.verdict == "MISSED":
        missed = f"planted bug {told.mutant} broke no law"
        yield f"::error title=MISSED::{_data(missed)}"


def _data(text: str) -> str:
    return (
        printable_lines(text)
        .replace("%", "%25")
        .replace("\r", "%0D")
        .replace("\n", "%0A")
    )


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
