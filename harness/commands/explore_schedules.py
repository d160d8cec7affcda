"""``crashmq explore --schedules``: every schedule with few preemptions, counted."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import click

from harness.case_file import SUFFIX, CaseFile
from harness.commands.arguments import (
    case_at,
    check_subject,
    mutant_named,
    planted,
    scenarios_named,
    writing,
)
from harness.commands.exits import BadInput
from harness.commands.output import Progress
from harness.episode import run_program
from harness.explore.schedules import Schedules, explore_schedules, together_in
from models.program import Program
from reports.files import write_json
from scenarios.catalogue import SCENARIOS
from scenarios.workload import program_for

_EPISODES_MAX = 100_000
_SHARE = 30  # of the budget one program of a scenario has so small a part at most


def run_schedules(
    target: str,
    *,
    bound: int,
    seed: int,
    histories: int | None,
    budget: float,
    mutant: str | None,
    out: Path | None,
) -> int:
    """Explore a case's schedules, or those of a scenario's programs; the exit code."""
    bug = mutant_named(mutant)
    if target.endswith(SUFFIX):
        case = case_at(Path(target))
        check_subject(case, Path(target))
        name, programs = case.scenario, iter([case.program])
        bug = bug if mutant else mutant_named(case.mutant)
        if together_in(case.program) < 0:
            raise BadInput(
                f"{target}: no ops of it begin at the same time, so there is one "
                f"schedule. Name a case with a Together, or a scenario."
            )
    else:
        (name,) = scenarios_named((target,))
        programs = _programs(name, seed, histories)
    ends = time.monotonic() + budget
    with planted(bug), Progress("explore") as progress:
        share = budget if target.endswith(SUFFIX) else budget / _SHARE
        seen = _explored(programs, name, bound, (ends, share), progress)
        cases = _save(seen, name, bug, budget, out) if out else []
    _tell(seen)
    if cases:
        click.echo(f"  next    crashmq replay {shlex.quote(str(cases[0]))}")
    return 1 if any(one.found for one in seen) else 0


def _programs(name: str, seed: int, histories: int | None) -> Iterator[Program]:
    """Programs of a scenario up to the last ops that begin together."""
    found = 0
    for episode in range(_EPISODES_MAX):
        program = program_for(SCENARIOS[name], seed, episode)
        at = together_in(program)
        if at >= 0:
            found += 1
            yield Program(program.setup, program.ops[: at + 1])
        if found == histories or (not found and episode == 1000):
            return


def _explored(
    programs: Iterator[Program],
    name: str,
    bound: int,
    time_given: tuple[float, float],
    progress: Progress,
) -> list[Schedules]:
    """All programs until the end of time, none of them longer than its share."""
    seen: list[Schedules] = []
    visited, (ends, share_s) = 0, time_given
    stops = ends

    def is_over() -> bool:
        return time.monotonic() > stops

    for program in programs:
        if time.monotonic() > ends:
            break
        stops = min(ends, time.monotonic() + share_s)
        one = explore_schedules(program, name, bound=bound, is_over=is_over)
        seen.append(one)
        visited += one.visited
        progress.update(visited, None, f"{len(seen):,} histories")
    if not seen:
        raise BadInput(
            f"scenario {name}: its programs never begin ops at the same time. Take "
            f"`interleavings`, or `contention`."
        )
    return seen


def _tell(seen: list[Schedules]) -> None:
    visited = sum(one.visited for one in seen)
    closed = sum(one.is_closed for one in seen)
    bound = seen[0].bound
    click.echo(f"  histories  {len(seen):,}, of which {closed:,} CLOSED")
    click.echo(f"  schedules  {visited:,} run, of at most {bound} preemptions")
    left = sum(one.open for one in seen)
    if left:
        click.echo(f"  open       {left:,} known and not run: time was over")
    outcomes = sum(len(one.outcomes) for one in seen)
    click.echo(f"  outcomes   {outcomes:,} different ones")
    for law in sorted({law for one in seen for law in one.found}):
        click.echo(f"  BROKEN     {law}")


def _save(
    seen: list[Schedules], name: str, bug: str, budget: float, out: Path
) -> list[Path]:
    """Write the first case of each law, and the counts."""
    first: dict[str, Program] = {}
    for one in seen:
        for law, program in one.found.items():
            first.setdefault(law, program)
    cases: list[Path] = []
    with writing():
        out.mkdir(parents=True, exist_ok=True)
        for law, program in first.items():
            result = run_program(program, name)
            case = CaseFile(
                scenario=name,
                program=program,
                violated=law,
                step=result.step,
                digest=result.digest,
                message=result.message,
                mutant=bug,
            )
            cases.append(case.save_beside(out / "cases", law))
        summary = {
            "histories": len(seen),
            "closed": sum(one.is_closed for one in seen),
            "schedules": sum(one.visited for one in seen),
            "open": sum(one.open for one in seen),
            "outcomes": sum(len(one.outcomes) for one in seen),
            "points_max": max(one.points for one in seen),
            "bound": seen[0].bound,
            "budget_seconds": budget,
            "violations": len(first),
        }
        write_json(out / "summary.json", summary)
    return cases
