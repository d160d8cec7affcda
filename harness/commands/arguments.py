"""Names on the command line, looked up or complained about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from harness.case_file import BadCaseFile, CaseFile
from harness.commands.exits import BadInput, unknown
from scenarios.catalogue import SCENARIOS
from scenarios.mutants import MUTANTS
from scenarios.mutation import applied

NO_MUTANT = "none"
SUBJECTS = ("python",)


def scenarios_named(names: tuple[str, ...]) -> tuple[str, ...]:
    """The scenarios of these names, each once; all of them if none is named."""
    for name in names:
        if name not in SCENARIOS:
            hint = "`crashmq list scenarios` names them."
            raise unknown("scenario", name, SCENARIOS, hint)
    return tuple(dict.fromkeys(names)) or tuple(SCENARIOS)


def mutant_named(name: str | None) -> str:
    """The id of a mutant; "" for none."""
    if not name or name == NO_MUTANT:
        return ""
    if name not in MUTANTS:
        raise unknown("mutant", name, MUTANTS, "`crashmq list mutants` names them.")
    return name


def planted(mutant: str) -> AbstractContextManager[None]:
    """The engine with a mutant; the clean engine for ""."""
    return applied(MUTANTS[mutant]) if mutant else nullcontext()


def case_at(path: Path) -> CaseFile:
    """The case of a file."""
    try:
        return CaseFile.load(path)
    except BadCaseFile as error:
        raise BadInput(str(error)) from None


def check_subject(case: CaseFile, path: Path) -> None:
    """Complain about a case of a store this version cannot drive."""
    if case.subject not in SUBJECTS:
        raise BadInput(
            f"{path}: $.subject is {case.subject!r}, and this crashmq drives "
            f"{', '.join(SUBJECTS)}. Use the version that wrote it."
        )


@contextmanager
def writing() -> Iterator[None]:
    """A file that cannot be written is the user's to mend."""
    try:
        yield
    except FileExistsError as error:
        raise BadInput(str(error)) from None
    except OSError as error:
        raise BadInput(
            f"{error.filename}: cannot be written: {error.strerror}. Name a place "
            f"that can."
        ) from None


def mutant_option(mutant: str) -> str:
    """What to add to a command so that it plants the same bug."""
    return f" --mutant {mutant}" if mutant else ""
