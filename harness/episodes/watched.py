"""A watched run: an episode that keeps files, which a trace does not have.

It keeps the files that each start found and left, so that the timeline can say what the
start read, cut and built; the files before and after one step; and the files at the
breach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from crashmq.harness.episodes.episode import Episode
from crashmq.harness.episodes.file_changes import change_summary, changes
from crashmq.harness.subjects.named import NamedSubject
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.harness.subjects.subject import Subject
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.observations import Observation, Refused, Started
from crashmq.models.program import Program

Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class StartSummary:
    """One start: the index of its step in the trace, and what it did, in words."""

    index: int
    words: str


@dataclass(slots=True)
class Watched:
    """What a watched run kept.

    Attributes:
        starts: every start, the first and those of the healed end included.
        around: by the number of an op, the files before and after it.
        last: the files of the moment the run ended, that of the breach.
    """

    starts: list[StartSummary] = field(default_factory=list)
    around: dict[int, tuple[Files, Files]] = field(default_factory=dict)
    last: Files = field(default_factory=dict)


def watch(
    program: Program,
    scenario: str,
    *,
    until: int | None = None,
    around: int | None = None,
    subject: NamedSubject | None = None,
) -> Watched:
    """Run a program to its breach, or to its end, and keep what is asked.

    Args:
        program: as in ``run_program``; the caller plants the bug.
        scenario: its name.
        until: stop after this many ops, and do not judge the end.
        around: the op whose files are kept, before and after it.
        subject: the store; by default our engine.
    """
    store: Subject = PythonStore(program.setup)
    if subject is not None:
        store = subject.made(program.setup)
    kept = Watched()
    episode = Episode(scenario, program.setup, subject=store)
    if subject is None:  # another one's files have a layout that we cannot read
        _watch_starts(store, kept, lambda: len(episode.trace))
    try:
        for number, op in enumerate(program.ops[:until]):
            episode.begin()
            before = dict(store.files()) if number == around else {}
            try:
                episode.step(op)
            finally:
                if number == around:
                    kept.around[number] = before, dict(store.files())
        if until is None:
            episode.finish()
    except (LawViolated, LawUnknown):
        pass  # the timeline tells it
    finally:
        kept.last = dict(store.files())
        episode.close()
    return kept


def _watch_starts(store: Subject, kept: Watched, index: Callable[[], int]) -> None:
    """Keep the files that each start of a store finds and leaves."""
    start = store.start

    def watched() -> Observation:
        before, seen = dict(store.files()), None
        try:
            seen = start()
            return seen
        finally:
            words = _told(seen, before, dict(store.files()))
            if words:
                kept.starts.append(StartSummary(index(), words))

    store.start = watched  # type: ignore[method-assign]  # of this one object


def _told(seen: Observation | None, before: Files, after: Files) -> str:
    did = change_summary(changes(before, after))
    match seen:
        case Started(last_exit_ok, read, damaged):
            end = "orderly" if last_exit_ok else "a crash"
            around = f", serves around {len(damaged)} damaged" if damaged else ""
            return f"start after {end}: read {read} B of the log{around}; {did}"
        case Refused():
            return f"start refused; {did}"
        case None:
            return f"start that did not end; {did}"
    return ""
