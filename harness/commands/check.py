"""``crashmq check``: the gate, printed as a table and, when red, as timelines."""

from __future__ import annotations

from itertools import groupby

import click

from crashmq.harness.commands import exits
from crashmq.harness.commands.arguments import (
    mutant_named,
    scenarios_named,
    writing,
)
from crashmq.harness.commands.output import (
    Progress,
    print_timeline,
    say,
    terminal_width,
)
from crashmq.harness.episodes.timeline import timeline
from crashmq.harness.failures.case_file import BadCaseFile
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.searches.gate import (
    PROFILES,
    GateFailure,
    GateResult,
    GateRow,
    check,
)


@click.command()
@click.argument("scenario", nargs=-1)
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="dev",
    show_default=True,
    help="dev takes seconds, ci minutes.",
)
@click.option("--mutant", metavar="ID", help="Plant this bug first; red is right then.")
def command(scenario: tuple[str, ...], profile: str, mutant: str | None) -> None:
    """Run machines, cases and a small soak over SCENARIO..., by default all.

    Needs neither Spark nor Java. What breaks a law is shrunk, told step by step and
    saved as a case file. A planted bug that breaks no law is MISSED, and exit code 1.
    """
    names, planted = scenarios_named(scenario), mutant_named(mutant)
    try:
        with Progress("check") as progress, writing():
            result = check(names, profile, progress.tell, mutant=planted)
    except BadCaseFile as error:
        raise exits.BadInput(str(error)) from None
    for line in _table(result.rows):
        say(line)
    for failure in result.failures:
        _tell(failure)
    for why in result.unjudged:
        say(f"not judged: {why}")
    say(_summary(result, profile, names, planted))
    raise SystemExit(_exit_code(result, planted))


def _table(rows: list[GateRow]) -> list[str]:
    width = max((len(row.scenario) for row in rows), default=0)
    return [
        f"{name:<{width}}  " + "  ".join(_cell(row) for row in phases)
        for name, phases in groupby(rows, key=lambda row: row.scenario)
    ]


def _cell(row: GateRow) -> str:
    verdict = f"{row.failures} RED" if row.failures else "ok"
    return f"{row.phase} {row.runs:>5,} {verdict:<6}".rstrip()


def _tell(failure: GateFailure) -> None:
    shrunk = failure.shrunk
    say(
        f"\n{failure.law} by the {failure.phase} of {failure.scenario}, shrunk "
        f"from {shrunk.ops_before} to {len(shrunk.program.ops)} ops in {shrunk.runs} "
        f"runs"
    )
    replay = f"crashmq replay {failure.case}"
    print_timeline(timeline(shrunk.result, width=terminal_width(), replay=replay))


def _summary(
    result: GateResult, profile: str, names: tuple[str, ...], mutant: str
) -> str:
    runs = sum(row.runs for row in result.rows)
    over = names[0] if len(names) == 1 else f"{len(names)} scenarios"
    did = f"{runs:,} programs over {over}, profile {profile}"
    under = f", planted bug {mutant}" if mutant else ""
    if result.failures:
        laws = ", ".join(failure.law for failure in result.failures)
        cases = "\n".join(f"  case  {failure.case}" for failure in result.failures)
        until = ", interrupted" if result.interrupted else ""
        return f"\nRED: {laws} violated; {did}{under}{until}\n{cases}"
    if result.interrupted:
        return f"INTERRUPTED: no law was violated until then; {did}{under}"
    if mutant:
        see = ", but see above" if result.unjudged else ""
        bug = f"planted bug {mutant} ({MUTANTS[mutant].title})"
        hunt = f"crashmq mutants --only {mutant}"
        return f"MISSED: {bug} broke no law{see}; {did}\n  next  {hunt}"
    if result.unjudged:
        return f"NOT JUDGED: no law was violated, but see above; {did}"
    soak = f"crashmq soak {' '.join(names)} --episodes 20000 --out runs/first"
    return f"GREEN: no law was violated; {did}\n  next  {soak}"


def _exit_code(result: GateResult, mutant: str) -> int:
    """With a bug planted never clean: either it is a finding, or that it was missed."""
    if result.interrupted:
        return exits.INTERRUPTED
    if result.failures or mutant:
        return exits.FINDINGS
    return exits.TOO_LITTLE if result.unjudged else exits.CLEAN
