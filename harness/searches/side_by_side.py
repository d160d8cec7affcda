"""Side by side: runs jobs in forked children, several at a time, with their messages.

Each job has a child of its own, so that it leaves no memory behind, and a child that
dies or hangs costs only its job. Messages arrive through a pipe at once, so what a job
has found is known however it ends. Jobs may be added while others run. What a job and
its messages are is up to the caller.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, NoReturn, Self, TypeAlias, TypeVar

from crashmq.harness.guards.interrupts import left_to_parent
from crashmq.harness.searches.supervised import (
    CHUNK,
    FAILED,
    Lost,
    child_that,
    close_what_is_not_ours,
    die_with,
    has_ended,
    lost_row,
    reaped,
    taken_from,
    write_row,
)

J = TypeVar("J")
Tell: TypeAlias = Callable[[object], None]
_WAITING_MS = 200.0


@dataclass(frozen=True, slots=True)
class Over:
    """A child has ended; ``how`` is "" if its job is done, else as in ``Lost``.

    A job is done once its work has returned; if the work ends the child, it is not,
    whatever the exit code.
    """

    how: str = ""


@dataclass(frozen=True, slots=True)
class _Returned:
    """The last row of a child whose work has returned."""


class SideBySide(Generic[J]):
    """Children that do jobs; a context that ends them all when it is left.

    Invariants:
        there are at most ``workers`` children
    """

    def __init__(
        self, work: Callable[[J, Tell], None], workers: int, timeout_s: float
    ) -> None:
        """Start nothing yet.

        Args:
            work: called in a child with the job and a function that sends a picklable
                message.
            workers: how many children run at a time, >= 1.
            timeout_s: seconds of processor time after which a child is ended.
        """
        assert workers >= 1, workers
        self.work = work
        self.workers = workers
        self.timeout_s = timeout_s
        self._waiting: deque[tuple[int, J]] = deque()
        self._children: dict[int, _Child[J]] = {}  # by the descriptor that is read
        self._added = 0

    def _check(self) -> None:
        assert len(self._children) <= self.workers, len(self._children)

    def __enter__(self) -> Self:
        """Enter the context without a child."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every child, whether or not its job is done."""
        while self._children:
            self._children.popitem()[1].close()

    def add(self, jobs: Iterable[J]) -> None:
        """Append jobs to those that wait."""
        for job in jobs:
            self._waiting.append((self._added, job))
            self._added += 1

    @property
    def is_idle(self) -> bool:
        """Whether every job that was added is over."""
        return not (self._children or self._waiting)

    def messages(self, until: float | None = None) -> Iterator[tuple[J, object]]:
        """Yield the children's messages, each with its job, until all jobs are over.

        The last message of a job is an ``Over``.

        Args:
            until: a ``time.monotonic()`` at which to stop although jobs run; looked at
                every few tenths of a second when no message arrives.
        """
        while self._children or self._waiting:
            if until is not None and time.monotonic() >= until:
                return
            while self._waiting and len(self._children) < self.workers:
                child = _Child(self._waiting.popleft()[1], self.work, self.timeout_s)
                self._children[child.reader] = child
            yield from self._ready(_WAITING_MS)

    def left(self) -> Iterator[tuple[J, object]]:
        """Yield the messages that have arrived and were not read yet; does not wait."""
        while self._children:
            before = len(self._children)
            heard = list(self._ready(0.0))
            yield from heard
            if not heard and len(self._children) == before:
                return

    def _ready(self, wait_ms: float) -> Iterator[tuple[J, object]]:
        poll = select.poll()
        for reader in self._children:
            poll.register(reader, select.POLLIN)
        # One that has ended, and whose pipe somebody whom it started holds open.
        over = [reader for reader, one in self._children.items() if has_ended(one.pid)]
        for reader in (reader for reader, _ in poll.poll(wait_ms)):
            child = self._children[reader]
            data = os.read(reader, CHUNK)
            if data:
                child.buffer += data
                yield from ((child.job, row) for row in child.heard())
                over = [each for each in over if each != reader]
            elif reader not in over:
                over.append(reader)
        for reader in over:
            child = self._children.pop(reader)
            yield child.job, Over(child.end())


class _Child(Generic[J]):
    """One forked process, the job it does, and the reading end of its pipe."""

    def __init__(
        self, job: J, work: Callable[[J, Tell], None], timeout_s: float
    ) -> None:
        self.job = job
        self.buffer = bytearray()
        self.how: str | None = None  # as in ``Over``, once the child has told it

        def be_it(writer: int, parent: int) -> NoReturn:
            _be_the_child(job, work, timeout_s, writer, parent)

        self.pid, self.reader = child_that(be_it)

    def heard(self) -> Iterator[object]:
        """Remove the child's messages from the buffer, and yield them."""
        for row in taken_from(self.buffer):
            if isinstance(row, _Returned):
                self.how = ""
                continue
            if isinstance(row, Lost):
                self.how = row.how
            yield row

    def end(self) -> str:
        """Wait for the child, which has closed its pipe; return how, as in ``Over``."""
        os.close(self.reader)
        code = reaped(self.pid)
        if self.how is not None:
            return self.how
        if code == -signal.SIGPROF:
            return "timeout"
        if code < 0:
            return f"signal:{-code}"
        return f"exit:{code}"

    def close(self) -> None:
        """End the child at once."""
        os.close(self.reader)
        os.kill(self.pid, signal.SIGKILL)
        reaped(self.pid)


def _be_the_child(
    job: J,
    work: Callable[[J, Tell], None],
    timeout_s: float,
    writer: int,
    parent: int,
) -> NoReturn:
    itself = os.getpid()

    def tell(row: object) -> None:
        if os.getpid() != itself:  # the work has forked
            os._exit(FAILED)
        write_row(writer, pickle.dumps(row, pickle.HIGHEST_PROTOCOL))

    code = FAILED
    try:
        left_to_parent()
        die_with(parent)
        close_what_is_not_ours(writer)
        # What a library warns of is for who wrote it, and would tear our lines.
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, timeout_s)
        work(job, tell)
        tell(_Returned())
        code = 0
    # Whatever it raises, sys.exit included, is told, and ends this job alone.
    except BaseException:
        write_row(writer, lost_row(0))
    finally:
        os._exit(code)


__all__ = ["Lost", "Over", "SideBySide", "Tell"]
