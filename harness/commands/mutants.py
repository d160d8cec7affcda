"""``crashmq mutants``: plants bugs, searches for them, and reports the results."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

import crashmq.harness.episodes.episode  # noqa: F401  # declares every law
from crashmq.engine.host.probe import declared_probes
from crashmq.harness.commands.arguments import (
    Seconds,
    mutants_of,
    process_count,
    workers_option,
    writing,
)
from crashmq.harness.commands.exits import INTERRUPTED, BadInput, unknown
from crashmq.harness.commands.mutants_operators import operators_option
from crashmq.harness.commands.output import Progress, say
from crashmq.harness.failures.case_file import SUFFIX
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.harness.mutants.campaign import (
    CANARY,
    Campaign,
    MutantOutcome,
    outcomes,
    run_campaign,
)
from crashmq.harness.mutants.check_edits import check_edits
from crashmq.harness.mutants.mutation import Mutant, diff_of
from crashmq.harness.mutants.policies import POLICIES
from crashmq.harness.mutants.verdict import (
    Verdict,
    case_of,
    outcome_line,
    policy_table,
    summary_of,
    verdict_of,
)
from crashmq.harness.searches.declaring import declared
from crashmq.reports.files import check_output, write_declared, write_json
from crashmq.reports.mutation_records import HuntRecord, write_rows
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

CI_BUDGET_S = 20.0
EVERY_POLICY = "all"
WITH_A_CASE = ("killed", "unconfirmed")


@click.command()
@click.option(
    "--only", multiple=True, metavar="ID...", help="These mutants; by default all."
)
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    metavar="TOML",
    help="Your own mutants instead of ours; planting one executes text of that file.",
)
@click.option(
    "--budget",
    type=Seconds(),
    default=600.0,
    show_default=True,
    metavar="S",
    help="Seconds of processor time to search for one mutant from one seed.",
)
@click.option(
    "--policy",
    type=click.Choice([*POLICIES, EVERY_POLICY]),
    help="What a power loss leaves; `all` compares them. By default our portfolio.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Searches for each mutant.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, help="The first of the seeds."
)
@workers_option
@click.option(
    "--any-module",
    is_flag=True,
    help="Let --file edit any module, not only crashmq's store.",
)
@click.option(
    "--clean", is_flag=True, help="Search the clean engine too, which must pass."
)
@click.option(
    "--ci",
    is_flag=True,
    help="The canary (a bug that must be found), the clean engine and each chosen "
    "mutant, for 20 s at most, from one seed.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A new directory for summary.json, rows and case files.",
)
@click.option(
    "--show", metavar="ID", help="Instead: print a mutant as a diff, as it is planted."
)
@click.argument("more", nargs=-1, metavar="[ID]...")
@operators_option
def command(
    only: tuple[str, ...],
    file: Path | None,
    budget: float,
    policy: str | None,
    seeds: int,
    seed: int,
    workers: int | None,
    any_module: bool,
    clean: bool,
    ci: bool,
    out: Path | None,
    show: str | None,
    more: tuple[str, ...],
) -> None:
    """Plant bugs one at a time and search for each as if it were unknown."""
    if show is not None:
        _show(show, _known(file, any_module))
        return
    if out is not None:
        check_output(out)
    known = _known(file, any_module)
    chosen: list[Mutant | None] = list(_chosen(known, (*only, *more)))
    if ci:
        budget, seeds = min(budget, CI_BUDGET_S), 1
    if clean or ci:
        chosen = [None, *chosen]
    if ci:
        chosen = [CANARY, *chosen]
    policies = tuple(POLICIES) if policy == EVERY_POLICY else (policy or "",)
    campaign = Campaign(tuple(chosen), seeds, seed, policies, budget)
    started = time.monotonic()
    rows = _run(campaign, process_count(workers))
    if not rows and INTERRUPTS.seen:
        raise SystemExit(INTERRUPTED)
    verdict = verdict_of(rows)
    cases = _save(rows, campaign, out, time.monotonic() - started) if out else {}
    say(verdict.sentence)
    _tell(rows, cases, known)
    if out:
        say(f"  summary {out / 'summary.json'}")
    say(f"  next    {_next(verdict, cases, out, file)}")
    raise SystemExit(INTERRUPTED if INTERRUPTS.seen else verdict.exit_code)


def _show(name: str, known: Mapping[str, Mutant]) -> None:
    (mutant,) = _chosen(known, (name,))
    say(f"{mutant.id} {mutant.title}\n{diff_of(mutant)}")


def _known(file: Path | None, any_module: bool) -> Mapping[str, Mutant]:
    """The mutants of the packaged or a user's file."""
    if any_module and file is None:
        raise click.UsageError("--any-module is for mutants of a --file.")
    return mutants_of(file, anywhere=any_module)


