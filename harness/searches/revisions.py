"""Runs a case at revisions of a git repository: where did a failure begin, or end?

The repository is ours, or that of the user's store. It is only read: a revision is
checked out into a directory of its own, and ``crashmq replay`` runs on it in a process
of its own, with the Python and the packages of this one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

PASSED, VIOLATED, NOT_RUN = "passed", "violated", "not run"
DIRTY = "-dirty"  # behind a revision that was run with changes nobody committed

_WORDS = {  # a replay's exit code, and the word that begins its last line
    (0, "PASSED"): PASSED,
    (0, "FIXED"): PASSED,
    (1, "FOUND"): VIOLATED,
    (1, "CHANGED"): VIOLATED,
    (1, "SAME"): VIOLATED,
}
_TIMEOUT_S = 600.0
_SAID = re.compile(r"^(FIXED|SAME|CHANGED|FOUND|PASSED|NOT JUDGED): [^;\n]+", re.M)
_FIELDS = "--format=%h%x09%cs%x09%s"
_CHECKOUT = ".ci/checkout"  # where a checkout of ours has the package


class NoRevision(Exception):
    """Git, the repository or a revision is not there; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit: its abbreviated name, its date, and its first line."""

    name: str
    date: str
    title: str


@dataclass(frozen=True, slots=True)
class Tried:
    """What a case came to at a revision, and what the replay said of it."""

    revision: Revision
    outcome: str
    said: str


def revision_here() -> str:
    """The revision that this package was imported from; "" if from no checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        return _git(root, "describe", "--always", "--exclude=*", f"--dirty={DIRTY}")
    except NoRevision:
        return ""


def revisions_named(repository: Path, names: Sequence[str]) -> list[Revision]:
    """The revisions of these names, in the order given.

    ``A..B`` is A and what leads from it to B, by first parents, the oldest first.

    Raises:
        NoRevision: there is no git, no repository, or no such revision.
    """
    found = []
    for name in names:
        first, dots, last = name.partition("..")
        words = [first] if dots else [name]
        lines = _git(repository, "log", "--no-walk", _FIELDS, *words, "--")
        if dots:
            way = ("--reverse", "--first-parent", _FIELDS, f"{first}..{last}", "--")
            lines += "\n" + _git(repository, "log", *way)
        found += [Revision(*line.split("\t", 2)) for line in lines.split("\n") if line]
    return found


def halved(
    revisions: Sequence[Revision], tried: Callable[[Revision], Tried]
) -> Iterator[Tried]:
    """Try the first and the last revision, then halve what is between them.

    It ends when the outcome changes between two neighbours; or at once if the ends do
    not differ. One that cannot run is passed over for its neighbour.
    """
    waiting = list(revisions)
    first, last = tried(waiting[0]), tried(waiting[-1])
    yield first
    if len(waiting) > 1:
        yield last
    if NOT_RUN in (first.outcome, last.outcome) or first.outcome == last.outcome:
        return
    while len(waiting) > 2:
        middle = len(waiting) // 2
        found = tried(waiting[middle])
        yield found
        if found.outcome == NOT_RUN:
            del waiting[middle]
        elif found.outcome == first.outcome:
            del waiting[:middle]
        else:
            del waiting[middle + 1 :]


def tried_at(
    repository: Path, revision: Revision, case: Path, more: Sequence[str] = ()
) -> Tried:
    """Replay the case at a revision; ``more`` are options of ``crashmq replay``.

    Without options it is the engine that is judged, so the revision must be of crashmq.

    Raises:
        NoRevision: the files of the revision cannot be had.
    """
    with TemporaryDirectory(prefix="crashmq-") as directory:
        place = Path(directory)
        theirs = _check_out(repository, revision, place)
        of_ours = place / _CHECKOUT
        if not more and not of_ours.is_dir():
            # The installed engine would run, and its outcome be told as this one's.
            return Tried(revision, NOT_RUN, f"has no {_CHECKOUT}, so no engine to run")
        path = of_ours if of_ours.is_dir() else theirs
        try:
            done = subprocess.run(
                [*_REPLAY, str(case.absolute()), *more],
                env=os.environ | {"PYTHONPATH": str(path)},
                cwd=place,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Tried(revision, NOT_RUN, f"took more than {_TIMEOUT_S:.0f} s")
    return _heard(revision, done)


def _heard(revision: Revision, done: subprocess.CompletedProcess[str]) -> Tried:
    """What a replay that has ended came to: its last line and its exit code agree."""
    lines = list(_SAID.finditer(done.stdout))
    if lines:
        outcome = _WORDS.get((done.returncode, lines[-1][1]), NOT_RUN)
        return Tried(revision, outcome, lines[-1][0])
    why = done.stderr.strip().split("\n")[-1]
    return Tried(revision, NOT_RUN, why or f"said nothing, exit code {done.returncode}")


_REPLAY = (sys.executable, "-m", "crashmq.harness.cli", "replay")


def _check_out(repository: Path, revision: Revision, place: Path) -> Path:
    """Write the files of a revision to ``place``; the repository is only read.

    Returns:
        what ``repository`` is there, which may be a directory below its root.
    """
    root = _git(repository, "rev-parse", "--show-toplevel")
    below = _git(repository, "rev-parse", "--show-prefix")
    _git(place, "clone", "--quiet", "--shared", "--no-checkout", root, ".")
    _git(place, "checkout", "--quiet", "--detach", revision.name)
    return place / below


def _git(repository: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *words],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        raise NoRevision("git is not installed, and revisions need it.") from None
    if done.returncode:
        why = done.stderr.strip().split("\n")[0].removeprefix("fatal: ")
        raise NoRevision(f"git knows no such revision in {repository}: {why}")
    return done.stdout.strip("\n")
