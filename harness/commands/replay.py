"""``crashmq replay``: runs a case file again and prints it as a timeline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click

from crashmq.harness.commands import exits
from crashmq.harness.commands.arguments import (
    case_at,
    check_subject,
    mutant_file_option,
    mutant_named,
    mutants_of,
    planted,
    writing,
)
from crashmq.harness.commands.output import print_timeline, say, terminal_width
from crashmq.harness.episodes.episode import Episode, EpisodeResult, run_program
from crashmq.harness.episodes.timeline import timeline
from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.guards.invariants import invariants_checked
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.printable import printable
from crashmq.models.verdict import Outcome


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--until", type=int, metavar="STEP", help="Stop after this step.")
@click.option(
    "--dump",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="With --until: write the store's files of that moment to DIR.",
)
@click.option(
    "--mutant",
    metavar="ID",
    help="Plant this bug; `none` for the clean engine. By default as recorded.",
)
@mutant_file_option
def command(
    file: Path,
    until: int | None,
    dump: Path | None,
    mutant: str | None,
    mutant_file: Path | None,
) -> None:
    """Run the case in FILE and tell it step by step, the breach marked."""
    case = case_at(file)
    check_subject(case, file)
    _check_until(case, file, until, dump)
    known = mutants_of(mutant_file)
    bug = mutant_named(case.mutant if mutant is None else mutant, known)
    with planted(bug, known), invariants_checked(enabled=case.checks_invariants):
        stop = None if until is None else until + 1
        result = run_program(case.program, case.scenario, until=stop)
        result.record.mutant = bug
        files = _files_after(case, until) if dump and until is not None else {}
    print_timeline(timeline(result, width=terminal_width()))
    if dump:
        _write_files(files, dump)
        say(f"  disk after step {until}: {dump} ({len(files)} files)")
        say(f"  next  crashmq fsck {dump}")
    if case.caveat:
        say(f"  note: {case.caveat}")
    if until is None:
        say(_compared(case, result, file, bug))
    raise SystemExit(_exit_code(result))


def _check_until(
    case: CaseFile, file: Path, until: int | None, dump: Path | None
) -> None:
    if dump and until is None:
        raise click.UsageError(
            "--dump writes the disk of one moment: say which, --until STEP."
        )
    last = len(case.program.ops) - 1
    if until is not None and not 0 <= until <= last:
        raise exits.BadInput(
            f"--until {until}: {file} has steps 0 to {last}. Name one of them."
        )
    if dump and os.path.lexists(dump) and not _is_empty_dir(dump):
        raise exits.BadInput(
            f"{dump} exists already and is not overwritten. Name a new directory, or "
            f"an empty one."
        )


def _is_empty_dir(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _files_after(case: CaseFile, until: int) -> Mapping[str, bytes]:
    """The store's files after step ``until``, or after an earlier violation."""
    episode = Episode(case.scenario, case.program.setup)
    try:
        for op in case.program.ops[: until + 1]:
            episode.step(op)
    except (LawViolated, LawUnknown):
        pass  # the timeline tells it; here the files of this moment are wanted
    finally:
        files = dict(episode.subject.files())
        episode.close()
    return files


def _write_files(files: Mapping[str, bytes], directory: Path) -> None:
    """Write a store's files below a directory that is new or empty."""
    with writing():
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in sorted(files.items()):
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                file.write(data)


def _compared(case: CaseFile, result: EpisodeResult, file: Path, mutant: str) -> str:
    """How the run compares with the recorded one, and what to type next."""
    if result.outcome is Outcome.PASSED and not case.violated:
        was = "\n    ".join(case.message.split("\n")) or "nothing"
        return f"FIXED: no law is violated; recorded was: {was}"
    if result.outcome is Outcome.PASSED:
        under = f" with planted bug {mutant}" if mutant else ""
        hint = ""
        if case.mutant and not mutant:
            hint = f"\n  it was found with --mutant {case.mutant}"
        return f"FIXED: {case.violated} is not violated{under}.{hint}"
    if result.outcome is Outcome.UNKNOWN:
        return "NOT JUDGED: a law could not be asked; see above."
    if result.law != case.violated:
        was = f"recorded was {case.violated} at step {case.step}"
        return f"CHANGED: {result.law} at step {result.step}; {was}."
    same = "the digest is the recorded one"
    if result.digest != case.digest:
        same = "the digest is another one: the code has changed since"
    at = min(result.step, len(case.program.ops) - 1)
    nearby = f"crashmq replay {printable(str(file))} --until {at} --dump DIR"
    return f"SAME: {case.violated} is violated as recorded; {same}.\n  next  {nearby}"


def _exit_code(result: EpisodeResult) -> int:
    return {
        Outcome.PASSED: exits.CLEAN,
        Outcome.VIOLATED: exits.FINDINGS,
        Outcome.UNKNOWN: exits.TOO_LITTLE,
    }[result.outcome]
