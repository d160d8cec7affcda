"""``crashmq case``: prints a case file in another form."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from crashmq.harness.commands.arguments import case_at
from crashmq.harness.commands.exits import BadInput
from crashmq.harness.commands.output import say
from crashmq.harness.failures.case_file import SUFFIX, CaseFile
from crashmq.harness.subjects.named import OURS
from crashmq.models.program_json import to_short_json
from crashmq.models.short_ops import as_pytest, source_of


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--pytest", "by_pytest", is_flag=True, help="As a function of pytest.")
@click.option("--full", is_flag=True, help="As files are written, an op an object.")
def command(file: Path, by_pytest: bool, full: bool) -> None:
    """Print the case in FILE in its short hand-written form, or as a pytest test."""
    case = case_at(file)
    if by_pytest and full:
        raise click.UsageError("take --pytest or --full, one at a time.")
    if by_pytest:
        name = re.sub(r"\W+", "_", file.name.removesuffix(SUFFIX)).strip("_")
        said = case.story or case.message.partition("\n")[0].rstrip(":")
        story = said or f"As {file.name}."
        if case.mutant:
            story = f"{story.rstrip('.')}. Found with planted bug {case.mutant}."
        store = _importable(case, file)
        said = as_pytest(case.program, case.scenario, name.lower(), story, store)
        say(said.rstrip())
        return
    say((case.to_text() if full else _by_hand(case)).rstrip())


def _importable(case: CaseFile, file: Path) -> str:
    """The user's store that a case is of, as Python can import it; "" for ours."""
    if case.subject == OURS:
        return ""
    module, _, factory = case.subject.partition(":")
    if not all(part.isidentifier() for part in f"{module}.{factory}".split(".")):
        raise BadInput(
            f"{file}: $.subject is {case.subject!r}, which Python cannot import. Write "
            f"there a factory of a module, as package.module:factory."
        )
    return case.subject


def _by_hand(case: CaseFile) -> str:
    """A case file with ops in their short form, without the results of a run."""
    head = {"format": 1, "scenario": case.scenario}
    for name in ("violated", "mutant", "mutant_file", "story"):
        if getattr(case, name):
            head[name] = getattr(case, name)
    if case.subject != OURS:
        head["subject"] = case.subject
    setup = to_short_json(case.program)["setup"]
    lines = [f"  {json.dumps(name)}: {json.dumps(head[name])}," for name in head]
    if setup:
        lines.append(f'  "setup": {json.dumps(setup)},')
    ops = ",\n".join(
        f"    {json.dumps(source_of(op), ensure_ascii=False)}"
        for op in case.program.ops
    )
    return "{\n" + "\n".join(lines) + f'\n  "ops": [\n{ops}\n  ]\n}}\n'
