"""PullRequestHoldService: holds pulls that found nothing until a message comes.

A held pull is woken by a message that matches it, as soon as dispatch has made the
message readable; by a check every five seconds, if its queue has grown past its offset,
whatever is there; and by its timeout. It is then read again, and answered with whatever
is found (``execute``). Whoever removes a pull from the list answers it, so each is
answered once; a shutdown answers all that are left, and a crash none.

Source: org.apache.rocketmq.broker.longpolling.PullRequestHoldService, RocketMQ 5.3.
Differs: no wake-up is lost. A pull is checked once more after it was put into the list,
since a message may have come after it was read; a lock keeps messages from coming while
the list is checked and temporarily empty; if the queue's end cannot be read, the pull
stays held; and a pull is woken only if its queue has the message. A shutdown answers
held pulls; in RocketMQ the client runs into its own timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.broker.longpolling.pull_request import PullRequest
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.errors import StoreStopped
from crashmq.engine.store.message_arriving_listener import ArrivedMessage
from crashmq.engine.store.queue.consume_queue_ext import CqExtUnit

LONG_POLLING_INTERVAL_MS = 5000

HELD = probe("pull_request_hold.held", "a pull that found nothing was held")
CAME_MEANWHILE = probe(
    "pull_request_hold.came_meanwhile", "a message came between a read and its hold"
)
WOKEN = probe("pull_request_hold.woken", "a message that arrived woke a held pull")
UNMATCHED = probe(
    "pull_request_hold.unmatched", "a message that arrived did not match a held pull"
)
SWEPT = probe("pull_request_hold.swept", "a look found a queue ahead of a held pull")
TIMED_OUT = probe("pull_request_hold.timed_out", "the time of a held pull was up")
UNTOLD = probe("pull_request_hold.untold", "nobody could say where a queue ends")
ENDED = probe("pull_request_hold.ended", "a stop answered a pull that was held")
TOO_LATE = probe("pull_request_hold.too_late", "a pull was to be held after the stop")

QueueKey = tuple[str, int]


class QueueEnds(Protocol):
    """A store that can be asked where its queues end."""

    def get_max_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """The queue_offset that dispatch gives to the queue's next message.

        Raises:
            StoreStopped: the store must not be read.
        """


class PullRequestHoldService:
    """The pulls that are held, by queue, and the service that checks them.

    Invariants:
        no queue has an empty list
    """

    name = "pull_request_hold"

    def __init__(
        self,
        store: QueueEnds,
        config: BrokerConfig,
        runtime: Runtime,
        execute: Callable[[PullRequest], None],
    ) -> None:
        """Hold pulls of a store; ``execute`` answers one that is no longer held."""
        self.interval_ms = (
            LONG_POLLING_INTERVAL_MS
            if config.long_polling_enable
            else config.short_polling_time_mills
        )
        self._store = store
        self._runtime = runtime
        self._execute = execute
        self._lock = runtime.lock()
        self._held: dict[QueueKey, list[PullRequest]] = {}
        self._is_stopped = False

    def _check(self) -> None:
        assert all(self._held.values()), self._held

    def suspend_pull_request(self, pull: PullRequest) -> bool:
        """Hold a pull; False if the service has stopped and holds no more pulls.

        Source: PullRequestHoldService#suspendPullRequest.
        """
        key = (pull.request.topic, pull.request.queue_id)
        with self._lock:
            if self._is_stopped:
                TOO_LATE.hit()
                return False
            self._held.setdefault(key, []).append(pull)
            HELD.hit()
        if self._max_offset(key) > pull.pull_from_this_offset:
            CAME_MEANWHILE.hit()
            self.notify_message_arriving(ArrivedMessage(*key, 0))
        return True

    def notify_message_arriving(self, message: ArrivedMessage) -> int:
        """Wake the pulls for which a message may be the answer; returns how many.

        If only the queue of the message is known, all pulls are woken whose queue has
        grown past their offset.

        Source: PullRequestHoldService#notifyMessageArriving.
        """
        woken = self._take_woken(message)
        self._execute_all(woken)
        return len(woken)

    def run_once(self) -> int:
        """Check every pull that is held; returns how many were woken.

        Source: PullRequestHoldService#checkHoldRequest.
        """
        with self._lock:
            keys = list(self._held)
        return sum(
            [self.notify_message_arriving(ArrivedMessage(*key, 0)) for key in keys]
        )

    def stop(self) -> None:
        """Answer every pull that is held, and hold no more pulls."""
        with self._lock:
            self._is_stopped = True
            left = [pull for pulls in self._held.values() for pull in pulls]
            self._held = {}
        for _ in left:
            ENDED.hit()
        self._execute_all(left)

    def _take_woken(self, message: ArrivedMessage) -> list[PullRequest]:
        key = (message.topic, message.queue_id)
        with self._lock:
            pulls = self._held.get(key, [])
            if not pulls:
                return []
            end, now_ms = self._max_offset(key), self._runtime.now_ms()
            woken: list[PullRequest] = []
            kept: list[PullRequest] = []
            for pull in pulls:
                is_woken = _is_woken(pull, message, end, now_ms)
                (woken if is_woken else kept).append(pull)
            # Only now: whatever was raised until here, nobody is forgotten.
            if kept:
                self._held[key] = kept
            else:
                del self._held[key]
        return woken

    def _execute_all(self, pulls: Sequence[PullRequest]) -> None:
        """Answer each of them, even if the answer to another one raises."""
        first: Exception | None = None
        for pull in pulls:
            try:
                self._execute(pull)
            except Exception as error:
                # It is the client's: others must be answered before it is told of.
                first = first or error
        if first is not None:
            raise first

    def _max_offset(self, key: QueueKey) -> int:
        """Where a queue ends; -1 if the store cannot say."""
        try:
            return self._store.get_max_offset_in_queue(*key)
        except StoreStopped:
            UNTOLD.hit()
            return -1


def _is_woken(
    pull: PullRequest, message: ArrivedMessage, end: int, now_ms: int
) -> bool:
    """Whether a pull must be answered, if its queue ends at ``end``."""
    if end > pull.pull_from_this_offset:
        if _may_match(pull, message):
            (SWEPT if message.tags_code is None else WOKEN).hit()
            return True
        UNMATCHED.hit()
    if now_ms >= pull.suspend_timestamp + pull.timeout_millis:
        TIMED_OUT.hit()
        return True
    return False


def _may_match(pull: PullRequest, message: ArrivedMessage) -> bool:
    ext = CqExtUnit(
        message.tags_code or 0, message.msg_store_time, message.filter_bit_map or b""
    )
    wanted = pull.message_filter
    if not wanted.is_matched_by_consume_queue(message.tags_code, ext):
        return False
    if message.properties is None:
        return True
    return wanted.is_matched_by_commit_log(None, message.properties)
