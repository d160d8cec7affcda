"""``crashmq explore``: runs histories once, and tries all possible crashes of each."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import click

from crashmq.harness.commands.arguments import (
    Seconds,
    case_at,
    exit_with,
    mutant_named,
    mutant_option,
    planted,
    process_count,
    scenarios_named,
    subject_of,
    workers_option,
    writing,
)
from crashmq.harness.commands.exits import INTERRUPTED, unknown
from crashmq.harness.commands.explore_asked import Asked, explored_each
from crashmq.harness.commands.output import Progress, say
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.explore.campaign import (
    Job,
    Result,
    jobs_of_program,
    jobs_of_scenario,
    jobs_of_world,
    on_profile,
    round_robin,
    run_jobs,
)
from crashmq.harness.explore.finding import RUNS_MAX, Small, made_small
from crashmq.harness.explore.limits import CLASSES_MAX, WHOLE, Limits
from crashmq.harness.explore.summary import (
    certificate_lines,
    exit_code_of,
    profile_lines,
    speed_line,
    summary_of,
)
from crashmq.harness.failures.case_file import SUFFIX, CaseFile
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.models.ops import Crash, Event, parts
from crashmq.reports.exploration_records import ClassRow, FindingRow, write_rows
from crashmq.reports.files import check_output, write_json

FINDINGS_TAKEN = 8
RUNS_INTERRUPTED = 60  # of programs that are tried to shrink the first, after Ctrl-C
ALL_PROFILES = "all"
_OPS_MAX = 1000


@click.command()
@click.argument("target", required=False, metavar="[SCENARIO|CASE]")
@click.option(
    "--world",
    type=click.IntRange(1, 4),
    metavar="N",
    help="Instead: every program of at most N letters over a small alphabet.",
)
@click.option(
    "--ops", type=click.IntRange(min=1), metavar="N", help="Cut histories to N ops."
)
@click.option(
    "--histories",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop after N histories of a scenario; by default when the budget is used up.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, 3),
    default=2,
    show_default=True,
    help="Crashes in a row, each in the recovery from the one before.",
)
@click.option(
    "--choices",
    type=click.IntRange(min=1),
    metavar="N",
    help="Try every state of a crash point that has at most N, however many a history "
    "has then; by default 4,096, and 5,000 of a history.",
)
@click.option(
    "--close",
    is_flag=True,
    help="Try every state of each crash point; states that a start reads alike are "
    "judged once. Uses short records and small reads.",
)
@click.option(
    "--schedules",
    type=click.IntRange(0, 3),
    metavar="N",
    help="Instead of crashes: each schedule of at most N preemptions of ops that "
    "begin at the same time.",
)
@click.option(
    "--clients",
    type=click.IntRange(min=2),
    metavar="N",
    help="With --schedules: only histories whose last ops that begin at the same time "
    "are those of N clients.",
)
@click.option(
    "--failures",
    is_flag=True,
    help="Instead of crashes: each call of each op fails in turn, once, or for good "
    "from then on.",
)
@click.option(
    "--profile",
    metavar="P",
    help="The disk that loses power; `all`: every kind of disk in turn.",
)
@click.option(
    "--budget",
    type=Seconds(),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Seconds to explore.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@workers_option
@click.option(
    "--mutant", metavar="ID", help="Plant this bug first; then a violation is expected."
)
@click.option(
    "--subject",
    metavar="MODULE:FACTORY",
    help="Another store instead of ours, killed during each op of a SCENARIO or a "
    "CASE.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A new directory for summary.json, rows and case files.",
)
def command(**typed: Any) -> None:
    """Crash histories at every disk action, in every way, and judge what is left."""
    asked = Asked(**typed)
    _check_question(asked)
    disks = _disks_named(asked.profile)
    if asked.out is not None:
        check_output(asked.out)
    code = explored_each(asked)
    exit_with(asked.mutant, _crash_all(asked, disks) if code is None else code)


def _crash_all(asked: Asked, disks: tuple[str, ...]) -> int:
    """Crash histories at every disk action; returns the exit code."""
    target, out, ops = asked.target, asked.out, asked.ops
    count = process_count(asked.workers)
    name, bug = "", mutant_named(asked.mutant)
    whole = _limits(replace(WHOLE, depth=asked.depth), asked)
    drawn = _limits(Limits(depth=asked.depth), asked)
    if asked.world is not None:
        hands = [
            jobs_of_world(asked.world, asked.seed, whole, disk, bug) for disk in disks
        ]
        jobs = round_robin(hands)
    elif target is not None and target.endswith(SUFFIX):
        case = _case(Path(target), ops)
        name, bug = case.scenario, bug if asked.mutant else mutant_named(case.mutant)
        programs = [on_profile(case.program, disk) for disk in disks]
        jobs = round_robin(
            [jobs_of_program(name, each, whole, count, bug) for each in programs]
        )
    else:
        (name,) = scenarios_named((target or "",))
        histories = _histories(name, asked.seed, ops, drawn, disks, bug)
        jobs = islice(histories, asked.histories)
    started = time.monotonic()
    result = _explored(jobs, count, asked.budget, started)
    seconds = time.monotonic() - started
    smalls = _smalls(result, name, bug)
    cases = _save(result, smalls, name, bug, out, seconds) if out else []
    for line in (*certificate_lines(result), speed_line(result, seconds, count)):
        say(line)
    for line in profile_lines(result):
        say(f"  {line}")
    _tell(smalls, cases, len(result.found))
    say(f"  next    {_next(cases, out, target, bug)}")
    return INTERRUPTED if INTERRUPTS.seen else exit_code_of(result)


def _limits(limits: Limits, asked: Asked) -> Limits:
    if asked.choices:
        limits = replace(limits, exact_max=asked.choices, states_max=0)
    if asked.close:
        limits = replace(limits, classes_max=CLASSES_MAX, states_max=0)
    return limits


def _check_question(asked: Asked) -> None:
    """Refuse options that ask for nothing, or that exclude each other."""
    is_each = asked.schedules is not None or asked.failures
    if (asked.target is None) == (asked.world is None):
        raise click.UsageError("name a SCENARIO or a CASE file, or --world N.")
    if is_each and asked.target is None:
        raise click.UsageError(
            "--schedules and --failures ask for a SCENARIO or a CASE file."
        )
    if asked.schedules is not None and asked.failures:
        raise click.UsageError("take --schedules or --failures, one at a time.")
    if asked.clients is not None and asked.schedules is None:
        raise click.UsageError("--clients only works with --schedules.")
    if asked.is_of_theirs and (asked.target is None or is_each or asked.profile):
        raise click.UsageError(
            "--subject only works with a SCENARIO or a CASE, for kills."
        )


def _disks_named(profile: str | None) -> tuple[str, ...]:
    """The disk profiles to explore on; "": each program's own."""
    if profile == ALL_PROFILES:
        return tuple(PROFILES)
    if profile is not None and profile not in PROFILES:
        hint = f"There are {', '.join(PROFILES)}, and `{ALL_PROFILES}` in turn."
        raise unknown("disk profile", profile, PROFILES, hint)
    return (profile or "",)


