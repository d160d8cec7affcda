"""``crashmq mutants --operators``: hunts for thousands of generated mutants."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from crashmq.harness.commands.arguments import process_count, writing
from crashmq.harness.commands.exits import (
    CLEAN,
    FINDINGS,
    INTERRUPTED,
    TOO_LITTLE,
    BadInput,
)
from crashmq.harness.commands.output import Progress, say
from crashmq.harness.commands.report_mutants import write_operator_report
from crashmq.harness.commands.reporting import reporting_what_is_missing
from crashmq.harness.commands.sparked import spark_session
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.harness.mutants.mutation import diff_of
from crashmq.harness.mutants.operators.generate import Drawing, sample
from crashmq.harness.mutants.operators.operator_campaign import (
    Drawn,
    OperatorCampaign,
    Runner,
    by_processes,
    compare_survivors,
    lines_of,
    run_hunts,
    save_survivors,
)
from crashmq.reports.operator_figures import (
    class_of,
    sentence_of,
    without,
)
from crashmq.reports.operator_records import (
    OperatorRecord,
    in_sample_order,
    read_asked,
    with_reach,
)

SAMPLE = 500
BUDGET_S = 10.0
SURVIVORS_SHOWN = 10
_SHARED = ("only", "more", "budget", "seed", "workers", "out", "show")


def operators_option(
    command: Callable[..., None],
) -> Callable[..., None]:
    """The options of ``crashmq mutants`` for generated mutants."""

    @click.option(
        "--operators",
        is_flag=True,
        help="Search for mutants that operators make of the engine's text; the same "
        "command with --out continues.",
    )
    @click.option(
        "--sample",
        type=click.IntRange(min=1),
        metavar="N",
        help=f"How many of them, drawn by --seed; {SAMPLE} by default.",
    )
    @click.option(
        "--survivors",
        type=click.IntRange(min=1),
        metavar="N",
        help="With a larger --budget: continue with so many of the survivors, drawn "
        "at random; by default with all.",
    )
    @click.option(
        "--master",
        metavar="URL",
        help="A Spark master whose tasks search; by default processes of this machine.",
    )
    @functools.wraps(command)
    def either(
        operators: bool,
        sample: int | None,
        survivors: int | None,
        master: str | None,
        **given: Any,
    ) -> None:
        if operators:
            _refuse_others(given)
            if master and given["workers"]:
                raise click.UsageError(
                    "--workers is for this machine; leave it or --master."
                )
            _run(sample or SAMPLE, survivors, master, given)
        for name, value in (
            ("sample", sample),
            ("survivors", survivors),
            ("master", master),
        ):
            if value:
                raise click.UsageError(f"--{name} is for --operators.")
        command(**given)

    return either


def _refuse_others(given: dict[str, Any]) -> None:
    context = click.get_current_context()
    for name in given:
        source = context.get_parameter_source(name)
        if name not in _SHARED and source is not ParameterSource.DEFAULT:
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} does not go with --operators.")


def _run(
    size: int, survivors: int | None, master: str | None, given: dict[str, Any]
) -> None:
    names = (*given["only"], *given["more"])
    only = tuple(name for each in names for name in each.split(",") if name)
    if given["show"] is not None:
        _show(given["show"])
        return
    out: Path | None = given["out"]
    if out is None:
        raise click.UsageError(
            "--operators needs --out DIR: rows are stored there as they come, and "
            "the same command continues."
        )
    asked = click.get_current_context().get_parameter_source("budget")
    budget = BUDGET_S if asked is ParameterSource.DEFAULT else given["budget"]
    campaign = OperatorCampaign(out, size, given["seed"], budget, only, survivors)
    equivalent, drawn = campaign.equivalent, _drawn(campaign)
    with _runner(given["workers"], master, out) as runner:
        _search(campaign, drawn, runner)
    rows = _save(campaign, drawn, equivalent)
    _tell(campaign, drawn, rows, equivalent, master)
    judged = without(rows, equivalent)
    raise SystemExit(INTERRUPTED if INTERRUPTS.seen else _exit_code(judged))


def _show(name: str) -> None:
    told = Drawing()
    found = _lookup((name,), told)
    if not found:
        raise BadInput(
            f"there is no machine-made mutant {name!r}; a row's id names one, as in "
            f"the report of `crashmq mutants --operators --out`."
        )
    for drawn in found:
        mutant = drawn.mutant()
        say(f"{mutant.id} {mutant.title}\n{diff_of(mutant)}")


def _lookup(only: tuple[str, ...], told: Drawing) -> list[Drawn]:
    return [Drawn.of(made) for made in sample(0, SAMPLE, told, only)]


def _drawn(campaign: OperatorCampaign) -> list[Drawn]:
    say("mutants: drawing the sample", err=True)
    with writing():
        drawn = campaign.draw()
    if not drawn:
        raise BadInput(
            f"no operator makes a mutant of {', '.join(campaign.only)}; name a module "
            f"or function below the engine, an operator or an id."
        )
    return drawn


@contextmanager
def _runner(workers: int | None, master: str | None, out: Path) -> Iterator[Runner]:
    """Who searches: processes of this machine, or Spark's tasks."""
    if master is None:
        yield by_processes(process_count(workers))
        return
    with reporting_what_is_missing(spark=True):
        from crashmq.reports.spark import mapped_as_done

        with spark_session(master, out) as session:
            yield partial(mapped_as_done, session)


