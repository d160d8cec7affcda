"""``crashmq check``: the gate, printed as a table, with timelines of failures."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from crashmq.harness.commands import exits
from crashmq.harness.commands.arguments import (
    Seconds,
    baseline_at,
    baseline_option,
    bug_or_store,
    junit_option,
    make_room,
    mutant_file_option,
    mutant_named,
    mutants_of,
    planted,
    process_count,
    scenarios_named,
    subject_at,
    subject_option,
    workers_option,
    writing,
)
from crashmq.harness.commands.check_reports import (
    GateReport,
    annotate,
    write_json,
    write_junit,
    write_step_summary,
)
from crashmq.harness.commands.output import (
    Progress,
    print_timeline,
    say,
    terminal_width,
)
from crashmq.harness.episodes.timeline import timeline
from crashmq.harness.failures.case_file import BadCaseFile
from crashmq.harness.mutants.mutation import Mutant
from crashmq.harness.searches.gate import (
    PROFILES,
    GateFailure,
    GateOptions,
    GateProgress,
    GateResult,
    GateRow,
    check,
)
from crashmq.harness.subjects.named import OURS, NamedSubject
from crashmq.scenarios.catalogue.scenarios import SCENARIOS


@click.command()
@click.argument("scenario", nargs=-1)
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="dev",
    show_default=True,
    help="dev takes a minute on two cores, ci half an hour.",
)
@workers_option
@click.option(
    "--max-time",
    type=Seconds(),
    metavar="S",
    help="Stop after this many seconds, shrinking included, and say what did not run.",
)
@click.option("-x", "--exitfirst", is_flag=True, help="Stop at the first failure.")
@click.option("-q", "--quiet", is_flag=True, help="Print failures and the verdict.")
@click.option(
    "--mutant", metavar="ID", help="Plant this bug first; then a violation is expected."
)
@mutant_file_option
@subject_option
@baseline_option
@junit_option
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the result as JSON, too; `-`: to standard output, instead of the text.",
)
def command(**typed: Any) -> None:
    """Run machines, cases and a small soak over SCENARIO..., by default all.

    Needs neither Spark nor Java. A run that breaks a law is shrunk, printed step by
    step and saved as a case file. If a planted bug breaks no law, the verdict is MISSED
    and the exit code 1.
    """
    _check(_Typed(**typed))


@dataclass(frozen=True, slots=True)
class _Typed:
    """The arguments and options of the command."""

    scenario: tuple[str, ...]
    profile: str
    workers: int | None
    max_time: float | None
    exitfirst: bool
    quiet: bool
    mutant: str | None
    mutant_file: Path | None
    subject: str
    baseline: Path | None
    junitxml: Path | None
    json_file: Path | None


def _check(typed: _Typed) -> None:
    names = scenarios_named(typed.scenario)
    known = mutants_of(typed.mutant_file)
    bug = mutant_named(typed.mutant, known)
    with planted(bug, known):
        pass  # one that cannot be planted is refused before anything runs
    store = subject_at(typed.subject)
    bug_or_store(bug, store)
    baseline = baseline_at(typed.baseline)
    options = GateOptions(
        workers=process_count(typed.workers),
        max_time_s=typed.max_time,
        first_only=typed.exitfirst,
        baseline=baseline.current,
        mutant_file=str(typed.mutant_file or ""),
    )
    for path in (typed.junitxml, typed.json_file):
        make_room(path)
    began = time.monotonic()
    planted_bug = known[bug] if bug else None
    result = _run(typed, names, planted_bug, store, options)
    told = GateReport(
        result=result,
        profile=typed.profile,
        mutant=bug,
        subject=store.name if store else OURS,
        verdict=_verdict(result, bug),
        exit_code=_exit_code(result, bug),
        seconds=time.monotonic() - began,
        replays_with=_replays_with(typed),
        expired=baseline.expired,
    )
    as_json = str(typed.json_file) == "-"
    if not as_json:
        _print(told, names, planted_bug, typed)
        for entry in baseline.expired:
            until = f"another date in {typed.baseline}"
            say(f"expired: {entry.sentence}; mend it, or give it {until}")
    with writing():
        if typed.junitxml:
            write_junit(told, typed.junitxml)
        if typed.json_file:
            write_json(told, typed.json_file)
        write_step_summary(told, os.environ.get("GITHUB_STEP_SUMMARY", ""))
    if os.environ.get("GITHUB_ACTIONS") == "true" and not as_json:
        for line in annotate(told):
            say(line)
    raise SystemExit(told.exit_code)


def _run(
    typed: _Typed,
    names: tuple[str, ...],
    bug: Mutant | None,
    store: NamedSubject | None,
    options: GateOptions,
) -> GateResult:
    try:
        with Progress("check", quiet=typed.quiet) as progress, writing():

            def tell(far: GateProgress) -> None:
                detail = f"{max(1, far.left_s):,.0f} s left" if far.left_s >= 0 else ""
                if far.failures:
                    detail = f"{far.failures} RED{', ' if detail else ''}{detail}"
                progress.update(far.done, far.scenarios, detail)

            return check(
                names, typed.profile, tell, mutant=bug, subject=store, options=options
            )
    except BadCaseFile as error:
        raise exits.BadInput(str(error)) from None


def _print(
    told: GateReport, names: tuple[str, ...], bug: Mutant | None, typed: _Typed
) -> None:
    result = told.result
    if not typed.quiet:
        for line in _table(result.rows):
            say(line)
    for failure in result.failures:
        _tell(failure, told)
    for why in result.unjudged:
        say(f"not judged: {why}")
    for entry, times in result.known.items():
        met = "once" if times == 1 else f"{times:,} times"
        say(f"known: {entry.sentence} (met {met})")
    if result.cannot and not typed.quiet:
        say(f"not asked, {told.subject} cannot do it: {', '.join(result.cannot)}")
    if result.not_run and not result.interrupted and not result.failures:
        left, parts = len(result.not_run), len(result.rows)
        say(f"time was over: {left} of {parts} parts were not run to their end")
    say(_summary(told, names, bug))


def _table(rows: list[GateRow]) -> list[str]:
    width = max((len(row.scenario) for row in rows), default=0)
    return [
        f"{name:<{width}}  " + "  ".join(_cell(row) for row in phases)
        for name, phases in groupby(rows, key=lambda row: row.scenario)
    ]


def _cell(row: GateRow) -> str:
    verdict = f"{row.failures} RED" if row.failures else "ok"
    if row.known and not row.failures:
        verdict = "known"
    return f"{row.phase} {row.runs:>5,} {verdict:<6}".rstrip()


def _replays_with(typed: _Typed) -> str:
    """The options that a replay needs to find what is the user's own."""
    theirs = f" --subject {typed.subject}" if typed.subject != OURS else ""
    if typed.mutant_file:
        theirs += f" --mutant-file {shlex.quote(str(typed.mutant_file))}"
    return theirs


