"""The pytest plugin: search profiles, case files as tests, failures saved as files.

pytest loads it in every project in which crashmq is installed, so it does nothing
unless asked, and imports the engine and Hypothesis only when needed. A ``*.case.json``
file is a test if it lies where ``crashmq_cases`` says, or if ``--crashmq``
(``crashmq = true`` in pytest's configuration) is given, since other tools have such
files too. Its program is run, and passes if no law is violated. A case that names a
planted bug is run without the bug, so a pass shows that the store does not have it; one
that names a user's store is run on it if ``crashmq_subject`` names that store, too,
since making it runs code. If one of crashmq's state machines fails, its program is
saved as a case file, with the command that replays it.
"""

from __future__ import annotations

import shlex
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crashmq.harness.guards.asserts import are_checked, refusal

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr, TracebackStyle

    from crashmq.harness.episodes.episode import EpisodeResult
    from crashmq.harness.failures.case_file import CaseFile
    from crashmq.harness.searches.machine import FoundFailure, Recorder
    from crashmq.harness.subjects.named import NamedSubject

CASE_SUFFIX = ".case.json"
ARTIFACTS = ".crashmq"
PROFILES = ("dev", "ci", "nightly")
CHECKING = ("dev", "ci")
SHRINK_RUNS = 500
_REPLAY = "crashmq_replay"
_WITHOUT = "crashmq_without_mutant"


class CaseFailed(Exception):
    """A case file's program violated a law, or could not be judged."""

    def __init__(self, result: EpisodeResult) -> None:
        super().__init__(result.message)
        self.result = result


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add crashmq's options, each with an ini key of the same name."""
    group = parser.getgroup("crashmq", "crashmq: stores under faults")
    group.addoption(
        "--crashmq",
        action="store_true",
        help="take every *.case.json that is met for a case of crashmq",
    )
    group.addoption(
        "--crashmq-profile",
        choices=PROFILES,
        help="how hard state machines search: dev, ci (the same each time), nightly",
    )
    group.addoption(
        "--crashmq-artifacts",
        metavar="DIR",
        help=f"where failing programs are saved (default: {ARTIFACTS})",
    )
    group.addoption(
        "--crashmq-cases",
        metavar="PATH",
        action="append",
        default=[],
        help="where case files are tests: a directory or a file; may be repeated",
    )
    group.addoption(
        "--crashmq-subject",
        metavar="MODULE:FACTORY",
        action="append",
        default=[],
        help="a store of yours that case files may name; may be repeated",
    )
    parser.addini("crashmq", "as --crashmq", "bool", default=False)
    parser.addini("crashmq_cases", "as --crashmq-cases, several", "paths", default=[])
    parser.addini(
        "crashmq_subject", "as --crashmq-subject, several", "linelist", default=[]
    )
    parser.addini("crashmq_profile", "as --crashmq-profile", default="")
    parser.addini("crashmq_artifacts", "as --crashmq-artifacts", default=ARTIFACTS)


def pytest_configure(config: pytest.Config) -> None:
    """Load the chosen profile, before a test module reads the default settings."""
    profile = _profile(config)
    if not profile:
        return
    if profile not in PROFILES:
        raise pytest.UsageError(
            f"crashmq_profile is {profile!r}; take one of {', '.join(PROFILES)}."
        )
    from crashmq.harness.searches.search_settings import load_profile

    load_profile(profile)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse to run crashmq's tests if asserts are off; other tests may run."""
    if are_checked():
        return
    for item in items:
        machine = getattr(_machine_of(item), "recorder", None)
        if isinstance(item, CaseItem) or machine is not None:
            raise pytest.UsageError(refusal(f"crashmq ({item.nodeid})"))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Check class invariants during tests, in the profiles that ask for it."""
    profile = _profile(session.config)
    if profile not in CHECKING or session.config.option.collectonly:
        return (yield)
    from crashmq.harness.guards.invariants import invariants_checked

    with invariants_checked():
        return (yield)


def _profile(config: pytest.Config) -> str:
    given = config.getoption("crashmq_profile") or config.getini("crashmq_profile")
    return str(given or "")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Print the name of the profile."""
    profile = _profile(config)
    return [f"crashmq: profile {profile}"] if profile else []