def _search(campaign: OperatorCampaign, drawn: Sequence[Drawn], runner: Runner) -> None:
    """Run what is missing: hunts, and of survivors comparisons and counts of lines."""
    hunts = campaign.missing(drawn)
    killed = 0
    with Progress("mutants") as progress:
        try:
            progress.update(0, len(hunts))
            for done, row in enumerate(run_hunts(campaign, hunts, runner), 1):
                killed += row.is_killed
                detail = f"{killed} killed, {row.id} {row.outcome} {row.law}".rstrip()
                progress.update(done, len(hunts), detail)
            compared = compare_survivors(campaign, drawn, runner)
            for done, row in enumerate(compared, 1):
                progress.tell("survivors compared", done, 0)
                progress.update(done, None, f"{row.id} {row.differing} differ")
            if any(row.outcome == "survived" for row in campaign.rows()):
                lines_of(campaign, lambda done: progress.tell("lines counted", done, 0))
        except KeyboardInterrupt:
            INTERRUPTS.take()
            say("crashmq: interrupted; the same command continues.", err=True)


def _save(
    campaign: OperatorCampaign, drawn: Sequence[Drawn], equivalent: Mapping[str, str]
) -> list[OperatorRecord]:
    """Write report, summary and survivors; returns the rows of the sample."""
    rows = in_sample_order(campaign.rows(), [each.id for each in drawn])
    left = {row.id for row in rows if row.outcome == "survived"}
    if left and not INTERRUPTS.seen:
        rows = with_reach(rows, lines_of(campaign, lambda _: None))
    asked = read_asked(campaign.out)
    with writing():
        summary = write_operator_report(campaign.out, rows, asked, equivalent)
        survivors = [each for each in drawn if each.id in summary["survivors"]]
        save_survivors(campaign, survivors)
    return rows


def _tell(
    campaign: OperatorCampaign,
    drawn: Sequence[Drawn],
    rows: Sequence[OperatorRecord],
    equivalent: Mapping[str, str],
    master: str | None,
) -> None:
    say(sentence_of(rows, equivalent))
    if len(rows) < len(drawn):
        say(f"  {len(drawn) - len(rows)} of {len(drawn)} are still to be searched for")
    survivors = [row for row in rows if row.outcome == "survived"]
    left = without(survivors, equivalent)
    for row in left[:SURVIVORS_SHOWN]:
        where = f"{row.module.removeprefix('crashmq.engine.')}.{row.function}"
        say(f"  {row.id}  {row.operator} in {where}:{row.line}, {class_of(row)}")
    if len(left) > SURVIVORS_SHOWN:
        say(f"  and {len(left) - SURVIVORS_SHOWN} more survivors")
    for row in rows:
        if row.outcome in ("defect", "unconfirmed"):
            last = row.message.strip().splitlines()[-1:]
            say(f"  ! {row.id} {row.outcome}: {''.join(last)}")
    out = shlex.quote(str(campaign.out))
    say(f"  report  {campaign.out / 'report.md'}")
    again = "".join(f" --only {shlex.quote(name)}" for name in campaign.only)
    again += f" --master {shlex.quote(master)}" if master else ""
    more = campaign.budget_s if INTERRUPTS.seen else campaign.budget_s * 6
    say(
        f"  next    crashmq mutants --operators --sample {campaign.size} --seed "
        f"{campaign.seed}{again} --budget {more:g} --out {out}"
    )


def _exit_code(rows: Sequence[OperatorRecord]) -> int:
    outcomes = {row.outcome for row in rows}
    if outcomes & {"defect", "unconfirmed"}:
        return TOO_LITTLE
    return FINDINGS if "survived" in outcomes else CLEAN