def _tell(failure: GateFailure, told: GateReport) -> None:
    shrunk = failure.shrunk
    say(
        f"\n{failure.law} by the {failure.phase} of {failure.scenario}, shrunk "
        f"from {shrunk.ops_before} to {len(shrunk.program.ops)} ops in {shrunk.runs} "
        f"runs"
    )
    replay = told.replay(failure)
    print_timeline(timeline(shrunk.result, width=terminal_width(), replay=replay))


def _verdict(result: GateResult, mutant: str) -> str:
    """The result in a word or two."""
    if result.failures:
        return "RED"
    if result.interrupted:
        return "INTERRUPTED"
    if mutant:
        return "MISSED"
    if result.unjudged or result.unfinished_scenarios:
        return "NOT JUDGED"
    return "GREEN"


def _summary(told: GateReport, names: tuple[str, ...], bug: Mutant | None) -> str:
    result = told.result
    runs = sum(row.runs for row in result.rows)
    asked = tuple([name for name in names if name not in result.cannot])
    over = asked[0] if len(asked) == 1 else f"{len(asked)} scenarios"
    did = f"{runs:,} programs over {over}, profile {told.profile}"
    under = told.under
    known = f" but {len(result.known)} known" if result.known else ""
    match told.verdict:
        case "RED":
            laws = ", ".join(failure.law for failure in result.failures)
            cases = "\n".join(f"  case  {failure.case}" for failure in result.failures)
            until = ", interrupted" if result.interrupted else ""
            return f"\nRED: {laws} violated; {did}{under}{until}\n{cases}"
        case "INTERRUPTED":
            return f"INTERRUPTED: no law was violated until then; {did}{under}"
        case "MISSED":
            assert bug is not None
            see = ", but see above" if result.unjudged or result.not_run else ""
            planted_bug = f"planted bug {bug.id} ({bug.title})"
            hunt = f"crashmq mutants --only {bug.id}"
            missed = f"MISSED: {planted_bug} broke no law{known}{see}"
            return f"{missed}; {did}\n  next  {hunt}"
        case "NOT JUDGED":
            return f"NOT JUDGED: no law was violated, but see above; {did}{under}"
    more = f"crashmq soak {' '.join(asked)} --episodes 20000 --out runs/first"
    if len(names) == len(SCENARIOS):
        more = "crashmq check --profile ci"
    if told.subject != OURS:
        more += f" --subject {told.subject}"
    return f"GREEN: no law was violated{known}; {did}{under}\n  next  {more}"


def _exit_code(result: GateResult, mutant: str) -> int:
    """The exit code; with a planted bug never 0: it was found, or missed."""
    if result.interrupted:
        return exits.INTERRUPTED
    if result.failures or mutant:
        return exits.FINDINGS
    too_little = result.unjudged or result.unfinished_scenarios
    return exits.TOO_LITTLE if too_little else exits.CLEAN