def _chosen(known: Mapping[str, Mutant], names: Sequence[str]) -> list[Mutant]:
    """The mutants of these names, all without names; each can be planted."""
    wanted = [name for each in names for name in each.split(",") if name]
    for name in wanted:
        if name not in known:
            theirs = f"It has {', '.join(known)}."
            hint = (
                "`crashmq list mutants` names them."
                if known is mutants_of(None)
                else theirs
            )
            raise unknown("mutant", name, known, hint)
    chosen = {name: known[name] for name in dict.fromkeys(wanted)} or dict(known)
    if stale := list(check_edits(chosen)):
        raise BadInput(" ".join(stale))
    return list(chosen.values())


def _run(campaign: Campaign, workers: int) -> list[HuntRecord]:
    """The results of all hunts, or until an interrupt; prints a line for each."""
    rows: list[HuntRecord] = []
    hunts = campaign.hunts()
    with Progress("mutants") as progress:
        try:
            progress.update(0, len(hunts))
            for row in run_campaign(hunts, workers):
                rows.append(row)
                name = row.mutant or "clean engine"
                under = f" under {row.policy}" if row.policy else ""
                detail = f"{name}{under} {row.outcome} {row.law}".rstrip()
                progress.update(len(rows), len(hunts), detail)
        except KeyboardInterrupt:
            INTERRUPTS.take()
            told = f"interrupted after {len(rows)} of {len(hunts)} searches"
            say(f"crashmq: {told}.", err=True)
    return sorted(rows, key=lambda row: (row.mutant, row.policy, row.seed))


def _save(
    rows: Sequence[HuntRecord], campaign: Campaign, out: Path, seconds: float
) -> dict[str, Path]:
    """Write summary, rows and case files; returns the case files by mutant."""
    cases: dict[str, Path] = {}
    with writing():
        out.mkdir(parents=True, exist_ok=True)
        for row in rows:
            is_new = row.mutant not in {*cases, CANARY.id}
            if row.outcome in WITH_A_CASE and row.program and is_new:
                path = out / "cases" / f"{row.mutant or 'clean'}{SUFFIX}"
                case_of(row).save(path)
                cases[row.mutant] = path
        write_declared(out, declared(tuple(SCENARIOS)))
        write_rows(rows, out)
        write_json(out / "summary.json", summary_of(rows, campaign, seconds))
    return cases


def _reached(one: MutantOutcome, mutant: Mutant) -> str:
    """How near a search came to the bug: probes hit, and those near its place."""
    declared = declared_probes()
    modules = {edit.module.rpartition(".")[2] for edit in mutant.edits}
    there = [name for name in declared if name.partition(".")[0] in modules]
    hits = [name for name in there if name in one.probes]
    missed = [name for name in there if name not in one.probes]
    return (
        f"{one.states:,} states; {len(one.probes)} of {len(declared)} probes; where "
        f"the bug is {', '.join(hits) or 'none'}"
        + (f", but not {', '.join(missed)}" if missed else "")
    )


def _tell(
    rows: Sequence[HuntRecord], cases: Mapping[str, Path], known: Mapping[str, Mutant]
) -> None:
    for one in outcomes(rows):
        say(f"  {outcome_line(one)}")
        if not one.killed:
            say(f"    {_reached(one, known[one.id])}")
        if one.id in cases:
            say(f"    case    {cases[one.id]}")
    for row in rows:
        if row.outcome == "defect":
            last = row.message.strip().splitlines()[-1:]
            say(f"  ! {row.mutant or 'clean engine'}: {''.join(last)}")
        elif row.outcome == "unconfirmed":
            say(f"  ! {row.mutant}: not confirmed, {row.doubt}")
        elif row.mutant in ("", CANARY.id):
            name = "canary" if row.mutant else "clean engine"
            under = f" under {row.policy}" if row.policy else ""
            say(
                f"  {name}{under}, seed {row.seed}: {row.law or 'nothing'} flagged in "
                f"{row.histories:,} histories and {row.states:,} states"
            )
    for policy in policy_table(rows):
        alone = f", alone {' '.join(policy.only_here)}" if policy.only_here else ""
        say(
            f"  {policy.policy:<12} killed {policy.killed} of {policy.mutants}, median "
            f"{policy.median_seconds} s, {policy.states:,} states{alone}"
        )


def _next(
    verdict: Verdict, cases: Mapping[str, Path], out: Path | None, file: Path | None
) -> str:
    if verdict.survivors:
        given = f" --file {shlex.quote(str(file))}" if file else ""
        return f"crashmq mutants --only {verdict.survivors[0]}{given} --budget 3600"
    if cases:
        given = f" --mutant-file {shlex.quote(str(file))}" if file else ""
        return f"crashmq replay {shlex.quote(str(next(iter(cases.values()))))}{given}"
    if out is not None:
        return f"crashmq report {shlex.quote(str(out))}"
    return "crashmq mutants --seeds 10 --out runs/mutants"
