"""``crashmq soak``: runs many seeded episodes, judges them and writes a report."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crashmq.harness.commands.arguments import (
    PlaceType,
    baseline_at,
    baseline_option,
    bug_or_store,
    can_it,
    junit_option,
    make_room,
    mutant_named,
    scenarios_named,
    subject_at,
    subject_option,
    writing,
)
from crashmq.harness.commands.output import Progress, say
from crashmq.harness.commands.reporting import (
    reporting_what_is_missing,
    write_report,
)
from crashmq.harness.commands.soak_result import tell
from crashmq.harness.commands.soak_runner import Runner, runner
from crashmq.harness.commands.soak_session import noting
from crashmq.harness.searches.declaring import declared
from crashmq.harness.searches.soak import SoakTask
from crashmq.reports.errors import ReportError
from crashmq.reports.places import Place
from crashmq.reports.run_dir import (
    DONE,
    GAVE_UP,
    INTERRUPTED,
    TIME_WAS_UP,
    WHOLE,
    Part,
    Wanted,
    begin_run,
    check_run,
    end_early,
    missing,
)

if TYPE_CHECKING:
    from crashmq.reports.shards import RunProgress

NIGHTLY = "nightly"
_ENDLESS = 10**9  # episodes, where time alone bounds a run
_NOTED_EVERY_S = 5.0
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smh])")
_UNITS = {"s": 1, "m": 60, "h": 3600}


def _seconds(_: click.Context, __: click.Parameter, typed: str | None) -> float | None:
    """The seconds of a duration like ``90s``, ``45m``, ``6h``."""
    if typed is None:
        return None
    found = _DURATION.fullmatch(typed)
    if found is None or float(found[1]) == 0:
        raise click.BadParameter(f"{typed!r} is no time like 90s, 45m or 6h.")
    return float(found[1]) * _UNITS[found[2]]


def _part(_: click.Context, __: click.Parameter, typed: str | None) -> Part:
    """``2/3`` as the second of three parts; everything if it is left out."""
    if typed is None:
        return WHOLE
    found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", typed)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise click.BadParameter(f"{typed!r} is no part like 1/3, 2/3 or 3/3.")
    return Part(int(found[1]) - 1, int(found[2]))


def _seed(_: click.Context, __: click.Parameter, typed: str) -> int | str:
    """A number from 0 on, or ``nightly``."""
    if typed == NIGHTLY:
        return typed
    if not re.fullmatch(r"\d{1,19}", typed):
        raise click.BadParameter(f"{typed!r} is no number from 0 on, nor {NIGHTLY}.")
    return int(typed)


@click.command()
@click.argument("scenario", nargs=-1)
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Episodes in all; they take the scenarios in turn.",
)
@click.option(
    "--time",
    "time_s",
    callback=_seconds,
    metavar="TIME",
    help="Begin no shard (50 to 1,000 episodes) after this time: 90s, 45m, 6h. Shards "
    "that run are finished. May replace --episodes.",
)
@click.option(
    "--out",
    type=PlaceType(),
    required=True,
    metavar="DIR",
    help="A new directory for rows, report and case files, or one to continue; or "
    "s3://BUCKET/RUN.",
)
@click.option(
    "--master", metavar="URL", help="Spark's master; by default this machine."
)
@click.option(
    "--local",
    is_flag=True,
    help="Use processes of this machine, without Spark or Java.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cores of this machine to use; by default all.",
)
@click.option(
    "--seed",
    callback=_seed,
    default="0",
    show_default=True,
    metavar="N|nightly",
    help="With an episode's number it determines the program; `nightly`: a new one "
    "each night.",
)
@click.option(
    "--night",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="With --seed nightly: the night's date; by default today's, UTC.",
)
@click.option(
    "--part",
    callback=_part,
    metavar="K/N",
    help="Of N machines that share a run this is number K; `merge` joins the parts.",
)
@click.option(
    "--explore",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also judge N crash states of each episode that passed.",
)
@click.option(
    "--mutant", metavar="ID", help="Plant this bug first; then a violation is expected."
)
@subject_option
@baseline_option
@junit_option
@click.option(
    "--invariants",
    is_flag=True,
    help="Also check the invariants that classes list, as the gate does.",
)
def command(**typed: Any) -> None:
    """Run many episodes of SCENARIO..., by default of all, and write a report to DIR.

    The same command again continues the run in DIR and makes it longer.
    """
    _soak(_Typed(**typed))


@dataclass(frozen=True, slots=True)
class _Typed:
    """The arguments and options of the command."""

    scenario: tuple[str, ...]
    episodes: int | None
    time_s: float | None
    out: Place
    master: str | None
    local: bool
    workers: int | None
    seed: int | str
    night: datetime | None
    part: Part
    explore: int
    mutant: str | None
    subject: str
    baseline: Path | None
    junitxml: Path | None
    invariants: bool


def _checked(typed: _Typed) -> _Typed:
    """The options with ``nightly`` as a seed; contradictions are refused."""
    if typed.master and (typed.workers or typed.local):
        other = "--workers" if typed.workers else "--local"
        raise click.UsageError(f"{other} is for this machine; leave it or --master.")
    if typed.episodes is None and typed.time_s is None:
        raise click.UsageError("say how long: --episodes N, --time 6h, or both.")
    if typed.seed != NIGHTLY:
        if typed.night:
            raise click.UsageError(f"--night is for --seed {NIGHTLY}.")
        return typed
    night = typed.night.date() if typed.night else datetime.now(UTC).date()
    return replace(typed, seed=seed_of(night), night=datetime.combine(night, time()))


def seed_of(night: date) -> int:
    """The seed for a night: the digits of its date."""
    return int(f"{night:%Y%m%d}")


def _task(typed: _Typed) -> SoakTask:
    """The task for the options; refuses what cannot be run."""
    names = scenarios_named(typed.scenario)
    bug = mutant_named(typed.mutant)
    store = subject_at(typed.subject)
    bug_or_store(bug, store)
    can_it(store, names)
    if store and typed.explore:
        raise click.UsageError("--explore is for our engine; leave it or --subject.")
    seed = int(typed.seed)
    task = SoakTask.define(names, seed, bug, typed.explore, invariants=typed.invariants)
    return task.judging(store.name if store else "")


def _soak(typed: _Typed) -> None:
    typed = _checked(typed)
    task, out = _task(typed), typed.out
    baseline = baseline_at(typed.baseline)
    make_room(typed.junitxml)
    if typed.night:
        out = out / f"{typed.night:%Y-%m-%d}-{task.run_id}"
    instead = "" if typed.local else "`crashmq soak --local` needs no Spark, no Java."
    with reporting_what_is_missing(spark=not typed.local, instead=instead):
        check_run(out, task.run_id, task.definition)
        with runner(out, typed.master, typed.workers, local=typed.local) as running:
            _run(typed, task, out, running)
            summed = running.summed(out)
            summary, cases = write_report(summed, out, baseline, typed.junitxml)
    tell(summary, out, cases)
    raise SystemExit(summary.exit_code)


def _run(typed: _Typed, task: SoakTask, out: Place, running: Runner) -> None:
    """Run the missing shards, and show the progress."""
    wanted = Wanted(typed.episodes or _ENDLESS, typed.time_s, typed.part)
    length = typed.episodes or 0
    if length:  # of which this session does its part
        typed = replace(typed, episodes=-(-length // typed.part.of))
    with writing():
        there = begin_run(
            out,
            task.run_id,
            task.definition,
            length,
            declared(task.scenarios, task.subject),
        )
        note = noting(out)
    if there:
        say(
            f"soak: continues run {task.run_id} in {out}: {_of(there, typed)}",
            err=True,
        )
    last, noted = 0.0, 0.0
    with Progress("soak") as progress:

        def tell_progress(run: RunProgress) -> None:
            nonlocal last, noted
            last = run.elapsed_s
            if last - noted >= _NOTED_EVERY_S:
                noted = last
                note(last, "")
            progress.update(
                there + run.episodes, typed.episodes, _detail(run, there, typed)
            )

        try:
            running.run(task, out, wanted, tell_progress)
        except KeyboardInterrupt:
            say(_kept(out), err=True)
            note(last, INTERRUPTED)
            raise
        except ReportError as error:
            note(last, f"{GAVE_UP}: {error}")
            raise
    is_over = next(missing(out, wanted.episodes, wanted.part), None) is None
    if not is_over:
        with writing():
            end_early(out)
    note(last, DONE if is_over else TIME_WAS_UP)


def _detail(run: RunProgress, there: int, typed: _Typed) -> str:
    """Violations, speed, and the remaining time."""
    rate = run.episodes / max(run.elapsed_s, 0.001)
    detail = f"{run.violated:,} violated, {rate:,.0f}/s"
    left = []
    if typed.episodes and rate:
        left.append((typed.episodes - there - run.episodes) / rate)
    if typed.time_s is not None:
        left.append(typed.time_s - run.elapsed_s)
    return f"{detail}, {_duration(max(0.0, min(left)))} left" if left else detail


def _duration(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _of(there: int, typed: _Typed) -> str:
    of = f" of {typed.episodes:,}" if typed.episodes else ""
    return f"{there:,}{of} episodes are there"


def _kept(out: Place) -> str:
    """What is kept of a run after an interrupt, and how to read it."""
    return (
        f"soak: stopped; the shards that were done lie in {out}. The same command "
        f"continues them; `crashmq report {shlex.quote(str(out))}` shows what they "
        "found."
    )