def _histories(
    name: str,
    seed: int,
    ops: int | None,
    limits: Limits,
    disks: tuple[str, ...],
    bug: str,
) -> Iterator[Job]:
    """Histories of a scenario; the disk profiles are used in turn."""
    longest = ops or _OPS_MAX
    hands = [jobs_of_scenario(name, seed, longest, limits, disk, bug) for disk in disks]
    own = [islice(hand, n, None, len(disks)) for n, hand in enumerate(hands)]
    return round_robin(own)


def _case(path: Path, ops: int | None) -> CaseFile:
    """The case in a file, with the requested number of ops."""
    case = case_at(path)
    subject_of(case, path, None)
    return replace(case, program=replace(case.program, ops=case.program.ops[:ops]))


def _smalls(result: Result, scenario: str, mutant: str) -> list[Small]:
    """The first few findings, shrunk; of those with one cause the smallest.

    After an interrupt only the first one, and only a little, since the user waits.
    """
    found = sorted(result.found.values(), key=lambda one: len(one.program.ops))
    smalls: dict[str, Small] = {}
    taken, runs = FINDINGS_TAKEN, RUNS_MAX
    if INTERRUPTS.seen:
        taken, runs = 1, RUNS_INTERRUPTED
    with planted(mutant):
        for one in found[:taken]:
            small = made_small(one, scenario, runs)
            before = smalls.get(small.cause)
            if before is None or len(small.program.ops) < len(before.program.ops):
                smalls[small.cause] = small
    return list(smalls.values())


