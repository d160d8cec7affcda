"""Laws of the run itself: nothing is raised that must not be, nothing is chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from models.invariants.registry import invariant
from models.observations import Failed, Stopped
from models.verdict import Violation

_NO_SPACE = "[Errno 28]"


@invariant("RUN-1", "no op raises what its contract does not name", law="I9 I19")
def nothing_unnamed_is_raised(
    failures: Sequence[Failed], disk_fault_armed: bool, disk_may_fill: bool = False
) -> Iterator[Violation]:
    """An ``OSError`` is in the contract while the disk is made to fail, or is full."""
    for failed in failures:
        is_full = disk_may_fill and failed.message.startswith(_NO_SPACE)
        if not (failed.error == "OSError" and (disk_fault_armed or is_full)):
            yield Violation("op", f"{failed.error}: {failed.message}", "an answer")


@invariant("RUN-2", "a store that has stopped holds no file", law="I19")
def nothing_is_held(stop: Stopped) -> Iterator[Violation]:
    """Unless somebody else was in it: neither open nor locked, deleted ones too."""
    for path in stop.left_open:
        yield Violation(path, "still open or locked", "closed and let go")


@invariant("DET-1", "the same program gives the same digest", law="I10")
def same_digest(first: str, second: str) -> Iterator[Violation]:
    """Of two runs of one program by one version of the code."""
    if first != second:
        yield Violation("digest", second, first)


@invariant(
    "RES-1", "a store that has stopped, or would not start, holds nothing", law="I20"
)
def everything_is_given_back(
    before: Mapping[str, int], after: Mapping[str, int]
) -> Iterator[Violation]:
    """How many handles, mappings and threads the process has, by kind.

    ``before`` is counted when no store was there, ``after`` once it is gone.
    """
    for kind, count in sorted(after.items()):
        if count > before.get(kind, 0):
            yield Violation(kind, f"{count}", f"{before.get(kind, 0)}, as before")