def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> pytest.Collector | None:
    """Collect a case file as a test, if that was asked for."""
    if not file_path.name.endswith(CASE_SUFFIX):
        return None
    if not (_takes_all(parent.config) or _is_among_cases(file_path, parent.config)):
        return None
    collector: pytest.Collector = CaseCollector.from_parent(parent, path=file_path)
    return collector


def _takes_all(config: pytest.Config) -> bool:
    return bool(config.getoption("crashmq") or config.getini("crashmq"))


def _is_among_cases(file_path: Path, config: pytest.Config) -> bool:
    start = config.invocation_params.dir
    asked = [start / path for path in config.getoption("crashmq_cases")]
    places = {path.resolve() for path in (*asked, *config.getini("crashmq_cases"))}
    found = file_path.resolve()
    return not places.isdisjoint([found, *found.parents])


class CaseCollector(pytest.File):
    """One case file."""

    def collect(self) -> Iterator[pytest.Item]:
        """Its one test."""
        yield CaseItem.from_parent(self, name="replay")


class CaseItem(pytest.Item):
    """Runs a case's program; fails if any law is violated."""

    caveat = ""
    replays_with = ""

    def runtest(self) -> None:
        """Replay the case on the store that it names, by default the present engine.

        Raises:
            CaseFailed: a law was violated or could not be judged.
            BadCaseFile: the file is not a case, or not of a store named here.
            BadSubject: the store cannot be made.
            SubjectLacks: the store cannot do an op of the case.
        """
        from crashmq.harness.episodes.running import runner_of
        from crashmq.harness.failures.case_file import CaseFile
        from crashmq.harness.guards.invariants import invariants_checked
        from crashmq.models.verdict import Outcome

        case = CaseFile.load(self.path)
        self.caveat = case.caveat
        store = _store_of(case, self.path, self.config)
        self.replays_with = _naming(store.name if store else "")
        with invariants_checked(enabled=case.checks_invariants):
            result = runner_of(store)(case.program, case.scenario)
        if result.outcome is not Outcome.PASSED:
            raise CaseFailed(result)
        if case.mutant:
            self.user_properties.append((_WITHOUT, case.mutant))

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: TracebackStyle | None = None,
    ) -> str | TerminalRepr:
        """The timeline, without a traceback of the harness."""
        from crashmq.harness.failures.case_file import BadCaseFile
        from crashmq.harness.subjects.named import BadSubject
        from crashmq.harness.subjects.subject import SubjectLacks
        from crashmq.models.printable import printable_lines

        error = excinfo.value
        if isinstance(error, CaseFailed):
            replay = _replay(self.path, self.config) + self.replays_with
            told = _timeline(error.result, replay)
            return f"{told}\n{self.caveat}" if self.caveat else told
        if isinstance(error, BadCaseFile | BadSubject | SubjectLacks):
            return printable_lines(str(error))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """The test's name in reports."""
        return self.path, None, f"replay of {self.path.name}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Save the program of a failing state machine of crashmq, and show its timeline.

    The timeline replaces the traceback, which only shows Hypothesis and the harness;
    ``--tb=native`` shows both.
    """
    report = yield
    recorder = getattr(_machine_of(item), "recorder", None)
    if call.when != "call" or call.excinfo is None or recorder is None:
        return report
    shown = []
    for found in map(_smaller, _reported(call.excinfo.value, recorder)):
        replay, timeline = _keep(found, item.config)
        report.user_properties.append((_REPLAY, replay))
        shown.append(timeline)
    if item.config.getoption("tbstyle") == "native":
        report.sections += [("crashmq", timeline) for timeline in shown]
    elif shown:
        report.longrepr = "\n\n".join(shown)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what passed cases of planted bugs show, and how to replay failures."""
    without = {
        report.nodeid: str(value)
        for report in terminalreporter.stats.get("passed", [])
        for name, value in report.user_properties
        if name == _WITHOUT
    }
    if without:
        bugs = ", ".join(sorted(set(without.values())))
        terminalreporter.line(
            f"crashmq: {len(without)} passed of cases that name a planted bug ({bugs}):"
            f" they were run without it. `crashmq replay FILE` plants it."
        )
    replays = [
        str(value)
        for report in terminalreporter.stats.get("failed", [])
        for name, value in report.user_properties
        if name == _REPLAY
    ]
    if replays:
        from crashmq.models.printable import printable_lines

        terminalreporter.section("crashmq: failing programs")
        for replay in replays:
            terminalreporter.line(printable_lines(replay))


