"""Counts disk actions, runs events at them, and makes calls fail.

A *disk action* is one page's part of a write into the cache, one dirty page made
durable by a sync, or one directory change. ``Controls`` counts them, lets an event
happen in the middle of the n-th, and has the faults that are armed. The caller does the
action itself.

Watches nest: the newest is removed first. Two that wait for the same action fire in the
order of their cuts, then of their creation.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from crashmq.harness.disk.crash import Hang
from crashmq.models.observations import Damaged
from crashmq.models.ops import DiskFault, FaultCall, Survivors

NEVER = sys.maxsize
_ERRNO = {
    "EIO": errno.EIO,
    "ENOSPC": errno.ENOSPC,
    "EDQUOT": errno.EDQUOT,
    "EINTR": errno.EINTR,
}


_PAGE_FAULTS: tuple[FaultCall, ...] = ("lose", "misdirect")


class Healed(NamedTuple):
    """How many calls failed, and where the medium differs from what was synced."""

    failed: int
    spoilt: tuple[Damaged, ...] = ()


def _nothing() -> None:
    """Do nothing: the default where no other activity may run."""


class Watch:
    """A callback that is called once, at one disk action."""

    __slots__ = ("action", "cut", "event", "fired")

    def __init__(self, action: int, cut: int, event: Callable[[], None]) -> None:
        self.action = action
        self.cut = cut
        self.event = event
        self.fired = False


class Controls:
    """The count of actions, the watches and the armed faults of one disk.

    Invariants:
        actions take the slow path from the first one on that a watch waits for
    """

    __slots__ = (
        "_failed",
        "_faults",
        "_last_allowed",
        "_listener",
        "_met",
        "_spoilt",
        "_watches",
        "actions",
        "is_listening",
        "last",
        "pause",
        "reads_left",
        "stop_at",
        "storing",
        "survivors",
        "taker",
        "written",
    )

    def __init__(self, actions: int = 0, last: tuple[str, str] = ("", "")) -> None:
        self.actions = actions
        self.last = last
        self.stop_at = NEVER
        self.reads_left = NEVER
        self._last_allowed = NEVER
        self._watches: list[Watch] = []
        self._faults: dict[FaultCall, DiskFault] = {}
        self._failed = 0
        self._met: list[tuple[FaultCall, str]] = []
        self._spoilt: list[Damaged] = []
        self.written = 0
        self.survivors = Survivors()
        self._listener: Callable[[], None] | None = None
        self.pause: Callable[[], None] = _nothing
        self.is_listening = False
        self.storing: tuple[int, bytes] | None = None
        self.taker: Callable[[str, str], object] | None = None

    def _check(self) -> None:
        for watch in self._watches:
            assert watch.fired or self.stop_at <= watch.action, watch.action

    def on_every_action(self, listener: Callable[[], None] | None) -> None:
        """Call ``listener`` at each action, before any of it is done.

        It must change nothing; None removes it.
        """
        self._listener = listener
        self._find_stop()

    def pause_by(self, pause: Callable[[], None] | None) -> None:
        """Call ``pause`` before each action and read; None removes it."""
        self.pause = pause or _nothing
        self._find_stop()

    def at_action(self, n: int, cut: int, event: Callable[[], None]) -> None:
        """Let ``event`` happen once, in the middle of the n-th action from now.

        It waits, across crashes too, until it has happened or its watch is removed.

        Raises:
            ValueError: n < 1 or cut < 0.
        """
        if n < 1 or cut < 0:
            raise ValueError(
                f"cannot watch for disk action {n} with cut {cut}: actions count "
                f"from 1 and a cut is a number of bytes. Draw n >= 1 and cut >= 0."
            )
        self._watches.append(Watch(self.actions + n, cut, event))
        self._find_stop()

    def end_watch(self, event: Callable[[], None] | None = None) -> bool:
        """Remove the newest watch; return whether it had fired (False: none).

        With ``event``, the one for that event: others may have begun theirs since.
        """
        of_event = [one for one in self._watches if event in (None, one.event)]
        if not of_event:
            return False
        watch = of_event[-1]
        self._watches.remove(watch)
        self._find_stop()
        return watch.fired

    def allow(self, actions: int, reads: int) -> None:
        """Raise ``Hang`` after this many more actions or reads.

        A store with a bug may loop for ever; this ends it.
        """
        self._last_allowed = self.actions + actions
        self.reads_left = reads
        self._find_stop()

    def refuse_read(self, path: str) -> None:
        """Raise if no further read is allowed.

        Raises:
            Hang: this one is more than was allowed.
        """
        if self.reads_left < 0:
            raise Hang(f"too many reads, the newest of {path}: the op never ends.")

    def fail(self, fault: DiskFault) -> None:
        """Make the next ``fault.times`` calls of its kind fail."""
        if fault.times > 0:
            self._faults[fault.call] = fault
            self._find_stop()

    def heal(self) -> int:
        """Disarm every fault; return how many calls failed since the last ``heal``."""
        failed, self._failed = self._failed, 0
        self._faults.clear()
        self._find_stop()
        return failed

    def meet_fault(self, call: FaultCall, path: str) -> None:
        """Count a call of this kind, and raise if it is to fail.

        Raises:
            OSError: with the errno that was armed. The caller must first do ``written``
                bytes of a write, or of a sync what ``survivors`` says.
        """
        fault = self._meet(call, path)
        if fault is None:
            return
        number = _ERRNO[fault.errno]
        why = f"{os.strerror(number)}: this {call} was made to fail"
        self.written, self.survivors = fault.written, fault.survivors
        raise OSError(number, why, path)

    def _meet(self, call: FaultCall, path: str) -> DiskFault | None:
        """Count this call for the armed faults; return the one it meets, if any."""
        fault = self._faults.get(call)
        if fault is None or not path.startswith(fault.path):
            return None
        del self._faults[call]
        if fault.after > 0:
            self._faults[call] = replace(fault, after=fault.after - 1)
            return None
        if fault.lasts:
            self._faults[call] = fault
        elif fault.times > 1:
            self._faults[call] = replace(fault, times=fault.times - 1)
        self._failed += 1
        self._met.append((call, path))
        self._find_stop()
        return fault

    def take_page_fault(self, path: str) -> DiskFault | None:
        """The silent fault that hits a page about to be made durable, or None.

        Each armed fault of that kind counts the page.
        """
        for call in _PAGE_FAULTS:
            fault = self._meet(call, path)
            if fault is not None:
                return fault
        return None

    def spoil(self, path: str, start: int, end: int) -> None:
        """Record that the medium does not have what was written to these bytes."""
        self._spoilt.append(Damaged(path, start, end))

    def take_met(self) -> tuple[tuple[FaultCall, str], ...]:
        """The calls that met a fault since the last call of this, with their paths."""
        met, self._met = tuple(self._met), []
        return met

    def healed(self) -> Healed:
        """Disarm every fault; return what they did since the last call."""
        spoilt, self._spoilt = tuple(self._spoilt), []
        return Healed(self.heal(), spoilt)

    def begin(
        self, action: tuple[str, str], storing: tuple[int, bytes] | None = None
    ) -> int:
        """Count an action, without firing events yet; return its number.

        ``storing`` is the position and the bytes of a store into a mapping, of which a
        crash may leave a part.
        """
        if self.actions >= self._last_allowed:
            verb, path = action
            raise Hang(f"too many disk actions, {verb} {path}: the op never ends.")
        self.actions += 1
        self.last = action
        self.storing = storing
        if self.taker is not None and action[0] == "remove":
            self.taker(*action)
        if self._listener is not None:
            self.is_listening = True
            self._listener()
            self.is_listening = False
        return self.actions

    def next_due(self, action: int) -> Watch | None:
        """The next watch that fires at the action just begun; None if none does."""
        due = [w for w in self._watches if not w.fired and w.action == action]
        return min(due, key=lambda watch: watch.cut, default=None)

    def fire(self, watch: Watch) -> None:
        """Run the event. Exceptions pass through."""
        watch.fired = True
        self._find_stop()
        watch.event()

    def _find_stop(self) -> None:
        if self._faults or self.pause is not _nothing:
            self.stop_at = 0
            return
        if self._listener is not None:
            self.stop_at = 1  # every action stops, and no read
            return
        self.stop_at = self._last_allowed
        for watch in self._watches:
            if not watch.fired:
                self.stop_at = min(self.stop_at, watch.action)
