"""Prints how a soak ended: verdict, warnings, failures, files, the next command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crashmq.harness.commands.arguments import scenarios_named
from crashmq.harness.commands.output import say
from crashmq.reports.places import Place
from crashmq.reports.run_dir import read_sessions

if TYPE_CHECKING:
    from crashmq.reports.summary import Summary


def tell(summary: Summary, out: Place, cases: dict[str, str]) -> None:
    """Print the verdict, the warnings, the paths, and the next command."""
    say(summary.verdict)
    for warning in summary.warnings:
        say(f"  ! {warning}")
    for failure in (*summary.distinct_failures, *summary.unjudged_failures):
        law, *where = failure.message.splitlines() or ["no law had spoken"]
        times = f"{failure.episodes:,} episode{'s' if failure.episodes > 1 else ''}"
        say(f"  {failure.signature} in {times}: {law.rstrip(':')}")
        if where:
            say(f"    seen    {where[0].strip()}")
        if len(failure.scenarios) > 1:
            say(f"    met in  {', '.join(failure.scenarios)}")
        if failure.history:
            say(f"    nights  {failure.history}")
        if failure.excused:
            say(f"    known   {failure.excused}")
        if failure.case:
            say(f"    case    {failure.case}")
    for told in summary.resolved_failures:
        say(f"  {told}")
    say(f"  report  {out / 'report.html'}")
    say(f"          {out / 'report.md'}, {out / 'summary.json'}")
    say(f"  digest  {summary.digest}")
    say(f"  next    {_next_command(summary, out, cases)}")


def _next_command(summary: Summary, out: Place, cases: dict[str, str]) -> str:
    definition = summary.definition
    subject = definition.get("subject", "")
    named = [f"--subject {shlex.quote(subject)}"] if subject else []
    for failure in summary.distinct_failures:
        if "://" in cases.get(failure.signature, ""):
            return f"copy {cases[failure.signature]} here, and `crashmq shrink` it"
        if failure.signature in cases:
            return _with_case("shrink", cases[failure.signature], named)
    for failure in summary.unjudged_failures:
        if failure.signature in cases:
            return _with_case("replay", cases[failure.signature], named)
    if summary.missed_mutant:
        return f"crashmq mutants --only {summary.missed_mutant}"
    seed = definition["seed"] + 1
    of_all = set(summary.scenarios) == set(scenarios_named(()))
    names = () if of_all else summary.scenarios
    # A run of some hours has no planned number.
    length = summary.episodes_planned or summary.episodes
    kept = [*named, *_kept_of(definition), *_manner_of(out)]
    asked = ("--episodes", f"{length}", "--seed", f"{seed}", *kept)
    return " ".join(("crashmq soak", *names, *asked, f"--out runs/seed-{seed}"))


def _with_case(command: str, case: str, named: list[str]) -> str:
    return " ".join(("crashmq", command, shlex.quote(case), *named))


def _kept_of(definition: Mapping[str, Any]) -> list[str]:
    """The options of a run that another seed is to be tried with, too."""
    kept = []
    if definition["mutant"]:
        kept.append(f"--mutant {definition['mutant']}")
    if definition.get("explore"):
        kept.append(f"--explore {definition['explore']}")
    if definition.get("invariants"):
        kept.append("--invariants")
    return kept


def _manner_of(out: Place) -> list[str]:
    """``--local`` if the latest session of a run was typed with it."""
    sessions = read_sessions(out)
    typed = sessions[-1].command.split() if sessions else []
    return ["--local"] if "--local" in typed else []