def _machine_of(item: pytest.Item) -> object:
    """The state machine of a Hypothesis ``TestCase``; None for another test."""
    run = getattr(getattr(item, "cls", None), "runTest", None)
    return getattr(run, "_hypothesis_state_machine_class", None)


def _reported(error: BaseException, recorder: Recorder) -> Iterator[FoundFailure]:
    """The recorded failures of the laws that the test's error names."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _reported(each, recorder)
    elif getattr(error, "id", None) in recorder.failures:
        yield recorder.failures[error.id]  # type: ignore[attr-defined]  # just looked up


def _smaller(found: FoundFailure) -> FoundFailure:
    """The failure with its program shrunk, if it also fails outside the machine."""
    from crashmq.harness.failures.shrink import NothingToShrink
    from crashmq.harness.searches.machine_search import shrunk

    try:
        return shrunk(found, budget_runs=SHRINK_RUNS)
    except NothingToShrink:
        return found


def _keep(found: FoundFailure, config: pytest.Config) -> tuple[str, str]:
    """Save the program as a case; the command that replays it, and its timeline."""
    from crashmq.harness.episodes.running import runner_of
    from crashmq.harness.failures.case_file import CaseFile
    from crashmq.harness.subjects.named import OURS
    from crashmq.models.printable import printable_lines
    from crashmq.models.verdict import Outcome

    result = runner_of(found.subject)(found.program, found.scenario)
    store = found.subject.name if found.subject else ""
    case = CaseFile(
        scenario=found.scenario,
        program=found.program,
        violated=found.violated,
        step=found.step,
        digest=result.digest,
        message=found.message,
        subject=store or OURS,
    )
    named = config.getoption("crashmq_artifacts") or config.getini("crashmq_artifacts")
    stem = f"{found.scenario}-{found.violated}"
    path = case.save_beside(config.rootpath / named, stem)
    replay = _replay(path, config) + _naming(store)
    shown = _timeline(result, replay)
    if result.outcome is Outcome.PASSED:
        shown += (
            f"\nIn the machine it broke a law, run on its own it passes: either a "
            f"mutant was applied, or the machine keeps something between two cases.\n"
            f"{printable_lines(found.message)}"
        )
    return replay, shown


def _store_of(case: CaseFile, path: Path, config: pytest.Config) -> NamedSubject | None:
    """The user's store that a case is of; None for crashmq's engine."""
    from crashmq.harness.failures.case_file import BadCaseFile
    from crashmq.harness.subjects.named import OURS, subject_named

    if case.subject == OURS:
        return None
    named = config.getoption("crashmq_subject") + config.getini("crashmq_subject")
    if case.subject not in named:
        raise BadCaseFile(
            f"{path}: $.subject is {case.subject!r}, a store that is not ours. To "
            f"import and run it, name it in crashmq_subject of pytest's configuration, "
            f"or by --crashmq-subject {case.subject}."
        )
    return subject_named(case.subject)


def _timeline(result: EpisodeResult, replay: str) -> str:
    from crashmq.harness.episodes.timeline import timeline

    return timeline(result, replay=replay)


def _naming(store: str) -> str:
    """The option by which a replay runs a user's store; "" for our engine."""
    return f" --subject {shlex.quote(store)}" if store else ""


def _replay(path: Path, config: pytest.Config) -> str:
    """The command for a case; its path is relative to where pytest was started."""
    start = config.invocation_params.dir
    typed = path.relative_to(start) if path.is_relative_to(start) else path
    return f"crashmq replay {shlex.quote(str(typed))}"