def _explored(jobs: Iterator[Job], workers: int, budget: float, began: float) -> Result:
    """The results of the jobs, until an interrupt; shows the progress."""
    result = Result()
    with Progress("explore") as progress:
        try:
            for one in run_jobs(jobs, workers, budget):
                if one.found and result.first_found_s < 0:
                    result.first_found_s = time.monotonic() - began
                result.add(one)
                counts = result.counts
                detail = (
                    f"{counts.visited:,} crash states of {counts.histories:,} "
                    f"histories, {counts.violations:,} violated"
                )
                spent = min(budget, time.monotonic() - began)
                progress.update(int(spent), int(budget), f"s; {detail}")
        except KeyboardInterrupt:
            INTERRUPTS.take()
            result.counts.stopped_early = True
            say("crashmq: interrupted.", err=True)
    return result


def _save(
    result: Result,
    smalls: list[Small],
    scenario: str,
    mutant: str,
    out: Path,
    seconds: float,
) -> list[Path]:
    """Write summary, rows and case files; returns their paths."""
    cases: list[Path] = []
    rows: list[FindingRow] = []
    with writing():
        out.mkdir(parents=True, exist_ok=True)
        for small in smalls:
            law = "" if small.found.is_unknown else small.found.law
            case = CaseFile(
                scenario=scenario,
                program=small.program,
                violated=law,
                step=small.result.step,
                digest=small.result.digest,
                message=small.result.message,
                mutant=mutant,
            )
            path = case.save_beside(out / "cases", small.found.law)
            cases.append(path)
            rows.append(_row(small, scenario, mutant, path.relative_to(out)))
        counts = result.counts
        classes = [
            ClassRow(name, times, counts.drawn[name])
            for name, times in sorted(counts.classes.items())
        ]
        write_rows(rows, classes, out)
        summary = summary_of(result, seconds)
        summary["first_finding_seconds"] = round(result.first_found_s, 3)
        write_json(out / "summary.json", summary)
    return cases


def _row(small: Small, scenario: str, mutant: str, case: Path) -> FindingRow:
    return FindingRow(
        signature=small.found.signature,
        law=small.found.law,
        message=small.result.message,
        scenario=scenario,
        mutant=mutant,
        ops=len(small.program.ops),
        crashes=sum(_crashes(op) for op in small.program.ops),
        profile=small.profile,
        lost=small.words,
        case=case.as_posix(),
    )


def _crashes(op: Event) -> int:
    return sum(map(_crashes, parts(op))) + isinstance(op, Crash)


def _tell(smalls: list[Small], cases: list[Path], found: int) -> None:
    for number, small in enumerate(smalls):
        ops = len(small.program.ops)
        say(f"  {small.found.signature}")
        say(f"    {ops} ops, on {small.profile} and what is less mild")
        if small.words:
            say(f"    {small.words}")
        if cases:
            say(f"    case    {cases[number]}")
    taken = 1 if INTERRUPTS.seen else FINDINGS_TAKEN
    if found > taken:
        say(f"  and {found - taken} more that were not shrunk")


def _next(cases: list[Path], out: Path | None, target: str | None, bug: str) -> str:
    if cases:
        return f"crashmq replay {shlex.quote(str(cases[0]))}"
    planted_too = mutant_option(bug)
    if target is None:
        return f"crashmq explore --world 3 --budget 1800{planted_too}"
    where = "" if out else " --out runs/explore"
    return f"crashmq explore {shlex.quote(target)}{planted_too} --budget 600{where}"
