"""``crashmq soak``: many seeded episodes on Spark, judged, counted and reported."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from crashmq.harness.commands.arguments import (
    can_it,
    mutant_named,
    scenarios_named,
    subject_at,
    subject_option,
)
from crashmq.harness.commands.output import Progress, say
from crashmq.harness.commands.reporting import no_spark_is_told, tell, write_report
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.harness.searches.soak import SoakTask, declared, shards_for


@click.command()
@click.argument("scenario", nargs=-1, required=True)
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    required=True,
    metavar="N",
    help="Episodes in all; episode n is scenario n modulo their number.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="A new directory for rows, report and case files.",
)
@click.option(
    "--master", metavar="URL", help="Spark's master; by default this machine."
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cores of this machine to use; by default all.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="With an episode's number it decides its program.",
)
@click.option(
    "--explore",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Glance at N crash states of each episode that passed, too.",
)
@click.option("--mutant", metavar="ID", help="Plant this bug first; red is right then.")
@subject_option
@click.option(
    "--invariants",
    is_flag=True,
    help="Check classes for the invariants that they list, as the gate does.",
)
def command(**typed: Any) -> None:
    """Run many episodes of SCENARIO... on Spark and write a report to DIR."""
    _soak(_Typed(**typed))


@dataclass(frozen=True, slots=True)
class _Typed:
    """What was typed, by the names above."""

    scenario: tuple[str, ...]
    episodes: int
    out: Path
    master: str | None
    workers: int | None
    seed: int
    explore: int
    mutant: str | None
    subject: str
    invariants: bool


def _task(typed: _Typed) -> SoakTask:
    """What is to be run; complains about what cannot be."""
    names = scenarios_named(typed.scenario)
    bug = mutant_named(typed.mutant)
    store = subject_at(typed.subject)
    can_it(store, names)
    if store and typed.explore:
        raise click.UsageError("--explore is for our engine; leave it or --subject.")
    task = SoakTask.define(
        names,
        typed.seed,
        typed.episodes,
        bug,
        typed.explore,
        invariants=typed.invariants,
    )
    return task.judging(store.name if store else "")


def _soak(typed: _Typed) -> None:
    master, workers, out = typed.master, typed.workers, typed.out
    episodes = typed.episodes
    if master and workers:
        raise click.UsageError("--workers is for this machine; leave it or --master.")
    task = _task(typed)
    with no_spark_is_told():
        from crashmq.reports.files import check_output

        check_output(out)
        from crashmq.reports.run_store import RunProgress, write_run
        from crashmq.reports.spark import open_session

        session = open_session(f"local[{workers}]" if workers else master, out)
        INTERRUPTS.rearm()
        try:
            shards = shards_for(episodes, session.sparkContext.defaultParallelism)
            with Progress("soak") as progress:

                def tell_progress(run: RunProgress) -> None:
                    rate = run.episodes_done / max(run.elapsed_s, 0.001)
                    detail = f"{run.violations:,} violated, {rate:,.0f}/s"
                    progress.update(run.episodes_done, run.episodes, detail)

                try:
                    write_run(
                        session,
                        task,
                        shards,
                        out,
                        tell_progress,
                        declared=declared(task.scenarios),
                    )
                except KeyboardInterrupt:
                    say(_kept(out), err=True)
                    raise
            summary, cases = write_report(session, out)
        finally:
            session.stop()
    tell(summary, out, cases)
    raise SystemExit(summary.exit_code)


def _kept(out: Path) -> str:
    """What an interrupt leaves of a run, and how to read it."""
    return (
        f"soak: stopped; the shards that were done lie in {out}. "
        f"`crashmq report {shlex.quote(str(out))}` tells what they found."
    )
