"""WaitingRequests: batches that wait for a listener, until the host runs one.

RocketMQ submits a ConsumeRequest to a thread pool; here it waits in a list, and the
host chooses which one runs. So the host decides in which order consumption ends.

Source: ConsumeMessageConcurrentlyService and ConsumeMessageOrderlyService, their
ConsumeRequest, consumeExecutor and scheduledExecutorService, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crashmq.engine.client.impl.consumer.delays import Delays
from crashmq.engine.client.impl.consumer.process_queue import ProcessQueue
from crashmq.engine.common.message_ext import MessageExt
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.runtime import Runtime

POLL_MS = 10


@dataclass(frozen=True, slots=True, eq=False)
class ConsumeRequest:
    """Messages for a listener; an orderly one has none, it takes them when it runs."""

    queue: MessageQueue
    process_queue: ProcessQueue
    messages: tuple[MessageExt, ...] = ()


class WaitingRequests:
    """The requests of one consumer, in the order in which they came.

    With ``one_a_queue`` at most one request of a queue runs at a time, even one of a
    process queue that was dropped meanwhile. Source: MessageQueueLock.
    """

    def __init__(self, runtime: Runtime, *, one_a_queue: bool) -> None:
        self._runtime = runtime
        self._one_a_queue = one_a_queue
        self._lock = runtime.lock()
        self._waiting: list[ConsumeRequest] = []
        self._delayed: Delays[ConsumeRequest] = Delays()
        self._running: list[ConsumeRequest] = []
        self._is_stopped = False

    @property
    def waiting(self) -> tuple[ConsumeRequest, ...]:
        """The requests that can run now, in order."""
        with self._lock:
            return self._ready()

    def _ready(self) -> tuple[ConsumeRequest, ...]:
        if self._is_stopped:
            return ()
        self._waiting += self._delayed.take_due(self._runtime.now_ms())
        busy = [r.queue for r in self._running] if self._one_a_queue else []
        return tuple(r for r in self._waiting if r.queue not in busy)

    def add(self, request: ConsumeRequest) -> None:
        """Let a request wait to be run."""
        with self._lock:
            self._waiting.append(request)

    def add_later(self, request: ConsumeRequest, delay_ms: int) -> None:
        """Let a request wait for ``delay_ms``, and then to be run."""
        with self._lock:
            self._delayed.add(request, delay_ms, self._runtime.now_ms())

    def run(self, nth: int, body: Callable[[ConsumeRequest], None]) -> int:
        """Run one request; returns 1, or 0 if none can run.

        A request whose run is interrupted by a crash waits again.

        Args:
            nth: which one, from 0 on, modulo their number.
            body: runs it; exceptions pass through.
        """
        with self._lock:
            ready = self._ready()
            if not ready:
                return 0
            request = ready[nth % len(ready)]
            self._waiting.remove(request)
            self._running.append(request)
        with self._noted(request):
            body(request)
        return 1

    @contextmanager
    def _noted(self, request: ConsumeRequest) -> Iterator[None]:
        """Marks a request as running."""
        try:
            yield
        except BaseException:
            if request not in self._waiting and request not in self._delayed:
                self._waiting.append(request)
            raise
        finally:
            self._running.remove(request)

    def shutdown(self, await_terminate_ms: int) -> bool:
        """Start no more requests, wait for running ones; False: some still run."""
        with self._lock:
            self._is_stopped = True
        for _ in range(-(-await_terminate_ms // POLL_MS)):
            if not self._running:
                break
            self._runtime.sleep_ms(POLL_MS)
        return not self._running
