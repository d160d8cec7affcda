"""``crashmq replay``: runs a case file again and prints its timeline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    drawn_as_svg,
    print_timeline,
    say,
    terminal_width,
)
from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.harness.episodes.file_changes import change_lines, changes
from crashmq.harness.episodes.timeline import timeline
from crashmq.harness.episodes.watched import Watched, watch
from crashmq.harness.episodes.where_to_look import place_of, rare_functions
from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.guards.invariants import invariants_checked
from crashmq.harness.mutants.first_divergence import moves_of, parting
from crashmq.harness.mutants.mutation import Mutant
from crashmq.harness.subjects.named import NamedSubject
from crashmq.models.printable import printable
from crashmq.models.verdict import Outcome

BREACH = "breach"


class _Step(click.ParamType[Any]):
    """The number of a step, or the word ``breach``."""

    name = "STEP"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """A number, or the word."""
        if value == BREACH or isinstance(value, int):
            return value
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is no step: name a number, or `{BREACH}`", param, ctx)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--until", type=_Step(), help="Stop after this step, or at the `breach`.")
@click.option(
    "--dump",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the store's files at that step to DIR; by default at the breach.",
)
@click.option(
    "--diff",
    type=_Step(),
    help="Show what this step, or that of the `breach`, changed in the files.",
)
@click.option(
    "--svg",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the timeline as SVG, too.",
)
@click.option(
    "--mutant",
    metavar="ID",
    help="Plant this bug; `none` for the clean engine. By default as recorded.",
)
@mutant_file_option
@case_subject_option
def command(**typed: Any) -> None:
    """Run the case in FILE and print it step by step, with the breach marked."""
    _replay(_Typed(**typed))


@dataclass(frozen=True, slots=True)
class _Typed:
    """The arguments and options of the command."""

    file: Path
    until: int | str | None
    dump: Path | None
    diff: int | str | None
    svg: Path | None
    mutant: str | None
    mutant_file: Path | None
    subject: str | None


@dataclass(frozen=True, slots=True)
class _Run:
    """A case, the bug planted for it, and the user's store, if any."""

    case: CaseFile
    bug: str
    known: Mapping[str, Mutant]
    store: NamedSubject | None


def _replay(typed: _Typed) -> None:
    case = case_at(typed.file)
    store = subject_of(case, typed.file, typed.subject)
    _check(case, typed)
    known = mutants_of(typed.mutant_file)
    bug = case_mutant(case, typed.mutant, known, typed.mutant_file)
    bug_or_store(bug, store)
    run = _Run(case, bug, known, store)
    with planted(bug, known), invariants_checked(enabled=case.checks_invariants):
        whole = _result(run, None)
        until = _step(typed.until, whole)
        result = whole if until is None else _result(run, until + 1)
        result.record.mutant = bug
        kept = _watched(run, until, _step(typed.diff, whole))
    told = timeline(result, width=terminal_width(), starts=kept.starts)
    print_timeline(told)
    for line in _looked_for(run, result):
        say(line)
    _tell_files(typed, kept, until, whole)
    if typed.svg:
        _draw(timeline(result, width=100, starts=kept.starts), typed.svg, typed.file)
    if case.caveat:
        say(f"  note: {case.caveat}")
    if typed.until is None:
        say(_compared(case, result, typed, bug))
    raise SystemExit(_exit_code(result))


def _result(run: _Run, until: int | None) -> EpisodeResult:
    case, store = run.case, run.store
    subject = store.made(case.program.setup) if store else None
    return run_program(case.program, case.scenario, until=until, subject=subject)


def _watched(run: _Run, until: int | None, around: int | None) -> Watched:
    return watch(
        run.case.program,
        run.case.scenario,
        until=None if until is None else until + 1,
        around=around,
        subject=run.store,
    )


def _step(asked: int | str | None, result: EpisodeResult) -> int | None:
    """The number of the requested step; ``breach``: that of the violation."""
    if not isinstance(asked, str):
        return asked
    last = result.record.steps - 1
    if result.outcome is Outcome.PASSED:
        raise exits.BadInput("no law is broken here, so there is no `breach`.")
    return None if result.step > last else result.step


def _check(case: CaseFile, typed: _Typed) -> None:
    last = len(case.program.ops) - 1
    for name, step in (("--until", typed.until), ("--diff", typed.diff)):
        if isinstance(step, int) and not 0 <= step <= last:
            raise exits.BadInput(
                f"{name} {step}: {typed.file} has steps 0 to {last}. Name one of them."
            )
    dump, svg = typed.dump, typed.svg
    if dump and os.path.lexists(dump) and not _is_empty_dir(dump):
        raise exits.BadInput(
            f"{dump} exists already and is not overwritten. Name a new directory, or "
            f"an empty one."
        )
    if svg and os.path.lexists(svg):
        raise exits.BadInput(f"{svg} exists already and is not overwritten.")


