"""ServiceThreads: runs each service of a started store in a thread of its own.

A thread waits ``interval_ms``, or until it is woken, then runs a round, and so on. So
the rounds of one service never overlap, and a caller that waits for a round never runs
one itself.

A thread survives everything that a round raises, even a MemoryError, since a service
without its thread would never flush, dispatch or delete again. The first such error is
kept and logged with its traceback to the logger of this module, and so is the end of a
series of them. The next round comes at its usual time.

Source: org.apache.rocketmq.common.ServiceThread, RocketMQ 5.3. Differs: waiting for a
thread's end has a time-out, and exceeding it is an error.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from crashmq.engine.host.service import (
    DelayedService,
    EndingService,
    Service,
    WokenService,
)

STOP_TIMEOUT_MS = 10_000

_LOG = logging.getLogger(__name__)


class HostedStore(Protocol):
    """The parts of a store that a host needs to run its services."""

    @property
    def is_started(self) -> bool:
        """Whether the services may be run."""

    @property
    def services(self) -> tuple[Service, ...]:
        """The services to run, in the store's order."""

    @property
    def waited_for(self) -> tuple[Service, ...]:
        """The services whose rounds wake callers that wait inside the store."""


class _ServiceThread:
    """One service and its thread."""

    def __init__(self, service: Service, errors: dict[str, Exception]) -> None:
        self.name = service.name
        self.ended_in_order = False
        self._service = service
        self._errors = errors
        self._failed_rounds = 0  # one after the other
        self._is_told_to_stop = False
        self._wake = threading.Event()
        if isinstance(service, WokenService):
            service.on_work(self._wake.set)
        # A daemon: a process whose host was not stopped must still be able to end.
        self._thread = threading.Thread(
            target=self._turn, name=f"service-{service.name}", daemon=True
        )
        self._thread.start()

    def _turn(self) -> None:
        service = self._service
        if isinstance(service, DelayedService):
            delay_ms = service.first_after_ms - service.interval_ms
            self._wake.wait(max(0, delay_ms) / 1000)
        while not self._is_told_to_stop:
            self._wake.wait(service.interval_ms / 1000)
            self._wake.clear()  # before the round, which finds what is put from now on
            if not self._is_told_to_stop:
                self._do(service.run_once)
        if isinstance(service, EndingService):
            self._do(service.run_last)
        else:
            self._do(service.run_once)
        self.ended_in_order = True

    def _do(self, one_round: Callable[[], int]) -> None:
        try:
            one_round()
        except Exception as error:
            # Whatever it is, the service must be turned again: see the module.
            self._errors.setdefault(self.name, error)
            self._failed_rounds += 1
            if self._failed_rounds == 1:
                again = f"it is turned again in {self._service.interval_ms} ms"
                _LOG.exception("service %s: a round failed; %s", self.name, again)
        else:
            if self._failed_rounds:
                count, self._failed_rounds = self._failed_rounds, 0
                _LOG.warning("service %s: works after %d failures", self.name, count)

    def tell_to_stop(self) -> None:
        """Ask for one last round after the round in progress."""
        self._is_told_to_stop = True
        self._wake.set()

    def has_ended(self, timeout_s: float) -> bool:
        """Wait up to ``timeout_s`` for the thread; return whether it has ended."""
        self._thread.join(max(0.0, timeout_s))
        return not self._thread.is_alive()


class ServiceThreads:
    """The threads of one started store; as a context manager, started and stopped.

    Stop the producers, ``stop()`` the threads, then shut the store down, in that order:
    a shutdown closes the files that a round uses.

    Attributes:
        errors: by service name, the first error that a round raised. The service's
            rounds go on; what the error means for the store, the store decides.
    """

    def __init__(self, store: HostedStore) -> None:
        self.errors: dict[str, Exception] = {}
        self._store = store
        self._threads: list[_ServiceThread] = []

    def start(self) -> None:
        """Start a thread for every service.

        Raises:
            RuntimeError: the store is not started, or its services have threads
                already.
        """
        if self._threads:
            names = ", ".join(thread.name for thread in self._threads)
            raise RuntimeError(
                f"{names}: turned already; stop() them before start() is called again."
            )
        if not self._store.is_started:
            raise RuntimeError(
                "the store is not started: load() and start() it before its services "
                "are turned."
            )
        self._threads = [
            _ServiceThread(service, self.errors) for service in self._in_order_of_end()
        ]

    def _in_order_of_end(self) -> list[Service]:
        """The order of stopping: services that callers wait for, then the others.

        With SYNC_FLUSH only flushed records are dispatched, so the last round of reput
        has to come after the last flush, and after the last commit of write buffers,
        which the store's order of services ensures.
        """
        first = {service.name for service in self._store.waited_for}
        return sorted(
            self._store.services, key=lambda service: service.name not in first
        )

    def stop(self, timeout_ms: int) -> None:
        """Let each service do its last round, and wait for the threads to end.

        The threads end one after the other, so the last round of reput dispatches all
        that was put before the call and may be dispatched. Idempotent.

        Args:
            timeout_ms: the time-out for all of them together.

        Raises:
            TimeoutError: a round did not end in time. Every thread is told to stop;
                call again to go on waiting.
            RuntimeError: a thread was ended by an error that is no ``Exception``.
        """
        deadline = time.monotonic() + timeout_ms / 1000
        for thread in self._threads:
            thread.tell_to_stop()
            # After the deadline the others are only asked to stop, not waited for.
            thread.has_ended(deadline - time.monotonic())
        running = [t.name for t in self._threads if not t.has_ended(0)]
        if running:
            raise TimeoutError(
                f"waited {timeout_ms} ms for the last round of {', '.join(running)} "
                f"to end. Wait longer, and look for what holds it: a disk that does "
                f"not answer, or putters that still run."
            )
        broken = [t.name for t in self._threads if not t.ended_in_order]
        self._threads = []
        if broken:
            raise RuntimeError(
                f"{', '.join(broken)}: its round ended the thread; stderr has the "
                "error. The service has not run since: restart the store."
            )

    def __enter__(self) -> ServiceThreads:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop(STOP_TIMEOUT_MS)
