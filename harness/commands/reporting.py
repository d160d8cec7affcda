"""Shared by ``soak`` and ``report``: case files and the report.

Spark is imported inside functions, so that both commands can report bad input, or a
machine without Spark, before they need it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from crashmq.harness.commands.arguments import writing
from crashmq.harness.commands.exits import EnvironmentLacking
from crashmq.harness.commands.soak_junit import write_soak_junit
from crashmq.harness.failures.baseline import Baseline
from crashmq.harness.failures.case_file import SUFFIX, CaseFile
from crashmq.models.program_json import from_json
from crashmq.reports.errors import NotInstalled
from crashmq.reports.extras import require_packages
from crashmq.reports.places import Place

if TYPE_CHECKING:
    from crashmq.reports.figures import Background, Figures, Finding
    from crashmq.reports.summary import Summary

CASES_DIR = "cases"
_STEM_MAX = 160  # a name has 255 bytes at most, and the file is written beside it first
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@contextmanager
def reporting_what_is_missing(*, spark: bool, instead: str = "") -> Iterator[None]:
    """Refuse a machine that lacks what reports need; the command line says it.

    Args:
        spark: whether Spark is needed too, not only what reports need.
        instead: a sentence on what to do if it is not installed.
    """
    try:
        require_packages(spark=spark)
        yield
    except NotInstalled as error:
        raise EnvironmentLacking(f"{error} {instead}".rstrip()) from None


def write_report(
    aggregates: Any,
    out: Place,
    baseline: Baseline | None = None,
    junitxml: Path | None = None,
) -> tuple[Summary, dict[str, str]]:
    """Write a case file for each failure, then the report, which links them.

    A run whose directory is named like a night is compared with the nights before it.

    Args:
        aggregates: the aggregates of the run, from ``reports``.
        out: the run's directory.
        baseline: known failures that do not fail the run.
        junitxml: where to write the result as JUnit XML, too.

    Returns:
        The summary, and the paths of the case files by signature.
    """
    from crashmq.reports.render import MARKDOWN_FILE, collect_figures, render

    figures = collect_figures(aggregates, out)
    background = _background(figures, out, baseline or Baseline())
    figures = replace(figures, background=background)
    cases: dict[str, Place] = {}
    with writing():
        for found in figures.findings:
            if found.program:
                cases[found.signature] = _save_case(found, out / CASES_DIR)
        summary = render(figures, out, cases)
        if junitxml:
            write_soak_junit(figures, summary, junitxml)
        _tell_ci(out / MARKDOWN_FILE, os.environ.get("GITHUB_STEP_SUMMARY", ""))
    return summary, {key: str(place) for key, place in cases.items()}


def _tell_ci(report: Place, step_summary: str) -> None:
    """Add the report to GitHub's step summary, if there is one."""
    if step_summary:
        with Path(step_summary).open("a", encoding="utf-8") as page:
            page.write(report.read_text(encoding="utf-8"))


def _background(figures: Figures, out: Place, baseline: Baseline) -> Background:
    """What earlier nights and the baseline say about the failures of a run."""
    from crashmq.reports.figures import Background
    from crashmq.reports.nights import date_of, side_by_side

    excused = {
        found.signature: told
        for found in figures.findings
        if (told := baseline.excuse(found.law, found.scenarios))
    }
    expired = tuple(one.sentence for one in baseline.expired)
    if not date_of(out.absolute().name):
        return Background(excused=excused, expired=expired)
    from crashmq.reports.nights_render import nights_before, one_night

    tonight = one_night(out.absolute(), figures)
    nights = side_by_side([*nights_before(out.absolute()), tonight])
    return Background(
        history={one.signature: one.told for one in nights.met},
        excused=excused,
        expired=expired,
        resolved=tuple(f"{one.signature}: {one.told}" for one in nights.resolved),
    )


def _save_case(found: Finding, directory: Place) -> Place:
    """Save the failure's case file; an existing one is kept as it is."""
    path = directory / f"{_stem(found.signature)}{SUFFIX}"
    if not path.exists():
        case = CaseFile(
            scenario=found.scenario,
            program=from_json(json.loads(found.program)),
            violated=found.law if found.outcome == "violated" else "",
            step=min(found.step, len(json.loads(found.program)["ops"])),
            digest=found.digest,
            message=found.message,
            mutant=found.mutant,
            subject=found.subject or "python",
        )
        _put(case, path)
    return path


def _stem(signature: str) -> str:
    """A signature as the name of a file; a long one is cut, and ends with its hash."""
    stem = _UNSAFE.sub("-", signature)
    if len(stem) <= _STEM_MAX:
        return stem
    digest = hashlib.sha256(signature.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{stem[: _STEM_MAX - len(digest) - 1]}-{digest}"


def _put(case: CaseFile, path: Place) -> None:
    if isinstance(path, Path):
        case.save(path)
        return
    with TemporaryDirectory(prefix="crashmq-") as directory:
        case.save(Path(directory) / path.name)
        path.write_bytes((Path(directory) / path.name).read_bytes())
