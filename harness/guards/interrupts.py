"""Interrupts: Ctrl-C ends a command, whatever catches the exception on its way.

An interrupt is raised wherever the program happens to be: in a law, in a store halfway
through an op, in a callback whose errors are ignored. There it may be turned into
another error, or be dropped. So the command line remembers that there was one, each
line of progress raises it again until a command has handled it, and the exit code is
the interrupt's in any case. A second one, sent when the first was visibly heard, ends
the process at once. Our child processes leave it to their parent, which ends them, and
end when it does.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.context import SpawnContext

CODE = 130  # what a shell says of a command that an interrupt ended
ONE_PRESS_S = 0.3  # who passes a signal on may send it once more
_PR_SET_PDEATHSIG = 1
_HEARD = b"\ninterrupted: keeping what was found; Ctrl-C again ends it at once\n"
_SHOW_CURSOR = b"\x1b[?25h"


class Interrupts:
    """The interrupts of one command.

    Invariants:
        an interrupt that is still to be handled was recorded as seen
    """

    def __init__(self) -> None:
        self.seen = False
        """Whether there was one since the command began."""
        self._wanted = False
        self._is_process = False
        self._first_at = 0.0

    def _check(self) -> None:
        assert self.seen or not self._wanted

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Remember interrupts during the context, and restore the old handler."""
        self.seen = self._wanted = False
        if not _can_be_told():
            yield
            return
        before, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
        try:
            self.rearm()
            sys.unraisablehook = self._dropped
            yield
        finally:
            self._wanted = False  # what this command did not heed no other one shall
            if signal.getsignal(signal.SIGINT) is not _leave_at_once:
                signal.signal(signal.SIGINT, before)
            sys.unraisablehook = hook

    def rearm(self) -> None:
        """Install our signal handler again, after a library (Spark) replaced it."""
        if _can_be_told():
            signal.signal(signal.SIGINT, self._came)

    def take(self) -> None:
        """Mark an interrupt as handled: the command stops and reports what it has."""
        self.seen, self._wanted = True, False

    def heed(self) -> None:
        """Raise an interrupt that came and that no command has handled.

        Raises:
            KeyboardInterrupt: there was one.
        """
        if self._wanted:
            raise KeyboardInterrupt

    def leave(self) -> None:
        """From now on an interrupt ends the process at once; all output is written."""
        sys.stdout.flush()
        sys.stderr.flush()
        # An interrupt inside of an `exec` (each dataclass has one) has Python end by
        # the signal, whatever the exit code, unless another `exec` goes well.
        exec("")
        if _can_be_told():
            signal.signal(signal.SIGINT, _leave_at_once)

    def ignore_at_exit(self) -> None:
        """Ignore interrupts in the last part of Python's exit.

        At that point Python has restored the default handler, by which the signal, and
        not the exit code of the finished command, would become the result of the
        process. Exit functions run in reverse order, so register this one at the
        beginning.
        """
        self._is_process = True
        if _can_be_told():
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)

    def _came(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        now = time.monotonic()
        if not self.seen:
            self._first_at = now
            if self._is_process and os.isatty(2):
                os.write(2, _HEARD)
        elif self._is_process and now - self._first_at > ONE_PRESS_S:
            if os.isatty(2):
                os.write(2, _SHOW_CURSOR)
            os._exit(CODE)
        self.seen = self._wanted = True
        raise KeyboardInterrupt

    def _dropped(self, what: Any) -> None:
        """Hook for ignored errors: remember an interrupt, report others as usual."""
        if what.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(what)


INTERRUPTS = Interrupts()


@contextmanager
def held_back() -> Iterator[None]:
    """Hold interrupts back during the context; deliver one that came afterwards.

    A process that is started meanwhile holds them back too, until it calls
    ``left_to_parent``.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def new_interpreters() -> SpawnContext:
    """The context of worker processes that are new interpreters.

    Python's resource tracker is running when this returns. Python lets interrupts
    through when it starts one, so that ``held_back`` would not hold during the start
    of the first worker.
    """
    # Most commands start no worker, and each is up sooner without this module.
    from multiprocessing import get_context, resource_tracker

    resource_tracker.ensure_running()
    return get_context("spawn")


def left_to_parent() -> None:
    """In a child process: leave Ctrl-C to the parent, which ends its workers.

    A worker also ends when its parent was killed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _can_be_told() -> bool:
    """Whether interrupts may be handled: not in a thread, nor if they are ignored."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def _leave_at_once(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    os._exit(CODE)