def _is_empty_dir(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _tell_files(
    typed: _Typed, kept: Watched, until: int | None, whole: EpisodeResult
) -> None:
    """Print and write the requested files."""
    for number, (before, after) in kept.around.items():
        say(f"  files of step {number}")
        lines = list(change_lines(changes(before, after))) or ["nothing changed"]
        for line in lines:
            say(f"    {line}")
    if typed.diff is not None and not kept.around:
        say(f"  files: {_why_no_diff(_step(typed.diff, whole))}")
    if typed.dump:
        _write_files(kept.last, typed.dump)
        moment = f"after step {until}" if until is not None else "at the end"
        if until is None and whole.outcome is not Outcome.PASSED:
            moment = "at the breach"
        say(f"  disk {moment}: {typed.dump} ({len(kept.last)} files)")
        say(f"  next  crashmq fsck {typed.dump}")


def _why_no_diff(step: int | None) -> str:
    if step is None:
        return "the breach is seen at the end, which is no step; see --dump"
    return f"the run ended before step {step}"


def _draw(told: str, svg: Path, case: Path) -> None:
    """Write a timeline as a picture."""
    with writing(), svg.open("x", encoding="utf-8") as file:
        file.write(drawn_as_svg(told, title=f"crashmq replay {case.name}"))
    say(f"  drawn: {svg}")


def _looked_for(run: _Run, result: EpisodeResult) -> list[str]:
    """Where to look in the store's code; empty for a user's store."""
    if result.outcome is not Outcome.VIOLATED or run.store is not None:
        return []
    program, scenario = run.case.program, run.case.scenario
    if not run.bug:
        found = rare_functions(program, scenario, result.step)
        head = "  look at, active in the step of the breach and seldom before:"
        return [head, *(f"    {one}" for one in found)] if found else []
    places: list[Any] = []
    ours = moves_of(program, scenario)
    with planted(run.bug, run.known):
        others = moves_of(program, scenario, places)
    place = parting(ours, others, places)
    if place is None:
        return []
    where = place_of(*place)
    return [f"  look at {where}: there it parts from the engine without the bug"]


def _write_files(files: Mapping[str, bytes], directory: Path) -> None:
    """Write a store's files below a directory that is new or empty."""
    with writing():
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in sorted(files.items()):
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                file.write(data)


def _compared(case: CaseFile, result: EpisodeResult, typed: _Typed, mutant: str) -> str:
    """How the run compares with the recorded one, and the next command."""
    given = printable(str(typed.file))
    if result.outcome is Outcome.PASSED and not case.violated and not case.message:
        more = f"\n  next  crashmq explore {given}" if not mutant else ""
        return f"PASSED: no law is violated.{more}"
    if result.outcome is Outcome.PASSED and not case.violated:
        was = "\n    ".join(case.message.split("\n"))
        return f"FIXED: no law is violated; recorded was: {was}"
    if result.outcome is Outcome.PASSED:
        under = f" with planted bug {mutant}" if mutant else ""
        hint = ""
        if case.mutant and not mutant:
            hint = f"\n  it was found with --mutant {case.mutant}"
        return f"FIXED: {case.violated} is not violated{under}.{hint}"
    if result.outcome is Outcome.UNKNOWN:
        return "NOT JUDGED: a law could not be asked; see above."
    explain = f"crashmq explain {result.law}"
    if not case.violated:
        return f"FOUND: {result.law} at step {result.step}.\n  next  {explain}"
    if result.law != case.violated:
        was = f"recorded was {case.violated} at step {case.step}"
        return f"CHANGED: {result.law} at step {result.step}; {was}."
    same = "the digest is the recorded one"
    if not case.digest:
        same = "no digest was recorded"
    elif result.digest != case.digest:
        same = "the digest is another one: the code has changed since"
    following = [f"crashmq replay {given} --dump DIR", explain][bool(typed.dump) :]
    commands = "\n        ".join(following)
    return f"SAME: {case.violated} is violated as recorded; {same}.\n  next  {commands}"


def _exit_code(result: EpisodeResult) -> int:
    return {
        Outcome.PASSED: exits.CLEAN,
        Outcome.VIOLATED: exits.FINDINGS,
        Outcome.UNKNOWN: exits.TOO_LITTLE,
    }[result.outcome]
