"""``crashmq explain``: what a law says, why, what it catches, and an example."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import click

import crashmq.harness.judging.judge  # noqa: F401  # declares when each law is asked
from crashmq.harness.commands.arguments import planted
from crashmq.harness.commands.exits import BadInput, unknown
from crashmq.harness.commands.output import print_timeline, say, terminal_width
from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.harness.episodes.timeline import timeline
from crashmq.harness.judging.asking import questions
from crashmq.harness.judging.tables import ASKED_ELSEWHERE
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import Mutant
from crashmq.models.laws.registry import Law, declared_laws
from crashmq.models.verdict import Outcome

_BUGS_TOLD = 8
_EXAMPLES_TRIED = 12


@click.command()
@click.argument("law", metavar="LAW")
@click.option("--no-example", is_flag=True, help="Do not show a run that breaks it.")
def command(law: str, no_example: bool) -> None:
    """Say what LAW (as CQ-1) means, why, and which bugs it catches, with an example."""
    laws = declared_laws()
    chosen = laws.get(law.upper())
    if chosen is None and law.upper() in MUTANTS:
        shows = f"`crashmq mutants --show {law.upper()}` prints it"
        raise BadInput(f"{law} is a planted bug and no law: {shows}.")
    if chosen is None:
        raise unknown("law", law, laws, "`crashmq list laws` names them.")
    bugs = [one for one in MUTANTS.values() if chosen.id in one.killed_by]
    for line in _lines_of(chosen, bugs):
        say(line)
    if no_example:
        return
    found = _example(chosen, bugs)
    if found is None:
        say("\nexample: none; no planted bug breaks it first by the program it has")
        if bugs:
            say(f"  next  crashmq mutants --only {','.join(_ids(bugs)[:3])}")
        return
    bug, result = found
    say(f"\nexample: with planted bug {bug.id} ({bug.title})")
    print_timeline(timeline(result, width=terminal_width()))
    say(f"  next  crashmq check --mutant {bug.id} -x")


def _lines_of(law: Law[Any], bugs: list[Mutant]) -> Iterator[str]:
    width = terminal_width()
    yield from textwrap.wrap(f"{law.id}: {law.sentence}.", width)
    covers = ", ".join(law.catalogue.split())
    module = law.judge.__module__.removeprefix("crashmq.").replace(".", "/")
    yield f"  states    {covers} of the bug catalogue"
    yield f"  declared  {module}.py, {law.judge.__name__}"
    yield f"  asked     {_asked(law)}"
    yield ""
    reason = inspect.getdoc(law.judge)
    module_says = inspect.getdoc(sys.modules[law.judge.__module__]) or ""
    for paragraph in filter(None, (reason, module_says.partition("\nSource:")[0])):
        yield from paragraph.strip().splitlines()
        yield ""
    yield f"It catches {len(bugs)} of our {len(MUTANTS)} planted bugs" + (
        ":" if bugs else "."
    )
    for bug in bugs[:_BUGS_TOLD]:
        yield f"  {bug.id}  {bug.title}"
    if len(bugs) > _BUGS_TOLD:
        more = _ids(bugs[_BUGS_TOLD:])
        yield f"  and {len(more)} more: {' '.join(more)}"


def _ids(bugs: list[Mutant]) -> list[str]:
    return [bug.id for bug in bugs]


def _asked(law: Law[Any]) -> str:
    """At which moments the judge asks a law, and under which conditions."""
    if law.id in ASKED_ELSEWHERE:
        where, when = ASKED_ELSEWHERE[law.id]
        return f"{when} ({where})"
    said: list[str] = []
    for kind, asked in questions().items():
        if any(law in each.laws for each in asked):
            sentence = (inspect.getdoc(kind) or "").partition("\n")[0]
            said.append(sentence.rstrip("."))
    return "; ".join(dict.fromkeys(said)) or "only by fsck"


def _example(law: Law[Any], bugs: list[Mutant]) -> tuple[Mutant, EpisodeResult] | None:
    """The shortest known program in which a planted bug breaks this law first."""
    known = [bug for bug in bugs if bug.trigger.ops]
    known.sort(key=lambda bug: (len(bug.trigger.ops), bug.id))
    for bug in known[:_EXAMPLES_TRIED]:
        with planted(bug.id):
            result = run_program(bug.trigger)
        if result.outcome is Outcome.VIOLATED and result.law == law.id:
            result.record.mutant = bug.id
            return bug, result
    return None
