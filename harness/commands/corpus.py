"""``crashmq corpus``: gather the programs whose neighbours hunts try."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from crashmq.harness.commands.arguments import writing
from crashmq.harness.commands.exits import BadInput
from crashmq.harness.commands.output import Progress, say
from crashmq.harness.commands.reporting import reporting_what_is_missing
from crashmq.harness.mutants.corpus import (
    PACKAGED,
    BadCorpus,
    Seen,
    gather,
    packaged,
    read,
    run_episodes,
    written,
)
from crashmq.harness.mutants.reach import gather as gather_reach
from crashmq.harness.mutants.reach import is_written
from crashmq.harness.mutants.reach import written as written_reach
from crashmq.reports.files import write_text
from crashmq.scenarios.catalogue.scenarios import SCENARIOS


@click.command()
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    default=20_000,
    show_default=True,
    metavar="N",
    help="Seeded episodes to look at, the scenarios in turn.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--from",
    "run",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Instead: look at the episodes of a soak of the clean engine.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the corpus there; it may be the one that comes with the harness.",
)
@click.option(
    "--reach",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Instead: count which scenarios and programs run each line of the engine, "
    "by which hunts are aimed, and write that there.",
)
def command(
    episodes: int, seed: int, run: Path | None, out: Path | None, reach: Path | None
) -> None:
    """Gather a corpus: as few programs as reach every rare branch that any reached.

    Of seeded episodes on the clean engine those are kept that hit a probe which few of
    them hit, or two such probes together, each cut down to what that takes. `crashmq
    mutants` tries the neighbours of its corpus beside programs that are new. Without
    --out nothing is written: what is packaged is told. --reach counts lines instead.
    """
    if reach is not None:
        _count_lines(reach)
        return
    if out is None:
        _tell()
        return
    _check(out)
    with Progress("episodes") as progress:
        if run is not None:
            seen = _of_run(run)
        else:
            seen = run_episodes(
                seed, episodes, lambda done: progress.update(done, episodes)
            )
        entries = gather(
            seen, lambda done, count: progress.tell("cut down", done, count)
        )
    with writing():
        write_text(out, written(entries))
    ops = sum(len(entry.program.ops) for entry in entries)
    probes = {probe for entry in entries for probe in entry.reached}
    say(
        f"corpus: {len(entries)} programs of {ops} ops, kept of {len(seen):,} for "
        f"{len(probes)} rare probes and the pairs of them that met."
    )
    following = ["crashmq mutants --clean --budget 60"]
    if out.resolve() != PACKAGED:
        copied = f"cp {shlex.quote(str(out))} {shlex.quote(str(PACKAGED))}"
        following = [copied, *following]
    for label, line in zip(("next", ""), following, strict=False):
        say(f"  {label:7} {line}")


def _count_lines(path: Path) -> None:
    """Write what runs each line, with the corpus that comes with the harness."""
    if not path.parent.is_dir():
        raise BadInput(f"{path}: there is no directory {path.parent}; make it first.")
    if path.exists() and not is_written(path):
        raise BadInput(f"{path} holds no such counts, and is left as it is.")
    with Progress("programs") as progress:
        counted = gather_reach(told=lambda done, count: progress.update(done, count))
    with writing():
        write_text(path, written_reach(counted))
    functions = [one for each in counted.functions.values() for one in each.values()]
    never = sum(counted.of_calls(one) is None for one in functions)
    say(
        f"reach: {counted.episodes} episodes of each scenario and the corpus run "
        f"{len(functions) - never:,} of {len(functions):,} functions of the engine."
    )
    say("  next    crashmq mutants --operators --sample 20 --out DIR")


def _of_run(out: Path) -> list[Seen]:
    with reporting_what_is_missing(spark=False):
        from crashmq.reports.run_probes import probes_of_run, run_seed

        seed = run_seed(out)
        return [
            Seen(scenario, seed, number, reached)
            for number, scenario, reached in probes_of_run(out)
            if scenario in SCENARIOS
        ]


def _check(out: Path) -> None:
    """Refuse to overwrite a file that is not a corpus."""
    if not out.parent.is_dir():
        raise BadInput(f"{out}: there is no directory {out.parent}; make it first.")
    if not out.exists():
        return
    try:
        for _ in read(out):
            pass
    except (OSError, ValueError):
        why = "is no corpus, and is left as it is; name another file."
        raise BadInput(f"{out} {why}") from None


def _tell() -> None:
    try:
        entries = packaged()
    except (OSError, BadCorpus) as error:
        raise BadInput(f"{error} Collect it again: crashmq corpus --out FILE") from None
    by_scenario: dict[str, int] = {}
    for entry in entries:
        by_scenario[entry.scenario] = by_scenario.get(entry.scenario, 0) + 1
    for name in sorted(by_scenario):
        say(f"  {by_scenario[name]:4}  {name}")
    ops = sum(len(entry.program.ops) for entry in entries)
    say(f"corpus: {len(entries)} programs of {ops} ops, in {PACKAGED}")
    say("  next    crashmq mutants --budget 60")
