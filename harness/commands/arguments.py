"""Looks up names given on the command line; unknown ones are reported."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from crashmq.harness.commands.exits import (
    CLEAN,
    FINDINGS,
    BadInput,
    EnvironmentLacking,
    unknown,
)
from crashmq.harness.commands.output import say
from crashmq.harness.failures.baseline import (
    BadBaseline,
    Baseline,
    baseline_on,
    read_baseline,
)
from crashmq.harness.failures.case_file import BadCaseFile, CaseFile
from crashmq.harness.mutants.mutant_file import BadMutantFile, read_mutants
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import Mutant, MutantError, applied
from crashmq.harness.subjects.named import (
    OURS,
    BadSubject,
    NamedSubject,
    subject_named,
)
from crashmq.harness.subjects.subject import lacking
from crashmq.models.laws.registry import declared_laws
from crashmq.models.ops import needs
from crashmq.reports.errors import BadRequest
from crashmq.reports.places import Place, place_of
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

Command = TypeVar("Command", bound=Callable[..., Any])

NO_MUTANT = "none"
_DISK_REFUSES = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


def scenarios_named(names: tuple[str, ...]) -> tuple[str, ...]:
    """The scenarios of these names, each once; all if there are no names."""
    for name in names:
        if name not in SCENARIOS:
            hint = "`crashmq list scenarios` names them."
            raise unknown("scenario", name, SCENARIOS, hint)
    return tuple(dict.fromkeys(names)) or tuple(SCENARIOS)


def mutants_of(file: Path | None, *, anywhere: bool = False) -> Mapping[str, Mutant]:
    """The packaged mutants by id, or those of a user's file."""
    if file is None:
        return MUTANTS
    try:
        return read_mutants(file, declared_laws(), anywhere=anywhere)
    except BadMutantFile as error:
        raise BadInput(str(error)) from None


def mutant_named(name: str | None, known: Mapping[str, Mutant] = MUTANTS) -> str:
    """The id of a mutant; "" for none."""
    if not name or name == NO_MUTANT:
        return ""
    if name not in known:
        hint = (
            "`crashmq list mutants` names ours; check, replay and shrink take others "
            "by --mutant-file."
        )
        raise unknown("mutant", name, known, hint)
    return name


def case_mutant(
    case: CaseFile,
    named: str | None,
    known: Mapping[str, Mutant],
    file: Path | None,
) -> str:
    """The id of the bug to plant for a case: the option's, else the case's own."""
    if named is None and case.mutant_file and file is None and case.mutant not in known:
        raise BadInput(
            f"its bug {case.mutant} was written in {case.mutant_file}. To plant it, "
            f"which executes text of that file, add --mutant-file {case.mutant_file}; "
            f"--mutant none runs the engine without it."
        )
    return mutant_named(case.mutant if named is None else named, known)


@contextmanager
def planted(mutant: str, known: Mapping[str, Mutant] = MUTANTS) -> Iterator[None]:
    """The engine with a mutant planted; the clean engine for ""."""
    with ExitStack() as stack:
        if mutant:
            try:
                stack.enter_context(applied(known[mutant]))
            except MutantError as error:
                raise BadInput(str(error)) from None
        yield


def mutant_file_option(command: Command) -> Command:
    """The option ``--mutant-file``."""
    return click.option(
        "--mutant-file",
        type=click.Path(path_type=Path),
        metavar="TOML",
        help="The file that defines the mutant, if it is your own; its text is "
        "executed.",
    )(command)


def subject_option(command: Command) -> Command:
    """The option ``--subject``: the store to judge."""
    return click.option(
        "--subject",
        metavar="MODULE:FACTORY",
        default=OURS,
        show_default=True,
        help="The store to judge: a function that makes one, of a module of yours.",
    )(command)


def workers_option(command: Command) -> Command:
    """The option ``--workers``: the number of processes."""
    return click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes; by default one a core.",
    )(command)


def process_count(workers: int | None) -> int:
    """How many processes ``--workers`` asks for."""
    return workers or len(os.sched_getaffinity(0))


class Seconds(click.FloatRange):
    """Seconds, at least a tenth of one; a finite number."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(min=0.1)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """The typed number; ``nan`` is within no range, and ``inf`` ends never."""
        seconds = super().convert(value, param, ctx)
        if not isfinite(seconds):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return seconds


class PlaceType(click.ParamType[Any]):
    """A directory, or the address of a place in an object store."""

    name = "place"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Place:
        """The typed place; an address is refused where a directory is needed."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # converted already
        try:
            return place_of(value)
        except BadRequest as error:
            self.fail(str(error), param, ctx)


def baseline_option(command: Command) -> Command:
    """The option ``--baseline``."""
    return click.option(
        "--baseline",
        type=click.Path(path_type=Path),
        metavar="TOML",
        help="Known failures, each with a reason and an expiry date; they do not "
        "turn a run red.",
    )(command)


