"""``crashmq shrink``: the smallest program that violates the law of a case file."""

from __future__ import annotations

import os
from pathlib import Path

import click

from crashmq.harness.commands import exits
from crashmq.harness.commands.arguments import (
    bug_or_store,
    case_at,
    case_mutant,
    case_subject_option,
    mutant_file_option,
    mutants_of,
    planted,
    subject_of,
    writing,
)
from crashmq.harness.commands.output import (
    Progress,
    print_timeline,
    say,
    terminal_width,
)
from crashmq.harness.episodes.running import runner_of
from crashmq.harness.episodes.timeline import timeline
from crashmq.harness.failures.case_file import SUFFIX, CaseFile
from crashmq.harness.failures.shrink import NothingToShrink, ShrinkInterrupted, shrink
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.harness.guards.invariants import invariants_checked
from crashmq.harness.searches.gate import case_of
from crashmq.models.printable import printable


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write the small case; by default next to FILE, as "
    "NAME.min.case.json.",
)
@click.option(
    "--mutant",
    metavar="ID",
    help="Plant this bug; `none` for the clean engine. By default as recorded.",
)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    help="Programs to try at most.",
)
@mutant_file_option
@case_subject_option
def command(
    file: Path,
    out: Path | None,
    mutant: str | None,
    runs: int,
    mutant_file: Path | None,
    subject: str | None,
) -> None:
    """Cut and simplify the case in FILE while it breaks the same law."""
    case = _red_case_at(file)
    store = subject_of(case, file, subject)
    out = out or file.with_name(file.name.removesuffix(SUFFIX) + f".min{SUFFIX}")
    if os.path.lexists(out):
        raise exits.BadInput(
            f"{out} exists already and is not overwritten. Name another --out."
        )
    known = mutants_of(mutant_file)
    bug = case_mutant(case, mutant, known, mutant_file)
    bug_or_store(bug, store)
    try:
        with (
            planted(bug, known),
            invariants_checked(enabled=case.checks_invariants),
            Progress("shrink") as progress,
        ):
            shrunk = shrink(
                case.program,
                case.scenario,
                case.violated,
                budget_runs=runs,
                progress=lambda so_far: progress.update(
                    so_far.runs, runs, f"{len(so_far.program.ops)} ops"
                ),
                run=runner_of(store),
            )
    except NothingToShrink as error:
        raise exits.BadInput(f"{file}: {error}") from None
    except ShrinkInterrupted as cut:
        INTERRUPTS.take()
        shrunk = cut.so_far
    shrunk.result.record.mutant = bug
    with writing():
        written_in = case.mutant_file if mutant_file is None else str(mutant_file)
        small = case_of(
            shrunk, case.scenario, bug, case.subject, written_in if bug else ""
        )
        small.save(out)
    theirs = f" --subject {store.name}" if store else ""
    if bug and mutant_file:
        theirs += f" --mutant-file {mutant_file}"
    replay = f"crashmq replay {out}{theirs}"
    print_timeline(timeline(shrunk.result, width=terminal_width(), replay=replay))
    why = "interrupted" if INTERRUPTS.seen else "budget spent"
    more = f" ({why}; shrink it again)" if shrunk.exhausted else ""
    say(
        f"shrunk from {shrunk.ops_before} to {len(shrunk.program.ops)} ops in "
        f"{shrunk.runs} runs{more}: {printable(str(out))}"
    )
    if INTERRUPTS.seen:
        raise SystemExit(exits.INTERRUPTED)


def _red_case_at(file: Path) -> CaseFile:
    case = case_at(file)
    if not case.violated:
        raise exits.BadInput(
            f"{file} names no law that it breaks, so nothing says what a smaller case "
            f"must break. `crashmq replay {file}` runs it."
        )
    return case
