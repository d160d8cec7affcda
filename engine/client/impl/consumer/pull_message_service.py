"""PullMessageService: sends the pull requests of a client, round by round.

A request waits in a queue or for its time; a round sends each that is due. Then it is
outstanding until its answer comes. An answer may come at any time and in any activity,
so it is put into an inbox that the next round processes. If no answer comes within
30 s, the request is sent again, and the late answer is ignored.

If a crash interrupts a round, every request is where the next round finds it.

Source: org.apache.rocketmq.client.impl.consumer.PullMessageService, MQClientAPIImpl
#pullMessageAsync, RocketMQ 5.3. Differs: answers are processed by a round, there by the
thread that received them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from crashmq.engine.client.impl.broker_api import PullAnswer
from crashmq.engine.client.impl.consumer.delays import Delays, has_passed
from crashmq.engine.client.impl.consumer.pull_request import PullRequest
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.remoting.pull_message import PullMessageResponse
from crashmq.engine.remoting.subscription_data import SubscriptionData

CONSUMER_TIMEOUT_MILLIS_WHEN_SUSPEND = 30_000
INTERVAL_MS = 10

TIMED_OUT = probe("pull_message_service.timed_out", "no answer came to a pull")
ANSWERED_LATE = probe(
    "pull_message_service.answered_late", "an answer came to a pull that was given up"
)


@dataclass(frozen=True, slots=True)
class OutstandingPull:
    """A request that was sent: its subscription and time."""

    request: PullRequest
    subscription: SubscriptionData
    sent_ms: int


class PullHandler(Protocol):
    """The callbacks of the service for requests, answers and timeouts."""

    def pull_message(self, request: PullRequest) -> int:
        """Send a request, or delay it; returns how many were sent."""

    def on_answer(self, pull: OutstandingPull, response: PullMessageResponse) -> None:
        """Continue a request after its answer."""

    def on_timeout(self, pull: OutstandingPull) -> None:
        """Continue a request whose answer did not come in time."""


class PullMessageService:
    """The pull requests of one consumer."""

    name = "pull_message"
    interval_ms = INTERVAL_MS

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = runtime.lock()
        self._handler: PullHandler | None = None
        self._requests: deque[PullRequest] = deque()
        self._delayed: Delays[PullRequest] = Delays()
        self._outstanding: dict[int, OutstandingPull] = {}
        self._sent = 0
        self._inbox: deque[tuple[int, PullMessageResponse]] = deque()
        self._wake: Callable[[], None] = _nobody

    def start(self, handler: PullHandler) -> None:
        """Let rounds process the requests."""
        self._handler = handler

    def stop(self) -> None:
        """Make rounds do nothing."""
        self._handler = None

    def on_work(self, wake: Callable[[], None]) -> None:
        """Register ``wake``, to be called when requests or answers arrive."""
        self._wake = wake

    def execute_pull_request_immediately(self, request: PullRequest) -> None:
        """Process a request in the next round."""
        with self._lock:
            if not self._waits(request):
                self._requests.append(request)
        self._wake()

    def execute_pull_request_later(self, request: PullRequest, delay_ms: int) -> None:
        """Process a request once ``delay_ms`` have passed."""
        with self._lock:
            if not self._waits(request):
                self._delayed.add(request, delay_ms, self._runtime.now_ms())

    def _waits(self, request: PullRequest) -> bool:
        return request in self._requests or request in self._delayed

    def sent(self, request: PullRequest, subscription: SubscriptionData) -> PullAnswer:
        """Note that a request is being sent; returns the callback for its answer."""
        self._sent += 1
        number = self._sent
        self._outstanding[number] = OutstandingPull(
            request, subscription, self._runtime.now_ms()
        )

        def take(response: PullMessageResponse) -> None:
            # Without a lock: whoever answers may hold one of his own.
            self._inbox.append((number, response))
            self._wake()

        return take

    def unsent(self, request: PullRequest) -> None:
        """Forget an outstanding request; an answer to it is ignored."""
        for number, pull in list(self._outstanding.items()):
            if pull.request is request:
                del self._outstanding[number]

    def run_once(self) -> int:
        """Process answers, timeouts and requests; returns how many.

        A request that only waits, for its time or for messages to be consumed, does not
        count.
        """
        handler = self._handler
        if handler is None:
            return 0
        work = self._take_answers(handler) + self._give_up(handler)
        return work + self._turn_requests(handler)

    def _take_answers(self, handler: PullHandler) -> int:
        work = 0
        for _ in range(len(self._inbox)):
            number, response = self._inbox.popleft()
            pull = self._outstanding.pop(number, None)
            if pull is None:
                ANSWERED_LATE.hit()
                continue
            with self._kept(pull.request):
                handler.on_answer(pull, response)
            work += 1
        return work

    def _give_up(self, handler: PullHandler) -> int:
        work, now_ms = 0, self._runtime.now_ms()
        for number, pull in list(self._outstanding.items()):
            if has_passed(pull.sent_ms, CONSUMER_TIMEOUT_MILLIS_WHEN_SUSPEND, now_ms):
                TIMED_OUT.hit()
                del self._outstanding[number]
                with self._kept(pull.request):
                    handler.on_timeout(pull)
                work += 1
        return work

    def _turn_requests(self, handler: PullHandler) -> int:
        with self._lock:
            self._requests.extend(self._delayed.take_due(self._runtime.now_ms()))
            waiting = len(self._requests)
        work = 0
        for _ in range(waiting):
            request = self._requests.popleft()
            with self._kept(request):
                work += handler.pull_message(request)
        return work

    @contextmanager
    def _kept(self, request: PullRequest) -> Iterator[None]:
        """A request in processing; if that is interrupted, it is processed again."""
        try:
            yield
        except BaseException:
            pulls = self._outstanding.values()
            is_sent = any(pull.request is request for pull in pulls)
            if not is_sent and not self._waits(request):
                self._requests.append(request)
            raise


def _nobody() -> None:
    """The callback before ``on_work``: nothing is woken."""