def baseline_at(path: Path | None) -> Baseline:
    """The baseline in a file, by today's date; an empty one without a file."""
    if path is None:
        return Baseline()
    try:
        known = read_baseline(path, declared_laws(), SCENARIOS)
    except BadBaseline as error:
        raise BadInput(str(error)) from None
    return baseline_on(datetime.now(UTC).date(), known)


def junit_option(command: Command) -> Command:
    """The option ``--junitxml``."""
    return click.option(
        "--junitxml",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write the result as JUnit XML, too.",
    )(command)


def make_room(path: Path | None) -> None:
    """Check before the run that a result's file can be written."""
    if path is None or str(path) == "-":
        return
    with writing():
        if path.is_dir():
            raise BadInput(f"{path} is a directory; name a file in it.")
        path.parent.mkdir(parents=True, exist_ok=True)


def bug_or_store(bug: str, subject: NamedSubject | None) -> None:
    """Refuse a planted bug together with a store of the user's."""
    if bug and subject is not None:
        raise BadInput(
            f"planted bug {bug} changes our engine, and {subject.name} is another "
            f"store. Leave one of them: --mutant {NO_MUTANT} plants nothing, --subject "
            f"{OURS} takes our engine."
        )


def can_it(subject: NamedSubject | None, scenarios: Iterable[str]) -> None:
    """Refuse scenarios that need capabilities a store lacks."""
    if subject is None:
        return
    cannot = [name for name in scenarios if not SCENARIOS[name].needs <= subject.can]
    if cannot:
        able = [one.name for one in SCENARIOS.values() if one.needs <= subject.can]
        raise BadInput(
            f"{subject.name} cannot do what {', '.join(cannot)} asks for. It can be "
            f"asked {', '.join(able)}; docs/bring-your-own.md says what each needs."
        )


def case_subject_option(command: Command) -> Command:
    """The option ``--subject`` of commands that run a case."""
    return click.option(
        "--subject",
        metavar="MODULE:FACTORY",
        help="The store to run it on; needed if the case is of a store of your own.",
    )(command)


def subject_at(name: str) -> NamedSubject | None:
    """The store of this name; None for crashmq's engine."""
    try:
        return subject_named(name)
    except BadSubject as error:
        raise BadInput(str(error)) from None


def case_at(path: Path) -> CaseFile:
    """Read a case file."""
    try:
        return CaseFile.load(path)
    except BadCaseFile as error:
        raise BadInput(str(error)) from None


def subject_of(case: CaseFile, path: Path, named: str | None) -> NamedSubject | None:
    """The store that a case is run on; None for crashmq's engine.

    A case may come from anyone, and making its store runs code. So the user has to name
    that store on the command line as well; ``named`` is that name.
    """
    if named is not None:
        store = subject_at(named)
        if store is not None:
            _check_ops(case, path, store)
        return store
    if case.subject == OURS:
        return None
    if ":" not in case.subject:
        raise BadInput(
            f"{path}: $.subject is {case.subject!r}, and this crashmq drives {OURS}. "
            f"Use the version that wrote it."
        )
    raise BadInput(
        f"{path}: $.subject is {case.subject!r}, a store that is not ours. To import "
        f"and run it, add --subject {case.subject}."
    )


def _check_ops(case: CaseFile, path: Path, store: NamedSubject) -> None:
    """Refuse a case with an op that a store cannot do."""
    for number, op in enumerate(case.program.ops):
        missing = needs(op) - store.can
        if missing:
            raise BadInput(
                f"{path}: op {number}, {type(op).__name__}, is more than {store.name} "
                f"can do: {lacking(missing)}. docs/bring-your-own.md says which "
                f"methods that takes."
            )


@contextmanager
def writing() -> Iterator[None]:
    """Turn an error of writing a file into an error message.

    A name that cannot be used is bad input; a disk that refuses to write is none.
    """
    try:
        yield
    except FileExistsError as error:
        raise BadInput(str(error)) from None
    except OSError as error:
        # A write that fails, on a full disk say, does not know its file's name.
        what = f"{error.filename}:" if error.filename else "a file"
        kind = EnvironmentLacking if error.errno in _DISK_REFUSES else BadInput
        raise kind(
            f"{what} cannot be written: {error.strerror}. Name a place that can."
        ) from None


def exit_with(mutant: str | None, code: int) -> NoReturn:
    """End a search; with a planted bug it must have found a violation.

    Args:
        mutant: the id of a packaged mutant on the command line; None or "none": no bug.
        code: the exit code for what was found.
    """
    if code == CLEAN and mutant and mutant != NO_MUTANT:
        title = MUTANTS[mutant].title
        say(f"MISSED: planted bug {mutant} ({title}) broke no law")
        say(f"  next    crashmq mutants --only {mutant}")
        code = FINDINGS
    raise SystemExit(code)


def mutant_option(mutant: str) -> str:
    """The option that makes a command plant the same bug."""
    return f" --mutant {mutant}" if mutant else ""
