"""Supervised: runs numbered work in a child process that may die of it.

An episode can crash the interpreter, hang or exit, and that must cost only its own row.
One forked child does the numbers in order and writes each row to a pipe, so the parent
always knows which number is in progress. If the child ends early or takes too long,
that number is ``Lost`` and another child continues after it. A fork costs milliseconds
once, a row microseconds. What a row is, and what to do about a lost one, is up to the
caller.

Work may fork too. A child is a process group of its own, and all of it is killed once
the child has ended. A copy of the child that returns from the work exits and sends
nothing. A process that still holds the pipe open delays nobody.

Time limits count the child's processor time; the kernel enforces them, so a busy
machine makes no work late. A child that waits without working is ended after many times
as long by the wall clock. A limit for memory growth can be given: a child that grew
more ends between two numbers, and a new child continues. Within one number it may grow
``GROWTH_FACTOR`` times as much; beyond that, allocations fail.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

from crashmq.harness.guards.interrupts import held_back, left_to_parent

T = TypeVar("T")

WALL_FACTOR = 10.0
GROWTH_FACTOR = 4
_LENGTH = struct.Struct("<I")
_PR_SET_PDEATHSIG = 1
FAILED = 97
_ORPHANED = 98
_GROWN = 96
CHUNK = 1 << 16
_DESCRIPTORS_MAX = 65_536
_DETAIL_MAX = 8_000
_SAID_MAX = 1_000
_LOOKED_AT_S = 0.2  # how often a child that tells nothing is seen to live


@dataclass(frozen=True, slots=True)
class Lost:
    """A number whose work gave no row.

    ``how`` is ``raised``, ``timeout``, ``signal:N`` or ``exit:N``. Of what was raised
    ``kind`` is the class, by module unless it is Python's own, ``said`` the class with
    the message's first line, ``detail`` the traceback; all are empty otherwise.
    """

    number: int
    how: str
    kind: str = ""
    said: str = ""
    detail: str = ""


Around: TypeAlias = Callable[[], AbstractContextManager[object]]


def supervised(
    work: Callable[[int], T],
    numbers: Sequence[int],
    timeout_s: float,
    around: Around = nullcontext,
    growth_max: int | None = None,
) -> Iterator[T | Lost]:
    """Yield one row for each number, in order, whatever the work does to its process.

    Args:
        work: called in the child; its result must be picklable.
        numbers: the numbers to work on, in this order.
        timeout_s: seconds of processor time that one number may take before its child
            is killed; by the wall clock, ``WALL_FACTOR`` times as long.
        around: a context that the child enters for its work.
        growth_max: bytes by which a child's memory may grow before a new child takes
            over; None if numbers depend on what their child has done before.
    """
    done = 0
    while done < len(numbers):
        before = done
        child = _Child(work, numbers[done:], timeout_s, around, growth_max)
        try:
            for row in child.rows():
                done += 1
                yield row
            how = child.end()
        finally:
            child.close()
        has_grown = how == f"exit:{_GROWN}" and done > before
        if done < len(numbers) and not has_grown:
            yield Lost(numbers[done], how)
            done += 1


class _Child:
    """One forked process and the reading end of its pipe."""

    def __init__(
        self,
        work: Callable[[int], T],
        numbers: Sequence[int],
        timeout_s: float,
        around: Around,
        growth_max: int | None,
    ) -> None:
        self.timeout_s = timeout_s
        self.numbers = numbers
        self.timed_out = False
        self.code: int | None = None

        def be_it(writer: int, parent: int) -> NoReturn:
            bounded = _Bounds(timeout_s, growth_max)
            _be_the_child(work, numbers, bounded, around, writer, parent)

        self.pid, self.reader = child_that(be_it)

    def rows(self) -> Iterator[T | Lost]:
        """What the child wrote, until it has finished, ended or taken too long."""
        poll = select.poll()
        poll.register(self.reader, select.POLLIN)
        buffer = bytearray()
        missing = len(self.numbers)
        wall_s = self.timeout_s * WALL_FACTOR
        deadline = time.monotonic() + wall_s
        while missing:
            left = deadline - time.monotonic()
            if left <= 0:
                self.timed_out = True
                return
            is_over = has_ended(self.pid)  # before the pipe is looked at
            if not poll.poll(min(left, _LOOKED_AT_S) * 1000):
                if is_over:
                    return
                continue
            data = os.read(self.reader, CHUNK)
            if not data:
                return
            buffer += data
            for number, row in taken_from(buffer):
                if number != self.numbers[-missing]:
                    continue  # somebody else has written it
                missing -= 1
                yield row
                deadline = time.monotonic() + wall_s

    def end(self) -> str:
        """Wait for the child, or kill it if its time is over; return how it ended."""
        if self.timed_out:
            os.kill(self.pid, signal.SIGKILL)
        code = self.code = reaped(self.pid)
        if self.timed_out or code == -signal.SIGPROF:
            return "timeout"
        return f"signal:{-code}" if code < 0 else f"exit:{code}"

    def close(self) -> None:
        """Close all descriptors and end the process, even if rows are unread."""
        os.close(self.reader)
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.code = reaped(self.pid)


def has_ended(pid: int) -> bool:
    """Whether a child has ended, without reaping it."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, pid, options) is not None


def reaped(pid: int) -> int:
    """Wait for a child of ``child_that`` to end, and end all that it has started.

    Returns:
        its exit code; the negative number of the signal that ended it.
    """
    # Until it is reaped, its number, which is its group's, is nobody else's.
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with suppress(ProcessLookupError, PermissionError):  # none but it was there
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def taken_from(buffer: bytearray) -> list[Any]:
    """Remove the complete rows at the front of the buffer, and return them."""
    rows = []
    at = 0
    while len(buffer) - at >= _LENGTH.size:
        (size,) = _LENGTH.unpack_from(buffer, at)
        start = at + _LENGTH.size
        if len(buffer) - start < size:
            break
        rows.append(pickle.loads(bytes(buffer[start : start + size])))
        at = start + size
    del buffer[:at]
    return rows


def child_that(be_it: Callable[[int, int], NoReturn]) -> tuple[int, int]:
    """Fork a child, in a process group of its own, that sends rows through a pipe.

    Args:
        be_it: the child's body, given the end of the pipe that it writes to and its
            parent's process id.

    Returns:
        its process id, and the end of the pipe to read from.
    """
    reader, writer = os.pipe()
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    with held_back():  # or it would end the child on its way up our own frames
        pid = _forked()
        if pid == 0:
            os.setpgid(0, 0)
            be_it(writer, parent)
    os.close(writer)
    return pid, reader


def _forked() -> int:
    """Fork; 0 in the child, its process id in the parent."""
    with warnings.catch_warnings():
        # Python 3.12 warns of forking beside threads. The child takes no lock of
        # theirs: it runs pure Python on data of its own and leaves by os._exit.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _be_the_child(
    work: Callable[[int], T],
    numbers: Sequence[int],
    bounds: _Bounds,
    around: Around,
    writer: int,
    parent: int,
) -> NoReturn:
    code, itself = FAILED, os.getpid()
    is_inside = False
    try:
        left_to_parent()
        die_with(parent)
        close_what_is_not_ours(writer)
        bounds.begin()
        with around():
            is_inside = True
            for number in numbers:
                bounds.begin()
                row = _row_of(work, number)
                if os.getpid() != itself:  # the work has forked
                    os._exit(FAILED)
                write_row(writer, row)
                if bounds.has_grown():
                    os._exit(_GROWN)
        code = 0
    # Whatever kept the context from being entered keeps every number from being done.
    except BaseException:
        for number in () if is_inside else numbers:
            write_row(writer, _numbered(number, _lost(number)))
    finally:
        os._exit(code)


def close_what_is_not_ours(writer: int) -> None:
    """In a child: close all files but the standard streams and its pipe.

    Above all Spark's socket: if the child held it open, it would outlive its worker.
    """
    os.closerange(3, writer)
    os.closerange(writer + 1, _DESCRIPTORS_MAX)


def die_with(parent: int) -> None:
    """In a child: end when the parent does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call
        os._exit(_ORPHANED)


class _Bounds:
    """The limits of a child: time for each number, memory for all of them."""

    def __init__(self, timeout_s: float, growth_max: int | None) -> None:
        self._timeout_s = timeout_s
        self._size_max = None
        if growth_max is not None:
            self._size_max = _size() + growth_max
            _refuse_more_than(GROWTH_FACTOR * growth_max)

    def begin(self) -> None:
        """Let the kernel end this process after the time for one number."""
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, self._timeout_s)

    def has_grown(self) -> bool:
        """Whether the process has ever been larger than its limit."""
        return self._size_max is not None and _size() > self._size_max


def _refuse_more_than(growth: int) -> None:
    """Let allocations fail with ``MemoryError`` after so many bytes of growth."""
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])
        most = pages * resource.getpagesize() + growth
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard == resource.RLIM_INFINITY or most < hard:
            resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _size() -> int:
    """The most memory that this process ever had, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _row_of(work: Callable[[int], T], number: int) -> bytes:
    try:
        return _numbered(number, work(number))
    # Whatever the work raises, sys.exit included, is a finding about this number and
    # must not end the numbers after it.
    except BaseException:
        return _numbered(number, _lost(number))


def _numbered(number: int, row: object) -> bytes:
    return pickle.dumps((number, row), pickle.HIGHEST_PROTOCOL)


def lost_row(number: int) -> bytes:
    """The row for a number whose work has just raised an exception."""
    return pickle.dumps(_lost(number), pickle.HIGHEST_PROTOCOL)


def _lost(number: int) -> Lost:
    error = sys.exception()
    assert error is not None
    kind, module = type(error).__qualname__, type(error).__module__
    if module not in ("builtins", "__main__"):
        kind = f"{module}.{kind}"
    told = traceback.format_exception_only(error)  # a SyntaxError's place is before it
    said = next(each for each in told if not each.startswith(" "))
    said = said.partition("\n")[0][:_SAID_MAX]
    return Lost(number, "raised", kind, said, traceback.format_exc()[-_DETAIL_MAX:])


def write_row(writer: int, data: bytes) -> None:
    """Write one row to a pipe, whole."""
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[os.write(writer, view) :]
